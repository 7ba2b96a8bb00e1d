/*
 * Ranks the nodes that have memory into tiers, fastest first. Pure; any thread.
 */
#ifndef LIFT_POLICY_TIERS_H
#define LIFT_POLICY_TIERS_H

#include "policy/topology.h"
#include "policy/types.h"

#define LIFT_TIERS_MAX 8

struct lift_tiers {
	unsigned nr;                              /* used entries of tier[], none empty */
	struct lift_nodeset tier[LIFT_TIERS_MAX]; /* [0] is the fastest; disjoint */
	enum lift_fact_source source;             /* what the ranking was made from */
};

/*
 * Nodes whose figures are within this factor of the fastest of a tier belong to it. Two sockets
 * with DIMMs of different speed differ by less, CXL and persistent memory by far more. The figure
 * is latency divided by bandwidth, as in the kernel's mt_perf_to_adistance(), or the one that is
 * known.
 */
#define LIFT_TIERS_FACTOR_NUM 3
#define LIFT_TIERS_FACTOR_DEN 2

/*
 * Ranks the nodes of @topo that have memory, from the first of these that says something:
 *   1. @override (may be NULL): its order. Nodes in it that have no memory here are dropped, empty
 *      tiers with them; nodes that it leaves out come after all that it names, in one tier of their
 *      own (who names the fast nodes only means that the rest is slower). An override that names
 *      no node of this machine is ignored.
 *   2. latency, bandwidth or both where all nodes have them, grouped by LIFT_TIERS_FACTOR.
 *   3. the kernel's tiers, where all nodes have one and they differ.
 *   4. nodes with CPUs first; those without after them, grouped by LIFT_TIERS_FACTOR on the
 *      distance to the nearest node with CPUs. One tier when all or none have CPUs.
 * What would be tier LIFT_TIERS_MAX or later joins the last one.
 *
 * 0; -EINVAL: @topo has more than LIFT_TOPO_NODES entries; -ENODEV: no node has memory. *ret is
 * untouched on failure.
 */
int lift_tiers_build(const struct lift_topology *topo, const struct lift_tiers *override,
	struct lift_tiers *ret);

/* Rank of a node, 0 is the fastest; -1 when it is in no tier. */
int lift_tiers_of(const struct lift_tiers *tiers, int node);

/* The fastest tier. Precondition: nr > 0, which lift_tiers_build() guarantees. */
static inline const struct lift_nodeset *lift_tiers_fast(const struct lift_tiers *tiers)
{
	return &tiers->tier[0];
}

#endif
