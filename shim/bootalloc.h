// SPDX-License-Identifier: MIT
/*
 * Memory for numalift's own records: never freed, zeroed. It starts in static storage, so that it
 * works before any constructor and without a system call, and goes on in pages of its own.
 * Thread-safe and async-signal-safe; works in every state of the process.
 */
#ifndef NUMALIFT_SHIM_BOOTALLOC_H
#define NUMALIFT_SHIM_BOOTALLOC_H

#include <stdatomic.h>
#include <stddef.h>

/* Returns NULL when size is 0 or above 1 GiB, or when the kernel refuses memory. align: a power of
 * two. */
void *lift_bootalloc(size_t size, size_t align);

/*
 * A piece of memory that is bumped through. The offset lives beside the memory it is for, so a
 * thread that lost a race for a piece can never hand out memory of another one.
 */
struct lift_bump {
	_Atomic size_t used;
	size_t size;
	unsigned char *base;
};

/* NULL when it does not fit. */
void *lift_bump_take(struct lift_bump *b, size_t size, size_t align);

#endif
