#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include "policy/heat.h"
#include "tests/fake/fake_memsys.h"

#define BASE ((uintptr_t)0x7f0000000000)
#define FAST 0
#define SLOW 1

static struct lift_heat heat;
static void *mem;

static void start(uint32_t chunks, uint32_t detailed)
{
	size_t bytes = lift_heat_bytes(chunks, detailed);

	mem = calloc(1, bytes);
	cr_assert(mem);
	cr_assert_eq(lift_heat_init(&heat, mem, bytes, chunks, detailed), 0);
	lift_heat_set_tiers(&heat, 1u << FAST, 1u << SLOW);
}

static void stop(void)
{
	free(mem);
}

static struct lift_chunk *whole_chunk(unsigned n, uint8_t slot)
{
	struct lift_chunk *c = lift_heat_add(&heat, BASE + n * LIFT_CHUNK_BYTES);

	cr_assert(c);
	for (unsigned i = 0; i < LIFT_CHUNK_PAGES; i++)
		lift_heat_locate(&heat, c, i, slot);
	c->flags = 0;
	return c;
}

/* A sample of all pages in which [from, to) were accessed. */
static void sample(struct lift_chunk *c, unsigned from, unsigned to, struct lift_tally *tally)
{
	memset(c->armed, 0xff, sizeof(c->armed));
	memset(c->seen, 0xff, sizeof(c->seen));
	memset(c->accessed, 0, sizeof(c->accessed));
	for (unsigned i = from; i < to; i++)
		c->accessed[i / 64] |= UINT64_C(1) << i % 64;
	lift_heat_sample(&heat, c, tally);
	cr_assert(lift_heat_check(&heat));
}

Test(heat, costs_less_than_a_thousandth)
{
	for (uint32_t gib = 1; gib <= 1024; gib *= 4) {
		uint32_t chunks = gib * 512;

		cr_assert_leq(lift_heat_bytes(chunks, chunks), gib * LIFT_GIB / 1000 + LIFT_MIB);
	}
}

Test(heat, needs_memory)
{
	char small[64];

	cr_assert_eq(lift_heat_init(&heat, NULL, 1 << 20, 1, 1), -EINVAL);
	cr_assert_eq(lift_heat_init(&heat, small, sizeof(small), 1, 1), -EINVAL);
	cr_assert_eq(lift_heat_init(&heat, small, sizeof(small), 0, 0), -EINVAL);
}

Test(heat, finds_what_was_added_and_forgets_what_is_gone, .fini = stop)
{
	struct fake_random r;
	static bool there[4096];
	unsigned nr = 0;

	start(512, 16);
	fake_random_seed(&r, 1);
	for (unsigned k = 0; k < 20000; k++) {
		unsigned n = fake_random_below(&r, 4096);
		uintptr_t at = BASE + n * LIFT_CHUNK_BYTES;

		if (fake_random_below(&r, 2)) {
			struct lift_chunk *c = lift_heat_add(&heat, at + 12345);

			cr_assert_eq(c == NULL, !there[n] && nr == 512);
			if (c && !there[n]) {
				there[n] = true;
				nr++;
			}
		} else {
			lift_heat_forget(&heat, (struct lift_range){at, at + LIFT_CHUNK_BYTES});
			nr -= there[n];
			there[n] = false;
		}
		cr_assert_eq(lift_heat_find(&heat, at) != NULL, there[n]);
		cr_assert_eq(heat.nr_chunks, nr);
		if (k % 100 == 0)
			cr_assert(lift_heat_check(&heat));
	}
	lift_heat_forget(&heat, (struct lift_range){0, UINTPTR_MAX});
	cr_assert_eq(heat.nr_chunks, 0);
	cr_assert(lift_heat_check(&heat));
}

Test(heat, part_of_a_chunk_can_go, .fini = stop)
{
	struct lift_chunk *c;

	start(4, 4);
	c = whole_chunk(0, SLOW);
	lift_heat_forget(&heat, (struct lift_range){BASE + 4096, BASE + 3 * 4096});
	cr_assert_eq(lift_heat_where(&heat, c, 0), SLOW);
	cr_assert_eq(lift_heat_where(&heat, c, 1), LIFT_WHERE_ABSENT);
	cr_assert_eq(lift_heat_where(&heat, c, 2), LIFT_WHERE_ABSENT);
	cr_assert_eq(lift_heat_where(&heat, c, 3), SLOW);
	lift_heat_forget(&heat, (struct lift_range){BASE, BASE + 4096});
	lift_heat_forget(&heat, (struct lift_range){BASE + 4096, BASE + LIFT_CHUNK_BYTES});
	cr_assert_eq(heat.nr_chunks, 0);
	cr_assert(lift_heat_check(&heat));
}

Test(heat, pages_that_are_alike_take_no_memory, .fini = stop)
{
	struct lift_tally tally = {0};
	struct lift_chunk *c;

	start(4, 2);
	c = whole_chunk(0, SLOW);
	cr_assert_eq(c->pages, LIFT_NO_PAGES);
	sample(c, 0, 0, &tally);
	cr_assert_eq(c->pages, LIFT_NO_PAGES);
	cr_assert_eq(tally.n[0], 512);
	cr_assert_eq(tally.slow_t, 0);

	sample(c, 100, 108, &tally);
	cr_assert_neq(c->pages, LIFT_NO_PAGES);
	cr_assert_eq(lift_heat_get(&heat, c, 100) & 1, 1);
	cr_assert_eq(lift_heat_get(&heat, c, 99) & 1, 0);
	cr_assert_eq(tally.slow_t, 8);
	/* Forgotten again in time. */
	for (unsigned k = 0; k < 24; k++)
		sample(c, 0, 0, &tally);
	cr_assert_eq(c->pages, LIFT_NO_PAGES);
	cr_assert_eq(heat.nr_free_page, heat.top_pages);
}

Test(heat, goes_on_by_whole_chunks_without_memory, .fini = stop)
{
	struct lift_tally tally = {0};
	struct lift_chunk *c;

	start(4, 0);
	c = whole_chunk(0, SLOW);
	sample(c, 0, 10, &tally);
	cr_assert_eq(c->heat & 1, 0);
	sample(c, 0, 300, &tally);
	cr_assert_eq(c->heat & 1, 1);
	cr_assert_geq(heat.coarse, 2);
}

Test(heat, often_follows_history_and_fades, .fini = stop)
{
	struct lift_tally tally = {0};
	struct lift_chunk *c;
	unsigned k;

	start(4, 4);
	c = whole_chunk(0, SLOW);
	for (k = 0; k < 16; k++)
		sample(c, 0, 1, &tally);
	cr_assert_eq(lift_heat_get(&heat, c, 0), 0x7f);
	for (k = 0; lift_heat_get(&heat, c, 0) && k < 100; k++)
		sample(c, 0, 0, &tally);
	cr_assert(k > 4 && k < 24, "%u", k);
}

Test(heat, pages_not_seen_are_gone, .fini = stop)
{
	struct lift_tally tally = {0};
	struct lift_chunk *c;

	start(4, 4);
	c = whole_chunk(0, SLOW);
	memset(c->armed, 0xff, sizeof(c->armed));
	memset(c->seen, 0xff, sizeof(c->seen));
	c->seen[1] = 0;
	lift_heat_sample(&heat, c, &tally);
	cr_assert_eq(lift_heat_where(&heat, c, 63), SLOW);
	cr_assert_eq(lift_heat_where(&heat, c, 64), LIFT_WHERE_ABSENT);
	cr_assert_eq(lift_heat_where(&heat, c, 128), SLOW);
}

Test(heat, who_bounces_waits_twice_as_long_each_time, .fini = stop)
{
	struct lift_tally tally = {0};
	struct lift_chunk *c;
	unsigned before = 0;

	start(4, 4);
	c = whole_chunk(0, SLOW);
	for (unsigned round = 0; round < 5; round++) {
		unsigned waited;

		lift_heat_promoted(&heat, c, 7, FAST, false);
		cr_assert(lift_heat_fresh(lift_heat_guard(&heat, c, 7)));
		cr_assert(lift_heat_demoted(&heat, c, 7, SLOW));
		for (waited = 0;; waited++) {
			if (heat.census.cooling == 0)
				break;
			cr_assert_eq(heat.census.cooling, 1);
			sample(c, 0, 0, &tally);
			cr_assert_lt(waited, 1000);
		}
		cr_assert_geq(waited + 1, before * 3 / 2, "%u after %u", waited, before);
		before = waited;
	}
	cr_assert_geq(before, 32);
}

Test(heat, predictions_are_judged, .fini = stop)
{
	struct lift_tally tally = {0};
	struct lift_chunk *c;

	start(4, 4);
	c = whole_chunk(0, SLOW);
	lift_heat_promoted(&heat, c, 10, FAST, true);
	lift_heat_promoted(&heat, c, 11, FAST, true);
	for (unsigned k = 0; k < 8; k++)
		sample(c, 10, 11, &tally);
	cr_assert_eq(tally.hit, 1);
	cr_assert_eq(tally.wrong, 1);
	cr_assert(lift_heat_where(&heat, c, 11) & LIFT_WHERE_WRONG);
	cr_assert_eq(heat.census.wrong, 1);
	cr_assert_eq(heat.census.nr_fast, 2);
	/* Used after all. */
	sample(c, 11, 12, &tally);
	cr_assert_not(lift_heat_where(&heat, c, 11) & LIFT_WHERE_WRONG);
}

Test(heat, a_huge_page_is_one_thing, .fini = stop)
{
	struct lift_tally tally = {0};
	struct lift_chunk *c;

	start(4, 4);
	c = whole_chunk(0, SLOW);
	sample(c, 3, 9, &tally);
	lift_heat_describe(&heat, c, true);
	cr_assert_eq(c->pages, LIFT_NO_PAGES);
	sample(c, 0, 512, &tally);
	cr_assert_eq(c->pages, LIFT_NO_PAGES);
	cr_assert_eq(c->heat & 1, 1);
	lift_heat_promoted(&heat, c, 0, FAST, false);
	cr_assert_eq(heat.census.nr_fast, 512);
	/* Part of it is unmapped: it is not huge any more. */
	lift_heat_forget(&heat, (struct lift_range){BASE, BASE + 4096});
	cr_assert_not(c->flags & LIFT_CHUNK_HUGE);
	cr_assert_eq(lift_heat_where(&heat, c, 1), FAST);
	cr_assert(lift_heat_check(&heat));
}
