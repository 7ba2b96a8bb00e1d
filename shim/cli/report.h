// SPDX-License-Identifier: MIT
/*
 * What `numalift check` found: one line each with a verdict, collected, then printed for people or
 * machines.
 */
#ifndef NUMALIFT_SHIM_CLI_REPORT_H
#define NUMALIFT_SHIM_CLI_REPORT_H

#include <stdio.h>

enum lift_verdict {
	LIFT_VERDICT_OK,
	LIFT_VERDICT_LIMITED, /* works in part, or with less effect */
	LIFT_VERDICT_OFF      /* does not work */
};

#define LIFT_REPORT_MAX 64

struct lift_report_line {
	const char *group;
	const char *name;
	enum lift_verdict verdict;
	char *finding;
	const char *remedy; /* NULL: nothing to bring back */
};

struct lift_report {
	const char *group; /* of the lines to come */
	unsigned nr;
	struct lift_report_line line[LIFT_REPORT_MAX];
};

/* @name and @remedy are borrowed. Lines beyond LIFT_REPORT_MAX are a mistake in this program. */
void lift_report_add(struct lift_report *r, const char *name, enum lift_verdict verdict,
	const char *remedy, const char *fmt, ...) __attribute__((format(printf, 5, 6)));

/* The worst of all lines. */
enum lift_verdict lift_report_verdict(const struct lift_report *r);

void lift_report_print(const struct lift_report *r, FILE *out);
void lift_report_json(const struct lift_report *r, FILE *out);
void lift_report_fini(struct lift_report *r);

#endif
