#include "policy/config.h"

#include <errno.h>

#include "policy/scan.h"

#define BATCH_MIN_BYTES (4 * LIFT_KIB)
#define BATCH_MAX_BYTES (64 * LIFT_GIB)

/* How a value is written, and so which field type the row's member has. */
enum kind {
	KIND_SWITCH,
	KIND_LOG,
	KIND_PLACE,
	KIND_TIERS,
	KIND_BATCH,
	KIND_PAGECACHE,
	KIND_SCOPE,
	KIND_WEIGHTS,
	KIND_PROMOTE,
	KIND_SAMPLER,
	KIND_BUDGET,
	KIND_WINDOW,
	KIND_LIMIT,
	KIND_STATS
};

/* One word each; no row repeats what another says. */
#define ACCEPTED_SWITCH "on|off"
#define ACCEPTED_LOG "off|error|warn|info|debug"
#define ACCEPTED_NODES "node numbers and ranges like 0-1,3"

/* name, kind, member, default, accepted, help; in the order of the manual. */
#define LIFT_CONFIG_OPTIONS(ROW)                                                                   \
	ROW("NUMALIFT", KIND_SWITCH, enabled, "on", ACCEPTED_SWITCH,                               \
		"Switches everything on or off.")                                                  \
	ROW("NUMALIFT_PLACE", KIND_PLACE, place, "slab:local,anon:local,file:interleave",          \
		"[slab|anon|file[>=SIZE]:]local|interleave|weighted|bind=NODES|preferred=NODES,.." \
		".",                                                                               \
		"Where each class of memory is placed, by size if need be.")                       \
	ROW("NUMALIFT_TIERS", KIND_TIERS, tiers, "", "node lists, fastest first, like 0,1;2",      \
		"The tiers of the machine, instead of those found.")                               \
	ROW("NUMALIFT_WEIGHTS", KIND_WEIGHTS, weights, "", "NODE:WEIGHT,... like 0:3,1:1",         \
		"How much of weighted memory each node gets.")                                     \
	ROW("NUMALIFT_BATCH", KIND_BATCH, batch_bytes, "2M", "auto, or a power of two 4K..64G",    \
		"Size of the pieces that are interleaved.")                                        \
	ROW("NUMALIFT_PAGECACHE", KIND_PAGECACHE, pagecache, "off",                                \
		"off|interleave|all|fast or node numbers and ranges like 0-1,3",                   \
		"Where page cache goes that the program fills.")                                   \
	ROW("NUMALIFT_PROMOTE", KIND_PROMOTE, promote, "on", "on|off|track",                       \
		"Whether hot pages are lifted out of slow tiers, or only watched.")                \
	ROW("NUMALIFT_SAMPLER", KIND_SAMPLER, sampler, "auto",                                     \
		"auto|rwp|wp+refs|wp|refs|dirty|damon|kernel",                                     \
		"How it is found out which pages are hot.")                                        \
	ROW("NUMALIFT_BUDGET", KIND_BUDGET, budget_ppm, "3%",                                      \
		"a percentage of one CPU, 0.1%..100%",                                             \
		"What sampling and trading pages may cost, with the faults it causes.")               \
	ROW("NUMALIFT_WINDOW", KIND_WINDOW, window_bytes, "auto",                                  \
		"auto, 0, or a multiple of 4K up to 2M",                                           \
		"How much beside a hot page is promoted in advance.")                              \
	ROW("NUMALIFT_FAST_LIMIT", KIND_LIMIT, fast_limit_bytes, "none",                           \
		"none, or a size like 8G",                                                         \
		"How much memory a process may have on fast nodes before it has to make room.")    \
	ROW("NUMALIFT_RATE", KIND_LIMIT, rate_bytes, "none", "none, or a size like 200M",          \
		"How much may be moved in a second.")                                              \
	ROW("NUMALIFT_STATS", KIND_STATS, stats, "auto",                                           \
		"auto|off|an absolute path, %p is the process",                                    \
		"Where the statistics page is, which numalift stat reads.")                        \
	ROW("NUMALIFT_SCOPE", KIND_SCOPE, scope, "", "program names like a,b*; !name is left out", \
		"Programs that are served; all if empty.")                                         \
	ROW("NUMALIFT_INHERIT", KIND_SWITCH, inherit, "on", ACCEPTED_SWITCH,                       \
		"Whether programs started by the program are served too.")                         \
	ROW("NUMALIFT_LOG", KIND_LOG, log, "warn", ACCEPTED_LOG,                                   \
		"How much is said on standard error.")

struct row {
	struct lift_option option;
	enum kind kind;
	size_t offset;
};

#define ROW_OF(n, k, member, d, a, h)                                                              \
	{                                                                                          \
		.option = {.name = (n), .default_text = (d), .accepted = (a), .help = (h)},        \
		.kind = (k),                                                                       \
		.offset = offsetof(struct lift_config, member),                                    \
	},

static const struct row rows[] = {LIFT_CONFIG_OPTIONS(ROW_OF)};

#define NR_ROWS (sizeof(rows) / sizeof(rows[0]))

_Static_assert(NR_ROWS <= 64, "lift_config.given has a bit for each option");
_Static_assert(LIFT_PLACE_RULES_MAX > LIFT_CLASS_MAX, "the defaults of all classes must fit");

/* What a parser says when it refuses: at is within the value. */
struct trouble {
	const char *problem;
	const char *at;
	size_t length;
};

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* Bytes up to the first of @stops, blanks at its end not counted. */
static size_t token_length(const struct lift_scan *s, const char *stops)
{
	const char *p = s->p;

	for (; p < s->end; p++) {
		bool stop = false;

		for (const char *c = stops; *c; c++)
			stop = stop || *p == *c;
		if (stop)
			break;
	}
	while (p > s->p && lift_scan_is_blank(p[-1]))
		p--;
	return (size_t)(p - s->p);
}

static int refuse(struct trouble *t, int rc, const char *problem, const char *at, size_t length)
{
	*t = (struct trouble){.problem = problem, .at = at, .length = length};
	return rc;
}

/* The token at the cursor, up to one of @stops, is refused. */
static int refuse_token(struct trouble *t, int rc, const char *problem, const struct lift_scan *s,
	const char *stops)
{
	return refuse(t, rc, problem, s->p, token_length(s, stops));
}

static bool same_word(const char *s, size_t len, const char *word)
{
	size_t i = 0;

	for (; i < len && word[i]; i++)
		if (lower(s[i]) != word[i])
			return false;
	return i == len && !word[i];
}

/* Takes the token if it is one of @words[0..nr), and says which; -1 otherwise. */
static int take_word(struct lift_scan *s, const char *stops, const char *const *words, int nr)
{
	size_t len = token_length(s, stops);

	for (int i = 0; i < nr; i++) {
		if (same_word(s->p, len, words[i])) {
			s->p += len;
			return i;
		}
	}
	return -1;
}

static int parse_switch(struct lift_scan *s, bool *ret, struct trouble *t)
{
	static const char *const words[] = {"off", "on", "0", "1", "no", "yes", "false", "true"};
	int i = take_word(s, "", words, 8);

	if (i < 0)
		return refuse_token(t, -EINVAL, "unknown word", s, "");
	*ret = i % 2 == 1;
	return 0;
}

static int parse_log(struct lift_scan *s, enum lift_log_level *ret, struct trouble *t)
{
	static const char *const words[] = {
		[LIFT_LOG_OFF] = "off",
		[LIFT_LOG_ERROR] = "error",
		[LIFT_LOG_WARN] = "warn",
		[LIFT_LOG_INFO] = "info",
		[LIFT_LOG_DEBUG] = "debug",
	};
	int i = take_word(s, "", words, LIFT_LOG_MAX);

	if (i < 0)
		return refuse_token(t, -EINVAL, "unknown word", s, "");
	*ret = (enum lift_log_level)i;
	return 0;
}

/* 4096, 4K, 2M, 1G, 1T; a B or iB behind the letter is tolerated. */
static int parse_size(struct lift_scan *s, const char *stops, uint64_t *ret, struct trouble *t)
{
	struct lift_scan at = *s;
	unsigned shift = 0;
	uint64_t v;
	int rc = lift_scan_number(&at, 10, UINT64_MAX, &v);

	if (rc == -ERANGE)
		return refuse_token(t, rc, "size too large", s, stops);
	if (rc < 0)
		return refuse_token(t, rc, "not a size", s, stops);
	if (!lift_scan_done(&at)) {
		switch (lower(*at.p)) {
		case 'k':
			shift = 10;
			break;
		case 'm':
			shift = 20;
			break;
		case 'g':
			shift = 30;
			break;
		case 't':
			shift = 40;
			break;
		default:
			break;
		}
	}
	if (shift) {
		at.p++;
		if (!lift_scan_text(&at, "iB"))
			lift_scan_byte(&at, 'B');
	}
	if (token_length(&at, stops) > 0)
		return refuse_token(t, -EINVAL, "not a size", s, stops);
	if (v > UINT64_MAX >> shift)
		return refuse_token(t, -ERANGE, "size too large", s, stops);
	s->p = at.p;
	*ret = v << shift;
	return 0;
}

/* `all`, `fast` or a list. A comma that a digit follows belongs to the list. */
static int parse_nodes(
	struct lift_scan *s, const char *stops, struct lift_nodes *ret, struct trouble *t)
{
	static const char *const words[] = {"all", "fast"};
	int word = take_word(s, stops, words, 2);
	int rc;

	memset(ret, 0, sizeof(*ret));
	if (word >= 0) {
		ret->kind = word == 0 ? LIFT_NODES_ALL : LIFT_NODES_FAST;
		return 0;
	}
	ret->kind = LIFT_NODES_LIST;
	rc = lift_scan_nodes(s, &ret->set);
	if (rc == -ERANGE)
		return refuse_token(t, rc, "node number above 1023", s, stops);
	if (rc < 0)
		return refuse_token(t, rc, "not a node list", s, stops);
	return 0;
}

/* Takes a separator with the blanks around it; false when there is none, at the end too. */
static bool next_item(struct lift_scan *s, char separator)
{
	lift_scan_blanks(s);
	if (!lift_scan_byte(s, separator))
		return false;
	lift_scan_blanks(s);
	return true;
}

const char *lift_how_name(enum lift_how how)
{
	switch (how) {
	case LIFT_HOW_LOCAL:
		return "local";
	case LIFT_HOW_INTERLEAVE:
		return "interleave";
	case LIFT_HOW_WEIGHTED:
		return "weighted";
	case LIFT_HOW_BIND:
		return "bind";
	case LIFT_HOW_PREFERRED:
		return "preferred";
	case LIFT_HOW_MAX:
		break;
	}
	return "?";
}

/* The word of a HOW; -1 when it is none. */
static int take_how(struct lift_scan *s)
{
	const char *words[LIFT_HOW_MAX];

	for (int i = 0; i < LIFT_HOW_MAX; i++)
		words[i] = lift_how_name((enum lift_how)i);
	return take_word(s, ",=", words, LIFT_HOW_MAX);
}

/* HOW, with its nodes where it takes any. */
static int parse_how(struct lift_scan *s, struct lift_place_rule *ret, struct trouble *t)
{
	int i = take_how(s);

	if (i < 0)
		return refuse_token(t, -EINVAL, "unknown placement", s, ",");
	ret->how = (enum lift_how)i;
	if (ret->how == LIFT_HOW_BIND || ret->how == LIFT_HOW_PREFERRED) {
		if (!lift_scan_byte(s, '='))
			return refuse_token(t, -EINVAL, "'=NODES' expected", s, ",");
		return parse_nodes(s, ",", &ret->nodes, t);
	}
	return 0;
}

/* An item that is a HOW alone gets the class LIFT_CLASS_MAX: it is for what no other item names. */
static int parse_rule(struct lift_scan *s, struct lift_place_rule *ret, struct trouble *t)
{
	const char *words[LIFT_CLASS_MAX];
	struct lift_scan ahead = *s;
	int i;

	memset(ret, 0, sizeof(*ret));
	for (i = 0; i < LIFT_CLASS_MAX; i++)
		words[i] = lift_class_name((enum lift_class)i);
	i = take_word(s, ",:>", words, LIFT_CLASS_MAX);
	if (i < 0) {
		if (take_how(&ahead) < 0)
			return refuse_token(t, -EINVAL, "unknown class", s, ",:>");
		ret->cls = LIFT_CLASS_MAX;
		return parse_how(s, ret, t);
	}
	ret->cls = (enum lift_class)i;

	if (lift_scan_text(s, ">=")) {
		int rc = parse_size(s, ",:", &ret->min_bytes, t);

		if (rc < 0)
			return rc;
	}
	if (!lift_scan_byte(s, ':'))
		return refuse_token(t, -EINVAL, "':' expected", s, ",");
	return parse_how(s, ret, t);
}

static int parse_place(struct lift_scan *s, struct lift_place *ret, struct trouble *t)
{
	bool has_base[LIFT_CLASS_MAX] = {false};
	struct lift_place_rule rest = {.cls = LIFT_CLASS_SLAB};

	ret->nr = 0;
	do {
		struct lift_place_rule rule;
		struct lift_scan item = *s;
		unsigned missing = 0;
		int rc = parse_rule(s, &rule, t);

		if (rc < 0)
			return rc;
		if (rule.cls == LIFT_CLASS_MAX) {
			if (rest.cls == LIFT_CLASS_MAX)
				return refuse(t, -EINVAL, "a second placement for the rest", item.p,
					(size_t)(s->p - item.p));
			rest = rule;
			continue;
		}
		for (unsigned i = 0; i < ret->nr; i++)
			if (ret->rule[i].cls == rule.cls &&
				ret->rule[i].min_bytes == rule.min_bytes)
				return refuse(t, -EINVAL, "class and size are there twice", item.p,
					(size_t)(s->p - item.p));
		has_base[rule.cls] = has_base[rule.cls] || rule.min_bytes == 0;
		for (int i = 0; i < LIFT_CLASS_MAX; i++)
			missing += !has_base[i];
		if (ret->nr + 1 + missing > LIFT_PLACE_RULES_MAX)
			return refuse(
				t, -ERANGE, "too many items", item.p, (size_t)(s->p - item.p));
		ret->rule[ret->nr++] = rule;
	} while (next_item(s, ','));

	/* As in the default text: a test compares the two. */
	for (int i = 0; i < LIFT_CLASS_MAX; i++) {
		struct lift_place_rule *rule = &ret->rule[ret->nr];

		if (has_base[i])
			continue;
		memset(rule, 0, sizeof(*rule));
		if (rest.cls == LIFT_CLASS_MAX)
			*rule = rest;
		else
			rule->how = i == LIFT_CLASS_FILE ? LIFT_HOW_INTERLEAVE : LIFT_HOW_LOCAL;
		rule->cls = (enum lift_class)i;
		ret->nr++;
	}
	return 0;
}

static int parse_tiers(struct lift_scan *s, struct lift_tiers *ret, struct trouble *t)
{
	struct lift_nodeset seen;

	lift_nodeset_zero(&seen);
	ret->source = LIFT_FACT_OVERRIDE;
	do {
		struct lift_scan item = *s;
		struct lift_nodeset set;
		struct lift_nodeset both;
		int rc = lift_scan_nodes(s, &set);

		if (rc == -ERANGE)
			return refuse_token(t, rc, "node number above 1023", s, ";,");
		if (rc < 0)
			return refuse_token(t, rc, "not a node list", s, ";,");
		lift_nodeset_and(&both, &seen, &set);
		if (!lift_nodeset_empty(&both))
			return refuse(t, -EINVAL, "a node is in two tiers", item.p,
				(size_t)(s->p - item.p));
		if (ret->nr == LIFT_TIERS_MAX)
			return refuse(
				t, -ERANGE, "more than 8 tiers", item.p, (size_t)(s->p - item.p));
		lift_nodeset_or(&seen, &seen, &set);
		ret->tier[ret->nr++] = set;
	} while (next_item(s, ';'));
	return 0;
}

static int parse_batch(struct lift_scan *s, uint64_t *ret, struct trouble *t)
{
	static const char *const words[] = {"auto"};
	struct lift_scan item = *s;
	uint64_t bytes;
	int rc;

	if (take_word(s, "", words, 1) == 0) {
		*ret = 0;
		return 0;
	}
	rc = parse_size(s, "", &bytes, t);
	if (rc < 0)
		return rc;
	if (bytes < BATCH_MIN_BYTES || bytes > BATCH_MAX_BYTES)
		return refuse_token(t, -ERANGE, "out of range", &item, "");
	if (bytes & (bytes - 1))
		return refuse_token(t, -EINVAL, "not a power of two", &item, "");
	*ret = bytes;
	return 0;
}

static int parse_pagecache(
	struct lift_scan *s, struct lift_pagecache_option *ret, struct trouble *t)
{
	static const char *const words[] = {
		[LIFT_PAGECACHE_OFF] = "off",
		[LIFT_PAGECACHE_INTERLEAVE] = "interleave",
	};
	int i = take_word(s, "", words, 2);

	memset(ret, 0, sizeof(*ret));
	if (i >= 0) {
		ret->kind = (enum lift_pagecache)i;
		return 0;
	}
	ret->kind = LIFT_PAGECACHE_NODES;
	return parse_nodes(s, "", &ret->nodes, t);
}

static int parse_scope(struct lift_scan *s, struct lift_scope *ret, struct trouble *t)
{
	ret->len = 0;
	do {
		size_t len = token_length(s, ",");
		bool exclude = len > 0 && *s->p == '!';

		if (len == 0 || (exclude && len == 1))
			return refuse(t, -EINVAL, "empty name", s->p, len);
		if (lift_scan_find(s->p, len, '/'))
			return refuse(t, -EINVAL, "a path, not a name", s->p, len);
		if (len + 1 > sizeof(ret->text) - ret->len)
			return refuse(t, -ERANGE, "list too long", s->p, len);
		if (ret->len > 0)
			ret->text[ret->len++] = ',';
		memcpy(ret->text + ret->len, s->p, len);
		ret->len += (unsigned)len;
		s->p += len;
	} while (next_item(s, ','));
	return 0;
}

static int parse_weights(struct lift_scan *s, struct lift_weights *ret, struct trouble *t)
{
	ret->nr = 0;
	do {
		struct lift_scan item = *s;
		uint64_t node;
		uint64_t weight;
		int rc = lift_scan_number(s, 10, LIFT_MAX_NODES - 1, &node);

		if (rc < 0)
			return refuse_token(t, rc,
				rc == -ERANGE ? "node number above 1023" : "not a node number", s,
				",:");
		if (!lift_scan_byte(s, ':'))
			return refuse_token(t, -EINVAL, "':WEIGHT' expected", s, ",");
		rc = lift_scan_number(s, 10, LIFT_WEIGHT_MAX, &weight);
		if (rc == -EINVAL)
			return refuse_token(t, rc, "not a weight", s, ",");
		if (rc < 0 || weight == 0)
			return refuse(t, -ERANGE, "weight not in 1..1000000", item.p,
				token_length(&item, ","));
		for (unsigned i = 0; i < ret->nr; i++)
			if (ret->item[i].node == (int)node)
				return refuse(t, -EINVAL, "node is there twice", item.p,
					(size_t)(s->p - item.p));
		if (ret->nr == LIFT_TOPO_NODES)
			return refuse(
				t, -ERANGE, "more than 64 nodes", item.p, (size_t)(s->p - item.p));
		ret->item[ret->nr].node = (int)node;
		ret->item[ret->nr++].weight = weight;
	} while (next_item(s, ','));
	return 0;
}

static int parse_promote(struct lift_scan *s, enum lift_promote_mode *ret, struct trouble *t)
{
	static const char *const words[] = {
		[LIFT_PROMOTE_OFF] = "off",
		[LIFT_PROMOTE_ON] = "on",
		[LIFT_PROMOTE_TRACK] = "track",
	};
	int i = take_word(s, "", words, 3);

	if (i < 0)
		return refuse_token(t, -EINVAL, "unknown word", s, "");
	*ret = (enum lift_promote_mode)i;
	return 0;
}

const char *lift_sampler_choice_name(enum lift_sampler_choice choice)
{
	static const char *const words[] = {
		[LIFT_SAMPLER_AUTO] = "auto",
		[LIFT_SAMPLER_RWP] = "rwp",
		[LIFT_SAMPLER_WP_REFS] = "wp+refs",
		[LIFT_SAMPLER_WP] = "wp",
		[LIFT_SAMPLER_REFS] = "refs",
		[LIFT_SAMPLER_DIRTY] = "dirty",
		[LIFT_SAMPLER_DAMON] = "damon",
		[LIFT_SAMPLER_KERNEL] = "kernel",
	};

	return choice < LIFT_SAMPLER_CHOICES ? words[choice] : "?";
}

static int parse_sampler(struct lift_scan *s, enum lift_sampler_choice *ret, struct trouble *t)
{
	const char *words[LIFT_SAMPLER_CHOICES];
	int i;

	for (i = 0; i < LIFT_SAMPLER_CHOICES; i++)
		words[i] = lift_sampler_choice_name((enum lift_sampler_choice)i);
	i = take_word(s, "", words, LIFT_SAMPLER_CHOICES);
	if (i < 0)
		return refuse_token(t, -EINVAL, "unknown sampler", s, "");
	*ret = (enum lift_sampler_choice)i;
	return 0;
}

/* 3, 3%, 0.5%: in millionths. */
static int parse_budget(struct lift_scan *s, uint64_t *ret, struct trouble *t)
{
	enum { PPM_PER_PERCENT = 10000 };
	struct lift_scan item = *s;
	uint64_t ppm;
	uint64_t unit = PPM_PER_PERCENT / 10;
	uint64_t whole;
	int rc = lift_scan_number(s, 10, 1000, &whole);

	if (rc == -ERANGE)
		return refuse_token(t, rc, "out of range", &item, "");
	if (rc < 0)
		return refuse_token(t, rc, "not a percentage", &item, "");
	ppm = whole * PPM_PER_PERCENT;
	if (lift_scan_byte(s, '.')) {
		for (; !lift_scan_done(s) && lift_scan_is_digit(*s->p); s->p++, unit /= 10)
			ppm += lift_scan_digit(*s->p) * unit;
	}
	lift_scan_byte(s, '%');
	if (!lift_scan_done(s))
		return refuse_token(t, -EINVAL, "not a percentage", &item, "");
	if (ppm < PPM_PER_PERCENT / 10 || ppm > 100 * PPM_PER_PERCENT)
		return refuse_token(t, -ERANGE, "out of range", &item, "");
	*ret = ppm;
	return 0;
}

static int parse_window(struct lift_scan *s, uint64_t *ret, struct trouble *t)
{
	static const char *const words[] = {"auto"};
	struct lift_scan item = *s;
	int rc;

	if (take_word(s, "", words, 1) == 0) {
		*ret = LIFT_WINDOW_AUTO;
		return 0;
	}
	rc = parse_size(s, "", ret, t);
	if (rc < 0)
		return rc;
	if (*ret % (4 * LIFT_KIB) != 0)
		return refuse_token(t, -EINVAL, "not a multiple of 4K", &item, "");
	if (*ret > LIFT_HUGE_BYTES)
		return refuse_token(t, -ERANGE, "out of range", &item, "");
	return 0;
}

static int parse_limit(struct lift_scan *s, uint64_t *ret, struct trouble *t)
{
	static const char *const words[] = {"none"};

	if (take_word(s, "", words, 1) == 0) {
		*ret = LIFT_NO_LIMIT;
		return 0;
	}
	return parse_size(s, "", ret, t);
}

static int parse_stats(struct lift_scan *s, struct lift_stats_path *ret, struct trouble *t)
{
	static const char *const words[] = {"off", "auto"};
	int i = take_word(s, "", words, 2);
	size_t len = lift_scan_left(s);

	if (i >= 0) {
		memcpy(ret->text, words[i], strlen(words[i]) + 1);
		return 0;
	}
	if (*s->p != '/')
		return refuse_token(t, -EINVAL, "not an absolute path", s, "");
	if (len >= sizeof(ret->text))
		return refuse(t, -ERANGE, "path too long", s->p, len);
	if (lift_scan_find(s->p, len, '\0'))
		return refuse(t, -EINVAL, "not a path", s->p, len);
	memcpy(ret->text, s->p, len);
	ret->text[len] = '\0';
	s->p += len;
	return 0;
}

/* Room for any option's value, so that a value is complete before the config is touched. */
union value {
	bool flag;
	enum lift_log_level log;
	uint64_t bytes;
	struct lift_place place;
	struct lift_tiers tiers;
	struct lift_pagecache_option pagecache;
	struct lift_scope scope;
	struct lift_weights weights;
	enum lift_promote_mode promote;
	enum lift_sampler_choice sampler;
	struct lift_stats_path stats;
};

/* Parses all of @s into *v, which is zeroed, and says how much of it the option's member is. */
static int parse_kind(
	enum kind kind, struct lift_scan *s, union value *v, size_t *ret_size, struct trouble *t)
{
	/* Nothing is the default of these, and what zeroes mean in their members. */
	bool nothing = lift_scan_done(s);
	int rc = 0;

	switch (kind) {
	case KIND_SWITCH:
		*ret_size = sizeof(v->flag);
		rc = parse_switch(s, &v->flag, t);
		break;
	case KIND_LOG:
		*ret_size = sizeof(v->log);
		rc = parse_log(s, &v->log, t);
		break;
	case KIND_PLACE:
		*ret_size = sizeof(v->place);
		rc = parse_place(s, &v->place, t);
		break;
	case KIND_TIERS:
		*ret_size = sizeof(v->tiers);
		rc = nothing ? 0 : parse_tiers(s, &v->tiers, t);
		break;
	case KIND_BATCH:
		*ret_size = sizeof(v->bytes);
		rc = parse_batch(s, &v->bytes, t);
		break;
	case KIND_PAGECACHE:
		*ret_size = sizeof(v->pagecache);
		rc = parse_pagecache(s, &v->pagecache, t);
		break;
	case KIND_SCOPE:
		*ret_size = sizeof(v->scope);
		rc = nothing ? 0 : parse_scope(s, &v->scope, t);
		break;
	case KIND_WEIGHTS:
		*ret_size = sizeof(v->weights);
		rc = nothing ? 0 : parse_weights(s, &v->weights, t);
		break;
	case KIND_PROMOTE:
		*ret_size = sizeof(v->promote);
		rc = parse_promote(s, &v->promote, t);
		break;
	case KIND_SAMPLER:
		*ret_size = sizeof(v->sampler);
		rc = parse_sampler(s, &v->sampler, t);
		break;
	case KIND_BUDGET:
		*ret_size = sizeof(v->bytes);
		rc = parse_budget(s, &v->bytes, t);
		break;
	case KIND_WINDOW:
		*ret_size = sizeof(v->bytes);
		rc = parse_window(s, &v->bytes, t);
		break;
	case KIND_LIMIT:
		*ret_size = sizeof(v->bytes);
		rc = parse_limit(s, &v->bytes, t);
		break;
	case KIND_STATS:
		*ret_size = sizeof(v->stats);
		rc = parse_stats(s, &v->stats, t);
		break;
	}
	if (rc == 0 && !lift_scan_done(s))
		rc = refuse(t, -EINVAL, "not understood", s->p, lift_scan_left(s));
	return rc;
}

static int set_row(
	struct lift_config *cfg, const struct row *row, struct lift_scan s, struct trouble *t)
{
	union value v;
	size_t size = 0;
	int rc;

	memset(&v, 0, sizeof(v));
	rc = parse_kind(row->kind, &s, &v, &size, t);
	if (rc < 0)
		return rc;
	memcpy((char *)cfg + row->offset, &v, size);
	return 0;
}

static struct lift_scan default_of(const struct row *row)
{
	return lift_scan_of(row->option.default_text, strlen(row->option.default_text));
}

const struct lift_option *lift_config_option(size_t i)
{
	return i < NR_ROWS ? &rows[i].option : NULL;
}

int lift_config_find(const char *name)
{
	size_t len = strlen(name) + 1;

	for (size_t i = 0; i < NR_ROWS; i++)
		if (strlen(rows[i].option.name) + 1 == len &&
			memcmp(rows[i].option.name, name, len) == 0)
			return (int)i;
	return -1;
}

void lift_config_init(struct lift_config *cfg)
{
	struct trouble t;

	memset(cfg, 0, sizeof(*cfg));
	for (size_t i = 0; i < NR_ROWS; i++)
		(void)set_row(cfg, &rows[i], default_of(&rows[i]), &t);
}

int lift_config_set(struct lift_config *cfg, const char *name, const char *value, size_t len,
	struct lift_config_error *ret_err)
{
	struct lift_scan s = lift_scan_of(value, len);
	struct trouble t = {0};
	int i = lift_config_find(name);
	uint64_t bit;
	int rc;

	if (i < 0) {
		if (ret_err)
			*ret_err = (struct lift_config_error){
				.problem = "no such option",
				.accepted = "the names in the manual",
			};
		return -ENOENT;
	}
	bit = UINT64_C(1) << i;
	lift_scan_trim(&s);
	if (lift_scan_done(&s)) {
		cfg->given &= ~bit;
		return set_row(cfg, &rows[i], default_of(&rows[i]), &t);
	}
	rc = set_row(cfg, &rows[i], s, &t);
	if (rc == 0) {
		cfg->given |= bit;
		return 0;
	}
	if (ret_err)
		*ret_err = (struct lift_config_error){
			.name = rows[i].option.name,
			.problem = t.problem,
			.accepted = rows[i].option.accepted,
			.kept = cfg->given & bit ? NULL : rows[i].option.default_text,
			.offset = (size_t)(t.at - value),
			.length = t.length,
		};
	return rc;
}

/* `*` fits any run of bytes; on a mismatch the last one takes a byte more. O(n * m). */
static bool fits(const char *pattern, size_t pattern_len, const char *name)
{
	size_t retry_p = SIZE_MAX;
	size_t retry_n = 0;
	size_t p = 0;
	size_t i = 0;

	while (name[i]) {
		if (p < pattern_len && pattern[p] == '*') {
			retry_p = ++p;
			retry_n = i;
		} else if (p < pattern_len && pattern[p] == name[i]) {
			p++;
			i++;
		} else if (retry_p != SIZE_MAX) {
			p = retry_p;
			i = ++retry_n;
		} else {
			return false;
		}
	}
	while (p < pattern_len && pattern[p] == '*')
		p++;
	return p == pattern_len;
}

bool lift_config_in_scope(const struct lift_config *cfg, const char *program)
{
	struct lift_scan s = lift_scan_of(cfg->scope.text, cfg->scope.len);
	bool any_include = false;
	bool included = false;

	while (!lift_scan_done(&s)) {
		size_t len = token_length(&s, ",");

		if (*s.p == '!') {
			if (fits(s.p + 1, len - 1, program))
				return false;
		} else {
			any_include = true;
			included = included || fits(s.p, len, program);
		}
		s.p += len;
		lift_scan_byte(&s, ',');
	}
	return included || !any_include;
}

const struct lift_place_rule *lift_config_rule(
	const struct lift_config *cfg, enum lift_class cls, uint64_t bytes)
{
	const struct lift_place_rule *best = NULL;

	for (unsigned i = 0; i < cfg->place.nr && i < LIFT_PLACE_RULES_MAX; i++) {
		const struct lift_place_rule *rule = &cfg->place.rule[i];

		if (rule->cls == cls && rule->min_bytes <= bytes &&
			(!best || rule->min_bytes > best->min_bytes))
			best = rule;
	}
	return best;
}
