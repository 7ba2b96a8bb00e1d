/*
 * The worker's loop over the fake machine: what the shim does with policy/promote.h, without the
 * shim.
 */
#ifndef LIFT_TESTS_FAKE_WORKER_H
#define LIFT_TESTS_FAKE_WORKER_H

#include <stdbool.h>
#include <stdint.h>

#include "policy/promote.h"
#include "policy/split.h"
#include "tests/fake/fake_memsys.h"

struct fake_worker {
	struct fake_memsys *m;
	struct fake_program *p;
	struct lift_promote promote;
	struct lift_work work;
	uint64_t fast_nodes; /* by index in m->node[] */
	uint64_t headroom_pages;
	uint64_t fast_limit_pages;
	uint64_t cpu_ns;    /* of the program, when it was asked for last */
	uint64_t rss_bytes; /* 0: what is resident */
	uint64_t steps;
	uint64_t sample_cpu;     /* the sample lasts until the program has used so much, */
	uint64_t sample_until;   /* but no longer than this */
	uint64_t woken;          /* when a sleep that is going on ends */
	struct lift_split *sums; /* set: the sampler sees sums of these regions */
	struct lift_split_region *regions; /* their memory */
	bool is_armed;                     /* all of them */
	/* Set: the index of the node from which a page is used. Before it runs. */
	unsigned (*user)(const struct fake_worker *w, uint32_t page);
	unsigned questions; /* about that */
	void *mem;
	size_t mem_bytes;
};

/* Tracks all of @m. Node 0 is fast and the others slow, unless @w is changed before it runs. */
void fake_worker_init(struct fake_worker *w, struct fake_memsys *m, struct fake_program *p,
	uint32_t gap_ns, uint32_t budget_ppm);
/*
 * From now on samples are sums of regions that find out by themselves where heat begins and ends,
 * as of the sampler refs. Before it runs.
 */
void fake_worker_sums(struct fake_worker *w);
void fake_worker_fini(struct fake_worker *w);

/* @ns of the program's life. */
void fake_worker_run(struct fake_worker *w, uint64_t ns);

/* Until @passes more passes are over, or @max_ns have passed. */
void fake_worker_passes(struct fake_worker *w, unsigned passes, uint64_t max_ns);

#endif
