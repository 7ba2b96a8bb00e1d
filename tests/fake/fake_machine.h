/*
 * Machines that a test can describe in a few lines, or take ready made. Everything is plain data in
 * the struct; what a test needs to be different it changes before fake_machine_done().
 */
#ifndef LIFT_TESTS_FAKE_MACHINE_H
#define LIFT_TESTS_FAKE_MACHINE_H

#include <stdbool.h>
#include <stdint.h>

#include "policy/placement.h"
#include "policy/tiers.h"
#include "policy/topology.h"

struct fake_machine {
	struct lift_topology topo;
	struct lift_tiers tiers;
	struct lift_machine_view view; /* every feature, no balancing, all nodes allowed */
};

/* An empty machine; distances are 10 to oneself and 20 to others unless set. */
void fake_machine_init(struct fake_machine *m);

/* Adds a node; bytes 0: no memory. Returns it, for more facts. */
struct lift_topo_node *fake_machine_add(struct fake_machine *m, int id, bool cpu, uint64_t bytes);

/* Both ways. */
void fake_machine_distance(struct fake_machine *m, int a, int b, uint8_t distance);

/* Latency and bandwidth of a node, as an HMAT would say. */
void fake_machine_speed(struct fake_machine *m, int id, uint32_t latency_ns, uint32_t mbs);

/* Ranks the tiers and points the view at everything. The machine must not be moved afterwards. */
void fake_machine_done(struct fake_machine *m);

/* Nodes of a list like "0-1,3"; the test's mistake if it is none. */
struct lift_nodeset fake_nodes(const char *list);

/* Ready made, done: */
void fake_machine_one(struct fake_machine *m);          /* node 0 */
void fake_machine_flat_two(struct fake_machine *m);     /* 0 and 1, 1 GiB each */
void fake_machine_two_one_slow(struct fake_machine *m); /* 0 with CPUs, 1 without */
void fake_machine_three(struct fake_machine *m);        /* 0, 1 with CPUs, 2 slow without, HMAT */
void fake_machine_holes(struct fake_machine *m);        /* 0, 4 with CPUs, 1023 slow */
void fake_machine_memoryless(struct fake_machine *m);   /* 0, 2 with both, 1 with CPUs only */
void fake_machine_eight(struct fake_machine *m);        /* 0-3 with CPUs, 4-7 slow, near one each */

#endif
