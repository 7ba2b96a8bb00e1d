#include "policy/split.h"

/* Halves that were alike in this many samples in a row become one; while room is short, in one. */
#define PATIENCE 4
/* Of 255: a difference below this is none. */
#define ALIKE 32
/* A region that was split for nothing is left whole for 2, 4, ... 128 samples. */
#define MOST_TRIES 6
#define MOST_GAIN 64

/* Of a region with less than 1/64 used, or less than 1/8 not used, nothing can be gained. */
#define LITTLE(bytes) ((bytes) / 64)
#define LARGE_PART(bytes) ((bytes) / 8)

void lift_split_init(struct lift_split *s, struct lift_split_region *region, size_t max)
{
	*s = (struct lift_split){.region = region, .max = max, .coarse = LIFT_SPLIT_COARSE};
}

/* --- borders --- */

/*
 * The border in the middle of the smallest aligned block that holds all of r; 0: there is none
 * that keeps huge pages whole. It lies within r always, since a half would do else.
 */
static uintptr_t middle(struct lift_range r)
{
	uintptr_t differ = r.start ^ (r.end - 1);
	uintptr_t bit = LIFT_SPLIT_LEAST;

	if (differ < bit)
		return 0;
	while (bit <= differ / 2)
		bit *= 2;
	return (r.end - 1) & ~(bit - 1);
}

static struct lift_range range_of(const struct lift_split_region *r)
{
	return (struct lift_range){r->start, r->end};
}

static bool is_last(const struct lift_split *s, size_t i)
{
	return i + 1 == s->nr || (s->region[i + 1].flags & LIFT_SPLIT_FIRST);
}

/* Are i and the next one all that their run has of a block? */
static bool is_pair(const struct lift_split *s, size_t i)
{
	const struct lift_split_region *a = &s->region[i];
	const struct lift_split_region *b = a + 1;
	uintptr_t differ;
	uintptr_t size = LIFT_SPLIT_LEAST;

	if (is_last(s, i))
		return false;
	differ = a->start ^ (b->end - 1);
	while (size <= differ)
		size *= 2;
	return ((a->flags & LIFT_SPLIT_FIRST) || a->start % size == 0) &&
	       (is_last(s, i + 1) || b->end % size == 0);
}

/*
 * Forms in turn, as few of them changed as can be, and the sum of what they cost. The end of a run
 * is counted, too: what follows may have merged with it before.
 */
static void settle(struct lift_split *s)
{
	unsigned before = 0;
	uint64_t in_run = 0;

	s->cost = 0;
	for (size_t i = 0; i < s->nr; i++) {
		struct lift_split_region *r = &s->region[i];
		unsigned form = r->flags & LIFT_SPLIT_OTHER;

		if (r->flags & LIFT_SPLIT_FIRST) {
			form = 0;
			in_run = 0;
		} else if (form == before) {
			form ^= LIFT_SPLIT_OTHER;
		}
		if (form != (r->flags & LIFT_SPLIT_OTHER))
			r->flags = (uint8_t)((r->flags & ~(LIFT_SPLIT_OTHER | LIFT_SPLIT_DONE)) |
					     form);
		s->moved |= !(r->flags & LIFT_SPLIT_DONE);
		before = form;
		in_run++;
		s->cost += in_run == 1 ? 0 : in_run == 2 ? 2 : 1;
	}
}

size_t lift_split_find(const struct lift_split *s, uintptr_t addr)
{
	size_t low = 0;
	size_t high = s->nr;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (s->region[mid].end > addr)
			high = mid;
		else
			low = mid + 1;
	}
	return low;
}

/* --- merging --- */

/* Puts b, the next one, into a. */
static void join(struct lift_split_region *a, const struct lift_split_region *b)
{
	bool useful = a->share + ALIKE < b->share || b->share + ALIKE < a->share;
	bool even = !useful && a->share >= LITTLE(255) && a->share <= 255 - LARGE_PART(255);

	a->end = b->end;
	a->flags &= (uint8_t)~LIFT_SPLIT_DONE;
	if (a->flags & LIFT_SPLIT_ABSENT)
		a->share = b->share;
	else if (!(b->flags & LIFT_SPLIT_ABSENT))
		a->share = (uint8_t)((a->share + b->share) / 2);
	a->flags &= (uint8_t)(b->flags | ~LIFT_SPLIT_ABSENT);
	/* The one that it becomes may be half of such a pair itself: soon, but not unseen. */
	a->alike = PATIENCE - 1;
	if (b->tries > a->tries)
		a->tries = b->tries;
	if (!even)
		a->tries = 0;
	else if (a->tries < MOST_TRIES)
		a->tries++;
	a->rest = even ? (uint8_t)(1u << a->tries) : 0;
}

static bool agree(const struct lift_split_region *a, const struct lift_split_region *b, unsigned by)
{
	unsigned differ = a->share > b->share ? a->share - b->share : b->share - a->share;

	return ((a->flags | b->flags) & LIFT_SPLIT_ABSENT) || differ <= by;
}

struct merge_how {
	uint64_t bytes;    /* of what they become, at most */
	unsigned by;       /* how much they may differ */
	unsigned patience; /* for how many samples they have agreed */
	bool any;          /* also what is not a pair */
};

/* Merges, `most` times at most, until no more than `allowed` mappings are needed. */
static size_t merge(
	struct lift_split *s, const struct merge_how *how, uint64_t allowed, size_t most)
{
	size_t to = 0;
	size_t merged = 0;
	uint64_t saved = 0;

	for (size_t i = 0; i < s->nr; to++) {
		struct lift_split_region *a = &s->region[i];
		bool both = merged < most && saved + allowed < s->cost &&
			    (how->any ? !is_last(s, i) : is_pair(s, i)) &&
			    a[1].end - a->start <= how->bytes && a->alike >= how->patience &&
			    agree(a, a + 1, how->by);

		if (both) {
			saved += (a->flags & LIFT_SPLIT_FIRST) && is_last(s, i + 1) ? 2 : 1;
			join(a, a + 1);
			merged++;
		}
		s->region[to] = *a;
		i += both ? 2 : 1;
	}
	s->nr = to;
	if (merged)
		settle(s);
	return merged;
}

/* Whatever it takes: the smallest first, of these the ones that differ least. */
static void fit(struct lift_split *s, uint64_t allowed)
{
	struct merge_how how = {.bytes = 2 * LIFT_SPLIT_LEAST};

	while (s->cost > allowed && how.bytes <= UINT64_MAX / 2) {
		for (how.by = ALIKE; how.by <= 8 * ALIKE; how.by *= 2)
			while (merge(s, &how, allowed, SIZE_MAX) > 0)
				;
		how.bytes *= 2;
	}
	/* Borders that are left where a run was and is no more. */
	how.any = true;
	while (s->cost > allowed && merge(s, &how, allowed, SIZE_MAX) > 0)
		;
}

/* --- the runs --- */

void lift_split_set_begin(struct lift_split *s, uint64_t bytes, uint64_t allowed)
{
	uint64_t room = allowed < s->max ? allowed : s->max;

	s->coarse = LIFT_SPLIT_COARSE;
	while (s->coarse < bytes && bytes / s->coarse > room / 2)
		s->coarse *= 2;
	/* The new list grows from the front, over what has been read of the old one. */
	memmove(s->region + s->max - s->nr, s->region, s->nr * sizeof(*s->region));
	s->old = s->max - s->nr;
	s->nr = 0;
}

/* The old ones below addr are of no use any more. */
static void skip_old(struct lift_split *s, uintptr_t addr, lift_split_drop_fn *drop, void *arg)
{
	for (; s->old < s->max; s->old++) {
		struct lift_split_region *o = &s->region[s->old];
		struct lift_range gone = {o->start, o->end < addr ? o->end : addr};

		if (lift_range_empty(gone))
			break;
		if (o->flags & LIFT_SPLIT_OTHER)
			drop(arg, gone);
		o->start = gone.end;
		if (o->start < o->end)
			break;
	}
}

/*
 * Where a region that begins or goes on at `from` ends, if not at `end`: where one is known, if
 * that cuts no huge page.
 */
static uintptr_t new_end(const struct lift_split *s, uintptr_t from, uintptr_t end)
{
	for (size_t k = s->old; k < s->max && s->region[k].start < end; k++)
		if (s->region[k].start > from && s->region[k].start % LIFT_SPLIT_LEAST == 0)
			return s->region[k].start;
	return end;
}

void lift_split_set_run(
	struct lift_split *s, struct lift_range run, lift_split_drop_fn *drop, void *arg)
{
	uint8_t first = LIFT_SPLIT_FIRST;

	for (; run.start < run.end && s->nr < s->max; first = 0) {
		struct lift_split_region r = {.start = run.start, .flags = LIFT_SPLIT_ABSENT};
		struct lift_split_region *o = &s->region[s->old];

		skip_old(s, run.start, drop, arg);
		o = &s->region[s->old];
		if (s->old < s->max && o->start == run.start) {
			r = *o;
			if (o->end > run.end) {
				o->start = r.end = run.end;
			} else {
				s->old++;
				if (r.end < run.end && r.end % LIFT_SPLIT_LEAST != 0) {
					r.end = new_end(s, r.end, run.end);
					r.flags &= (uint8_t)~LIFT_SPLIT_DONE;
				}
			}
		} else {
			r.end = new_end(s, run.start, run.end);
		}
		/* What is overwritten is forgotten, and gets its form again. */
		if (s->nr == s->old)
			skip_old(s, s->region[s->old].end, drop, arg);
		r.flags = (uint8_t)((r.flags & ~LIFT_SPLIT_FIRST) | first);
		s->region[s->nr++] = r;
		run.start = r.end;
	}
}

void lift_split_set_end(struct lift_split *s, uint64_t allowed, lift_split_drop_fn *drop, void *arg)
{
	skip_old(s, UINTPTR_MAX, drop, arg);
	settle(s);
	fit(s, allowed);
}

/* --- samples --- */

static uint64_t share_of(uint64_t part, uint64_t all)
{
	while (all > UINT64_MAX / 256) {
		part /= 2;
		all /= 2;
	}
	return part * 255 / all;
}

void lift_split_sampled(
	struct lift_split *s, size_t i, uint64_t accessed_bytes, uint64_t resident_bytes)
{
	struct lift_split_region *r = &s->region[i];

	unsigned was = r->share;

	r->flags |= LIFT_SPLIT_FRESH | LIFT_SPLIT_ABSENT;
	if (resident_bytes == 0)
		return;
	r->flags &= (uint8_t)~LIFT_SPLIT_ABSENT;
	r->share = accessed_bytes >= resident_bytes
			   ? 255
			   : (uint8_t)share_of(accessed_bytes, resident_bytes);
	/* What was in vain before need not be in vain now. */
	if (r->share > was + 2 * ALIKE || was > r->share + 2u * ALIKE) {
		r->tries = 0;
		r->rest = 0;
	}
}

static bool mixed(uint64_t accessed, uint64_t resident)
{
	return accessed > 0 && accessed >= LITTLE(resident) && accessed < resident &&
	       resident - accessed >= LARGE_PART(resident);
}

bool lift_split_mixed(
	const struct lift_split *s, size_t i, uint64_t accessed_bytes, uint64_t resident_bytes)
{
	return s->region[i].rest == 0 && mixed(accessed_bytes, resident_bytes) &&
	       middle(range_of(&s->region[i])) != 0;
}

static bool is_large(const struct lift_split *s, const struct lift_split_region *r)
{
	return r->end - r->start > s->coarse;
}

/*
 * How much is in the wrong place as long as r is whole, in powers of two; 0: not to be split. What
 * is too large comes first.
 */
static unsigned gain(const struct lift_split *s, const struct lift_split_region *r)
{
	uint64_t share = r->share > 127 ? 255u - r->share : r->share;
	uint64_t wrong = ((r->end - r->start) / LIFT_SPLIT_LEAST + 1) * share;
	unsigned bits = 1;

	if (!(r->flags & LIFT_SPLIT_FRESH) || (r->flags & LIFT_SPLIT_ABSENT) ||
		!middle(range_of(r)))
		return 0;
	if (is_large(s, r))
		return MOST_GAIN;
	if (r->rest > 0 || !mixed(r->share, 255))
		return 0;
	for (; wrong > 1; wrong /= 2)
		bits++;
	return bits;
}

/* The last border that r is split at below end; 0: none. */
static uintptr_t border(
	const struct lift_split *s, const struct lift_split_region *r, uintptr_t end)
{
	uintptr_t at = r->alike ? middle(range_of(r)) : (end - 1) & ~(s->coarse - 1);

	return at > r->start && at < end ? at : 0;
}

/* Mappings that splitting i costs: one for each border, one more where there was none before. */
static uint64_t price(const struct lift_split *s, size_t i)
{
	const struct lift_split_region *r = &s->region[i];
	uint64_t whole = (r->flags & LIFT_SPLIT_FIRST) && is_last(s, i) ? 1 : 0;

	if (r->alike)
		return whole + 1;
	return whole + (r->end - 1) / s->coarse - r->start / s->coarse;
}

static void split(struct lift_split *s, uint64_t allowed, size_t most)
{
	uint64_t by_gain[MOST_GAIN + 1] = {0};
	uint64_t room = allowed > s->cost ? allowed - s->cost : 0;
	unsigned limit =
		MOST_GAIN; /* all that gain more are split, and some of those that gain this */
	size_t want = 0;
	size_t to;

	if (room > most)
		room = most;
	if (room > s->max - s->nr)
		room = s->max - s->nr;
	for (size_t i = 0; i < s->nr; i++) {
		struct lift_split_region *r = &s->region[i];
		unsigned g = gain(s, r);

		/* In two; or along multiples of what is large, if there are enough mappings. */
		if (g > 0) {
			r->alike = 0;
			r->alike = !is_large(s, r) || price(s, i) > room;
			by_gain[g] += price(s, i);
		}
	}
	for (; limit > 0 && by_gain[limit] <= room; limit--)
		room -= by_gain[limit];
	/* Which ones, from the front; then each to its place, from the back. */
	for (size_t i = 0; i < s->nr; i++) {
		struct lift_split_region *r = &s->region[i];
		unsigned g = gain(s, r);

		r->flags &= (uint8_t)~LIFT_SPLIT_FRESH;
		if (g > 0 && g == limit && room >= price(s, i))
			room -= price(s, i);
		else if (g <= limit)
			continue;
		r->flags |= LIFT_SPLIT_FRESH; /* from here on: to be split */
		for (uintptr_t at = r->end; (at = border(s, r, at)) != 0;)
			want++;
	}
	if (want == 0)
		return;
	to = s->nr + want;
	for (size_t i = s->nr; i-- > 0;) {
		struct lift_split_region r = s->region[i];
		struct lift_split_region part = r;
		uintptr_t at = r.end;

		if (r.flags & LIFT_SPLIT_FRESH) {
			part.alike = 0;
			part.flags &=
				(uint8_t) ~(LIFT_SPLIT_FRESH | LIFT_SPLIT_DONE | LIFT_SPLIT_FIRST);
			while ((at = border(s, &r, at)) != 0) {
				part.start = at;
				s->region[--to] = part;
				part.end = at;
			}
			part.start = r.start;
			part.flags |= r.flags & LIFT_SPLIT_FIRST;
		}
		s->region[--to] = part;
	}
	s->nr += want;
	settle(s);
}

void lift_split_step(struct lift_split *s, uint64_t allowed, size_t most)
{
	struct merge_how how = {.bytes = s->coarse, .by = ALIKE, .patience = PATIENCE};
	size_t wanting = 0;

	for (size_t i = 0; i < s->nr; i++) {
		struct lift_split_region *r = &s->region[i];

		if (!(r->flags & LIFT_SPLIT_FRESH))
			continue;
		wanting += gain(s, r) > 0;
		if (r->rest > 0)
			r->rest--;
		if (!is_pair(s, i) || !(r[1].flags & LIFT_SPLIT_FRESH))
			continue;
		if (!agree(r, r + 1, ALIKE))
			r->alike = 0;
		else if (r->alike < PATIENCE)
			r->alike++;
	}
	fit(s, allowed);
	if (allowed - s->cost < wanting)
		how.patience = 1;
	(void)merge(s, &how, 0, most);
	split(s, allowed, most);
	for (size_t i = 0; i < s->nr; i++)
		s->region[i].flags &= (uint8_t)~LIFT_SPLIT_FRESH;
}

bool lift_split_check(const struct lift_split *s)
{
	uint64_t cost = 0;
	uint64_t in_run = 0;

	if (s->nr > s->max)
		return false;
	for (size_t i = 0; i < s->nr; i++) {
		const struct lift_split_region *r = &s->region[i];
		bool first = (r->flags & LIFT_SPLIT_FIRST) != 0;

		if (r->start >= r->end || (i == 0 && !first) || (i > 0 && r[-1].end > r->start) ||
			(!first && (r[-1].end != r->start || r->start % LIFT_SPLIT_LEAST)) ||
			(first && (r->flags & LIFT_SPLIT_OTHER)) ||
			(!first && !((r->flags ^ r[-1].flags) & LIFT_SPLIT_OTHER)))
			return false;
		in_run = first ? 1 : in_run + 1;
		cost += in_run == 1 ? 0 : in_run == 2 ? 2 : 1;
	}
	return cost == s->cost;
}
