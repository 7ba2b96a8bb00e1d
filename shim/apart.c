// SPDX-License-Identifier: MIT
#include "shim/apart.h"

#include <errno.h>
#include <stdatomic.h>
#include <sys/mman.h>

#include "shim/os/maps.h"
#include "shim/os/rawsys.h"
#include "shim/os/sys.h"
#include "shim/place.h"
#include "shim/registry.h"

/* 24 bytes each; what is not used is never touched. */
#define MAX_REGIONS ((size_t)65536)
#define MAX_RUNS ((size_t)16384)
#define MEMORY                                                                                     \
	(MAX_REGIONS * sizeof(struct lift_split_region) + MAX_RUNS * sizeof(struct lift_range))

/* Below this one border would be all there could be. */
#define LEAST_RUN (2 * LIFT_SPLIT_LEAST)
/* Merges and splits per sample, and bindings while the registry's lock is held. */
#define STEP_MOST 256
#define BIND_MOST 64

static struct lift_split split;
static struct lift_range *runs;
static size_t nr_runs;
static uint64_t charged;    /* of the budget; under the registry's lock */
static _Atomic bool joined; /* some have been joined since the last watch() */
static _Atomic bool ended;  /* by lift_apart_give_back() */
static char lines[4096];

/* --- forms --- */

static int plain(int mode)
{
	return mode & ~LIFT_MPOL_F_MASK;
}

static bool is_none(int mode)
{
	return plain(mode) == LIFT_MPOL_DEFAULT || plain(mode) == LIFT_MPOL_LOCAL;
}

/*
 * MPOL_F_STATIC_NODES only says what becomes of the nodes when the cpuset changes: the kernel
 * compares it, so mappings that differ in it stay apart, and allocates just the same. placement
 * never sets it.
 */
static int own_form(int mode)
{
	return is_none(mode) ? LIFT_MPOL_DEFAULT : mode & ~LIFT_MPOL_F_STATIC_NODES;
}

static int other_form(int mode)
{
	return is_none(mode) ? LIFT_MPOL_LOCAL : mode | LIFT_MPOL_F_STATIC_NODES;
}

static bool has_two_forms(int mode)
{
	return !(mode & LIFT_MPOL_F_RELATIVE_NODES) &&
	       (!is_none(mode) || !(mode & LIFT_MPOL_F_MASK));
}

/* Under the lock: what is there may be something else by now. -ENOMEM when there are too many. */
static long bind_form(struct lift_range r, bool other)
{
	struct lift_nodeset nodes;
	int mode;
	long rc = lift_sys_get_mempolicy(&mode, &nodes, (void *)r.start);

	if (rc < 0 || !has_two_forms(mode) || !lift_place_may_reword(r, own_form(mode)))
		return 0;
	return lift_sys_mbind((void *)r.start, lift_range_bytes(r),
		other ? other_form(mode) : own_form(mode), is_none(mode) ? NULL : &nodes, 0);
}

static void unbind(void *arg, struct lift_range r)
{
	(void)arg;
	(void)bind_form(r, false);
}

/* --- the budget; under the lock --- */

static uint64_t allowed(void)
{
	const struct lift_vmabudget *b = lift_registry_budget();
	uint64_t left = charged + lift_vmabudget_left(b);
	uint64_t half = b->max / 2;

	return atomic_load_explicit(&ended, memory_order_relaxed) ? 0 : left < half ? left : half;
}

static void charge(uint64_t cost)
{
	if (cost < charged)
		lift_vmabudget_give(lift_registry_budget(), charged - cost);
	else if (cost > charged)
		(void)lift_vmabudget_take(lift_registry_budget(), cost - charged);
	charged = cost;
}

bool lift_apart_give_back(void)
{
	bool any = charged > 0;

	if (atomic_exchange_explicit(&ended, true, memory_order_relaxed))
		return false;
	for (size_t i = 0; i < split.nr; i++)
		unbind(NULL, (struct lift_range){split.region[i].start, split.region[i].end});
	charge(0);
	return any;
}

/* --- the worker's --- */

/* Gives regions their forms, a few at a time. */
static void bind_all(bool seen_only)
{
	size_t i = 0;
	long rc = 0;

	split.moved = false;
	while (i < split.nr && rc != -ENOMEM && lift_registry_enter()) {
		for (size_t n = 0; n < BIND_MOST && i < split.nr && rc != -ENOMEM; i++) {
			struct lift_split_region *r = &split.region[i];

			if ((r->flags & LIFT_SPLIT_DONE) ||
				(seen_only && !(r->flags & LIFT_APART_SEEN)))
				continue;
			/* Whatever comes of it: it is not tried again and again. */
			r->flags |= LIFT_SPLIT_DONE;
			if (atomic_load_explicit(&ended, memory_order_relaxed) ||
				atomic_load_explicit(&joined, memory_order_relaxed))
				continue; /* another thread wants it whole */
			rc = bind_form((struct lift_range){r->start, r->end},
				(r->flags & LIFT_SPLIT_OTHER) != 0);
			n++;
		}
		if (rc == -ENOMEM)
			(void)lift_apart_give_back();
		lift_registry_leave();
	}
}

/* A run as it grows: what the mappings that belong to it have in common. */
struct growing {
	struct lift_range run;
	unsigned perms;
	int mode;
	struct lift_nodeset nodes;
	bool none_too;     /* memory without a policy may be taken */
	uintptr_t reached; /* a mapping may come in several parts */
};

static void end_run(struct growing *g)
{
	if (lift_range_bytes(g->run) >= LEAST_RUN && nr_runs < MAX_RUNS)
		runs[nr_runs++] = g->run;
	g->run = (struct lift_range){0};
}

static bool is_anonymous(const struct lift_maps_line *m)
{
	const unsigned wanted = LIFT_MAPS_READ | LIFT_MAPS_WRITE;

	return (m->perms & (wanted | LIFT_MAPS_SHARED)) == wanted && m->inode == 0 &&
	       (m->path.len == 0 || lift_text_is(m->path, "[heap]") ||
		       (m->path.len > 6 && memcmp(m->path.s, "[anon:", 6) == 0));
}

/* Did this region get its other form from us? Else "local" is what the program said. */
static bool is_ours(uintptr_t addr)
{
	size_t i = lift_split_find(&split, addr);

	return i < split.nr && split.region[i].start <= addr &&
	       (split.region[i].flags & LIFT_SPLIT_OTHER);
}

/* Whole mappings: a sum is of all of one. */
static int grow_run(void *arg, struct lift_range part, const struct lift_maps_line *m)
{
	struct growing *g = arg;
	struct lift_nodeset nodes;
	struct lift_range r = m->range;
	int mode = LIFT_MPOL_DEFAULT;
	bool good;

	(void)part;
	if (r.start < g->reached)
		return 0;
	g->reached = r.end;
	good = is_anonymous(m) && lift_sys_get_mempolicy(&mode, &nodes, (void *)r.start) >= 0 &&
	       has_two_forms(mode) && (!is_none(mode) || g->none_too) &&
	       (mode == own_form(mode) || is_ours(r.start));
	mode = own_form(mode);
	if (!good || r.start != g->run.end || m->perms != g->perms || mode != g->mode ||
		(!is_none(mode) && !lift_nodeset_equal(&nodes, &g->nodes)))
		end_run(g);
	if (!good)
		return 0;
	if (lift_range_empty(g->run)) {
		g->run.start = r.start;
		g->perms = m->perms;
		g->mode = mode;
		g->nodes = nodes;
	}
	g->run.end = r.end;
	return 0;
}

static int get_memory(void)
{
	long at;

	if (runs)
		return 0;
	at = lift_sys_mmap_apart(MEMORY, MAP_NORESERVE);
	if (lift_syserr(at))
		return (int)at;
	lift_split_init(&split, (struct lift_split_region *)at, MAX_REGIONS);
	runs = (struct lift_range *)(split.region + MAX_REGIONS);
	return 0;
}

static bool no_task_policy(void)
{
	int mode = LIFT_MPOL_DEFAULT;

	return lift_sys_get_mempolicy(&mode, NULL, NULL) >= 0 && mode == LIFT_MPOL_DEFAULT;
}

int lift_apart_watch(const struct lift_range *ranges, size_t nr)
{
	struct growing g = {.none_too = no_task_policy()};
	uint64_t bytes = 0;
	uint64_t most;
	int rc;

	if (atomic_load_explicit(&ended, memory_order_relaxed))
		nr = 0;
	if (nr == 0 && split.nr == 0)
		return 0;
	rc = get_memory();
	if (rc < 0)
		return rc;
	nr_runs = 0;
	if (nr > 0)
		rc = lift_maps_parts(ranges, nr, lines, sizeof(lines), grow_run, &g);
	if (rc < 0)
		return rc;
	end_run(&g);
	if (!lift_registry_enter())
		return 0;
	if (atomic_exchange_explicit(&joined, false, memory_order_relaxed))
		for (size_t i = 0; i < split.nr; i++)
			split.region[i].flags &= (uint8_t)~LIFT_SPLIT_DONE;
	bytes = lift_ranges_bytes(runs, nr_runs);
	most = allowed();
	lift_split_set_begin(&split, bytes, most);
	for (size_t i = 0; i < nr_runs; i++)
		lift_split_set_run(&split, runs[i], unbind, NULL);
	lift_split_set_end(&split, most, unbind, NULL);
	charge(split.cost);
	lift_registry_leave();
	if (split.moved)
		bind_all(false);
	return 0;
}

struct lift_split *lift_apart_split(void)
{
	return &split;
}

void lift_apart_adapt(void)
{
	/* What was joined is about to change: the next watch() will see. */
	if (split.nr == 0 || atomic_load_explicit(&joined, memory_order_relaxed) ||
		!lift_registry_enter())
		return;
	lift_split_step(&split, allowed(), STEP_MOST);
	if (split.cost != charged)
		charge(split.cost);
	lift_registry_leave();
	if (split.moved)
		bind_all(true);
}

void lift_apart_join(const struct lift_range *ranges, size_t nr)
{
	if (!lift_registry_enter())
		return;
	for (size_t k = 0; k < nr; k++) {
		for (size_t i = lift_split_find(&split, ranges[k].start);
			i < split.nr && split.region[i].start < ranges[k].end; i++) {
			unbind(NULL,
				(struct lift_range){split.region[i].start, split.region[i].end});
			atomic_store_explicit(&joined, true, memory_order_relaxed);
		}
	}
	lift_registry_leave();
}

void lift_apart_close(void)
{
	if (!runs)
		return;
	if (lift_registry_enter()) {
		for (size_t i = 0; i < split.nr; i++)
			if (split.region[i].flags & LIFT_SPLIT_OTHER)
				unbind(NULL, (struct lift_range){
						     split.region[i].start, split.region[i].end});
		charge(0);
		split.nr = 0;
		lift_registry_leave();
	}
}
