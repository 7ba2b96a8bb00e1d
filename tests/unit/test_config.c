#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include <criterion/criterion.h>

#include "policy/config.h"
#include "tests/fake/fake_machine.h"

#define SIZE(a) (sizeof(a) / sizeof((a)[0]))

static int set(struct lift_config *cfg, const char *name, const char *value)
{
	return lift_config_set(cfg, name, value, strlen(value), NULL);
}

Test(config, defaults)
{
	struct lift_config cfg;

	memset(&cfg, 0xff, sizeof(cfg));
	lift_config_init(&cfg);
	cr_expect_eq(cfg.given, 0);
	cr_expect(cfg.enabled);
	cr_expect(cfg.inherit);
	cr_expect_eq(cfg.log, LIFT_LOG_WARN);
	cr_expect_eq(cfg.batch_bytes, 2 * LIFT_MIB);
	cr_expect_eq(cfg.tiers.nr, 0);
	cr_expect_eq(cfg.weights.nr, 0);
	cr_expect_eq(cfg.scope.len, 0);
	cr_expect_eq(cfg.pagecache.kind, LIFT_PAGECACHE_OFF);
	cr_assert_eq(cfg.place.nr, 3);
	for (unsigned i = 0; i < 3; i++) {
		const struct lift_place_rule *rule = &cfg.place.rule[i];

		cr_expect_eq(rule->cls, (enum lift_class)i);
		cr_expect_eq(rule->min_bytes, 0);
		cr_expect_eq(rule->how,
			rule->cls == LIFT_CLASS_FILE ? LIFT_HOW_INTERLEAVE : LIFT_HOW_LOCAL);
	}
}

Test(config, table_is_consistent)
{
	size_t nr = 0;

	for (const struct lift_option *o; (o = lift_config_option(nr)); nr++) {
		struct lift_config was;
		struct lift_config cfg;

		cr_expect_eq(strncmp(o->name, "NUMALIFT", 8), 0);
		cr_expect_eq(lift_config_find(o->name), (int)nr, "%s", o->name);
		cr_expect_gt(strlen(o->accepted), 0);
		cr_expect_gt(strlen(o->help), 0);
		/* The default text is accepted, and is what init has put there. */
		lift_config_init(&was);
		lift_config_init(&cfg);
		cr_expect_eq(set(&cfg, o->name, o->default_text), 0, "%s", o->name);
		cr_expect_eq(cfg.given, *o->default_text ? UINT64_C(1) << nr : 0);
		cfg.given = 0;
		cr_expect_eq(memcmp(&cfg, &was, sizeof(cfg)), 0, "%s", o->name);
	}
	cr_assert_eq(nr, 16);
	cr_expect_null(lift_config_option(nr));
	cr_expect_null(lift_config_option(SIZE_MAX));
	cr_expect_eq(lift_config_find("NUMALIF"), -1);
	cr_expect_eq(lift_config_find("NUMALIFT_"), -1);
	cr_expect_eq(lift_config_find(""), -1);
}

/* What NUMALIFT_PLACE leaves out has the default, which is also the default text. */
Test(config, place_fills_in_what_is_not_mentioned)
{
	struct lift_config cfg;
	struct lift_config was;

	lift_config_init(&was);
	lift_config_init(&cfg);
	cr_assert_eq(set(&cfg, "NUMALIFT_PLACE", "slab>=1T:weighted"), 0);
	cr_assert_eq(cfg.place.nr, 4);
	cr_expect_eq(memcmp(cfg.place.rule + 1, was.place.rule, 3 * sizeof(was.place.rule[0])), 0);
}

Test(config, switches)
{
	static const struct {
		const char *text;
		int rc;
		bool value;
	} rows[] = {
		{"on", 0, true},
		{"1", 0, true},
		{"yes", 0, true},
		{"true", 0, true},
		{"ON", 0, true},
		{" on\n", 0, true},
		{"off", 0, false},
		{"0", 0, false},
		{"no", 0, false},
		{"false", 0, false},
		{"\tOff ", 0, false},
		{"", 0, true},
		{"  ", 0, true},
		{"2", -EINVAL, true},
		{"onn", -EINVAL, true},
		{"o", -EINVAL, true},
		{"on off", -EINVAL, true},
	};

	for (size_t i = 0; i < SIZE(rows); i++) {
		struct lift_config cfg;

		lift_config_init(&cfg);
		cr_expect_eq(set(&cfg, "NUMALIFT", rows[i].text), rows[i].rc, "'%s'", rows[i].text);
		cr_expect_eq(cfg.enabled, rows[i].value, "'%s'", rows[i].text);
		cr_expect_eq(set(&cfg, "NUMALIFT_INHERIT", rows[i].text), rows[i].rc);
		cr_expect_eq(cfg.inherit, rows[i].value, "'%s'", rows[i].text);
	}
}

Test(config, log_levels)
{
	static const struct {
		const char *text;
		int rc;
		enum lift_log_level level;
	} rows[] = {
		{"off", 0, LIFT_LOG_OFF},
		{"error", 0, LIFT_LOG_ERROR},
		{"warn", 0, LIFT_LOG_WARN},
		{"info", 0, LIFT_LOG_INFO},
		{"DEBUG", 0, LIFT_LOG_DEBUG},
		{"verbose", -EINVAL, LIFT_LOG_WARN},
		{"", 0, LIFT_LOG_WARN},
	};

	for (size_t i = 0; i < SIZE(rows); i++) {
		struct lift_config cfg;

		lift_config_init(&cfg);
		cr_expect_eq(set(&cfg, "NUMALIFT_LOG", rows[i].text), rows[i].rc);
		cr_expect_eq(cfg.log, rows[i].level, "'%s'", rows[i].text);
	}
}

Test(config, batch)
{
	static const struct {
		const char *text;
		int rc;
		uint64_t bytes;
	} rows[] = {
		{"auto", 0, 0},
		{"AUTO", 0, 0},
		{"4096", 0, 4096},
		{"4K", 0, 4096},
		{"4k", 0, 4096},
		{"4KiB", 0, 4096},
		{"4KB", 0, 4096},
		{"16m", 0, 16 * LIFT_MIB},
		{"1G", 0, LIFT_GIB},
		{"64G", 0, 64 * LIFT_GIB},
		{" 8M ", 0, 8 * LIFT_MIB},
		{"", 0, 2 * LIFT_MIB},
		{"128G", -ERANGE, 2 * LIFT_MIB},
		{"2048", -ERANGE, 2 * LIFT_MIB},
		{"0", -ERANGE, 2 * LIFT_MIB},
		{"3M", -EINVAL, 2 * LIFT_MIB},
		{"2MX", -EINVAL, 2 * LIFT_MIB},
		{"2 M", -EINVAL, 2 * LIFT_MIB},
		{"-2M", -EINVAL, 2 * LIFT_MIB},
		{"0x1000", -EINVAL, 2 * LIFT_MIB},
		{"M", -EINVAL, 2 * LIFT_MIB},
		{"4P", -EINVAL, 2 * LIFT_MIB},
		{"18446744073709551616", -ERANGE, 2 * LIFT_MIB},
		{"18446744073709551615K", -ERANGE, 2 * LIFT_MIB},
		{"16777216T", -ERANGE, 2 * LIFT_MIB},
	};

	for (size_t i = 0; i < SIZE(rows); i++) {
		struct lift_config cfg;

		lift_config_init(&cfg);
		cr_expect_eq(set(&cfg, "NUMALIFT_BATCH", rows[i].text), rows[i].rc, "'%s'",
			rows[i].text);
		cr_expect_eq(cfg.batch_bytes, rows[i].bytes, "'%s'", rows[i].text);
	}
}

Test(config, place_grammar)
{
	static const struct {
		const char *text;
		unsigned nr;      /* rules that were written */
		const char *last; /* of the last one: class>=size:how kind nodes */
	} rows[] = {
		{"slab:local", 1, "slab>=0:local 0 -"},
		{"anon:interleave", 1, "anon>=0:interleave 0 -"},
		{"FILE:Weighted", 1, "file>=0:weighted 0 -"},
		{"anon:bind=1", 1, "anon>=0:bind 0 1"},
		{"anon:bind=0-1,3", 1, "anon>=0:bind 0 0,1,3"},
		{"anon:bind=0-1,3,file:local", 2, "file>=0:local 0 -"},
		{"anon:bind=3 , file:preferred=1023", 2, "file>=0:preferred 0 1023"},
		{"anon:preferred=all", 1, "anon>=0:preferred 1 -"},
		{"anon:bind=fast,slab:local", 2, "slab>=0:local 0 -"},
		{"slab:local,anon:bind=FAST", 2, "anon>=0:bind 2 -"},
		{"anon>=1G:interleave", 1, "anon>=1073741824:interleave 0 -"},
		{"anon>=0:local,anon>=1:weighted", 2, "anon>=1:weighted 0 -"},
		{"\n anon:local \t", 1, "anon>=0:local 0 -"},
		{"anon : local", 0, NULL},
	};

	for (size_t i = 0; i < SIZE(rows); i++) {
		const struct lift_place_rule *rule;
		struct lift_config cfg;
		char got[200];
		int len;

		lift_config_init(&cfg);
		if (!rows[i].last) {
			cr_expect_eq(set(&cfg, "NUMALIFT_PLACE", rows[i].text), -EINVAL);
			continue;
		}
		cr_assert_eq(set(&cfg, "NUMALIFT_PLACE", rows[i].text), 0, "'%s'", rows[i].text);
		rule = &cfg.place.rule[rows[i].nr - 1];
		len = snprintf(got, sizeof(got), "%s>=%llu:%s %d", lift_class_name(rule->cls),
			(unsigned long long)rule->min_bytes, lift_how_name(rule->how),
			(int)rule->nodes.kind);
		if (lift_nodeset_empty(&rule->nodes.set)) {
			snprintf(got + len, sizeof(got) - (size_t)len, " -");
		} else {
			char sep = ' ';

			lift_nodeset_foreach (node, &rule->nodes.set) {
				len += snprintf(
					got + len, sizeof(got) - (size_t)len, "%c%d", sep, node);
				sep = ',';
			}
		}
		cr_expect_str_eq(got, rows[i].last, "'%s': %s", rows[i].text, got);
	}
}

struct refusal {
	const char *name;
	const char *value;
	int rc;
	size_t offset;
	size_t length;
	const char *problem;
};

static const struct refusal refusals[] = {
	{"NUMALIFT", "maybe", -EINVAL, 0, 5, "unknown word"},
	{"NUMALIFT_LOG", " loud ", -EINVAL, 1, 4, "unknown word"},
	{"NUMALIFT_PLACE", "slub:local", -EINVAL, 0, 4, "unknown class"},
	{"NUMALIFT_PLACE", ",", -EINVAL, 0, 0, "unknown class"},
	{"NUMALIFT_PLACE", "slab:local,", -EINVAL, 11, 0, "unknown class"},
	{"NUMALIFT_PLACE", "slab", -EINVAL, 4, 0, "':' expected"},
	{"NUMALIFT_PLACE", "slab>1G:local", -EINVAL, 4, 9, "':' expected"},
	{"NUMALIFT_PLACE", "slab>=:local", -EINVAL, 6, 0, "not a size"},
	{"NUMALIFT_PLACE", "slab>=1X:local", -EINVAL, 6, 2, "not a size"},
	{"NUMALIFT_PLACE", "slab>=1G", -EINVAL, 8, 0, "':' expected"},
	{"NUMALIFT_PLACE", "slab>=99999999999999999999:local", -ERANGE, 6, 20, "size too large"},
	{"NUMALIFT_PLACE", "slab>=99999999999T:local", -ERANGE, 6, 12, "size too large"},
	{"NUMALIFT_PLACE", "slab:remote,anon:local", -EINVAL, 5, 6, "unknown placement"},
	{"NUMALIFT_PLACE", "slab:", -EINVAL, 5, 0, "unknown placement"},
	{"NUMALIFT_PLACE", "slab:bind", -EINVAL, 9, 0, "'=NODES' expected"},
	{"NUMALIFT_PLACE", "slab:bind=", -EINVAL, 10, 0, "not a node list"},
	{"NUMALIFT_PLACE", "slab:bind=x", -EINVAL, 10, 1, "not a node list"},
	{"NUMALIFT_PLACE", "slab:bind=3-1", -EINVAL, 10, 3, "not a node list"},
	{"NUMALIFT_PLACE", "slab:bind=3-", -EINVAL, 10, 2, "not a node list"},
	{"NUMALIFT_PLACE", "slab:bind=0,1024", -ERANGE, 12, 4, "node number above 1023"},
	{"NUMALIFT_PLACE", "slab:bind=0-1024", -ERANGE, 10, 6, "node number above 1023"},
	{"NUMALIFT_PLACE", "slab:bind=1x", -EINVAL, 11, 1, "not understood"},
	{"NUMALIFT_PLACE", "slab:local=1", -EINVAL, 10, 2, "not understood"},
	{"NUMALIFT_PLACE", "slab:local anon:local", -EINVAL, 5, 16, "unknown placement"},
	{"NUMALIFT_PLACE", "anon:local,anon:bind=1", -EINVAL, 11, 11,
		"class and size are there twice"},
	{"NUMALIFT_PLACE", "anon>=1K:local,anon>=1024:local", -EINVAL, 15, 16,
		"class and size are there twice"},
	{"NUMALIFT_PLACE",
		"anon>=1:local,anon>=2:local,anon>=3:local,anon>=4:local,anon>=5:local,anon>=6:"
		"local,"
		"anon>=7:local,anon>=8:local,anon>=9:local,anon>=10:local,anon>=11:local,"
		"anon>=12:local,anon>=13:local,anon>=14:local",
		-ERANGE, 186, 14, "too many items"},
	{"NUMALIFT_TIERS", "0;", -EINVAL, 2, 0, "not a node list"},
	{"NUMALIFT_TIERS", ";0", -EINVAL, 0, 0, "not a node list"},
	{"NUMALIFT_TIERS", "0;1,x", -EINVAL, 3, 2, "not understood"},
	{"NUMALIFT_TIERS", "0-1;1", -EINVAL, 4, 1, "a node is in two tiers"},
	{"NUMALIFT_TIERS", "0;4096", -ERANGE, 2, 4, "node number above 1023"},
	{"NUMALIFT_TIERS", "0;1;2;3;4;5;6;7;8", -ERANGE, 16, 1, "more than 8 tiers"},
	{"NUMALIFT_BATCH", "3M", -EINVAL, 0, 2, "not a power of two"},
	{"NUMALIFT_BATCH", "1K", -ERANGE, 0, 2, "out of range"},
	{"NUMALIFT_BATCH", "big", -EINVAL, 0, 3, "not a size"},
	{"NUMALIFT_PAGECACHE", "on", -EINVAL, 0, 2, "not a node list"},
	{"NUMALIFT_PAGECACHE", "0,9999", -ERANGE, 2, 4, "node number above 1023"},
	{"NUMALIFT_PAGECACHE", "0,1 2", -EINVAL, 3, 2, "not understood"},
	{"NUMALIFT_SCOPE", "a,,b", -EINVAL, 2, 0, "empty name"},
	{"NUMALIFT_SCOPE", "a,", -EINVAL, 2, 0, "empty name"},
	{"NUMALIFT_SCOPE", "a, !", -EINVAL, 3, 1, "empty name"},
	{"NUMALIFT_SCOPE", "a,/bin/sh", -EINVAL, 2, 7, "a path, not a name"},
	{"NUMALIFT_PROMOTE", "maybe", -EINVAL, 0, 5, "unknown word"},
	{"NUMALIFT_SAMPLER", "wp+", -EINVAL, 0, 3, "unknown sampler"},
	{"NUMALIFT_SAMPLER", "rwp,wp", -EINVAL, 0, 6, "unknown sampler"},
	{"NUMALIFT_BUDGET", "x%", -EINVAL, 0, 2, "not a percentage"},
	{"NUMALIFT_BUDGET", "3%%", -EINVAL, 0, 3, "not a percentage"},
	{"NUMALIFT_BUDGET", "3 percent", -EINVAL, 0, 9, "not a percentage"},
	{"NUMALIFT_BUDGET", "0", -ERANGE, 0, 1, "out of range"},
	{"NUMALIFT_BUDGET", "0.09%", -ERANGE, 0, 5, "out of range"},
	{"NUMALIFT_BUDGET", "100.1", -ERANGE, 0, 5, "out of range"},
	{"NUMALIFT_BUDGET", "99999999999999999999", -ERANGE, 0, 20, "out of range"},
	{"NUMALIFT_WINDOW", "wide", -EINVAL, 0, 4, "not a size"},
	{"NUMALIFT_WINDOW", "5000", -EINVAL, 0, 4, "not a multiple of 4K"},
	{"NUMALIFT_WINDOW", "4M", -ERANGE, 0, 2, "out of range"},
	{"NUMALIFT_FAST_LIMIT", "much", -EINVAL, 0, 4, "not a size"},
	{"NUMALIFT_RATE", "1G/s", -EINVAL, 0, 4, "not a size"},
	{"NUMALIFT_STATS", "stats", -EINVAL, 0, 5, "not an absolute path"},
	{"NUMALIFT_WEIGHTS", "x:1", -EINVAL, 0, 1, "not a node number"},
	{"NUMALIFT_WEIGHTS", "1024:1", -ERANGE, 0, 4, "node number above 1023"},
	{"NUMALIFT_WEIGHTS", "0", -EINVAL, 1, 0, "':WEIGHT' expected"},
	{"NUMALIFT_WEIGHTS", "0:x", -EINVAL, 2, 1, "not a weight"},
	{"NUMALIFT_WEIGHTS", "0:", -EINVAL, 2, 0, "not a weight"},
	{"NUMALIFT_WEIGHTS", "0:0", -ERANGE, 0, 3, "weight not in 1..1000000"},
	{"NUMALIFT_WEIGHTS", "1:1,0:1000001", -ERANGE, 4, 9, "weight not in 1..1000000"},
	{"NUMALIFT_WEIGHTS", "0:1,0:2", -EINVAL, 4, 3, "node is there twice"},
	{"NUMALIFT_WEIGHTS", "0:1;1:2", -EINVAL, 3, 4, "not understood"},
};

Test(config, refusals_say_where_and_change_nothing)
{
	for (size_t i = 0; i < SIZE(refusals); i++) {
		const struct refusal *r = &refusals[i];
		struct lift_config_error err;
		struct lift_config cfg;
		struct lift_config was;
		int rc;

		lift_config_init(&cfg);
		was = cfg;
		rc = lift_config_set(&cfg, r->name, r->value, strlen(r->value), &err);
		cr_expect_eq(rc, r->rc, "'%s': %d", r->value, rc);
		if (rc == 0)
			continue;
		cr_expect_str_eq(err.name, r->name);
		cr_expect_str_eq(err.problem, r->problem, "'%s': %s", r->value, err.problem);
		cr_expect_eq(err.offset, r->offset, "'%s': offset %zu", r->value, err.offset);
		cr_expect_eq(err.length, r->length, "'%s': length %zu", r->value, err.length);
		cr_expect_str_eq(err.kept,
			lift_config_option((size_t)lift_config_find(r->name))->default_text);
		cr_expect_eq(memcmp(&cfg, &was, sizeof(cfg)), 0, "'%s'", r->value);
		cr_expect_eq(set(&cfg, r->name, r->value), r->rc, "without an error to fill");
	}
}

Test(config, a_value_that_was_set_survives_a_bad_one)
{
	struct lift_config_error err;
	struct lift_config cfg;
	char line[400];

	lift_config_init(&cfg);
	cr_assert_eq(set(&cfg, "NUMALIFT_BATCH", "8M"), 0);
	cr_assert_eq(lift_config_set(&cfg, "NUMALIFT_BATCH", "9M", 2, &err), -EINVAL);
	cr_expect_eq(cfg.batch_bytes, 8 * LIFT_MIB);
	cr_expect_null(err.kept);
	lift_config_error_format(&err, "9M", line, sizeof(line));
	cr_expect_str_eq(line, "NUMALIFT_BATCH: '9M' at position 1: not a power of two; accepted: "
			       "auto, or a power of two 4K..64G; keeping what was set before");
	/* Nothing means the default again. */
	cr_assert_eq(set(&cfg, "NUMALIFT_BATCH", " "), 0);
	cr_expect_eq(cfg.batch_bytes, 2 * LIFT_MIB);
	cr_expect_eq(cfg.given, 0);
}

Test(config, unknown_option)
{
	struct lift_config_error err;
	struct lift_config cfg;
	char line[400];

	lift_config_init(&cfg);
	cr_expect_eq(set(&cfg, "NUMALIFT_PALCE", "x"), -ENOENT);
	cr_expect_eq(lift_config_set(&cfg, "", "x", 1, &err), -ENOENT);
	cr_expect_null(err.name);
	lift_config_error_format(&err, "x", line, sizeof(line));
	cr_expect_str_eq(line, "no such option; accepted: the names in the manual; ignored");
}

Test(config, only_the_length_given_is_read)
{
	struct lift_config cfg;

	lift_config_init(&cfg);
	cr_assert_eq(lift_config_set(&cfg, "NUMALIFT_BATCH", "8Mxyz", 2, NULL), 0);
	cr_expect_eq(cfg.batch_bytes, 8 * LIFT_MIB);
	cr_assert_eq(lift_config_set(&cfg, "NUMALIFT_BATCH", "8M\0", 3, NULL), -EINVAL);
	cr_assert_eq(lift_config_set(&cfg, "NUMALIFT", "on\0off", 6, NULL), -EINVAL);
	cr_assert_eq(lift_config_set(&cfg, "NUMALIFT_PLACE", "slab>=1G:local", 6, NULL), -EINVAL);
}

Test(config, tiers_weights_and_pagecache)
{
	struct lift_nodeset want;
	struct lift_config cfg;

	lift_config_init(&cfg);
	cr_assert_eq(set(&cfg, "NUMALIFT_TIERS", "0,1 ; 2-3;1023"), 0);
	cr_assert_eq(cfg.tiers.nr, 3);
	cr_expect_eq(cfg.tiers.source, LIFT_FACT_OVERRIDE);
	want = fake_nodes("2-3");
	cr_expect(lift_nodeset_equal(&cfg.tiers.tier[1], &want));
	want = fake_nodes("1023");
	cr_expect(lift_nodeset_equal(&cfg.tiers.tier[2], &want));

	cr_assert_eq(set(&cfg, "NUMALIFT_WEIGHTS", "7:3, 1:1000000"), 0);
	cr_assert_eq(cfg.weights.nr, 2);
	cr_expect_eq(cfg.weights.item[0].node, 7);
	cr_expect_eq(cfg.weights.item[0].weight, 3);
	cr_expect_eq(cfg.weights.item[1].weight, 1000000);

	cr_assert_eq(set(&cfg, "NUMALIFT_PAGECACHE", "interleave"), 0);
	cr_expect_eq(cfg.pagecache.kind, LIFT_PAGECACHE_INTERLEAVE);
	cr_assert_eq(set(&cfg, "NUMALIFT_PAGECACHE", "0-1,3"), 0);
	cr_expect_eq(cfg.pagecache.kind, LIFT_PAGECACHE_NODES);
	want = fake_nodes("0-1,3");
	cr_expect(lift_nodeset_equal(&cfg.pagecache.nodes.set, &want));
	cr_assert_eq(set(&cfg, "NUMALIFT_PAGECACHE", "fast"), 0);
	cr_expect_eq(cfg.pagecache.nodes.kind, LIFT_NODES_FAST);
	cr_assert_eq(set(&cfg, "NUMALIFT_PAGECACHE", "off"), 0);
	cr_expect_eq(cfg.pagecache.kind, LIFT_PAGECACHE_OFF);
}

Test(config, promotion)
{
	struct lift_config cfg;
	char path[LIFT_STATS_PATH_BYTES + 1];

	lift_config_init(&cfg);
	cr_expect_eq(cfg.promote, LIFT_PROMOTE_ON);
	cr_expect_eq(cfg.sampler, LIFT_SAMPLER_AUTO);
	cr_expect_eq(cfg.budget_ppm, 30000);
	cr_expect_eq(cfg.window_bytes, LIFT_WINDOW_AUTO);
	cr_expect_eq(cfg.fast_limit_bytes, LIFT_NO_LIMIT);
	cr_expect_eq(cfg.rate_bytes, LIFT_NO_LIMIT);
	cr_expect_str_eq(cfg.stats.text, "auto");

	cr_expect_eq(set(&cfg, "NUMALIFT_PROMOTE", "Track"), 0);
	cr_expect_eq(cfg.promote, LIFT_PROMOTE_TRACK);
	for (int i = 0; i < LIFT_SAMPLER_CHOICES; i++) {
		const char *name = lift_sampler_choice_name((enum lift_sampler_choice)i);

		cr_expect_eq(set(&cfg, "NUMALIFT_SAMPLER", name), 0, "%s", name);
		cr_expect_eq((int)cfg.sampler, i);
	}
	cr_expect_eq(set(&cfg, "NUMALIFT_BUDGET", "0.125%"), 0);
	cr_expect_eq(cfg.budget_ppm, 1250);
	cr_expect_eq(set(&cfg, "NUMALIFT_BUDGET", "100"), 0);
	cr_expect_eq(cfg.budget_ppm, 1000000);
	cr_expect_eq(set(&cfg, "NUMALIFT_BUDGET", " 2.50 "), 0);
	cr_expect_eq(cfg.budget_ppm, 25000);
	cr_expect_eq(set(&cfg, "NUMALIFT_WINDOW", "0"), 0);
	cr_expect_eq(cfg.window_bytes, 0);
	cr_expect_eq(set(&cfg, "NUMALIFT_WINDOW", "2M"), 0);
	cr_expect_eq(cfg.window_bytes, 2 * LIFT_MIB);
	cr_expect_eq(set(&cfg, "NUMALIFT_FAST_LIMIT", "3G"), 0);
	cr_expect_eq(cfg.fast_limit_bytes, 3 * LIFT_GIB);
	cr_expect_eq(set(&cfg, "NUMALIFT_FAST_LIMIT", "NONE"), 0);
	cr_expect_eq(cfg.fast_limit_bytes, LIFT_NO_LIMIT);
	cr_expect_eq(set(&cfg, "NUMALIFT_RATE", "0"), 0);
	cr_expect_eq(cfg.rate_bytes, 0);

	cr_expect_eq(set(&cfg, "NUMALIFT_STATS", "/run/x y/%p"), 0);
	cr_expect_str_eq(cfg.stats.text, "/run/x y/%p");
	memset(path, 'p', sizeof(path));
	path[0] = '/';
	path[sizeof(path) - 1] = '\0';
	cr_expect_eq(set(&cfg, "NUMALIFT_STATS", path), -ERANGE);
	path[sizeof(path) - 2] = '\0';
	cr_expect_eq(set(&cfg, "NUMALIFT_STATS", path), 0);
	cr_expect_str_eq(cfg.stats.text, path);
}

Test(config, weights_for_as_many_nodes_as_there_can_be)
{
	struct lift_config cfg;
	char text[1000];
	size_t len = 0;

	lift_config_init(&cfg);
	for (int i = 0; i < LIFT_TOPO_NODES; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%d:1", i ? "," : "", i);
	cr_assert_eq(set(&cfg, "NUMALIFT_WEIGHTS", text), 0);
	cr_assert_eq(cfg.weights.nr, LIFT_TOPO_NODES);
	snprintf(text + len, sizeof(text) - len, ",99:1");
	cr_assert_eq(set(&cfg, "NUMALIFT_WEIGHTS", text), -ERANGE);
}

Test(config, scope)
{
	static const struct {
		const char *scope;
		const char *program;
		bool in;
	} rows[] = {
		{"", "anything", true},
		{"", "", true},
		{"mysqld", "mysqld", true},
		{"mysqld", "mysql", false},
		{"mysqld", "mysqldd", false},
		{"mysql*", "mysqld", true},
		{"mysql*", "mysql", true},
		{"*sql*", "postgresqld", true},
		{"*sql*", "redis", false},
		{"a*b*c", "axxbxxbxc", true},
		{"a*b*c", "axxbxxbx", false},
		{"a**b", "ab", true},
		{"*", "", true},
		{"x", "", false},
		{"redis-server, memcached", "memcached", true},
		{"redis-server, memcached", "sh", false},
		{"!sh", "sh", false},
		{"!sh", "bash", true},
		{"!*sh", "bash", false},
		{"b*,!bash", "bash", false},
		{"!bash,b*", "bash", false},
		{"b*,!bash", "busybox", true},
		{"b*,!bash", "cat", false},
		{"a b", "a b", true},
	};

	for (size_t i = 0; i < SIZE(rows); i++) {
		struct lift_config cfg;

		lift_config_init(&cfg);
		cr_assert_eq(set(&cfg, "NUMALIFT_SCOPE", rows[i].scope), 0);
		cr_expect_eq(lift_config_in_scope(&cfg, rows[i].program), rows[i].in,
			"'%s' in '%s'", rows[i].program, rows[i].scope);
	}
}

Test(config, scope_is_bounded)
{
	struct lift_config cfg;
	char text[LIFT_SCOPE_BYTES + 1];

	lift_config_init(&cfg);
	memset(text, '*', sizeof(text));
	cr_expect_eq(
		lift_config_set(&cfg, "NUMALIFT_SCOPE", text, LIFT_SCOPE_BYTES, NULL), -ERANGE);
	cr_expect_eq(lift_config_set(&cfg, "NUMALIFT_SCOPE", text, LIFT_SCOPE_BYTES - 1, NULL), 0);
	cr_expect(lift_config_in_scope(&cfg, "anything"));
	/* The worst a pattern can do: every star retries, none recurses. */
	for (size_t i = 0; i + 1 < LIFT_SCOPE_BYTES; i += 2)
		text[i] = 'a';
	cr_expect_eq(lift_config_set(&cfg, "NUMALIFT_SCOPE", text, LIFT_SCOPE_BYTES - 1, NULL), 0);
	memset(text, 'a', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	cr_expect(lift_config_in_scope(&cfg, text));
}

Test(config, the_largest_threshold_reached_decides)
{
	static const struct {
		uint64_t bytes;
		enum lift_how how;
	} rows[] = {
		{0, LIFT_HOW_LOCAL},
		{LIFT_MIB - 1, LIFT_HOW_LOCAL},
		{LIFT_MIB, LIFT_HOW_BIND},
		{LIFT_GIB - 1, LIFT_HOW_BIND},
		{LIFT_GIB, LIFT_HOW_INTERLEAVE},
		{UINT64_MAX, LIFT_HOW_INTERLEAVE},
	};
	struct lift_config cfg;

	lift_config_init(&cfg);
	cr_assert_eq(
		set(&cfg, "NUMALIFT_PLACE", "anon>=1G:interleave,file>=1:weighted,anon>=1M:bind=0"),
		0);
	for (size_t i = 0; i < SIZE(rows); i++)
		cr_expect_eq(lift_config_rule(&cfg, LIFT_CLASS_ANON, rows[i].bytes)->how,
			rows[i].how, "row %zu", i);
	cr_expect_eq(lift_config_rule(&cfg, LIFT_CLASS_SLAB, LIFT_GIB)->how, LIFT_HOW_LOCAL);
	cr_expect_null(lift_config_rule(&cfg, LIFT_CLASS_MAX, 1));
}

Test(config, a_placement_alone_is_for_the_rest)
{
	static const struct {
		const char *value;
		int rc;
		enum lift_how slab, anon, file;
	} rows[] = {
		{"bind=0-1", 0, LIFT_HOW_BIND, LIFT_HOW_BIND, LIFT_HOW_BIND},
		{" weighted ", 0, LIFT_HOW_WEIGHTED, LIFT_HOW_WEIGHTED, LIFT_HOW_WEIGHTED},
		{"preferred=0,1,file:interleave", 0, LIFT_HOW_PREFERRED, LIFT_HOW_PREFERRED,
			LIFT_HOW_INTERLEAVE},
		{"slab:local,interleave", 0, LIFT_HOW_LOCAL, LIFT_HOW_INTERLEAVE,
			LIFT_HOW_INTERLEAVE},
		{"anon>=1G:interleave,local", 0, LIFT_HOW_LOCAL, LIFT_HOW_LOCAL, LIFT_HOW_LOCAL},
		{"local,interleave", -EINVAL, 0, 0, 0},
		{"bind", -EINVAL, 0, 0, 0},
		{"bind=", -EINVAL, 0, 0, 0},
		{"bind=2000", -ERANGE, 0, 0, 0},
		{"local:slab", -EINVAL, 0, 0, 0},
	};

	for (size_t i = 0; i < SIZE(rows); i++) {
		struct lift_config cfg;

		lift_config_init(&cfg);
		cr_assert_eq(lift_config_set(&cfg, "NUMALIFT_PLACE", rows[i].value,
				     strlen(rows[i].value), NULL),
			rows[i].rc, "row %zu", i);
		if (rows[i].rc)
			continue;
		cr_expect_eq(lift_config_rule(&cfg, LIFT_CLASS_SLAB, 1)->how, rows[i].slab,
			"row %zu", i);
		cr_expect_eq(lift_config_rule(&cfg, LIFT_CLASS_ANON, 1)->how, rows[i].anon,
			"row %zu", i);
		cr_expect_eq(lift_config_rule(&cfg, LIFT_CLASS_FILE, 1)->how, rows[i].file,
			"row %zu", i);
	}
}

Test(config, names)
{
	cr_expect_str_eq(lift_how_name(LIFT_HOW_PREFERRED), "preferred");
	cr_expect_str_eq(lift_how_name(LIFT_HOW_MAX), "?");
	cr_expect_str_eq(lift_how_name((enum lift_how)99), "?");
}

Test(config_error, reads_well)
{
	static const struct {
		const char *name;
		const char *value;
		const char *line;
	} rows[] = {
		{"NUMALIFT_PLACE", "slub:local",
			"NUMALIFT_PLACE: 'slub' at position 1: unknown class; accepted: "
			"[slab|anon|file[>=SIZE]:]local|interleave|weighted|bind=NODES|preferred="
			"NODES,...; "
			"using slab:local,anon:local,file:interleave"},
		{"NUMALIFT_LOG", "  ~lo ud~ ",
			"NUMALIFT_LOG: '~lo ud~' at position 3: unknown word; accepted: "
			"off|error|warn|info|debug; using warn"},
		{"NUMALIFT_WEIGHTS", "0:1,1",
			"NUMALIFT_WEIGHTS: at position 6: ':WEIGHT' expected; accepted: "
			"NODE:WEIGHT,... like 0:3,1:1; ignored"},
		{"NUMALIFT", "\x1b[31m'on'\\\x80",
			"NUMALIFT: '\\x1b[31m\\x27on\\x27\\x5c\\x80' at position 1: unknown word; "
			"accepted: on|off; using on"},
		{"NUMALIFT_LOG", "0123456789012345678901234567890123456789x",
			"NUMALIFT_LOG: '0123456789012345678901234567890123456789...' at position "
			"1: "
			"unknown word; accepted: off|error|warn|info|debug; using warn"},
	};

	for (size_t i = 0; i < SIZE(rows); i++) {
		struct lift_config_error err;
		struct lift_config cfg;
		char line[LIFT_CONFIG_ERROR_BYTES];
		size_t len;

		lift_config_init(&cfg);
		cr_assert_lt(lift_config_set(&cfg, rows[i].name, rows[i].value,
				     strlen(rows[i].value), &err),
			0);
		len = lift_config_error_format(&err, rows[i].value, line, sizeof(line));
		cr_expect_str_eq(line, rows[i].line, "%s", line);
		cr_expect_eq(len, strlen(line));
	}
}

Test(config_error, without_the_value_nothing_is_quoted)
{
	struct lift_config_error err;
	struct lift_config cfg;
	char line[LIFT_CONFIG_ERROR_BYTES];

	lift_config_init(&cfg);
	cr_assert_lt(lift_config_set(&cfg, "NUMALIFT", "x", 1, &err), 0);
	lift_config_error_format(&err, NULL, line, sizeof(line));
	cr_expect_str_eq(line, "NUMALIFT: at position 1: unknown word; accepted: on|off; using on");
}

/* Every option, with the ugliest value there is: one line, whole, within the bound. */
Test(config_error, always_fits)
{
	static char ugly[100000];

	memset(ugly, '\n', sizeof(ugly));
	ugly[0] = '\x01';
	ugly[sizeof(ugly) - 1] = '\x02';
	for (size_t i = 0; lift_config_option(i); i++) {
		const char *name = lift_config_option(i)->name;
		struct lift_config_error err;
		struct lift_config cfg;
		char wide[1000];
		char line[LIFT_CONFIG_ERROR_BYTES];
		size_t len;

		lift_config_init(&cfg);
		if (lift_config_set(&cfg, name, ugly, sizeof(ugly), &err) == 0)
			continue;
		len = lift_config_error_format(&err, ugly, line, sizeof(line));
		cr_expect_eq(lift_config_error_format(&err, ugly, wide, sizeof(wide)), len,
			"%s is cut", name);
		cr_expect_eq(strlen(line), len);
		cr_expect_null(strchr(line, '\n'));
	}
	for (size_t i = 0; i < SIZE(refusals); i++) {
		struct lift_config_error err;
		struct lift_config cfg;
		char wide[1000];
		char line[LIFT_CONFIG_ERROR_BYTES];

		lift_config_init(&cfg);
		lift_config_set(
			&cfg, refusals[i].name, refusals[i].value, strlen(refusals[i].value), &err);
		cr_expect_eq(lift_config_error_format(&err, refusals[i].value, line, sizeof(line)),
			lift_config_error_format(&err, refusals[i].value, wide, sizeof(wide)));
	}
}

Test(config_error, small_buffers_are_not_overrun)
{
	struct lift_config_error err;
	struct lift_config cfg;
	char whole[LIFT_CONFIG_ERROR_BYTES];
	size_t len;

	lift_config_init(&cfg);
	cr_assert_lt(lift_config_set(&cfg, "NUMALIFT_PLACE", "slub:x", 6, &err), 0);
	len = lift_config_error_format(&err, "slub:x", whole, sizeof(whole));
	for (size_t n = 0; n <= len + 1; n++) {
		char line[LIFT_CONFIG_ERROR_BYTES + 1];
		size_t got;

		memset(line, '#', sizeof(line));
		got = lift_config_error_format(&err, "slub:x", line, n);
		cr_assert_eq(got, n ? n - 1 : 0);
		cr_assert_eq(memcmp(line, whole, got), 0);
		cr_assert(n == 0 || line[got] == '\0');
		cr_assert_eq(line[n], '#');
	}
}
