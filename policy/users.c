#include "policy/users.h"

/* Each takes a part of a sample, and nothing is moved meanwhile. */
#define ASKS 12

/* So many chunks in a row that are used from several nodes: so are the others. */
#define MIXED 8

/* A group is a node's when its threads take so much of the faults. */
#define OWN_PART 7
#define OWN_OF 8

/* Pages of a run: few faults are enough, and they are to come from all over the group. */
#define RUN 16

#define REST_MAX 64

void lift_users_begin(struct lift_users *u)
{
	u->at = u->end = 0;
	u->asked = 0;
	if (u->wait)
		u->wait--;
}

/* Those in question. */
static uint64_t pages_of(const struct lift_heat *h, const struct lift_chunk *c, unsigned word)
{
	uint64_t used = c->accessed[word];

	for (uint64_t left = used; left; left &= left - 1) {
		unsigned i = (unsigned)__builtin_ctzll(left);

		if (!lift_heat_in(h->slow, lift_heat_where(h, c, word * 64 + i)))
			used &= ~(UINT64_C(1) << i);
	}
	return used;
}

static bool in_question(const struct lift_heat *h, const struct lift_chunk *c)
{
	if (c->flags & LIFT_CHUNK_ASKED || c->home < LIFT_SLOTS)
		return false;
	for (unsigned i = 0; i < LIFT_CHUNK_WORDS; i++)
		if (pages_of(h, c, i))
			return true;
	return false;
}

bool lift_users_wonders(const struct lift_users *u, const struct lift_heat *h)
{
	for (uint32_t n = 0; n < h->nr_chunks && !u->wait; n++)
		if (in_question(h, &h->chunk[n]))
			return true;
	return false;
}

/* At most @most runs of the chunk's pages, from one in each of as many parts of it. */
static unsigned put_runs(const struct lift_heat *h, const struct lift_chunk *c,
	struct lift_range *ret, unsigned most)
{
	unsigned words = most < LIFT_CHUNK_WORDS ? LIFT_CHUNK_WORDS / most : 1;
	unsigned nr = 0;

	if (c->flags & LIFT_CHUNK_HUGE) {
		ret[0] = (struct lift_range){c->base, c->base + LIFT_CHUNK_BYTES};
		return 1;
	}
	for (unsigned part = 0; part < LIFT_CHUNK_WORDS && nr < most; part += words) {
		for (unsigned w = part; w < part + words && w < LIFT_CHUNK_WORDS; w++) {
			uint64_t pages = pages_of(h, c, w);
			uintptr_t start;
			unsigned first;
			unsigned len;

			if (!pages)
				continue;
			first = (unsigned)__builtin_ctzll(pages);
			pages = ~(pages >> first);
			len = pages ? (unsigned)__builtin_ctzll(pages) : 64;
			start = c->base + (w * 64 + first) * LIFT_PAGE_BYTES;
			ret[nr++] = (struct lift_range){
				start, start + (len < RUN ? len : RUN) * LIFT_PAGE_BYTES};
			break;
		}
	}
	return nr;
}

bool lift_users_next(struct lift_users *u, const struct lift_heat *h, struct lift_range *ret,
	unsigned max, unsigned *ret_nr)
{
	uint32_t every;
	uint32_t n = 0;

	*ret_nr = 0;
	if (u->asked == ASKS || u->wait || max == 0)
		return false;
	u->group = 0;
	for (u->end = u->at; u->end < h->nr_chunks && (u->size == 0 || u->group < u->size);
		u->end++)
		u->group += in_question(h, &h->chunk[u->end]);
	if (u->group == 0)
		return false;
	u->asked++;
	every = (u->group + max - 1) / max;
	for (uint32_t k = u->at; k < u->end && *ret_nr < max; k++) {
		const struct lift_chunk *c = &h->chunk[k];

		if (!in_question(h, c) || n++ % every)
			continue;
		*ret_nr += put_runs(h, c, ret + *ret_nr, every > 1 ? 1 : max / u->group);
	}
	return true;
}

/* The chunks in question up to @end are not asked about again; they go to @slot. */
static void settle(struct lift_users *u, struct lift_heat *h, uint32_t end, uint8_t slot)
{
	for (; u->at < end; u->at++) {
		struct lift_chunk *c = &h->chunk[u->at];

		if (!in_question(h, c))
			continue;
		c->flags |= LIFT_CHUNK_ASKED;
		c->home = slot;
	}
}

int lift_users_answer(struct lift_users *u, struct lift_heat *h, const uint32_t *faults,
	unsigned nr_slots, uint32_t all, uint32_t used)
{
	unsigned best = 0;

	if (all < LIFT_USERS_ENOUGH || all > 2 * used + LIFT_USERS_ENOUGH) {
		u->rest = u->rest == 0 ? 1 : u->rest < REST_MAX ? u->rest * 2 : REST_MAX;
		u->wait = u->rest;
		return -1;
	}
	u->rest = 0;
	for (unsigned i = 1; i < nr_slots; i++)
		if (faults[i] > faults[best])
			best = i;
	if (nr_slots && (uint64_t)faults[best] * OWN_OF >= (uint64_t)all * OWN_PART) {
		settle(u, h, u->end, (uint8_t)best);
		u->mixed = 0;
		u->size = u->group < UINT32_MAX / 2 ? u->group * 2 : 0;
		return (int)best;
	}
	if (u->group > 1) {
		u->size = u->group / 2;
	} else {
		bool all_are = ++u->mixed == MIXED;

		u->size = 1;
		settle(u, h, all_are ? h->nr_chunks : u->end, LIFT_SLOTS);
		if (all_are)
			u->mixed = 0;
	}
	return -1;
}

void lift_users_forget(struct lift_heat *h)
{
	for (uint32_t n = 0; n < h->nr_chunks; n++) {
		struct lift_chunk *c = &h->chunk[n];

		if (!(c->flags & LIFT_CHUNK_ASKED))
			continue;
		c->flags &= (uint8_t)~LIFT_CHUNK_ASKED;
		c->home = LIFT_SLOTS;
	}
}
