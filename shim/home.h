// SPDX-License-Identifier: MIT
/*
 * On which nodes the threads of this process run: what CPU time each has used since the last look
 * goes to the node of the CPU it is on now. The worker only, which is not counted itself.
 *
 * A look reads a few hundred bytes for each thread, for 256 of them at most; the others have their
 * turn at the next look. errno is left alone, nothing is allocated.
 */
#ifndef NUMALIFT_SHIM_HOME_H
#define NUMALIFT_SHIM_HOME_H

#include <stdbool.h>
#include <stdint.h>

#include "policy/cpushare.h"

#define LIFT_HOME_CPUS 4096
#define LIFT_HOME_THREADS 1024 /* remembered */
#define LIFT_HOME_LOOK 256     /* looked at in one update */

struct lift_home_thread {
	int tid; /* 0: none */
	uint32_t ticks;
	uint32_t faults; /* as lift_home_faults() found it last */
	bool counted;    /* it has */
	uint32_t seen;   /* the update it was last looked at in */
};

/* Some 28 KiB. Zeroed: nothing is known; so it has to be in the child of a fork. */
struct lift_home {
	struct lift_cpushare share;
	uint64_t updated_ns;
	uint32_t updates;
	uint64_t pos;                    /* where in the list of threads the next look begins */
	uint64_t began_ns;               /* when one last began at the beginning of it */
	uint64_t round_ns;               /* how long the list took the last time; 0: not known */
	int16_t node_of[LIFT_HOME_CPUS]; /* node + 1; 0: not known */
	struct lift_home_thread thread[LIFT_HOME_THREADS];
};

/*
 * 0 or -errno: /proc cannot be read. Any time, some seconds apart are right: the kernel counts in
 * ticks of 10 ms.
 */
int lift_home_update(struct lift_home *h);

/* The node of at least two thirds of the CPU time of late, or -1. */
int lift_home_node(const struct lift_home *h);

/*
 * Page faults that threads have taken since the last call, by the node of the CPU each is on now,
 * -1 where that is not known; not those of a thread that was not there then. fn may be NULL: from
 * here on. 0; -E2BIG: there are more threads than are worth looking at, and some were left out;
 * -errno.
 */
typedef void lift_home_faults_fn(void *arg, int node, uint64_t faults);
int lift_home_faults(struct lift_home *h, lift_home_faults_fn *fn, void *arg);

/* The node's part of the CPU time of late, of 4096. */
uint32_t lift_home_share(const struct lift_home *h, int node);

#endif
