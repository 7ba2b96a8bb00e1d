#include "policy/promote.h"

#include <errno.h>

enum phase { IDLE, WHERE, ARM, WINDOW, COLLECT, RELEASE, ASK, MOVE };

#define MARGIN_PCT 150
#define RESIDENCE_START_NS (60 * LIFT_NS_PER_S)
#define RESIDENCE_MIN_NS (2 * LIFT_NS_PER_S)
#define RESIDENCE_MAX_NS (300 * LIFT_NS_PER_S)

/* What states are worth is learned from so many observations, if there are not more in a pass. */
#define KEEP_LEAST 512

/* What became of moves is judged by at least so many observations, and not before one in so many
 * as pages have been traded since the last time. */
#define JUDGE_ENOUGH 256u
#define JUDGE_MOVES 4

/* Of every so many chunks one is located anew in each pass: others move pages, too. */
#define RELOCATE_SHARE 64

/*
 * For so many pages promoted on their own merits one may go with them in advance, and for each that
 * was right so many more.
 */
#define GUESS_START 1
#define GUESS_SHARE 4

/* None goes in so many passes after the program began something else: heat has other borders then.
 */
#define GUESS_PASSES 3

/* More than one in so many pages come or gone is a change. */
#define CHANGE_SHARE 8

/* A sample is taken to be as busy as one of between these parts and times of its length. */
#define BUSY_LEAST 16
#define BUSY_MOST 4

/* What faults take is known roughly: to one in so many parts, and no more than all but one in so
 * many parts of a sample. */
#define FAULTS_UNSURE 4
#define FAULTS_MOST 16

/* Accesses come in runs: so many pages used together. */
#define SURE_RUNS 6

/* Samples in which the program used less than this part of their length are next to none. */
#define SHORT_PART 4

/* After so many it is known what to expect of samples. */
#define SURE_PASSES 4

/* A sample in which less than one in so many pages was used says nothing about the others. */
#define ACTIVE_SHARE 512

/* Where all fits, so much of a region used counts as all of it: nothing is to be told apart. */
#define FITS_SHARE 8

/* Room for all is what leaves so much of it, and so many pages, free. */
#define ROOMY_SHARE 8
#define ROOMY_PAGES 1024

/* A question takes no longer than so many samples. */
#define ASK_SAMPLES 2

/* Samples of a chunk without anything in use, for each halving of the share that is looked at. */
#define QUIET_SAMPLES 4
#define QUIET_SHIFT_MAX 3

int lift_promote_init(struct lift_promote *p, void *mem, size_t bytes, uint32_t chunks,
	uint32_t detailed, const struct lift_costs *costs, uint32_t budget_ppm)
{
	memset(p, 0, sizeof(*p));
	lift_schedule_init(&p->schedule, costs, budget_ppm);
	lift_calib_init(&p->calib, p->schedule.window_ns);
	lift_calib_rates(&p->calib, &p->rates);
	lift_window_init(&p->window);
	p->price = (struct lift_price){
		.promote_ns = costs->promote_ns,
		.demote_ns = costs->demote_ns,
		.gap_ns = costs->gap_ns,
		.margin_pct = MARGIN_PCT,
		.residence_ns = RESIDENCE_START_NS,
		.room_ns = RESIDENCE_MAX_NS,
	};
	p->duty = 4096;
	p->grain = 1;
	/* Unknown is taken to be lively, which is the dear side to err on. */
	p->load.slow_p = 1024;
	p->load.fast_p = 2048;
	return lift_heat_init(&p->heat, mem, bytes, chunks, detailed);
}

void lift_promote_add(struct lift_promote *p, struct lift_range range)
{
	uintptr_t base = range.start & ~(uintptr_t)(LIFT_CHUNK_BYTES - 1);

	if (lift_range_empty(range))
		return;
	while (base < range.end) {
		struct lift_chunk *c = lift_heat_add(&p->heat, base);

		if (!c)
			break;
		c->flags |= LIFT_CHUNK_UNKNOWN;
		if (base > UINTPTR_MAX - LIFT_CHUNK_BYTES)
			break;
		base += LIFT_CHUNK_BYTES;
	}
}

void lift_promote_forget(struct lift_promote *p, struct lift_range range)
{
	lift_heat_forget(&p->heat, range);
}

void lift_promote_restart(struct lift_promote *p)
{
	for (uint32_t n = 0; n < p->heat.nr_chunks; n++) {
		struct lift_chunk *c = &p->heat.chunk[n];

		memset(c->armed, 0, sizeof(c->armed));
		memset(c->accessed, 0, sizeof(c->accessed));
		memset(c->seen, 0, sizeof(c->seen));
	}
	p->phase = IDLE;
}

static bool some(const uint64_t *map)
{
	for (unsigned i = 0; i < LIFT_CHUNK_WORDS; i++)
		if (map[i])
			return true;
	return false;
}

/* What the headroom leaves. */
static uint64_t room_on(const struct lift_promote_node *n)
{
	return n->usable && n->free_pages > n->headroom_pages ? n->free_pages - n->headroom_pages
							      : 0;
}

/*
 * Pages on fast nodes are sampled to find out which ones make way. Where there is room for all, and
 * some more, none has to. Who looks at everything anyway does so for free.
 */
static bool nothing_makes_way(const struct lift_promote *p, uint64_t room)
{
	uint64_t more = p->load.slow_only ? 0 : p->load.slow_pages / ROOMY_SHARE + ROOMY_PAGES;

	return p->grain == 1 && p->load.slow_pages + more <= room;
}

/* What the machine looks like now. Room is what the headroom and the limit leave. */
static void read_slots(struct lift_promote *p, const struct lift_promote_now *now)
{
	uint64_t limit = now->fast_limit_pages;
	uint64_t ours = p->load.fast_pages;
	uint64_t left = limit > ours ? limit - ours : 0;
	uint64_t fast = 0;
	uint64_t slow = 0;
	uint64_t room = 0;

	p->nodes_ns = now->nodes_ns;
	p->nr_slots = now->nr_nodes < LIFT_SLOTS ? now->nr_nodes : LIFT_SLOTS;
	for (unsigned i = 0; i < p->nr_slots; i++) {
		const struct lift_promote_node *n = &now->node[i];
		struct lift_slot *s = &p->slot[i];

		*s = (struct lift_slot){
			.node = n->node, .fast = n->fast, .usable = n->usable, .room = room_on(n)};
		if (n->fast) {
			fast |= UINT64_C(1) << i;
			if (s->room > left)
				s->room = left;
			left -= s->room;
			room += s->room;
		} else {
			slow |= UINT64_C(1) << i;
		}
	}
	lift_heat_set_tiers(&p->heat, fast, slow);
	p->load.capacity = ours + room < limit ? ours + room : limit;
	room = p->load.capacity > ours ? p->load.capacity - ours : 0;
	p->load.fits = p->load.slow_pages <= room;
	p->load.slow_only = p->writes_only || nothing_makes_way(p, room);
	/* Nothing will be moved; samples should tell the busier half from the other. */
	if (p->track_only && p->load.capacity == 0)
		p->load.capacity = (p->load.slow_pages + ours) / 2;
}

static void take_census(struct lift_promote *p)
{
	const struct lift_census *census = &p->heat.census;

	p->load.slow_pages = census->nr_slow;
	p->load.fast_pages = census->nr_fast;
	p->stats.slow_pages = census->nr_slow;
	p->stats.fast_pages = census->nr_fast;
	p->stats.cooling_pages = census->cooling;
	p->stats.stuck_pages = census->nr_stuck;
}

/*
 * Others allocate while pages are moved, and a kernel that finds nothing when it moves a page
 * complains. Only less: what a node refused in this pass is not tried again.
 */
static void look_for_room_again(struct lift_promote *p, const struct lift_promote_now *now)
{
	if (now->nodes_ns == p->nodes_ns)
		return;
	p->nodes_ns = now->nodes_ns;
	for (unsigned i = 0; i < p->nr_slots && i < now->nr_nodes; i++) {
		uint64_t room = room_on(&now->node[i]);

		if (p->slot[i].room > room)
			p->slot[i].room = room;
	}
}

static bool has_absent(const struct lift_heat *h, const struct lift_chunk *c)
{
	for (unsigned i = 0; i < LIFT_CHUNK_PAGES; i++)
		if ((lift_heat_where(h, c, i) & LIFT_WHERE_MASK) == LIFT_WHERE_ABSENT)
			return true;
	return false;
}

/* Chunks of which it is not known any more where their pages are. */
static void doubt(struct lift_promote *p, uint64_t rss)
{
	struct lift_heat *h = &p->heat;
	uint32_t nr = h->nr_chunks / RELOCATE_SHARE + 1;

	for (; nr && h->nr_chunks; nr--)
		h->chunk[p->where_at++ % h->nr_chunks].flags |= LIFT_CHUNK_UNKNOWN;
	if (rss <= p->rss_at + p->rss_at / 64)
		return;
	for (uint32_t n = 0; n < h->nr_chunks; n++)
		if (has_absent(h, &h->chunk[n]))
			h->chunk[n].flags |= LIFT_CHUNK_UNKNOWN;
	p->rss_at = rss;
}

static void go(struct lift_promote *p, enum phase phase)
{
	p->phase = (int)phase;
	p->at = 0;
	p->page_at = 0;
}

static bool put(struct lift_work *work, uintptr_t start, uintptr_t end)
{
	if (work->nr && work->range[work->nr - 1].end == start) {
		work->range[work->nr - 1].end = end;
		return true;
	}
	if (work->nr == LIFT_WORK_RANGES)
		return false;
	work->range[work->nr++] = (struct lift_range){start, end};
	return true;
}

/* The first page from @i on whose bit is @value, or LIFT_CHUNK_PAGES. */
static unsigned next_bit(const uint64_t *map, unsigned i, bool value)
{
	while (i < LIFT_CHUNK_PAGES) {
		uint64_t w = (value ? map[i / 64] : ~map[i / 64]) >> i % 64;

		if (w)
			return i + (unsigned)__builtin_ctzll(w);
		i = (i / 64 + 1) * 64;
	}
	return LIFT_CHUNK_PAGES;
}

/* Adds the runs of @map to the work, from p->page_at on. False: it is full, go on from there. */
static bool put_map(struct lift_promote *p, const struct lift_chunk *c, const uint64_t *map,
	struct lift_work *work)
{
	unsigned from = next_bit(map, p->page_at, true);

	while (from < LIFT_CHUNK_PAGES) {
		unsigned end = next_bit(map, from, false);

		if (!put(work, c->base + from * LIFT_PAGE_BYTES, c->base + end * LIFT_PAGE_BYTES)) {
			p->page_at = from;
			return false;
		}
		from = next_bit(map, end, true);
	}
	p->page_at = 0;
	return true;
}

static uint64_t units(const struct lift_chunk *c, const uint64_t *map)
{
	uint64_t nr = 0;

	if (c->flags & LIFT_CHUNK_HUGE)
		return some(map);
	for (unsigned i = 0; i < LIFT_CHUNK_WORDS; i++)
		nr += lift_weight(map[i]);
	return nr;
}

/* Of 64 pages, by number of the word, those that are on these slots. */
static uint64_t in_tier(
	const struct lift_heat *h, const struct lift_chunk *c, unsigned word, uint64_t slots)
{
	const struct lift_pages *pages = lift_heat_pages(h, c);
	uint64_t ret = 0;

	/* Bits of slots beyond the last are never set: pages that are nowhere are in no tier. */
	if (!pages)
		return lift_heat_in(slots, c->where) ? UINT64_MAX : 0;
	for (unsigned i = 0; i < 64; i++)
		ret |= (slots >> (pages->where[word * 64 + i] & LIFT_WHERE_MASK) & 1) << i;
	return ret;
}

/* The pages of a word that are in these parts of the chunk. */
static uint64_t parts_of(uint16_t parts, unsigned word)
{
	uint64_t low = parts >> word * 2 & 1 ? UINT32_MAX : 0;
	uint64_t high = parts >> (word * 2 + 1) & 1 ? UINT32_MAX : 0;

	return low | high << 32;
}

/* Which pages of a chunk this pass samples. */
static void choose(struct lift_promote *p, uint32_t n)
{
	const struct lift_schedule *s = &p->schedule;
	struct lift_chunk *c = &p->heat.chunk[n];
	unsigned slow_shift = s->slow_shift;
	unsigned quiet = c->quiet / QUIET_SAMPLES;
	uint16_t slow;
	uint16_t fast;

	if (s->pace == LIFT_PACE_FULL)
		slow_shift += quiet < QUIET_SHIFT_MAX ? quiet : QUIET_SHIFT_MAX;
	slow = lift_schedule_parts(s->pass, n, slow_shift);
	fast = p->load.slow_only ? 0 : lift_schedule_parts(s->pass, n, s->fast_shift);
	if (c->flags & LIFT_CHUNK_HUGE) {
		slow = slow & 1 ? UINT16_MAX : 0;
		fast = fast & 1 ? UINT16_MAX : 0;
	}
	memset(c->armed, 0, sizeof(c->armed));
	memset(c->accessed, 0, sizeof(c->accessed));
	memset(c->seen, 0, sizeof(c->seen));
	for (unsigned i = 0; i < LIFT_CHUNK_WORDS; i++) {
		uint64_t of_slow = parts_of(slow, i);
		uint64_t of_fast = parts_of(fast, i);

		/* Most of it is not looked at while settled. */
		if (of_slow)
			of_slow &= in_tier(&p->heat, c, i, p->heat.slow);
		if (of_fast)
			of_fast &= in_tier(&p->heat, c, i, p->heat.fast);
		c->armed[i] = of_slow | of_fast;
	}
	p->pass.armed += units(c, c->armed);
}

/* What was not written is there, and not absent. */
static void see_unwritten(struct lift_promote *p)
{
	for (uint32_t n = 0; n < p->heat.nr_chunks; n++)
		memcpy(p->heat.chunk[n].seen, p->heat.chunk[n].armed,
			sizeof(p->heat.chunk[n].seen));
}

/*
 * Who uses it matters where there is more than one node to take it to. Settled, too little moves for
 * it to be asked.
 */
static bool can_ask(const struct lift_promote *p)
{
	unsigned fast = 0;

	for (unsigned i = 0; i < p->nr_slots; i++)
		fast += p->slot[i].fast && p->slot[i].usable;
	return p->ask_users && fast > 1 && !p->track_only && p->schedule.pace == LIFT_PACE_FULL;
}

/* Armed, not accessed, and likely to cost a fault for nothing before the next pass. */
static void map_release(struct lift_promote *p, const struct lift_chunk *c, uint64_t *ret)
{
	/* Left armed, they would answer questions that are about others. */
	bool slow = p->wonders || lift_schedule_release(&p->schedule, p->load.slow_p);
	bool fast = p->wonders || lift_schedule_release(&p->schedule, p->load.fast_p);

	for (unsigned i = 0; i < LIFT_CHUNK_WORDS; i++) {
		ret[i] = slow || fast ? c->armed[i] & c->seen[i] & ~c->accessed[i] : 0;
		if (slow != fast && ret[i]) {
			uint64_t on_slow = in_tier(&p->heat, c, i, p->heat.slow);

			ret[i] &= slow ? on_slow : ~on_slow;
		}
	}
}

/* Ranges for the phase p is in. False: there are none, or no more. */
static bool put_ranges(struct lift_promote *p, struct lift_work *work)
{
	for (; p->at < p->heat.nr_chunks; p->at++) {
		struct lift_chunk *c = &p->heat.chunk[p->at];
		uint64_t map[LIFT_CHUNK_WORDS];

		/* What is done once for each chunk is not done for one that does not fit. */
		if (work->nr == LIFT_WORK_RANGES)
			return true;
		switch (p->phase) {
		case WHERE:
			if (!(c->flags & LIFT_CHUNK_UNKNOWN))
				continue;
			if (!put(work, c->base, c->base + LIFT_CHUNK_BYTES))
				return true;
			c->flags &= (uint8_t)~LIFT_CHUNK_UNKNOWN;
			p->stats.located += LIFT_CHUNK_PAGES;
			continue;
		case ARM:
			if (p->page_at == 0)
				choose(p, p->at);
			memcpy(map, c->armed, sizeof(map));
			break;
		case COLLECT:
			memcpy(map, c->armed, sizeof(map));
			break;
		default:
			map_release(p, c, map);
			if (p->page_at == 0)
				p->pass.released += units(c, map);
			break;
		}
		if (!put_map(p, c, map, work))
			return true;
	}
	return work->nr > 0;
}

/* Of the pages on slow nodes that this sample looked at, how many it found used, of 4096. */
static uint32_t slow_chance(const struct lift_promote *p)
{
	uint64_t n = 0;
	uint64_t t = 0;

	for (uint32_t k = 0; k < p->heat.nr_chunks; k++) {
		const struct lift_chunk *c = &p->heat.chunk[k];

		for (unsigned i = 0; i < LIFT_CHUNK_WORDS; i++) {
			uint64_t seen = c->armed[i] & c->seen[i];

			if (seen)
				seen &= in_tier(&p->heat, c, i, p->heat.slow);
			n += lift_weight(seen);
			t += lift_weight(seen & c->accessed[i]);
		}
	}
	return n ? (uint32_t)(t * 4096 / n) : p->load.slow_p;
}

/* How long a sample usually is that finds this part of the pages on slow nodes used. */
static uint64_t length_of(const struct lift_promote *p, uint32_t base_p)
{
	uint64_t usual = lift_neg_log(p->slow_mean);
	uint64_t ns;

	if (usual == 0)
		return p->took_ns;
	ns = p->calib.window_ns * lift_neg_log(base_p) / usual;
	if (ns < p->took_ns / BUSY_LEAST)
		return p->took_ns / BUSY_LEAST;
	return ns < p->took_ns * BUSY_MOST ? ns : p->took_ns * BUSY_MOST;
}

/*
 * What the window could have foretold of this sample, and what came true: @base_p of all pages on
 * slow nodes did, and hot ones as many as would be in a sample of @busy_ns.
 */
static void learn_window(
	struct lift_promote *p, const struct lift_chunk *c, uint32_t base_p, uint64_t busy_ns)
{
	uint64_t hot[LIFT_CHUNK_WORDS];
	uint64_t eligible[LIFT_CHUNK_WORDS];
	uint32_t hot_p;

	/* Settled, the few pages that are looked at say little of their neighbours, and it is dear.
	 */
	if (c->flags & LIFT_CHUNK_HUGE || c->pages == LIFT_NO_PAGES ||
		p->schedule.pace == LIFT_PACE_SETTLED || lift_window_rests(&p->window))
		return;
	lift_window_maps(&p->heat, c, p->hot, p->rates.p, true, hot, eligible, &hot_p);
	hot_p = lift_chance_in(hot_p, p->calib.window_ns, busy_ns);
	lift_window_learn(&p->window, hot, eligible, hot_p, base_p, c->armed, c->accessed);
}

/* Of @n observations in a tier so many were of pages in use. */
struct found {
	uint64_t n;
	uint64_t got;
	uint64_t expected;
};

/* @a for each @b, of 1024. */
static uint64_t ratio(uint64_t a, uint64_t b)
{
	uint64_t r = a * 1024 / (b + 1);

	return r < UINT32_MAX ? r : UINT32_MAX;
}

/* Of a page to be in use, by what was expected, of 1024. */
static uint64_t odds(struct found f)
{
	uint64_t idle = f.n > f.got ? f.n - f.got : 0;
	uint64_t expected_idle = f.n > f.expected ? f.n - f.expected : 0;

	return ratio(f.got + 1, f.expected) * ratio(expected_idle + 1, idle) / 1024;
}

/*
 * More than was expected, by more than chance explains (@runs pages are taken to be used together),
 * and the odds are twice those of the other tier, by what was expected of both. Odds, since where a
 * good part is used in any case there is no twice.
 */
static bool far_more(struct found f, struct found other, uint64_t runs)
{
	uint64_t d = f.got > f.expected ? f.got - f.expected : 0;
	uint64_t rest = f.n > f.expected ? f.n - f.expected : 0;
	uint64_t variance = f.expected * rest / (f.n + 1) + 1;

	return d > 16 && d * d > 36 * runs * variance && odds(f) > 2 * odds(other);
}

static uint64_t enough(const struct lift_promote *p)
{
	return p->grain == 1 ? JUDGE_ENOUGH : JUDGE_ENOUGH / 8 * p->grain;
}

/* What a sample of @took_ns can be expected to find used of what this one looked at, by tier. */
static void expect(
	const struct lift_promote *p, uint64_t took_ns, uint64_t *ret_slow, uint64_t *ret_fast)
{
	const struct lift_tally *t = &p->tally;
	uint64_t slow = 0;
	uint64_t fast = 0;

	for (unsigned s = 0; s < LIFT_STATES; s++) {
		uint32_t chance;

		if (t->n[s] == 0)
			continue;
		chance = lift_chance_in(p->rates.p[s], p->calib.window_ns, took_ns);
		slow += (uint64_t)t->slow_n[s] * chance;
		fast += (uint64_t)(t->n[s] - t->slow_n[s]) * chance;
	}
	*ret_slow = slow / 4096;
	*ret_fast = fast / 4096;
}

/*
 * A program does not use memory all the time that it uses the CPU. How long would a sample have
 * been that finds as much used as this one has?
 */
static uint64_t as_busy_as_long(const struct lift_promote *p)
{
	uint64_t got = (uint64_t)p->tally.slow_t + p->tally.fast_t;
	uint64_t low = p->took_ns / BUSY_LEAST;
	uint64_t high = p->took_ns * BUSY_MOST;

	while (high - low > p->took_ns / 64 + 1) {
		uint64_t mid = low + (high - low) / 2;
		uint64_t slow;
		uint64_t fast;

		expect(p, mid, &slow, &fast);
		if (slow + fast < got)
			low = mid;
		else
			high = mid;
	}
	return low;
}

/* For as much as is used in all one tier has its part, unless the other has more of it. */
static bool surprising(const struct lift_promote *p, uint64_t runs)
{
	struct found slow = {.got = p->tally.slow_t / p->grain};
	struct found fast = {.n = p->tally.fast_n / p->grain, .got = p->tally.fast_t / p->grain};

	for (unsigned s = 0; s < LIFT_STATES; s++)
		slow.n += p->tally.slow_n[s];
	slow.n /= p->grain;
	expect(p, p->busy_ns, &slow.expected, &fast.expected);
	slow.expected /= p->grain;
	fast.expected /= p->grain;
	return far_more(slow, fast, runs) || far_more(fast, slow, runs);
}

/*
 * Is the program doing something else? What can hardly be chance counts at once, what may be when
 * it is seen twice in a row.
 */
static bool has_changed(struct lift_promote *p)
{
	bool before = p->suspicious;

	p->suspicious = surprising(p, 1);
	return p->suspicious && (before || surprising(p, SURE_RUNS));
}

static uint32_t chance(uint64_t t, uint64_t n)
{
	return n ? (uint32_t)(t * 4096 / n) : 0;
}

static void limit_residence(struct lift_promote *p)
{
	if (p->price.residence_ns < RESIDENCE_MIN_NS)
		p->price.residence_ns = RESIDENCE_MIN_NS;
	if (p->price.residence_ns > RESIDENCE_MAX_NS)
		p->price.residence_ns = RESIDENCE_MAX_NS;
}

/*
 * Did moves bring what they were expected to? Pages that came up are compared with those that made
 * way for them; and many that go back soon are a sign that heat does not last here. Either shortens
 * the time a page is expected to stay hot, until moves do not pay any more; it comes back with
 * time.
 */
static void judge_moves(struct lift_promote *p)
{
	uint64_t bounced = p->stats.moves.bounced - p->bounced_at;
	uint64_t demoted = p->stats.moves.demoted - p->demoted_at;
	uint64_t *residence = &p->price.residence_ns;

	p->fresh_n += p->tally.fresh_n;
	p->fresh_t += p->tally.fresh_t;
	p->gone_n += p->tally.gone_n;
	p->gone_t += p->tally.gone_t;
	/* In a hurry passes follow each other too quickly for anything to have come of moves. */
	if (p->armed_at < p->judged_at + LIFT_PERIOD_FULL_NS)
		return;
	if (p->fresh_n >= enough(p) && p->gone_n >= enough(p) && p->up_n &&
		p->down_n >= enough(p) / JUDGE_MOVES) {
		int64_t got = (int64_t)chance(p->fresh_t, p->fresh_n) -
			      (int64_t)chance(p->gone_t, p->gone_n);
		int64_t expected = (int64_t)(p->up_p / p->up_n) - (int64_t)(p->down_p / p->down_n);

		/* Of a sample in which less was used than usual. */
		if (p->busy_ns < p->took_ns)
			expected = expected * (int64_t)(p->busy_ns / 1024) /
				   (int64_t)(p->took_ns / 1024 + 1);
		if (got * 2 >= expected) {
			*residence += *residence / 4;
		} else {
			*residence /= 2;
			p->stats.pauses++;
		}
		/* The same moves are not to be held against us again and again. */
		p->fresh_n = p->fresh_t = p->gone_n = p->gone_t = 0;
		p->up_p /= 4;
		p->up_n /= 4;
		p->down_p /= 4;
		p->down_n /= 4;
	} else {
		/* What has lasted so long may last as long again. */
		*residence += p->armed_at - p->judged_at;
	}
	p->judged_at = p->armed_at;
	if (demoted >= enough(p)) {
		if (bounced * 4 > demoted) {
			*residence /= 2;
			p->stats.pauses++;
		}
		p->bounced_at = p->stats.moves.bounced;
		p->demoted_at = p->stats.moves.demoted;
	}
	limit_residence(p);
}

/*
 * The program does something else now. As long as it did the last thing it may do this one: that is
 * how long what is hot now can be expected to stay so.
 */
static void change(struct lift_promote *p)
{
	p->price.residence_ns = p->armed_at - p->changed_at;
	limit_residence(p);
	p->changed_at = p->armed_at;
	p->judged_at = p->armed_at;
	lift_heat_settle(&p->heat);
	lift_users_forget(&p->heat);
	lift_calib_fade(&p->calib);
	p->no_guess = GUESS_PASSES;
	p->fresh_n = p->fresh_t = p->gone_n = p->gone_t = 0;
	p->up_p = p->up_n = p->down_p = p->down_n = 0;
	p->bounced_at = p->stats.moves.bounced;
	p->demoted_at = p->stats.moves.demoted;
}

/* Pages that a sample of the length asked for would have found used, had it looked at all. */
static uint64_t estimate_used(const struct lift_promote *p)
{
	uint64_t want = p->schedule.window_ns;
	uint64_t pages = p->load.slow_pages + p->load.fast_pages;

	if (p->grain > 1)
		return pages * lift_chance_in(chance(p->summed, pages), p->took_ns, want) / 4096;
	return (p->load.slow_pages * lift_chance_in(p->load.slow_p, p->took_ns, want) +
		       p->load.fast_pages * lift_chance_in(p->load.fast_p, p->took_ns, want)) /
	       4096;
}

/* What is learned is of so many pages that were sampled: one and a half passes, or enough to tell.
 */
static uint64_t keep_pages(const struct lift_promote *p)
{
	uint64_t pages = p->load.slow_pages + p->load.fast_pages;
	uint64_t least = (uint64_t)KEEP_LEAST * p->grain;

	return pages + pages / 2 > least ? pages + pages / 2 : least;
}

/*
 * The faults that a sample takes are the program's CPU time, too, but no time in which it uses
 * memory: the more there was to find, the less of a sample it was.
 */
static void leave_out_faults(struct lift_promote *p)
{
	uint64_t used = p->used_ns / 1024 + 1;
	uint64_t faults;
	uint64_t rest;

	/* What others used is no fault of this program. */
	if (p->used_ns < p->schedule.window_ns / SHORT_PART)
		return;
	p->faults_ns = lift_schedule_faults(&p->schedule, &p->pass, p->used_ns);
	p->faults_of = p->pass.armed;
	faults = p->faults_ns / 1024;
	rest = used > faults ? used - faults : 0;
	if (rest < used / FAULTS_MOST)
		rest = used / FAULTS_MOST;
	p->took_ns = p->took_ns / 1024 * rest / used * 1024 + 1;
}

/* Takes over the samples, and all that is concluded from them without knowing the room there is. */
static void fold(struct lift_promote *p)
{
	struct lift_tally *t = &p->tally;
	uint64_t pages = p->load.slow_pages + p->load.fast_pages;
	uint64_t slow_n = 0;
	uint32_t base_p = slow_chance(p);
	uint64_t busy_ns;

	for (uint32_t n = 0; n < p->heat.nr_chunks; n++)
		p->pass.accessed += units(&p->heat.chunk[n], p->heat.chunk[n].accessed);
	leave_out_faults(p);
	busy_ns = length_of(p, base_p);
	memset(t, 0, sizeof(*t));
	for (uint32_t n = 0; n < p->heat.nr_chunks; n++) {
		struct lift_chunk *c = &p->heat.chunk[n];

		if (!some(c->armed))
			continue;
		learn_window(p, c, base_p, busy_ns);
		lift_heat_sample(&p->heat, c, t);
	}
	lift_window_judge(&p->window, t->hit, t->wrong);
	p->busy_ns = as_busy_as_long(p);
	/* With another length of samples expectations are rough for once. */
	p->pass.surprised =
		p->schedule.pace == LIFT_PACE_SETTLED && !p->rewindowed && has_changed(p);
	p->pass.doubtful =
		p->schedule.pace == LIFT_PACE_SETTLED && p->suspicious && !p->pass.surprised;
	p->rewindowed = false;
	if (p->pass.surprised) {
		p->stats.changes++;
		change(p);
	}
	p->calib.grain = p->grain;
	if (!p->pass.surprised && p->pass.accessed * ACTIVE_SHARE >= p->pass.armed)
		lift_calib_doubt(&p->calib, p->took_ns,
			p->schedule.full >= SURE_PASSES ? p->busy_ns : p->took_ns,
			p->faults_ns / FAULTS_UNSURE);
	lift_calib_add(&p->calib, t, p->took_ns, p->window.pass_n, p->window.pass_t, keep_pages(p));
	lift_calib_rates(&p->calib, &p->rates);
	if (!p->pass.surprised)
		judge_moves(p);

	for (unsigned s = 0; s < LIFT_STATES; s++)
		slow_n += t->slow_n[s];
	if (slow_n)
		p->load.slow_p = chance(t->slow_t, slow_n);
	if (t->fast_n)
		p->load.fast_p = chance(t->fast_t, t->fast_n);
	p->pass.est_accessed = estimate_used(p);
	p->pass.active = p->pass.est_accessed * ACTIVE_SHARE >= pages;
	p->pass.searching = p->hold > 0;
}

static void estimate_share(struct lift_promote *p, const struct lift_census *census)
{
	uint64_t slow = 0;
	uint64_t fast = 0;
	uint64_t sum = 0;
	uint64_t n = 0;

	for (unsigned s = 0; s < LIFT_STATES; s++) {
		sum += (uint64_t)census->slow[s] * p->rates.p[s];
		n += census->slow[s];
	}
	p->slow_mean = n ? (uint32_t)(sum / n) : 0;

	for (unsigned s = 0; s < LIFT_STATES; s++) {
		slow += (uint64_t)census->slow[s] * p->rates.rate[s];
		fast += (uint64_t)census->fast[s] * p->rates.rate[s];
	}
	/* Rates have 32 bits and pages fewer than 40: room for the shift after this one. */
	slow >>= 12;
	fast >>= 12;
	if (slow + fast)
		p->stats.fast_share = (uint32_t)((fast << 12) / (slow + fast));
}

/* Draws the line and makes the plan of moves. */
static void plan(struct lift_promote *p, const struct lift_promote_now *now)
{
	uint32_t max = lift_schedule_moves(&p->schedule);
	struct lift_price price = p->price;
	const struct lift_census *census = &p->heat.census;
	struct lift_cut cut;
	uint64_t earned = 0;
	uint32_t offer = 0;
	uint64_t room;

	take_census(p);
	read_slots(p, now);
	price.residence_ns = price.residence_ns / 4096 * p->duty;
	price.room_ns = price.room_ns / 4096 * p->duty;
	price.one_way = p->writes_only;
	room = p->load.capacity > census->nr_fast ? p->load.capacity - census->nr_fast : 0;
	if (p->window.hit > p->window.wrong * 2)
		earned = (p->window.hit - p->window.wrong * 2) * GUESS_SHARE;
	if (room > max)
		max = room < UINT32_MAX ? (uint32_t)room : UINT32_MAX;
	if (p->hold > 0 && !p->load.fits)
		max = 0;
	/* In so long a sample more looks hot than fits, and what comes up now stays. */
	if (p->writes_only && !p->load.fits && p->pass.est_accessed > p->load.capacity)
		max = 0;
	if (p->window.fixed)
		/* The user's word stands for what could be learned. */
		p->rates.low[LIFT_STATE_PREDICTED] = p->rates.rate[LIFT_STATE_PREDICTED] =
			p->rates.rate[LIFT_STATES - 1];
	lift_threshold_cut(census, &p->rates, &price, p->load.capacity, 0, max, &cut);
	memcpy(p->hot, cut.hot, sizeof(p->hot));
	if (lift_window_bytes(&p->window) && cut.nr_promote &&
		(p->window.fixed || p->schedule.full >= p->no_guess)) {
		for (uint32_t n = 0; n < p->heat.nr_chunks; n++)
			offer += lift_moveplan_offer(&p->heat, &p->heat.chunk[n], &cut, &p->window);
		/* What is known outweighs what is guessed, until guesses have come true. */
		earned += cut.nr_promote / GUESS_START;
		if (!p->window.fixed && offer > earned)
			offer = (uint32_t)earned;
		lift_threshold_cut(census, &p->rates, &price, p->load.capacity, offer, max, &cut);
	}
	p->pass.paying = cut.nr_promote;
	p->pass.wanted = lift_threshold_wanted(census, &p->rates, &price, &cut);
	p->up_p += cut.up_p;
	p->up_n += cut.nr_promote;
	p->down_p += cut.down_p;
	p->down_n += cut.nr_down;
	p->stats.wanted = cut.nr_promote;
	p->stats.hot_rate = cut.hot_rate;
	estimate_share(p, census);
	lift_moveplan_init(&p->plan, &cut, p->schedule.pass);
	if (p->track_only)
		p->plan.ended = true;
}

static void finish(struct lift_promote *p, const struct lift_promote_now *now)
{
	take_census(p);
	p->pass.promoted = p->plan.promoted;
	p->pass.demoted = p->plan.demoted;
	p->pass.spent_ns = p->spent_ns;
	p->spent_ns = 0;
	p->window.predicted = p->stats.moves.predicted;
	if (p->plan.forbidden)
		p->track_only = true;
	lift_schedule_end(&p->schedule, now->now_ns, &p->pass, &p->load);
	if (p->schedule.window_ns != p->calib.window_ns) {
		lift_calib_rewindow(&p->calib, p->schedule.window_ns);
		p->rewindowed = true;
	}
	if (p->hold > 0 && p->pass.active && !p->pass.blurred && --p->hold == 0) {
		/* What was learned of moves until now was about the sampler. */
		lift_heat_settle(&p->heat);
		p->price.residence_ns = RESIDENCE_START_NS;
		p->changed_at = p->judged_at = p->armed_at;
		lift_schedule_kick(&p->schedule);
	}
	p->stats.passes++;
	p->stats.armed += p->pass.armed;
	p->stats.accessed += p->pass.accessed;
	p->stats.released += p->pass.released;
	go(p, IDLE);
}

static bool much_changed(uint64_t now, uint64_t before)
{
	uint64_t d = now > before ? now - before : before - now;

	return d * CHANGE_SHARE > before;
}

/* Memory, nodes or room have come or gone: there is something to do, whatever the samples say. */
static void notice(struct lift_promote *p)
{
	uint64_t pages = p->load.slow_pages + p->load.fast_pages;

	/* What has not been looked at for long is to be known before it is judged. */
	bool blind = p->one_sided && !p->load.slow_only;

	if (!blind && !much_changed(pages, p->known_pages) &&
		!much_changed(p->load.capacity, p->known_capacity))
		return;
	if (p->grain > 1 && pages > p->known_pages && much_changed(pages, p->known_pages))
		p->hold = LIFT_HOLD_SAMPLES;
	p->known_pages = pages;
	p->known_capacity = p->load.capacity;
	lift_users_forget(&p->heat);
	lift_schedule_kick(&p->schedule);
}

/* Whether a pass begins; else for how long not. */
static bool begin(
	struct lift_promote *p, const struct lift_promote_now *now, struct lift_work *work)
{
	take_census(p);
	read_slots(p, now);
	notice(p);
	if (!lift_schedule_begin(&p->schedule, now->now_ns, now->cpu_ns, now->rss_bytes, &p->load,
		    &work->sleep_ns))
		return false;
	memset(&p->pass, 0, sizeof(p->pass));
	p->summed = 0;
	p->one_sided = p->load.slow_only;
	doubt(p, now->rss_bytes);
	return true;
}

/*
 * Rates are by time in which the program is active; what a page is worth is by the clock. From one
 * pass to the next, so that what repeats every second or two is averaged.
 */
static void measure_duty(struct lift_promote *p, const struct lift_promote_now *now)
{
	uint64_t dt = now->now_ns - p->armed_at;
	uint64_t used = now->cpu_ns > p->armed_cpu ? now->cpu_ns - p->armed_cpu : 0;

	if (p->armed_at && dt) {
		uint32_t share =
			used < dt ? (uint32_t)(used / 1024 * 4096 / (dt / 1024 + 1)) : 4096;

		p->duty = (p->duty * 3 + share) / 4;
		if (p->duty == 0)
			p->duty = 1;
	}
	p->armed_at = now->now_ns;
	p->armed_cpu = now->cpu_ns;
}

/* As many of what is armed as in the last pass. */
static uint64_t expected_faults(const struct lift_promote *p)
{
	uint64_t most = p->schedule.window_ns * (FAULTS_MOST - 1);
	uint64_t ns = p->faults_of ? p->faults_ns / p->faults_of * p->pass.armed : 0;

	return ns < most ? ns : most;
}

static void measure_sample(struct lift_promote *p, const struct lift_promote_now *now)
{
	uint64_t clock = now->now_ns - p->armed_at;
	uint64_t used = now->cpu_ns > p->armed_cpu ? now->cpu_ns - p->armed_cpu : 0;

	p->used_ns = used;
	/* What was found by chance in next to no time says nothing about rates. */
	if (used < p->schedule.window_ns / SHORT_PART)
		used = p->schedule.window_ns / SHORT_PART;
	p->took_ns = used < clock ? used : clock;
}

bool lift_promote_asks_cpu(const struct lift_promote *p)
{
	return p->phase != ARM && p->phase != COLLECT && p->phase != RELEASE;
}

bool lift_promote_sampling(const struct lift_promote *p)
{
	return p->phase == WINDOW;
}

enum lift_step lift_promote_step(
	struct lift_promote *p, const struct lift_promote_now *now, struct lift_work *work)
{
	work->nr = 0;
	work->sleep_ns = work->cpu_ns = 0;
	work->batch = NULL;
	for (;;) {
		switch ((enum phase)p->phase) {
		case IDLE:
			/* New memory has to be known before it can be decided whether to begin. */
			read_slots(p, now);
			go(p, WHERE);
			break;
		case WHERE:
			if (put_ranges(p, work))
				return LIFT_STEP_WHERE;
			if (!begin(p, now, work)) {
				go(p, IDLE);
				return LIFT_STEP_SLEEP;
			}
			go(p, ARM);
			measure_duty(p, now);
			break;
		case ARM:
			if (put_ranges(p, work))
				return LIFT_STEP_ARM;
			go(p, WINDOW);
			work->sleep_ns = p->schedule.window_ns;
			work->cpu_ns = p->schedule.window_ns + expected_faults(p);
			return LIFT_STEP_SLEEP;
		case WINDOW:
			/* Not as planned, because arming or waking took its time. */
			measure_sample(p, now);
			go(p, COLLECT);
			break;
		case COLLECT:
			if (put_ranges(p, work))
				return LIFT_STEP_COLLECT;
			if (p->writes_only)
				see_unwritten(p);
			lift_users_begin(&p->users);
			p->wonders = can_ask(p) && lift_users_wonders(&p->users, &p->heat);
			go(p, RELEASE);
			break;
		case RELEASE:
			if (put_ranges(p, work))
				return LIFT_STEP_RELEASE;
			fold(p);
			plan(p, now);
			go(p, ASK);
			break;
		case ASK:
			work->sleep_ns = p->schedule.window_ns * ASK_SAMPLES;
			if (p->wonders && p->plan.cut.nr_promote &&
				lift_users_next(&p->users, &p->heat, work->range, LIFT_WORK_RANGES,
					&work->nr))
				return LIFT_STEP_ASK;
			go(p, MOVE);
			break;
		case MOVE:
			look_for_room_again(p, now);
			if (lift_moveplan_next(
				    &p->plan, &p->heat, &p->window, p->slot, p->nr_slots)) {
				work->batch = &p->plan.batch;
				work->node = p->slot[p->plan.batch.slot].node;
				return LIFT_STEP_MOVE;
			}
			finish(p, now);
			break;
		}
	}
}

void lift_promote_located(struct lift_promote *p, uintptr_t addr, int node)
{
	struct lift_chunk *c = lift_heat_find(&p->heat, addr);
	uint8_t slot = LIFT_WHERE_ABSENT;

	if (!c)
		return;
	if (node >= 0 || node == -EACCES)
		slot = LIFT_WHERE_STUCK;
	for (unsigned i = 0; i < p->nr_slots; i++)
		if (p->slot[i].node == node)
			slot = (uint8_t)i;
	lift_heat_locate(&p->heat, c, (unsigned)(addr % LIFT_CHUNK_BYTES >> LIFT_PAGE_SHIFT), slot);
}

void lift_promote_describe(struct lift_promote *p, uintptr_t addr, bool huge, int home)
{
	struct lift_chunk *c = lift_heat_find(&p->heat, addr);

	if (!c)
		return;
	if (home >= 0 || !(c->flags & LIFT_CHUNK_ASKED))
		c->home = LIFT_SLOTS;
	for (unsigned i = 0; i < p->nr_slots; i++)
		if (home >= 0 && p->slot[i].node == home)
			c->home = (uint8_t)i;
	lift_heat_describe(&p->heat, c, huge);
}

/* Pages from @from to @end of a chunk. */
static void sample_run(struct lift_chunk *c, unsigned from, unsigned end, bool accessed)
{
	while (from < end) {
		unsigned word = from / 64;
		unsigned stop = (word + 1) * 64 < end ? (word + 1) * 64 : end;
		uint64_t run = stop - from == 64
				       ? UINT64_MAX
				       : ((UINT64_C(1) << (stop - from)) - 1) << from % 64;

		run &= c->armed[word];
		c->seen[word] |= run;
		if (accessed)
			c->accessed[word] |= run;
		from = stop;
	}
}

void lift_promote_sampled(struct lift_promote *p, struct lift_range range, bool accessed)
{
	uintptr_t addr = range.start & ~(uintptr_t)(LIFT_PAGE_BYTES - 1);

	while (addr < range.end) {
		struct lift_chunk *c = lift_heat_find(&p->heat, addr);
		uintptr_t base = addr & ~(uintptr_t)(LIFT_CHUNK_BYTES - 1);
		uintptr_t left = range.end - base;
		unsigned from = (unsigned)((addr - base) >> LIFT_PAGE_SHIFT);
		unsigned end = LIFT_CHUNK_PAGES;

		if (left < LIFT_CHUNK_BYTES)
			end = (unsigned)((left + LIFT_PAGE_BYTES - 1) >> LIFT_PAGE_SHIFT);
		if (c)
			sample_run(c, from, end, accessed);
		if (base > UINTPTR_MAX - LIFT_CHUNK_BYTES)
			break;
		addr = base + LIFT_CHUNK_BYTES;
	}
}

/*
 * Over many samples the chunk counts as used in that part of them. By chance, and for each chunk by
 * itself: if all did so in the same samples, or in turn, one sample would tell what the next is.
 */
static bool counts_as_used(uintptr_t chunk, uint32_t pass, uint64_t used, uint64_t resident)
{
	uint64_t x = chunk / LIFT_CHUNK_BYTES + ((uint64_t)pass << 48);

	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return (x >> 40) * (resident >> LIFT_PAGE_SHIFT) < (used >> LIFT_PAGE_SHIFT) << 24;
}

void lift_promote_summed(struct lift_promote *p, struct lift_range r, uint64_t accessed_bytes,
	uint64_t resident_bytes)
{
	p->summed += accessed_bytes >> LIFT_PAGE_SHIFT;
	if (p->load.fits)
		accessed_bytes *= FITS_SHARE;
	if (accessed_bytes == 0 || accessed_bytes >= resident_bytes) {
		lift_promote_sampled(p, r, accessed_bytes != 0);
		return;
	}
	while (!lift_range_empty(r)) {
		struct lift_range piece = r;
		uintptr_t end = (r.start | (LIFT_CHUNK_BYTES - 1)) + 1;

		if (end < piece.end)
			piece.end = end;
		lift_promote_sampled(p, piece,
			counts_as_used(
				piece.start, p->schedule.pass, accessed_bytes, resident_bytes));
		r.start = piece.end;
	}
}

void lift_promote_faulted(struct lift_promote *p, uint64_t nr)
{
	p->pass.faults += nr;
	p->pass.faults_known = true;
}

int lift_promote_users(
	struct lift_promote *p, const uint32_t *faults, uint32_t all, uint32_t used)
{
	int slot = lift_users_answer(&p->users, &p->heat, faults, p->nr_slots, all, used);

	p->spent_ns += (uint64_t)used * p->schedule.costs.fault_ns;
	return slot < 0 ? -1 : p->slot[slot].node;
}

void lift_promote_spent(struct lift_promote *p, uint64_t ns)
{
	p->spent_ns += ns;
}

void lift_promote_moved(struct lift_promote *p, int rc, const int *status)
{
	lift_moveplan_done(&p->plan, &p->heat, p->slot, p->nr_slots, rc, status, &p->stats.moves);
}
