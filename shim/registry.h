// SPDX-License-Identifier: MIT
/*
 * The live ranges that placement has decided about, with the VMA budget they are charged to:
 * policy/regions behind a lock (rank 2 in lock.h). Malloc's fast path never comes here; mapping
 * calls do, on machines with more than one node.
 *
 * Signals are blocked while the lock is held (lock.h). lift_registry_enter() says no over a fork on
 * the thread that forks, and in a child that was made without fork handlers while a thread of the
 * parent had the lock; the mapping then stays as the kernel made it.
 */
#ifndef NUMALIFT_SHIM_REGISTRY_H
#define NUMALIFT_SHIM_REGISTRY_H

#include <stdbool.h>
#include <stdint.h>

#include "policy/regions.h"
#include "policy/vmabudget.h"

/* Takes the lock; false as said above. errno is kept. */
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

/* For fork.c: the lock is held over the fork; the child starts with a fresh one. */
void lift_registry_fork_prepare(void);
void lift_registry_fork_parent(void);
void lift_registry_fork_child(void);

#endif
