/*
 * The options: their names, what they accept, what they mean. One table describes them all; the
 * environment, `numalift run`, --help and the manual are made from it.
 *
 * Adding an option whose kind exists is a row in LIFT_CONFIG_OPTIONS and a field in lift_config.
 * Nothing here reads the environment. A lift_config is filled by one thread and then only read.
 */
#ifndef LIFT_POLICY_CONFIG_H
#define LIFT_POLICY_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "policy/tiers.h"
#include "policy/types.h"

enum lift_log_level {
	LIFT_LOG_OFF,
	LIFT_LOG_ERROR,
	LIFT_LOG_WARN,
	LIFT_LOG_INFO,
	LIFT_LOG_DEBUG,
	LIFT_LOG_MAX
};

/* How a class is placed. */
enum lift_how {
	LIFT_HOW_LOCAL,      /* near the thread that asks; with tiers, among the fast nodes */
	LIFT_HOW_INTERLEAVE, /* batch interleave over the fast nodes */
	LIFT_HOW_WEIGHTED,   /* interleave by weights, over every node that has one */
	LIFT_HOW_BIND,       /* on these nodes and no others */
	LIFT_HOW_PREFERRED,  /* on these nodes while they have room */
	LIFT_HOW_MAX
};

const char *lift_how_name(enum lift_how how);

/* A node list as written; the words are resolved against the machine when a decision is made. */
enum lift_nodes_kind {
	LIFT_NODES_LIST, /* exactly .set */
	LIFT_NODES_ALL,  /* `all`: every node that has memory */
	LIFT_NODES_FAST  /* `fast`: the fastest tier */
};

struct lift_nodes {
	enum lift_nodes_kind kind;
	struct lift_nodeset set;
};

/* CLASS[>=SIZE]:HOW. A HOW alone stands for every class that is not named with size 0. */
struct lift_place_rule {
	enum lift_class cls;
	enum lift_how how;
	uint64_t min_bytes;      /* applies to requests of at least this size; 0: to all */
	struct lift_nodes nodes; /* of bind and preferred; else empty */
};

#define LIFT_PLACE_RULES_MAX 16

/*
 * There is always a rule for every class with min_bytes 0: what NUMALIFT_PLACE does not mention
 * keeps its default. No two rules have the same class and size.
 */
struct lift_place {
	unsigned nr;
	struct lift_place_rule rule[LIFT_PLACE_RULES_MAX];
};

enum lift_pagecache {
	LIFT_PAGECACHE_OFF,        /* the task policy is left alone */
	LIFT_PAGECACHE_INTERLEAVE, /* interleave over the fast nodes */
	LIFT_PAGECACHE_NODES       /* interleave over the nodes listed */
};

struct lift_pagecache_option {
	enum lift_pagecache kind;
	struct lift_nodes nodes; /* of LIFT_PAGECACHE_NODES */
};

#define LIFT_SCOPE_BYTES 1024

/* Program name patterns, comma separated, blanks removed, not terminated. */
struct lift_scope {
	unsigned len;
	char text[LIFT_SCOPE_BYTES];
};

/* NUMALIFT_WEIGHTS. Ids distinct, weights 1..LIFT_WEIGHT_MAX. Empty: not given. */
struct lift_weights {
	unsigned nr;
	struct lift_node_weight item[LIFT_TOPO_NODES];
};

enum lift_promote_mode {
	LIFT_PROMOTE_OFF,
	LIFT_PROMOTE_ON,
	LIFT_PROMOTE_TRACK /* samples and reports, moves nothing */
};

enum lift_sampler_choice {
	LIFT_SAMPLER_AUTO, /* the best that works here */
	LIFT_SAMPLER_RWP,
	LIFT_SAMPLER_WP_REFS,
	LIFT_SAMPLER_WP,
	LIFT_SAMPLER_REFS,
	LIFT_SAMPLER_DIRTY,
	LIFT_SAMPLER_DAMON,
	LIFT_SAMPLER_KERNEL,
	LIFT_SAMPLER_CHOICES
};

/* As written in NUMALIFT_SAMPLER. */
const char *lift_sampler_choice_name(enum lift_sampler_choice choice);

#define LIFT_WINDOW_AUTO UINT64_MAX
#define LIFT_NO_LIMIT UINT64_MAX

#define LIFT_STATS_PATH_BYTES 256

/* NUMALIFT_STATS: "auto", "off" or an absolute path, terminated. */
struct lift_stats_path {
	char text[LIFT_STATS_PATH_BYTES];
};

/* The kernel's own limit for a weighted-interleave weight is 255; chunks have no such limit. */
#define LIFT_WEIGHT_MAX 1000000

struct lift_config {
	uint64_t given;                         /* bit i: option i was set, and not to nothing */
	bool enabled;                           /* NUMALIFT */
	bool inherit;                           /* NUMALIFT_INHERIT */
	enum lift_log_level log;                /* NUMALIFT_LOG */
	uint64_t batch_bytes;                   /* NUMALIFT_BATCH; 0: auto */
	struct lift_place place;                /* NUMALIFT_PLACE */
	struct lift_tiers tiers;                /* NUMALIFT_TIERS; nr 0: not given */
	struct lift_pagecache_option pagecache; /* NUMALIFT_PAGECACHE */
	struct lift_scope scope;                /* NUMALIFT_SCOPE */
	struct lift_weights weights;            /* NUMALIFT_WEIGHTS */
	enum lift_promote_mode promote;         /* NUMALIFT_PROMOTE */
	enum lift_sampler_choice sampler;       /* NUMALIFT_SAMPLER */
	uint64_t budget_ppm;                    /* NUMALIFT_BUDGET, of one CPU */
	uint64_t window_bytes;                  /* NUMALIFT_WINDOW; LIFT_WINDOW_AUTO: adaptive */
	uint64_t fast_limit_bytes;              /* NUMALIFT_FAST_LIMIT; or LIFT_NO_LIMIT */
	uint64_t rate_bytes;                    /* NUMALIFT_RATE, per second; or LIFT_NO_LIMIT */
	struct lift_stats_path stats;           /* NUMALIFT_STATS */
};

/* One row of the option table. All strings are static. */
struct lift_option {
	const char *name;         /* of the environment variable */
	const char *default_text; /* itself an accepted value; "": not given */
	const char *accepted;     /* what can be written, in one line */
	const char *help;         /* what it is for, in one line */
};

/* Row @i in the order of the manual; NULL from the first index past the end on. */
const struct lift_option *lift_config_option(size_t i);

/* Index of the option called @name (exactly), -1 when there is none. */
int lift_config_find(const char *name);

/* Everything at its default. Cannot fail. */
void lift_config_init(struct lift_config *cfg);

/* What was wrong. All strings are static; offset + length never goes past the value it is about. */
struct lift_config_error {
	const char *name;     /* of the option; NULL: there is no such option */
	const char *problem;  /* "unknown class" */
	const char *accepted; /* what can be written instead */
	const char *kept;     /* what holds instead, as text; NULL: a value that was set before */
	size_t offset;        /* of the bad part in the value, 0-based */
	size_t length;        /* of the bad part; 0: something is missing at offset */
};

/*
 * Sets the option called @name (environment name, e.g. "NUMALIFT_PLACE") to @value[0..len). Any
 * bytes of any length are allowed; blanks around the value are ignored; an empty value sets the
 * default.
 *
 * A value is taken whole or not at all: what is half right is as likely to be a misunderstanding,
 * and a default that is known serves better than a mixture that is not. On failure @cfg keeps
 * what it had and *ret_err (may be NULL) is filled. 0; -EINVAL: not understood; -ERANGE:
 * understood, but too large, too small or too many; -ENOENT: there is no such option.
 */
int lift_config_set(struct lift_config *cfg, const char *name, const char *value, size_t len,
	struct lift_config_error *ret_err);

/* Longest text that lift_config_error_format() makes, terminator included. */
#define LIFT_CONFIG_ERROR_BYTES 300

/*
 * One line for people about @err, without a newline, always terminated when @n > 0:
 *
 *   NUMALIFT_PLACE: 'slub' at position 1: unknown class; accepted: slab|anon|...; using slab:...
 *
 * @value is what lift_config_set() was given, or NULL to leave the quotation out. The quoted part
 * is shortened, and what is not printable ASCII is shown as \xNN. Returns the length of the text,
 * which is cut where @n is too small.
 */
size_t lift_config_error_format(
	const struct lift_config_error *err, const char *value, char *buf, size_t n);

/*
 * Whether a program is to be served, by the last component of its path: no `!pattern` of the scope
 * fits, and either some pattern without `!` fits or the scope has none. `*` fits any run of
 * bytes, everything else itself.
 */
bool lift_config_in_scope(const struct lift_config *cfg, const char *program);

/*
 * The rule that applies to a request: of those for its class whose min_bytes it reaches, the one
 * with the largest. NULL only for a class outside the enum.
 */
const struct lift_place_rule *lift_config_rule(
	const struct lift_config *cfg, enum lift_class cls, uint64_t bytes);

#endif
