// SPDX-License-Identifier: MIT
/*
 * Blocks for callers that come before the process can have a heap: IFUNC resolvers that ld.so runs
 * while it relocates, and dlsym(3) on behalf of a library that stands aside. They come from static
 * storage (64 KiB; NULL after that), know their size, and are never reused: free forgets them,
 * realloc copies out.
 */
#ifndef NUMALIFT_SHIM_EARLY_H
#define NUMALIFT_SHIM_EARLY_H

#include <stdbool.h>
#include <stddef.h>

/* Zeroed. align: a power of two. */
void *lift_early_alloc(size_t n, size_t align);
bool lift_early_owns(const void *p);
/* p: a block of lift_early_alloc(). */
size_t lift_early_usable(const void *p);

#endif
