// SPDX-License-Identifier: MIT
/*
 * Puts pages of a process where somebody who knows would have put them.
 */
#ifndef NUMALIFT_BENCHMARKS_LAB_PLACE_H
#define NUMALIFT_BENCHMARKS_LAB_PLACE_H

#include <stdint.h>
#include <sys/types.h>

/* A node for each page, or -errno where it has none; pid 0 is the caller. -errno on failure. */
int place_ask(pid_t pid, void **pages, unsigned long n, int *ret_nodes);

/*
 * Moves the pages to these nodes (a bit for each), the first ones first, until they are full. Those
 * that are on one of them already stay. Returns how many are there in the end, or -errno.
 */
long place_pages(pid_t pid, void **pages, unsigned long n, uint64_t nodes);

#endif
