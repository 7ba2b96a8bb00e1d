// SPDX-License-Identifier: MIT
/*
 * Each thread's way into the heap. A thread has a slot in its thread-local storage whose `limit`
 * says which requests may go to mimalloc directly, by a jump, with nothing to do afterwards; 0 when
 * none may. So the fast path costs one compare, and whoever has a reason to be asked first sets the
 * limit to 0:
 *
 *  - start: a slot is all zero until the thread's first call has registered it, and while ld.so
 * relocates the first program (IFUNC resolvers may allocate) every thread-local variable is zero
 * anyway.
 *  - re-entry: it is 0 while the thread is inside mimalloc by the slow way, so a signal handler
 * that interrupts that is served from libc's heap. (One that interrupts the fast path finds
 * mimalloc as it would find glibc's heap: malloc is not async-signal-safe.)
 *  - no memory: a request on the fast path has nobody behind it to ask libc instead. mimalloc's
 * mmap hook keeps a spare segment for that one case and sends all threads the slow way
 * (lift_thread_all_slow).
 *  - exit: after its destructor has run, a thread's calls are served one at a time under the list
 * lock.
 *  - fork: mimalloc has no fork handlers, and some of its state is half-way between two threads for
 * a moment (delayed frees, readers of the abandoned list). The child of a process in which other
 *    threads used the heap therefore never enters it again: libc's heap, which has handlers, serves
 * it, and what it frees of the old blocks stays. Most such children execute a program or write a
 *    snapshot. A process with one thread goes on as before (daemon(3), prefork servers).
 */
#ifndef NUMALIFT_SHIM_THREAD_H
#define NUMALIFT_SHIM_THREAD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "policy/classify.h"
#include "shim/compiler.h"

/*
 * An open slot's limit: from LIFT_LARGE_BYTES on a block is, or can be, a mapping of its own. A
 * little less, for lift_thread_fast_above(), and with the bit of LIFT_GRANULE_FREE, but not that of
 * LIFT_GRANULE_ASKED, for lift_thread_may_free().
 */
#define LIFT_FAST_LIMIT (LIFT_LARGE_BYTES - 15)

enum lift_thread_state {
	LIFT_THREAD_NEW, /* zero: no call so far */
	LIFT_THREAD_REGISTERED,
	LIFT_THREAD_EXITING, /* its destructor has run, or it could not be registered */
};

struct lift_thread {
	size_t limit;   /* of this thread and its signal handlers only, so it need not be atomic */
	uint8_t state;  /* enum lift_thread_state */
	uint8_t inside; /* in mimalloc by the slow way, or in the functions below */
	uint16_t starved; /* requests left that go to libc at once */
	uint16_t starve_step;
	uint16_t frees; /* calls before it was registered */
	uint64_t mask;  /* signals to unblock, while the lock is held */
};

extern __attribute__((visibility("hidden"),
	tls_model("initial-exec"))) __thread struct lift_thread lift_thread_self;

/* 0, or all ones while every thread has to ask for memory the slow way. */
extern __attribute__((visibility("hidden"))) _Atomic size_t lift_thread_slow;

/* True when a request of n bytes may go to mimalloc directly. */
static inline bool lift_thread_fast(size_t n)
{
	return (n | atomic_load_explicit(&lift_thread_slow, memory_order_relaxed)) <
	       lift_thread_self.limit;
}

/* And more than @min bytes, which is small: one comparison answers both. */
static inline bool lift_thread_fast_above(size_t n, size_t min)
{
	return lift_thread_fast(n - min - 1);
}

/*
 * True when a block in a granule of that kind (enum lift_granule) may go back to mimalloc directly.
 * Nobody has to stand behind it, as behind a request that may find no memory.
 */
static inline bool lift_thread_may_free(unsigned granule)
{
	return ((uint8_t)lift_thread_self.limit & (uint8_t)granule) != 0;
}

/*
 * False while ld.so has not yet given the first thread its thread-local storage: neither mimalloc
 * nor libc nor this header's mechanism works then.
 */
bool lift_thread_ready(void);

/*
 * The way in for everything else: registers the thread if it wants memory (one whose first call is
 * a free may be at its very end, where nobody would take it off the count again), and returns true
 * with the thread inside; or false when it is inside already (signal, re-entry), when the heap is
 * closed (child of a threaded process), or when it wants memory and mimalloc lately had none: then
 * the caller uses libc's heap. Leave with lift_thread_leave(). errno is kept.
 */
bool lift_thread_enter(bool wants_memory);
void lift_thread_leave(void);

/* While inside: mimalloc had no memory; the next requests go to libc at once, more of them each
 * time. */
void lift_thread_starved(void);
void lift_thread_fed(void);

/* True when the calling thread is in mimalloc by the fast path, given that it is in mimalloc at
 * all. */
bool lift_thread_came_fast(void);

/* Sends every thread the slow way until lift_thread_all_fast() has taken all reasons back.
 * Async-signal-safe. */
enum lift_slow {
	LIFT_SLOW_NO_SPARE = 1, /* no memory for a request on the fast path (heap.c) */
	LIFT_SLOW_WORKER = 2,   /* the worker waits for a call to be started from (worker.c) */
};
void lift_thread_all_slow(enum lift_slow why);
void lift_thread_all_fast(enum lift_slow why);

/* True in the child of a process in which other threads used the heap. Async-signal-safe. */
bool lift_thread_heap_closed(void);

/* Around fork: the list lock is held over it, so that no thread is being registered or ends
 * meanwhile. */
void lift_thread_fork_prepare(void);
void lift_thread_fork_parent(void);
void lift_thread_fork_child(void);

#endif
