#include <errno.h>

#include <criterion/criterion.h>

#include "tests/fake/fake_machine.h"

Test(topology, add_refuses_what_cannot_be)
{
	struct lift_topology topo;

	lift_topology_init(&topo);
	cr_assert_eq(lift_topology_add(&topo, -1), -ERANGE);
	cr_assert_eq(lift_topology_add(&topo, LIFT_MAX_NODES), -ERANGE);
	for (int i = 0; i < LIFT_TOPO_NODES; i++)
		cr_assert_eq(lift_topology_add(&topo, i * 16), i);
	cr_assert_eq(lift_topology_add(&topo, 16), -EEXIST);
	cr_assert_eq(lift_topology_add(&topo, 1), -ENOSPC);
	cr_assert_eq(topo.nr, LIFT_TOPO_NODES);
	cr_assert_eq(topo.node[3].kernel_tier, -1);
}

Test(topology, find_and_distance_by_id)
{
	static struct fake_machine m;

	fake_machine_holes(&m);
	cr_expect_eq(lift_topology_find(&m.topo, 1023), 0);
	cr_expect_eq(lift_topology_find(&m.topo, 4), 2);
	cr_expect_eq(lift_topology_find(&m.topo, 1), -1);
	cr_expect_eq(lift_topology_find(&m.topo, -1), -1);
	cr_expect_eq(lift_topology_distance(&m.topo, 4, 4), 10);
	cr_expect_eq(lift_topology_distance(&m.topo, 0, 1023), 20);
	cr_expect_eq(lift_topology_distance(&m.topo, 0, 1), LIFT_DISTANCE_UNKNOWN);
	cr_expect_eq(lift_topology_distance(&m.topo, 1, 0), LIFT_DISTANCE_UNKNOWN);
	m.topo.distance[1][2] = 0;
	cr_expect_eq(lift_topology_distance(&m.topo, 0, 4), LIFT_DISTANCE_UNKNOWN);
}

Test(topology, nearest)
{
	static struct fake_machine m;
	static const struct {
		int from;
		const char *candidates;
		int nearest;
	} rows[] = {
		{0, "0-7", 0},
		{2, "0-7", 2},
		{2, "4-7", 6},
		{0, "1-3", 1},
		{3, "0,1,7", 7},
		{-1, "3,5", 3},
		{99, "5-6", 5},
		{0, "9,100", -1},
		{0, "", -1},
		{0, "6,900", 6},
		{9, "9", -1},
		{3, "0-2", 0},
	};

	fake_machine_eight(&m);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct lift_nodeset set = fake_nodes(rows[i].candidates);

		cr_expect_eq(lift_topology_nearest(&m.topo, rows[i].from, &set), rows[i].nearest,
			"row %zu", i);
	}
}

Test(topology, gap)
{
	static const struct {
		uint32_t slow_ns;
		uint32_t fast_ns;
		uint8_t distance;
		uint32_t gap;
	} rows[] = {
		{300, 80, 31, 220},
		{300, 80, 0, 220},
		{81, 80, 31, 20},
		{90000, 80, 31, 30000},
		{300, 0, 31, 189},
		{0, 80, 21, 99},
		{80, 80, 20, 90},
		{70, 80, 17, 63},
		{0, 0, 10, 20},
		{0, 0, 11, 20},
		{0, 0, 255, 2205},
		{0, 0, 0, 100},
	};
	static struct lift_topology topo;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		lift_topology_init(&topo);
		cr_assert_eq(lift_topology_add(&topo, 4), 0);
		cr_assert_eq(lift_topology_add(&topo, 2), 1);
		topo.node[0].read_latency_ns = rows[i].slow_ns;
		topo.node[1].read_latency_ns = rows[i].fast_ns;
		topo.distance[1][0] = rows[i].distance;
		topo.distance[0][1] = 77; /* the other way is another thing */
		cr_expect_eq(lift_topology_gap_ns(&topo, 4, 2), rows[i].gap, "row %zu: %u", i,
			lift_topology_gap_ns(&topo, 4, 2));
	}
	cr_expect_eq(lift_topology_gap_ns(&topo, 4, 3), 100);
	cr_expect_eq(lift_topology_gap_ns(&topo, -1, 2), 100);
}

Test(topology, memory_nodes)
{
	static struct fake_machine m;
	struct lift_nodeset want = fake_nodes("0,2");
	struct lift_nodeset got;

	fake_machine_memoryless(&m);
	lift_topology_memory_nodes(&m.topo, &got);
	cr_assert(lift_nodeset_equal(&got, &want));
}

Test(topology, source_names_are_distinct)
{
	for (int i = 0; i < LIFT_FACT_MAX; i++)
		for (int j = 0; j < i; j++)
			cr_expect_str_neq(lift_fact_source_name((enum lift_fact_source)i),
				lift_fact_source_name((enum lift_fact_source)j));
	cr_expect_str_eq(lift_fact_source_name(LIFT_FACT_MAX), "?");
	cr_expect_str_eq(lift_fact_source_name((enum lift_fact_source)50), "?");
}
