#include "policy/placement.h"

#include <errno.h>

/* The machine within the nodes that the program may use. */
struct reach {
	struct lift_nodeset memory; /* allowed, and with memory */
	struct lift_nodeset fast;   /* the fastest tier with a node left; empty if .memory is */
	unsigned nr_tiers;          /* that have a node left */
};

const char *lift_place_kind_name(enum lift_place_kind kind)
{
	switch (kind) {
	case LIFT_PLACE_NONE:
		return "none";
	case LIFT_PLACE_NODES:
		return "nodes";
	case LIFT_PLACE_CHUNKS:
		return "chunks";
	case LIFT_PLACE_MAX:
		break;
	}
	return "?";
}

static void look(const struct lift_machine_view *view, struct reach *ret)
{
	memset(ret, 0, sizeof(*ret));
	lift_topology_memory_nodes(view->topo, &ret->memory);
	lift_nodeset_and(&ret->memory, &ret->memory, &view->allowed);
	for (unsigned i = 0; i < view->tiers->nr && i < LIFT_TIERS_MAX; i++) {
		struct lift_nodeset tier;

		lift_nodeset_and(&tier, &view->tiers->tier[i], &ret->memory);
		if (lift_nodeset_empty(&tier))
			continue;
		if (ret->nr_tiers++ == 0)
			ret->fast = tier;
	}
	/* Tiers made before these nodes came: no ranking is better than a wrong one. */
	if (ret->nr_tiers == 0) {
		ret->fast = ret->memory;
		ret->nr_tiers = 1;
	}
}

static void none(struct lift_decision *ret, const char *why)
{
	memset(ret, 0, sizeof(*ret));
	ret->kind = LIFT_PLACE_NONE;
	ret->mode = LIFT_MPOL_DEFAULT;
	ret->why = why;
}

static void place(struct lift_decision *ret, enum lift_place_kind kind, int mode,
	const struct lift_nodeset *nodes, const char *why)
{
	none(ret, why);
	ret->kind = kind;
	ret->mode = mode;
	ret->nodes = *nodes;
}

static void place_one(struct lift_decision *ret, int mode, int node, const char *why)
{
	struct lift_nodeset nodes;

	lift_nodeset_zero(&nodes);
	lift_nodeset_set(&nodes, node);
	place(ret, LIFT_PLACE_NODES, mode, &nodes, why);
}

/* PREFERRED_MANY in the form that the kernel will balance. */
static bool can_stay_balanced(const struct lift_machine_view *view)
{
	return view->has_preferred_many && view->balancing_flag_preferred_many;
}

#define BALANCED_MANY (LIFT_MPOL_PREFERRED_MANY | LIFT_MPOL_F_NUMA_BALANCING)

static void decide_local(const struct lift_machine_view *view, const struct reach *reach,
	int cpu_node, struct lift_decision *ret)
{
	if (reach->nr_tiers < 2) {
		none(ret, "one tier: first touch is local already");
		return;
	}
	if (view->kernel_balancing) {
		if (can_stay_balanced(view))
			place(ret, LIFT_PLACE_NODES, BALANCED_MANY, &reach->fast,
				"fast nodes first; the kernel promotes");
		else
			none(ret, "a policy would end kernel balancing, which takes no flag here");
		return;
	}
	if (view->has_preferred_many) {
		place(ret, LIFT_PLACE_NODES, LIFT_MPOL_PREFERRED_MANY, &reach->fast,
			"fast nodes first, near first");
		return;
	}
	if (lift_nodeset_count(&reach->fast) > 1 && lift_topology_find(view->topo, cpu_node) < 0) {
		none(ret, "no MPOL_PREFERRED_MANY, and the nearest fast node is not known");
		return;
	}
	place_one(ret, LIFT_MPOL_PREFERRED,
		lift_topology_nearest(view->topo, cpu_node, &reach->fast),
		"no MPOL_PREFERRED_MANY: the nearest fast node");
}

static void decide_interleave(const struct lift_machine_view *view, const struct reach *reach,
	int cpu_node, struct lift_decision *ret)
{
	if (lift_nodeset_count(&reach->fast) < 2) {
		decide_local(view, reach, cpu_node, ret);
		return;
	}
	if (!view->kernel_balancing || reach->nr_tiers < 2) {
		place(ret, LIFT_PLACE_CHUNKS, LIFT_MPOL_PREFERRED, &reach->fast,
			"batch interleave over the fast nodes");
		return;
	}
	if (can_stay_balanced(view))
		place(ret, LIFT_PLACE_CHUNKS, BALANCED_MANY, &reach->fast,
			"batch interleave over the fast nodes; the kernel promotes");
	else
		place(ret, LIFT_PLACE_CHUNKS, LIFT_MPOL_PREFERRED, &reach->fast,
			"batch interleave over the fast nodes; not balanced by this kernel any "
			"more");
}

static void decide_weighted(const struct lift_config *cfg, const struct lift_machine_view *view,
	const struct reach *reach, int cpu_node, struct lift_decision *ret)
{
	struct lift_nodeset nodes = reach->memory;

	if (cfg->weights.nr > 0) {
		lift_nodeset_zero(&nodes);
		for (unsigned i = 0; i < cfg->weights.nr; i++)
			lift_nodeset_set(&nodes, cfg->weights.item[i].node);
		lift_nodeset_and(&nodes, &nodes, &reach->memory);
		if (lift_nodeset_count(&nodes) < 2) {
			decide_local(view, reach, cpu_node, ret);
			return;
		}
	} else if (view->has_weighted_interleave) {
		place(ret, LIFT_PLACE_NODES, LIFT_MPOL_WEIGHTED_INTERLEAVE, &nodes,
			"the kernel's weighted interleave");
		return;
	}
	if (view->kernel_balancing && can_stay_balanced(view))
		place(ret, LIFT_PLACE_CHUNKS, BALANCED_MANY, &nodes, "batch interleave by weight");
	else
		place(ret, LIFT_PLACE_CHUNKS, LIFT_MPOL_PREFERRED, &nodes,
			"batch interleave by weight");
	ret->by_weight = true;
}

/* bind and preferred: what was named, as far as it is there. False: *ret is decided already. */
static bool named_nodes(const struct lift_place_rule *rule, const struct reach *reach,
	struct lift_nodeset *ret_nodes, struct lift_decision *ret)
{
	switch (rule->nodes.kind) {
	case LIFT_NODES_ALL:
		*ret_nodes = reach->memory;
		break;
	case LIFT_NODES_FAST:
		*ret_nodes = reach->fast;
		break;
	case LIFT_NODES_LIST:
		lift_nodeset_and(ret_nodes, &rule->nodes.set, &reach->memory);
		break;
	}
	if (lift_nodeset_empty(ret_nodes)) {
		none(ret, "none of the nodes named has memory that may be used");
		return false;
	}
	if (lift_nodeset_equal(ret_nodes, &reach->memory)) {
		none(ret, "names all nodes, which says nothing");
		return false;
	}
	return true;
}

static void decide_bind(const struct lift_machine_view *view, const struct reach *reach,
	const struct lift_place_rule *rule, struct lift_decision *ret)
{
	struct lift_nodeset nodes;

	if (!named_nodes(rule, reach, &nodes, ret))
		return;
	if (!view->kernel_balancing)
		place(ret, LIFT_PLACE_NODES, LIFT_MPOL_BIND, &nodes, "bound as asked");
	else if (view->balancing_flag_bind)
		place(ret, LIFT_PLACE_NODES, LIFT_MPOL_BIND | LIFT_MPOL_F_NUMA_BALANCING, &nodes,
			"bound as asked; the kernel balances within");
	else
		place(ret, LIFT_PLACE_NODES, LIFT_MPOL_BIND, &nodes,
			"bound as asked; not balanced by this kernel any more");
}

static void decide_preferred(const struct lift_machine_view *view, const struct reach *reach,
	const struct lift_place_rule *rule, int cpu_node, struct lift_decision *ret)
{
	struct lift_nodeset nodes;

	if (!named_nodes(rule, reach, &nodes, ret))
		return;
	if (view->kernel_balancing && can_stay_balanced(view))
		place(ret, LIFT_PLACE_NODES, BALANCED_MANY, &nodes,
			"preferred as asked; the kernel balances");
	else if (lift_nodeset_count(&nodes) > 1 && view->has_preferred_many)
		place(ret, LIFT_PLACE_NODES, LIFT_MPOL_PREFERRED_MANY, &nodes,
			"preferred as asked");
	else if (lift_nodeset_count(&nodes) > 1)
		place_one(ret, LIFT_MPOL_PREFERRED,
			lift_topology_nearest(view->topo, cpu_node, &nodes),
			"no MPOL_PREFERRED_MANY: the nearest of the nodes preferred");
	else
		place(ret, LIFT_PLACE_NODES, LIFT_MPOL_PREFERRED, &nodes, "preferred as asked");
}

int lift_place_decide(const struct lift_config *cfg, const struct lift_machine_view *view,
	enum lift_class cls, uint64_t bytes, int program_mode, int cpu_node,
	struct lift_decision *ret)
{
	const struct lift_place_rule *rule = lift_config_rule(cfg, cls, bytes);
	struct reach reach;

	if (!rule)
		return -EINVAL;
	look(view, &reach);
	if (lift_nodeset_count(&reach.memory) < 2) {
		none(ret, "one node with memory: nothing to choose");
		return 0;
	}
	if (program_mode != LIFT_MPOL_DEFAULT) {
		none(ret, program_mode < 0 ? "the program's own policy could not be read"
					   : "the program has a policy of its own");
		return 0;
	}
	if (view->zone_reclaim) {
		none(ret, "vm.zone_reclaim_mode asks for local memory");
		return 0;
	}

	switch (rule->how) {
	case LIFT_HOW_INTERLEAVE:
		decide_interleave(view, &reach, cpu_node, ret);
		break;
	case LIFT_HOW_WEIGHTED:
		decide_weighted(cfg, view, &reach, cpu_node, ret);
		break;
	case LIFT_HOW_BIND:
		decide_bind(view, &reach, rule, ret);
		break;
	case LIFT_HOW_PREFERRED:
		decide_preferred(view, &reach, rule, cpu_node, ret);
		break;
	case LIFT_HOW_LOCAL:
	case LIFT_HOW_MAX:
		decide_local(view, &reach, cpu_node, ret);
		break;
	}
	return 0;
}

static uint64_t weight_of(const struct lift_config *cfg, const struct lift_topo_node *node)
{
	for (unsigned i = 0; i < cfg->weights.nr; i++)
		if (cfg->weights.item[i].node == node->id)
			return cfg->weights.item[i].weight;
	return node->weight ? node->weight : 1;
}

unsigned lift_place_weights(const struct lift_config *cfg, const struct lift_machine_view *view,
	const struct lift_decision *decision, struct lift_node_weight ret[LIFT_TOPO_NODES])
{
	bool capacity_known = true;
	unsigned nr = 0;

	lift_nodeset_foreach (id, &decision->nodes) {
		int i = lift_topology_find(view->topo, id);

		if (i < 0)
			continue;
		capacity_known = capacity_known && view->topo->node[i].total_bytes > 0;
		ret[nr].node = id;
		ret[nr].weight = decision->by_weight ? weight_of(cfg, &view->topo->node[i])
						     : view->topo->node[i].total_bytes;
		nr++;
	}
	if (!decision->by_weight && !capacity_known)
		for (unsigned i = 0; i < nr; i++)
			ret[i].weight = 1;
	return nr;
}
