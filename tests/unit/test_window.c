#include <stdio.h>
#include <string.h>

#include <criterion/criterion.h>

#include "policy/window.h"

typedef uint64_t map[LIFT_CHUNK_WORDS];

static void fill(map m, unsigned from, unsigned to)
{
	for (unsigned i = from; i < to; i++)
		m[i / 64] |= UINT64_C(1) << i % 64;
}

static unsigned count_in(const map m, unsigned from, unsigned to)
{
	unsigned nr = 0;

	for (unsigned i = from; i < to; i++)
		nr += m[i / 64] >> i % 64 & 1;
	return nr;
}

struct row {
	unsigned pages;          /* size of the window */
	unsigned hot[2];         /* [from, to) */
	unsigned hole[2];        /* not eligible */
	unsigned up[2], down[2]; /* expected */
};

static const struct row rows[] = {
	{4, {100, 101}, {0, 0}, {101, 105}, {96, 100}},
	{4, {100, 110}, {0, 0}, {110, 114}, {96, 100}},
	{0, {100, 101}, {0, 0}, {0, 0}, {0, 0}},
	{512, {100, 101}, {0, 0}, {101, 512}, {0, 100}},
	/* Ends at what is not on a slow node. */
	{8, {100, 101}, {103, 104}, {101, 103}, {92, 100}},
	{8, {100, 101}, {101, 102}, {0, 0}, {92, 100}},
	/* Ends at the chunk. */
	{16, {510, 511}, {0, 0}, {511, 512}, {494, 510}},
	{16, {2, 3}, {0, 0}, {3, 19}, {0, 2}},
	/* Across words. */
	{8, {60, 62}, {0, 0}, {62, 70}, {52, 60}},
};

Test(window, predicts_next_to_hot_pages)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct row *r = &rows[i];
		struct lift_window w;
		map hot = {0};
		map eligible = {0};
		map got;
		unsigned want = r->up[1] - r->up[0] + r->down[1] - r->down[0];

		lift_window_fix(&w, r->pages);
		fill(hot, r->hot[0], r->hot[1]);
		fill(eligible, 0, LIFT_CHUNK_PAGES);
		for (unsigned k = r->hot[0]; k < r->hot[1]; k++)
			eligible[k / 64] &= ~(UINT64_C(1) << k % 64);
		for (unsigned k = r->hole[0]; k < r->hole[1]; k++)
			eligible[k / 64] &= ~(UINT64_C(1) << k % 64);
		cr_expect_eq(lift_window_predict(&w, hot, eligible, -1, got), want, "row %zu", i);
		cr_expect_eq(count_in(got, r->up[0], r->up[1]), r->up[1] - r->up[0], "row %zu", i);
		cr_expect_eq(count_in(got, r->down[0], r->down[1]), r->down[1] - r->down[0],
			"row %zu", i);
		cr_expect_eq(lift_window_bytes(&w), r->pages * LIFT_PAGE_BYTES);
	}
}

/* A pass over @chunks chunks where [from, to) is hot and @p of 16 pages in [from, end) are
 * accessed. */
static void pass(struct lift_window *w, unsigned from, unsigned to, unsigned end, unsigned p)
{
	for (unsigned n = 0; n < 16; n++) {
		map hot = {0};
		map eligible = {0};
		map sampled;
		map accessed = {0};

		memset(sampled, 0xff, sizeof(sampled));
		fill(hot, from, to);
		fill(eligible, 0, LIFT_CHUNK_PAGES);
		for (unsigned i = from; i < to; i++)
			eligible[i / 64] &= ~(UINT64_C(1) << i % 64);
		for (unsigned i = from; i < end; i++)
			if ((i * 7 + n * 5) % 16 < p)
				fill(accessed, i, i + 1);
		lift_window_learn(w, hot, eligible, 4096 * p / 16, 100, sampled, accessed);
	}
	lift_window_judge(w, 0, 0);
}

Test(window, grows_upwards_where_runs_go_up)
{
	struct lift_window w;
	uint64_t before = 0;

	lift_window_init(&w);
	cr_assert_eq(lift_window_bytes(&w), 0);
	for (unsigned k = 0; k < 8; k++) {
		pass(&w, 100, 104, 400, 14);
		cr_assert_geq(lift_window_bytes(&w), before);
		before = lift_window_bytes(&w);
	}
	cr_assert_geq(before, LIFT_MIB);
	cr_assert(w.way[LIFT_WAY_UP].trusted);
	cr_assert_not(w.way[LIFT_WAY_DOWN].trusted);
}

Test(window, does_not_outgrow_the_runs)
{
	struct lift_window w;

	lift_window_init(&w);
	for (unsigned k = 0; k < 20; k++)
		pass(&w, 100, 104, 120, 14);
	cr_assert(w.way[LIFT_WAY_UP].trusted);
	cr_assert_leq(w.way[LIFT_WAY_UP].pages, 32);
}

Test(window, single_pages_never_turn_it_on)
{
	struct lift_window w;

	lift_window_init(&w);
	for (unsigned k = 0; k < 30; k++) {
		pass(&w, 100, 101, 101, 16);
		cr_assert_eq(lift_window_bytes(&w), 0);
	}
	cr_assert_gt(w.way[LIFT_WAY_UP].pause, 0);
}

Test(window, turns_off_and_tries_again)
{
	struct lift_window w;
	unsigned k;

	lift_window_init(&w);
	for (k = 0; k < 5; k++)
		pass(&w, 100, 104, 400, 14);
	cr_assert_gt(lift_window_bytes(&w), 0);
	for (k = 0; k < 40 && lift_window_bytes(&w); k++)
		pass(&w, 100, 104, 104, 14);
	cr_assert_lt(k, 40);
	for (k = 0; k < 1000 && !lift_window_bytes(&w); k++)
		pass(&w, 100, 104, 400, 14);
	cr_assert_lt(k, 1000);
}

Test(window, wrong_moves_count_against_it)
{
	struct lift_window w;
	unsigned k;

	lift_window_init(&w);
	for (k = 0; k < 2; k++)
		pass(&w, 100, 104, 400, 14);
	for (k = 0; k < 20 && lift_window_bytes(&w); k++)
		lift_window_judge(&w, 10, 200);
	cr_assert_lt(k, 20);
	cr_assert_eq(w.hit, k * 10);
	cr_assert_eq(w.wrong, k * 200);
}

Test(window, follows_strides)
{
	struct lift_window w;
	map hot = {0};
	map eligible = {0};
	map got;

	lift_window_init(&w);
	for (unsigned i = 0; i < 40; i += 5)
		fill(hot, i, i + 1);
	memset(eligible, 0xff, sizeof(eligible));
	for (unsigned i = 0; i < LIFT_CHUNK_WORDS; i++)
		eligible[i] &= ~hot[i];
	cr_assert_eq(lift_window_predict(&w, hot, eligible, LIFT_WAY_STRIDE, got), 4);
	for (unsigned i = 40; i < 60; i += 5)
		cr_assert_eq(count_in(got, i, i + 1), 1);
}
