/*
 * The live ranges that numalift knows of, ordered by address: a balanced tree over memory that the
 * caller hands in. No operation allocates, recurses or takes more than O(log n) per record touched.
 * Not thread-safe: shim/registry.c has the lock.
 */
#ifndef LIFT_POLICY_REGIONS_H
#define LIFT_POLICY_REGIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "policy/placement.h"
#include "policy/types.h"

/* What is known of a range. */
struct lift_region_info {
	struct lift_range range;
	enum lift_class cls;
	enum lift_place_kind kind;
	uint32_t flags; /* LIFT_REGION_*; bits from LIFT_REGION_USER on are the caller's */
	uint32_t vmas;  /* charged to the budget: those beyond the one it has anyway */
};

/* Never merged with a neighbour, e.g. because chunks are counted from its start. */
#define LIFT_REGION_SEPARATE (1u << 0)
#define LIFT_REGION_USER (1u << 8)

/* A record in the tree. To be written to by these functions only. */
struct lift_region {
	struct lift_region_info info;
	struct lift_region *left;
	struct lift_region *right;
	struct lift_region *parent;
	int height;
};

struct lift_regions {
	struct lift_region *root;
	struct lift_region *free; /* linked by .right */
	size_t nr;                /* records in the tree */
	size_t nr_free;           /* records on the free list */
	size_t capacity;          /* nr + nr_free */
	uint64_t vmas;            /* sum of info.vmas over the tree */
	uint64_t bytes;           /* sum of sizes over the tree */
	uint64_t forgotten;       /* pieces dropped for want of a free record */
};

/* An empty map without memory. */
void lift_regions_init(struct lift_regions *r);

/*
 * Hands in memory for @nr more records; uninitialised is fine. It belongs to the map from now on
 * and must outlive it. Any number of times.
 */
void lift_regions_add_memory(struct lift_regions *r, struct lift_region *records, size_t nr);

/* Back to empty; all records are free again. */
void lift_regions_clear(struct lift_regions *r);

/*
 * Adds a range. Where a neighbour touches it and has the same class, kind and flags, without
 * LIFT_REGION_SEPARATE, they become one record whose charge is the sum. 0; -EINVAL: empty range;
 * -EEXIST: it overlaps one that is there (lift_regions_cut() first for MAP_FIXED); -ENOMEM: no
 * free record. Nothing is changed on failure.
 */
int lift_regions_insert(struct lift_regions *r, const struct lift_region_info *info);

/*
 * Forgets whatever lies in @cut (munmap, MAP_FIXED over it); pieces outside stay. A record that
 * is cut keeps the part of its charge that its size keeps. *ret_vmas (may be NULL) is the charge
 * of what is gone, to be given back to the budget.
 *
 * Cutting the middle out of a record needs a free one. The memory is gone whatever we say, so the
 * cut is done all the same: without a free record the smaller remaining piece is forgotten as
 * well (memory that is not known is merely not looked after) and -ENOMEM returned. Else 0, with
 * an empty range or nothing there too.
 */
int lift_regions_cut(struct lift_regions *r, struct lift_range cut, uint64_t *ret_vmas);

/*
 * What lies in @from is now at @to (mremap). Whatever was in @to before is forgotten; what
 * exceeds the new size is too; a record that reached the end of @from grows to the new end. Same
 * start: it shrinks or grows in place. *ret_vmas as for cut. 0; -EINVAL: a range is empty, or
 * they overlap with different starts (the kernel refuses that too), nothing is changed; -ENOMEM
 * as for cut. For MREMAP_DONTUNMAP insert the old range again.
 */
int lift_regions_move(
	struct lift_regions *r, struct lift_range from, struct lift_range to, uint64_t *ret_vmas);

/* Makes @vmas the charge of @region, which is in @r. Returns what it was. */
uint32_t lift_regions_charge(struct lift_regions *r, struct lift_region *region, uint32_t vmas);

/* The record that contains @addr, or NULL. Valid until the map is next changed. */
struct lift_region *lift_regions_find(const struct lift_regions *r, uintptr_t addr);

/* The lowest record that ends above @addr, so that contains @addr or lies above it; or NULL. */
struct lift_region *lift_regions_first(const struct lift_regions *r, uintptr_t addr);

/* The record after @region in address order, or NULL. */
struct lift_region *lift_regions_next(const struct lift_region *region);

/* Every invariant, in O(n). For tests, fuzzers and debug builds. */
bool lift_regions_check(const struct lift_regions *r);

#endif
