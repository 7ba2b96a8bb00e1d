// SPDX-License-Identifier: MIT
/*
 * What the loads have in common: passes and the pauses between them, marked for the cost model, and
 * where the pages of a process are.
 */
#ifndef NUMALIFT_BENCHMARKS_LAB_PASS_H
#define NUMALIFT_BENCHMARKS_LAB_PASS_H

#include <stdbool.h>
#include <stddef.h>

enum { PASS_MAX_NODES = 64 };

struct pass {
	const char *program;  /* for messages */
	unsigned long passes; /* how many there are */
	double period_ms;     /* one begins so long after the one before; 0: at once */
	unsigned long mark;   /* from this one on they are marked for the cost model; 0: none */
	unsigned long number; /* of the current one, from 1 */
	double start_ms;
	double ms; /* what the last one took */
};

double pass_now_ms(void);

/* False when there was the last one. */
bool pass_next(struct pass *p);
void pass_begin(struct pass *p);
void pass_end(struct pass *p);

/* What goes on until the next pass belongs to the costs, too. */
void pass_rest(const struct pass *p);

/* A number for an option; anything else ends the program with a message and status 2. */
unsigned long pass_number(const struct pass *p, const char *option, const char *text,
	unsigned long min, unsigned long max);

/* Options of all loads, for getopt_long; pass_option() takes them. */
/* clang-format off */
#define PASS_OPTIONS                                  \
	{"passes", required_argument, NULL, 'n'},     \
	{"period", required_argument, NULL, 'P'},     \
	{"mark", optional_argument, NULL, 'M'}
/* clang-format on */

/* False when `what` is another one. At least so many passes. Otherwise as pass_number(). */
bool pass_option(
	struct pass *p, int what, const char *option, const char *text, unsigned long least);

/* The calling thread, to one of the CPUs that it may use; each number has another as far as there
 * are. Ends the program on failure. */
void pass_pin(unsigned long number);

/* Adds the pages of the process's anonymous memory, by node; false when it cannot be told. */
bool pass_add_nodes(long pid, unsigned long *on);

/*
 * The same for these pages of the calling process. Nothing is touched. Those that the kernel does
 * not tell the place of are left out, and their number is returned; -1 with errno when it refuses.
 */
long pass_add_pages(const char *start, size_t bytes, unsigned long *on);

/* "nodes": {...} */
void pass_print_nodes(const unsigned long *on);

/* , "migrated": N pages that changed their node since the machine started; where the kernel says it
 */
void pass_print_migrated(void);

#endif
