/*
 * From a cut to batches of pages with one target each, and from the status of each page to what
 * becomes of it. Demotions come first, as many as the promotions after them need.
 *
 * Worker only. The plan is built anew after every pass.
 */
#ifndef LIFT_POLICY_MOVEPLAN_H
#define LIFT_POLICY_MOVEPLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "policy/heat.h"
#include "policy/threshold.h"
#include "policy/window.h"

#define LIFT_BATCH_PAGES 512

struct lift_batch {
	unsigned nr;     /* units: pages, or whole huge pages by their first address */
	unsigned slot;   /* target */
	bool demote;     /* else promote */
	uint64_t weight; /* pages of 4 KiB in all */
	uintptr_t page[LIFT_BATCH_PAGES];
	bool predicted[LIFT_BATCH_PAGES];
};

/* Per slot. Fast slots nearest first, slow slots nearest first: as targets they are tried in order.
 */
struct lift_slot {
	int node;
	bool fast;
	bool usable;   /* false: gone, forbidden, or full for this pass */
	uint64_t room; /* pages that may still be put there, headroom kept */
};

struct lift_counts {
	uint64_t promoted; /* pages, as are all of these */
	uint64_t demoted;
	uint64_t predicted; /* promoted in advance, part of promoted */
	uint64_t home;      /* promoted to where they are used, part of promoted */
	uint64_t bounced;   /* demoted soon after they had come */
	uint64_t busy;
	uint64_t absent;
	uint64_t stuck; /* forbidden: not tried again */
	uint64_t full;  /* no room on the target */
	uint64_t other;
	uint64_t failed_calls;
};

/* Where a search through the chunks is. */
struct lift_cursor {
	uint32_t chunk; /* modulo their number */
	uint32_t done;  /* chunks searched to the end */
	unsigned page;  /* in the chunk */
};

struct lift_moveplan {
	struct lift_cut cut; /* what is left to do */
	struct lift_cursor up; /* once to where pages are used, and once for what is left */
	struct lift_cursor down;
	uint32_t promoted; /* pages, by this plan */
	uint32_t demoted;
	bool anywhere; /* what has found its own node full may go to another one */
	bool put_off;  /* there is such */
	bool ended;
	bool forbidden; /* moving is not allowed here at all */
	struct lift_batch batch;
};

/* @start: chunk to start with, so that it is not always the same ones that come first. */
void lift_moveplan_init(struct lift_moveplan *m, const struct lift_cut *cut, uint32_t start);

/*
 * Pages of @c that the window would promote in advance, if the states in @cut were promoted: for
 * the cut that is then made with them.
 */
uint32_t lift_moveplan_offer(const struct lift_heat *h, const struct lift_chunk *c,
	const struct lift_cut *cut, const struct lift_window *w);

/*
 * Fills m->batch; false: nothing is left to do. A batch is never empty, has at most
 * LIFT_BATCH_PAGES units, one target with room for all of them, and no page twice.
 */
bool lift_moveplan_next(struct lift_moveplan *m, const struct lift_heat *h,
	const struct lift_window *w, const struct lift_slot *slots, unsigned nr_slots);

/*
 * What became of m->batch: @rc of the call and @status of each unit (policy/memsys.h). Updates
 * heat, room and counts. @slot_of[node] is not needed: a page that is on another node than asked
 * for is located anew by its chunk being LIFT_CHUNK_UNKNOWN.
 */
void lift_moveplan_done(struct lift_moveplan *m, struct lift_heat *h, struct lift_slot *slots,
	unsigned nr_slots, int rc, const int *status, struct lift_counts *counts);

#endif
