// SPDX-License-Identifier: MIT
/*
 * A futex lock of one word. pthread mutexes would do, were it not that they may be interposed by
 * tools that allocate, and that the child of a fork must be able to start over with an unlocked
 * one.
 *
 * Lock order, outermost first (fork.c takes them in this order):
 *   1. the lock of thread.c, over registration, thread exit and fork
 *   2. the registry's lock
 * None is held across a call into libc, mimalloc or the host program, but for the calls of a thread
 * that has no slot (thread.c). Both are held with signals blocked, except over a fork, when a mark
 * in thread-local storage says that this thread has them.
 */
#ifndef NUMALIFT_SHIM_LOCK_H
#define NUMALIFT_SHIM_LOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "shim/os/sys.h"

struct lift_lock {
	_Atomic uint32_t word; /* 0 free, 1 taken, 2 taken and somebody waits */
};

/*
 * False, without the lock, when it was left taken by a thread of the parent: this is a child that
 * was made without fork handlers (_Fork, clone), and what the lock guards may be half-way through a
 * change.
 */
bool lift_lock_contended(struct lift_lock *l);

static inline bool lift_lock(struct lift_lock *l)
{
	uint32_t c = 0;

	return atomic_compare_exchange_strong_explicit(
		       &l->word, &c, 1, memory_order_acquire, memory_order_relaxed) ||
	       lift_lock_contended(l);
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

/* At boot, and in the child of a fork with handlers: this process is the one that locks belong to.
 */
void lift_lock_adopt(void);

/*
 * The same with all signals blocked while it is held: a handler that waits for another thread
 * (collectors stop the world so), forks, or leaves by siglongjmp must not do so in the middle.
 * *ret_mask is for lift_unlock_masked().
 */
bool lift_lock_masked(struct lift_lock *l, uint64_t *ret_mask);
void lift_unlock_masked(struct lift_lock *l, uint64_t mask);

#endif
