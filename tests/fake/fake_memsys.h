/*
 * A machine of RAM and arithmetic: nodes with room and latency, pages on them, a clock, a sampler
 * that sees exactly the pages accessed, programs that access them, and faults on demand. Everything
 * is deterministic; time passes only where it is told to.
 */
#ifndef LIFT_TESTS_FAKE_MEMSYS_H
#define LIFT_TESTS_FAKE_MEMSYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "policy/memsys.h"
#include "policy/types.h"

#define FAKE_NODES 8
#define FAKE_PAGE 4096u
#define FAKE_ABSENT (-1)

/* Unit costs in nanoseconds. */
struct fake_costs {
	uint32_t arm;
	uint32_t release;
	uint32_t scan;
	uint32_t fault;
	uint32_t move;
	uint32_t own; /* of the program, for each access, without the latency */
};

struct fake_node {
	int id;
	bool gone;
	uint64_t pages; /* capacity */
	uint64_t used;
	uint32_t latency_ns;
};

struct fake_page {
	int8_t node; /* index of the node, FAKE_ABSENT */
	bool armed;
	bool accessed;
	int16_t error;   /* moves say this, ... */
	uint16_t errors; /* ... so many times; UINT16_MAX: always */
};

struct fake_memsys {
	struct lift_memsys sys;
	struct fake_costs costs;
	unsigned nr_nodes;
	struct fake_node node[FAKE_NODES];
	uintptr_t base;
	uint32_t nr_pages;
	struct fake_page *page;
	uint64_t now_ns;
	uint64_t cpu_ns; /* used by the program */

	/* The n-th call of move from now (1: the next) fails with this after half of its pages. */
	unsigned fail_move;
	int fail_rc;

	/* So many pages of the node are taken by somebody else after each move to it. */
	uint64_t others_take;

	/* Sums since the start. */
	uint64_t accesses[FAKE_NODES];
	uint64_t armed;
	uint64_t faults;
	uint64_t released;
	uint64_t scanned;
	uint64_t moves; /* pages that changed their node */
	uint64_t move_calls;
	uint64_t places;
	uint64_t cost_ns;
};

/* @nr_pages pages from @base on, all absent. */
void fake_memsys_init(struct fake_memsys *m, uintptr_t base, uint32_t nr_pages);
void fake_memsys_fini(struct fake_memsys *m);

/* Adds a node. */
void fake_memsys_node(struct fake_memsys *m, int id, uint64_t pages, uint32_t latency_ns);

/* First touch, in order, of pages [from, to): each goes to the first node with room. */
void fake_memsys_touch(struct fake_memsys *m, uint32_t from, uint32_t to);

/* They are not there any more. */
void fake_memsys_discard(struct fake_memsys *m, uint32_t from, uint32_t to);

/* The next @times moves of page @i say @error. */
void fake_memsys_refuse(struct fake_memsys *m, uint32_t i, int error, uint16_t times);

/* One access. */
static inline void fake_memsys_access(struct fake_memsys *m, uint32_t i)
{
	struct fake_page *p = &m->page[i];

	if (p->node == FAKE_ABSENT)
		return;
	m->accesses[p->node]++;
	if (p->armed) {
		p->armed = false;
		p->accessed = true;
		m->faults++;
		m->cost_ns += m->costs.fault;
		m->cpu_ns += m->costs.fault;
	}
}

/* The sampler. Pages that were not armed look accessed, as with the real one. */
void fake_sampler_arm(struct fake_memsys *m, struct lift_range r);
void fake_sampler_release(struct fake_memsys *m, struct lift_range r);
typedef void fake_sample_fn(void *arg, struct lift_range r, bool accessed);
void fake_sampler_collect(
	struct fake_memsys *m, struct lift_range r, fake_sample_fn *fn, void *arg);

/* Bytes of @r that are there, and of these accessed. */
uint64_t fake_sampler_sum(struct fake_memsys *m, struct lift_range r, uint64_t *ret_accessed);

/* A small generator of its own, so that runs are the same everywhere. */
struct fake_random {
	uint64_t s;
};

void fake_random_seed(struct fake_random *r, uint64_t seed);
uint64_t fake_random_next(struct fake_random *r);

static inline uint32_t fake_random_below(struct fake_random *r, uint32_t n)
{
	return (uint32_t)((fake_random_next(r) >> 32) * n >> 32);
}

/* How a program accesses its pages. */
struct fake_program {
	struct fake_random random;
	uint32_t nr_pages;
	uint32_t rate; /* accesses per second */
	uint32_t run;  /* pages that are chosen together */
	uint32_t walk; /* pages walked through from the one chosen, within its run; 0: that one only
			*/
	uint32_t dwell; /* accesses to a page in a row, at least 1 */
	uint32_t again; /* of these still to come, ... */
	uint32_t page;  /* ... to this page */
	uint32_t at;    /* where the walk is */
	uint32_t left;  /* of it */
	uint32_t nr_runs;
	double *weight;  /* of each run */
	uint32_t *alias; /* Walker's tables over the runs */
	uint32_t *cut;
	double credit;      /* fractions of an access that are due */
	uint64_t period_ns; /* at the beginning of each of these ... */
	uint64_t busy_ns;   /* ... it is active for so long; 0: always */
	bool computes;      /* and uses the CPU for the rest of it */
};

void fake_program_init(
	struct fake_program *p, uint32_t nr_pages, uint32_t run, uint32_t rate, uint64_t seed);
void fake_program_fini(struct fake_program *p);

/* All the same. */
void fake_program_uniform(struct fake_program *p);
/* Zipf with exponent @s over all runs, in random order. */
void fake_program_zipf(struct fake_program *p, double s);
/*
 * @hot_runs runs, scattered, get @share of the accesses, by zipf with exponent @s; the rest is
 * uniform. Again: another set.
 */
void fake_program_hot(struct fake_program *p, uint32_t hot_runs, double share, double s);

uint32_t fake_program_next(struct fake_program *p);

/* The largest share of accesses that @pages pages can get, when nothing moves. */
double fake_program_best(const struct fake_program *p, uint32_t pages);

/* Lets @ns pass, with the program running. */
void fake_run(struct fake_memsys *m, struct fake_program *p, uint64_t ns);

#endif
