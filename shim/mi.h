// SPDX-License-Identifier: MIT
/*
 * The one door to mimalloc: only this header includes <mimalloc.h>, and only heap.c and
 * interpose_malloc.c (for the inlined fast paths) include this one.
 *
 * What the packaged versions get wrong is made good here, in one place:
 *  - 2.0.9 aligns blocks of 8 bytes and less to 8; the ABI says 16. Nothing below 16 is asked for.
 *  - 2.0.9 takes a block whose size is a power of two and equals its alignment (256, 512, 1024)
 * from a page where blocks of that size need not be aligned. The result is looked at, and a size
 * that is not a power of two takes the way that over-allocates. errno, overflow and operator new
 * are the callers' business (heap.c, interpose_cxx.c).
 */
#ifndef NUMALIFT_SHIM_MI_H
#define NUMALIFT_SHIM_MI_H

#include <mimalloc.h>
#include <stddef.h>
#include <stdint.h>

#include "shim/compiler.h"

#define LIFT_MIN_BLOCK 16
/* From more than so many bytes on its blocks are of that size without being told. */
#define LIFT_MI_TOO_SMALL 8

static inline size_t lift_mi_size(size_t n)
{
	return n < LIFT_MIN_BLOCK ? LIFT_MIN_BLOCK : n;
}

/* align: a power of two above 16; n is small enough not to wrap when align is added. */
static inline void *lift_mi_aligned(size_t n, size_t align)
{
	size_t ask = lift_mi_size(n);
	void *p;

	/* The faulty case is known, so that it need not be tried; newer versions may do without,
	 * but not ask. */
	if (align > 128 && align <= ask && ask <= MI_SMALL_SIZE_MAX && (ask & (ask - 1)) == 0)
		ask++;
	p = mi_malloc_aligned(ask, align);
	if (unlikely((uintptr_t)p & (align - 1))) {
		mi_free(p);
		p = mi_malloc_aligned(ask + 1, align);
	}
	return p;
}

#endif
