/*
 * How hot memory is, by chunks of 2 MiB: one record for each, and three bytes for each page (heat,
 * where it is, guard) only where the pages of a chunk differ. All memory is handed in once and used
 * from its front, so that what is not needed is never touched.
 *
 * Heat of a page, one byte:
 *
 *     7          6 5 4             3 2 1 0
 *     predicted  how often (0..7)  last four samples, newest in bit 0
 *
 * "How often" moves half way to what the last four samples say, once every four samples. The seven
 * bits without the mark are the page's state; what a state is worth is not fixed here but learned
 * (policy/threshold.h).
 *
 * Guard of a page, one byte: how often it has bounced (3 bits) and a countdown (5 bits) by its own
 * samples, slower the more often it bounced. On a fast node it says that the page came lately, on a
 * slow one that it has to wait.
 *
 * Not thread-safe: the worker only. Pages are of 4 KiB.
 */
#ifndef LIFT_POLICY_HEAT_H
#define LIFT_POLICY_HEAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "policy/types.h"

#define LIFT_PAGE_SHIFT 12
#define LIFT_PAGE_BYTES (UINT64_C(1) << LIFT_PAGE_SHIFT)
#define LIFT_CHUNK_BYTES LIFT_HUGE_BYTES
#define LIFT_CHUNK_PAGES 512
#define LIFT_CHUNK_WORDS (LIFT_CHUNK_PAGES / 64)

/* A chunk is sampled in parts of this many pages (128 KiB), each of which counts its samples. */
#define LIFT_PART_PAGES 32
#define LIFT_CHUNK_PARTS (LIFT_CHUNK_PAGES / LIFT_PART_PAGES)

#define LIFT_STATES 128

/* A page sampled fewer times is not known well enough to be given up. */
#define LIFT_SAMPLES_KNOWN 3
#define LIFT_HEAT_PREDICTED 0x80u

/* Where a page is: the slot of its node (an index of the caller's), or one of these. */
#define LIFT_SLOTS 62
#define LIFT_WHERE_STUCK 62u  /* there, but not to be moved */
#define LIFT_WHERE_ABSENT 63u /* not there, or not ours */
#define LIFT_WHERE_MASK 0x3fu
#define LIFT_WHERE_WRONG 0x40u /* promoted by a prediction that did not come true */

#define LIFT_GUARD_COUNT 0x1fu
#define LIFT_GUARD_SHIFT 5
#define LIFT_GUARD_LEVELS 7 /* cool-downs double up to 2^7 */
#define LIFT_GUARD_JUDGED 5 /* so far down a page that came up is judged like the others */

#define LIFT_CHUNK_HUGE (1u << 0)    /* one huge page: moves and is sampled as a whole */
#define LIFT_CHUNK_UNKNOWN (1u << 1) /* ask where its pages are */
#define LIFT_CHUNK_ASKED (1u << 2)   /* it was asked who uses it (policy/users.h) */

/* Bits set in @w; without the help of a library, which not all compilers' builtin is. */
static inline unsigned lift_weight(uint64_t w)
{
	w -= w >> 1 & UINT64_C(0x5555555555555555);
	w = (w & UINT64_C(0x3333333333333333)) + (w >> 2 & UINT64_C(0x3333333333333333));
	w = (w + (w >> 4)) & UINT64_C(0x0f0f0f0f0f0f0f0f);
	return (unsigned)(w * UINT64_C(0x0101010101010101) >> 56);
}

struct lift_chunk {
	uintptr_t base;
	uint64_t armed[LIFT_CHUNK_WORDS];    /* pages of the sample that is being taken */
	uint64_t accessed[LIFT_CHUNK_WORDS]; /* what it, or the last one, has found so far */
	uint64_t seen[LIFT_CHUNK_WORDS];     /* pages that it found to be there */
	uint32_t pages;                      /* index of its pages; LIFT_NO_PAGES: all are alike */
	uint8_t heat;                        /* of all pages where they are alike, likewise: */
	uint8_t where;
	uint8_t guard;
	uint8_t flags;                     /* LIFT_CHUNK_* */
	uint8_t quiet;                     /* samples in a row that found nothing slow in use */
	uint8_t home;                      /* slot to promote to if it has room; LIFT_SLOTS: any */
	uint8_t samples[LIFT_CHUNK_PARTS]; /* taken of each part; 128 after 255 */
};

#define LIFT_NO_PAGES UINT32_MAX

struct lift_pages {
	uint8_t heat[LIFT_CHUNK_PAGES];
	uint8_t where[LIFT_CHUNK_PAGES];
	uint8_t guard[LIFT_CHUNK_PAGES];
};

/* Pages by state, for policy/threshold.h. */
struct lift_census {
	uint32_t slow[LIFT_STATES]; /* may be promoted */
	uint32_t fast[LIFT_STATES]; /* may be demoted */
	uint32_t wrong;             /* on fast nodes by a wrong prediction; not in fast[] */
	uint32_t cooling;           /* on slow nodes, have to wait */
	uint32_t fresh;             /* on fast nodes, came lately or are hardly known */
	uint32_t nr_slow;           /* all that are on slow nodes */
	uint32_t nr_fast;
	uint32_t nr_stuck;
	uint32_t here[LIFT_SLOTS]; /* on each slot */
};

struct lift_heat {
	struct lift_chunk *chunk;
	struct lift_pages *pages;
	uint32_t *index;       /* hash table: number of the chunk + 1 */
	uint32_t *free_page;   /* stack of pages given back */
	uint32_t mask;         /* size of the hash table - 1 */
	uint32_t max_chunks;   /* room in chunk[] */
	uint32_t max_pages;    /* room in pages[] */
	uint32_t nr_chunks;    /* in use: chunk[0..nr_chunks) */
	uint32_t top_pages;    /* pages[] ever used */
	uint32_t nr_free_page; /* on the stack */
	uint64_t fast;         /* slots by tier, one bit each */
	uint64_t slow;
	struct lift_census census; /* of all pages, always true */
	uint64_t refused;          /* chunks not tracked for want of a record */
	uint64_t coarse;           /* samples taken of a chunk as a whole for want of pages */
};

/* What one pass of samples has found. Sums; the caller clears it before a pass. */
struct lift_tally {
	uint32_t n[LIFT_STATES];      /* sampled, by the state before */
	uint32_t t[LIFT_STATES];      /* of these found accessed */
	uint32_t slow_n[LIFT_STATES]; /* the part of n on slow nodes */
	uint32_t slow_t;
	uint32_t fast_n;
	uint32_t fast_t;
	uint32_t fresh_n; /* promoted lately, not by a prediction */
	uint32_t fresh_t;
	uint32_t gone_n; /* demoted lately */
	uint32_t gone_t;
	uint32_t hit; /* promoted by a prediction, accessed since */
	uint32_t wrong;
};

/* Bytes for @chunks records and the pages of @detailed chunks that are not alike. */
size_t lift_heat_bytes(uint32_t chunks, uint32_t detailed);

/*
 * Takes @mem, of at least lift_heat_bytes(), 64-byte aligned and zero-filled, which outlives @h.
 * All slots are of no tier. -EINVAL: nothing to use, or too small.
 */
int lift_heat_init(
	struct lift_heat *h, void *mem, size_t bytes, uint32_t chunks, uint32_t detailed);

/* Which slots are fast and which slow. Pages elsewhere are left where they are. */
void lift_heat_set_tiers(struct lift_heat *h, uint64_t fast, uint64_t slow);

/* The chunk that contains @addr; NULL: not tracked. Valid until the next add or remove. */
struct lift_chunk *lift_heat_find(const struct lift_heat *h, uintptr_t addr);

/* As find; a new one is all absent and LIFT_CHUNK_UNKNOWN. NULL: no record is left. */
struct lift_chunk *lift_heat_add(struct lift_heat *h, uintptr_t addr);

/* The last chunk takes its place in chunk[]. */
void lift_heat_remove(struct lift_heat *h, struct lift_chunk *c);

/* The pages of @range are gone, or not ours any more. Chunks with nothing left are removed. */
void lift_heat_forget(struct lift_heat *h, struct lift_range range);

static inline struct lift_pages *lift_heat_pages(
	const struct lift_heat *h, const struct lift_chunk *c)
{
	return c->pages == LIFT_NO_PAGES ? NULL : &h->pages[c->pages];
}

static inline uint8_t lift_heat_get(
	const struct lift_heat *h, const struct lift_chunk *c, unsigned i)
{
	const struct lift_pages *p = lift_heat_pages(h, c);

	return p ? p->heat[i] : c->heat;
}

static inline uint8_t lift_heat_where(
	const struct lift_heat *h, const struct lift_chunk *c, unsigned i)
{
	const struct lift_pages *p = lift_heat_pages(h, c);

	return p ? p->where[i] : c->where;
}

static inline uint8_t lift_heat_guard(
	const struct lift_heat *h, const struct lift_chunk *c, unsigned i)
{
	const struct lift_pages *p = lift_heat_pages(h, c);

	return p ? p->guard[i] : c->guard;
}

static inline bool lift_heat_in(uint64_t slots, uint8_t where)
{
	unsigned slot = where & LIFT_WHERE_MASK;

	return slot < LIFT_SLOTS && (slots >> slot & 1);
}

/* A page on a fast node that has come so lately that it is not to be given up yet. */
static inline bool lift_heat_fresh(uint8_t guard)
{
	return (guard & LIFT_GUARD_COUNT) > LIFT_GUARD_JUDGED;
}

/* Page @i is on a fast node and may be demoted: it did not come lately, and is known well enough.
 */
static inline bool lift_heat_victim(
	const struct lift_heat *h, const struct lift_chunk *c, unsigned i)
{
	return lift_heat_in(h->fast, lift_heat_where(h, c, i)) &&
	       c->samples[i / LIFT_PART_PAGES] >= LIFT_SAMPLES_KNOWN &&
	       !lift_heat_fresh(lift_heat_guard(h, c, i));
}

/*
 * Sets heat, where and guard of page @i; of all of them if the chunk is huge. When there are no
 * pages left for a chunk whose pages begin to differ, nothing is changed and false returned.
 */
bool lift_heat_set(struct lift_heat *h, struct lift_chunk *c, unsigned i, uint8_t heat,
	uint8_t where, uint8_t guard);

/* Page @i is on @slot (or LIFT_WHERE_*), as the machine says. What is new there is cold. */
void lift_heat_locate(struct lift_heat *h, struct lift_chunk *c, unsigned i, uint8_t slot);

/* The chunk is one huge page from now on, or none any more; of a new one all is what its first was.
 */
void lift_heat_describe(struct lift_heat *h, struct lift_chunk *c, bool huge);

/* Page @i was promoted to @slot; @predicted: in advance. */
void lift_heat_promoted(
	struct lift_heat *h, struct lift_chunk *c, unsigned i, uint8_t slot, bool predicted);

/* Page @i was demoted to @slot. True: it bounced, that is came up lately. */
bool lift_heat_demoted(struct lift_heat *h, struct lift_chunk *c, unsigned i, uint8_t slot);

/* All that came lately has stayed long enough: what happens from now on is not their moves' fault.
 */
void lift_heat_settle(struct lift_heat *h);

/* Page @i could not be moved now: it waits, longer each time. */
void lift_heat_delay(struct lift_heat *h, struct lift_chunk *c, unsigned i);

/*
 * Takes over the sample in c->armed, accessed and seen, and clears them but for accessed, which says
 * until the next sample what was used. Pages that were armed and not seen are absent from now on.
 * Adds to *tally. When the pages come to be alike, their memory is given back.
 */
void lift_heat_sample(struct lift_heat *h, struct lift_chunk *c, struct lift_tally *tally);

/* Bytes of the records that are in use. */
uint64_t lift_heat_used(const struct lift_heat *h);

/* Every invariant, in O(n). For tests, fuzzers and debug builds. */
bool lift_heat_check(const struct lift_heat *h);

#endif
