// SPDX-License-Identifier: MIT
/*
 * Allocators that are not ours: libc's own, which serves where mimalloc cannot and made the blocks
 * that reach us from code bound to it (RTLD_DEEPBIND, dlmopen, libc before we were up), and
 * whatever else exports malloc behind us in the search order.
 */
#ifndef NUMALIFT_SHIM_FOREIGN_H
#define NUMALIFT_SHIM_FOREIGN_H

#include <stddef.h>

/* libc's own, past every interposer. They set errno as the standard functions do. */
void *lift_libc_malloc(size_t n);
void *lift_libc_calloc(size_t n);
void *lift_libc_aligned(size_t align, size_t n);

/* p: a block of unknown origin, not NULL, not ours. */
void lift_foreign_free(void *p);
void *lift_foreign_realloc(void *p, size_t n);
size_t lift_foreign_usable(void *p);

/* Looks for other allocators in the process. From the constructor. */
void lift_foreign_init(void);

/*
 * The definition of `name` that comes after ours in the search order, or NULL. Goes through
 * dlsym(3), so only where a call out is allowed; results are to be kept by the caller.
 */
void *lift_next(const char *name);

#endif
