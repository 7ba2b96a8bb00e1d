#include <errno.h>
#include <stdio.h>

#include <criterion/criterion.h>

#include "policy/config.h"
#include "tests/fake/fake_machine.h"

/* "0,1;2" for what was built, so that a row shows the whole ranking. */
static void tiers_text(const struct lift_tiers *tiers, char *buf, size_t n)
{
	size_t len = 0;

	buf[0] = '\0';
	for (unsigned i = 0; i < tiers->nr; i++) {
		const char *sep = i ? ";" : "";

		lift_nodeset_foreach (node, &tiers->tier[i]) {
			len += (size_t)snprintf(buf + len, n - len, "%s%d", sep, node);
			sep = ",";
		}
	}
}

static void expect_tiers(const struct lift_tiers *tiers, const char *want,
	enum lift_fact_source source, const char *what)
{
	char got[512];

	tiers_text(tiers, got, sizeof(got));
	cr_expect_str_eq(got, want, "%s: %s instead of %s", what, got, want);
	cr_expect_eq(
		tiers->source, source, "%s: from %s", what, lift_fact_source_name(tiers->source));
}

Test(tiers, ready_made_machines)
{
	static const struct {
		void (*make)(struct fake_machine *m);
		const char *want;
		enum lift_fact_source source;
	} rows[] = {
		{fake_machine_one, "0", LIFT_FACT_SYSFS},
		{fake_machine_flat_two, "0,1", LIFT_FACT_SYSFS},
		{fake_machine_two_one_slow, "0;1", LIFT_FACT_DISTANCE},
		{fake_machine_three, "0,1;2", LIFT_FACT_HMAT},
		{fake_machine_holes, "0,4;1023", LIFT_FACT_DISTANCE},
		{fake_machine_memoryless, "0,2", LIFT_FACT_SYSFS},
		{fake_machine_eight, "0,1,2,3;4,5,6,7", LIFT_FACT_DISTANCE},
	};
	static struct fake_machine m;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		rows[i].make(&m);
		expect_tiers(&m.tiers, rows[i].want, rows[i].source, rows[i].want);
	}
}

/* Three nodes with memory: latency, bandwidth, kernel tier, CPU. */
struct facts {
	uint32_t latency[3];
	uint32_t bandwidth[3];
	int tier[3];
	bool cpu[3];
	const char *want;
	enum lift_fact_source source;
};

Test(tiers, first_source_that_says_something)
{
	static const struct facts rows[] = {
		/* both figures; a faster node without CPUs (HBM) comes first */
		{{100, 100, 110}, {300, 300, 900}, {4, 4, 4}, {1, 1, 0}, "2;0,1", LIFT_FACT_HMAT},
		/* latency alone, bandwidth alone */
		{{80, 300, 81}, {0, 0, 0}, {-1, -1, -1}, {1, 1, 1}, "0,2;1", LIFT_FACT_HMAT},
		{{0, 0, 0}, {100, 30, 10}, {-1, -1, -1}, {1, 1, 1}, "0;1;2", LIFT_FACT_HMAT},
		/* one figure is not complete: the other decides */
		{{80, 0, 80}, {100, 100, 10}, {-1, -1, -1}, {1, 1, 1}, "0,1;2", LIFT_FACT_HMAT},
		/* figures say all are alike: so they are, whatever has CPUs */
		{{80, 80, 90}, {0, 0, 0}, {4, 4, 22}, {1, 1, 0}, "0,1,2", LIFT_FACT_HMAT},
		/* figures not complete: kernel tiers, by number and not by nearness */
		{{80, 80, 0}, {0, 0, 0}, {4, 5, 22}, {1, 1, 0}, "0;1;2", LIFT_FACT_KERNEL_TIER},
		{{0, 0, 0}, {0, 0, 0}, {70, 4, 4}, {1, 1, 1}, "1,2;0", LIFT_FACT_KERNEL_TIER},
		/* kernel tiers that do not differ, or are not complete, say nothing */
		{{0, 0, 0}, {0, 0, 0}, {4, 4, 4}, {1, 0, 1}, "0,2;1", LIFT_FACT_DISTANCE},
		{{0, 0, 0}, {0, 0, 0}, {4, 70, -1}, {1, 0, 1}, "0,2;1", LIFT_FACT_DISTANCE},
		/* nobody has CPUs: no ranking */
		{{0, 0, 0}, {0, 0, 0}, {-1, -1, -1}, {0, 0, 0}, "0,1,2", LIFT_FACT_SYSFS},
		/* the largest figures do not overflow */
		{{UINT32_MAX, 1, UINT32_MAX}, {1, UINT32_MAX, 1}, {-1, -1, -1}, {1, 1, 1}, "1;0,2",
			LIFT_FACT_HMAT},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		static struct fake_machine m;
		char what[20];

		fake_machine_init(&m);
		/* No memory, no say: first, last, its missing figures and CPUs spoil nothing. */
		fake_machine_add(&m, 8, false, 0);
		for (int n = 0; n < 3; n++) {
			struct lift_topo_node *node =
				fake_machine_add(&m, n, rows[i].cpu[n], LIFT_GIB);

			node->read_latency_ns = rows[i].latency[n];
			node->read_bandwidth_mbs = rows[i].bandwidth[n];
			node->kernel_tier = rows[i].tier[n];
		}
		fake_machine_add(&m, 9, false, 0);
		fake_machine_done(&m);
		snprintf(what, sizeof(what), "row %zu", i);
		expect_tiers(&m.tiers, rows[i].want, rows[i].source, what);
	}
}

Test(tiers, factor_is_measured_from_the_fastest_of_the_tier)
{
	static struct fake_machine m;

	/* 100..150 is one tier, 151 begins the next: a chain of small steps is not one tier. */
	fake_machine_init(&m);
	for (int n = 0; n < 4; n++) {
		static const uint32_t latency[] = {150, 100, 151, 226};

		fake_machine_add(&m, n, true, LIFT_GIB)->read_latency_ns = latency[n];
	}
	fake_machine_done(&m);
	expect_tiers(&m.tiers, "0,1;2,3", LIFT_FACT_HMAT, "150/151");
	m.topo.node[3].read_latency_ns = 227;
	fake_machine_done(&m);
	expect_tiers(&m.tiers, "0,1;2;3", LIFT_FACT_HMAT, "227");
}

Test(tiers, as_many_nodes_as_there_can_be_in_any_order)
{
	struct lift_nodeset want = fake_nodes("0-31");
	static struct fake_machine m;

	/* The higher half is slower; described from the highest id down. */
	fake_machine_init(&m);
	for (int n = LIFT_TOPO_NODES - 1; n >= 0; n--)
		fake_machine_add(&m, n, true, LIFT_GIB)->read_latency_ns = n < 32 ? 100 : 200;
	fake_machine_done(&m);
	cr_assert_eq(m.tiers.nr, 2);
	cr_expect(lift_nodeset_equal(&m.tiers.tier[0], &want));
	cr_expect_eq(lift_nodeset_count(&m.tiers.tier[1]), 32);
}

Test(tiers, cost_comes_before_id)
{
	static struct fake_machine m;

	fake_machine_init(&m);
	fake_machine_add(&m, 9, true, LIFT_GIB)->kernel_tier = 0;
	fake_machine_add(&m, 2, true, LIFT_GIB)->kernel_tier = 3;
	fake_machine_add(&m, 5, true, LIFT_GIB)->kernel_tier = 2;
	fake_machine_add(&m, 7, true, LIFT_GIB)->kernel_tier = 0;
	fake_machine_done(&m);
	expect_tiers(&m.tiers, "7,9;5;2", LIFT_FACT_KERNEL_TIER, "reversed");
}

Test(tiers, distance_ranks_nodes_without_cpus)
{
	static struct fake_machine m;

	fake_machine_init(&m);
	fake_machine_add(&m, 0, true, LIFT_GIB);
	fake_machine_add(&m, 1, false, LIFT_GIB);
	fake_machine_add(&m, 2, false, LIFT_GIB);
	fake_machine_distance(&m, 0, 1, 60);
	fake_machine_distance(&m, 0, 2, 17);
	fake_machine_done(&m);
	expect_tiers(&m.tiers, "0;2;1", LIFT_FACT_DISTANCE, "17 and 60");
	fake_machine_distance(&m, 0, 1, 20);
	fake_machine_done(&m);
	expect_tiers(&m.tiers, "0;1,2", LIFT_FACT_DISTANCE, "17 and 20");
	fake_machine_distance(&m, 0, 1, 0);
	fake_machine_distance(&m, 0, 2, 0);
	fake_machine_done(&m);
	expect_tiers(&m.tiers, "0;1,2", LIFT_FACT_SYSFS, "no distances");
}

Test(tiers, more_than_fit_join_the_last)
{
	static struct fake_machine m;

	fake_machine_init(&m);
	for (int n = 0; n < 10; n++)
		fake_machine_add(&m, n, true, LIFT_GIB)->kernel_tier = 100 - n;
	fake_machine_done(&m);
	expect_tiers(&m.tiers, "9;8;7;6;5;4;3;0,1,2", LIFT_FACT_KERNEL_TIER, "ten");
}

static struct lift_tiers override_of(const char *text)
{
	struct lift_config cfg;

	lift_config_init(&cfg);
	cr_assert_eq(lift_config_set(&cfg, "NUMALIFT_TIERS", text, strlen(text), NULL), 0);
	return cfg.tiers;
}

Test(tiers, override_wins)
{
	static const struct {
		const char *override;
		const char *want;
		enum lift_fact_source source;
	} rows[] = {
		{"2;0,1", "2;0,1", LIFT_FACT_OVERRIDE},
		{"0;1;2", "0;1;2", LIFT_FACT_OVERRIDE},
		/* left out: slower than all that is named */
		{"0", "0;1,2", LIFT_FACT_OVERRIDE},
		{"1;0", "1;0;2", LIFT_FACT_OVERRIDE},
		/* what is not there is dropped, with the tier that it leaves empty */
		{"7;0,9;8;1", "0;1;2", LIFT_FACT_OVERRIDE},
		/* nothing of it is there: as if it had not been said */
		{"7;8", "0,1;2", LIFT_FACT_HMAT},
		{"", "0,1;2", LIFT_FACT_HMAT},
	};
	static struct fake_machine m;

	fake_machine_three(&m);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct lift_tiers override = override_of(rows[i].override);
		struct lift_tiers got;

		cr_assert_eq(lift_tiers_build(&m.topo, &override, &got), 0);
		expect_tiers(&got, rows[i].want, rows[i].source, rows[i].override);
	}
}

Test(tiers, override_that_is_full_takes_the_rest_into_its_last)
{
	struct lift_tiers override = override_of("0;1;2;3;4;5;6;7");
	static struct fake_machine m;
	struct lift_tiers got;

	fake_machine_init(&m);
	for (int n = 0; n < 10; n++)
		fake_machine_add(&m, n, true, LIFT_GIB);
	cr_assert_eq(lift_tiers_build(&m.topo, &override, &got), 0);
	expect_tiers(&got, "0;1;2;3;4;5;6;7,8,9", LIFT_FACT_OVERRIDE, "full");
}

Test(tiers, override_that_names_a_node_twice_counts_the_first)
{
	struct lift_tiers override = {.nr = 2};
	static struct fake_machine m;
	struct lift_tiers got;

	override.tier[0] = fake_nodes("2");
	override.tier[1] = fake_nodes("0-2");
	fake_machine_three(&m);
	cr_assert_eq(lift_tiers_build(&m.topo, &override, &got), 0);
	expect_tiers(&got, "2;0,1", LIFT_FACT_OVERRIDE, "twice");
}

Test(tiers, failures_touch_nothing)
{
	static struct fake_machine m;
	struct lift_tiers got;
	struct lift_tiers was;

	memset(&got, 0x5a, sizeof(got));
	was = got;
	fake_machine_init(&m);
	cr_assert_eq(lift_tiers_build(&m.topo, NULL, &got), -ENODEV);
	fake_machine_add(&m, 0, true, 0);
	cr_assert_eq(lift_tiers_build(&m.topo, NULL, &got), -ENODEV);
	m.topo.nr = LIFT_TOPO_NODES + 1;
	cr_assert_eq(lift_tiers_build(&m.topo, NULL, &got), -EINVAL);
	cr_assert_eq(memcmp(&got, &was, sizeof(got)), 0);
}

Test(tiers, rank_of_a_node)
{
	static struct fake_machine m;

	fake_machine_holes(&m);
	cr_expect_eq(lift_tiers_of(&m.tiers, 0), 0);
	cr_expect_eq(lift_tiers_of(&m.tiers, 4), 0);
	cr_expect_eq(lift_tiers_of(&m.tiers, 1023), 1);
	cr_expect_eq(lift_tiers_of(&m.tiers, 1), -1);
	cr_expect_eq(lift_tiers_of(&m.tiers, -1), -1);
	cr_expect_eq(lift_tiers_fast(&m.tiers), &m.tiers.tier[0]);
}
