#include <stdlib.h>

#include <criterion/criterion.h>

#include "policy/split.h"

#define MAX 4096
#define MIB LIFT_MIB
#define BASE ((uintptr_t)0x7f0000000000)

static struct lift_split_region memory[MAX];
static struct lift_split s;
static struct lift_range dropped[MAX];
static size_t nr_dropped;

static void drop(void *arg, struct lift_range r)
{
	(void)arg;
	cr_assert_not(lift_range_empty(r));
	if (nr_dropped < MAX)
		dropped[nr_dropped++] = r;
}

static void set(const struct lift_range *runs, size_t nr, uint64_t allowed)
{
	lift_split_set_begin(&s, lift_ranges_bytes(runs, nr), allowed);
	for (size_t i = 0; i < nr; i++)
		lift_split_set_run(&s, runs[i], drop, NULL);
	lift_split_set_end(&s, allowed, drop, NULL);
	cr_assert(lift_split_check(&s));
	cr_assert_leq(s.cost, allowed);
}

static struct lift_range at_mib(uint64_t from, uint64_t to)
{
	return (struct lift_range){BASE + from * MIB, BASE + to * MIB};
}

static void start(const struct lift_range *runs, size_t nr, uint64_t allowed, size_t max)
{
	nr_dropped = 0;
	lift_split_init(&s, memory, max);
	set(runs, nr, allowed);
}

/* Bytes of r that lie in hot ones. */
static uint64_t used_of(struct lift_range r, const struct lift_range *hot, size_t nr)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < nr; i++)
		bytes += lift_range_bytes(lift_range_and(r, hot[i]));
	return bytes;
}

static void sample(const struct lift_range *hot, size_t nr, uint64_t allowed, size_t most)
{
	for (size_t i = 0; i < s.nr; i++) {
		struct lift_range r = {s.region[i].start, s.region[i].end};

		lift_split_sampled(&s, i, used_of(r, hot, nr), lift_range_bytes(r));
		s.region[i].flags |= LIFT_SPLIT_DONE;
	}
	lift_split_step(&s, allowed, most);
	cr_assert(lift_split_check(&s));
	cr_assert_leq(s.cost, allowed);
}

/* Bytes that are on the wrong side when regions with an eighth used count as hot. */
static uint64_t wrong(const struct lift_range *hot, size_t nr)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < s.nr; i++) {
		struct lift_range r = {s.region[i].start, s.region[i].end};
		uint64_t used = used_of(r, hot, nr);

		bytes += used >= lift_range_bytes(r) / 8 ? lift_range_bytes(r) - used : used;
	}
	return bytes;
}

Test(split, begins_coarse)
{
	struct lift_range runs[] = {at_mib(0, 512), at_mib(1024, 1032)};

	start(runs, 2, 1000, MAX);
	cr_expect_eq(s.nr, 2);
	sample(NULL, 0, 1000, 64);
	cr_expect_eq(s.nr, 17);
	cr_expect_eq(s.cost, 16);
	cr_expect_eq(s.coarse, 32 * MIB);
}

Test(split, begins_coarser_where_many_would_be_needed)
{
	struct lift_range run = at_mib(0, 1024 * 1024);

	start(&run, 1, 1000, MAX);
	sample(NULL, 0, 1000, 1000);
	cr_expect_eq(s.nr, 256);
	cr_expect_eq(s.coarse, 4096 * MIB);
	set(&run, 1, 0);
	cr_expect_eq(s.nr, 1);
}

Test(split, finds_what_is_hot_by_halves)
{
	struct lift_range run = at_mib(0, 512);
	struct lift_range hot[] = {at_mib(38, 40), at_mib(300, 302), at_mib(302, 304)};
	unsigned samples = 0;

	start(&run, 1, 1000, MAX);
	while (wrong(hot, 3) > 0 && samples < 100) {
		sample(hot, 3, 1000, 64);
		samples++;
	}
	cr_expect_eq(samples, 5);
	cr_expect_leq(s.nr, 16 + 4 + 3);
	for (unsigned i = 0; i < 100; i++)
		sample(hot, 3, 1000, 64);
	cr_expect_eq(wrong(hot, 3), 0);
	cr_expect_leq(s.nr, 16 + 4 + 3);
}

Test(split, becomes_whole_again)
{
	struct lift_range run = at_mib(0, 512);
	struct lift_range hot = at_mib(38, 40);
	size_t before;

	start(&run, 1, 1000, MAX);
	sample(NULL, 0, 1000, 64);
	before = s.nr;
	for (unsigned i = 0; i < 5; i++)
		sample(&hot, 1, 1000, 64);
	cr_expect_gt(s.nr, before);
	for (unsigned i = 0; i < 10; i++)
		sample(NULL, 0, 1000, 64);
	cr_expect_eq(s.nr, before);
}

/* Everything is lukewarm: splitting shows nothing, and is tried more and more seldom. */
Test(split, gives_up_where_all_is_alike)
{
	struct lift_range run = at_mib(0, 64);
	unsigned whole = 0;

	start(&run, 1, 1000, MAX);
	for (unsigned i = 0; i < 400; i++) {
		for (size_t k = 0; k < s.nr; k++)
			lift_split_sampled(&s, k, (s.region[k].end - s.region[k].start) / 3,
				s.region[k].end - s.region[k].start);
		lift_split_step(&s, 1000, 64);
		whole += i >= 100 && s.nr == 2;
	}
	cr_expect_gt(whole, 200, "%u", whole);
}

Test(split, splits_no_more_than_allowed_and_what_gains_most_first)
{
	struct lift_range run = at_mib(0, 512);
	struct lift_range hot[] = {at_mib(2, 4), at_mib(64, 80)};

	start(&run, 1, 1000, MAX);
	sample(hot, 2, 17, 64);
	cr_assert_eq(s.cost, 16);
	sample(hot, 2, 17, 64);
	cr_expect_eq(s.cost, 17);
	cr_expect_eq(s.region[2].start, hot[1].start);
	cr_expect_eq(s.region[2].end, hot[1].end);
	sample(hot, 2, 0, 64);
	cr_expect_eq(s.nr, 1);
}

Test(split, bounded_per_sample)
{
	struct lift_range run = at_mib(0, 512);
	struct lift_range hot[16];
	size_t before;

	for (unsigned i = 0; i < 16; i++)
		hot[i] = at_mib(i * 32 + 6, i * 32 + 8);
	start(&run, 1, 1000, MAX);
	sample(hot, 16, 1000, 64);
	before = s.nr;
	sample(hot, 16, 1000, 5);
	cr_expect_eq(s.nr, before + 5);
}

Test(split, keeps_what_is_known)
{
	struct lift_range run = at_mib(0, 512);
	struct lift_range grown = at_mib(0, 700);
	struct lift_range parts[] = {at_mib(0, 38), at_mib(39, 512)};
	struct lift_range hot = at_mib(38, 40);
	size_t nr;

	start(&run, 1, 1000, MAX);
	for (unsigned i = 0; i < 6; i++)
		sample(&hot, 1, 1000, 64);
	nr = s.nr;
	set(&run, 1, 1000);
	cr_expect_eq(s.nr, nr);
	cr_expect_eq(nr_dropped, 0);
	for (size_t i = 0; i < s.nr; i++)
		cr_expect(s.region[i].flags & LIFT_SPLIT_DONE);
	set(&grown, 1, 1000);
	cr_expect_eq(s.nr, nr + 1);
	/* A piece is unmapped, not along a border. */
	set(parts, 2, 1000);
	cr_expect_eq(wrong(&hot, 1), 0);
	set(NULL, 0, 1000);
	cr_expect_eq(s.nr, 0);
	cr_expect_gt(nr_dropped, 0);
}

/* Anything at all may happen to runs; borders never cut a huge page but at their ends. */
Test(split, any_runs)
{
	struct lift_range runs[64];
	struct lift_range hot[8];

	srand(1);
	nr_dropped = MAX;
	lift_split_init(&s, memory, 300);
	for (unsigned round = 0; round < 3000; round++) {
		uint64_t allowed = (uint64_t)rand() % 200;
		uintptr_t at = BASE;
		size_t nr = (size_t)rand() % 12;

		for (size_t i = 0; i < nr; i++) {
			at += (uintptr_t)(rand() % 3) * (uintptr_t)(rand() % 9000) * 4096;
			runs[i].start = at;
			at += (1 + (uintptr_t)(rand() % 40) * (uintptr_t)(rand() % 4000)) * 4096;
			runs[i].end = at;
		}
		for (size_t i = 0; i < 8; i++) {
			uint64_t from = (uint64_t)rand() % 4000;

			hot[i] = at_mib(from, from + (uint64_t)rand() % 20);
		}
		if (round % 5 == 0)
			set(runs, nr, allowed);
		sample(hot, 8, allowed, 16);
	}
}

/* Many changes of what is hot: nothing of what was tried in vain before keeps it from being found.
 */
Test(split, follows_what_changes)
{
	struct lift_range run = at_mib(0, 512);
	struct lift_range hot[8];

	srand(2);
	start(&run, 1, 1000, MAX);
	for (unsigned round = 0; round < 300; round++) {
		for (size_t i = 0; i < 8; i++) {
			uint64_t from = i * 64 + (uint64_t)rand() % 24 * 2;

			hot[i] = at_mib(from, from + 2 + (uint64_t)rand() % 6 * 2);
		}
		for (unsigned i = 0; i < 16; i++)
			sample(hot, 8, 1000, 64);
		cr_assert_leq(wrong(hot, 8), 0, "round %u: %lu", round, wrong(hot, 8));
		cr_assert_leq(s.nr, 16 + 8 * 10, "round %u: %zu", round, s.nr);
	}
}

/* Two forms in turn: a split in one place must not need everything behind it to be done again and
 * again. */
Test(split, forms)
{
	struct lift_range run = at_mib(0, 2048);
	struct lift_range hot[] = {at_mib(6, 8), at_mib(1030, 1032)};
	size_t redone = 0;

	start(&run, 1, 1000, MAX);
	for (unsigned i = 0; i < 20; i++) {
		sample(hot, 2, 1000, 64);
		for (size_t k = 0; k < s.nr; k++)
			redone += !(s.region[k].flags & LIFT_SPLIT_DONE);
	}
	cr_expect_leq(redone, 4 * 64, "%zu", redone);
}

Test(split, region_is_small)
{
	cr_expect_leq(sizeof(struct lift_split_region), 32);
}
