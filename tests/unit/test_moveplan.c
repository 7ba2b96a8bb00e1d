#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include "policy/moveplan.h"

#define BASE ((uintptr_t)0x7f0000000000)
#define CHUNKS 4

/* Nodes 0 and 4 are fast, 2 and 9 slow. */
static struct lift_slot slots[4];
static struct lift_heat heat;
static struct lift_moveplan plan;
static struct lift_counts counts;
static void *mem;

static void start(void)
{
	size_t bytes = lift_heat_bytes(CHUNKS, CHUNKS);

	mem = calloc(1, bytes);
	cr_assert(mem);
	cr_assert_eq(lift_heat_init(&heat, mem, bytes, CHUNKS, CHUNKS), 0);
	lift_heat_set_tiers(&heat, 3, 12);
	memset(&counts, 0, sizeof(counts));
	slots[0] = (struct lift_slot){.node = 0, .fast = true, .usable = true, .room = 100};
	slots[1] = (struct lift_slot){.node = 4, .fast = true, .usable = true, .room = 50};
	slots[2] = (struct lift_slot){.node = 2, .usable = true, .room = 5000};
	slots[3] = (struct lift_slot){.node = 9, .usable = true, .room = 5000};
}

static void stop(void)
{
	free(mem);
}

/* A chunk on @slot whose pages [from, to) have state 0x7f. */
static struct lift_chunk *chunk(unsigned n, unsigned slot, unsigned from, unsigned to)
{
	struct lift_chunk *c = lift_heat_add(&heat, BASE + n * LIFT_CHUNK_BYTES);

	cr_assert(c);
	memset(c->samples, 10, sizeof(c->samples));
	for (unsigned i = 0; i < LIFT_CHUNK_PAGES; i++)
		lift_heat_set(&heat, c, i, i >= from && i < to ? 0x7f : 0, (uint8_t)slot, 0);
	return c;
}

static void cut(uint32_t promote, uint32_t demote)
{
	struct lift_cut k;

	memset(&k, 0, sizeof(k));
	k.promote[0x7f] = promote;
	k.nr_promote = promote;
	k.demote[0] = demote;
	k.nr_demote = demote;
	k.hot[0x7f] = true;
	lift_moveplan_init(&plan, &k, 0);
}

/* Does what the plan says; unit @k of each batch says status(k). Batches; at most @max. */
static unsigned execute(int (*status)(unsigned k, int node), int rc, unsigned max)
{
	static int st[LIFT_BATCH_PAGES];
	unsigned nr;

	for (nr = 0; nr < max && lift_moveplan_next(&plan, &heat, NULL, slots, 4); nr++) {
		int node = slots[plan.batch.slot].node;

		cr_assert_gt(plan.batch.nr, 0);
		cr_assert_leq(plan.batch.weight, slots[plan.batch.slot].room);
		for (unsigned k = 0; k < plan.batch.nr; k++)
			st[k] = status ? status(k, node) : node;
		lift_moveplan_done(&plan, &heat, slots, 4, rc, st, &counts);
	}
	cr_assert_lt(nr, max);
	cr_assert(lift_heat_check(&heat));
	return nr;
}

static unsigned on(unsigned slot)
{
	unsigned nr = 0;

	for (uint32_t n = 0; n < heat.nr_chunks; n++)
		for (unsigned i = 0; i < LIFT_CHUNK_PAGES; i++)
			nr += (lift_heat_where(&heat, &heat.chunk[n], i) & LIFT_WHERE_MASK) == slot;
	return nr;
}

TestSuite(moveplan, .init = start, .fini = stop);

Test(moveplan, nearest_first_then_the_next)
{
	chunk(0, 2, 0, 512);
	cut(120, 0);
	execute(NULL, 0, 100);
	cr_assert_eq(on(0), 100);
	cr_assert_eq(on(1), 20);
	cr_assert_eq(counts.promoted, 120);
	cr_assert_eq(slots[0].room, 0);
	cr_assert_eq(slots[2].room, 5120);
}

Test(moveplan, home_first)
{
	chunk(0, 2, 0, 512)->home = 1;
	cut(80, 0);
	execute(NULL, 0, 100);
	cr_assert_eq(on(1), 50);
	cr_assert_eq(on(0), 30);
}

Test(moveplan, room_is_made_before_it_is_needed)
{
	chunk(0, 0, 0, 0);
	chunk(1, 2, 0, 300);
	slots[0].room = 0;
	slots[1].room = 0;
	cut(300, 300);
	execute(NULL, 0, 100);
	cr_assert_eq(counts.promoted, 300);
	cr_assert_eq(counts.demoted, 300);
	cr_assert_eq(on(0), 512);
}

Test(moveplan, nothing_goes_down_for_nothing)
{
	chunk(0, 0, 0, 0);
	chunk(1, 2, 0, 50);
	cut(50, 50);
	execute(NULL, 0, 100);
	cr_assert_eq(counts.promoted, 50);
	cr_assert_eq(counts.demoted, 0);
}

Test(moveplan, excess_goes_down_without_promotions)
{
	chunk(0, 0, 0, 0);
	cut(0, 70);
	plan.cut.excess = 70;
	execute(NULL, 0, 100);
	cr_assert_eq(counts.demoted, 70);
	cr_assert_eq(on(2), 70);
}

Test(moveplan, huge_pages_move_whole)
{
	struct lift_chunk *c = chunk(0, 2, 0, 512);

	lift_heat_describe(&heat, c, true);
	cut(512, 0);
	execute(NULL, 0, 100);
	cr_assert_eq(counts.promoted, 0);
	slots[1].room = 600;
	cut(512, 0);
	cr_assert_eq(execute(NULL, 0, 100), 1);
	cr_assert_eq(counts.promoted, 512);
	cr_assert_eq(on(1), 512);
	cr_assert_eq(slots[1].room, 88);
}

static int busy(unsigned k, int node)
{
	(void)k;
	(void)node;
	return -EBUSY;
}

static int mixed(unsigned k, int node)
{
	static const int all[] = {-EBUSY, -ENOENT, -EFAULT, -EACCES, -EAGAIN, -EIO, 77};

	return k % 8 == 7 ? node : all[k % 8];
}

static int full(unsigned k, int node)
{
	(void)node;
	return k < 10 ? node : -ENOMEM;
}

static int first_too_large(unsigned k, int node)
{
	return k % 16 ? node : -ENOMEM;
}

static int again(unsigned k, int node)
{
	(void)k;
	(void)node;
	return -EAGAIN;
}

Test(moveplan, busy_pages_wait)
{
	chunk(0, 2, 0, 80);
	cut(80, 0);
	execute(busy, 0, 100);
	cr_assert_eq(counts.busy, 80);
	cr_assert_eq(heat.census.cooling, 80);
	cut(80, 0);
	cr_assert_eq(execute(NULL, 0, 100), 0);
}

Test(moveplan, every_status_is_handled_and_counted)
{
	struct lift_chunk *c = chunk(0, 2, 0, 80);

	cut(80, 0);
	c->flags = 0;
	execute(mixed, 0, 100);
	cr_assert_eq(counts.busy, 10);
	cr_assert_eq(counts.absent, 20);
	cr_assert_eq(counts.stuck, 10);
	cr_assert_eq(counts.other, 20);
	cr_assert_eq(counts.promoted, 10);
	cr_assert_eq(on(LIFT_WHERE_ABSENT), 20);
	cr_assert_eq(on(LIFT_WHERE_STUCK), 10);
	cr_assert(c->flags & LIFT_CHUNK_UNKNOWN);
}

Test(moveplan, a_full_node_is_not_asked_again)
{
	chunk(0, 2, 0, 512);
	cut(120, 0);
	cr_assert_leq(execute(full, 0, 100), 4);
	cr_assert_eq(counts.promoted, 20);
	cr_assert_gt(counts.full, 0);
}

Test(moveplan, no_room_for_one_is_not_no_room)
{
	chunk(0, 2, 0, 512);
	cut(120, 0);
	execute(first_too_large, 0, 100);
	cr_assert_gt(counts.full, 0);
	cr_assert_geq(counts.promoted, 100);
	cr_assert_gt(heat.census.cooling, 0);
}

Test(moveplan, calls_that_fail_end_it_at_some_time)
{
	static const int errors[] = {-ENODEV, -EACCES, -ENOMEM, -EPERM, -ENOSYS, -EINTR, -EINVAL};

	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		start();
		chunk(0, 2, 0, 512);
		chunk(1, 0, 0, 0);
		slots[0].room = 10;
		slots[1].room = 10;
		cut(400, 400);
		execute(again, errors[i], 20);
		cr_assert_geq(counts.failed_calls, 1);
		cr_assert_eq(counts.promoted, 0);
		cr_assert_eq(plan.forbidden, errors[i] == -EPERM || errors[i] == -ENOSYS);
		stop();
	}
	start();
}

Test(moveplan, memory_that_goes_away_meanwhile)
{
	static int st[LIFT_BATCH_PAGES];

	chunk(0, 2, 0, 80);
	chunk(1, 2, 0, 10);
	cut(90, 0);
	cr_assert(lift_moveplan_next(&plan, &heat, NULL, slots, 4));
	lift_heat_forget(&heat, (struct lift_range){BASE, BASE + LIFT_CHUNK_BYTES});
	lift_moveplan_done(&plan, &heat, slots, 4, 0, st, &counts);
	cr_assert(lift_heat_check(&heat));
	execute(NULL, 0, 100);
}
