// SPDX-License-Identifier: MIT
/*
 * Writes JSON (RFC 8259), indented, and nothing but that: three dozen lines do what a library would
 * be another dependency for. Keys are NULL inside arrays and at the top.
 */
#ifndef NUMALIFT_SHIM_CLI_JSON_H
#define NUMALIFT_SHIM_CLI_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define LIFT_JSON_DEPTH 16

struct lift_json {
	FILE *out;
	unsigned depth;
	bool flat;                   /* all on one line; set after init */
	bool begun[LIFT_JSON_DEPTH]; /* something was written at this depth */
	char close[LIFT_JSON_DEPTH];
};

void lift_json_init(struct lift_json *j, FILE *out);
void lift_json_object(struct lift_json *j, const char *key);
void lift_json_array(struct lift_json *j, const char *key);
/* Ends the innermost object or array; the outermost with a newline. */
void lift_json_end(struct lift_json *j);

/* NULL writes null. Bytes that are not UTF-8 are replaced by U+FFFD. */
void lift_json_string(struct lift_json *j, const char *key, const char *value);
void lift_json_number(struct lift_json *j, const char *key, int64_t value);
void lift_json_unsigned(struct lift_json *j, const char *key, uint64_t value);
void lift_json_bool(struct lift_json *j, const char *key, bool value);
/* @value, or null when it is 0: how facts say that they are not known. */
void lift_json_known(struct lift_json *j, const char *key, uint64_t value);

#endif
