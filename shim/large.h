// SPDX-License-Identifier: MIT
/*
 * Large blocks: each is a private anonymous mapping with a small header in front of the caller's
 * bytes. They belong to the anon class, are placed like any other mapping, grow and shrink by
 * mremap(2), and go back to the kernel when freed. Thread-safe and async-signal-safe; errno is kept
 * on success and set to ENOMEM on failure by nobody here (callers try libc's heap next).
 */
#ifndef NUMALIFT_SHIM_LARGE_H
#define NUMALIFT_SHIM_LARGE_H

#include <stdbool.h>
#include <stddef.h>

/* Zeroed memory. align: a power of two. NULL when the kernel refuses or the sum wraps. */
void *lift_large_alloc(size_t n, size_t align);

/* True when p is a large block. p: any pointer; bytes in front of it, on its own page, may be read.
 */
bool lift_large_owns(const void *p);

/* The three below: p is a large block. */
size_t lift_large_usable(const void *p);
void lift_large_free(void *p);
/* Moves at will and keeps the content. NULL leaves p as it was. The result is aligned to 16. */
void *lift_large_realloc(void *p, size_t n);

void lift_large_usage(size_t *ret_bytes, size_t *ret_blocks);

#endif
