// SPDX-License-Identifier: MIT
/*
 * Numbers and sets as people read them, and a table whose columns are as wide as what is in them.
 */
#ifndef NUMALIFT_SHIM_CLI_TEXT_H
#define NUMALIFT_SHIM_CLI_TEXT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "policy/types.h"

/* Enough for any set of nodes that a kernel can have: 512 ids of up to four digits with commas. */
#define LIFT_TEXT_NODES 2560
#define LIFT_TEXT_BYTES 24

/* "0-3,7"; "none" for the empty set. Returns @ret. */
const char *lift_text_nodes(const struct lift_nodeset *set, char ret[LIFT_TEXT_NODES]);

/* "3.8 GiB", "512 MiB", "17 B". Returns @ret. */
const char *lift_text_bytes(uint64_t bytes, char ret[LIFT_TEXT_BYTES]);

/* "EPERM" for -EPERM or EPERM. */
const char *lift_text_errno(int err);

/* printf into memory that is never freed here; ends the process when there is none. */
char *lift_text(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#define LIFT_TABLE_COLUMNS 80

/* Cells are strings, row by row; NULL ends a row early. '>' in @align[i] puts column i to the
 * right. */
struct lift_table {
	unsigned columns;
	const char *align;
	size_t nr; /* cells */
	size_t room;
	char **cell;
};

void lift_table_init(struct lift_table *t, unsigned columns, const char *align);
/* The table takes the text over. */
void lift_table_add(struct lift_table *t, char *text);
void lift_table_print(const struct lift_table *t, FILE *out);
void lift_table_fini(struct lift_table *t);

#endif
