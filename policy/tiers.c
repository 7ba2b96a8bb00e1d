#include "policy/tiers.h"

#include <errno.h>

/* What a node costs, in a unit of its own per way of ranking; lower is faster. */
struct ranked {
	uint64_t cost;
	int id;
};

/* Fixed point of a latency divided by a bandwidth: 2^32 ns times this fits 62 bits. */
#define COST_ONE (UINT64_C(1) << 30)

static void sort(struct ranked *r, unsigned nr)
{
	for (unsigned i = 1; i < nr; i++) {
		struct ranked x = r[i];
		unsigned j = i;

		for (; j > 0 && r[j - 1].cost > x.cost; j--)
			r[j] = r[j - 1];
		r[j] = x;
	}
}

static bool same_tier(uint64_t base, uint64_t cost, bool exact)
{
	if (exact)
		return cost == base;
	return cost * LIFT_TIERS_FACTOR_DEN <= base * LIFT_TIERS_FACTOR_NUM;
}

static void group(struct ranked *r, unsigned nr, bool exact, struct lift_tiers *ret)
{
	uint64_t base = 0;

	sort(r, nr);
	ret->nr = 0;
	for (unsigned i = 0; i < nr; i++) {
		bool full = ret->nr == LIFT_TIERS_MAX;

		if (i == 0 || (!full && !same_tier(base, r[i].cost, exact))) {
			base = r[i].cost;
			lift_nodeset_zero(&ret->tier[ret->nr++]);
		}
		lift_nodeset_set(&ret->tier[ret->nr - 1], r[i].id);
	}
}

static bool from_override(const struct lift_tiers *override, const struct lift_nodeset *memory,
	struct lift_tiers *ret)
{
	struct lift_nodeset rest = *memory;

	ret->nr = 0;
	for (unsigned i = 0; i < override->nr && i < LIFT_TIERS_MAX; i++) {
		struct lift_nodeset tier;

		/* Of a node that is named twice only the first place counts. */
		lift_nodeset_and(&tier, &override->tier[i], &rest);
		if (lift_nodeset_empty(&tier))
			continue;
		lift_nodeset_andnot(&rest, &rest, &tier);
		ret->tier[ret->nr++] = tier;
	}
	if (ret->nr == 0)
		return false;
	if (!lift_nodeset_empty(&rest)) {
		if (ret->nr < LIFT_TIERS_MAX)
			ret->tier[ret->nr++] = rest;
		else
			lift_nodeset_or(&ret->tier[ret->nr - 1], &ret->tier[ret->nr - 1], &rest);
	}
	ret->source = LIFT_FACT_OVERRIDE;
	return true;
}

static bool from_performance(
	const struct lift_topology *topo, struct ranked *r, struct lift_tiers *ret)
{
	bool latency = true;
	bool bandwidth = true;
	unsigned nr = 0;

	for (unsigned i = 0; i < topo->nr; i++) {
		if (!topo->node[i].has_memory)
			continue;
		latency = latency && topo->node[i].read_latency_ns;
		bandwidth = bandwidth && topo->node[i].read_bandwidth_mbs;
	}
	if (!latency && !bandwidth)
		return false;
	for (unsigned i = 0; i < topo->nr; i++) {
		const struct lift_topo_node *node = &topo->node[i];
		uint64_t cost = COST_ONE;

		if (!node->has_memory)
			continue;
		if (latency)
			cost *= node->read_latency_ns;
		if (bandwidth)
			cost /= node->read_bandwidth_mbs;
		r[nr++] = (struct ranked){.cost = cost, .id = node->id};
	}
	group(r, nr, false, ret);
	ret->source = LIFT_FACT_HMAT;
	return true;
}

static bool from_kernel_tiers(
	const struct lift_topology *topo, struct ranked *r, struct lift_tiers *ret)
{
	unsigned nr = 0;

	for (unsigned i = 0; i < topo->nr; i++) {
		const struct lift_topo_node *node = &topo->node[i];

		if (!node->has_memory)
			continue;
		if (node->kernel_tier < 0)
			return false;
		r[nr++] = (struct ranked){.cost = (uint64_t)node->kernel_tier, .id = node->id};
	}
	group(r, nr, true, ret);
	/* One tier for all is what kernels say that know no better (6.1 with an HMAT, for one). */
	if (ret->nr < 2)
		return false;
	ret->source = LIFT_FACT_KERNEL_TIER;
	return true;
}

static uint64_t distance_to_cpus(const struct lift_topology *topo, int id)
{
	uint64_t nearest = LIFT_DISTANCE_UNKNOWN;

	for (unsigned i = 0; i < topo->nr; i++) {
		uint64_t distance;

		if (!topo->node[i].has_cpu)
			continue;
		distance = lift_topology_distance(topo, topo->node[i].id, id);
		if (distance < nearest)
			nearest = distance;
	}
	return nearest;
}

static void from_cpus(const struct lift_topology *topo, struct ranked *r, struct lift_tiers *ret)
{
	unsigned nr = 0;

	ret->source = LIFT_FACT_SYSFS;
	for (unsigned i = 0; i < topo->nr; i++) {
		const struct lift_topo_node *node = &topo->node[i];
		uint64_t cost = 0;

		if (!node->has_memory)
			continue;
		if (!node->has_cpu) {
			cost = distance_to_cpus(topo, node->id);
			if (cost < LIFT_DISTANCE_UNKNOWN)
				ret->source = LIFT_FACT_DISTANCE;
		}
		r[nr++] = (struct ranked){.cost = cost, .id = node->id};
	}
	group(r, nr, false, ret);
}

int lift_tiers_build(
	const struct lift_topology *topo, const struct lift_tiers *override, struct lift_tiers *ret)
{
	struct ranked ranked[LIFT_TOPO_NODES];
	struct lift_nodeset memory;
	struct lift_tiers tiers;

	if (topo->nr > LIFT_TOPO_NODES)
		return -EINVAL;
	lift_topology_memory_nodes(topo, &memory);
	if (lift_nodeset_empty(&memory))
		return -ENODEV;

	memset(&tiers, 0, sizeof(tiers));
	if (!(override && from_override(override, &memory, &tiers)) &&
		!from_performance(topo, ranked, &tiers) && !from_kernel_tiers(topo, ranked, &tiers))
		from_cpus(topo, ranked, &tiers);
	*ret = tiers;
	return 0;
}

int lift_tiers_of(const struct lift_tiers *tiers, int node)
{
	for (unsigned i = 0; i < tiers->nr && i < LIFT_TIERS_MAX; i++)
		if (lift_nodeset_test(&tiers->tier[i], node))
			return (int)i;
	return -1;
}
