// SPDX-License-Identifier: MIT
/*
 * Which memory of this process may be sampled and moved, read from /proc/self/maps: private and
 * shared anonymous memory, brk and tmpfs objects. Not the main thread's stack, not page cache, not
 * what is locked, and not what the program or the user has put where it is.
 *
 * Worker thread only. Nothing is allocated but address space of its own.
 */
#ifndef NUMALIFT_SHIM_TRACKED_H
#define NUMALIFT_SHIM_TRACKED_H

#include <stdbool.h>
#include <stddef.h>

#include "policy/types.h"

/* Ascending, without overlap, neighbours merged. Valid until the next lift_tracked_read(). */
struct lift_tracked {
	const struct lift_range *range;
	size_t nr;
	uint64_t bytes;
};

/*
 * Address space for lists of so many ranges, before anything else here, and in *ret where that is,
 * which is not to be tracked either. 0 or -errno.
 */
int lift_tracked_open(size_t max, struct lift_range *ret);

/*
 * Never counts memory in `own` (the worker's records and stack). 0, or -errno when /proc cannot
 * say, with what was known before still valid.
 */
int lift_tracked_read(const struct lift_range *own, size_t nr_own, struct lift_tracked *ret);

/*
 * What became different with the last successful read: calls gone() for each stretch that is not
 * tracked any more, then come() for each that is new.
 */
void lift_tracked_changes(void (*gone)(void *arg, struct lift_range r),
	void (*come)(void *arg, struct lift_range r), void *arg);

/* The first tracked stretch in [from, end) into *ret; false: there is none. */
bool lift_tracked_next(uintptr_t from, uintptr_t end, struct lift_range *ret);

/* In the child of a fork: nothing is known. The memory is the child's to reuse. */
void lift_tracked_forked(void);

#endif
