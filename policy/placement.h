/*
 * Where a range goes: options, machine, class and size in, one decision out. Pure; any thread.
 */
#ifndef LIFT_POLICY_PLACEMENT_H
#define LIFT_POLICY_PLACEMENT_H

#include <stdbool.h>
#include <stdint.h>

#include "policy/config.h"
#include "policy/interleave.h"
#include "policy/tiers.h"
#include "policy/topology.h"
#include "policy/types.h"

/* What holds at the moment of a decision. The pointers are borrowed for the call and not NULL. */
struct lift_machine_view {
	const struct lift_topology *topo;
	const struct lift_tiers *tiers;
	struct lift_nodeset allowed;        /* Mems_allowed */
	bool zone_reclaim;                  /* vm.zone_reclaim_mode is not 0 */
	bool kernel_balancing;              /* kernel.numa_balancing is not 0 */
	bool has_preferred_many;            /* MPOL_PREFERRED_MANY, 5.15 */
	bool has_weighted_interleave;       /* MPOL_WEIGHTED_INTERLEAVE, 6.9 */
	bool balancing_flag_preferred_many; /* MPOL_F_NUMA_BALANCING accepted with it, 6.10 */
	bool balancing_flag_bind;           /* ... with MPOL_BIND, 5.12 */
};

enum lift_place_kind {
	LIFT_PLACE_NONE,   /* leave it to the kernel: no call at all */
	LIFT_PLACE_NODES,  /* one policy for the whole range */
	LIFT_PLACE_CHUNKS, /* batch interleave: one policy per chunk, on one node each */
	LIFT_PLACE_MAX
};

const char *lift_place_kind_name(enum lift_place_kind kind);

struct lift_decision {
	enum lift_place_kind kind;
	int mode;                  /* LIFT_MPOL_* with flags; CHUNKS: of each chunk; NONE: 0 */
	struct lift_nodeset nodes; /* of the policy; for CHUNKS those to spread over; else empty */
	bool by_weight;            /* CHUNKS: shares by weight, not by capacity */
	const char *why;           /* static, for people: what decided */
};

/*
 * Decides for a request of @bytes of class @cls, made by a thread whose own policy is
 * @program_mode (as get_mempolicy(2) returns it; negative: could not be read) and that runs on
 * @cpu_node (-1: not known). Who wins, first to last:
 *
 *   1. the cpuset: only allowed nodes that have memory are ever named; with one, NONE.
 *   2. the program's own policy: anything but MPOL_DEFAULT, or one that could not be read, is NONE.
 *   3. vm.zone_reclaim_mode: the administrator asked for local memory, so NONE.
 *   4. the rule for the class.
 *
 *   local       one tier: NONE (first touch is local already). Several: PREFERRED_MANY over
 *               the fast nodes, without a home node: whichever thread touches a page first gets
 *               the nearest of them, where a home would be the node of whoever mapped it. Where
 *               the kernel lacks it PREFERRED {nearest fast}, or NONE if @cpu_node is not known
 *               and there are several.
 *   interleave  CHUNKS over the fast nodes; with fewer than two of them as local.
 *   weighted    with NUMALIFT_WEIGHTS: CHUNKS over the nodes it names (the kernel's weights belong
 *               to the whole machine, and are not ours to set). Else WEIGHTED_INTERLEAVE over
 *               all nodes, or CHUNKS by the kernel's weights. With fewer than two nodes as local.
 *   bind        BIND.
 *   preferred   PREFERRED for one node, PREFERRED_MANY for several (PREFERRED {nearest} without
 *               it).
 *
 * All nodes are never named by bind, preferred or local: that says nothing and ends kernel
 * balancing. "Tier" and "fast" mean what is left of the tiers within the allowed nodes.
 *
 * With kernel balancing on: a policy without MPOL_F_NUMA_BALANCING takes its range out of it, so
 *   - local on several tiers uses PREFERRED_MANY with the flag, or NONE where the flag is
 *     refused: the kernel's promotion is worth more than a first placement. (BIND takes the flag
 *     on older kernels, but kills the program when its nodes are full.)
 *   - interleave is done in any case, on several tiers with the flag where it is accepted: the
 *     flag lets the kernel bring a page back to its own node, no other; on one tier there is no
 *     need of that.
 *   - bind, preferred and weighted were asked for by name and are done, with the flag where
 *     it is accepted.
 *
 * 0, or -EINVAL for a class outside the enum; *ret is untouched on failure.
 */
int lift_place_decide(const struct lift_config *cfg, const struct lift_machine_view *view,
	enum lift_class cls, uint64_t bytes, int program_mode, int cpu_node,
	struct lift_decision *ret);

/*
 * What each node of a CHUNKS decision is to get, for lift_credits_init(): its weight
 * (NUMALIFT_WEIGHTS, else the kernel's, else 1) when the decision is by_weight, otherwise its
 * capacity in bytes (1 for all when the capacity of any is not known). Returns the number of
 * entries.
 */
unsigned lift_place_weights(const struct lift_config *cfg, const struct lift_machine_view *view,
	const struct lift_decision *decision, struct lift_node_weight ret[LIFT_TOPO_NODES]);

#endif
