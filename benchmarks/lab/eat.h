// SPDX-License-Identifier: MIT
/*
 * Fills nodes, so that what others allocate meanwhile goes elsewhere. The memory is the calling
 * process's: it is free again when that ends.
 */
#ifndef NUMALIFT_BENCHMARKS_LAB_EAT_H
#define NUMALIFT_BENCHMARKS_LAB_EAT_H

#include <stdint.h>
#include <sys/types.h>

/* "NODE[,NODE...]:MIB", or without ":MIB" when ret_mib is NULL. 0, or -1 when it is something else.
 */
int eat_parse(const char *text, uint64_t *ret_nodes, unsigned long *ret_mib);

/*
 * Leaves so many MiB free on each of the nodes, or the little more that the kernel keeps for
 * itself: below that it would move pages away, or kill. Ends the program on failure.
 */
void eat_nodes(uint64_t nodes, unsigned long left_mib);

/*
 * Ends a process that ate, and returns when its memory is free: then it is gone, or waits for its
 * parent to ask for its end. 0, or -1 with errno.
 */
int eat_end(pid_t pid);

#endif
