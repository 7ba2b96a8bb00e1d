// SPDX-License-Identifier: MIT
#include "shim/lock.h"

#include <sys/types.h>

#include "shim/compiler.h"

LIFT_FORKED static _Atomic pid_t owner_process;

void lift_lock_adopt(void)
{
	atomic_store_explicit(&owner_process, lift_sys_getpid(), memory_order_relaxed);
}

bool lift_lock_contended(struct lift_lock *l)
{
	enum { LOOK_AROUND_MS = 50 };

	while (atomic_exchange_explicit(&l->word, 2, memory_order_acquire) != 0) {
		/* Not woken for a while: is there anybody who could? */
		if (!lift_sys_futex_wait(&l->word, 2, LOOK_AROUND_MS) &&
			lift_sys_getpid() !=
				atomic_load_explicit(&owner_process, memory_order_relaxed))
			return false;
	}
	return true;
}

bool lift_lock_masked(struct lift_lock *l, uint64_t *ret_mask)
{
	uint64_t mask = lift_sys_block_signals();

	if (!lift_lock(l)) {
		lift_sys_restore_signals(mask);
		return false;
	}
	*ret_mask = mask;
	return true;
}

void lift_unlock_masked(struct lift_lock *l, uint64_t mask)
{
	lift_unlock(l);
	lift_sys_restore_signals(mask);
}
