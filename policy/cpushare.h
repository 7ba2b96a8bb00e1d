/*
 * On which nodes a process has used the CPU of late: a weight for each node, halved every few
 * seconds. The caller says what was used where; time is an argument. One thread.
 */
#ifndef LIFT_POLICY_CPUSHARE_H
#define LIFT_POLICY_CPUSHARE_H

#include <stdint.h>

#include "policy/types.h"

#define LIFT_CPUSHARE_HALF_NS UINT64_C(4000000000)

/* What has to be known before there is an answer: ten ticks of the kernel's accounting. */
#define LIFT_CPUSHARE_MIN_NS UINT64_C(100000000)

/* Zeroed: nothing is known. */
struct lift_cpushare {
	unsigned nr;
	int node[LIFT_TOPO_NODES];
	uint64_t ns[LIFT_TOPO_NODES];
};

/* Adds time used on a node. More nodes than a topology describes are left out. */
void lift_cpushare_add(struct lift_cpushare *s, int node, uint64_t ns);

/* Time has passed: what was used before counts less. */
void lift_cpushare_age(struct lift_cpushare *s, uint64_t elapsed_ns);

/* The node's part of what was used, of 4096; 0 also when nothing is known. */
uint32_t lift_cpushare_of(const struct lift_cpushare *s, int node);

/* The node with at least two thirds of it, -1: there is none, or too little is known. */
int lift_cpushare_home(const struct lift_cpushare *s);

#endif
