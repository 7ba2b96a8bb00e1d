#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include "policy/users.h"

/* Slots 0 and 1 are fast, 2 is slow; pages of the first BASE-aligned chunks are on 2, and used. */
enum { CHUNKS = 96, FAST = 2, SLOW = 2, MAX = 64, BOTH = FAST, NOBODY };

#define BASE ((uintptr_t)1 << 32)

struct memory {
	struct lift_heat h;
	void *mem;
	unsigned questions;
	unsigned passes;
	uint32_t others; /* faults by whatever else goes on */
};

static void open_memory(struct memory *m)
{
	size_t bytes = lift_heat_bytes(CHUNKS, CHUNKS);

	memset(m, 0, sizeof(*m));
	m->mem = calloc(1, bytes);
	cr_assert_eq(lift_heat_init(&m->h, m->mem, bytes, CHUNKS, CHUNKS), 0);
	lift_heat_set_tiers(&m->h, (1u << FAST) - 1, 1u << SLOW);
	for (unsigned n = 0; n < CHUNKS; n++) {
		struct lift_chunk *c = lift_heat_add(&m->h, BASE + n * LIFT_CHUNK_BYTES);

		for (unsigned i = 0; i < LIFT_CHUNK_PAGES; i++)
			lift_heat_locate(&m->h, c, i, SLOW);
		memset(c->armed, 0xff, sizeof(c->armed));
		memset(c->accessed, 0xff, sizeof(c->accessed));
	}
}

static void close_memory(struct memory *m)
{
	free(m->mem);
}

/* Of the pages of @r, who of the threads takes their faults. */
static void fault(const struct lift_range *r, unsigned nr, unsigned (*user)(unsigned chunk),
	uint32_t faults[FAST], uint32_t *used)
{
	for (unsigned k = 0; k < nr; k++) {
		unsigned chunk = (unsigned)((r[k].start - BASE) / LIFT_CHUNK_BYTES);
		uint32_t pages = (uint32_t)(lift_range_bytes(r[k]) / LIFT_PAGE_BYTES);
		unsigned who = user(chunk);

		cr_expect(pages > 0 && pages <= 16, "%u pages", pages);
		cr_expect_eq((r[k].end - 1 - BASE) / LIFT_CHUNK_BYTES, chunk);
		if (who == NOBODY)
			continue;
		*used += pages;
		if (who == BOTH) {
			faults[0] += (pages + 1) / 2;
			faults[1] += pages / 2;
		} else {
			faults[who] += pages;
		}
	}
}

/* Passes until nothing is asked any more. */
static void ask(struct memory *m, struct lift_users *u, unsigned (*user)(unsigned chunk))
{
	unsigned in_pass;

	do {
		struct lift_range r[MAX];
		unsigned nr;

		in_pass = 0;
		lift_users_begin(u);
		while (lift_users_next(u, &m->h, r, MAX, &nr)) {
			uint32_t faults[FAST] = {0};
			uint32_t used = 0;

			cr_expect(nr > 0 && nr <= MAX);
			fault(r, nr, user, faults, &used);
			lift_users_answer(u, &m->h, faults, FAST, used + m->others, used);
			in_pass++;
			cr_assert_lt(++m->questions, 10 * CHUNKS);
		}
		m->passes += in_pass > 0;
	} while (in_pass);
}

static unsigned one(unsigned chunk)
{
	(void)chunk;
	return 1;
}

static unsigned halves(unsigned chunk)
{
	return chunk < CHUNKS / 3 ? 0 : 1;
}

static unsigned arenas(unsigned chunk)
{
	return chunk / 8 % 2;
}

static unsigned both(unsigned chunk)
{
	(void)chunk;
	return BOTH;
}

static unsigned part_shared(unsigned chunk)
{
	return chunk < CHUNKS / 2 ? 1 : BOTH;
}

static unsigned nobody(unsigned chunk)
{
	(void)chunk;
	return NOBODY;
}

/* What a chunk's home may be when all is asked: that of who uses it, or any. */
static void right(const struct memory *m, unsigned (*user)(unsigned chunk), unsigned least)
{
	unsigned known = 0;

	for (unsigned n = 0; n < CHUNKS; n++) {
		const struct lift_chunk *c = &m->h.chunk[n];

		if (c->home == LIFT_SLOTS)
			continue;
		known++;
		cr_expect_eq(c->home, user(n), "chunk %u goes to %u", n, c->home);
	}
	cr_expect_geq(known, least, "%u known", known);
}

Test(users, each_goes_to_who_uses_it)
{
	static const struct {
		unsigned (*user)(unsigned chunk);
		unsigned most; /* questions */
		unsigned known;
	} rows[] = {
		{one, 1, CHUNKS},
		{halves, 24, CHUNKS},
		{arenas, 40, CHUNKS},
		{both, 16, 0},
		{part_shared, 32, CHUNKS / 2},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct lift_users u = {0};
		struct memory m;

		open_memory(&m);
		ask(&m, &u, rows[i].user);
		cr_log_info("row %zu: %u questions in %u passes", i, m.questions, m.passes);
		cr_expect_leq(m.questions, rows[i].most, "row %zu: %u questions", i, m.questions);
		right(&m, rows[i].user, rows[i].known);
		/* Nothing is asked twice, */
		m.questions = 0;
		ask(&m, &u, rows[i].user);
		cr_expect_eq(m.questions, 0);
		/* unless it is to be. */
		lift_users_forget(&m.h);
		cr_expect_eq(m.h.chunk[0].home, LIFT_SLOTS);
		ask(&m, &u, rows[i].user);
		cr_expect(m.questions > 0 && m.questions <= rows[i].most);
		close_memory(&m);
	}
}

/* Others' faults, or none at all, say nothing; it is asked more and more rarely. */
Test(users, no_answer_is_none)
{
	struct {
		unsigned (*user)(unsigned chunk);
		uint32_t others;
	} rows[] = {{one, 100000}, {nobody, 0}, {nobody, 15}};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct lift_users u = {0};
		struct memory m;

		open_memory(&m);
		m.others = rows[i].others;
		for (unsigned pass = 0; pass < 64; pass++)
			ask(&m, &u, rows[i].user);
		cr_expect(m.questions >= 3 && m.questions <= 8, "row %zu: %u questions", i,
			m.questions);
		right(&m, rows[i].user, 0);
		for (unsigned n = 0; n < CHUNKS; n++)
			cr_expect_eq(m.h.chunk[n].flags & LIFT_CHUNK_ASKED, 0);
		close_memory(&m);
	}
}

/* Only what was used, is on slow nodes, and has no home already. */
Test(users, asks_about_what_may_be_promoted)
{
	struct lift_users u = {0};
	struct lift_range r[MAX];
	struct memory m;
	unsigned nr;

	open_memory(&m);
	for (unsigned n = 0; n < CHUNKS; n++) {
		struct lift_chunk *c = &m.h.chunk[n];

		if (n % 4 == 0)
			memset(c->accessed, 0, sizeof(c->accessed));
		else if (n % 4 == 1)
			c->home = 1;
		else if (n % 4 == 2)
			for (unsigned i = 0; i < LIFT_CHUNK_PAGES; i++)
				lift_heat_locate(&m.h, c, i, 0);
		else if (n == 7)
			lift_heat_describe(&m.h, c, true);
		else
			c->accessed[3] &= ~UINT64_C(0xffff);
	}
	lift_users_begin(&u);
	cr_assert(lift_users_next(&u, &m.h, r, MAX, &nr));
	cr_expect_eq(u.group, CHUNKS / 4);
	for (unsigned k = 0; k < nr; k++) {
		uintptr_t at = r[k].start - BASE;
		unsigned n = (unsigned)(at / LIFT_CHUNK_BYTES);
		unsigned page = (unsigned)(at % LIFT_CHUNK_BYTES / LIFT_PAGE_BYTES);

		cr_expect_eq(n % 4, 3);
		if (n == 7)
			cr_expect_eq(lift_range_bytes(r[k]), LIFT_CHUNK_BYTES);
		else
			cr_expect(page < 192 || page >= 208);
	}
	close_memory(&m);
}
