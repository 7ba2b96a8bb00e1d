// SPDX-License-Identifier: MIT
/* The lines of TAP that the tests of the worker's parts print. */
#ifndef NUMALIFT_TESTS_SAMPLER_TAP_H
#define NUMALIFT_TESTS_SAMPLER_TAP_H

#include <stdbool.h>

/* What the lines are about: comes first in each. NULL: nothing. */
extern const char *tap_about;

/* Nothing may be skipped: a skip is a failure. */
extern bool tap_needed;

__attribute__((format(printf, 2, 3))) bool check(bool good, const char *form, ...);
void skip(const char *what, const char *why);

/* The plan. The exit status: 0 when all was well. */
int tap_end(void);

#endif
