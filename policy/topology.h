/*
 * The machine as policy sees it: nodes, what they can hold, how fast they are, how far apart they
 * are. Plain data, filled by the shim (sysfs, hwloc) or by a test; nothing here reads anything.
 * A topology is written by one thread and then only read; a change is a new topology.
 */
#ifndef LIFT_POLICY_TOPOLOGY_H
#define LIFT_POLICY_TOPOLOGY_H

#include <stdbool.h>
#include <stdint.h>

#include "policy/types.h"

/* Where a fact was learnt, or what a ranking was made from; in no order of trust. */
enum lift_fact_source {
	LIFT_FACT_NONE,        /* not known */
	LIFT_FACT_SYSFS,       /* /sys/devices/system/node: which nodes have CPUs */
	LIFT_FACT_HMAT,        /* latency and bandwidth: nodeN/access0, hwloc memory attributes */
	LIFT_FACT_KERNEL_TIER, /* /sys/devices/virtual/memory_tiering */
	LIFT_FACT_DISTANCE,    /* SLIT: nodeN/distance */
	LIFT_FACT_OVERRIDE,    /* said by the user */
	LIFT_FACT_MAX
};

/* A word for people; "?" outside the enum. Never NULL. */
const char *lift_fact_source_name(enum lift_fact_source source);

struct lift_topo_node {
	int id; /* the kernel's node number */
	bool has_cpu;
	bool has_memory;
	uint64_t total_bytes;
	uint64_t free_bytes;               /* as of the last reading */
	uint32_t read_latency_ns;          /* from its best initiator; 0: not known */
	uint32_t read_bandwidth_mbs;       /* likewise, MB/s */
	int kernel_tier;                   /* N of memory_tierN, small is fast; -1: unknown */
	uint32_t weight;                   /* kernel's weighted-interleave weight; 0: not known */
	enum lift_fact_source perf_source; /* of latency and bandwidth */
	enum lift_fact_source tier_source; /* of kernel_tier */
};

struct lift_topology {
	unsigned nr;                                        /* used entries of node[] */
	struct lift_topo_node node[LIFT_TOPO_NODES];        /* in any order, ids distinct */
	uint8_t distance[LIFT_TOPO_NODES][LIFT_TOPO_NODES]; /* [from][to], dense; 0: not known */
};

/* What lift_topology_distance() says of a pair it does not know: farther than any real one. */
#define LIFT_DISTANCE_UNKNOWN 256

/* An empty topology, to which the shim adds nodes. */
void lift_topology_init(struct lift_topology *topo);

/*
 * Adds a node with nothing known but its id, and returns its dense index. -ERANGE: no such id can
 * exist; -EEXIST: it is there already; -ENOSPC: LIFT_TOPO_NODES are described already.
 */
int lift_topology_add(struct lift_topology *topo, int id);

/* Dense index of node @id, -1 when the topology has none. */
int lift_topology_find(const struct lift_topology *topo, int id);

/* Distance between two nodes by id: 10 is local; LIFT_DISTANCE_UNKNOWN when not known. */
unsigned lift_topology_distance(const struct lift_topology *topo, int id_from, int id_to);

/*
 * The member of @candidates, among the nodes described, that is nearest to node @from_id: itself
 * if it is a candidate, the lowest id among equals, the lowest described one when @from_id is not
 * known (so -1 is allowed). -1 when no candidate is described.
 */
int lift_topology_nearest(
	const struct lift_topology *topo, int from_id, const struct lift_nodeset *candidates);

/*
 * What a read of memory on node @id_slow takes longer than one on node @id_fast, in nanoseconds,
 * for CPUs that are near the latter: from latencies, else from the distance, else a guess. Between
 * 20 and 2000, whatever the firmware says.
 */
uint32_t lift_topology_gap_ns(const struct lift_topology *topo, int id_slow, int id_fast);

/* Ids of all described nodes that have memory. */
void lift_topology_memory_nodes(const struct lift_topology *topo, struct lift_nodeset *ret);

#endif
