// SPDX-License-Identifier: MIT
/*
 * Who is inside the heap. Each thread has a slot in its thread-local storage with a byte `busy` (this
 * thread is inside mimalloc; only the thread writes it) and a `limit` (requests below it may go the fast
 * way; 0 when nothing may). That one mechanism answers four questions for a store and two tests:
 *
 *  - fork: mimalloc has no fork handlers, and some of its state is half-way between two threads for a
 *    moment (delayed frees, abandoned segments). A fork closes every thread's limit and waits until
 *    nobody is busy, so the child's copy is always a whole one (lift_thread_stop / lift_thread_resume).
 *  - signals and re-entry: a handler that interrupts mimalloc, or whoever calls malloc from inside it,
 *    finds busy set and is served from libc's own heap instead.
 *  - start: a slot is all zero until the thread's first call has registered it, and while ld.so relocates
 *    the first program (IFUNC resolvers may allocate) every thread-local variable is zero anyway.
 *  - exit: after its destructor has run, a thread's calls are served one at a time under the list lock.
 *
 * The store to busy and the load of limit are not fenced. lift_thread_stop() makes up for that: after
 * closing the limits it waits longer than any store stays in a store buffer (thread.c says more).
 */
#ifndef NUMALIFT_SHIM_THREAD_H
#define NUMALIFT_SHIM_THREAD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shim/compiler.h"

/* mimalloc's own limit for its shortest path (MI_SMALL_SIZE_MAX), and the value of an open slot's limit. */
#define LIFT_FAST_BYTES 1024
#define LIFT_FAST_LIMIT (LIFT_FAST_BYTES + 1)

enum lift_thread_state {
	LIFT_THREAD_NEW, /* zero: no call so far */
	LIFT_THREAD_REGISTERED,
	LIFT_THREAD_EXITING, /* its destructor has run, or it could not be registered */
};

struct lift_thread {
	_Atomic size_t limit; /* opened under the list lock only; closed by anybody */
	_Atomic uint8_t busy;
	uint8_t state;	      /* enum lift_thread_state */
	uint8_t in_slow;      /* inside the functions below: a signal there must not come in again */
	_Atomic uint8_t stops; /* why limit is 0: LIFT_STOP_* */
	uint16_t starved;     /* requests left that go to libc at once */
	uint16_t starve_step;
	struct lift_thread *next; /* list of registered threads, under the list lock */
	struct lift_thread **link;
};

extern __attribute__((visibility("hidden"), tls_model("initial-exec"))) __thread struct lift_thread
	lift_thread_self;

/*
 * The fast way into the heap for a request of n bytes (0 for a free). True: the calling thread is busy now,
 * and leaves by lift_thread_leave(). False: nothing has changed; lift_thread_enter_slow() decides.
 */
static inline bool lift_thread_enter(size_t n)
{
	struct lift_thread *t = &lift_thread_self;
	uint8_t was = atomic_load_explicit(&t->busy, memory_order_relaxed);

	atomic_store_explicit(&t->busy, 1, memory_order_relaxed);
	atomic_signal_fence(memory_order_seq_cst);
	if (likely(n < atomic_load_explicit(&t->limit, memory_order_relaxed) && !was))
		return true;
	atomic_store_explicit(&t->busy, was, memory_order_relaxed);
	return false;
}

static inline void lift_thread_leave(void)
{
	atomic_signal_fence(memory_order_seq_cst);
	atomic_store_explicit(&lift_thread_self.busy, 0, memory_order_release);
}

/*
 * False while ld.so has not yet given the first thread its thread-local storage: neither mimalloc nor libc
 * nor this header's mechanism works then.
 */
bool lift_thread_ready(void);

/*
 * The way in for everything else: registers the thread, waits for a fork to be over, and returns true with
 * the thread busy; or false when this thread is inside the heap already (signal, re-entry), or when it
 * wants memory and mimalloc lately had none: then the caller uses libc's heap. Leave with
 * lift_thread_leave_slow(). errno is kept.
 */
bool lift_thread_enter_slow(bool wants_memory);
void lift_thread_leave_slow(void);

/* While busy: mimalloc had no memory; the next requests go to libc at once, more of them each time. */
void lift_thread_starved(void);
void lift_thread_fed(void);

/* Makes this thread's next call go through lift_thread_enter_slow(), which empties the deferred list. */
void lift_thread_defer(void);

/*
 * Keeps all other threads out of the heap (and waits until those inside have left) until resumed. The
 * waiting is bounded: a thread that was taken out of the heap by siglongjmp would never leave it.
 * For fork's handlers; takes the list lock.
 */
void lift_thread_stop(void);
void lift_thread_resume(void);
/* Instead of resume, in the child: the other threads are gone. */
void lift_thread_resume_child(void);

#endif
