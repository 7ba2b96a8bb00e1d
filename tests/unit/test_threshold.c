#include <math.h>
#include <string.h>

#include <stdlib.h>

#include <criterion/criterion.h>

#include "policy/threshold.h"

#define MS UINT64_C(1000000)
#define S (1000 * MS)

static const struct lift_price price = {
	.promote_ns = 10000,
	.demote_ns = 10000,
	.gap_ns = 136,
	.margin_pct = 150,
	.residence_ns = 60 * S,
	.room_ns = 300 * S,
};

Test(threshold, the_logarithm_is_one)
{
	for (uint32_t p = 0; p < 4040; p++) {
		double want = -log(1 - p / 4096.0) * 1024;

		cr_assert_float_eq(lift_neg_log(p), want, 2 + want / 50, "%u: %u, not %f", p,
			lift_neg_log(p), want);
	}
	cr_assert_eq(lift_neg_log(4096), 5 * 1024);
}

Test(threshold, rates_are_learned_from_what_happened)
{
	struct lift_tally tally = {0};
	struct lift_rates rates;
	struct lift_calib calib;

	lift_calib_init(&calib, 100 * MS);
	/* State 0x7f was accessed in 3 of 4 samples of 0.1 s: -ln(0.25)/0.1 = 13.9 per second. */
	tally.n[0x7f] = 10000;
	tally.t[0x7f] = 7500;
	tally.n[0] = 10000;
	tally.t[0] = 100;
	lift_calib_add(&calib, &tally, 100 * MS, 0, 0, 100000);
	lift_calib_rates(&calib, &rates);
	cr_assert_float_eq((double)rates.rate[0x7f], 13863, 300);
	cr_assert_float_eq((double)rates.rate[0], 100, 20);
	cr_assert_lt(rates.low[0x7f], rates.rate[0x7f]);
	cr_assert_gt(rates.high[0x7f], rates.rate[0x7f]);
	/* Predictions that nobody has judged are worth nothing. */
	cr_assert_eq(rates.rate[LIFT_STATE_PREDICTED], 0);
	/* Half the window, the same rate. */
	lift_calib_rewindow(&calib, 50 * MS);
	lift_calib_rates(&calib, &rates);
	cr_assert_float_eq((double)rates.rate[0x7f], 13863, 500);
	lift_calib_rewindow(&calib, 200 * MS);
	lift_calib_rates(&calib, &rates);
	cr_assert_float_eq((double)rates.rate[0x7f], 13863, 1000);
}

Test(threshold, what_rough_samples_tell_is_less_sure)
{
	struct lift_tally tally = {0};
	struct lift_rates sure;
	struct lift_rates rough;
	struct lift_calib calib;

	lift_calib_init(&calib, 100 * MS);
	tally.n[0x7f] = 10000;
	tally.t[0x7f] = 7500;
	lift_calib_add(&calib, &tally, 100 * MS, 0, 0, 100000);
	lift_calib_rates(&calib, &sure);
	/* Samples that find as much as is expected of them change nothing. */
	for (unsigned i = 0; i < 20; i++)
		lift_calib_doubt(&calib, 100 * MS, 100 * MS, 0);
	lift_calib_rates(&calib, &rough);
	cr_assert_eq(rough.low[0x7f], sure.low[0x7f]);
	cr_assert_eq(rough.high[0x7f], sure.high[0x7f]);
	/* Each finds twice as much, or half: by a fourth in either direction. */
	for (unsigned i = 0; i < 60; i++)
		lift_calib_doubt(&calib, 100 * MS, i % 2 ? 200 * MS : 50 * MS, 0);
	lift_calib_rates(&calib, &rough);
	cr_assert_eq(rough.rate[0x7f], sure.rate[0x7f]);
	cr_assert_float_eq((double)rough.low[0x7f], sure.low[0x7f] / 1.25, sure.low[0x7f] / 30.0);
	cr_assert_float_eq(
		(double)rough.high[0x7f], sure.high[0x7f] * 1.25, sure.high[0x7f] / 30.0);
	/* However far off: not beyond twice, and it is forgotten when they are as expected again.
	 */
	for (unsigned i = 0; i < 60; i++)
		lift_calib_doubt(&calib, 100 * MS, 1, 0);
	lift_calib_rates(&calib, &rough);
	cr_assert_geq(rough.low[0x7f] * 2, sure.low[0x7f] - 2);
	for (unsigned i = 0; i < 100; i++)
		lift_calib_doubt(&calib, 100 * MS, 100 * MS, 0);
	lift_calib_rates(&calib, &rough);
	cr_assert_float_eq((double)rough.low[0x7f], sure.low[0x7f], sure.low[0x7f] / 100.0);
	/* As expected, but nobody knows how long they were. */
	for (unsigned i = 0; i < 60; i++)
		lift_calib_doubt(&calib, 100 * MS, 100 * MS, 100 * MS);
	lift_calib_rates(&calib, &rough);
	cr_assert_float_eq((double)rough.low[0x7f], sure.low[0x7f] / 1.25, sure.low[0x7f] / 30.0);
}

Test(threshold, old_observations_fade)
{
	struct lift_tally tally = {0};
	struct lift_rates rates;
	struct lift_calib calib;

	lift_calib_init(&calib, 100 * MS);
	tally.n[5] = 1000;
	tally.t[5] = 1000;
	for (int i = 0; i < 10; i++)
		lift_calib_add(&calib, &tally, 100 * MS, 0, 0, 1500);
	tally.t[5] = 0;
	for (int i = 0; i < 4; i++)
		lift_calib_add(&calib, &tally, 100 * MS, 0, 0, 1500);
	lift_calib_rates(&calib, &rates);
	cr_assert_lt(rates.p[5], 200);
}

/* States 1, 2, ... with these rates, all as sure as can be. */
static void set_rates(struct lift_rates *r, unsigned state, uint32_t rate)
{
	r->rate[state] = r->low[state] = r->high[state] = rate;
}

#define HOT 0x7f
#define WARM 0x33
#define COLD 0x10
#define ONCE 0x01

static void some_rates(struct lift_rates *r)
{
	memset(r, 0, sizeof(*r));
	set_rates(r, HOT, 20000);
	set_rates(r, WARM, 3000);
	set_rates(r, COLD, 100);
	set_rates(r, ONCE, 5000);
}

struct row {
	uint32_t slow_hot, slow_warm, slow_cold, slow_once;
	uint32_t fast_hot, fast_warm, fast_cold, wrong;
	uint64_t capacity;
	uint32_t promote, demote, demote_wrong;
};

static const struct row rows[] = {
	/* Hot ones trade with cold ones, as many as there are. */
	{100, 0, 0, 0, 0, 0, 60, 0, 60, 60, 60, 0},
	{100, 0, 0, 0, 0, 0, 200, 0, 200, 100, 100, 0},
	/* Wrong ones first. */
	{100, 0, 0, 0, 0, 0, 60, 20, 80, 80, 80, 20},
	/* Warm for cold does not pay in a minute, hot for warm does. */
	{0, 100, 0, 0, 0, 0, 100, 0, 100, 0, 0, 0},
	{100, 0, 0, 0, 0, 100, 0, 0, 100, 100, 100, 0},
	/* Nothing for its like. */
	{100, 0, 0, 0, 100, 0, 0, 0, 100, 0, 0, 0},
	/* Room is used for what is warm, first for what is hot. */
	{0, 100, 0, 0, 50, 0, 0, 0, 60, 10, 0, 0},
	{10, 100, 0, 0, 50, 0, 0, 0, 60, 10, 0, 0},
	/* Accessed once: only into plenty of room, or where all fits, never by trade. */
	{0, 0, 0, 100, 0, 0, 100, 0, 110, 0, 0, 0},
	{0, 0, 0, 100, 0, 0, 10, 0, 1000, 100, 0, 0},
	{0, 0, 10, 50, 0, 0, 1000, 0, 1060, 50, 0, 0},
	{0, 0, 11, 50, 0, 0, 1000, 0, 1060, 0, 0, 0},
	/* More than there may be: out, whatever it costs, the coldest. */
	{0, 0, 0, 0, 50, 0, 50, 0, 70, 0, 30, 0},
	{0, 0, 0, 0, 50, 0, 50, 10, 70, 0, 40, 10},
	/* Nothing anywhere. */
	{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
	{100, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
};

Test(threshold, draws_the_line_where_it_pays)
{
	struct lift_rates rates;

	some_rates(&rates);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct row *r = &rows[i];
		struct lift_census census = {0};
		struct lift_cut cut;

		census.slow[HOT] = r->slow_hot;
		census.slow[WARM] = r->slow_warm;
		census.slow[COLD] = r->slow_cold;
		census.slow[ONCE] = r->slow_once;
		census.fast[HOT] = r->fast_hot;
		census.fast[WARM] = r->fast_warm;
		census.fast[COLD] = r->fast_cold;
		census.wrong = r->wrong;
		census.nr_slow = r->slow_hot + r->slow_warm + r->slow_cold + r->slow_once;
		census.nr_fast = r->fast_hot + r->fast_warm + r->fast_cold + r->wrong;
		lift_threshold_cut(&census, &rates, &price, r->capacity, 0, UINT32_MAX, &cut);
		cr_expect_eq(cut.nr_promote, r->promote, "row %zu: %u up", i, cut.nr_promote);
		cr_expect_eq(cut.nr_demote, r->demote, "row %zu: %u down", i, cut.nr_demote);
		cr_expect_eq(cut.demote_wrong, r->demote_wrong, "row %zu", i);
	}
}

Test(threshold, at_most_so_many_and_the_hottest)
{
	struct lift_census census = {0};
	struct lift_rates rates;
	struct lift_cut cut;

	some_rates(&rates);
	census.slow[HOT] = 100;
	census.slow[WARM] = 100;
	census.nr_slow = 200;
	lift_threshold_cut(&census, &rates, &price, 1000, 0, 120, &cut);
	cr_assert_eq(cut.promote[HOT], 100);
	cr_assert_eq(cut.promote[WARM], 20);
	cr_assert_eq(cut.nr_promote, 120);
}

Test(threshold, uncertain_states_do_not_trade)
{
	struct lift_census census = {0};
	struct lift_rates rates;
	struct lift_cut cut;

	some_rates(&rates);
	rates.low[HOT] = 50;
	census.slow[HOT] = 100;
	census.fast[COLD] = 100;
	census.nr_slow = 100;
	census.nr_fast = 100;
	lift_threshold_cut(&census, &rates, &price, 100, 0, UINT32_MAX, &cut);
	cr_assert_eq(cut.nr_promote, 0);
}

Test(threshold, predicted_pages_are_a_state_like_others)
{
	struct lift_census census = {0};
	struct lift_rates rates;
	struct lift_cut cut;

	some_rates(&rates);
	census.slow[HOT] = 10;
	census.nr_slow = 1000;
	lift_threshold_cut(&census, &rates, &price, 100, 50, UINT32_MAX, &cut);
	cr_assert_eq(cut.promote[LIFT_STATE_PREDICTED], 0);
	set_rates(&rates, LIFT_STATE_PREDICTED, 15000);
	lift_threshold_cut(&census, &rates, &price, 100, 50, UINT32_MAX, &cut);
	cr_assert_eq(cut.promote[LIFT_STATE_PREDICTED], 50);
	cr_assert_eq(cut.nr_promote, 60);
}

Test(threshold, chances_follow_the_length_of_samples)
{
	for (uint32_t p = 0; p <= 4096; p += 64) {
		uint32_t before = 0;

		cr_expect_eq(lift_chance_in(p, 100 * MS, 100 * MS), p);
		for (uint64_t ms = 1; ms <= 1600; ms *= 2) {
			uint32_t now = lift_chance_in(p, 100 * MS, ms * MS);

			cr_expect_geq(now, before, "%u in %lu ms", p, (unsigned long)ms);
			cr_expect_leq(now, 4096);
			before = now;
		}
	}
	/* 1 - (1 - 1/4)^2 and the way back; twice next to nothing */
	cr_expect_lt(abs((int)lift_chance_in(1024, 100 * MS, 200 * MS) - 1792), 24);
	cr_expect_lt(abs((int)lift_chance_in(1792, 200 * MS, 100 * MS) - 1024), 24);
	cr_expect_lt(abs((int)lift_chance_in(40, 100 * MS, 200 * MS) - 80), 8);
	/* Always found is known to be so at its own length only. */
	cr_expect_lt(lift_chance_in(4096, 100 * MS, 50 * MS), 4096);
	cr_expect_eq(lift_chance_in(4096, 100 * MS, 200 * MS), 4096);
	cr_expect_eq(lift_chance_in(0, 100 * MS, 1600 * MS), 0);
}
