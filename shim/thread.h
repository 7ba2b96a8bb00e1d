// SPDX-License-Identifier: MIT
/*
 * Who is inside the heap. Each thread that allocates owns a slot with two bytes: `busy` (this thread is
 * inside mimalloc; only the thread writes it) and `gate` (not zero: do not go the fast way; others may
 * write it). That one mechanism answers three questions for the price of a store and a test:
 *
 *  - fork: mimalloc has no fork handlers, and some of its state is half-way between two threads for a
 *    moment (delayed frees, abandoned segments). A fork closes all gates and waits until nobody is busy,
 *    so the child's copy is always a whole one (lift_thread_stop / lift_thread_resume).
 *  - signals and re-entry: a handler that interrupts mimalloc, or another preload's mmap that calls
 *    malloc from inside it, finds busy set and is served from libc's own heap instead.
 *  - start: a thread's first call finds the shared "unregistered" slot, whose gate is never open.
 *
 * The store to busy and the load of gate are not fenced. lift_thread_stop() makes up for that: after
 * closing the gates it waits longer than any store stays in a store buffer (thread.c says more).
 */
#ifndef NUMALIFT_SHIM_THREAD_H
#define NUMALIFT_SHIM_THREAD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "shim/compiler.h"

enum lift_gate {
	LIFT_GATE_CLOSED = 1,  /* a fork is running, or the slot is one of the shared ones */
	LIFT_GATE_DEFER = 2,   /* blocks wait in the deferred list */
	LIFT_GATE_STARVED = 4, /* mimalloc got no memory lately: ask libc first for a while */
};

struct lift_thread {
	_Alignas(64) _Atomic uint8_t busy;
	_Atomic uint8_t gate;
	uint16_t starved; /* calls left that go to libc at once */
	uint16_t starve_step;
	_Atomic bool in_use;
	struct lift_thread *all; /* list of all slots; slots are never freed */
};

extern __attribute__((visibility("hidden"), tls_model("initial-exec"))) __thread struct lift_thread *
	lift_thread_self;

/*
 * The fast way into the heap. Returns the caller's slot, now busy, or NULL: then nothing has changed and
 * lift_thread_enter_slow() decides.
 */
static inline struct lift_thread *lift_thread_enter(void)
{
	struct lift_thread *t = lift_thread_self;
	uint8_t was = atomic_load_explicit(&t->busy, memory_order_relaxed);

	atomic_store_explicit(&t->busy, 1, memory_order_relaxed);
	atomic_signal_fence(memory_order_seq_cst);
	if (unlikely(was | atomic_load_explicit(&t->gate, memory_order_relaxed))) {
		atomic_store_explicit(&t->busy, was, memory_order_relaxed);
		return NULL;
	}
	return t;
}

static inline void lift_thread_leave(struct lift_thread *t)
{
	atomic_signal_fence(memory_order_seq_cst);
	atomic_store_explicit(&t->busy, 0, memory_order_release);
}

/*
 * After lift_thread_enter() said no: registers the thread, waits for a fork to be over, and returns a slot
 * that is busy; or NULL when this thread is inside the heap already (signal, re-entry), or when it wants
 * memory and mimalloc lately had none: then the caller uses libc's heap. Leave with
 * lift_thread_leave_slow(). errno is kept.
 */
struct lift_thread *lift_thread_enter_slow(bool wants_memory);
void lift_thread_leave_slow(struct lift_thread *t);

/* True while the calling thread is inside mimalloc. Async-signal-safe. */
bool lift_thread_inside(void);

/* mimalloc had no memory for this thread: the next calls go to libc at once, more of them each time. */
void lift_thread_starved(struct lift_thread *t);
void lift_thread_fed(struct lift_thread *t);

/* Makes this thread's next call go through lift_thread_enter_slow(), which empties the deferred list. */
void lift_thread_defer(void);

/*
 * Keeps all other threads out of the heap (and waits until those inside have left) until resumed. The
 * waiting is bounded: a thread that was taken out of the heap by siglongjmp would never leave it.
 * For fork's handlers; takes the list lock.
 */
void lift_thread_stop(void);
void lift_thread_resume(void);
/* Instead of resume, in the child: the other threads' slots become free. */
void lift_thread_resume_child(void);

#endif
