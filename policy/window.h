/*
 * The promotion window: pages promoted in advance because a page next to them is hot.
 *
 * Like readahead it starts small (16 KiB), doubles while its predictions come true and halves when
 * they do not: when the pages of its outer half are about as likely to be accessed as the hot ones
 * that they were foretold from, or far less likely. Unlike readahead it need not move anything to
 * find out. Every sample is also a test of the predictions that could have been made before it: of
 * the pages next to a hot one, how many were accessed? So it is on only where it has been seen to
 * work, and pages that are hot one by one cost nothing. Each way (up, down, by stride) has a size
 * of its own.
 *
 * Bitmaps are of the pages of one chunk, so a window never leaves it. Pure, no locks.
 */
#ifndef LIFT_POLICY_WINDOW_H
#define LIFT_POLICY_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

#include "policy/heat.h"

enum lift_way { LIFT_WAY_UP, LIFT_WAY_DOWN, LIFT_WAY_STRIDE, LIFT_WAY_MAX };

#define LIFT_WINDOW_MIN_PAGES 4                /* 16 KiB */
#define LIFT_WINDOW_MAX_PAGES LIFT_CHUNK_PAGES /* 2 MiB */

struct lift_window_way {
	uint16_t pages;   /* size on trial, and in use if trusted */
	bool trusted;     /* whether predictions are acted upon */
	uint8_t misses;   /* verdicts in a row that said no */
	uint16_t pause;   /* passes to be waited for before the next trial */
	uint32_t trial_n; /* predictions judged at this size so far: of its outer half */
	uint32_t trial_t; /* of these came true */
	uint64_t trial_p; /* would have, with the chance of hot pages, in 1/4096 */
	uint64_t base_p;  /* and with the chance of any page */
	uint32_t near_n;  /* of the nearest pages, whatever the size */
	uint32_t near_t;
	uint8_t chunks;  /* that the trial has taken predictions from */
	uint32_t pass_n; /* all predictions, in this pass */
	uint32_t pass_t;
};

struct lift_window {
	bool fixed; /* sizes were given: nothing is learned */
	struct lift_window_way way[LIFT_WAY_MAX];
	uint32_t pass_n; /* judged in the last pass, of ways that are trusted */
	uint32_t pass_t;
	uint64_t predicted; /* pages moved in advance */
	uint64_t hit;       /* of these accessed soon */
	uint64_t wrong;     /* of these not */
};

/* Adaptive. */
void lift_window_init(struct lift_window *w);

/* Always @pages, up and down; 0: never. */
void lift_window_fix(struct lift_window *w, unsigned pages);

/*
 * Which of @eligible lie in the window of a page of @hot: unbroken from it through eligible or hot
 * pages (through what lies between for strides). Only trusted ways, unless @trial is set, then
 * @way only at the size on trial. Returns how many, in *ret.
 */
unsigned lift_window_predict(const struct lift_window *w, const uint64_t hot[LIFT_CHUNK_WORDS],
	const uint64_t eligible[LIFT_CHUNK_WORDS], int trial, uint64_t ret[LIFT_CHUNK_WORDS]);

/*
 * Who foretells: pages that are hot (@fresh: those that came to a fast node lately for their own
 * sake, since what is hot and was not promoted has been thought better of), and pages that were
 * accessed in their last sample, four in a row: no chance hits either. Who can be foretold: what
 * else is on slow nodes and need not wait, and what was promoted in advance and not accessed yet.
 * *ret_p is the mean chance of the first to be accessed in a sample, by @p (of 4096, for each
 * state).
 */
void lift_window_maps(const struct lift_heat *h, const struct lift_chunk *c, const bool *hot_state,
	const uint16_t *p, bool fresh, uint64_t ret_hot[LIFT_CHUNK_WORDS],
	uint64_t ret_eligible[LIFT_CHUNK_WORDS], uint32_t *ret_p);

/*
 * A sample of a chunk: @hot, @eligible and @hot_p as they were before it, @base_p the
 * mean chance of any page on slow nodes, @sampled and @accessed
 * what it looked at and found. As soon as enough is judged there is a verdict, and the size
 * follows.
 */
void lift_window_learn(struct lift_window *w, const uint64_t hot[LIFT_CHUNK_WORDS],
	const uint64_t eligible[LIFT_CHUNK_WORDS], uint32_t hot_p, uint32_t base_p,
	const uint64_t sampled[LIFT_CHUNK_WORDS], const uint64_t accessed[LIFT_CHUNK_WORDS]);

/*
 * After all chunks of a pass. @hit and @wrong are what became of pages that were really moved: more
 * wrong than right is a verdict, too. Sets pass_n and pass_t.
 */
void lift_window_judge(struct lift_window *w, uint32_t hit, uint32_t wrong);

/* No way is on trial or in use: samples need not be shown to it. */
bool lift_window_rests(const struct lift_window *w);

/* Largest size in use, in bytes; 0: off. */
uint64_t lift_window_bytes(const struct lift_window *w);

#endif
