// SPDX-License-Identifier: MIT
/* The lines of TAP that a test prints. */
#ifndef NUMALIFT_TESTS_MEMSYS_TAP_H
#define NUMALIFT_TESTS_MEMSYS_TAP_H

#include <stdbool.h>

/* Nothing may be skipped: a skip is a failure. */
extern bool tap_needed;

__attribute__((format(printf, 2, 3))) bool check(bool good, const char *form, ...);
void skip(const char *what, const char *why);

/* The plan. The exit status: 0 when all was well. */
int tap_end(void);

#endif
