#include <string.h>

#include <criterion/criterion.h>

#include "policy/schedule.h"

#define S LIFT_NS_PER_S
#define PPM 30000

static const struct lift_costs costs = {
	.arm_ns = 650,
	.release_ns = 650,
	.scan_ns = 150,
	.fault_ns = 4200,
	.promote_ns = 10000,
	.demote_ns = 10000,
	.gap_ns = 136,
};

static const struct lift_load load = {
	.slow_pages = 30000,
	.fast_pages = 10000,
	.capacity = 10000,
	.slow_p = 200,
	.fast_p = 3000,
};

Test(schedule, waits_for_a_program_that_is_worth_it)
{
	struct lift_schedule s;
	uint64_t sleep = 0;

	lift_schedule_init(&s, &costs, PPM);
	cr_assert_not(lift_schedule_begin(&s, S, S / 2, LIFT_GIB, &load, &sleep));
	cr_assert_gt(sleep, 0);
	cr_assert_not(lift_schedule_begin(&s, 2 * S, 2 * S, 127 * LIFT_MIB, &load, &sleep));
	cr_assert(lift_schedule_begin(&s, 3 * S, 2 * S, 128 * LIFT_MIB, &load, &sleep));
	cr_assert_eq(s.pace, LIFT_PACE_FULL);
}

Test(schedule, does_nothing_where_there_is_nothing_to_gain)
{
	struct lift_load none = load;
	struct lift_schedule s;
	uint64_t sleep = 0;

	lift_schedule_init(&s, &costs, PPM);
	none.slow_pages = 0;
	for (uint64_t t = 2; t < 100; t++)
		cr_assert_not(lift_schedule_begin(&s, t * S, t * S, LIFT_GIB, &none, &sleep));
	none = load;
	none.capacity = 0;
	cr_assert_not(lift_schedule_begin(&s, 101 * S, 101 * S, LIFT_GIB, &none, &sleep));
}

/* Runs passes for @seconds; each pass finds what was predicted. Returns how many there were. */
static unsigned run(struct lift_schedule *s, uint64_t *now, uint64_t *cpu, unsigned seconds,
	unsigned cpu_pct, const struct lift_load *l, struct lift_pass pass)
{
	uint64_t end = *now + seconds * S;
	unsigned passes = 0;

	while (*now < end) {
		uint64_t sleep = 0;

		if (lift_schedule_begin(s, *now, *cpu, LIFT_GIB, l, &sleep)) {
			uint64_t slow = l->slow_pages >> s->slow_shift;
			uint64_t fast = l->fast_pages >> s->fast_shift;

			pass.armed = slow + fast;
			pass.accessed = slow * l->slow_p / 4096 + fast * l->fast_p / 4096;
			pass.released = pass.armed - pass.accessed;
			sleep = s->window_ns;
			*now += sleep;
			*cpu += sleep * cpu_pct / 100;
			lift_schedule_end(s, *now, &pass, l);
			passes++;
			continue;
		}
		cr_assert_gt(sleep, 0);
		*now += sleep;
		*cpu += sleep * cpu_pct / 100;
	}
	return passes;
}

Test(schedule, settles_and_costs_a_share_of_what_the_program_uses)
{
	static const unsigned shares[] = {1, 5, 25, 100};

	for (unsigned i = 0; i < 4; i++) {
		struct lift_pass quiet = {.est_accessed = 8000};
		struct lift_schedule s;
		uint64_t now = S;
		uint64_t cpu = 2 * S;
		uint64_t spent;
		uint64_t used;

		lift_schedule_init(&s, &costs, PPM);
		run(&s, &now, &cpu, 60, shares[i], &load, quiet);
		cr_assert_eq(s.pace, LIFT_PACE_SETTLED);
		spent = s.spent_ns;
		used = cpu;
		cr_assert_gt(run(&s, &now, &cpu, 600, shares[i], &load, quiet), 0);
		cr_assert_leq((s.spent_ns - spent) * 100, (cpu - used) * 2, "%u %%: %f %%",
			shares[i], 100.0 * (double)(s.spent_ns - spent) / (double)(cpu - used));
	}
}

Test(schedule, where_a_look_is_dear_less_is_looked_at_and_not_later)
{
	struct lift_pass quiet = {.est_accessed = 8000};
	struct lift_costs dear = costs;
	struct lift_schedule s;
	uint64_t now = S;
	uint64_t cpu = 2 * S;
	uint64_t spent;
	unsigned passes;

	dear.arm_ns *= 8;
	dear.release_ns *= 8;
	dear.scan_ns *= 8;
	dear.fault_ns *= 8;
	lift_schedule_init(&s, &dear, 8 * PPM);
	run(&s, &now, &cpu, 60, 10, &load, quiet);
	cr_assert_eq(s.pace, LIFT_PACE_SETTLED);
	spent = s.spent_ns;
	passes = run(&s, &now, &cpu, 300, 10, &load, quiet);
	cr_assert(passes >= 25 && passes <= 40, "%u", passes);
	cr_assert_leq((s.spent_ns - spent) * 100, 30 * S * 2);
	/* With next to no CPU time there is nothing to be seen with: every minute is enough. */
	passes = run(&s, &now, &cpu, 600, 1, &load, quiet);
	cr_assert(passes >= 5 && passes <= 15, "%u", passes);
}

Test(schedule, an_idle_program_is_left_alone)
{
	struct lift_pass quiet = {.est_accessed = 8000};
	struct lift_schedule s;
	uint64_t now = S;
	uint64_t cpu = 2 * S;

	lift_schedule_init(&s, &costs, PPM);
	run(&s, &now, &cpu, 60, 100, &load, quiet);
	run(&s, &now, &cpu, 300, 0, &load, quiet);
	cr_assert_eq(run(&s, &now, &cpu, 600, 0, &load, quiet), 0);
}

Test(schedule, keeps_the_budget_however_large_and_lively)
{
	for (unsigned gib = 1; gib <= 64; gib *= 4) {
		struct lift_load l = {
			.slow_pages = gib * 196608,
			.fast_pages = gib * 65536,
			.capacity = gib * 65536,
			.slow_p = 1500,
			.fast_p = 3500,
		};
		/* Never quiet: always at full pace. */
		struct lift_pass busy = {.est_accessed = l.capacity,
			.surprised = true,
			.promoted = 300,
			.demoted = 300};
		struct lift_schedule s;
		uint64_t now = S;
		uint64_t cpu = 2 * S;
		uint64_t spent;

		lift_schedule_init(&s, &costs, PPM);
		run(&s, &now, &cpu, 60, 100, &l, busy);
		spent = s.spent_ns;
		cr_assert_gt(run(&s, &now, &cpu, 60, 100, &l, busy), 5, "%u GiB", gib);
		cr_assert_leq(s.spent_ns - spent, 60 * S / 1000000 * PPM * 11 / 10, "%u GiB: %f",
			gib, (double)(s.spent_ns - spent) / 60e9);
	}
}

Test(schedule, a_surprise_brings_back_full_pace)
{
	struct lift_pass quiet = {.est_accessed = 8000};
	struct lift_pass odd = {.est_accessed = 8000, .surprised = true};
	struct lift_schedule s;
	uint64_t now = S;
	uint64_t cpu = 2 * S;

	lift_schedule_init(&s, &costs, PPM);
	run(&s, &now, &cpu, 120, 50, &load, quiet);
	cr_assert_eq(s.pace, LIFT_PACE_SETTLED);
	cr_assert_gt(s.period_ns, LIFT_PERIOD_MIN_NS);
	lift_schedule_end(&s, now, &odd, &load);
	cr_assert_eq(s.pace, LIFT_PACE_FULL);
	cr_assert_eq(s.period_ns, LIFT_PERIOD_MIN_NS);
	cr_assert(s.want_victims);
}

/* Samples taken while the program waits for something find little, and move nothing. */
Test(schedule, a_lull_is_not_calm)
{
	for (unsigned lulls = 3; lulls <= 20; lulls += 17) {
		struct lift_pass busy = {.est_accessed = 8000, .promoted = 1000};
		struct lift_pass lull = {.est_accessed = 400};
		struct lift_schedule s;
		uint64_t now = S;
		uint64_t cpu = 2 * S;
		uint64_t sleep;

		lift_schedule_init(&s, &costs, PPM);
		cr_assert(lift_schedule_begin(&s, now, cpu, LIFT_GIB, &load, &sleep));
		for (unsigned i = 0; i < 10; i++)
			lift_schedule_end(&s, now += S, &busy, &load);
		for (unsigned i = 0; i < lulls; i++)
			lift_schedule_end(&s, now += S, &lull, &load);
		/* What lasts is how the program is now. */
		cr_expect_eq(s.pace, lulls > 3 ? LIFT_PACE_SETTLED : LIFT_PACE_FULL);
		lift_schedule_end(&s, now += S, &busy, &load);
		if (s.pace == LIFT_PACE_FULL)
			cr_expect_eq(s.settled, 0);
	}
}

/* In which of the next 60 s the next pass begins; 60: in none. */
static unsigned next_in(struct lift_schedule *s, uint64_t now, uint64_t cpu, unsigned cpu_pct)
{
	uint64_t sleep;

	for (unsigned t = 0; t < 60; t++) {
		now += S;
		cpu += S * cpu_pct / 100;
		if (lift_schedule_begin(s, now, cpu, LIFT_GIB, &load, &sleep))
			return t;
	}
	return 60;
}

Test(schedule, what_may_be_a_change_is_looked_at_again_soon)
{
	struct lift_pass quiet = {.est_accessed = 8000};
	struct lift_pass odd = {.armed = 2000, .est_accessed = 90000, .doubtful = true};
	struct lift_schedule s;
	struct lift_schedule poor;
	uint64_t now = S;
	uint64_t cpu = 2 * S;
	uint64_t window_ns;

	lift_schedule_init(&s, &costs, PPM);
	run(&s, &now, &cpu, 60, 2, &load, quiet);
	run(&s, &now, &cpu, 120, 2, &load, quiet);
	cr_assert_eq(s.pace, LIFT_PACE_SETTLED);
	window_ns = s.window_ns;
	lift_schedule_end(&s, now, &quiet, &load);
	s.calm_ns = 0;
	poor = s;
	cr_assert_gt(next_in(&poor, now, cpu, 2), 3);
	lift_schedule_end(&s, now, &odd, &load);
	cr_assert_eq(s.pace, LIFT_PACE_SETTLED);
	cr_assert_eq(s.window_ns, window_ns);
	/* The budget is kept all the same. */
	poor = s;
	poor.bank_ns = -10 * (int64_t)S;
	cr_assert_gt(next_in(&poor, now, cpu, 2), 3);
	cr_assert_leq(next_in(&s, now, cpu, 2), 1);
	/* Once. */
	quiet.armed = 2000;
	lift_schedule_end(&s, now, &quiet, &load);
	cr_assert_gt(next_in(&s, now, cpu, 2), 3);
}

Test(schedule, who_waits_for_cpu_time_sleeps_as_long_as_that_takes)
{
	struct lift_pass quiet = {.est_accessed = 8000};
	struct lift_schedule s;
	uint64_t now = S;
	uint64_t cpu = 2 * S;
	uint64_t end;
	unsigned asked = 0;
	unsigned passes = 0;

	lift_schedule_init(&s, &costs, PPM);
	run(&s, &now, &cpu, 120, 2, &load, quiet);
	cr_assert_eq(s.pace, LIFT_PACE_SETTLED);
	for (end = now + 300 * S; now < end; asked++) {
		uint64_t sleep = S;

		if (lift_schedule_begin(&s, now, cpu, LIFT_GIB, &load, &sleep)) {
			quiet.armed = (load.slow_pages >> s.slow_shift) +
				      (load.fast_pages >> s.fast_shift);
			lift_schedule_end(&s, now, &quiet, &load);
			passes++;
		}
		now += sleep;
		cpu += sleep / 50;
	}
	cr_assert_gt(passes, 5);
	cr_assert_leq(asked, passes * 4, "%u for %u passes", asked, passes);
}

/* Passes in @seconds at full pace in which @paying trades would pay. */
static unsigned hurried(uint32_t budget_ppm, uint64_t paying, unsigned seconds)
{
	struct lift_pass busy = {
		.est_accessed = 8000, .promoted = 500, .demoted = 500, .paying = paying};
	struct lift_schedule s;
	uint64_t now = S;
	uint64_t cpu = 2 * S;

	lift_schedule_init(&s, &costs, budget_ppm);
	s.window_ns = S / 16;
	return run(&s, &now, &cpu, seconds, 100, &load, busy);
}

Test(schedule, passes_that_pay_follow_each_other_as_the_budget_has_it)
{
	unsigned usual = hurried(PPM, 1000, 20);

	/* Everything every second; with the tenfold budget four times, but not if little is to be
	 * moved. */
	cr_assert(usual >= 18 && usual <= 22, "%u", usual);
	cr_assert_geq(hurried(10 * PPM, 1000, 20), 3 * usual);
	cr_assert_leq(hurried(10 * PPM, 50, 20), usual + 4);
}

Test(schedule, faults_cost_no_more_than_the_program_used)
{
	struct lift_pass pass = {.accessed = 1000};
	struct lift_schedule s;

	lift_schedule_init(&s, &costs, PPM);
	cr_assert_eq(lift_schedule_faults(&s, &pass, S), 4200000);
	cr_assert_eq(s.costs.fault_ns, 4200);
	/* Of 2 ms no 1000 faults can have taken 4.2 ms. */
	cr_assert_leq(lift_schedule_faults(&s, &pass, 2000000), 2000000);
	cr_assert(s.costs.fault_ns >= 1000 && s.costs.fault_ns <= 2000, "%u", s.costs.fault_ns);
	cr_assert_leq(lift_schedule_faults(&s, &pass, S), 2000000);
	/* A few say nothing of what one costs, and what the sampler counts is what was taken. */
	pass.accessed = 10;
	cr_assert_leq(lift_schedule_faults(&s, &pass, 5000), 5000);
	cr_assert_geq(s.costs.fault_ns, 1000);
	pass = (struct lift_pass){.accessed = 1000, .faults_known = true};
	cr_assert_eq(lift_schedule_faults(&s, &pass, S), 0);
}

Test(schedule, the_sample_is_as_long_as_the_fast_nodes_are_large)
{
	struct lift_schedule s;
	struct lift_pass pass = {.armed = 10000};
	struct lift_load roomy = load;

	roomy.fits = true;
	lift_schedule_init(&s, &costs, PPM);
	/* Accessed in proportion to time, until it fits. */
	for (unsigned i = 0; i < 12; i++) {
		pass.est_accessed = s.window_ns / 1000;
		lift_schedule_end(&s, S, &pass, &load);
	}
	cr_assert(pass.est_accessed >= 4500 && pass.est_accessed <= 11000, "%lu",
		(unsigned long)pass.est_accessed);
	/* Nothing at all: not longer than half a period. */
	pass.est_accessed = 0;
	for (unsigned i = 0; i < 20; i++)
		lift_schedule_end(&s, S, &pass, &load);
	cr_assert_leq(s.window_ns, LIFT_PERIOD_MIN_NS / 2);
	/* Longer where all fits, and as before when it does not any more. */
	pass.active = true;
	for (unsigned i = 0; i < 20; i++)
		lift_schedule_end(&s, S, &pass, &roomy);
	cr_assert(s.window_ns > S && s.window_ns <= 2 * S);
	lift_schedule_end(&s, S, &pass, &load);
	cr_assert_leq(s.window_ns, S / 2);
	pass.est_accessed = 1 << 30;
	for (unsigned i = 0; i < 40; i++)
		lift_schedule_end(&s, S, &pass, &load);
	cr_assert_geq(s.window_ns, 1000000);
}

Test(schedule, how_often_is_asked_before_it_does_not_pay)
{
	struct lift_schedule s;
	struct lift_load roomy = load;
	uint64_t all = load.slow_pages + load.fast_pages;

	roomy.fits = true;
	roomy.capacity = all * 2;
	lift_schedule_init(&s, &costs, PPM);
	/* Every page in each tenth of a second. */
	for (int pays = 1; pays >= 0; pays--) {
		s.window_ns = 2 * S;
		for (unsigned i = 0; i < 12; i++) {
			struct lift_pass pass = {
				.armed = 10000, .active = true, .paying = pays ? all / 2 : 0};

			pass.est_accessed =
				s.window_ns < S / 10 ? s.window_ns * all / (S / 10) : all;
			lift_schedule_end(&s, S, &pass, &roomy);
		}
		if (pays)
			cr_assert_eq(s.window_ns, 2 * S);
		else
			cr_assert(s.window_ns > S / 20 && s.window_ns < S / 10, "%lu",
				(unsigned long)s.window_ns);
	}
}

Test(schedule, every_part_has_its_turn)
{
	for (unsigned shift = 0; shift <= 8; shift++) {
		for (uint32_t chunk = 0; chunk < 40; chunk++) {
			uint32_t all = 0;
			unsigned nr = 0;

			for (uint32_t pass = 7; pass < 7 + (1u << shift); pass++) {
				uint16_t parts = lift_schedule_parts(pass, chunk, shift);

				cr_assert_eq(all & parts, 0, "shift %u chunk %u", shift, chunk);
				all |= parts;
				nr += parts != 0;
			}
			cr_assert_eq(all, 0xffff, "shift %u chunk %u: %x", shift, chunk, all);
			cr_assert_leq(nr, 1u << shift);
		}
	}
}
