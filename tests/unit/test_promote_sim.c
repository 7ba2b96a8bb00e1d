/*
 * Promotion as a whole against the fake machine: how much of the accesses goes to fast memory in
 * the end, how soon, and what it costs. Each test prints its figures.
 *
 * The machine is slow (unit costs as measured in a guest under software emulation), so that what
 * pays here pays anywhere: arming 0.65 us a page, a first touch 4.2 us, a scan 0.15 us, a move 10
 * us, and a program that spends 0.25 us on an access.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <criterion/criterion.h>

#include "tests/fake/fake_worker.h"

#define S UINT64_C(1000000000)
/* A sanitizer looks for what no figure shows, and makes all of it twice as slow. */
#ifdef __SANITIZE_ADDRESS__
#define SEEDS 5
#else
#define SEEDS 20
#endif

#define FAST_PAGES 6144u /* 24 MiB */
#define ALL_PAGES (3 * FAST_PAGES)
#define RATE 100000u /* accesses per second: 5.4 for each page */
#define FAST_NS 77
#define SLOW_NS 213

struct sim {
	struct fake_memsys m;
	struct fake_program p;
	struct fake_worker w;
	uint64_t fast; /* counters at the last look */
	uint64_t all;
	uint64_t cost;
	uint64_t cpu;
	uint64_t moves;
};

static void start(struct sim *s, uint32_t run, uint64_t seed)
{
	fake_memsys_init(&s->m, 0x7f0000000000, ALL_PAGES);
	s->m.costs = (struct fake_costs){
		.arm = 650, .release = 650, .scan = 150, .fault = 4200, .move = 10000, .own = 250};
	fake_memsys_node(&s->m, 0, FAST_PAGES, FAST_NS);
	fake_memsys_node(&s->m, 2, ALL_PAGES, SLOW_NS);
	fake_program_init(&s->p, ALL_PAGES, run, RATE, seed);
	s->m.cpu_ns = 2 * S;
}

/* Everything was touched from its first page to its last, the fast node first. */
static void touch_and_track(struct sim *s)
{
	fake_memsys_touch(&s->m, 0, ALL_PAGES);
	fake_worker_init(&s->w, &s->m, &s->p, SLOW_NS - FAST_NS, 30000);
	s->w.rss_bytes = LIFT_GIB;
	s->fast = s->all = s->cost = s->moves = 0;
	s->cpu = s->m.cpu_ns;
}

static void stop(struct sim *s)
{
	cr_assert(lift_heat_check(&s->w.promote.heat));
	fake_worker_fini(&s->w);
	fake_program_fini(&s->p);
	fake_memsys_fini(&s->m);
}

struct figures {
	double share;    /* of accesses to fast memory */
	double cost_pct; /* of the program's own time */
	uint64_t moves;
};

/* Since the last look. */
static struct figures look(struct sim *s)
{
	uint64_t fast = s->m.accesses[0];
	uint64_t all = fast + s->m.accesses[1];
	struct figures f = {
		.share = (double)(fast - s->fast) / (double)(all - s->all),
		.cost_pct =
			100.0 * (double)(s->m.cost_ns - s->cost) / (double)(s->m.cpu_ns - s->cpu),
		.moves = s->m.moves - s->moves,
	};

	s->fast = fast;
	s->all = all;
	s->cost = s->m.cost_ns;
	s->cpu = s->m.cpu_ns;
	s->moves = s->m.moves;
	return f;
}

enum kind { HOT_RUNS, HOT_STRETCHES, ZIPF_RUNS, UNIFORM, HOT_TOO_LARGE };

static const char *const kind_name[] = {"hot runs of 32 KiB", "hot stretches of 2 MiB",
	"zipf over runs of 32 KiB", "uniform", "hot set 1.5 x fast"};

static uint32_t run_of(enum kind kind)
{
	return kind == HOT_STRETCHES ? 512 : kind == UNIFORM ? 1 : 8;
}

static void set_program(struct fake_program *p, enum kind kind)
{
	switch (kind) {
	case HOT_RUNS:
	case HOT_STRETCHES:
		fake_program_hot(p, FAST_PAGES / run_of(kind), 0.95, 0.5);
		break;
	case ZIPF_RUNS:
		fake_program_zipf(p, 0.99);
		break;
	case UNIFORM:
		fake_program_uniform(p);
		break;
	case HOT_TOO_LARGE:
		fake_program_hot(p, FAST_PAGES / 8 * 3 / 2, 0.95, 0.3);
		break;
	}
}

/* Settles, with @seed; figures of the two minutes after the first. */
static struct figures settle(struct sim *s, enum kind kind, uint64_t seed, double *ret_best)
{
	start(s, run_of(kind), seed);
	set_program(&s->p, kind);
	*ret_best = fake_program_best(&s->p, FAST_PAGES);
	touch_and_track(s);
	fake_worker_run(&s->w, 60 * S);
	look(s);
	fake_worker_run(&s->w, 120 * S);
	return look(s);
}

static void settled(enum kind kind, double min_share, double max_cost)
{
	struct figures worst = {.share = 1};
	double sum = 0;

	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		static struct sim s;
		double best;
		struct figures f = settle(&s, kind, seed, &best);

		f.share /= best;
		sum += f.share;
		if (worst.share > f.share)
			worst.share = f.share;
		if (worst.cost_pct < f.cost_pct)
			worst.cost_pct = f.cost_pct;
		if (worst.moves < f.moves)
			worst.moves = f.moves;
		stop(&s);
	}
	fprintf(stderr,
		"# %s: %.1f %% of the best static share (worst of %d: %.1f %%), cost at most %.2f "
		"%% "
		"of the program's own, %lu pages moved in 120 s\n",
		kind_name[kind], 100 * sum / SEEDS, SEEDS, 100 * worst.share, worst.cost_pct,
		(unsigned long)worst.moves);
	cr_expect_geq(worst.share, min_share);
	cr_expect_leq(worst.cost_pct, max_cost);
}

Test(promote_sim, hot_runs_settle, .timeout = 300)
{
	settled(HOT_RUNS, 0.95, 5);
}

Test(promote_sim, hot_stretches_settle, .timeout = 300)
{
	settled(HOT_STRETCHES, 0.95, 5);
}

Test(promote_sim, zipf_settles, .timeout = 300)
{
	settled(ZIPF_RUNS, 0.95, 5);
}

Test(promote_sim, a_hot_set_that_does_not_fit_settles, .timeout = 300)
{
	/* What is hot alike is not worth a move: the share is what matters less here than calm. */
	settled(HOT_TOO_LARGE, 0.85, 5);
}

Test(promote_sim, uniform_access_is_left_alone, .timeout = 300)
{
	uint64_t first = 0;
	uint64_t later = 0;

	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		static struct sim s;
		struct figures f;

		start(&s, run_of(UNIFORM), seed);
		set_program(&s.p, UNIFORM);
		touch_and_track(&s);
		fake_worker_run(&s.w, 60 * S);
		f = look(&s);
		if (first < f.moves)
			first = f.moves;
		for (unsigned minute = 0; minute < 3; minute++) {
			fake_worker_run(&s.w, 60 * S);
			f = look(&s);
			if (later < f.moves)
				later = f.moves;
			cr_expect_leq(
				f.cost_pct, 3, "seed %lu: %f %%", (unsigned long)seed, f.cost_pct);
		}
		stop(&s);
	}
	fprintf(stderr,
		"# uniform: at most %lu of %u pages moved in the first minute, %lu in later ones\n",
		(unsigned long)first, ALL_PAGES, (unsigned long)later);
	cr_expect_leq(later * 20, ALL_PAGES);
}

/* It uses its memory for a third of the time, and computes otherwise: no reason to look anew. */
Test(promote_sim, computing_is_no_change, .timeout = 300)
{
	double worst = 0;
	uint64_t changes = 0;

	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		static struct sim s;
		uint64_t before;

		start(&s, 8, seed);
		s.p.period_ns = 3 * S / 2;
		s.p.busy_ns = S / 2;
		s.p.computes = true;
		s.p.rate = 3 * RATE;
		s.m.costs.own = 1000000000 / s.p.rate;
		set_program(&s.p, ZIPF_RUNS);
		touch_and_track(&s);
		fake_worker_run(&s.w, 60 * S);
		look(&s);
		before = s.w.promote.stats.changes;
		fake_worker_run(&s.w, 120 * S);
		changes += s.w.promote.stats.changes - before;
		worst = fmax(worst, look(&s).cost_pct);
		stop(&s);
	}
	fprintf(stderr, "# use by turns: %lu false alarms in %d x 120 s, cost at most %.2f %%\n",
		(unsigned long)changes, SEEDS, worst);
	cr_expect_leq(changes, SEEDS);
	cr_expect_leq(worst, 3);
}

/*
 * A machine on which looking costs what it does on a host, and a program that is busy: passes
 * follow each other more quickly than on the slow one, and lead to the same.
 */
static void on_a_host(enum kind kind, double min_share, uint64_t max_ms, uint64_t max_moves)
{
	double worst_share = 1;
	uint64_t worst_ms = 0;
	uint64_t worst_moves = 0;

	for (uint64_t seed = 1; seed <= SEEDS / 4; seed++) {
		static struct sim s;
		uint64_t ms = 0;
		double best;
		struct figures f;

		start(&s, run_of(kind), seed);
		s.p.rate = 10 * RATE;
		s.m.costs = (struct fake_costs){.arm = 32,
			.release = 73,
			.scan = 19,
			.fault = 650,
			.move = 1500,
			.own = 250};
		set_program(&s.p, kind);
		best = fake_program_best(&s.p, FAST_PAGES);
		touch_and_track(&s);
		do {
			fake_worker_run(&s.w, S / 4);
			ms += 250;
			f = look(&s);
		} while (f.share < 0.9 * best && ms < 60000);
		if (worst_ms < ms)
			worst_ms = ms;
		fake_worker_run(&s.w, 60 * S);
		look(&s);
		fake_worker_run(&s.w, 60 * S);
		f = look(&s);
		worst_share = fmin(worst_share, f.share / best);
		if (worst_moves < f.moves)
			worst_moves = f.moves;
		cr_expect_leq(f.cost_pct, 5, "seed %lu: %f %%", (unsigned long)seed, f.cost_pct);
		stop(&s);
	}
	fprintf(stderr,
		"# on a host, %s: 90 %% of the best share within %.2f s; after a minute at least "
		"%.1f %%, and at most %lu pages moved a minute\n",
		kind_name[kind], (double)worst_ms / 1000, 100 * worst_share,
		(unsigned long)worst_moves);
	cr_expect_leq(worst_ms, max_ms);
	cr_expect_geq(worst_share, min_share);
	cr_expect_leq(worst_moves, max_moves);
}

Test(promote_sim, is_quick_where_looking_is_cheap, .timeout = 300)
{
	on_a_host(HOT_RUNS, 0.95, 6000, FAST_PAGES / 2);
	on_a_host(ZIPF_RUNS, 0.95, 6000, FAST_PAGES / 2);
	on_a_host(UNIFORM, 0, 60000, ALL_PAGES / 20);
}

static void moves_on(enum kind kind)
{
	unsigned worst_passes = 0;
	uint64_t worst_moves = 0;

	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		static struct sim s;
		double best;
		struct figures before = settle(&s, kind, seed, &best);
		struct figures f;
		unsigned passes = 0;
		uint64_t moves;

		/* Another hot set of the same size. */
		set_program(&s.p, kind);
		moves = s.m.moves;
		do {
			fake_worker_passes(&s.w, 1, 60 * S);
			passes++;
			/* The share that the pass has led to, before the next. */
			look(&s);
			fake_run(&s.m, &s.p, S / 4);
			f = look(&s);
		} while (f.share < 0.9 * before.share && passes < 30);
		if (worst_passes < passes)
			worst_passes = passes;
		if (worst_moves < s.m.moves - moves)
			worst_moves = s.m.moves - moves;
		stop(&s);
	}
	fprintf(stderr, "# %s move on: back within %u passes, with %.2f x the hot set moved\n",
		kind_name[kind], worst_passes, (double)worst_moves / FAST_PAGES);
	cr_expect_leq(worst_passes, 8);
	cr_expect_leq(worst_moves, 2 * FAST_PAGES);
}

Test(promote_sim, follows_hot_runs, .timeout = 300)
{
	moves_on(HOT_RUNS);
}

Test(promote_sim, follows_hot_stretches, .timeout = 300)
{
	moves_on(HOT_STRETCHES);
}

/*
 * Everything starts on the slow node, and nine tenths of what fits is hot, in runs of @run pages.
 * Pages are rarely visited (once in two seconds) and then accessed 30 times in a row, as by a range
 * scan over rows of 128 bytes; @walk pages are visited one after the other. Passes until 90 % of
 * the best share is reached, and what became of predictions.
 */
static unsigned passes_needed(uint32_t run, uint32_t walk, int window, uint64_t seed,
	struct lift_window *ret_window, uint64_t *ret_moves)
{
	static struct sim s;
	unsigned passes;
	double best;

	start(&s, run, seed);
	s.m.costs.own = 1000000000 / RATE; /* never idle, so that passes are as long as samples */
	s.p.walk = walk;
	s.p.dwell = 30;
	fake_program_hot(&s.p, FAST_PAGES * 9 / 10 / run, 0.95, 0.2);
	best = fake_program_best(&s.p, FAST_PAGES);
	s.m.node[0].pages = 0;
	touch_and_track(&s);
	s.m.node[0].pages = FAST_PAGES;
	if (window >= 0)
		lift_window_fix(&s.w.promote.window, (unsigned)window);
	for (passes = 1; passes < 40; passes++) {
		fake_worker_passes(&s.w, 1, 60 * S);
		look(&s);
		fake_run(&s.m, &s.p, S / 2);
		if (look(&s).share >= 0.9 * best)
			break;
	}
	*ret_window = s.w.promote.window;
	*ret_moves = s.m.moves;
	stop(&s);
	return passes;
}

/* Sums over eight seeds: passes with the window and without. */
static void compare_windows(uint32_t walk, unsigned *ret_with, unsigned *ret_without)
{
	uint64_t hit = 0;
	uint64_t wrong = 0;

	*ret_with = *ret_without = 0;
	for (uint64_t seed = 1; seed <= 8; seed++) {
		struct lift_window w;
		uint64_t moves;

		*ret_with += passes_needed(256, walk, -1, seed, &w, &moves);
		hit += w.hit;
		wrong += w.wrong;
		*ret_without += passes_needed(256, walk, 0, seed, &w, &moves);
	}
	fprintf(stderr,
		"# window, scans of %u pages in runs of 256: %.1f passes, %.1f without; "
		"%lu predictions came true, %lu not\n",
		walk, *ret_with / 8.0, *ret_without / 8.0, (unsigned long)hit,
		(unsigned long)wrong);
}

Test(promote_sim, the_window_halves_the_passes_on_sequential_runs, .timeout = 300)
{
	unsigned with;
	unsigned without;

	compare_windows(8, &with, &without);
	cr_expect_leq(with * 2, without);
	/* The more of a run one scan shows, the less there is left to predict. */
	compare_windows(16, &with, &without);
	cr_expect_leq(with * 3, without * 2);
	compare_windows(32, &with, &without);
	cr_expect_leq(with * 4, without * 5);
}

Test(promote_sim, the_window_is_off_on_single_pages, .timeout = 300)
{
	uint64_t wasted = 0;
	uint64_t all = 0;

	for (uint64_t seed = 1; seed <= 8; seed++) {
		struct lift_window w;
		uint64_t moves;

		(void)passes_needed(1, 0, -1, seed, &w, &moves);
		wasted += w.wrong;
		all += moves;
		cr_expect_leq(w.predicted * 20, moves);
		cr_expect_eq(lift_window_bytes(&w), 0);
	}
	fprintf(stderr, "# window, single pages: %lu of %lu moves wasted\n", (unsigned long)wasted,
		(unsigned long)all);
	cr_expect_leq(wasted * 20, all);
}

/*
 * Samplers that see sums: nothing is a fault, and all is looked at each time. @fast_pages of room,
 * all on the slow node at first.
 */
static void start_sums(struct sim *s, uint32_t run, uint64_t fast_pages, uint64_t seed)
{
	start(s, run, seed);
	s->m.costs = (struct fake_costs){.arm = 30, .scan = 200, .move = 10000, .own = 5000};
	s->m.node[0].pages = 0;
	touch_and_track(s);
	s->m.node[0].pages = fast_pages;
	fake_worker_sums(&s->w);
}

Test(promote_sim, sums_find_hot_stretches, .timeout = 300)
{
	unsigned slowest = 0;
	uint64_t most = 0;
	double worst = 1;

	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		static struct sim s;
		unsigned passes = 0;
		double share;
		double best;

		start_sums(&s, 512, FAST_PAGES, seed);
		fake_program_hot(&s.p, FAST_PAGES / 512 * 3 / 4, 0.95, 0.5);
		best = fake_program_best(&s.p, FAST_PAGES);
		do {
			fake_worker_passes(&s.w, 1, 60 * S);
			passes++;
			look(&s);
			fake_run(&s.m, &s.p, S / 4);
			share = look(&s).share / best;
		} while (share < 0.8 && passes < 30);
		if (slowest < passes)
			slowest = passes;
		fake_worker_run(&s.w, 60 * S);
		look(&s);
		fake_worker_run(&s.w, 60 * S);
		share = look(&s).share / best;
		if (worst > share)
			worst = share;
		if (most < s.m.moves)
			most = s.m.moves;
		stop(&s);
	}
	fprintf(stderr,
		"# sums, hot stretches of 2 MiB: 80 %% of the best share within %u passes, at "
		"least %.1f %% later, at most %.2f x the hot set moved\n",
		slowest, 100 * worst, (double)most / (FAST_PAGES * 3 / 4));
	cr_expect_leq(slowest, 16);
	cr_expect_geq(worst, 0.95);
	cr_expect_leq(most, 3 * FAST_PAGES);
}

/* All regions are used alike, and nothing can be told: at least it does no harm. */
Test(promote_sim, sums_of_scattered_heat_do_no_harm, .timeout = 300)
{
	double worst = 1;
	uint64_t most = 0;

	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		static struct sim s;
		struct figures f;
		double before;

		start_sums(&s, 8, FAST_PAGES, seed);
		fake_program_hot(&s.p, FAST_PAGES / 8 * 3 / 4, 0.95, 0.5);
		/* Full from the beginning, with whatever came first. */
		fake_memsys_discard(&s.m, 0, ALL_PAGES);
		fake_memsys_touch(&s.m, 0, ALL_PAGES);
		look(&s);
		fake_run(&s.m, &s.p, 10 * S);
		before = look(&s).share;
		fake_worker_run(&s.w, 60 * S);
		look(&s);
		fake_worker_run(&s.w, 60 * S);
		f = look(&s);
		if (worst > f.share - before)
			worst = f.share - before;
		if (most < f.moves)
			most = f.moves;
		stop(&s);
	}
	fprintf(stderr,
		"# sums, hot runs of 32 KiB: at worst %+.1f %% of accesses, %lu pages moved in the "
		"second minute\n",
		100 * worst, (unsigned long)most);
	cr_expect_geq(worst, -0.02);
}

/* Passes are dear and pages rarely used, each once in four seconds; but there is room for all. */
Test(promote_sim, sums_of_what_fits_come_soon, .timeout = 300)
{
	unsigned slowest = 0;

	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		static struct sim s;
		unsigned passes = 0;

		start_sums(&s, 1, 4 * ALL_PAGES, seed);
		s.m.costs.arm = 1000;
		s.m.costs.scan = 2700;
		s.p.rate = ALL_PAGES / 4;
		s.m.costs.own = 600000000 / s.p.rate;
		fake_program_uniform(&s.p);
		do {
			fake_worker_passes(&s.w, 1, 60 * S);
			passes++;
		} while (s.m.node[0].used < ALL_PAGES * 9 / 10 && passes < 30);
		if (slowest < passes)
			slowest = passes;
		stop(&s);
	}
	fprintf(stderr, "# sums, all fits and is rarely used: on fast memory within %u passes\n",
		slowest);
	cr_expect_leq(slowest, 4);
}

/* Only writes are seen, and the program reads nothing: what is hot fills the room, and all is
 * known. */
Test(promote_sim, what_is_written_fills_the_room_and_the_rest_stays_known, .timeout = 300)
{
	double worst = 1;

	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		static struct sim s;
		uint64_t hot = FAST_PAGES / 2;
		double share;

		start(&s, 8, seed);
		s.m.node[0].pages = 0;
		touch_and_track(&s);
		s.m.node[0].pages = FAST_PAGES;
		s.w.promote.writes_only = true;
		fake_program_hot(&s.p, (uint32_t)hot / 8, 0.95, 0.5);
		fake_worker_run(&s.w, 60 * S);
		cr_expect_eq(
			s.w.promote.stats.slow_pages + s.w.promote.stats.fast_pages, ALL_PAGES);
		look(&s);
		fake_worker_run(&s.w, 60 * S);
		share = look(&s).share / fake_program_best(&s.p, FAST_PAGES);
		if (worst > share)
			worst = share;
		/* Another hot set, and no room: what is there may be read, for all that is known.
		 */
		fake_program_hot(&s.p, (uint32_t)hot / 8, 0.95, 0.5);
		fake_worker_run(&s.w, 60 * S);
		cr_expect_eq(s.w.promote.stats.moves.demoted, 0);
		stop(&s);
	}
	fprintf(stderr, "# only writes are seen: %.1f %% of the best share at least\n",
		100 * worst);
	cr_expect_geq(worst, 0.95);
}

/* The hot set moves on each ten seconds, too soon for moves to pay at this machine's prices. */
Test(promote_sim, what_changes_all_the_time_is_not_chased, .timeout = 300)
{
	static struct sim s;
	struct figures f;
	uint64_t first;

	start(&s, 8, 1);
	set_program(&s.p, HOT_RUNS);
	touch_and_track(&s);
	for (unsigned i = 0; i < 12; i++) {
		fake_worker_run(&s.w, 10 * S);
		set_program(&s.p, HOT_RUNS);
	}
	first = look(&s).moves;
	for (unsigned i = 0; i < 12; i++) {
		fake_worker_run(&s.w, 10 * S);
		set_program(&s.p, HOT_RUNS);
	}
	f = look(&s);
	fprintf(stderr,
		"# hot set moves on each 10 s: %.1f %% of accesses fast, %lu then %lu pages in 120 "
		"s\n",
		100 * f.share, (unsigned long)first, (unsigned long)f.moves);
	cr_expect_leq(f.moves, 12 * 2 * FAST_PAGES);
	stop(&s);
}

/* Two halves of a set that would fit one at a time take turns. */
Test(promote_sim, ping_pong_cools_down, .timeout = 300)
{
	static struct sim s;
	uint64_t moves[3];

	start(&s, 8, 1);
	fake_program_hot(&s.p, FAST_PAGES / 8, 0.95, 0.1);
	touch_and_track(&s);
	for (unsigned part = 0; part < 3; part++) {
		for (unsigned i = 0; i < 60; i++) {
			/* The same two sets each time. */
			fake_random_seed(&s.p.random, 1 + i % 2);
			fake_program_hot(&s.p, FAST_PAGES / 8, 0.95, 0.1);
			fake_worker_run(&s.w, 3 * S);
		}
		moves[part] = look(&s).moves;
	}
	fprintf(stderr,
		"# ping-pong each 3 s: %lu, %lu, %lu pages moved in 180 s each, %lu bounced\n",
		(unsigned long)moves[0], (unsigned long)moves[1], (unsigned long)moves[2],
		(unsigned long)s.w.promote.stats.moves.bounced);
	/* Chasing it would be both sets each time: 60 times. */
	cr_expect_leq(moves[1], 6 * FAST_PAGES);
	cr_expect_leq(moves[2], 6 * FAST_PAGES);
	stop(&s);
}

/* Each way in which a move can fail, for a third of all pages; then the rest moves all the same. */
Test(promote_sim, moves_that_fail, .timeout = 300)
{
	static const int errors[] = {-EBUSY, -ENOENT, -EFAULT, -EACCES, -EPERM, -EIO};

	for (size_t e = 0; e < sizeof(errors) / sizeof(errors[0]); e++) {
		static struct sim s;
		const struct lift_counts *n = &s.w.promote.stats.moves;
		uint64_t steps;
		struct figures f;

		start(&s, 8, 1);
		set_program(&s.p, HOT_RUNS);
		touch_and_track(&s);
		for (uint32_t i = 0; i < ALL_PAGES; i += 3)
			fake_memsys_refuse(&s.m, i, errors[e], UINT16_MAX);
		fake_worker_run(&s.w, 60 * S);
		look(&s);
		steps = s.w.steps;
		fake_worker_run(&s.w, 60 * S);
		f = look(&s);
		cr_expect_gt(f.share, 0.55, "%d: %f", errors[e], f.share);
		cr_expect_gt(n->busy + n->absent + n->stuck + n->other, 0);
		cr_expect_leq(s.w.steps - steps, 6000, "%d: %lu steps", errors[e],
			(unsigned long)(s.w.steps - steps));
		stop(&s);
	}
}

Test(promote_sim, pages_that_are_busy_for_a_while_come_later, .timeout = 300)
{
	double worst = 1;
	double sum = 0;

	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		static struct sim s;
		double share;

		start(&s, 8, seed);
		set_program(&s.p, HOT_RUNS);
		touch_and_track(&s);
		for (uint32_t i = 0; i < ALL_PAGES; i += 2)
			fake_memsys_refuse(&s.m, i, -EBUSY, 2);
		fake_worker_run(&s.w, 180 * S);
		look(&s);
		fake_worker_run(&s.w, 20 * S);
		share = look(&s).share;
		sum += share;
		if (worst > share)
			worst = share;
		stop(&s);
	}
	fprintf(stderr,
		"# every other page is busy twice: %.1f %% of accesses after three minutes, %.1f "
		"%% at worst\n",
		100 * sum / SEEDS, 100 * worst);
	cr_expect_gt(sum / SEEDS, 0.85);
	cr_expect_geq(worst, 0.75);
}

/* Somebody else takes all of the fast node, and gives it back; then the node goes away. */
Test(promote_sim, nodes_fill_and_go, .timeout = 300)
{
	static struct sim s;
	uint64_t promoted;
	uint64_t steps;

	start(&s, 8, 1);
	set_program(&s.p, HOT_RUNS);
	fake_memsys_touch(&s.m, 0, ALL_PAGES);
	touch_and_track(&s);
	s.m.node[1].pages = s.m.node[1].used; /* nothing can be demoted */
	fake_worker_run(&s.w, 30 * S);
	cr_expect_eq(s.w.promote.stats.moves.promoted, 0);
	s.m.node[1].pages = ALL_PAGES;
	lift_schedule_kick(&s.w.promote.schedule);
	fake_worker_run(&s.w, 30 * S);
	promoted = s.w.promote.stats.moves.promoted;
	cr_expect_gt(promoted, FAST_PAGES / 3);

	s.m.node[0].gone = true;
	steps = s.w.steps;
	set_program(&s.p, HOT_RUNS);
	fake_worker_run(&s.w, 60 * S);
	cr_expect_eq(s.w.promote.stats.moves.promoted, promoted);
	cr_expect_leq(s.w.steps - steps, 6000);
	stop(&s);
}

/* All of it on the slow node, and the fast one free. */
static void start_slow(struct sim *s, uint64_t fast_pages)
{
	start(s, 8, 1);
	set_program(&s->p, HOT_RUNS);
	s->m.node[0].pages = 0;
	touch_and_track(s);
	s->m.node[0].pages = fast_pages;
}

Test(promote_sim, where_all_fits_fast_pages_are_left_alone, .timeout = 300)
{
	static struct sim s;
	uint64_t faults;

	start_slow(&s, 2 * ALL_PAGES);
	/* So that something is left to be looked at. */
	for (uint32_t i = 0; i < ALL_PAGES; i += 64)
		fake_memsys_refuse(&s.m, i, -EBUSY, UINT16_MAX);
	fake_worker_run(&s.w, 60 * S);
	look(&s);
	faults = s.m.faults;
	fake_worker_run(&s.w, 60 * S);
	faults = s.m.faults - faults;
	fprintf(stderr, "# all fits: %lu faults in a minute\n", (unsigned long)faults);
	cr_expect_gt(look(&s).share, 0.95);
	cr_expect_leq(faults, ALL_PAGES / 64);
	stop(&s);
}

/* Then it has to be found out what on fast nodes makes way. */
Test(promote_sim, what_fits_grows, .timeout = 300)
{
	static struct sim s;
	uint32_t some = FAST_PAGES * 3 / 4;
	struct lift_range rest;
	double share;

	start_slow(&s, FAST_PAGES);
	rest = (struct lift_range){s.m.base + some * FAKE_PAGE, s.m.base + ALL_PAGES * FAKE_PAGE};
	fake_memsys_discard(&s.m, some, ALL_PAGES);
	lift_promote_forget(&s.w.promote, rest);
	fake_worker_run(&s.w, 60 * S);
	look(&s);
	fake_worker_run(&s.w, 10 * S);
	cr_expect_gt(look(&s).share, 0.99);

	fake_memsys_touch(&s.m, some, ALL_PAGES);
	lift_promote_add(&s.w.promote, rest);
	fake_worker_run(&s.w, 60 * S);
	look(&s);
	fake_worker_run(&s.w, 60 * S);
	share = look(&s).share;
	fprintf(stderr, "# what fits grows to three times as much: %.1f %%\n", 100 * share);
	cr_expect_gt(share, 0.9 * fake_program_best(&s.p, FAST_PAGES));
	stop(&s);
}

/* There is room for all, and then somebody else takes it while pages are moved. */
Test(promote_sim, room_that_others_take_is_not_asked_for, .timeout = 300)
{
	static struct sim s;

	start_slow(&s, FAST_PAGES);
	s.w.headroom_pages = FAST_PAGES / 4;
	s.m.others_take = 512;
	fake_worker_run(&s.w, 30 * S);
	cr_expect_gt(s.w.promote.stats.moves.promoted, FAST_PAGES / 4);
	cr_expect_eq(s.w.promote.stats.moves.full, 0, "%lu",
		(unsigned long)s.w.promote.stats.moves.full);
	s.m.others_take = 0;
	stop(&s);
}

/* Calls that fail now and then, for every reason. */
Test(promote_sim, calls_that_fail, .timeout = 300)
{
	static const int errors[] = {-ENODEV, -EACCES, -ENOMEM, -EINTR, -EINVAL};

	for (size_t e = 0; e < sizeof(errors) / sizeof(errors[0]); e++) {
		static struct sim s;

		start(&s, 8, 1);
		set_program(&s.p, HOT_RUNS);
		touch_and_track(&s);
		for (unsigned i = 0; i < 40; i++) {
			s.m.fail_move = 2;
			s.m.fail_rc = errors[e];
			fake_worker_run(&s.w, 2 * S);
		}
		look(&s);
		fake_worker_run(&s.w, 20 * S);
		cr_expect_gt(look(&s).share, 0.8, "%d", errors[e]);
		cr_expect_gt(s.w.promote.stats.moves.failed_calls, 0);
		stop(&s);
	}
	/* Forbidden altogether: found out once, then only looked at. */
	for (unsigned k = 0; k < 2; k++) {
		static struct sim s;

		start(&s, 8, 1);
		set_program(&s.p, HOT_RUNS);
		touch_and_track(&s);
		s.m.fail_move = 1;
		s.m.fail_rc = k ? -EPERM : -ENOSYS;
		fake_worker_run(&s.w, 60 * S);
		cr_expect_eq(s.m.move_calls, 1);
		cr_expect(s.w.promote.track_only);
		stop(&s);
	}
}

Test(promote_sim, memory_comes_and_goes, .timeout = 300)
{
	static struct sim s;
	uint64_t known;

	start(&s, 8, 1);
	set_program(&s.p, HOT_RUNS);
	touch_and_track(&s);
	fake_worker_run(&s.w, 20 * S);
	/* Discarded: found out by looking. */
	fake_memsys_discard(&s.m, 0, ALL_PAGES / 4);
	fake_worker_run(&s.w, 300 * S);
	known = s.w.promote.stats.slow_pages + s.w.promote.stats.fast_pages;
	cr_expect_leq(known, ALL_PAGES * 4 / 5, "%lu", (unsigned long)known);
	/* Unmapped: told. */
	lift_promote_forget(&s.w.promote,
		(struct lift_range){s.m.base, s.m.base + (uintptr_t)ALL_PAGES / 2 * FAKE_PAGE});
	fake_memsys_discard(&s.m, ALL_PAGES / 4, ALL_PAGES / 2);
	fake_worker_run(&s.w, 10 * S);
	known = s.w.promote.stats.slow_pages + s.w.promote.stats.fast_pages;
	cr_expect_leq(known, ALL_PAGES / 2);
	/* New memory in the same place. */
	fake_memsys_touch(&s.m, 0, ALL_PAGES / 2);
	lift_promote_add(&s.w.promote,
		(struct lift_range){s.m.base, s.m.base + (uintptr_t)ALL_PAGES / 2 * FAKE_PAGE});
	fake_worker_run(&s.w, 60 * S);
	known = s.w.promote.stats.slow_pages + s.w.promote.stats.fast_pages;
	cr_expect_eq(known, ALL_PAGES);
	stop(&s);
}

Test(promote_sim, tracking_moves_nothing, .timeout = 300)
{
	static struct sim s;

	start(&s, 8, 1);
	set_program(&s.p, HOT_RUNS);
	touch_and_track(&s);
	s.w.promote.track_only = true;
	fake_worker_run(&s.w, 60 * S);
	cr_expect_eq(s.m.move_calls, 0);
	cr_expect_gt(s.w.promote.stats.passes, 5);
	cr_expect_gt(s.w.promote.stats.wanted, 0);
	stop(&s);
}

Test(promote_sim, a_limit_on_fast_memory_is_kept, .timeout = 300)
{
	static struct sim s;

	start(&s, 8, 1);
	set_program(&s.p, HOT_RUNS);
	touch_and_track(&s);
	s.w.fast_limit_pages = FAST_PAGES / 2;
	fake_worker_run(&s.w, 60 * S);
	cr_expect_leq(s.m.node[0].used, FAST_PAGES / 2);
	cr_expect_gt(s.m.node[0].used, FAST_PAGES / 2 - 200);
	stop(&s);
}

/* The whole account: budget over any minute, at full pace, whatever the size of the memory. */
Test(promote_sim, metadata_is_a_thousandth, .timeout = 300)
{
	static struct sim s;

	start(&s, 8, 1);
	set_program(&s.p, HOT_RUNS);
	touch_and_track(&s);
	fprintf(stderr, "# metadata: %zu bytes for %lu tracked (%.3f %%), and %zu fixed\n",
		s.w.mem_bytes, (unsigned long)ALL_PAGES * FAKE_PAGE,
		100.0 * (double)s.w.mem_bytes / ((double)ALL_PAGES * FAKE_PAGE),
		sizeof(struct lift_promote));
	cr_expect_leq(s.w.mem_bytes + sizeof(struct lift_promote),
		(uint64_t)ALL_PAGES * FAKE_PAGE / 1000 + LIFT_MIB);
	stop(&s);
}

static unsigned by_halves(const struct fake_worker *w, uint32_t page)
{
	(void)w;
	return page < ALL_PAGES / 2 ? 2 : 0;
}

static unsigned by_pages(const struct fake_worker *w, uint32_t page)
{
	(void)w;
	return (page * 2654435761u >> 31) * 2;
}

/* Two fast nodes: of the pages on them, how many are on the one from which they are used? */
static double at_home(unsigned (*user)(const struct fake_worker *w, uint32_t page), bool asks,
	uint64_t seed, struct sim *s)
{
	uint64_t fast = 0;
	uint64_t home = 0;

	start(s, 8, seed);
	s->m.node[0].pages = FAST_PAGES / 2;
	fake_memsys_node(&s->m, 5, FAST_PAGES / 2, FAST_NS);
	set_program(&s->p, HOT_RUNS);
	/* All on the slow node. */
	s->m.node[0].gone = s->m.node[2].gone = true;
	fake_memsys_touch(&s->m, 0, ALL_PAGES);
	s->m.node[0].gone = s->m.node[2].gone = false;
	fake_worker_init(&s->w, &s->m, &s->p, SLOW_NS - FAST_NS, 30000);
	s->w.rss_bytes = LIFT_GIB;
	s->w.fast_nodes = 1 | 4;
	s->w.user = asks ? user : NULL;
	fake_worker_run(&s->w, 60 * S);
	for (uint32_t i = 0; i < ALL_PAGES; i++) {
		if (s->m.page[i].node == 1)
			continue;
		fast++;
		home += (unsigned)s->m.page[i].node == user(&s->w, i);
	}
	cr_expect_geq(fast, FAST_PAGES * 9 / 10);
	return (double)home / (double)fast;
}

Test(promote_sim, pages_go_to_who_uses_them, .timeout = 300)
{
	double worst = 1;
	double not_asked = 0;
	unsigned most = 0;
	unsigned shared = 0;

	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		static struct sim s;
		double home = at_home(by_halves, true, seed, &s);

		if (worst > home)
			worst = home;
		if (most < s.w.questions)
			most = s.w.questions;
		stop(&s);
		not_asked += at_home(by_halves, false, seed, &s) / SEEDS;
		cr_expect_eq(s.w.questions, 0);
		stop(&s);
		(void)at_home(by_pages, true, seed, &s);
		if (shared < s.w.questions)
			shared = s.w.questions;
		stop(&s);
	}
	fprintf(stderr,
		"# two fast nodes: %.1f %% of the pages at least on the one whose threads use "
		"them, "
		"after %u questions at most; without them %.1f %%; shared memory: %u questions\n",
		100 * worst, most, 100 * not_asked, shared);
	cr_expect_geq(worst, 0.9);
	cr_expect_leq(not_asked, 0.6);
	cr_expect_leq(shared, 60);
}

/* Whatever happens in whatever order, the records stay consistent and the worker gets its sleep. */
Test(promote_sim, anything_in_any_order, .timeout = 300)
{
	for (uint64_t seed = 1; seed <= 6; seed++) {
		static struct sim s;
		struct fake_random r;

		fake_random_seed(&r, seed);
		start(&s, 8, seed);
		fake_memsys_node(&s.m, 5, FAST_PAGES / 2, FAST_NS);
		set_program(&s.p, HOT_RUNS);
		touch_and_track(&s);
		s.w.fast_nodes = 1 | 4;
		for (unsigned i = 0; i < 200; i++) {
			uint32_t from = fake_random_below(&r, ALL_PAGES);
			uint32_t to = from + fake_random_below(&r, ALL_PAGES - from);
			struct lift_range range = {s.m.base + (uintptr_t)from * FAKE_PAGE,
				s.m.base + (uintptr_t)to * FAKE_PAGE};

			switch (fake_random_below(&r, 8)) {
			case 0:
				lift_promote_forget(&s.w.promote, range);
				fake_memsys_discard(&s.m, from, to);
				break;
			case 1:
				lift_promote_add(&s.w.promote, range);
				fake_memsys_touch(&s.m, from, to);
				break;
			case 2:
				fake_memsys_refuse(&s.m, from, -EBUSY, 3);
				s.m.fail_move = fake_random_below(&r, 3);
				s.m.fail_rc = -EINTR;
				break;
			case 3:
				lift_promote_describe(
					&s.w.promote, range.start, fake_random_below(&r, 2), 5);
				break;
			case 4:
				s.m.node[0].gone = !s.m.node[0].gone;
				break;
			case 5:
				lift_promote_restart(&s.w.promote);
				break;
			case 6:
				s.w.fast_limit_pages =
					fake_random_below(&r, 2) ? UINT64_MAX : FAST_PAGES / 3;
				break;
			default:
				fake_memsys_touch(&s.m, from, to);
				break;
			}
			fake_worker_run(&s.w, S / 10 + fake_random_below(&r, 1000000000));
			cr_assert(lift_heat_check(&s.w.promote.heat), "seed %lu step %u",
				(unsigned long)seed, i);
		}
		cr_expect_gt(s.w.promote.stats.passes, 50);
		cr_expect_leq(s.w.steps, 200 * 100);
		stop(&s);
	}
}
