/*
 * Promotion from end to end: the worker asks what to do next, does it, says what came of it, and
 * asks again. One step is one thing to do, bounded in size, so the worker can stop at any time.
 *
 *     SLEEP            wait
 *     WHERE   ranges   lift_promote_located() for each page that may be sampled and moved
 *     ARM     ranges   arm the sampler
 *     COLLECT ranges   lift_promote_sampled() for what it reports, used or idle
 *     RELEASE ranges   end the watch: no more faults from these (a sampler may pass over it)
 *     ASK     ranges   arm, let the program run until some faults are taken, collect: by threads on
 *                      which nodes? lift_promote_users()
 *     MOVE    batch    move, then lift_promote_moved()
 *
 * A SLEEP between ARM and COLLECT is the sample (lift_promote_sampling()): it is to last until the
 * program has used lift_work.cpu_ns of CPU time, if it has more than one busy thread no shorter
 * than sleep_ns by the clock, and some seconds at most if it idles. So what is found does not
 * depend on whether the program was waiting for something just then. Other sleeps may be longer.
 * Memory that goes away is told by lift_promote_forget(), at any time between steps; a fork, or
 * whatever else ends the watch, by lift_promote_restart().
 */
#ifndef LIFT_POLICY_PROMOTE_H
#define LIFT_POLICY_PROMOTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "policy/heat.h"
#include "policy/moveplan.h"
#include "policy/schedule.h"
#include "policy/threshold.h"
#include "policy/types.h"
#include "policy/users.h"
#include "policy/window.h"

enum lift_step {
	LIFT_STEP_SLEEP,
	LIFT_STEP_WHERE,
	LIFT_STEP_ARM,
	LIFT_STEP_COLLECT,
	LIFT_STEP_RELEASE,
	LIFT_STEP_ASK,
	LIFT_STEP_MOVE,
	LIFT_STEP_MAX
};

/*
 * A node as of now. Which node is at which index must not change, and new ones are added at the
 * end: pages are remembered by it. Of each tier the first with room is the target.
 */
struct lift_promote_node {
	int node;
	bool fast;
	bool usable; /* false: gone, or not allowed here; it still has its index */
	uint64_t free_pages;
	uint64_t headroom_pages; /* never to be used */
};

/* How things stand; read at each step, so it may change from one to the next. */
struct lift_promote_now {
	uint64_t now_ns;
	uint64_t cpu_ns;    /* used by the process in all, see lift_promote_asks_cpu() */
	uint64_t rss_bytes; /* resident */
	uint64_t nodes_ns;  /* when it was read what is free, which may be before now */
	unsigned nr_nodes;
	struct lift_promote_node node[LIFT_SLOTS];
	uint64_t fast_limit_pages; /* of fast memory that is tracked here; UINT64_MAX: no limit */
};

#define LIFT_WORK_RANGES 64

struct lift_work {
	uint64_t sleep_ns; /* SLEEP; ASK: at most, and so much CPU time of the program */
	uint64_t cpu_ns;   /* SLEEP that is a sample: until the program has used so much */
	unsigned nr;       /* WHERE (one chunk each), ARM, COLLECT, RELEASE, ASK */
	struct lift_range range[LIFT_WORK_RANGES];
	const struct lift_batch *batch; /* MOVE: valid until lift_promote_moved() */
	int node;                       /* MOVE: to this node */
};

/* What lift_promote.hold is for samplers that see sums. */
#define LIFT_HOLD_SAMPLES 6

struct lift_promote_stats {
	uint64_t passes;
	uint64_t changes; /* times that something was not as expected */
	uint64_t armed;   /* pages, as are the next two */
	uint64_t accessed;
	uint64_t released;
	uint64_t located;
	uint64_t pauses; /* times that moves were found not to pay */
	uint32_t slow_pages;
	uint32_t fast_pages;
	uint32_t cooling_pages;
	uint32_t stuck_pages;
	uint32_t fast_share; /* estimated share of accesses that go to fast nodes, of 4096 */
	uint32_t hot_rate;   /* the threshold, accesses per 1000 s */
	uint32_t wanted;     /* promotions that would have paid, at the last pass */
	struct lift_counts moves;
};

struct lift_promote {
	struct lift_heat heat;
	struct lift_schedule schedule;
	struct lift_calib calib;
	struct lift_rates rates;
	struct lift_window window;
	struct lift_users users;
	struct lift_moveplan plan;
	struct lift_tally tally;
	struct lift_pass pass;
	struct lift_load load;
	struct lift_price price;
	struct lift_slot slot[LIFT_SLOTS];
	unsigned nr_slots;
	bool hot[LIFT_STATES]; /* of the last cut */
	int phase;             /* enum of promote.c */
	uint32_t at;           /* chunk the phase is at */
	unsigned page_at;      /* page within it */
	uint32_t where_at;     /* chunk to be located anew next */
	uint64_t armed_at;     /* when the sample began */
	uint64_t armed_cpu;    /* CPU time of the program then */
	uint64_t used_ns;      /* CPU time that it used since, in the sample */
	uint64_t took_ns;      /* for how long it was active, but for the faults */
	uint64_t busy_ns;      /* in which it usually uses as much memory as it did */
	uint64_t faults_ns;    /* that the last sample took, */
	uint64_t faults_of;    /* of so many pages that it looked at */
	uint32_t slow_mean;    /* chance of a page on slow nodes, of 4096, by what was learned */
	uint32_t duty;         /* share of the time that it uses a CPU, of 4096 */
	uint64_t changed_at;   /* when the program last began something else */
	uint64_t judged_at;    /* when moves were last judged */
	uint64_t known_pages;  /* tracked, when that was last a reason to look at everything */
	uint64_t known_capacity;
	uint64_t rss_at;  /* resident memory when it was last looked for new pages */
	uint32_t fresh_n; /* what became of moves, gathered until it can be judged */
	uint32_t fresh_t;
	uint32_t gone_n;
	uint32_t gone_t;
	uint64_t up_p; /* what they were expected to be: sums of cuts, likewise */
	uint64_t up_n;
	uint64_t down_p;
	uint64_t down_n;
	uint64_t bounced_at; /* counters at the last judgement */
	uint64_t demoted_at;
	uint64_t spent_ns; /* of the next pass to end */
	uint32_t no_guess; /* passes at full pace in which nothing is moved in advance */
	uint64_t nodes_ns; /* what is free was read then the last time it was looked at */
	bool suspicious;   /* the last sample was not quite as expected */
	bool rewindowed;   /* samples have another length than before */
	/*
	 * Samples to go before anything is moved, unless all fits: a sampler that has to find out
	 * by itself where heat begins and ends mixes up hot and cold at first. May be set at any
	 * time, and is set again when much memory has come.
	 */
	uint32_t hold;
	uint64_t summed; /* pages used in the sample, as far as sums tell */
	bool one_sided;  /* the last pass has left pages on fast nodes out */
	/* Pages that a sampler tells one thing about: so many are one observation. At least 1. */
	uint32_t grain;
	/*
	 * Reads are not seen: what is not reported is there all the same, and nobody knows how much
	 * it is used. So fast nodes are not sampled, and nothing has to make way. Before the first
	 * step.
	 */
	bool writes_only;
	/*
	 * Threads run on several nodes, and it can be told who takes a fault: asks who uses what is
	 * to be promoted. Any time.
	 */
	bool ask_users;
	bool wonders; /* it will, in this pass */
	bool track_only; /* samples and reports, never moves */
	struct lift_promote_stats stats;
};

/* @mem as for lift_heat_init(). budget_ppm of one CPU. 0 or -EINVAL. */
int lift_promote_init(struct lift_promote *p, void *mem, size_t bytes, uint32_t chunks,
	uint32_t detailed, const struct lift_costs *costs, uint32_t budget_ppm);

/* Memory that may be sampled and moved; again and again is fine. Whole pages. */
void lift_promote_add(struct lift_promote *p, struct lift_range range);

/* Memory that is gone, or must be left alone. */
void lift_promote_forget(struct lift_promote *p, struct lift_range range);

/* Nothing is armed any more: the sample that is being taken is thrown away. What is known stays. */
void lift_promote_restart(struct lift_promote *p);

/* The next thing to do, in *work. */
enum lift_step lift_promote_step(
	struct lift_promote *p, const struct lift_promote_now *now, struct lift_work *work);

/*
 * The next step looks at how much the program has used. Within a pass it may be as of the step
 * before: a kernel goes through all threads to tell.
 */
bool lift_promote_asks_cpu(const struct lift_promote *p);

/* The sleep that was asked for last is a sample. */
bool lift_promote_sampling(const struct lift_promote *p);

/* Page at @addr is on @node, or -errno of memsys' where(). Ignored if its chunk is not known. */
void lift_promote_located(struct lift_promote *p, uintptr_t addr, int node);

/*
 * The chunk at @addr is (not) one huge page; @home: node of the program's threads, -1: several.
 * Before its pages are located.
 */
void lift_promote_describe(struct lift_promote *p, uintptr_t addr, bool huge, int home);

/* After COLLECT: @range is resident; accessed or not. */
void lift_promote_sampled(struct lift_promote *p, struct lift_range range, bool accessed);

/*
 * Likewise of samplers that see sums: of @resident_bytes of @range so many were accessed, and which
 * ones is not known.
 */
void lift_promote_summed(struct lift_promote *p, struct lift_range range, uint64_t accessed_bytes,
	uint64_t resident_bytes);

/*
 * After COLLECT, of samplers that see some accesses without one: how many first accesses of this
 * sample were a fault.
 */
void lift_promote_faulted(struct lift_promote *p, uint64_t nr);

/*
 * After ASK: faults by threads on the node of each slot, @all with those of threads elsewhere, and
 * how many units (pages, huge pages) of the ranges were used. Returns the node that it is concluded
 * they are used from, or -1.
 */
int lift_promote_users(
	struct lift_promote *p, const uint32_t *faults, uint32_t all, uint32_t used);

/* CPU time that the caller has used for all this, but for moves, since it last said so. */
void lift_promote_spent(struct lift_promote *p, uint64_t ns);

/* After MOVE: as of memsys' move(). */
void lift_promote_moved(struct lift_promote *p, int rc, const int *status);

#endif
