// SPDX-License-Identifier: MIT
/*
 * Memory for numalift itself and for callers that arrive before there is an allocator to ask: never
 * freed, zeroed, 16-byte aligned at least. It starts in static storage, so that it works before any
 * constructor and without a single system call, and goes on in pages of its own.
 * Thread-safe and async-signal-safe; works in every state of the process.
 */
#ifndef NUMALIFT_SHIM_BOOTALLOC_H
#define NUMALIFT_SHIM_BOOTALLOC_H

#include <stdbool.h>
#include <stddef.h>

/* Returns NULL when size is 0 or above 1 GiB, or when the kernel refuses memory. align: a power of two. */
void *lift_bootalloc(size_t size, size_t align);

/* The same, but only from static storage: what lift_bootalloc_owns() knows. NULL when that is used up. */
void *lift_bootalloc_static(size_t size, size_t align);

/* True for a block of lift_bootalloc_static(). */
bool lift_bootalloc_owns(const void *p);

/* Bytes from p to the end of static storage: an upper bound of what may be copied from a block there. */
size_t lift_bootalloc_room(const void *p);

#endif
