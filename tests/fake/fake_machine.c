#include "tests/fake/fake_machine.h"

#include <string.h>

#include "policy/procparse.h"

#define LOCAL_DISTANCE 10
#define REMOTE_DISTANCE 20

void fake_machine_init(struct fake_machine *m)
{
	memset(m, 0, sizeof(*m));
	lift_topology_init(&m->topo);
}

struct lift_topo_node *fake_machine_add(struct fake_machine *m, int id, bool cpu, uint64_t bytes)
{
	int at = lift_topology_add(&m->topo, id);
	struct lift_topo_node *node;

	if (at < 0)
		__builtin_trap();
	node = &m->topo.node[at];
	node->has_cpu = cpu;
	node->has_memory = bytes > 0;
	node->total_bytes = bytes;
	node->free_bytes = bytes;
	for (int i = 0; i <= at; i++) {
		m->topo.distance[i][at] = i == at ? LOCAL_DISTANCE : REMOTE_DISTANCE;
		m->topo.distance[at][i] = m->topo.distance[i][at];
	}
	return node;
}

void fake_machine_distance(struct fake_machine *m, int a, int b, uint8_t distance)
{
	int i = lift_topology_find(&m->topo, a);
	int j = lift_topology_find(&m->topo, b);

	if (i < 0 || j < 0)
		__builtin_trap();
	m->topo.distance[i][j] = distance;
	m->topo.distance[j][i] = distance;
}

void fake_machine_speed(struct fake_machine *m, int id, uint32_t latency_ns, uint32_t mbs)
{
	int i = lift_topology_find(&m->topo, id);

	if (i < 0)
		__builtin_trap();
	m->topo.node[i].read_latency_ns = latency_ns;
	m->topo.node[i].read_bandwidth_mbs = mbs;
	m->topo.node[i].perf_source = LIFT_FACT_HMAT;
}

void fake_machine_done(struct fake_machine *m)
{
	if (lift_tiers_build(&m->topo, NULL, &m->tiers) < 0)
		__builtin_trap();
	m->view.topo = &m->topo;
	m->view.tiers = &m->tiers;
	for (unsigned i = 0; i < m->topo.nr; i++)
		lift_nodeset_set(&m->view.allowed, m->topo.node[i].id);
	m->view.has_preferred_many = true;
	m->view.has_weighted_interleave = true;
	m->view.balancing_flag_preferred_many = true;
	m->view.balancing_flag_bind = true;
}

struct lift_nodeset fake_nodes(const char *list)
{
	struct lift_nodeset set;

	if (lift_parse_nodelist(list, strlen(list), &set) < 0)
		__builtin_trap();
	return set;
}

void fake_machine_one(struct fake_machine *m)
{
	fake_machine_init(m);
	fake_machine_add(m, 0, true, LIFT_GIB);
	fake_machine_done(m);
}

void fake_machine_flat_two(struct fake_machine *m)
{
	fake_machine_init(m);
	fake_machine_add(m, 0, true, LIFT_GIB);
	fake_machine_add(m, 1, true, LIFT_GIB);
	fake_machine_done(m);
}

void fake_machine_two_one_slow(struct fake_machine *m)
{
	fake_machine_init(m);
	fake_machine_add(m, 0, true, LIFT_GIB);
	fake_machine_add(m, 1, false, 2 * LIFT_GIB);
	fake_machine_done(m);
}

void fake_machine_three(struct fake_machine *m)
{
	fake_machine_init(m);
	fake_machine_add(m, 0, true, LIFT_GIB);
	fake_machine_add(m, 1, true, LIFT_GIB);
	fake_machine_add(m, 2, false, 4 * LIFT_GIB);
	fake_machine_speed(m, 0, 80, 100000);
	fake_machine_speed(m, 1, 80, 100000);
	fake_machine_speed(m, 2, 250, 30000);
	fake_machine_distance(m, 0, 2, 30);
	fake_machine_distance(m, 1, 2, 30);
	fake_machine_done(m);
}

void fake_machine_holes(struct fake_machine *m)
{
	fake_machine_init(m);
	fake_machine_add(m, 1023, false, 4 * LIFT_GIB);
	fake_machine_add(m, 0, true, LIFT_GIB);
	fake_machine_add(m, 4, true, LIFT_GIB);
	fake_machine_done(m);
}

void fake_machine_memoryless(struct fake_machine *m)
{
	fake_machine_init(m);
	fake_machine_add(m, 0, true, LIFT_GIB);
	fake_machine_add(m, 1, true, 0);
	fake_machine_add(m, 2, true, LIFT_GIB);
	fake_machine_distance(m, 1, 2, 12);
	fake_machine_done(m);
}

void fake_machine_eight(struct fake_machine *m)
{
	fake_machine_init(m);
	for (int i = 0; i < 4; i++)
		fake_machine_add(m, i, true, 2 * LIFT_GIB);
	for (int i = 4; i < 8; i++) {
		fake_machine_add(m, i, false, 8 * LIFT_GIB);
		fake_machine_distance(m, i - 4, i, 17);
	}
	fake_machine_done(m);
}
