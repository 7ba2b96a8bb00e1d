#include "policy/window.h"

/* Predictions judged before there is a verdict. */
#define VERDICT 32u
/* ... and chunks that they are of: within one they stand or fall together. */
#define VERDICT_CHUNKS 4
/* So much of the way from any page to a hot one, in percent: larger. */
#define GOOD_PCT 65
/* Less than this: smaller. */
#define POOR_PCT 45
/* Verdicts against the smallest size in a row, until there is a pause. */
#define MISSES_MAX 3
#define PAUSE_MIN 8u
#define PAUSE_SHIFT_MAX 6
/* Pages side by side, all accessed in their last sample, that foretell others. */
#define ROW 4u
/* Strides looked for, in pages. */
#define STRIDE_MIN 2
#define STRIDE_MAX 16

static bool bit(const uint64_t *map, unsigned i)
{
	return map[i / 64] >> i % 64 & 1;
}

static void set(uint64_t *map, unsigned i)
{
	map[i / 64] |= UINT64_C(1) << i % 64;
}

static unsigned weight(const uint64_t *map)
{
	unsigned nr = 0;

	for (unsigned i = 0; i < LIFT_CHUNK_WORDS; i++)
		nr += lift_weight(map[i]);
	return nr;
}

void lift_window_init(struct lift_window *w)
{
	memset(w, 0, sizeof(*w));
	for (unsigned i = 0; i < LIFT_WAY_MAX; i++)
		w->way[i].pages = LIFT_WINDOW_MIN_PAGES;
}

void lift_window_fix(struct lift_window *w, unsigned pages)
{
	lift_window_init(w);
	if (pages > LIFT_WINDOW_MAX_PAGES)
		pages = LIFT_WINDOW_MAX_PAGES;
	w->fixed = true;
	for (unsigned i = LIFT_WAY_UP; i <= LIFT_WAY_DOWN; i++) {
		w->way[i].pages = (uint16_t)pages;
		w->way[i].trusted = pages > 0;
	}
}

/* From each hot page on, through hot and eligible ones, at most @pages beyond the hot one. */
static void predict_run(
	const uint64_t *hot, const uint64_t *eligible, unsigned pages, bool down, uint64_t *ret)
{
	unsigned left = 0;

	for (unsigned k = 0; k < LIFT_CHUNK_PAGES; k++) {
		unsigned i = down ? LIFT_CHUNK_PAGES - 1 - k : k;

		if (bit(hot, i)) {
			left = pages;
		} else if (left > 0 && bit(eligible, i)) {
			set(ret, i);
			left--;
		} else {
			left = 0;
		}
	}
}

/*
 * Three hot pages the same distance apart, and nothing hot between, foretell the next ones at that
 * distance. Upwards only: of a stride both ends are seen within a few samples.
 */
static void predict_stride(
	const uint64_t *hot, const uint64_t *eligible, unsigned pages, uint64_t *ret)
{
	unsigned last = LIFT_CHUNK_PAGES;
	unsigned gap = 0;

	for (unsigned i = 0; i < LIFT_CHUNK_PAGES; i++) {
		if (!bit(hot, i))
			continue;
		if (last < i && i - last == gap && gap >= STRIDE_MIN && gap <= STRIDE_MAX) {
			for (unsigned k = i + gap; k < LIFT_CHUNK_PAGES && k - i <= pages * gap;
				k += gap) {
				if (bit(hot, k))
					continue;
				if (!bit(eligible, k))
					break;
				set(ret, k);
			}
		}
		gap = last < i ? i - last : 0;
		last = i;
	}
}

unsigned lift_window_predict(const struct lift_window *w, const uint64_t hot[LIFT_CHUNK_WORDS],
	const uint64_t eligible[LIFT_CHUNK_WORDS], int trial, uint64_t ret[LIFT_CHUNK_WORDS])
{
	memset(ret, 0, LIFT_CHUNK_WORDS * sizeof(*ret));
	for (int way = 0; way < LIFT_WAY_MAX; way++) {
		const struct lift_window_way *x = &w->way[way];

		if (trial >= 0 ? trial != way : !x->trusted)
			continue;
		if (way == LIFT_WAY_STRIDE)
			predict_stride(hot, eligible, x->pages, ret);
		else
			predict_run(hot, eligible, x->pages, way == LIFT_WAY_DOWN, ret);
	}
	return weight(ret);
}

static void forget_trial(struct lift_window_way *x)
{
	x->trial_n = 0;
	x->trial_t = 0;
	x->trial_p = 0;
	x->base_p = 0;
	x->chunks = 0;
}

static void judge(struct lift_window_way *x, uint64_t pct)
{
	forget_trial(x);
	if (pct >= GOOD_PCT) {
		/* Once believed, once enlarged: the size tried first is the size used first. */
		if (x->trusted && x->pages < LIFT_WINDOW_MAX_PAGES)
			x->pages = (uint16_t)(x->pages * 2);
		x->trusted = true;
		x->misses = 0;
	} else if (pct < POOR_PCT) {
		unsigned more;

		if (x->pages > LIFT_WINDOW_MIN_PAGES) {
			x->pages /= 2;
			return;
		}
		x->trusted = false;
		if (x->misses < UINT8_MAX)
			x->misses++;
		if (x->misses < MISSES_MAX)
			return;
		more = x->misses - MISSES_MAX;
		x->pause = (uint16_t)(more < PAUSE_SHIFT_MAX ? PAUSE_MIN << more
							     : PAUSE_MIN << PAUSE_SHIFT_MAX);
	}
}

static void verdict(struct lift_window_way *x)
{
	uint64_t seen = (uint64_t)x->trial_t * 4096;
	uint64_t hot = x->trial_p;

	if (x->trial_n < VERDICT || x->chunks < VERDICT_CHUNKS)
		return;
	if (x->pages > LIFT_WINDOW_MIN_PAGES && x->near_n) {
		uint64_t near = (uint64_t)x->near_t * 4096 * x->trial_n / x->near_n;

		if (hot < near)
			hot = near;
	}
	/* While hot pages do not stand out themselves, what is accessed far more than most is good.
	 */
	if (hot * 2 >= x->base_p * 3 && hot > 0)
		judge(x, seen > x->base_p ? (seen - x->base_p) * 100 / (hot - x->base_p) : 0);
	else if (seen > x->base_p * 3)
		judge(x, 100);
	else if (seen * 2 < x->base_p * 3)
		judge(x, 0);
	else
		forget_trial(x);
}

/* What way @way would foretell with a size of @pages. */
static void predict_sized(const struct lift_window *w, int way, unsigned pages, const uint64_t *hot,
	const uint64_t *eligible, uint64_t *ret)
{
	struct lift_window other = *w;

	other.way[way].pages = (uint16_t)pages;
	lift_window_predict(&other, hot, eligible, way, ret);
}

/* Sampled pages among @map, and how many of them were accessed. */
static void count(const uint64_t *map, const uint64_t *sampled, const uint64_t *accessed,
	uint32_t *n, uint32_t *t)
{
	for (unsigned i = 0; i < LIFT_CHUNK_WORDS; i++) {
		*n += lift_weight(map[i] & sampled[i]);
		*t += lift_weight(map[i] & sampled[i] & accessed[i]);
	}
}

void lift_window_maps(const struct lift_heat *h, const struct lift_chunk *c, const bool *hot_state,
	const uint16_t *p, bool fresh, uint64_t ret_hot[LIFT_CHUNK_WORDS],
	uint64_t ret_eligible[LIFT_CHUNK_WORDS], uint32_t *ret_p)
{
	const struct lift_pages *pages = lift_heat_pages(h, c);
	uint64_t last[LIFT_CHUNK_WORDS] = {0};
	uint64_t sum = 0;
	unsigned row = 0;
	unsigned nr;

	memset(ret_hot, 0, LIFT_CHUNK_WORDS * sizeof(*ret_hot));
	memset(ret_eligible, 0, LIFT_CHUNK_WORDS * sizeof(*ret_eligible));
	for (unsigned i = 0; i < LIFT_CHUNK_PAGES; i++) {
		uint8_t heat = pages ? pages->heat[i] : c->heat;
		uint8_t where = pages ? pages->where[i] : c->where;
		uint8_t guard = pages ? pages->guard[i] : c->guard;
		bool hot = hot_state[heat & (LIFT_STATES - 1)];

		if (lift_heat_in(h->slow, where)) {
			if (guard & LIFT_GUARD_COUNT)
				continue;
			set(hot && !fresh ? ret_hot : ret_eligible, i);
			if (heat & 1)
				set(last, i);
		} else if (lift_heat_in(h->fast, where)) {
			if (heat & LIFT_HEAT_PREDICTED) {
				set(ret_eligible, i);
			} else if (!fresh || lift_heat_fresh(guard)) {
				if (hot)
					set(ret_hot, i);
				if (heat & 1)
					set(last, i);
			}
		}
	}
	for (unsigned i = 0; i < LIFT_CHUNK_PAGES; i++) {
		row = bit(last, i) ? row + 1 : 0;
		for (unsigned k = 0; row >= ROW && k < ROW; k++)
			set(ret_hot, i - k);
	}
	for (unsigned i = 0; i < LIFT_CHUNK_WORDS; i++)
		ret_eligible[i] &= ~ret_hot[i];
	for (unsigned i = 0; i < LIFT_CHUNK_PAGES; i++)
		if (bit(ret_hot, i))
			sum += p[lift_heat_get(h, c, i) & (LIFT_STATES - 1)];
	nr = weight(ret_hot);
	*ret_p = nr ? (uint32_t)(sum / nr) : 0;
}

void lift_window_learn(struct lift_window *w, const uint64_t hot[LIFT_CHUNK_WORDS],
	const uint64_t eligible[LIFT_CHUNK_WORDS], uint32_t hot_p, uint32_t base_p,
	const uint64_t sampled[LIFT_CHUNK_WORDS], const uint64_t accessed[LIFT_CHUNK_WORDS])
{
	uint64_t all[LIFT_CHUNK_WORDS];
	uint64_t part[LIFT_CHUNK_WORDS];

	if (weight(hot) == 0)
		return;
	for (int way = 0; way < LIFT_WAY_MAX; way++) {
		struct lift_window_way *x = &w->way[way];
		uint32_t n = 0;

		if (x->pause || x->pages == 0)
			continue;
		predict_sized(w, way, x->pages, hot, eligible, all);
		count(all, sampled, accessed, &x->pass_n, &x->pass_t);
		if (w->fixed)
			continue;
		if (x->pages > LIFT_WINDOW_MIN_PAGES) {
			predict_sized(w, way, LIFT_WINDOW_MIN_PAGES, hot, eligible, part);
			count(part, sampled, accessed, &x->near_n, &x->near_t);
			predict_sized(w, way, x->pages / 2, hot, eligible, part);
			for (unsigned i = 0; i < LIFT_CHUNK_WORDS; i++)
				all[i] &= ~part[i];
		}
		count(all, sampled, accessed, &n, &x->trial_t);
		x->trial_n += n;
		if (n && x->chunks < UINT8_MAX)
			x->chunks++;
		x->trial_p += (uint64_t)n * hot_p;
		x->base_p += (uint64_t)n * base_p;
		verdict(x);
	}
}

void lift_window_judge(struct lift_window *w, uint32_t hit, uint32_t wrong)
{
	/* Moved and not used is what matters most. */
	bool bad = hit + wrong >= VERDICT && hit < wrong;

	w->hit += hit;
	w->wrong += wrong;
	w->pass_n = 0;
	w->pass_t = 0;
	for (unsigned i = 0; i < LIFT_WAY_MAX; i++) {
		struct lift_window_way *x = &w->way[i];

		if (x->pause) {
			x->pause--;
		} else if (!w->fixed && bad && x->trusted) {
			judge(x, 0);
		}
		/* Only now, so that a way that has just won trust brings its figures along. */
		if (x->trusted) {
			w->pass_n += x->pass_n;
			w->pass_t += x->pass_t;
		}
		x->pass_n = 0;
		x->pass_t = 0;
		x->near_n /= 2;
		x->near_t /= 2;
	}
}

bool lift_window_rests(const struct lift_window *w)
{
	for (unsigned i = 0; i < LIFT_WAY_MAX; i++)
		if (w->way[i].pause == 0 && w->way[i].pages != 0)
			return false;
	return true;
}

uint64_t lift_window_bytes(const struct lift_window *w)
{
	uint64_t max = 0;

	for (unsigned i = 0; i < LIFT_WAY_MAX; i++)
		if (w->way[i].trusted && w->way[i].pages > max)
			max = w->way[i].pages;
	return max * LIFT_PAGE_BYTES;
}
