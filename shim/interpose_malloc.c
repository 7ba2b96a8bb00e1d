// SPDX-License-Identifier: MIT
/*
 * The C allocation functions that the program binds to. The inlined part of each ends in a jump
 * into mimalloc, with nothing to be done on the way back: that, and not the number of instructions,
 * is what a wrapper of so short a function costs. Everything unusual (first call, signal, large,
 * foreign, no memory) is a call away in heap.c. None of them can recurse: mimalloc's own calls come
 * back through interpose_mmap.c only.
 *
 * The contracts are glibc's (malloc(3), posix_memalign(3), malloc_usable_size(3)): errno is written
 * on failure only, and by free never.
 */
#include <errno.h>
#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "shim/compiler.h"
#include "shim/early.h"
#include "shim/heap.h"
#include "shim/interpose.h"
#include "shim/lifecycle.h"
#include "shim/mi.h"
#include "shim/next.h"
#include "shim/thread.h"

#define PAGE ((size_t)4096)

void cfree(void *p);
void free_sized(void *p, size_t n);
void free_aligned_sized(void *p, size_t align, size_t n);

/* --- the ways round the fast path --- */

/* Which of the three worlds a call is in. */
static inline bool too_early(void)
{
	return unlikely(!lift_thread_ready());
}

static void *or_no_memory(void *p)
{
	if (!p)
		errno = ENOMEM;
	return p;
}

static __attribute__((noinline)) void *malloc_slow(size_t n)
{
	if (too_early())
		return or_no_memory(lift_early_alloc(n, LIFT_MIN_BLOCK));
	if (lift_aside())
		return LIFT_NEXT(malloc, void *, (size_t), (n));
	return lift_heap_malloc(n);
}

static __attribute__((noinline)) void *calloc_slow(size_t nmemb, size_t size)
{
	size_t n;

	if (__builtin_mul_overflow(nmemb, size, &n)) {
		errno = ENOMEM;
		return NULL;
	}
	if (too_early())
		return or_no_memory(lift_early_alloc(n, LIFT_MIN_BLOCK));
	if (lift_aside())
		return LIFT_NEXT(calloc, void *, (size_t, size_t), (nmemb, size));
	return lift_heap_calloc(n);
}

static __attribute__((noinline)) void free_slow(void *p)
{
	if (!p)
		return;
	if (lift_heap_owns_far(p) && lift_thread_fast(0)) {
		mi_free(p);
		return;
	}
	if (lift_early_owns(p) || too_early())
		return;
	if (lift_aside())
		LIFT_NEXT(free, void, (void *), (p));
	else
		lift_heap_free(p);
}

static __attribute__((noinline)) void *realloc_slow(void *p, size_t n)
{
	size_t have;
	void *q;

	if (!p)
		return malloc(n);
	if (lift_early_owns(p)) {
		have = lift_early_usable(p);
		q = n ? malloc(n) : NULL;
		if (q)
			memcpy(q, p, have < n ? have : n);
		return q;
	}
	if (lift_aside())
		return LIFT_NEXT(realloc, void *, (void *, size_t), (p, n));
	if (n == 0) {
		lift_heap_free(p);
		return NULL;
	}
	return lift_heap_realloc(p, n);
}

/* align is a power of two; the caller has asked lift_aside() */
static __attribute__((noinline)) void *aligned_slow(size_t align, size_t n)
{
	if (align <= LIFT_MIN_BLOCK)
		return malloc(n);
	if (too_early())
		return or_no_memory(lift_early_alloc(n, align));
	return lift_heap_aligned(align, n);
}

/* True where nothing has to be asked before lift_mi_aligned(n, align). */
static inline bool fast_aligned(size_t align, size_t n)
{
	return align > LIFT_MIN_BLOCK && align <= PAGE && (align & (align - 1)) == 0 &&
	       lift_thread_fast(n);
}

/* --- what programs call --- */

LIFT_EXPORT void *malloc(size_t n)
{
	if (likely(lift_thread_fast_above(n, LIFT_MI_TOO_SMALL)))
		return mi_malloc(n);
	if (likely(lift_thread_fast(n)))
		return mi_malloc(LIFT_MIN_BLOCK);
	return malloc_slow(n);
}

__attribute__((alias("malloc"), visibility("hidden"), nothrow, leaf, malloc, alloc_size(1))) void *
lift_own_malloc(size_t n);

LIFT_EXPORT void *calloc(size_t nmemb, size_t size)
{
	size_t n;

	if (likely(!__builtin_mul_overflow(nmemb, size, &n) && lift_thread_fast(n)))
		return mi_zalloc(lift_mi_size(n));
	return calloc_slow(nmemb, size);
}

LIFT_EXPORT void free(void *p)
{
	if (likely(lift_thread_may_free(lift_heap_granule(p))))
		mi_free(p);
	else
		free_slow(p);
}

LIFT_EXPORT void *realloc(void *p, size_t n)
{
	if (likely(lift_thread_may_free(lift_heap_granule(p)) &&
		    lift_thread_fast_above(n, LIFT_MI_TOO_SMALL)))
		return mi_realloc(p, n);
	return realloc_slow(p, n);
}

LIFT_EXPORT void *reallocarray(void *p, size_t nmemb, size_t size)
{
	size_t n;

	if (__builtin_mul_overflow(nmemb, size, &n)) {
		errno = ENOMEM;
		return NULL;
	}
	return realloc(p, n);
}

LIFT_EXPORT void cfree(void *p)
{
	free(p);
}

LIFT_EXPORT void free_sized(void *p, size_t n)
{
	(void)n;
	free(p);
}

LIFT_EXPORT void free_aligned_sized(void *p, size_t align, size_t n)
{
	(void)align;
	(void)n;
	free(p);
}

LIFT_EXPORT int posix_memalign(void **ret, size_t align, size_t n)
{
	int saved = errno;
	void *p;

	if (likely(fast_aligned(align, n)))
		p = lift_mi_aligned(n, align);
	else if (lift_aside())
		return LIFT_NEXT(posix_memalign, int, (void **, size_t, size_t), (ret, align, n));
	else if (align % sizeof(void *) != 0 || align == 0 || (align & (align - 1)) != 0)
		return EINVAL;
	else
		p = aligned_slow(align, n);
	if (unlikely(!p)) {
		errno = saved; /* the error is the result, and only that */
		return ENOMEM;
	}
	*ret = p;
	return 0;
}

LIFT_EXPORT void *memalign(size_t align, size_t n)
{
	if (likely(fast_aligned(align, n)))
		return lift_mi_aligned(n, align);
	if (lift_aside())
		return LIFT_NEXT(memalign, void *, (size_t, size_t), (align, n));
	/* As in glibc: anything is rounded up to a power of two, as long as there is one. */
	if (align > SIZE_MAX / 2 + 1) {
		errno = EINVAL;
		return NULL;
	}
	if (align & (align - 1))
		align = (size_t)1 << (64 - __builtin_clzl(align));
	return aligned_slow(align, n);
}

LIFT_EXPORT void *aligned_alloc(size_t align, size_t n)
{
	if (likely(fast_aligned(align, n)))
		return lift_mi_aligned(n, align);
	if (lift_aside())
		return LIFT_NEXT(aligned_alloc, void *, (size_t, size_t), (align, n));
	return memalign(align, n);
}

LIFT_EXPORT void *valloc(size_t n)
{
	if (lift_aside())
		return LIFT_NEXT(valloc, void *, (size_t), (n));
	return aligned_slow(PAGE, n);
}

LIFT_EXPORT void *pvalloc(size_t n)
{
	size_t rounded;

	if (lift_aside())
		return LIFT_NEXT(pvalloc, void *, (size_t), (n));
	if (__builtin_add_overflow(n, PAGE - 1, &rounded)) {
		errno = ENOMEM;
		return NULL;
	}
	return aligned_slow(PAGE, rounded & ~(PAGE - 1));
}

LIFT_EXPORT size_t malloc_usable_size(void *p)
{
	if (lift_early_owns(p))
		return lift_early_usable(p);
	if (lift_aside())
		return LIFT_NEXT(malloc_usable_size, size_t, (void *), (p));
	return lift_heap_usable(p);
}

/* --- questions and hints --- */

/* 1 when memory went back to the system. The pad is a hint to a heap that grows by brk; ours does
 * not. */
LIFT_EXPORT int malloc_trim(size_t pad)
{
	if (lift_aside())
		return LIFT_NEXT(malloc_trim, int, (size_t), (pad));
	return lift_heap_trim();
}

/* Every parameter tunes glibc's heap and means nothing here; 1 is what glibc says to those it knows
 * not. */
LIFT_EXPORT int mallopt(int param, int value)
{
	if (lift_aside())
		return LIFT_NEXT(mallopt, int, (int, int), (param, value));
	return 1;
}

/*
 * What is known without stopping the other threads: the address space that mimalloc holds (arena),
 * and the blocks that are mappings of their own (hblks, hblkhd). How much of the former is in use
 * is not known, so all of it counts as that.
 */
LIFT_EXPORT struct mallinfo2 mallinfo2(void)
{
	struct mallinfo2 mi = {0};
	struct lift_heap_usage u;

	if (lift_aside())
		return LIFT_NEXT(mallinfo2, struct mallinfo2, (void), ());
	lift_heap_usage(&u);
	mi.arena = u.mapped;
	mi.uordblks = u.mapped;
	mi.hblks = u.large_blocks;
	mi.hblkhd = u.large;
	return mi;
}
