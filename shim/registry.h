// SPDX-License-Identifier: MIT
/*
 * The live ranges that placement has decided about, with the VMA budget they are charged to:
 * policy/regions behind a lock (rank 2 in lock.h). Malloc's fast path never comes here; mapping
 * calls do, on machines with more than one node.
 *
 * A signal handler that interrupts a holder on the same thread and maps memory must not wait for
 * itself: lift_registry_enter() says no then, and the handler's mapping stays as the kernel made
 * it. Ranges that are stale for that reason heal when they are next overlapped.
 */
#ifndef NUMALIFT_SHIM_REGISTRY_H
#define NUMALIFT_SHIM_REGISTRY_H

#include <stdbool.h>
#include <stdint.h>

#include "policy/regions.h"
#include "policy/vmabudget.h"

/* Takes the lock; false when this thread holds it already. errno is kept. */
bool lift_registry_enter(void);
void lift_registry_leave(void);

/* All below: between enter and leave. */

/* What lies in `range` is forgotten, its charge returned to the budget. */
void lift_registry_cut(struct lift_range range);
/* Replaces whatever was there. Charges info->vmas, which must have been taken from the budget. */
void lift_registry_add(const struct lift_region_info *info);
void lift_registry_move(struct lift_range from, struct lift_range to);
struct lift_vmabudget *lift_registry_budget(void);
struct lift_regions *lift_registry_regions(void);

/* For fork.c: lock and unlock without the question, and a fresh lock in the child. */
void lift_registry_lock(void);
void lift_registry_unlock(void);
void lift_registry_reset(void);

#endif
