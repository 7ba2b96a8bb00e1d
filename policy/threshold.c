#include "policy/threshold.h"

#define P_ONE 4096u

/* A state with fewer observations than this is judged by its neighbours rather than by itself. */
#define PRIOR_WEIGHT 16u
#define LEVEL_ENOUGH 32u
#define PREDICTED_ENOUGH 64u

/* What was known before a change counts this much less. */
#define FADE 8

/* How many standard deviations a candidate is taken to be worse, and a victim better, than it
 * looks. */
#define SURE_NUM 5
#define SURE_DEN 2

/*
 * Samples are as rough as the mean of about so many; 1 is twice, or half, of what was expected. At
 * the most a rate may be twice, or half, of what it seems.
 */
#define ROUGH_OF 8
#define ROUGH_ONE 1024u
#define ROUGH_MOST (4 * ROUGH_ONE)

/* Room is plenty when it is more than one in this many of all there is. */
#define PLENTY 4

/*
 * What states not yet seen are judged by: those with as many accesses in the last four samples. How
 * often there were accesses before is no help there, since all begin with never.
 */
#define LEVELS 5

/* -ln(1 - k/64) * 1024 */
static const uint16_t neg_log[65] = {0, 16, 33, 49, 66, 83, 101, 119, 137, 155, 174, 193, 213, 233,
	253, 273, 295, 316, 338, 361, 384, 407, 431, 456, 481, 507, 534, 561, 589, 618, 648, 678,
	710, 742, 776, 811, 847, 884, 922, 963, 1004, 1048, 1093, 1141, 1191, 1244, 1299, 1357,
	1420, 1486, 1556, 1632, 1714, 1803, 1901, 2009, 2129, 2266, 2424, 2611, 2839, 3134, 3549,
	4259, 5120};

uint32_t lift_neg_log(uint32_t p)
{
	uint32_t at = p / 64;

	if (at >= 64)
		return neg_log[64];
	return neg_log[at] + (uint32_t)(neg_log[at + 1] - neg_log[at]) * (p % 64) / 64;
}

static uint32_t from_neg_log(uint64_t x)
{
	uint32_t at = 0;

	if (x >= neg_log[64])
		return P_ONE;
	while (neg_log[at + 1] <= x)
		at++;
	return at * 64 +
	       (uint32_t)(x - neg_log[at]) * 64 / (uint32_t)(neg_log[at + 1] - neg_log[at]);
}

uint32_t lift_chance_in(uint32_t p, uint64_t from_ns, uint64_t to_ns)
{
	/* In microseconds, and no more than 2^32 of them, for the product to fit. */
	uint64_t from = from_ns / 1000 + 1;
	uint64_t to = to_ns / 1000 + 1;

	if (to > UINT32_MAX)
		to = UINT32_MAX;
	/* Not to be lost by the rounding. */
	return from == to ? p : from_neg_log(lift_neg_log(p) * to / from);
}

static uint32_t root(uint64_t x)
{
	uint64_t r = 0;

	for (uint64_t b = UINT64_C(1) << 31; b; b >>= 1)
		if ((r + b) * (r + b) <= x)
			r += b;
	return (uint32_t)r;
}

static unsigned level_of(unsigned state)
{
	return lift_weight(state & 0xf);
}

bool lift_state_isolated(unsigned state)
{
	return state < LIFT_STATES && level_of(state) <= 1 && state >> 4 <= 1;
}

void lift_calib_init(struct lift_calib *c, uint64_t window_ns)
{
	memset(c, 0, sizeof(*c));
	c->window_ns = window_ns ? window_ns : 1;
	c->grain = 1;
}

/* Of @n pages @t were accessed in a sample of @took_ns: as many as would be in one of @want_ns. */
static uint32_t as_if(uint32_t t, uint32_t n, uint64_t took_ns, uint64_t want_ns)
{
	uint32_t p;

	if (t == 0)
		return 0;
	p = (uint32_t)((uint64_t)t * P_ONE / n);
	return (uint32_t)((uint64_t)lift_chance_in(p, took_ns, want_ns) * n / P_ONE);
}

void lift_calib_add(struct lift_calib *c, const struct lift_tally *tally, uint64_t took_ns,
	uint32_t predicted_n, uint32_t predicted_t, uint64_t keep)
{
	uint64_t had = 0;
	uint64_t got = 0;

	for (unsigned s = 0; s < LIFT_STATES; s++) {
		had += c->n[s];
		got += tally->n[s];
	}
	/* Also keeps the sums far from overflow. */
	if (keep > UINT32_MAX / 4)
		keep = UINT32_MAX / 4;
	if (had + got > keep && had > 0) {
		uint64_t left = got < keep ? keep - got : 0;

		for (unsigned s = 0; s < LIFT_STATES; s++) {
			c->n[s] = (uint32_t)(c->n[s] * left / had);
			c->t[s] = (uint32_t)(c->t[s] * left / had);
		}
	}
	for (unsigned s = 0; s < LIFT_STATES; s++) {
		c->n[s] += tally->n[s];
		c->t[s] += as_if(tally->t[s], tally->n[s], took_ns, c->window_ns);
	}
	if (predicted_n) {
		c->n[LIFT_STATE_PREDICTED] = c->n[LIFT_STATE_PREDICTED] / 2 + predicted_n;
		c->t[LIFT_STATE_PREDICTED] = c->t[LIFT_STATE_PREDICTED] / 2 +
					     as_if(predicted_t, predicted_n, took_ns, c->window_ns);
	}
}

void lift_calib_doubt(struct lift_calib *c, uint64_t took_ns, uint64_t busy_ns, uint64_t unsure_ns)
{
	uint64_t most = took_ns > busy_ns ? took_ns : busy_ns;
	uint64_t least = took_ns > busy_ns ? busy_ns : took_ns;
	uint64_t off = most - least > unsure_ns ? most - least : unsure_ns;

	off /= least / ROUGH_ONE + 1;
	if (off > ROUGH_MOST)
		off = ROUGH_MOST;
	c->rough += (uint32_t)off - c->rough / ROUGH_OF;
}

void lift_calib_fade(struct lift_calib *c)
{
	for (unsigned s = 0; s < LIFT_STATES_ALL; s++) {
		c->n[s] /= FADE;
		c->t[s] /= FADE;
	}
}

void lift_calib_rewindow(struct lift_calib *c, uint64_t window_ns)
{
	if (window_ns == 0)
		window_ns = 1;
	/* Roughly, where nearly all were accessed: it is relearned. */
	for (unsigned s = 0; s < LIFT_STATES_ALL; s++)
		c->t[s] = as_if(c->t[s], c->n[s], c->window_ns, window_ns);
	c->window_ns = window_ns;
}

static uint32_t rate_of(uint32_t p, uint64_t window_ns)
{
	uint64_t rate = lift_neg_log(p) * (UINT64_C(1000000000000) / 1024) / window_ns;

	return rate < UINT32_MAX ? (uint32_t)rate : UINT32_MAX;
}

/* Chance of each level, from the level itself or else the nearest one below (above) that has one.
 */
static void level_chances(const struct lift_calib *c, uint32_t ret[LEVELS])
{
	uint64_t n[LEVELS] = {0};
	uint64_t t[LEVELS] = {0};
	int first = -1;

	for (unsigned s = 0; s < LIFT_STATES; s++) {
		n[level_of(s)] += c->n[s];
		t[level_of(s)] += c->t[s];
	}
	for (int l = 0; l < LEVELS; l++) {
		if (n[l] >= (uint64_t)LEVEL_ENOUGH * c->grain) {
			ret[l] = (uint32_t)(t[l] * P_ONE / n[l]);
			if (first < 0)
				first = l;
		} else {
			ret[l] = first >= 0 ? ret[l - 1] : 0;
		}
	}
	for (int l = 0; l < first; l++)
		ret[l] = ret[first];
}

/* Of what is found by the clock of samples that are @rough, so much is sure ... */
static uint32_t surely(uint64_t rate, uint32_t rough)
{
	return (uint32_t)(rate * ROUGH_MOST / (ROUGH_MOST + rough));
}

/* ... and so much possible. */
static uint32_t perhaps(uint64_t rate, uint32_t rough)
{
	rate = rate * (ROUGH_MOST + rough) / ROUGH_MOST;
	return rate < UINT32_MAX ? (uint32_t)rate : UINT32_MAX;
}

static void set_rates(
	const struct lift_calib *c, struct lift_rates *r, unsigned s, uint32_t p, uint64_t n)
{
	uint32_t rough = c->rough / ROUGH_OF;
	uint64_t window_ns = c->window_ns;
	uint32_t off = root((uint64_t)p * (P_ONE - p) / (n ? n : 1)) * SURE_NUM / SURE_DEN;

	r->p[s] = (uint16_t)p;
	r->rate[s] = rate_of(p, window_ns);
	r->low[s] = surely(rate_of(p > off ? p - off : 0, window_ns), rough);
	r->high[s] = perhaps(rate_of(p + off < P_ONE ? p + off : P_ONE, window_ns), rough);
}

void lift_calib_rates(const struct lift_calib *c, struct lift_rates *ret)
{
	uint32_t prior[LEVELS];

	level_chances(c, prior);
	for (unsigned s = 0; s < LIFT_STATES; s++) {
		uint64_t weight = (uint64_t)PRIOR_WEIGHT * c->grain;
		uint64_t n = c->n[s] + weight;
		uint64_t t = (uint64_t)c->t[s] * P_ONE + weight * prior[level_of(s)];

		set_rates(c, ret, s, (uint32_t)(t / n), n / c->grain);
	}
	if (c->n[LIFT_STATE_PREDICTED] >= PREDICTED_ENOUGH)
		set_rates(c, ret, LIFT_STATE_PREDICTED,
			(uint32_t)((uint64_t)c->t[LIFT_STATE_PREDICTED] * P_ONE /
				   c->n[LIFT_STATE_PREDICTED]),
			c->n[LIFT_STATE_PREDICTED]);
	else
		set_rates(c, ret, LIFT_STATE_PREDICTED, 0, 1);
}

/* What a page that is accessed this often more quickly saves in that time. */
static uint64_t saved_ns(uint64_t rate, const struct lift_price *price, uint64_t for_ns)
{
	return rate * price->gap_ns * (for_ns / 1000000) / 1000000;
}

static bool pays(uint64_t saved, uint64_t cost_ns, const struct lift_price *price)
{
	return saved * 100 >= cost_ns * price->margin_pct;
}

/*
 * A page that was promoted in advance and not used is owed its way back in any case: what takes its
 * place pays for itself only, like in free room.
 */
static bool trade_pays(const struct lift_rates *rates, unsigned s, uint64_t given, bool wrong,
	const struct lift_price *price)
{
	if (wrong)
		return rates->rate[s] > given &&
		       pays(saved_ns(rates->rate[s] - given, price, price->room_ns),
			       price->promote_ns, price);
	return rates->low[s] > given &&
	       pays(saved_ns(rates->low[s] - given, price, price->residence_ns),
		       price->promote_ns + price->demote_ns, price);
}

/* State numbers, highest rate first; the lower number among equals. */
static void sort_states(const uint32_t *rate, unsigned nr, uint8_t *ret)
{
	for (unsigned s = 0; s < nr; s++) {
		unsigned at = s;

		while (at > 0 && rate[ret[at - 1]] < rate[s]) {
			ret[at] = ret[at - 1];
			at--;
		}
		ret[at] = (uint8_t)s;
	}
}

static uint32_t min32(uint64_t a, uint64_t b)
{
	uint64_t m = a < b ? a : b;

	return m < UINT32_MAX ? (uint32_t)m : UINT32_MAX;
}

static void find_hot(const struct lift_census *census, const struct lift_rates *rates,
	uint64_t capacity, struct lift_cut *cut)
{
	uint8_t order[LIFT_STATES];
	uint64_t sum = census->fresh;

	sort_states(rates->rate, LIFT_STATES, order);
	for (unsigned i = 0; i < LIFT_STATES; i++) {
		unsigned s = order[i];

		sum += (uint64_t)census->slow[s] + census->fast[s];
		if (sum > capacity)
			break;
		cut->hot_rate = rates->rate[s];
		cut->hot[s] = !lift_state_isolated(s);
	}
}

void lift_threshold_cut(const struct lift_census *census, const struct lift_rates *rates,
	const struct lift_price *price, uint64_t capacity, uint32_t predicted, uint32_t max_promote,
	struct lift_cut *ret)
{
	uint64_t room = capacity > census->nr_fast ? capacity - census->nr_fast : 0;
	uint64_t excess = census->nr_fast > capacity ? census->nr_fast - capacity : 0;
	/* Then there is nothing to be told apart. */
	bool fits = census->nr_slow <= room;
	bool plenty = room * PLENTY > capacity || fits;
	uint8_t up[LIFT_STATES_ALL];
	uint8_t down[LIFT_STATES];
	uint32_t wrong = census->wrong;
	uint32_t left = 0; /* of the victims of down[] at v - 1 */
	uint64_t gain = 0;
	unsigned v = LIFT_STATES;
	struct lift_cut cut;

	memset(&cut, 0, sizeof(cut));
	find_hot(census, rates, capacity, &cut);
	sort_states(rates->rate, LIFT_STATES_ALL, up);
	sort_states(rates->rate, LIFT_STATES, down);

	while (excess > 0) {
		uint32_t nr;

		if (wrong > 0) {
			nr = min32(wrong, excess);
			wrong -= nr;
			cut.demote_wrong += nr;
		} else {
			while (v > 0 && left == 0)
				left = census->fast[down[--v]];
			if (left == 0)
				break;
			nr = min32(left, excess);
			left -= nr;
			cut.demote[down[v]] += nr;
		}
		cut.nr_demote += nr;
		cut.excess += nr;
		excess -= nr;
	}

	for (unsigned i = 0; i < LIFT_STATES_ALL; i++) {
		unsigned s = up[i];
		uint32_t want = s == LIFT_STATE_PREDICTED ? predicted : census->slow[s];
		bool isolated = lift_state_isolated(s);

		if (isolated && (!plenty || (s & 0xf) == 0))
			continue;
		if (price->one_way && !fits && (s == LIFT_STATE_PREDICTED || !cut.hot[s]))
			continue;
		while (want > 0 && cut.nr_promote < max_promote) {
			uint32_t nr = min32(want, max_promote - cut.nr_promote);
			uint64_t given = 0;

			if (room > 0) {
				if (!pays(saved_ns(rates->rate[s], price, price->room_ns),
					    price->promote_ns, price))
					break;
				nr = min32(nr, room);
				room -= nr;
			} else {
				if (isolated || price->one_way)
					break;
				if (wrong == 0)
					while (v > 0 && left == 0)
						left = census->fast[down[--v]];
				if (wrong == 0 && left == 0)
					break;
				given = wrong ? rates->rate[0] : rates->high[down[v]];
				if (!trade_pays(rates, s, given, wrong > 0, price))
					break;
				nr = min32(nr, wrong ? wrong : left);
				cut.nr_demote += nr;
				cut.nr_down += nr;
				cut.down_p += (uint64_t)nr * rates->p[wrong ? 0 : down[v]];
				if (wrong) {
					wrong -= nr;
					cut.demote_wrong += nr;
				} else {
					left -= nr;
					cut.demote[down[v]] += nr;
				}
			}
			cut.promote[s] += nr;
			cut.up_p += (uint64_t)nr * rates->p[s];
			cut.nr_promote += nr;
			want -= nr;
			gain += (uint64_t)nr *
				(rates->rate[s] > given ? rates->rate[s] - given : 0);
		}
	}
	cut.gain_ns_per_s = gain / 1000 * price->gap_ns;
	*ret = cut;
}

uint32_t lift_threshold_wanted(const struct lift_census *census, const struct lift_rates *rates,
	const struct lift_price *price, const struct lift_cut *cut)
{
	uint64_t nr = 0;

	for (unsigned s = 0; s < LIFT_STATES; s++)
		if (cut->hot[s] && rates->low[s] > rates->rate[0] &&
			pays(saved_ns(rates->low[s] - rates->rate[0], price, price->residence_ns),
				price->promote_ns + price->demote_ns, price))
			nr += census->slow[s];
	return min32(nr, UINT32_MAX);
}
