#include "policy/topology.h"

#include <errno.h>

const char *lift_fact_source_name(enum lift_fact_source source)
{
	switch (source) {
	case LIFT_FACT_NONE:
		return "none";
	case LIFT_FACT_SYSFS:
		return "sysfs";
	case LIFT_FACT_HMAT:
		return "hmat";
	case LIFT_FACT_KERNEL_TIER:
		return "kernel-tier";
	case LIFT_FACT_DISTANCE:
		return "distance";
	case LIFT_FACT_OVERRIDE:
		return "override";
	case LIFT_FACT_MAX:
		break;
	}
	return "?";
}

void lift_topology_init(struct lift_topology *topo)
{
	memset(topo, 0, sizeof(*topo));
}

int lift_topology_add(struct lift_topology *topo, int id)
{
	struct lift_topo_node *node;

	if (id < 0 || id >= LIFT_MAX_NODES)
		return -ERANGE;
	if (lift_topology_find(topo, id) >= 0)
		return -EEXIST;
	if (topo->nr >= LIFT_TOPO_NODES)
		return -ENOSPC;
	node = &topo->node[topo->nr];
	memset(node, 0, sizeof(*node));
	node->id = id;
	node->kernel_tier = -1;
	return (int)topo->nr++;
}

int lift_topology_find(const struct lift_topology *topo, int id)
{
	for (unsigned i = 0; i < topo->nr && i < LIFT_TOPO_NODES; i++)
		if (topo->node[i].id == id)
			return (int)i;
	return -1;
}

unsigned lift_topology_distance(const struct lift_topology *topo, int id_from, int id_to)
{
	int from = lift_topology_find(topo, id_from);
	int to = lift_topology_find(topo, id_to);

	if (from < 0 || to < 0 || topo->distance[from][to] == 0)
		return LIFT_DISTANCE_UNKNOWN;
	return topo->distance[from][to];
}

int lift_topology_nearest(
	const struct lift_topology *topo, int from_id, const struct lift_nodeset *candidates)
{
	unsigned best_distance = 0;
	int best = -1;

	/* Ascending ids, so that a strict comparison keeps the lowest among equals. */
	lift_nodeset_foreach (id, candidates) {
		unsigned distance;

		if (lift_topology_find(topo, id) < 0)
			continue;
		if (id == from_id)
			return id;
		distance = lift_topology_distance(topo, from_id, id);
		if (best < 0 || distance < best_distance) {
			best = id;
			best_distance = distance;
		}
	}
	return best;
}

uint32_t lift_topology_gap_ns(const struct lift_topology *topo, int id_slow, int id_fast)
{
	/* A distance of 10 is a local access, of some 90 ns; 20 takes twice as long. */
	enum { LOCAL = 10, NS_PER_10 = 90, GUESS = 100, MIN = 20, MAX = 30000 };
	int slow = lift_topology_find(topo, id_slow);
	int fast = lift_topology_find(topo, id_fast);
	uint32_t from;
	uint32_t to;

	if (slow < 0 || fast < 0)
		return GUESS;
	from = topo->node[fast].read_latency_ns;
	to = topo->node[slow].read_latency_ns;
	/* With only one of them, or the wrong way round, they are not to be trusted. */
	if (from == 0 || to <= from) {
		unsigned d = topo->distance[fast][slow];

		if (d == 0)
			return GUESS;
		from = 0;
		to = d > LOCAL ? (d - LOCAL) * NS_PER_10 / 10 : 0;
	}
	to -= from;
	return to < MIN ? MIN : to > MAX ? MAX : to;
}

void lift_topology_memory_nodes(const struct lift_topology *topo, struct lift_nodeset *ret)
{
	lift_nodeset_zero(ret);
	for (unsigned i = 0; i < topo->nr && i < LIFT_TOPO_NODES; i++)
		if (topo->node[i].has_memory)
			lift_nodeset_set(ret, topo->node[i].id);
}
