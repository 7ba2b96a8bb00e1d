// SPDX-License-Identifier: MIT
#include "shim/registry.h"

#include "shim/bootalloc.h"
#include "shim/compiler.h"
#include "shim/lock.h"
#include "shim/place.h"

enum { RECORDS_PER_CHUNK = 512 };

LIFT_FORKED static struct lift_lock lock;
static struct lift_regions regions; /* all zero is an empty map */
static struct lift_vmabudget budget;
static uint64_t saved_mask; /* the holder's */
/* Set over a fork: other handlers' mappings on this thread must not wait for it. */
static __thread bool forking __attribute__((tls_model("initial-exec")));

bool lift_registry_enter(void)
{
	uint64_t mask;

	if (forking)
		return false;
	if (!lift_lock_masked(&lock, &mask)) {
		/* The map may be half-way through a change that nobody will finish. */
		lift_place_stop();
		return false;
	}
	saved_mask = mask;
	return true;
}

void lift_registry_leave(void)
{
	lift_unlock_masked(&lock, saved_mask);
}

void lift_registry_fork_prepare(void)
{
	forking = lift_lock(&lock);
}

void lift_registry_fork_parent(void)
{
	if (forking)
		lift_unlock(&lock);
	forking = false;
}

void lift_registry_fork_child(void)
{
	lift_lock_reset(&lock);
	forking = false;
}

struct lift_vmabudget *lift_registry_budget(void)
{
	return &budget;
}

struct lift_regions *lift_registry_regions(void)
{
	return &regions;
}

/* A cut in the middle needs a record too, so one chunk is kept ahead. */
static void ensure_records(void)
{
	struct lift_region *chunk;

	if (regions.nr_free >= 4)
		return;
	chunk = lift_bootalloc(RECORDS_PER_CHUNK * sizeof(*chunk), _Alignof(struct lift_region));
	if (chunk)
		lift_regions_add_memory(&regions, chunk, RECORDS_PER_CHUNK);
}

void lift_registry_cut(struct lift_range range)
{
	uint64_t vmas = 0;

	if (regions.nr == 0)
		return;
	ensure_records();
	(void)lift_regions_cut(&regions, range, &vmas);
	lift_vmabudget_give(&budget, vmas);
}

void lift_registry_add(const struct lift_region_info *info)
{
	ensure_records();
	lift_registry_cut(info->range);
	if (lift_regions_insert(&regions, info) != 0)
		lift_vmabudget_give(
			&budget, info->vmas); /* unknown, hence merely not looked after */
}

void lift_registry_move(struct lift_range from, struct lift_range to)
{
	uint64_t vmas = 0;

	if (regions.nr == 0)
		return;
	ensure_records();
	(void)lift_regions_move(&regions, from, to, &vmas);
	lift_vmabudget_give(&budget, vmas);
}
