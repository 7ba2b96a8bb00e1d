// SPDX-License-Identifier: MIT
/*
 * What the worker does: finds out whether there is anything to gain here, chooses a sampler,
 * measures what things cost, and then carries out what policy/promote asks for, until it is
 * stopped.
 *
 * It works on its own table of descriptors and its own root and working folder (unshare(2)): the
 * program neither sees its descriptors nor can close them, children do not inherit them, and
 * chroot, chdir and umount are none of its business.
 */
#ifndef NUMALIFT_SHIM_PROMOTER_H
#define NUMALIFT_SHIM_PROMOTER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "policy/types.h"

enum lift_order {
	LIFT_ORDER_NONE,
	LIFT_ORDER_STOP,
	LIFT_ORDER_CREDENTIALS, /* call lift_worker_take_credentials(), which takes the order back
				 */
};

struct lift_orders {
	_Atomic uint32_t word; /* enum lift_order; woken when it changes */
};

/*
 * On the worker thread, signals blocked. Returns soon after the order to stop, or by itself when
 * there is nothing to be done in this process. May be run again.
 */
void lift_promoter_run(struct lift_orders *orders);

/*
 * Any thread, async-signal-safe: whether the program has a memory policy of its own for some
 * thread, so that it is not known which memory it has placed itself. Nothing is moved meanwhile.
 */
void lift_promoter_keep_off(bool yes);

/* In the child of a fork: forgets the parent's state. Async-signal-safe. */
void lift_promoter_forked(void);

#endif
