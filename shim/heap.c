// SPDX-License-Identifier: MIT
#include "shim/heap.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

#include "shim/bits.h"
#include "shim/compiler.h"
#include "shim/foreign.h"
#include "shim/large.h"
#include "shim/mi.h"
#include "shim/object.h"
#include "shim/os/rawsys.h"
#include "shim/os/sys.h"
#include "shim/thread.h"
#include "shim/vm.h"
#include "shim/worker.h"

_Atomic uint8_t lift_heap_near[LIFT_NEAR_GRANULES];
_Static_assert((LIFT_FAST_LIMIT & LIFT_GRANULE_FREE) && !(LIFT_FAST_LIMIT & LIFT_GRANULE_ASKED),
	"an open slot says yes to one of them");
static struct lift_bits far; /* which granules from 16 TiB on are mimalloc's */
size_t lift_heap_large_min = LIFT_LARGE_MIN;

static struct lift_range mimalloc;                 /* where its code is */
static enum lift_granule own = LIFT_GRANULE_ASKED; /* what mimalloc's granules are; from boot on */
static _Atomic size_t mapped;

#define OPEN_AT_ONCE (2 * LIFT_GRANULE)
static _Atomic bool future_locked; /* mlockall(MCL_FUTURE) */
static _Atomic bool sandboxed;     /* a seccomp filter went up while the program ran */
static _Atomic bool any_closed;    /* mimalloc has memory that it must open itself */

/* Blocks that were freed where mimalloc could not be called; linked through their first word. */
static _Atomic(void *) deferred;

/*
 * One granule without access, for a request on the fast path at a moment when the kernel gives no
 * more: there is nobody behind it who could ask libc instead. Not kept where address space is
 * limited; there all threads go the slow way from the start.
 */
static _Atomic uintptr_t spare;
static _Atomic bool spare_wanted; /* decided at boot, before a sandbox could be up */
static _Atomic bool spare_tried;

void lift_heap_boot(int nodes, bool direct)
{
	(void)lift_object_range((uintptr_t)&mi_malloc, &mimalloc);
	if (direct)
		own = LIFT_GRANULE_FREE;
	/*
	 * Left alone, mimalloc looks for node1, node2, ... in sysfs until one is missing: at its
	 * first segment, when a sandbox may be up that kills for it, and with ids that have holes
	 * it takes every thread to be on node 0. The number only has to be above every id; 1 spares
	 * it all questions.
	 */
	mi_option_set(mi_option_use_numa_nodes, nodes);
	atomic_store_explicit(
		&spare_wanted, direct && !lift_sys_limited_memory(), memory_order_relaxed);
	mi_process_init();
}

bool lift_heap_is_caller(const void *return_address)
{
	return (uintptr_t)return_address - mimalloc.start < mimalloc.end - mimalloc.start;
}

/* --- memory for mimalloc --- */

/*
 * Granules in which mimalloc has mappings beside other people's; never forgotten. Only where this
 * says so mimalloc is asked itself whether a block is its own.
 */
static struct lift_bits mixed;

static void mark(uintptr_t start, uintptr_t end, bool ours)
{
	size_t last = (end - 1) >> LIFT_GRANULE_SHIFT;

	for (size_t g = start >> LIFT_GRANULE_SHIFT; g <= last && g < LIFT_GRANULES; g++) {
		if (g < LIFT_NEAR_GRANULES)
			atomic_store_explicit(&lift_heap_near[g], ours ? own : LIFT_GRANULE_OTHERS,
				memory_order_relaxed);
		else if (ours)
			(void)lift_bits_set(&far, g);
		else
			lift_bits_clear(&far, g);
	}
}

bool lift_heap_owns_far(const void *p)
{
	size_t g = (uintptr_t)p >> LIFT_GRANULE_SHIFT;

	return g >= LIFT_NEAR_GRANULES && lift_bits_test(&far, g);
}

static void note_mixed(uintptr_t start, uintptr_t end)
{
	for (size_t g = start >> LIFT_GRANULE_SHIFT; g <= (end - 1) >> LIFT_GRANULE_SHIFT; g++)
		(void)lift_bits_set(&mixed, g);
}

static bool is_mimallocs(const void *p)
{
	size_t g = (uintptr_t)p >> LIFT_GRANULE_SHIFT;

	return lift_heap_owns(p) ||
	       (g < LIFT_GRANULES && lift_bits_test(&mixed, g) && mi_is_in_heap_region(p));
}

static void make_spare(uintptr_t near)
{
	/* Some way below mimalloc's own area, where its hints do not come. */
	uintptr_t hint = (near - ((uintptr_t)64 << 30)) & ~(LIFT_GRANULE - 1);
	uintptr_t none = 0;
	long ret = lift_sys_mmap((void *)hint, LIFT_GRANULE, PROT_NONE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (lift_syserr(ret))
		return;
	if ((ret & (long)(LIFT_GRANULE - 1)) != 0 ||
		!atomic_compare_exchange_strong_explicit(
			&spare, &none, (uintptr_t)ret, memory_order_acq_rel, memory_order_relaxed))
		(void)lift_sys_munmap((void *)ret, LIFT_GRANULE);
}

/* At mimalloc's first segment, which lies at `near`. */
static void first_spare(uintptr_t near)
{
	atomic_store_explicit(&spare_tried, true, memory_order_relaxed);
	if (atomic_load_explicit(&spare_wanted, memory_order_relaxed))
		make_spare(near);
	if (!atomic_load_explicit(&spare, memory_order_relaxed))
		lift_thread_all_slow(LIFT_SLOW_NO_SPARE);
}

/* mimalloc got memory by the slow way: if the spare was used up there may be another one now. */
static void keep_spare(void)
{
	if (likely(!atomic_load_explicit(&spare_wanted, memory_order_relaxed) ||
		    atomic_load_explicit(&spare, memory_order_relaxed)))
		return;
	make_spare((uintptr_t)4 << 40);
	if (atomic_load_explicit(&spare, memory_order_relaxed))
		lift_thread_all_fast(LIFT_SLOW_NO_SPARE);
}

bool lift_heap_drop_spare(void)
{
	uintptr_t s = atomic_exchange_explicit(&spare, 0, memory_order_acq_rel);

	if (!s)
		return false;
	lift_thread_all_slow(LIFT_SLOW_NO_SPARE);
	(void)lift_sys_munmap((void *)s, LIFT_GRANULE);
	return true;
}

/* The kernel refused a segment. Returns what the hook returns. */
LIFT_COLD static long out_of_memory(long err, size_t want, int prot)
{
	uintptr_t s;

	if (!lift_thread_came_fast())
		return err; /* the caller sees the NULL and asks libc */
	s = want == LIFT_GRANULE ? atomic_exchange_explicit(&spare, 0, memory_order_acq_rel) : 0;
	lift_thread_all_slow(LIFT_SLOW_NO_SPARE);
	if (s && lift_sys_mprotect((void *)s, want, prot) == 0) {
		lift_vm_heap_mapped(s, want);
		mark(s, s + want, true);
		atomic_fetch_add_explicit(&mapped, want, memory_order_relaxed);
		return (long)s;
	}
	errno = ENOMEM;
	return err;
}

long lift_heap_map(void *hint, size_t len, int prot, int flags, int fd, long off)
{
	size_t want = (len + LIFT_GRANULE - 1) & ~(LIFT_GRANULE - 1);
	uintptr_t start;
	long ret;

	/* Its own records (thread data, page maps) need no granule; 3.x has single blocks there,
	 * too. */
	if (len < LIFT_GRANULE / 2 || (flags & MAP_FIXED) || want < len) {
		ret = lift_sys_mmap(hint, len, prot, flags, fd, off);
		if (!lift_syserr(ret))
			note_mixed((uintptr_t)ret, (uintptr_t)ret + len);
		else if (lift_thread_came_fast())
			errno = ENOMEM; /* mimalloc's NULL goes straight to the program */
		return ret;
	}
	/*
	 * mimalloc asks for a thread's first segment without access and opens it piece by piece.
	 * When a piece is refused (RLIMIT_DATA, strict overcommit) 2.0.9 hands it out all the same;
	 * a refused segment it copes with. Only where every mapping is locked in memory the pieces
	 * matter more.
	 */
	if (prot == PROT_NONE && want <= OPEN_AT_ONCE) {
		if (atomic_load_explicit(&future_locked, memory_order_relaxed))
			atomic_store_explicit(&any_closed, true, memory_order_relaxed);
		else
			prot = PROT_READ | PROT_WRITE;
	} else if (prot == PROT_NONE) {
		atomic_store_explicit(&any_closed, true, memory_order_relaxed);
	}

	ret = lift_sys_mmap(hint, want, prot, flags, fd, off);
	if (!lift_syserr(ret) && (ret & (long)(LIFT_GRANULE - 1)) != 0) {
		(void)lift_sys_munmap((void *)ret, want);
		ret = lift_sys_mmap(NULL, want + LIFT_GRANULE, prot, flags, fd, off);
		if (!lift_syserr(ret)) {
			start = ((uintptr_t)ret + LIFT_GRANULE - 1) & ~(LIFT_GRANULE - 1);
			if (start > (uintptr_t)ret)
				(void)lift_sys_munmap((void *)ret, start - (uintptr_t)ret);
			if ((uintptr_t)ret + LIFT_GRANULE > start)
				(void)lift_sys_munmap((void *)(start + want),
					(uintptr_t)ret + LIFT_GRANULE - start);
			ret = (long)start;
		}
	}
	if (lift_syserr(ret))
		return out_of_memory(ret, want, prot);
	start = (uintptr_t)ret;
	if (unlikely(!atomic_load_explicit(&spare_tried, memory_order_relaxed)))
		first_spare(start);
	lift_vm_heap_mapped(start, want);
	mark(start, start + want, true);
	atomic_fetch_add_explicit(&mapped, want, memory_order_relaxed);
	return ret;
}

long lift_heap_unmap(void *addr, size_t len)
{
	uintptr_t start = (uintptr_t)addr;
	uintptr_t end = start + len;

	if (!lift_heap_owns(addr))
		return lift_sys_munmap(addr, len);
	/*
	 * mimalloc knows nothing of the granules it was given around what it asked for. The end of
	 * what it frees is rounded up to take them along; a start inside a granule (it trims what
	 * an alignment made superfluous) waits for the part in front of it to be freed.
	 */
	start = (start + LIFT_GRANULE - 1) & ~(LIFT_GRANULE - 1);
	end = (end + LIFT_GRANULE - 1) & ~(LIFT_GRANULE - 1);
	if (start < end) {
		mark(start, end, false);
		/* Before it is anybody else's. */
		lift_vm_heap_unmapped(start, end - start);
		if (lift_sys_munmap((void *)start, end - start) < 0) {
			/* At vm.max_map_count a mapping cannot be split: keep it, empty. */
			mark(start, end, true);
			(void)lift_sys_madvise((void *)start, end - start, MADV_DONTNEED);
			return 0;
		}
		atomic_fetch_sub_explicit(&mapped, end - start, memory_order_relaxed);
	}
	return 0;
}

long lift_heap_protect(void *addr, size_t len, int prot)
{
	if (prot == (PROT_READ | PROT_WRITE) &&
		!atomic_load_explicit(&any_closed, memory_order_relaxed))
		return 0; /* opened when it was mapped */
	return lift_sys_mprotect(addr, len, prot);
}

long lift_heap_advise(void *addr, size_t len, int advice)
{
	/*
	 * A filter written for a program whose malloc never called madvise may kill for it. Every
	 * malloc calls mmap; over the same place it gives the pages back as well.
	 */
	if (atomic_load_explicit(&sandboxed, memory_order_relaxed) && lift_heap_owns(addr) &&
		(advice == MADV_DONTNEED || advice == MADV_FREE)) {
		long ret = lift_sys_mmap(addr, len, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);

		return lift_syserr(ret) ? ret : 0;
	}
	return lift_sys_madvise(addr, len, advice);
}

bool lift_heap_in_sandbox(void)
{
	return atomic_load_explicit(&sandboxed, memory_order_relaxed);
}

void lift_heap_sandboxed(void)
{
	atomic_store_explicit(&sandboxed, true, memory_order_relaxed);
}

void lift_heap_locked(bool future)
{
	atomic_store_explicit(&future_locked, future, memory_order_relaxed);
	/* A spare would count as locked, like everything else. */
	atomic_store_explicit(&spare_wanted, false, memory_order_relaxed);
	(void)lift_heap_drop_spare();
}

void lift_heap_unlocked(void)
{
	atomic_store_explicit(&future_locked, false, memory_order_relaxed);
}

/* --- blocks --- */

/* mimalloc's answer p: leaves, and keeps book of whether it has memory at all. */
static void *answer(void *p)
{
	if (unlikely(!p)) {
		lift_thread_starved();
	} else {
		lift_thread_fed();
		keep_spare();
	}
	lift_thread_leave();
	return p;
}

static bool too_large(size_t n)
{
	if (likely(n <= PTRDIFF_MAX))
		return false;
	errno = ENOMEM;
	return true;
}

enum kind { PLAIN, ZEROED, ALIGNED };

/* From mimalloc or a mapping; NULL where neither has it. */
static void *ours(enum kind kind, size_t align, size_t n)
{
	if (n + (kind == ALIGNED ? align : 0) >= lift_heap_large_min)
		return lift_large_alloc(n, kind == ALIGNED ? align : LIFT_MIN_BLOCK);
	if (!lift_thread_enter(true))
		return NULL;
	switch (kind) {
	case ZEROED:
		return answer(mi_zalloc(lift_mi_size(n)));
	case ALIGNED:
		return answer(lift_mi_aligned(n, align));
	default:
		return answer(mi_malloc(lift_mi_size(n)));
	}
}

static void *libcs(enum kind kind, size_t align, size_t n)
{
	switch (kind) {
	case ZEROED:
		return lift_libc_calloc(n);
	case ALIGNED:
		return lift_libc_aligned(align, n);
	default:
		return lift_libc_malloc(n);
	}
}

static bool give_back(void)
{
	bool dropped = lift_heap_drop_spare();

	return lift_heap_trim() || dropped;
}

LIFT_COLD static void *ours_failed(enum kind kind, size_t align, size_t n)
{
	int saved = errno;
	void *p = libcs(kind, align, n);

	/* The address space may be taken up by what is kept for later, mimalloc's segments and the
	 * spare. */
	if (!p && give_back()) {
		p = ours(kind, align, n);
		if (!p)
			p = libcs(kind, align, n);
	}
	errno = p ? saved : ENOMEM;
	return p;
}

static inline void *take(enum kind kind, size_t align, size_t n)
{
	void *p;

	if (too_large(n))
		return NULL;
	lift_worker_poke();
	p = ours(kind, align, n);
	return likely(p != NULL) ? p : ours_failed(kind, align, n);
}

void *lift_heap_malloc(size_t n)
{
	return take(PLAIN, 0, n);
}

void *lift_heap_calloc(size_t n)
{
	return take(ZEROED, 0, n);
}

void *lift_heap_aligned(size_t align, size_t n)
{
	if (align > PTRDIFF_MAX || n > PTRDIFF_MAX - align) {
		errno = ENOMEM;
		return NULL;
	}
	return take(ALIGNED, align, n);
}

void lift_heap_drain(void)
{
	void *p = atomic_load_explicit(&deferred, memory_order_relaxed);
	void *next;

	if (likely(!p))
		return;
	p = atomic_exchange_explicit(&deferred, NULL, memory_order_acquire);
	for (; p; p = next) {
		next = *(void **)p;
		mi_free(p);
	}
}

static void defer_free(void *p)
{
	void *head = atomic_load_explicit(&deferred, memory_order_relaxed);

	do {
		*(void **)p = head;
	} while (!atomic_compare_exchange_weak_explicit(
		&deferred, &head, p, memory_order_release, memory_order_relaxed));
}

static void free_ours(void *p)
{
	if (unlikely(!lift_thread_enter(false))) {
		/* Inside mimalloc already, so it cannot be called: the block waits; for ever in a
		 * closed heap. */
		if (!lift_thread_heap_closed())
			defer_free(p);
		return;
	}
	mi_free(p);
	lift_thread_leave();
}

void lift_heap_free(void *p)
{
	if (!p)
		return;
	if (is_mimallocs(p))
		free_ours(p);
	else if (lift_large_owns(p))
		lift_large_free(p);
	else
		lift_foreign_free(p);
}

size_t lift_heap_usable(void *p)
{
	if (!p)
		return 0;
	/* Reads only the block's own page header, which no call of another thread changes. */
	if (is_mimallocs(p))
		return mi_usable_size(p);
	if (lift_large_owns(p))
		return lift_large_usable(p);
	return lift_foreign_usable(p);
}

void *lift_heap_realloc(void *p, size_t n)
{
	size_t have;
	void *q;

	if (too_large(n))
		return NULL;
	if (is_mimallocs(p)) {
		if (n < lift_heap_large_min && lift_thread_enter(true)) {
			q = answer(mi_realloc(p, lift_mi_size(n)));
			if (likely(q != NULL))
				return q;
		}
		have = mi_usable_size(p);
	} else if (lift_large_owns(p)) {
		have = lift_large_usable(p);
		if (n >= lift_heap_large_min) {
			q = lift_large_realloc(p, n);
			if (q)
				return q;
		}
		/* Shrunk below the threshold: back into the heap, which gives the rest to others.
		 */
	} else {
		return lift_foreign_realloc(p, n);
	}
	q = lift_heap_malloc(n);
	if (!q)
		return NULL;
	memcpy(q, p, have < n ? have : n);
	lift_heap_free(p);
	return q;
}

bool lift_heap_trim(void)
{
	size_t before;

	if (!lift_thread_enter(false))
		return false;
	before = atomic_load_explicit(&mapped, memory_order_relaxed);
	mi_collect(true);
	lift_thread_leave();
	return atomic_load_explicit(&mapped, memory_order_relaxed) < before;
}

void lift_heap_forget_thread(void)
{
	const void *a = mi_heap_get_default();
	const void *b = mi_heap_get_backing();
	const void *value;

	for (pthread_key_t key = 0; key < PTHREAD_KEYS_MAX; key++) {
		value = pthread_getspecific(key);
		if (value && (value == a || value == b))
			(void)pthread_setspecific(key, NULL);
	}
}

void lift_heap_usage(struct lift_heap_usage *ret)
{
	ret->mapped = atomic_load_explicit(&mapped, memory_order_relaxed);
	lift_large_usage(&ret->large, &ret->large_blocks);
}
