// SPDX-License-Identifier: MIT
/*
 * A futex lock of one word. pthread mutexes would do, were it not that they may be interposed by
 * tools that allocate, and that the child of a fork must be able to start over with an unlocked
 * one.
 *
 * Lock order, outermost first (fork.c takes them in this order):
 *   1. lift_thread's list lock (which also keeps every thread out of the heap while a fork runs)
 *   2. the registry's lock
 *   3. the log's lock
 * No lock is held across a call into libc, mimalloc or the host program. A lock is never taken by a
 * signal handler on a thread that holds one: see lift_thread_guard.
 */
#ifndef NUMALIFT_SHIM_LOCK_H
#define NUMALIFT_SHIM_LOCK_H

#include <stdatomic.h>
#include <stdint.h>

#include "shim/os/sys.h"

struct lift_lock {
	_Atomic uint32_t word; /* 0 free, 1 taken, 2 taken and somebody waits */
};

static inline void lift_lock(struct lift_lock *l)
{
	uint32_t c = 0;

	if (atomic_compare_exchange_strong_explicit(
		    &l->word, &c, 1, memory_order_acquire, memory_order_relaxed))
		return;
	if (c != 2)
		c = atomic_exchange_explicit(&l->word, 2, memory_order_acquire);
	while (c != 0) {
		lift_sys_futex_wait(&l->word, 2);
		c = atomic_exchange_explicit(&l->word, 2, memory_order_acquire);
	}
}

static inline void lift_unlock(struct lift_lock *l)
{
	if (atomic_exchange_explicit(&l->word, 0, memory_order_release) == 2)
		lift_sys_futex_wake(&l->word, 1);
}

/* In the child of a fork only: nobody else is there to hold it. */
static inline void lift_lock_reset(struct lift_lock *l)
{
	atomic_store_explicit(&l->word, 0, memory_order_relaxed);
}

#endif
