/*
 * When to sample, how long, and how much, so that it costs little: a passing look at a fraction of
 * the memory while nothing changes, all of it when something does.
 *
 * There are two accounts. All work is paid from a budget, a share of one CPU (3 %) that is saved up
 * for some seconds, so that a change is followed at full speed. Once settled, passes are as
 * far apart as it takes to keep them within a share of the CPU time that the program itself uses: a
 * program that idles is not sampled. Figures of what things cost are measured and handed in.
 *
 * The length of a sample follows from what is to be told apart: as many pages should be found
 * accessed as the fast nodes can hold. Longer, and everything looks hot; shorter, and nothing does.
 */
#ifndef LIFT_POLICY_SCHEDULE_H
#define LIFT_POLICY_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

#include "policy/types.h"

#define LIFT_NS_PER_S UINT64_C(1000000000)

/* Per page, in nanoseconds. */
struct lift_costs {
	uint32_t arm_ns;
	uint32_t release_ns; /* end the watch of a page that was not accessed */
	uint32_t scan_ns;
	uint32_t fault_ns; /* taken by the program, at the first access to an armed page */
	uint32_t promote_ns;
	uint32_t demote_ns;
	uint32_t gap_ns; /* what an access to slow memory takes longer */
	/*
	 * Of samplers that look at the whole process whatever they are asked for: for each page
	 * there is, in each pass. 0: it is what is armed that counts.
	 */
	uint32_t whole_ns;
};

enum lift_pace {
	LIFT_PACE_WAIT,    /* the program is too small or too young */
	LIFT_PACE_FULL,    /* something changes: everything, as often as there is budget for it */
	LIFT_PACE_SETTLED, /* a rotating fraction, rarely */
	LIFT_PACE_MAX
};

/* How the pages stand, for predictions of cost. */
struct lift_load {
	uint64_t slow_pages;
	uint64_t fast_pages;
	uint64_t capacity; /* pages that fast nodes can hold */
	uint32_t slow_p;   /* chance of a page to be found accessed, of 4096 */
	uint32_t fast_p;
	bool fits;      /* fast nodes have room for all that is on slow ones */
	bool slow_only; /* pages on fast nodes are not sampled */
};

/* What a pass was, for lift_schedule_end(). */
struct lift_pass {
	uint64_t armed;
	uint64_t accessed;
	uint64_t released;
	uint64_t promoted;
	uint64_t demoted;
	uint64_t est_accessed; /* of all pages, sampled or not */
	uint64_t wanted;       /* pages that would pay if there were room for them */
	uint64_t paying;       /* promotions that pay as things stand */
	uint64_t spent_ns;     /* CPU time of all but faults and moves; 0: not measured */
	uint64_t faults;       /* taken by the program, if known */
	bool faults_known;
	bool active;    /* the program used a part of what was looked at */
	bool searching; /* it is not known yet what is hot: not to be rare */
	bool blurred;   /* set by lift_schedule_end(): so long a sample that all looks used */
	bool surprised; /* the samples were not what was expected */
	bool doubtful;  /* they may not have been: the next ones are to tell soon */
};

struct lift_schedule {
	struct lift_costs costs;
	uint32_t budget_ppm; /* of one CPU */
	enum lift_pace pace;
	uint64_t last_now;
	uint64_t last_cpu;
	uint64_t pass_cpu;   /* used when the last pass began */
	uint64_t next_now;   /* when the next pass is due */
	uint32_t use_ppm;    /* of one CPU that the program has used lately */
	uint64_t period_ns;  /* from one to the next */
	uint64_t window_ns;  /* from arming to collecting */
	int64_t bank_ns;     /* CPU time saved up; negative: owed */
	int64_t calm_ns;     /* likewise of the settled account */
	uint32_t pass;       /* passes begun */
	uint32_t settled;    /* passes in a row without change, but for those that could show none */
	uint64_t usual;      /* pages that a sample finds used, of all, sampled or not */
	uint32_t full;       /* passes in a row at full pace */
	unsigned slow_shift; /* 1 of 2^shift of the slow pages is sampled in this pass */
	unsigned fast_shift;
	/* What was spent for what the costs foretell, by pace, of 256: small pieces take longer. 0:
	 * not known. */
	uint32_t dear[LIFT_PACE_MAX];
	bool look_again;   /* the next pass is to tell whether something has changed */
	bool want_victims; /* the next pass has to find cold pages on fast nodes */
	uint64_t spent_ns; /* in all */
	uint64_t fault_ns; /* the part that the program took, in all */
};

#define LIFT_START_CPU_NS LIFT_NS_PER_S
#define LIFT_START_RSS_BYTES (128 * LIFT_MIB)
#define LIFT_PERIOD_MIN_NS (LIFT_NS_PER_S / 4)
#define LIFT_PERIOD_FULL_NS LIFT_NS_PER_S       /* later, when the budget has not enough for all */
#define LIFT_PERIOD_MAX_NS (60 * LIFT_NS_PER_S) /* for want of CPU time */
#define LIFT_PERIOD_CALM_NS (8 * LIFT_NS_PER_S) /* by backoff: a change is to be seen soon */

void lift_schedule_init(
	struct lift_schedule *s, const struct lift_costs *costs, uint32_t budget_ppm);

/*
 * True: begin a pass now; slow_shift, fast_shift and window_ns say how. False: look again after
 * *ret_sleep_ns. @cpu_ns is what the process has used in all.
 */
bool lift_schedule_begin(struct lift_schedule *s, uint64_t now, uint64_t cpu_ns, uint64_t rss_bytes,
	const struct lift_load *load, uint64_t *ret_sleep_ns);

/* The pass is over: pays for it and decides on the next. */
void lift_schedule_end(struct lift_schedule *s, uint64_t now, struct lift_pass *pass,
	const struct lift_load *load);

/* What a pass has cost, with the faults that the program took. */
uint64_t lift_schedule_cost(const struct lift_schedule *s, const struct lift_pass *pass);

/*
 * CPU time that the program spent on faults in a pass: each page that was accessed took one, unless
 * the sampler sees some accesses without. That cannot be more than it used in all, and if it would
 * be, a fault costs less than was thought.
 */
uint64_t lift_schedule_faults(
	struct lift_schedule *s, const struct lift_pass *pass, uint64_t used_ns);

/*
 * Whether to end the watch of pages that were not accessed, when their chance to be accessed in a
 * sample is @p (of 4096): it costs something for each, left alone it costs faults until the next
 * pass.
 */
bool lift_schedule_release(const struct lift_schedule *s, uint32_t p);

/* Trades that the budget has room for: a backstop, of no concern while there is free memory. */
uint32_t lift_schedule_moves(const struct lift_schedule *s);

/* Something is known to have changed (new memory, another cpuset): full pace. */
void lift_schedule_kick(struct lift_schedule *s);

/*
 * Parts of a chunk that this pass looks at, one bit each, when 1 of 2^shift is to be sampled:
 * over 2^shift passes each part of each chunk once.
 */
uint16_t lift_schedule_parts(uint32_t pass, uint32_t chunk, unsigned shift);

#endif
