#include "policy/schedule.h"

/*
 * Accounts hold what is saved up in so long; half as much may be owed. Of the budget so much is
 * earned that what is saved up does not exceed it in any minute: 15 s and 3/4 of 60 s.
 */
#define SAVE_NS (15 * LIFT_NS_PER_S)
#define EARN_NUM 3
#define EARN_DEN 4

/* Of the program's own CPU time, once settled. */
#define CALM_PPM 15000

/* A sample is never shorter, since arming takes time, too. */
#define WINDOW_MIN_NS UINT64_C(1000000)
#define WINDOW_START_NS (UINT64_C(125) * 1000000)
/*
 * And never longer. Who looks at the whole process takes no fault for it, but looks rarely; and
 * where all fits there is nothing to be told apart.
 */
#define WINDOW_MAX_NS (LIFT_PERIOD_FULL_NS / 2)
#define WINDOW_LONG_MAX_NS (2 * LIFT_NS_PER_S)

/* What is "lately". */
#define USE_NS LIFT_PERIOD_CALM_NS

/* So many together say what one costs. */
#define FAULTS_ENOUGH 256

/* With less CPU time than this since the last pass there is nothing to be seen. */
#define ASLEEP_NS UINT64_C(5000000)

/* Settled: 1 of 2^4 pages on slow nodes, 1 of 2^5 on fast ones, where each costs a fault. */
#define CALM_SLOW_SHIFT 4
#define CALM_FAST_SHIFT 5
/* Until it is known, a page is taken to be so much dearer there. */
#define CALM_DEARER 4
#define SHIFT_MAX 12

/* Of a chunk no less than 1 of 2^3, but of fewer chunks: a call costs as much as many pages. */
#define LEAST_SHIFT 3

/* Fewer pages on slow nodes than this tell nothing of the others. */
#define SPOT_PAGES 512

/* Passes without change after which it is settled, but not before so many in all. */
#define SETTLE_PASSES 3
#define FULL_PASSES_MIN 5

/* One that found less than such a part of the usual used was at a time when not much went on. */
#define TELLING 2

/* Before all are known as well as each other they cannot be compared: so many passes look at all.
 */
#define KNOW_PASSES 4

/* Moves of less than 1 in this many pages of fast memory are no change ... */
#define QUIET_SHARE 100
/* ... trades that would pay in more than 1 of this many need victims ... */
#define WANT_SHARE 33
/* ... and in more than 1 of this many are a change. */
#define KICK_SHARE 16

void lift_schedule_init(
	struct lift_schedule *s, const struct lift_costs *costs, uint32_t budget_ppm)
{
	memset(s, 0, sizeof(*s));
	s->costs = *costs;
	s->budget_ppm = budget_ppm;
	s->period_ns = LIFT_PERIOD_MIN_NS;
	s->window_ns = WINDOW_START_NS;
	s->dear[LIFT_PACE_FULL] = 256;
}

static int64_t bank_max(const struct lift_schedule *s)
{
	return (int64_t)(SAVE_NS / 1000000 * s->budget_ppm);
}

static uint64_t earned_in(const struct lift_schedule *s, uint64_t ns)
{
	return ns / 1000 * s->budget_ppm / 1000 * EARN_NUM / EARN_DEN;
}

static void learn_use(struct lift_schedule *s, uint64_t dt, uint64_t used)
{
	uint64_t weight = dt < USE_NS ? dt : USE_NS;

	if (dt)
		s->use_ppm =
			(uint32_t)((s->use_ppm * (USE_NS - weight) + used * 1000000 / dt * weight) /
				   USE_NS);
}

static void earn(struct lift_schedule *s, uint64_t now, uint64_t cpu_ns)
{
	uint64_t dt = now > s->last_now ? now - s->last_now : 0;
	uint64_t used = cpu_ns > s->last_cpu ? cpu_ns - s->last_cpu : 0;

	if (dt > SAVE_NS)
		dt = SAVE_NS;
	if (used > dt)
		used = dt;
	learn_use(s, dt, used);
	s->bank_ns += (int64_t)earned_in(s, dt);
	if (s->bank_ns > bank_max(s))
		s->bank_ns = bank_max(s);
	s->calm_ns += (int64_t)(used / 1000 * CALM_PPM / 1000);
	if (s->calm_ns > bank_max(s))
		s->calm_ns = bank_max(s);
	s->last_now = now;
	s->last_cpu = cpu_ns;
}

static uint64_t sampling_cost(const struct lift_schedule *s, uint64_t pages, uint32_t p)
{
	const struct lift_costs *c = &s->costs;

	uint64_t own = pages * (c->arm_ns + c->scan_ns) + pages * (4096 - p) / 4096 * c->release_ns;
	uint32_t dear = s->dear[s->pace] ? s->dear[s->pace] : s->dear[LIFT_PACE_FULL] * CALM_DEARER;

	return own / 256 * dear + pages * p / 4096 * c->fault_ns;
}

static uint64_t predict_cost(const struct lift_schedule *s, const struct lift_load *load)
{
	if (s->costs.whole_ns)
		return (load->slow_pages + load->fast_pages) * s->costs.whole_ns;
	return sampling_cost(s, load->slow_pages >> s->slow_shift, load->slow_p) +
	       (load->slow_only
			       ? 0
			       : sampling_cost(s, load->fast_pages >> s->fast_shift, load->fast_p));
}

/* Before a pass that cannot be made smaller; what takes more than can be saved up is owed. */
static uint64_t must_have(const struct lift_schedule *s, const struct lift_load *load)
{
	uint64_t cost = s->costs.whole_ns ? predict_cost(s, load) : 0;
	uint64_t most = (uint64_t)bank_max(s);

	return cost < most ? cost : most;
}

static void shrink(struct lift_schedule *s, const struct lift_load *load, int64_t have)
{
	/* Less would be no cheaper. */
	if (s->costs.whole_ns)
		return;
	while ((int64_t)predict_cost(s, load) > have && s->slow_shift < SHIFT_MAX) {
		s->slow_shift++;
		s->fast_shift++;
	}
}

/* When a pass at full pace begins: not before what it costs is earned, if that is not long. */
static uint64_t full_due(const struct lift_schedule *s, const struct lift_load *load)
{
	uint64_t each = earned_in(s, LIFT_PERIOD_MIN_NS);
	uint64_t cost = predict_cost(s, load);
	uint64_t ns = LIFT_PERIOD_FULL_NS;

	if (each && cost < each * (LIFT_PERIOD_FULL_NS / LIFT_PERIOD_MIN_NS))
		ns = LIFT_PERIOD_MIN_NS / 1000 * cost / each * 1000;
	return ns > s->period_ns ? s->next_now + ns - s->period_ns : s->next_now;
}

/* When the settled account will have what a pass costs, if the program goes on as it does. */
static uint64_t until_calm(const struct lift_schedule *s, const struct lift_load *load)
{
	int64_t missing = (int64_t)predict_cost(s, load) - s->calm_ns;
	/* Of each second. */
	uint64_t earned = (uint64_t)CALM_PPM * s->use_ppm / 1000 + 1;
	uint64_t ns = missing > 0 ? (uint64_t)missing * 1000 / earned * 1000000 : 0;

	if (ns < LIFT_PERIOD_FULL_NS)
		return LIFT_PERIOD_FULL_NS;
	return ns < LIFT_PERIOD_CALM_NS ? ns : LIFT_PERIOD_CALM_NS;
}

/* What tells whether something has changed may be owed, and is paid out of the budget. */
static bool has_enough(const struct lift_schedule *s, const struct lift_load *load)
{
	int64_t cost = (int64_t)predict_cost(s, load);

	return cost <= s->calm_ns || (s->look_again && cost <= s->bank_ns);
}

/*
 * The settled account has not enough for the usual share. A change is to be seen soon all the same:
 * before long a smaller one will do that still tells something, and later anything there is to
 * spend.
 */
static bool make_do(struct lift_schedule *s, uint64_t now, const struct lift_load *load)
{
	uint64_t since = now - s->next_now + s->period_ns;

	if (since < (s->costs.whole_ns ? LIFT_PERIOD_MAX_NS : LIFT_PERIOD_CALM_NS))
		return false;
	if (s->costs.whole_ns)
		return s->bank_ns >= (int64_t)must_have(s, load);
	shrink(s, load, s->calm_ns);
	if ((int64_t)predict_cost(s, load) > s->calm_ns)
		return false;
	return since >= LIFT_PERIOD_MAX_NS || load->slow_pages >> s->slow_shift >= SPOT_PAGES;
}

bool lift_schedule_begin(struct lift_schedule *s, uint64_t now, uint64_t cpu_ns, uint64_t rss_bytes,
	const struct lift_load *load, uint64_t *ret_sleep_ns)
{
	bool first = s->last_now == 0;
	uint64_t due;

	earn(s, now, cpu_ns);
	if (first)
		s->bank_ns = bank_max(s);
	*ret_sleep_ns = LIFT_PERIOD_FULL_NS;
	if (s->pace == LIFT_PACE_WAIT) {
		if (cpu_ns < LIFT_START_CPU_NS || rss_bytes < LIFT_START_RSS_BYTES)
			return false;
		s->pace = LIFT_PACE_FULL;
	}
	if (now < s->next_now) {
		*ret_sleep_ns = s->next_now - now;
		return false;
	}
	/* All is where it should be, or there is nowhere to go. */
	if (load->slow_pages == 0 || load->capacity == 0) {
		s->settled = 0;
		return false;
	}
	/* A program that sleeps uses nothing, which does not mean that it needs nothing. */
	if (s->pass && cpu_ns < s->pass_cpu + ASLEEP_NS)
		return false;
	if (s->pace == LIFT_PACE_FULL) {
		s->slow_shift = 0;
		s->fast_shift = s->want_victims || s->full < KNOW_PASSES ? 0 : 2;
		if (s->bank_ns < (int64_t)must_have(s, load)) {
			*ret_sleep_ns = LIFT_PERIOD_FULL_NS;
			return false;
		}
		due = full_due(s, load);
		if (now < due) {
			*ret_sleep_ns = due - now;
			return false;
		}
		shrink(s, load, s->bank_ns);
	} else {
		s->slow_shift = s->costs.whole_ns ? 0 : CALM_SLOW_SHIFT;
		s->fast_shift = s->costs.whole_ns ? 0 : CALM_FAST_SHIFT;
		if (!has_enough(s, load)) {
			*ret_sleep_ns = until_calm(s, load);
			if (!make_do(s, now, load))
				return false;
		}
	}
	s->pass++;
	s->pass_cpu = cpu_ns;
	s->look_again = false;
	return true;
}

/* Who looks at the whole process does so rarely: a length that is far off changes by more. */
static void set_window(
	struct lift_schedule *s, struct lift_pass *pass, const struct lift_load *load)
{
	bool whole = s->costs.whole_ns != 0;
	uint64_t all = load->slow_pages + load->fast_pages;
	uint64_t used = pass->est_accessed;
	uint64_t high = load->capacity * 11 / 10;
	uint64_t low = load->capacity * 9 / 20;
	uint64_t most = whole || load->fits ? WINDOW_LONG_MAX_NS : WINDOW_MAX_NS;
	unsigned times = 2;
	bool all_used = used * 10 > all * 9;

	/* It does not fit any more. */
	if (s->window_ns > most)
		s->window_ns = most;
	/* Settled, samples are few and small, and are to be compared with others as long. */
	if (s->pace == LIFT_PACE_SETTLED)
		low /= 2;
	if (pass->armed < 256 || pass->doubtful)
		return;
	/*
	 * What is used anyway need not be told apart if it fits; but of a page that is always found
	 * used nobody knows whether it is so often enough to pay for the move.
	 */
	if ((used > high && load->capacity < all) || (all_used && pass->paying == 0)) {
		if (whole && all_used)
			times = 4;
		for (; times > 1 && s->window_ns / 2 >= WINDOW_MIN_NS; times /= 2)
			s->window_ns /= 2;
		pass->blurred = all_used;
		return;
	}
	/* Half of all is as good a part as any. */
	if (!pass->active || used >= low || used * 2 >= all)
		return;
	if (whole && used * 4 < low)
		times = 4;
	for (; times > 1 && s->window_ns * 2 <= most; times /= 2)
		s->window_ns *= 2;
}

static uint64_t moves_cost(const struct lift_schedule *s, const struct lift_pass *pass)
{
	return pass->promoted * s->costs.promote_ns + pass->demoted * s->costs.demote_ns;
}

/* Promotions for which nothing had to make way. */
static uint64_t into_room(const struct lift_pass *pass)
{
	return pass->promoted > pass->demoted ? pass->promoted - pass->demoted : 0;
}

static uint64_t nr_faults(const struct lift_pass *pass)
{
	return pass->faults_known ? pass->faults : pass->accessed;
}

uint64_t lift_schedule_faults(
	struct lift_schedule *s, const struct lift_pass *pass, uint64_t used_ns)
{
	uint64_t most = used_ns / 8 * 7;
	uint64_t nr = nr_faults(pass);
	uint64_t ns = nr * s->costs.fault_ns;

	if (ns <= most)
		return ns;
	if (nr >= FAULTS_ENOUGH)
		s->costs.fault_ns = (uint32_t)(most / nr) + 1;
	return most;
}

/* What was measured, if it was, and of faults what they are known to cost. */
static uint64_t sampled_cost(const struct lift_schedule *s, const struct lift_pass *pass)
{
	const struct lift_costs *c = &s->costs;
	uint64_t own = pass->spent_ns;

	if (!own)
		own = pass->armed * (c->arm_ns + c->scan_ns) + pass->released * c->release_ns;
	return own + nr_faults(pass) * c->fault_ns;
}

uint64_t lift_schedule_cost(const struct lift_schedule *s, const struct lift_pass *pass)
{
	return sampled_cost(s, pass) + moves_cost(s, pass);
}

/* Bookkeeping is not in the costs, and they may have been measured at a bad moment. */
static void learn_dear(struct lift_schedule *s, const struct lift_pass *pass)
{
	uint64_t own = pass->armed * (s->costs.arm_ns + s->costs.scan_ns) +
		       pass->released * s->costs.release_ns;
	uint64_t dear = own && pass->spent_ns ? pass->spent_ns * 256 / own : 256;
	uint32_t *known = &s->dear[s->pace];

	if (pass->armed < 256)
		return;
	if (dear > 256 * 64)
		dear = 256 * 64;
	*known = (uint32_t)(*known ? (*known * 3 + dear) / 4 : dear);
	if (*known < 64)
		*known = 64;
}

void lift_schedule_end(
	struct lift_schedule *s, uint64_t now, struct lift_pass *pass, const struct lift_load *load)
{
	uint64_t cost = lift_schedule_cost(s, pass);
	uint64_t moved = pass->promoted + pass->demoted;
	int64_t trades;
	int64_t left;
	bool changed = pass->surprised || pass->searching ||
		       (moved << s->slow_shift) * QUIET_SHARE > load->capacity + QUIET_SHARE * 32;

	/* Not before it is known how the use of memory goes up and down. */
	bool hurry = pass->paying * QUIET_SHARE > load->capacity;

	if (s->costs.whole_ns && pass->spent_ns && load->slow_pages + load->fast_pages > 0) {
		uint64_t each = pass->spent_ns / (load->slow_pages + load->fast_pages) + 1;

		s->costs.whole_ns = (uint32_t)((s->costs.whole_ns + each) / 2);
	}
	learn_dear(s, pass);
	s->spent_ns += cost;
	s->fault_ns += nr_faults(pass) * s->costs.fault_ns;
	s->bank_ns -= (int64_t)sampled_cost(s, pass);
	/*
	 * What fills free room is moved once and pays for itself; to be poor afterwards would only
	 * delay what else belongs there. Trades are paid for, as far as there is something to pay
	 * with.
	 */
	trades = (int64_t)(moves_cost(s, pass) - into_room(pass) * s->costs.promote_ns);
	left = s->bank_ns + bank_max(s) / 2;
	s->bank_ns -= trades < left ? trades : left > 0 ? left : 0;
	set_window(s, pass, load);
	if (changed)
		s->settled = 0;
	else if (pass->est_accessed * TELLING >= s->usual)
		s->settled++;
	s->usual = (s->usual * 3 + pass->est_accessed) / 4;
	s->full++;
	s->want_victims = pass->wanted * WANT_SHARE > load->capacity;
	if (s->pace == LIFT_PACE_FULL) {
		if (s->settled >= SETTLE_PASSES && s->full >= FULL_PASSES_MIN) {
			s->pace = LIFT_PACE_SETTLED;
			s->calm_ns = 0;
		}
		s->period_ns = hurry ? LIFT_PERIOD_MIN_NS : LIFT_PERIOD_FULL_NS;
	} else {
		/* Moves pay for themselves, or could not be helped. */
		s->calm_ns -= (int64_t)sampled_cost(s, pass);
		if (pass->surprised || pass->paying * KICK_SHARE > load->capacity) {
			lift_schedule_kick(s);
		} else if (!changed && s->settled % 8 == 0 && s->period_ns < LIFT_PERIOD_CALM_NS) {
			s->period_ns *= 2;
		}
	}
	/*
	 * At least as long as the sample is the program left alone, but where what is found used is
	 * on its way: then each page takes one fault.
	 */
	if (s->window_ns * 2 < s->period_ns)
		s->next_now = now + s->period_ns - s->window_ns;
	else
		s->next_now = now + (load->fits && hurry ? 0 : s->window_ns);
	s->look_again = s->pace == LIFT_PACE_SETTLED && pass->doubtful;
	if (s->look_again && s->next_now > now + LIFT_PERIOD_FULL_NS)
		s->next_now = now + LIFT_PERIOD_FULL_NS;
}

void lift_schedule_kick(struct lift_schedule *s)
{
	if (s->pace == LIFT_PACE_WAIT)
		return;
	s->pace = LIFT_PACE_FULL;
	s->settled = 0;
	s->full = 0;
	s->want_victims = true;
	s->period_ns = LIFT_PERIOD_MIN_NS;
	if (s->next_now > s->last_now + s->period_ns)
		s->next_now = s->last_now + s->period_ns;
}

bool lift_schedule_release(const struct lift_schedule *s, uint32_t p)
{
	uint64_t rest = s->window_ns ? s->period_ns / s->window_ns : 0;
	uint64_t chance = p * rest < 4096 ? p * rest : 4096;

	/* A page that is accessed after all costs its fault, and then is no longer armed. */
	return chance * s->costs.fault_ns > UINT64_C(4096) * s->costs.release_ns;
}

uint32_t lift_schedule_moves(const struct lift_schedule *s)
{
	uint64_t each = (uint64_t)s->costs.promote_ns + s->costs.demote_ns;
	int64_t have = s->bank_ns + bank_max(s) / 2;
	uint64_t nr = have > 0 && each ? (uint64_t)have / each : 0;

	if (nr < 512)
		nr = 512;
	return nr < UINT32_MAX ? (uint32_t)nr : UINT32_MAX;
}

uint16_t lift_schedule_parts(uint32_t pass, uint32_t chunk, unsigned shift)
{
	unsigned rare = shift > LEAST_SHIFT ? shift - LEAST_SHIFT : 0;
	unsigned width = 16u >> (shift - rare);
	uint32_t turn = pass + chunk;
	unsigned start;
	uint32_t bits;

	if (turn & ((UINT32_C(1) << rare) - 1))
		return 0;
	/* 5 is odd, so neighbours look at different parts, and 16 chunks at all of them. */
	start = ((rare ? turn >> rare : pass) * width + chunk * 5) & 15;
	bits = ((UINT32_C(1) << width) - 1) << start;
	return (uint16_t)(bits | bits >> 16);
}
