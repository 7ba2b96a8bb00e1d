#include "policy/moveplan.h"

#include <errno.h>

void lift_moveplan_init(struct lift_moveplan *m, const struct lift_cut *cut, uint32_t start)
{
	memset(m, 0, sizeof(*m));
	m->cut = *cut;
	m->up.chunk = start;
	m->down.chunk = start;
}

/* What of a chunk is hot, what is to go up for its own sake, and what in advance. */
struct maps {
	uint64_t up[LIFT_CHUNK_WORDS];
	uint64_t predicted[LIFT_CHUNK_WORDS];
};

static unsigned state_of(const struct lift_heat *h, const struct lift_chunk *c, unsigned i)
{
	return lift_heat_get(h, c, i) & (LIFT_STATES - 1);
}

static void map_chunk(const struct lift_heat *h, const struct lift_chunk *c,
	const struct lift_cut *cut, const struct lift_window *w, struct maps *ret)
{
	static const uint16_t any_p[LIFT_STATES];
	const struct lift_pages *pages = lift_heat_pages(h, c);
	uint64_t hot[LIFT_CHUNK_WORDS];
	uint64_t eligible[LIFT_CHUNK_WORDS];
	bool any = false;
	uint32_t p;

	memset(ret, 0, sizeof(*ret));
	if (!pages && !cut->promote[state_of(h, c, 0)])
		return;
	for (unsigned i = 0; i < LIFT_CHUNK_PAGES; i++) {
		if (pages && !cut->promote[pages->heat[i] & (LIFT_STATES - 1)])
			continue;
		if (!lift_heat_in(h->slow, lift_heat_where(h, c, i)) ||
			lift_heat_guard(h, c, i) & LIFT_GUARD_COUNT)
			continue;
		ret->up[i / 64] |= UINT64_C(1) << i % 64;
		any = true;
	}
	/* Without a page that goes up now there is nothing new to conclude from. */
	if (!any || !w || c->flags & LIFT_CHUNK_HUGE || lift_window_bytes(w) == 0)
		return;
	lift_window_maps(h, c, cut->hot, any_p, false, hot, eligible, &p);
	/* What stays where it is itself is no reason to move its neighbours. */
	for (unsigned i = 0; i < LIFT_CHUNK_PAGES; i++)
		if (!lift_heat_in(h->fast, lift_heat_where(h, c, i)))
			hot[i / 64] &= ret->up[i / 64] | ~(UINT64_C(1) << i % 64);
	lift_window_predict(w, hot, eligible, -1, ret->predicted);
	for (unsigned i = 0; i < LIFT_CHUNK_WORDS; i++)
		ret->predicted[i] &= ~ret->up[i];
	for (unsigned i = 0; i < LIFT_CHUNK_PAGES; i++)
		if (!lift_heat_in(h->slow, lift_heat_where(h, c, i)))
			ret->predicted[i / 64] &= ~(UINT64_C(1) << i % 64);
}

uint32_t lift_moveplan_offer(const struct lift_heat *h, const struct lift_chunk *c,
	const struct lift_cut *cut, const struct lift_window *w)
{
	struct maps maps;
	uint32_t nr = 0;

	map_chunk(h, c, cut, w, &maps);
	for (unsigned i = 0; i < LIFT_CHUNK_WORDS; i++)
		nr += lift_weight(maps.predicted[i]);
	return nr;
}

enum { NO_ROOM = -1, LATER = -2 };

/*
 * The target for a page of @c, which takes @pages of room: its home, else the first of the tier. As
 * long as it is not to go @anywhere what has found its home full waits for those who are at home on
 * the other nodes.
 */
static int target_of(const struct lift_chunk *c, const struct lift_slot *slots, unsigned nr_slots,
	bool fast, uint64_t pages, bool anywhere)
{
	if (fast && c->home < nr_slots && slots[c->home].fast && slots[c->home].usable) {
		if (slots[c->home].room >= pages)
			return c->home;
		if (!anywhere)
			return LATER;
	}
	for (unsigned i = 0; i < nr_slots; i++)
		if (slots[i].fast == fast && slots[i].usable && slots[i].room >= pages)
			return (int)i;
	return NO_ROOM;
}

static void take(uint32_t *quota, uint32_t *total, uint32_t pages)
{
	*quota -= *quota < pages ? *quota : pages;
	*total -= *total < pages ? *total : pages;
}

/* Whether page @i is to be moved, by what is left of the cut; charges it. */
static bool wanted(struct lift_moveplan *m, const struct lift_heat *h, const struct lift_chunk *c,
	unsigned i, const struct maps *maps, uint32_t pages, bool *ret_predicted)
{
	struct lift_cut *cut = &m->cut;
	unsigned state = state_of(h, c, i);
	uint8_t where = lift_heat_where(h, c, i);

	*ret_predicted = false;
	if (m->batch.demote) {
		if (!lift_heat_victim(h, c, i))
			return false;
		if (where & LIFT_WHERE_WRONG) {
			if (cut->demote_wrong == 0)
				return false;
			take(&cut->demote_wrong, &cut->nr_demote, pages);
		} else {
			if (cut->demote[state] == 0)
				return false;
			take(&cut->demote[state], &cut->nr_demote, pages);
		}
		cut->excess -= cut->excess < pages ? cut->excess : pages;
		return true;
	}
	if (maps->up[i / 64] >> i % 64 & 1) {
		if (cut->promote[state] == 0)
			return false;
		take(&cut->promote[state], &cut->nr_promote, pages);
		return true;
	}
	if (maps->predicted[i / 64] >> i % 64 & 1 && cut->promote[LIFT_STATE_PREDICTED]) {
		take(&cut->promote[LIFT_STATE_PREDICTED], &cut->nr_promote, pages);
		*ret_predicted = true;
		return true;
	}
	return false;
}

/* Fills the batch from the cursor on. */
static void fill(struct lift_moveplan *m, struct lift_cursor *at, const struct lift_heat *h,
	const struct lift_window *w, const struct lift_slot *slots, unsigned nr_slots)
{
	struct lift_batch *b = &m->batch;

	b->nr = 0;
	b->weight = 0;
	while (at->done < h->nr_chunks && (b->demote ? m->cut.nr_demote : m->cut.nr_promote)) {
		const struct lift_chunk *c = &h->chunk[at->chunk % h->nr_chunks];
		bool huge = c->flags & LIFT_CHUNK_HUGE;
		uint32_t pages = huge ? LIFT_CHUNK_PAGES : 1;
		unsigned step = huge ? LIFT_CHUNK_PAGES : 1;
		struct maps maps;

		if (!b->demote)
			map_chunk(h, c, &m->cut, w, &maps);
		for (; at->page < LIFT_CHUNK_PAGES; at->page += step) {
			bool predicted;
			int slot;

			if (b->nr == LIFT_BATCH_PAGES)
				return;
			slot = target_of(
				c, slots, nr_slots, !b->demote, b->weight + pages, m->anywhere);
			if (slot == LATER) {
				m->put_off = true;
				break;
			}
			if (b->nr && slot != (int)b->slot)
				return;
			if (slot == NO_ROOM)
				break;
			if (!wanted(m, h, c, at->page, &maps, pages, &predicted))
				continue;
			b->slot = (unsigned)slot;
			b->page[b->nr] = c->base + ((uintptr_t)at->page << LIFT_PAGE_SHIFT);
			b->predicted[b->nr] = predicted;
			b->weight += pages;
			b->nr++;
		}
		at->page = 0;
		at->chunk++;
		at->done++;
	}
}

static uint64_t room_of(const struct lift_slot *slots, unsigned nr_slots, bool fast)
{
	uint64_t room = 0;

	for (unsigned i = 0; i < nr_slots; i++)
		if (slots[i].fast == fast && slots[i].usable)
			room += slots[i].room;
	return room;
}

/* Once more through all chunks, for what was put off. False: there is nothing, or it was done. */
static bool go_anywhere(struct lift_moveplan *m)
{
	if (m->anywhere || !m->put_off)
		return false;
	m->anywhere = true;
	m->up.done = 0;
	m->up.page = 0;
	return true;
}

bool lift_moveplan_next(struct lift_moveplan *m, const struct lift_heat *h,
	const struct lift_window *w, const struct lift_slot *slots, unsigned nr_slots)
{
	struct lift_batch *b = &m->batch;

	while (!m->ended && h->nr_chunks) {
		uint64_t room = room_of(slots, nr_slots, true);
		uint64_t need = m->cut.nr_promote;

		if (need > LIFT_BATCH_PAGES)
			need = LIFT_BATCH_PAGES;
		if (m->down.done >= h->nr_chunks)
			m->cut.nr_demote = 0;
		if (m->up.done >= h->nr_chunks && !go_anywhere(m))
			m->cut.nr_promote = 0;
		/* Room first; and none beyond what is asked for. */
		b->demote =
			m->cut.nr_demote && (m->cut.excess || (m->cut.nr_promote && room < need));
		if (!b->demote && (m->cut.nr_promote == 0 || room == 0))
			break;
		fill(m, b->demote ? &m->down : &m->up, h, w, slots, nr_slots);
		if (b->nr)
			return true;
		/* Nothing found to the end. */
		if (b->demote)
			m->cut.nr_demote = m->cut.excess = 0;
	}
	m->ended = true;
	return false;
}

static void leave(struct lift_slot *slots, unsigned nr_slots, uint8_t where, uint64_t pages)
{
	unsigned slot = where & LIFT_WHERE_MASK;

	if (slot < nr_slots)
		slots[slot].room += pages;
}

static void moved(struct lift_moveplan *m, struct lift_heat *h, struct lift_slot *slots,
	unsigned nr_slots, struct lift_chunk *c, unsigned i, unsigned k, struct lift_counts *counts)
{
	const struct lift_batch *b = &m->batch;
	uint64_t pages = c->flags & LIFT_CHUNK_HUGE ? LIFT_CHUNK_PAGES : 1;
	struct lift_slot *to = &slots[b->slot];

	leave(slots, nr_slots, lift_heat_where(h, c, i), pages);
	to->room -= to->room < pages ? to->room : pages;
	if (b->demote) {
		counts->demoted += pages;
		m->demoted += (uint32_t)pages;
		if (lift_heat_demoted(h, c, i, (uint8_t)b->slot))
			counts->bounced += pages;
		return;
	}
	counts->promoted += pages;
	m->promoted += (uint32_t)pages;
	if (b->predicted[k])
		counts->predicted += pages;
	if (c->home == b->slot)
		counts->home += pages;
	lift_heat_promoted(h, c, i, (uint8_t)b->slot, b->predicted[k]);
}

void lift_moveplan_done(struct lift_moveplan *m, struct lift_heat *h, struct lift_slot *slots,
	unsigned nr_slots, int rc, const int *status, struct lift_counts *counts)
{
	const struct lift_batch *b = &m->batch;
	struct lift_slot *to = &slots[b->slot];
	unsigned last = 0; /* behind the last one that has found room */

	for (unsigned k = 0; k < b->nr; k++)
		if (status[k] == to->node)
			last = k + 1;
	if (rc < 0) {
		counts->failed_calls++;
		/* What is said of the node holds for this pass; the next reads the machine anew. */
		if (rc == -EPERM || rc == -ENOSYS) {
			m->forbidden = true;
			m->ended = true;
		} else if (rc == -ENOMEM) {
			to->room = 0;
		} else {
			to->usable = false;
		}
	}
	for (unsigned k = 0; k < b->nr; k++) {
		struct lift_chunk *c = lift_heat_find(h, b->page[k]);
		unsigned i = (unsigned)(b->page[k] % LIFT_CHUNK_BYTES >> LIFT_PAGE_SHIFT);

		if (!c)
			continue;
		if (status[k] == to->node) {
			moved(m, h, slots, nr_slots, c, i, k, counts);
			continue;
		}
		switch (status[k]) {
		case -EAGAIN:
			break;
		case -EBUSY:
			counts->busy++;
			lift_heat_delay(h, c, i);
			break;
		case -ENOENT:
		case -EFAULT:
			counts->absent++;
			lift_heat_locate(h, c, i, LIFT_WHERE_ABSENT);
			break;
		case -EACCES:
		case -EPERM:
			counts->stuck++;
			lift_heat_locate(h, c, i, LIFT_WHERE_STUCK);
			break;
		case -ENOMEM:
			counts->full++;
			/* Not for this one, which may be huge, is not for none. */
			if (k < last)
				lift_heat_delay(h, c, i);
			else
				to->room = 0;
			break;
		default:
			/* On another node, or an error that is not in the manual. */
			counts->other++;
			c->flags |= LIFT_CHUNK_UNKNOWN;
			lift_heat_delay(h, c, i);
			break;
		}
	}
}
