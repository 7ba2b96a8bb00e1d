#include "policy/heat.h"

#include <errno.h>

/*
 * A countdown starts here on a page that has come to a fast node: down to LIFT_GUARD_JUDGED it is
 * not given up again, and a prediction has time to come true, ...
 */
#define COUNT_FRESH 8
/* ... and this is how long a page waits that has bounced, or could not be moved. */
#define COUNT_COOL 4

/* Of a page that was not there before: once in its last four samples, and so before. */
#define HEAT_NEW 0x21

/* All parts of the memory handed in start on their own cache lines. */
#define ALIGN 64

static size_t aligned(size_t n)
{
	return (n + ALIGN - 1) / ALIGN * ALIGN;
}

/* At most half full. */
static uint32_t index_size(uint32_t chunks)
{
	uint32_t size = 16;

	while (size / 2 < chunks && size < UINT32_C(1) << 31)
		size *= 2;
	return size;
}

size_t lift_heat_bytes(uint32_t chunks, uint32_t detailed)
{
	return aligned(index_size(chunks) * sizeof(uint32_t)) +
	       aligned(chunks * sizeof(struct lift_chunk)) + aligned(detailed * sizeof(uint32_t)) +
	       aligned(detailed * sizeof(struct lift_pages));
}

int lift_heat_init(struct lift_heat *h, void *mem, size_t bytes, uint32_t chunks, uint32_t detailed)
{
	unsigned char *at = mem;

	if (!mem || chunks == 0 || bytes < lift_heat_bytes(chunks, detailed))
		return -EINVAL;
	memset(h, 0, sizeof(*h));
	h->mask = index_size(chunks) - 1;
	h->max_chunks = chunks;
	h->max_pages = detailed;
	h->index = (void *)at;
	at += aligned(((size_t)h->mask + 1) * sizeof(uint32_t));
	h->chunk = (void *)at;
	at += aligned(chunks * sizeof(struct lift_chunk));
	h->free_page = (void *)at;
	at += aligned(detailed * sizeof(uint32_t));
	h->pages = (void *)at;
	return 0;
}

struct page {
	uint8_t heat;
	uint8_t where;
	uint8_t guard;
};

static struct page page_of(const struct lift_heat *h, const struct lift_chunk *c, unsigned i)
{
	return (struct page){
		lift_heat_get(h, c, i), lift_heat_where(h, c, i), lift_heat_guard(h, c, i)};
}

/* @units are added modulo 2^32: the negative takes back what was counted before. */
static void count_page(const struct lift_heat *h, struct page p, bool known, uint32_t units,
	struct lift_census *census)
{
	unsigned state = p.heat & (LIFT_STATES - 1);
	unsigned slot = p.where & LIFT_WHERE_MASK;

	if (slot < LIFT_SLOTS)
		census->here[slot] += units;
	if (lift_heat_in(h->slow, p.where)) {
		census->nr_slow += units;
		if (p.guard & LIFT_GUARD_COUNT)
			census->cooling += units;
		else
			census->slow[state] += units;
	} else if (lift_heat_in(h->fast, p.where)) {
		census->nr_fast += units;
		if (!known || lift_heat_fresh(p.guard))
			census->fresh += units;
		else if (p.where & LIFT_WHERE_WRONG)
			census->wrong += units;
		else
			census->fast[state] += units;
	} else if (slot == LIFT_WHERE_STUCK) {
		census->nr_stuck += units;
	}
}

static bool is_known(const struct lift_chunk *c, unsigned i)
{
	return c->samples[i / LIFT_PART_PAGES] >= LIFT_SAMPLES_KNOWN;
}

static void count_part(const struct lift_heat *h, const struct lift_chunk *c, unsigned part,
	uint32_t sign, struct lift_census *census)
{
	unsigned first = part * LIFT_PART_PAGES;
	unsigned step = c->pages != LIFT_NO_PAGES ? 1 : LIFT_PART_PAGES;

	for (unsigned i = first; i < first + LIFT_PART_PAGES; i += step)
		count_page(h, page_of(h, c, i), is_known(c, i), sign * step, census);
}

static void count_chunk(const struct lift_heat *h, const struct lift_chunk *c, uint32_t sign,
	struct lift_census *census)
{
	if (c->flags & LIFT_CHUNK_HUGE) {
		count_page(h, page_of(h, c, 0), is_known(c, 0), sign * LIFT_CHUNK_PAGES, census);
		return;
	}
	for (unsigned part = 0; part < LIFT_CHUNK_PARTS; part++)
		count_part(h, c, part, sign, census);
}

/* Around what changes in a chunk: */
static void uncount(struct lift_heat *h, const struct lift_chunk *c)
{
	count_chunk(h, c, UINT32_MAX, &h->census);
}

static void count(struct lift_heat *h, const struct lift_chunk *c)
{
	count_chunk(h, c, 1, &h->census);
}

static void count_anew(const struct lift_heat *h, struct lift_census *ret)
{
	memset(ret, 0, sizeof(*ret));
	for (uint32_t n = 0; n < h->nr_chunks; n++)
		count_chunk(h, &h->chunk[n], 1, ret);
}

void lift_heat_set_tiers(struct lift_heat *h, uint64_t fast, uint64_t slow)
{
	slow &= ~fast;
	if (h->fast == fast && h->slow == slow)
		return;
	h->fast = fast;
	h->slow = slow;
	count_anew(h, &h->census);
}

static uint32_t hash(const struct lift_heat *h, uintptr_t base)
{
	return (uint32_t)((base / LIFT_CHUNK_BYTES * UINT64_C(0x9e3779b97f4a7c15)) >> 32) & h->mask;
}

/* Where @base is in the index, or the hole where it would be. */
static uint32_t probe(const struct lift_heat *h, uintptr_t base)
{
	uint32_t at = hash(h, base);

	while (h->index[at] && h->chunk[h->index[at] - 1].base != base)
		at = (at + 1) & h->mask;
	return at;
}

struct lift_chunk *lift_heat_find(const struct lift_heat *h, uintptr_t addr)
{
	uint32_t nr = h->index[probe(h, addr & ~(uintptr_t)(LIFT_CHUNK_BYTES - 1))];

	return nr ? &h->chunk[nr - 1] : NULL;
}

struct lift_chunk *lift_heat_add(struct lift_heat *h, uintptr_t addr)
{
	uintptr_t base = addr & ~(uintptr_t)(LIFT_CHUNK_BYTES - 1);
	uint32_t at = probe(h, base);
	struct lift_chunk *c;

	if (h->index[at])
		return &h->chunk[h->index[at] - 1];
	if (h->nr_chunks == h->max_chunks) {
		h->refused++;
		return NULL;
	}
	c = &h->chunk[h->nr_chunks++];
	memset(c, 0, sizeof(*c));
	c->base = base;
	c->pages = LIFT_NO_PAGES;
	c->where = LIFT_WHERE_ABSENT;
	c->flags = LIFT_CHUNK_UNKNOWN;
	c->home = LIFT_SLOTS;
	h->index[at] = h->nr_chunks;
	return c;
}

/* Takes an entry out so that no later one is cut off from its place. */
static void unindex(struct lift_heat *h, uint32_t hole)
{
	uint32_t at = hole;

	for (;;) {
		uint32_t want;

		at = (at + 1) & h->mask;
		if (!h->index[at])
			break;
		want = hash(h, h->chunk[h->index[at] - 1].base);
		if (((at - want) & h->mask) >= ((at - hole) & h->mask)) {
			h->index[hole] = h->index[at];
			hole = at;
		}
	}
	h->index[hole] = 0;
}

static void give_back(struct lift_heat *h, struct lift_chunk *c)
{
	if (c->pages == LIFT_NO_PAGES)
		return;
	h->free_page[h->nr_free_page++] = c->pages;
	c->pages = LIFT_NO_PAGES;
}

void lift_heat_remove(struct lift_heat *h, struct lift_chunk *c)
{
	struct lift_chunk *last = &h->chunk[h->nr_chunks - 1];

	uncount(h, c);
	give_back(h, c);
	unindex(h, probe(h, c->base));
	if (c != last) {
		uint32_t at = probe(h, last->base);

		*c = *last;
		h->index[at] = (uint32_t)(c - h->chunk) + 1;
	}
	h->nr_chunks--;
}

/* Gives @c pages of its own. */
static struct lift_pages *expand(struct lift_heat *h, struct lift_chunk *c)
{
	struct lift_pages *p;

	if (c->pages != LIFT_NO_PAGES)
		return &h->pages[c->pages];
	if (h->nr_free_page)
		c->pages = h->free_page[--h->nr_free_page];
	else if (h->top_pages < h->max_pages)
		c->pages = h->top_pages++;
	else
		return NULL;
	p = &h->pages[c->pages];
	memset(p->heat, c->heat, sizeof(p->heat));
	memset(p->where, c->where, sizeof(p->where));
	memset(p->guard, c->guard, sizeof(p->guard));
	return p;
}

static bool all_alike(const uint8_t *b)
{
	return memcmp(b, b + 1, LIFT_CHUNK_PAGES - 1) == 0;
}

static void collapse(struct lift_heat *h, struct lift_chunk *c)
{
	const struct lift_pages *p = lift_heat_pages(h, c);

	if (!p || !all_alike(p->where) || !all_alike(p->heat) || !all_alike(p->guard))
		return;
	c->heat = p->heat[0];
	c->where = p->where[0];
	c->guard = p->guard[0];
	give_back(h, c);
}

bool lift_heat_set(struct lift_heat *h, struct lift_chunk *c, unsigned i, uint8_t heat,
	uint8_t where, uint8_t guard)
{
	struct lift_pages *p = lift_heat_pages(h, c);

	if (!p) {
		if (c->heat == heat && c->where == where && c->guard == guard)
			return true;
		if (!(c->flags & LIFT_CHUNK_HUGE)) {
			p = expand(h, c);
			if (!p)
				return false;
		}
	}
	if (p) {
		count_page(h, page_of(h, c, i), is_known(c, i), UINT32_MAX, &h->census);
		p->heat[i] = heat;
		p->where[i] = where;
		p->guard[i] = guard;
		count_page(h, page_of(h, c, i), is_known(c, i), 1, &h->census);
	} else {
		uncount(h, c);
		c->heat = heat;
		c->where = where;
		c->guard = guard;
		count(h, c);
	}
	return true;
}

/*
 * Without pages for it a chunk has to be of one kind. It is what page @i is: mixed ones are rare
 * where memory is scarce, and the next answer to "where" puts it right.
 */
static void set_somehow(struct lift_heat *h, struct lift_chunk *c, unsigned i, uint8_t heat,
	uint8_t where, uint8_t guard)
{
	if (lift_heat_set(h, c, i, heat, where, guard))
		return;
	h->coarse++;
	uncount(h, c);
	c->where = where;
	count(h, c);
}

void lift_heat_locate(struct lift_heat *h, struct lift_chunk *c, unsigned i, uint8_t slot)
{
	uint8_t where = lift_heat_where(h, c, i);
	uint8_t heat = lift_heat_get(h, c, i);
	uint8_t guard = lift_heat_guard(h, c, i);

	if ((where & LIFT_WHERE_MASK) == slot)
		return;
	if ((where & LIFT_WHERE_MASK) == LIFT_WHERE_ABSENT || slot == LIFT_WHERE_ABSENT) {
		/* Touched just now, among others that are known already: not cold to begin with. */
		heat = c->samples[i / LIFT_PART_PAGES] < LIFT_SAMPLES_KNOWN ? 0 : HEAT_NEW;
		guard = 0;
	}
	set_somehow(h, c, i, heat, slot, guard);
	/* A chunk is usually located from its first page to its last. */
	if (i == LIFT_CHUNK_PAGES - 1)
		collapse(h, c);
}

void lift_heat_describe(struct lift_heat *h, struct lift_chunk *c, bool huge)
{
	const struct lift_pages *p = lift_heat_pages(h, c);

	if (huge == ((c->flags & LIFT_CHUNK_HUGE) != 0))
		return;
	uncount(h, c);
	c->flags ^= LIFT_CHUNK_HUGE;
	if (huge && p) {
		c->heat = p->heat[0];
		c->where = p->where[0];
		c->guard = p->guard[0];
		give_back(h, c);
	}
	count(h, c);
}

void lift_heat_promoted(
	struct lift_heat *h, struct lift_chunk *c, unsigned i, uint8_t slot, bool predicted)
{
	uint8_t heat = lift_heat_get(h, c, i);
	uint8_t guard = lift_heat_guard(h, c, i);

	heat &= (uint8_t)~LIFT_HEAT_PREDICTED;
	if (predicted)
		heat |= LIFT_HEAT_PREDICTED;
	guard = (uint8_t)((guard & ~LIFT_GUARD_COUNT) | COUNT_FRESH);
	set_somehow(h, c, i, heat, slot, guard);
}

static uint8_t guard_up(uint8_t guard, uint8_t count)
{
	unsigned level = guard >> LIFT_GUARD_SHIFT;

	if (level < LIFT_GUARD_LEVELS)
		level++;
	return (uint8_t)(level << LIFT_GUARD_SHIFT | count);
}

bool lift_heat_demoted(struct lift_heat *h, struct lift_chunk *c, unsigned i, uint8_t slot)
{
	uint8_t heat = lift_heat_get(h, c, i) & (uint8_t)~LIFT_HEAT_PREDICTED;
	uint8_t guard = lift_heat_guard(h, c, i);
	/* What was promoted in advance in vain is a fault of the window, and cold. */
	bool bounced = (guard & LIFT_GUARD_COUNT) && !(lift_heat_where(h, c, i) & LIFT_WHERE_WRONG);

	if (bounced)
		guard = guard_up(guard, COUNT_COOL);
	else
		guard = (uint8_t)((guard & ~LIFT_GUARD_COUNT) | COUNT_COOL / 2);
	set_somehow(h, c, i, heat, slot, guard);
	return bounced;
}

static uint8_t settled(const struct lift_heat *h, uint8_t where, uint8_t guard)
{
	return lift_heat_in(h->fast, where) ? (uint8_t)(guard & ~LIFT_GUARD_COUNT) : guard;
}

void lift_heat_settle(struct lift_heat *h)
{
	for (uint32_t n = 0; n < h->nr_chunks; n++) {
		struct lift_chunk *c = &h->chunk[n];
		struct lift_pages *p = lift_heat_pages(h, c);

		if (!p)
			c->guard = settled(h, c->where, c->guard);
		for (unsigned i = 0; p && i < LIFT_CHUNK_PAGES; i++)
			p->guard[i] = settled(h, p->where[i], p->guard[i]);
		c->quiet = 0;
	}
	count_anew(h, &h->census);
}

void lift_heat_delay(struct lift_heat *h, struct lift_chunk *c, unsigned i)
{
	set_somehow(h, c, i, lift_heat_get(h, c, i), lift_heat_where(h, c, i),
		guard_up(lift_heat_guard(h, c, i), COUNT_COOL / 2));
}

static void forget_in(struct lift_heat *h, struct lift_chunk *c, struct lift_range range)
{
	unsigned from = 0;
	unsigned to = LIFT_CHUNK_PAGES;

	if (range.start > c->base)
		from = (unsigned)((range.start - c->base) >> LIFT_PAGE_SHIFT);
	if (range.end - c->base < LIFT_CHUNK_BYTES)
		to = (unsigned)((range.end - c->base + LIFT_PAGE_BYTES - 1) >> LIFT_PAGE_SHIFT);
	if (to - from == LIFT_CHUNK_PAGES) {
		lift_heat_remove(h, c);
		return;
	}
	lift_heat_describe(h, c, false);
	for (unsigned i = from; i < to; i++) {
		lift_heat_locate(h, c, i, LIFT_WHERE_ABSENT);
		c->armed[i / 64] &= ~(UINT64_C(1) << i % 64);
	}
	if (c->flags & LIFT_CHUNK_UNKNOWN)
		return;
	for (unsigned i = 0; i < LIFT_CHUNK_PAGES; i++)
		if ((lift_heat_where(h, c, i) & LIFT_WHERE_MASK) != LIFT_WHERE_ABSENT)
			return;
	lift_heat_remove(h, c);
}

void lift_heat_forget(struct lift_heat *h, struct lift_range range)
{
	uintptr_t base = range.start & ~(uintptr_t)(LIFT_CHUNK_BYTES - 1);

	if (lift_range_empty(range))
		return;
	if ((range.end - base) / LIFT_CHUNK_BYTES < h->nr_chunks) {
		for (; base < range.end; base += LIFT_CHUNK_BYTES) {
			struct lift_chunk *c = lift_heat_find(h, base);

			if (c)
				forget_in(h, c, range);
			if (base > UINTPTR_MAX - LIFT_CHUNK_BYTES)
				break;
		}
		return;
	}
	/* Larger than all that is known. From the end, because removing one moves the last. */
	for (uint32_t n = h->nr_chunks; n-- > 0;)
		if (h->chunk[n].base < range.end && h->chunk[n].base >= base)
			forget_in(h, &h->chunk[n], range);
}

/* A page's state after a sample; @settle: the fourth one, that moves "how often". */
static uint8_t next_heat(uint8_t heat, bool accessed, bool settle)
{
	static const uint8_t aim[5] = {0, 2, 4, 5, 7};
	unsigned history = ((unsigned)heat << 1 | accessed) & 0xfu;
	unsigned often = heat >> 4 & 7u;

	if (settle) {
		unsigned to = aim[lift_weight(history)];

		if (to > often)
			often += (to - often + 1) / 2;
		else
			often -= (often - to + 1) / 2;
	}
	return (uint8_t)((heat & LIFT_HEAT_PREDICTED) | often << 4 | history);
}

/* @units: pages that the page stands for. */
static struct page next_page(const struct lift_heat *h, struct page p, bool accessed, uint8_t nr,
	uint32_t units, struct lift_tally *tally)
{
	unsigned state = p.heat & (LIFT_STATES - 1);
	unsigned level = p.guard >> LIFT_GUARD_SHIFT;
	unsigned count = p.guard & LIFT_GUARD_COUNT;
	bool fast = lift_heat_in(h->fast, p.where);
	bool predicted = p.heat & LIFT_HEAT_PREDICTED;
	uint32_t t = accessed ? units : 0;

	tally->n[state] += units;
	tally->t[state] += t;
	if (fast) {
		tally->fast_n += units;
		tally->fast_t += t;
	} else if (lift_heat_in(h->slow, p.where)) {
		tally->slow_n[state] += units;
		tally->slow_t += t;
	}
	if (count && !predicted && fast) {
		tally->fresh_n += units;
		tally->fresh_t += t;
	} else if (count && !fast) {
		tally->gone_n += units;
		tally->gone_t += t;
	}

	p.heat = next_heat(p.heat, accessed, nr % 4 == 0);
	if (accessed)
		p.where &= (uint8_t)~LIFT_WHERE_WRONG;
	if (count && (nr & ((1u << level) - 1)) == 0) {
		count--;
		/* Stayed for long enough to be trusted a bit more. */
		if (count == 0 && fast && level) {
			level--;
			count = COUNT_FRESH - LIFT_GUARD_JUDGED;
		}
	}
	if (predicted && accessed) {
		tally->hit += units;
		p.heat &= (uint8_t)~LIFT_HEAT_PREDICTED;
	} else if (predicted && count <= LIFT_GUARD_JUDGED) {
		tally->wrong += units;
		p.heat &= (uint8_t)~LIFT_HEAT_PREDICTED;
		p.where |= LIFT_WHERE_WRONG;
	}
	p.guard = (uint8_t)(level << LIFT_GUARD_SHIFT | count);
	return p;
}

static bool bit(const uint64_t *map, unsigned i)
{
	return map[i / 64] >> i % 64 & 1;
}

/* Never again looks like one that has hardly been sampled; 128 is a multiple of all periods used.
 */
static uint8_t next_sample(uint8_t nr)
{
	return nr == UINT8_MAX ? 128 : (uint8_t)(nr + 1);
}

/* As a whole: accessed if a good part of what was looked at is. */
static void sample_whole(struct lift_heat *h, struct lift_chunk *c, struct lift_tally *tally)
{
	struct page p = {c->heat, c->where, c->guard};
	unsigned seen = 0;
	unsigned accessed = 0;

	for (unsigned i = 0; i < LIFT_CHUNK_WORDS; i++) {
		seen += lift_weight(c->armed[i] & c->seen[i]);
		accessed += lift_weight(c->armed[i] & c->accessed[i]);
	}
	uncount(h, c);
	for (unsigned i = 0; i < LIFT_CHUNK_PARTS; i++)
		c->samples[i] = next_sample(c->samples[i]);
	if (seen > 0) {
		p = next_page(h, p, accessed * 4 >= seen, c->samples[0], LIFT_CHUNK_PAGES, tally);
		c->heat = p.heat;
		c->where = p.where;
		c->guard = p.guard;
	}
	count(h, c);
}

/* One sample more of a part. Once it is known its pages count as others do. */
static void sample_part(struct lift_heat *h, struct lift_chunk *c, unsigned part)
{
	bool becomes_known = c->samples[part] + 1 == LIFT_SAMPLES_KNOWN;

	if (becomes_known)
		count_part(h, c, part, UINT32_MAX, &h->census);
	c->samples[part] = next_sample(c->samples[part]);
	if (becomes_known)
		count_part(h, c, part, 1, &h->census);
}

/* Whether every page stays like the others: decided without pages of their own. */
static bool stays_alike(const struct lift_chunk *c, const struct lift_heat *h)
{
	struct page p = {c->heat, c->where, c->guard};
	struct lift_tally none;
	struct page q;

	if (p.guard || p.heat & LIFT_HEAT_PREDICTED || p.where & LIFT_WHERE_WRONG)
		return false;
	for (unsigned i = 0; i < LIFT_CHUNK_WORDS; i++)
		if (c->armed[i] & (c->accessed[i] | ~c->seen[i]))
			return false;
	memset(&none, 0, sizeof(none));
	for (unsigned nr = 0; nr < 4; nr++) {
		q = next_page(h, p, false, (uint8_t)nr, 1, &none);
		if (q.heat != p.heat)
			return false;
	}
	return true;
}

void lift_heat_sample(struct lift_heat *h, struct lift_chunk *c, struct lift_tally *tally)
{
	uint32_t slow_t = tally->slow_t;
	struct lift_pages *p = lift_heat_pages(h, c);
	bool armed = false;

	for (unsigned i = 0; i < LIFT_CHUNK_WORDS; i++)
		armed = armed || c->armed[i];
	if (!armed)
		return;
	if (!p && !(c->flags & LIFT_CHUNK_HUGE) && !stays_alike(c, h)) {
		p = expand(h, c);
		if (!p)
			h->coarse++;
	}
	if (!p && (c->flags & LIFT_CHUNK_HUGE || !stays_alike(c, h))) {
		sample_whole(h, c, tally);
		goto out;
	}
	for (unsigned part = 0; part < LIFT_CHUNK_PARTS; part++) {
		unsigned first = part * LIFT_PART_PAGES;
		uint64_t mask = UINT64_C(0xffffffff) << first % 64;

		if (!(c->armed[first / 64] & mask))
			continue;
		sample_part(h, c, part);
		for (unsigned i = first; i < first + LIFT_PART_PAGES; i++) {
			struct page was;
			struct page q;

			if (!bit(c->armed, i))
				continue;
			q = was = page_of(h, c, i);
			if ((q.where & LIFT_WHERE_MASK) == LIFT_WHERE_ABSENT)
				continue;
			if (!bit(c->seen, i)) {
				lift_heat_locate(h, c, i, LIFT_WHERE_ABSENT);
				continue;
			}
			q = next_page(h, q, bit(c->accessed, i), c->samples[part], 1, tally);
			if (!p || memcmp(&q, &was, sizeof(q)) == 0)
				continue;
			p->heat[i] = q.heat;
			p->where[i] = q.where;
			p->guard[i] = q.guard;
			count_page(h, was, is_known(c, i), UINT32_MAX, &h->census);
			count_page(h, q, is_known(c, i), 1, &h->census);
		}
	}
	if (p)
		collapse(h, c);
out:
	if (tally->slow_t != slow_t)
		c->quiet = 0;
	else if (c->quiet < UINT8_MAX)
		c->quiet++;
	memset(c->armed, 0, sizeof(c->armed));
	memset(c->seen, 0, sizeof(c->seen));
}

uint64_t lift_heat_used(const struct lift_heat *h)
{
	return ((uint64_t)h->mask + 1) * sizeof(*h->index) +
	       (uint64_t)h->nr_chunks * sizeof(*h->chunk) +
	       (uint64_t)h->top_pages * (sizeof(*h->pages) + sizeof(*h->free_page));
}

bool lift_heat_check(const struct lift_heat *h)
{
	struct lift_census census;
	uint64_t used = 0;

	count_anew(h, &census);
	if (memcmp(&census, &h->census, sizeof(census)) != 0)
		return false;

	if (h->nr_chunks > h->max_chunks || h->top_pages > h->max_pages ||
		h->nr_free_page > h->top_pages || h->fast & h->slow)
		return false;
	for (uint32_t n = 0; n < h->nr_chunks; n++) {
		const struct lift_chunk *c = &h->chunk[n];

		if (c->base % LIFT_CHUNK_BYTES || lift_heat_find(h, c->base) != c)
			return false;
		if (c->pages == LIFT_NO_PAGES)
			continue;
		if (c->pages >= h->top_pages)
			return false;
		used++;
	}
	if (used + h->nr_free_page != h->top_pages)
		return false;
	used = 0;
	for (uint32_t at = 0; at <= h->mask; at++)
		used += h->index[at] != 0;
	return used == h->nr_chunks;
}
