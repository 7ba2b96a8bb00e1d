/*
 * Regions of memory for a sampler that sees only one sum per mapping: large where all of it is
 * alike, down to 2 MiB where hot and cold mix. Here is only where the borders are; the shim makes
 * mappings of them.
 *
 * A run is memory without a border of others', of which one mapping or several can be made. Its
 * regions follow one another without gaps. Borders lie where halving aligned blocks puts them:
 *
 *     run    |<------------------------- 64 MiB -------------------------->|
 *            [           32 MiB            ][           32 MiB             ]    when it is used
 *            [     16     ][  8  ][4][2][*2][           32 MiB             ]    around what is hot
 *
 * so that two regions can become one again whenever together they are all that the run has of one
 * block. Neighbours are told apart by a form (0 or 1) that alternates; the first has form 0.
 *
 * A run is whole until something of it is resident: the kernel would never again make one mapping
 * of pieces that were divided before they were used. Then each region is split at most once per
 * sample, so what is hot is found in as many samples as there are halvings. Halves that turn out
 * alike become one again, and are left whole for longer each time.
 *
 * All is deterministic. Plain data: the caller serialises.
 */
#ifndef LIFT_POLICY_SPLIT_H
#define LIFT_POLICY_SPLIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "policy/types.h"

#define LIFT_SPLIT_LEAST LIFT_HUGE_BYTES
#define LIFT_SPLIT_COARSE (32 * LIFT_MIB)

struct lift_split_region {
	uintptr_t start;
	uintptr_t end;
	uint8_t flags; /* LIFT_SPLIT_* */
	uint8_t share; /* of what is resident, used in the last sample: of 255 */
	uint8_t alike; /* samples in a row in which it and the next one agreed */
	uint8_t rest;  /* samples to go before it is split again */
	uint8_t tries; /* how often it was split for nothing */
};

#define LIFT_SPLIT_FIRST (1u << 0)  /* of its run */
#define LIFT_SPLIT_OTHER (1u << 1)  /* its form is 1 */
#define LIFT_SPLIT_DONE (1u << 2)   /* the shim has given it that form */
#define LIFT_SPLIT_FRESH (1u << 3)  /* sampled since the last lift_split_step() */
#define LIFT_SPLIT_ABSENT (1u << 4) /* nothing of it was resident then */
#define LIFT_SPLIT_MARK (1u << 5)   /* the caller's two; halves have what the whole had */
#define LIFT_SPLIT_MARK_2 (1u << 6)

struct lift_split {
	struct lift_split_region *region; /* ascending */
	size_t nr;
	size_t max;
	uint64_t cost;   /* mappings that the regions cost beyond those of the runs */
	uint64_t coarse; /* bytes of the largest regions; a power of two */
	size_t old;      /* between set_begin and set_end: the first not yet looked at */
	bool moved;      /* borders or forms have changed since the shim last asked */
};

/* For a region that is no region any more and had form 1. */
typedef void lift_split_drop_fn(void *arg, struct lift_range range);

/* max regions at least 2; the memory is the caller's and need not be cleared. */
void lift_split_init(struct lift_split *s, struct lift_split_region *region, size_t max);

/*
 * The runs anew: begin, add each in ascending order, end. What was known of memory that is in a run
 * now as before stays known. `bytes` is about how much there will be: regions begin larger than
 * LIFT_SPLIT_COARSE where half of `allowed` would not do. Runs that do not fit are left out.
 */
void lift_split_set_begin(struct lift_split *s, uint64_t bytes, uint64_t allowed);
void lift_split_set_run(
	struct lift_split *s, struct lift_range run, lift_split_drop_fn *drop, void *arg);
void lift_split_set_end(
	struct lift_split *s, uint64_t allowed, lift_split_drop_fn *drop, void *arg);

/* Region i was sampled. Nothing resident says nothing about it. */
void lift_split_sampled(
	struct lift_split *s, size_t i, uint64_t accessed_bytes, uint64_t resident_bytes);

/* Has region i hot and cold in it, and could it be split? */
bool lift_split_mixed(
	const struct lift_split *s, size_t i, uint64_t accessed_bytes, uint64_t resident_bytes);

/*
 * After a sample: at most `most` merges and `most` splits, and no more mappings than `allowed`, for
 * which it merges more than that if it must.
 */
void lift_split_step(struct lift_split *s, uint64_t allowed, size_t most);

/* Index of the first region that ends above addr; s->nr: none does. */
size_t lift_split_find(const struct lift_split *s, uintptr_t addr);

/* Every invariant, in O(n). For tests. */
bool lift_split_check(const struct lift_split *s);

#endif
