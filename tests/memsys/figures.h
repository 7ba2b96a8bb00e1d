// SPDX-License-Identifier: MIT
/* The tests of shim/measure.h and shim/home.h. */
#ifndef NUMALIFT_TESTS_MEMSYS_FIGURES_H
#define NUMALIFT_TESTS_MEMSYS_FIGURES_H

#include <stdbool.h>

/* Nodes of -1: there is only one. */
void test_costs(int slow, int fast);
/* Two: there are CPUs on nodes 0 and 1. */
void test_home(bool two);

#endif
