/*
 * What is to be told of promotion: the figures of one moment, and the file in which the library
 * leaves them for `numalift stat` (the page). One table names every figure; the command's output,
 * its JSON and the page are made from it. Where the meaning is the kernel's, so is the name.
 *
 * A new figure is a row in the table and nothing else: figures are found in the page by name, so
 * older and newer versions read what they know. LIFT_STATS_VERSION is for changes beyond that.
 *
 * No pointers are kept, nothing is thread-safe by itself.
 */
#ifndef LIFT_POLICY_STATS_H
#define LIFT_POLICY_STATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "policy/heat.h" /* LIFT_SLOTS */

enum lift_stats_state {
	LIFT_STATS_WAITING, /* the program is too small or too young */
	LIFT_STATS_TRACKING,
	LIFT_STATS_PROMOTING,
	LIFT_STATS_SETTLED, /* everything is in its place, or moves did not pay */
	LIFT_STATS_OFF,
	LIFT_STATS_STATE_MAX
};

enum lift_stats_mode { LIFT_STATS_MODE_ON, LIFT_STATS_MODE_TRACK, LIFT_STATS_MODE_MAX };

enum lift_stats_kind {
	LIFT_STATS_GAUGE,  /* as of now */
	LIFT_STATS_COUNTER /* in all, since the start; of the machine for kernel_* */
};

enum lift_stats_unit {
	LIFT_STATS_UNIT_STATE, /* enum lift_stats_state */
	LIFT_STATS_UNIT_MODE,  /* enum lift_stats_mode */
	LIFT_STATS_UNIT_COUNT,
	LIFT_STATS_UNIT_PAGES, /* of 4 KiB */
	LIFT_STATS_UNIT_BYTES, /* UINT64_MAX: no limit */
	LIFT_STATS_UNIT_NS,
	LIFT_STATS_UNIT_PPM,
	LIFT_STATS_UNIT_SHARE, /* of 4096 */
	LIFT_STATS_UNIT_RATE   /* accesses per 1000 s */
};

enum lift_stats_section {
	LIFT_STATS_NOW,
	LIFT_STATS_MEMORY,
	LIFT_STATS_SAMPLES,
	LIFT_STATS_MOVES,
	LIFT_STATS_WINDOW,
	LIFT_STATS_COST,
	LIFT_STATS_KERNEL,
	LIFT_STATS_SECTION_MAX
};

/* X(name, kind, unit, section, meaning) */
#define LIFT_STATS_FIGURES(X)                                                                      \
	X(state, GAUGE, STATE, NOW, "what it does now")                                            \
	X(mode, GAUGE, MODE, NOW, "whether pages are moved, or use is tracked only")               \
	X(uptime_ns, COUNTER, NS, NOW, "time since it started")                                    \
	X(budget_ppm, GAUGE, PPM, NOW, "share of one CPU that it may use")                         \
	X(period_ns, GAUGE, NS, NOW, "time from one pass to the next")                             \
	X(sample_ns, GAUGE, NS, NOW, "length of a sample")                                         \
	X(passes, COUNTER, COUNT, NOW, "passes over the memory")                                   \
	X(changes, COUNTER, COUNT, NOW, "times that use was not as expected")                      \
	X(pauses, COUNTER, COUNT, NOW, "times that moves were found not to pay")                   \
	X(tracked_bytes, GAUGE, BYTES, MEMORY, "memory that is sampled")                           \
	X(fast_bytes, GAUGE, BYTES, MEMORY, "of it on fast nodes")                                 \
	X(slow_bytes, GAUGE, BYTES, MEMORY, "of it on slow nodes")                                 \
	X(fast_limit_bytes, GAUGE, BYTES, MEMORY, "most that may be on fast nodes")                \
	X(fast_share, GAUGE, SHARE, MEMORY, "accesses that go to fast nodes, estimated")           \
	X(stuck_pages, GAUGE, PAGES, MEMORY, "that cannot be moved")                               \
	X(cooling_pages, GAUGE, PAGES, MEMORY, "that wait after a move went wrong")                \
	X(metadata_bytes, GAUGE, BYTES, MEMORY, "records kept about all this")                     \
	X(numa_pte_updates, COUNTER, PAGES, SAMPLES, "armed to see whether they are used")         \
	X(numa_hint_faults, COUNTER, PAGES, SAMPLES, "of these seen in use")                       \
	X(released, COUNTER, PAGES, SAMPLES, "of these let go unused")                             \
	X(located, COUNTER, PAGES, SAMPLES, "asked which node they are on")                        \
	X(hot_rate, GAUGE, RATE, MOVES, "use from which a page is promoted")                       \
	X(wanted, GAUGE, PAGES, MOVES, "whose promotion would have paid at the last pass")         \
	X(pgpromote_candidate, COUNTER, PAGES, MOVES, "hot enough, tried")                         \
	X(pgpromote_success, COUNTER, PAGES, MOVES, "promoted to fast nodes")                      \
	X(promoted_home, COUNTER, PAGES, MOVES, "of these to the node of the threads that use it") \
	X(pgdemote, COUNTER, PAGES, MOVES, "demoted to make room")                                 \
	X(bounced, COUNTER, PAGES, MOVES, "demoted soon after their promotion")                    \
	X(move_busy, COUNTER, PAGES, MOVES, "not moved: in use by the kernel")                     \
	X(move_nomem, COUNTER, PAGES, MOVES, "not moved: no room")                                 \
	X(move_absent, COUNTER, PAGES, MOVES, "not moved: gone meanwhile")                         \
	X(move_shared, COUNTER, PAGES, MOVES, "not moved: shared, or not permitted")               \
	X(window_bytes, GAUGE, BYTES, WINDOW, "promoted in advance next to a hot page")            \
	X(predicted, COUNTER, PAGES, WINDOW, "promoted in advance")                                \
	X(predicted_hit, COUNTER, PAGES, WINDOW, "of these used since")                            \
	X(predicted_wrong, COUNTER, PAGES, WINDOW, "of these not used")                            \
	X(worker_cpu_ns, COUNTER, NS, COST, "CPU time of the worker thread")                       \
	X(move_ns, COUNTER, NS, COST, "of it for moving pages")                                    \
	X(fault_est_ns, COUNTER, NS, COST, "CPU time of the program for faults, estimated")        \
	X(cost_arm_ns, GAUGE, NS, COST, "to arm a page (this and the next: at start)")             \
	X(cost_release_ns, GAUGE, NS, COST, "to let go of a page")                                 \
	X(cost_scan_ns, GAUGE, NS, COST, "to ask whether a page was used")                         \
	X(cost_fault_ns, GAUGE, NS, COST, "for the program's first access to an armed page")       \
	X(cost_promote_ns, GAUGE, NS, COST, "to promote a page")                                   \
	X(cost_demote_ns, GAUGE, NS, COST, "to demote a page")                                     \
	X(gap_ns, GAUGE, NS, COST, "that an access to a slow node takes longer")                   \
	X(kernel_pgpromote_success, COUNTER, PAGES, KERNEL, "promoted by the kernel")              \
	X(kernel_pgdemote, COUNTER, PAGES, KERNEL, "demoted by the kernel")                        \
	X(kernel_numa_pages_migrated, COUNTER, PAGES, KERNEL, "moved by NUMA balancing")           \
	X(kernel_numa_hint_faults, COUNTER, COUNT, KERNEL, "faults of NUMA balancing")

#define LIFT_STATS_SAMPLER 16
#define LIFT_STATS_REASON 128
#define LIFT_STATS_PROGRAM 64

struct lift_stats_node {
	int32_t node;
	uint8_t fast;
	uint8_t usable;
	uint64_t pages_here; /* of those tracked */
	uint64_t free_bytes;
};

/* Zeroed: it waits, and nothing has happened yet. */
struct lift_stats {
#define LIFT_STATS_FIELD(name, kind, unit, section, meaning) uint64_t name;
	LIFT_STATS_FIGURES(LIFT_STATS_FIELD)
#undef LIFT_STATS_FIELD
	char sampler[LIFT_STATS_SAMPLER]; /* its name; empty: none */
	char reason[LIFT_STATS_REASON];   /* why it is off or tracks only; may be empty */
	unsigned nr_nodes;
	struct lift_stats_node node[LIFT_SLOTS];
};

enum lift_stats_figure {
#define LIFT_STATS_INDEX(name, kind, unit, section, meaning) LIFT_STATS_##name,
	LIFT_STATS_FIGURES(LIFT_STATS_INDEX)
#undef LIFT_STATS_INDEX
		LIFT_STATS_NR
};

/* A row of the table, for those who print it. */
struct lift_stats_row {
	const char *name;
	enum lift_stats_kind kind;
	enum lift_stats_unit unit;
	enum lift_stats_section section;
	const char *meaning;
	size_t at; /* offset of the field */
};

extern const struct lift_stats_row lift_stats_table[LIFT_STATS_NR];

/* Words for people and JSON; "?" outside the enum, never NULL. */
const char *lift_stats_state_name(uint64_t state);
const char *lift_stats_mode_name(uint64_t mode);

uint64_t lift_stats_get(const struct lift_stats *s, enum lift_stats_figure figure);

#endif
