/*
 * The words every policy module shares: sets of nodes, address ranges, classes, and the kernel's
 * numbers for memory policies. Plain data and inline arithmetic; safe from any thread, from signal
 * handlers and before any constructor has run.
 */
#ifndef LIFT_POLICY_TYPES_H
#define LIFT_POLICY_TYPES_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The kernel's largest CONFIG_NODES_SHIFT is 10, so a node id is always below this. */
#define LIFT_MAX_NODES 1024

#define LIFT_NODESET_WORDS (LIFT_MAX_NODES / 64)

/* Most nodes a topology describes. Descriptions are dense, ids may have holes. */
#define LIFT_TOPO_NODES 64

#define LIFT_KIB (UINT64_C(1) << 10)
#define LIFT_MIB (UINT64_C(1) << 20)
#define LIFT_GIB (UINT64_C(1) << 30)

/* Unit of placement by default: the huge page of x86-64 and of arm64 with 4 KiB pages. */
#define LIFT_HUGE_BYTES (2 * LIFT_MIB)

/*
 * The kernel's MPOL_* numbers (uapi/linux/mempolicy.h). Repeated here because policy includes no
 * system header, and because bookworm's headers lack the newest; the shim asserts that they agree.
 */
enum lift_mpol {
	LIFT_MPOL_DEFAULT = 0,
	LIFT_MPOL_PREFERRED = 1,
	LIFT_MPOL_BIND = 2,
	LIFT_MPOL_INTERLEAVE = 3,
	LIFT_MPOL_LOCAL = 4,
	LIFT_MPOL_PREFERRED_MANY = 5,      /* Linux 5.15 */
	LIFT_MPOL_WEIGHTED_INTERLEAVE = 6, /* Linux 6.9 */
	LIFT_MPOL_MAX
};

/* Flags that are or-ed into the mode. */
#define LIFT_MPOL_F_NUMA_BALANCING (1 << 13)
#define LIFT_MPOL_F_RELATIVE_NODES (1 << 14)
#define LIFT_MPOL_F_STATIC_NODES (1 << 15)
#define LIFT_MPOL_F_MASK                                                                           \
	(LIFT_MPOL_F_NUMA_BALANCING | LIFT_MPOL_F_RELATIVE_NODES | LIFT_MPOL_F_STATIC_NODES)

/* What memory is for, as far as placement is concerned. policy/classify.h says who gets which. */
enum lift_class { LIFT_CLASS_SLAB, LIFT_CLASS_ANON, LIFT_CLASS_FILE, LIFT_CLASS_MAX };

/* The word used in options and statistics; "?" outside the enum. Never NULL. */
const char *lift_class_name(enum lift_class cls);

/* [start, end): empty when start >= end. */
struct lift_range {
	uintptr_t start;
	uintptr_t end;
};

static inline bool lift_range_empty(struct lift_range r)
{
	return r.start >= r.end;
}

static inline size_t lift_range_bytes(struct lift_range r)
{
	return lift_range_empty(r) ? 0 : (size_t)(r.end - r.start);
}

static inline size_t lift_ranges_bytes(const struct lift_range *ranges, size_t nr)
{
	size_t bytes = 0;

	for (size_t i = 0; i < nr; i++)
		bytes += lift_range_bytes(ranges[i]);
	return bytes;
}

/* What both have; empty when they do not overlap. */
static inline struct lift_range lift_range_and(struct lift_range a, struct lift_range b)
{
	if (a.start < b.start)
		a.start = b.start;
	if (a.end > b.end)
		a.end = b.end;
	return a;
}

static inline bool lift_range_overlaps(struct lift_range a, struct lift_range b)
{
	return !lift_range_empty(a) && !lift_range_empty(b) && a.start < b.end && b.start < a.end;
}

/* A node and a number that says how much of something it gets, relative to the other nodes. */
struct lift_node_weight {
	int node;
	uint64_t weight;
};

/*
 * A set of node ids. Ids outside [0, LIFT_MAX_NODES) are never members: setting one does nothing,
 * testing one is false. bits[] has the layout that mbind(2) and friends take on 64-bit machines.
 */
struct lift_nodeset {
	uint64_t bits[LIFT_NODESET_WORDS];
};

static inline void lift_nodeset_zero(struct lift_nodeset *s)
{
	memset(s, 0, sizeof(*s));
}

static inline void lift_nodeset_set(struct lift_nodeset *s, int node)
{
	if (node >= 0 && node < LIFT_MAX_NODES)
		s->bits[node / 64] |= UINT64_C(1) << (node % 64);
}

static inline void lift_nodeset_clear(struct lift_nodeset *s, int node)
{
	if (node >= 0 && node < LIFT_MAX_NODES)
		s->bits[node / 64] &= ~(UINT64_C(1) << (node % 64));
}

static inline bool lift_nodeset_test(const struct lift_nodeset *s, int node)
{
	return node >= 0 && node < LIFT_MAX_NODES && (s->bits[node / 64] >> (node % 64) & 1);
}

static inline bool lift_nodeset_empty(const struct lift_nodeset *s)
{
	for (unsigned i = 0; i < LIFT_NODESET_WORDS; i++)
		if (s->bits[i])
			return false;
	return true;
}

static inline bool lift_nodeset_equal(const struct lift_nodeset *a, const struct lift_nodeset *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

/* True when every member of @a is one of @b; the empty set is within every set. */
static inline bool lift_nodeset_within(const struct lift_nodeset *a, const struct lift_nodeset *b)
{
	for (unsigned i = 0; i < LIFT_NODESET_WORDS; i++)
		if (a->bits[i] & ~b->bits[i])
			return false;
	return true;
}

static inline unsigned lift_nodeset_count(const struct lift_nodeset *s)
{
	unsigned nr = 0;

	for (unsigned i = 0; i < LIFT_NODESET_WORDS; i++)
		for (uint64_t w = s->bits[i]; w; w &= w - 1)
			nr++;
	return nr;
}

/* The lowest member above @after, -1 when there is none. @after may be -1 (or lower). */
static inline int lift_nodeset_next(const struct lift_nodeset *s, int after)
{
	int node = after < 0 ? 0 : after < LIFT_MAX_NODES ? after + 1 : LIFT_MAX_NODES;

	while (node < LIFT_MAX_NODES) {
		uint64_t w = s->bits[node / 64] >> (node % 64);

		if (w)
			return node + __builtin_ctzll(w);
		node = (node / 64 + 1) * 64;
	}
	return -1;
}

/* The lowest member, -1 when empty. */
static inline int lift_nodeset_first(const struct lift_nodeset *s)
{
	return lift_nodeset_next(s, -1);
}

/* *ret may be one of the operands. */
static inline void lift_nodeset_and(
	struct lift_nodeset *ret, const struct lift_nodeset *a, const struct lift_nodeset *b)
{
	for (unsigned i = 0; i < LIFT_NODESET_WORDS; i++)
		ret->bits[i] = a->bits[i] & b->bits[i];
}

static inline void lift_nodeset_or(
	struct lift_nodeset *ret, const struct lift_nodeset *a, const struct lift_nodeset *b)
{
	for (unsigned i = 0; i < LIFT_NODESET_WORDS; i++)
		ret->bits[i] = a->bits[i] | b->bits[i];
}

static inline void lift_nodeset_andnot(
	struct lift_nodeset *ret, const struct lift_nodeset *a, const struct lift_nodeset *b)
{
	for (unsigned i = 0; i < LIFT_NODESET_WORDS; i++)
		ret->bits[i] = a->bits[i] & ~b->bits[i];
}

/* for (int node = first; node >= 0; node = next) over the members, lowest first. */
#define lift_nodeset_foreach(node, s)                                                              \
	for (int node = lift_nodeset_first(s); node >= 0; node = lift_nodeset_next((s), node))

#endif
