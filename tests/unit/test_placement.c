#include <errno.h>
#include <stdio.h>

#include <criterion/criterion.h>

#include "tests/fake/fake_machine.h"

#define SIZE(a) (sizeof(a) / sizeof((a)[0]))

#define PREFERRED LIFT_MPOL_PREFERRED
#define BIND LIFT_MPOL_BIND
#define MANY LIFT_MPOL_PREFERRED_MANY
#define WEIGHTED LIFT_MPOL_WEIGHTED_INTERLEAVE
#define FLAG LIFT_MPOL_F_NUMA_BALANCING

/* Bits of a row that take something away from, or add something to, a machine with every feature.
 */
enum {
	BALANCING = 1 << 0,
	ZONE_RECLAIM = 1 << 1,
	NO_MANY = 1 << 2,
	NO_WEIGHTED = 1 << 4,
	NO_FLAG_MANY = 1 << 5,
	NO_FLAG_BIND = 1 << 6,
	/* what 6.1 has: flag with bind only, no weighted interleave */
	OLD = NO_WEIGHTED | NO_FLAG_MANY,
};

static void adjust(struct fake_machine *m, unsigned how, const char *allowed)
{
	m->view.kernel_balancing = how & BALANCING;
	m->view.zone_reclaim = how & ZONE_RECLAIM;
	m->view.has_preferred_many = !(how & NO_MANY);
	m->view.has_weighted_interleave = !(how & NO_WEIGHTED);
	m->view.balancing_flag_preferred_many = !(how & NO_FLAG_MANY);
	m->view.balancing_flag_bind = !(how & NO_FLAG_BIND);
	if (allowed)
		m->view.allowed = fake_nodes(allowed);
}

static void set_place(struct lift_config *cfg, const char *place, const char *weights)
{
	lift_config_init(cfg);
	cr_assert_eq(lift_config_set(cfg, "NUMALIFT_PLACE", place, strlen(place), NULL), 0);
	cr_assert_eq(lift_config_set(cfg, "NUMALIFT_WEIGHTS", weights, strlen(weights), NULL), 0);
}

static void expect_decision(const struct lift_decision *d, enum lift_place_kind kind, int mode,
	const char *nodes, const char *what)
{
	struct lift_nodeset want = fake_nodes(nodes);

	cr_expect_eq(d->kind, kind, "%s: %s (%s)", what, lift_place_kind_name(d->kind), d->why);
	cr_expect_eq(d->mode, mode, "%s: mode %#x (%s)", what, (unsigned)d->mode, d->why);
	cr_expect(lift_nodeset_equal(&d->nodes, &want), "%s: nodes (%s)", what, d->why);
	cr_expect(d->why && *d->why, "%s: no reason", what);
}

struct row {
	void (*make)(struct fake_machine *m);
	const char *place;
	const char *allowed; /* NULL: all */
	unsigned how;
	int program_mode;
	int cpu_node;
	enum lift_place_kind kind;
	int mode;
	const char *nodes;
};

static void run(const struct row *rows, size_t nr)
{
	for (size_t i = 0; i < nr; i++) {
		static struct fake_machine m;
		struct lift_decision d;
		struct lift_config cfg;
		char what[200];

		rows[i].make(&m);
		adjust(&m, rows[i].how, rows[i].allowed);
		set_place(&cfg, rows[i].place, "");
		cr_assert_eq(lift_place_decide(&cfg, &m.view, LIFT_CLASS_ANON, 64 * LIFT_MIB,
				     rows[i].program_mode, rows[i].cpu_node, &d),
			0);
		snprintf(what, sizeof(what), "row %zu, %s", i, rows[i].place);
		expect_decision(&d, rows[i].kind, rows[i].mode, rows[i].nodes, what);
	}
}

Test(placement, order_of_authority)
{
	static const struct row rows[] = {
		/* one node, or one that is allowed, or one with memory that is */
		{fake_machine_one, "anon:bind=0", NULL, 0, 0, 0, LIFT_PLACE_NONE, 0, ""},
		{fake_machine_flat_two, "anon:bind=1", "1", 0, 0, 0, LIFT_PLACE_NONE, 0, ""},
		{fake_machine_memoryless, "anon:bind=0", "0-1", 0, 0, 0, LIFT_PLACE_NONE, 0, ""},
		{fake_machine_flat_two, "anon:bind=1", "", 0, 0, 0, LIFT_PLACE_NONE, 0, ""},
		/* the cpuset narrows what is named */
		{fake_machine_three, "anon:bind=0-2", "0,2", 0, 0, 0, LIFT_PLACE_NONE, 0, ""},
		{fake_machine_eight, "anon:bind=0-3", "1,4-7", 0, 0, 0, LIFT_PLACE_NODES, BIND,
			"1"},
		/* the program's own policy, or one that cannot be read */
		{fake_machine_three, "anon:bind=1", NULL, 0, 0, 0, LIFT_PLACE_NODES, BIND, "1"},
		{fake_machine_three, "anon:bind=1", NULL, 0, BIND, 0, LIFT_PLACE_NONE, 0, ""},
		{fake_machine_three, "anon:bind=1", NULL, 0, LIFT_MPOL_LOCAL, 0, LIFT_PLACE_NONE, 0,
			""},
		{fake_machine_three, "anon:bind=1", NULL, 0, 3 | LIFT_MPOL_F_STATIC_NODES, 0,
			LIFT_PLACE_NONE, 0, ""},
		{fake_machine_three, "anon:bind=1", NULL, 0, -1, 0, LIFT_PLACE_NONE, 0, ""},
		/* zone_reclaim_mode comes before the class */
		{fake_machine_three, "anon:bind=1", NULL, ZONE_RECLAIM, 0, 0, LIFT_PLACE_NONE, 0,
			""},
	};

	run(rows, SIZE(rows));
}

Test(placement, local)
{
	static const struct row rows[] = {
		{fake_machine_flat_two, "anon:local", NULL, 0, 0, 0, LIFT_PLACE_NONE, 0, ""},
		{fake_machine_memoryless, "anon:local", NULL, 0, 0, 1, LIFT_PLACE_NONE, 0, ""},
		{fake_machine_three, "anon:local", NULL, 0, 0, 0, LIFT_PLACE_NODES, MANY, "0-1"},
		{fake_machine_holes, "anon:local", NULL, 0, 0, 4, LIFT_PLACE_NODES, MANY, "0,4"},
		/* one tier is left of two */
		{fake_machine_three, "anon:local", "0-1", 0, 0, 0, LIFT_PLACE_NONE, 0, ""},
		{fake_machine_eight, "anon:local", "4-7", 0, 0, 0, LIFT_PLACE_NONE, 0, ""},
		{fake_machine_eight, "anon:local", "3-7", 0, 0, 0, LIFT_PLACE_NODES, MANY, "3"},
		/* no PREFERRED_MANY */
		{fake_machine_three, "anon:local", NULL, NO_MANY, 0, 1, LIFT_PLACE_NODES, PREFERRED,
			"1"},
		{fake_machine_three, "anon:local", NULL, NO_MANY, 0, 2, LIFT_PLACE_NODES, PREFERRED,
			"0"},
		{fake_machine_three, "anon:local", NULL, NO_MANY, 0, -1, LIFT_PLACE_NONE, 0, ""},
		{fake_machine_two_one_slow, "anon:local", NULL, NO_MANY, 0, -1, LIFT_PLACE_NODES,
			PREFERRED, "0"},
		/* kernel balancing */
		{fake_machine_three, "anon:local", NULL, BALANCING, 0, 0, LIFT_PLACE_NODES,
			MANY | FLAG, "0-1"},
		{fake_machine_three, "anon:local", NULL, BALANCING | OLD, 0, 0, LIFT_PLACE_NONE, 0,
			""},
		{fake_machine_three, "anon:local", NULL, BALANCING | NO_MANY, 0, 0, LIFT_PLACE_NONE,
			0, ""},
		{fake_machine_flat_two, "anon:local", NULL, BALANCING, 0, 0, LIFT_PLACE_NONE, 0,
			""},
	};

	run(rows, SIZE(rows));
}

Test(placement, interleave)
{
	static const struct row rows[] = {
		{fake_machine_flat_two, "anon:interleave", NULL, 0, 0, 0, LIFT_PLACE_CHUNKS,
			PREFERRED, "0-1"},
		{fake_machine_memoryless, "anon:interleave", NULL, 0, 0, 0, LIFT_PLACE_CHUNKS,
			PREFERRED, "0,2"},
		{fake_machine_three, "anon:interleave", NULL, 0, 0, 0, LIFT_PLACE_CHUNKS, PREFERRED,
			"0-1"},
		{fake_machine_eight, "anon:interleave", "1-2,5", 0, 0, 0, LIFT_PLACE_CHUNKS,
			PREFERRED, "1-2"},
		/* one fast node: as local */
		{fake_machine_two_one_slow, "anon:interleave", NULL, 0, 0, 0, LIFT_PLACE_NODES,
			MANY, "0"},
		{fake_machine_three, "anon:interleave", "1-2", 0, 0, 0, LIFT_PLACE_NODES, MANY,
			"1"},
		/* kernel balancing: one tier stays plain, several take the flag where there is one
		 */
		{fake_machine_flat_two, "anon:interleave", NULL, BALANCING, 0, 0, LIFT_PLACE_CHUNKS,
			PREFERRED, "0-1"},
		{fake_machine_three, "anon:interleave", NULL, BALANCING, 0, 0, LIFT_PLACE_CHUNKS,
			MANY | FLAG, "0-1"},
		{fake_machine_three, "anon:interleave", NULL, BALANCING | OLD, 0, 0,
			LIFT_PLACE_CHUNKS, PREFERRED, "0-1"},
	};

	run(rows, SIZE(rows));
}

Test(placement, bind_and_preferred)
{
	static const struct row rows[] = {
		{fake_machine_three, "anon:bind=2", NULL, 0, 0, 0, LIFT_PLACE_NODES, BIND, "2"},
		{fake_machine_three, "anon:bind=fast", NULL, 0, 0, 0, LIFT_PLACE_NODES, BIND,
			"0-1"},
		{fake_machine_three, "anon:bind=1,9", NULL, 0, 0, 0, LIFT_PLACE_NODES, BIND, "1"},
		{fake_machine_memoryless, "anon:bind=1", NULL, 0, 0, 0, LIFT_PLACE_NONE, 0, ""},
		{fake_machine_three, "anon:bind=9", NULL, 0, 0, 0, LIFT_PLACE_NONE, 0, ""},
		/* all nodes are never named */
		{fake_machine_three, "anon:bind=all", NULL, 0, 0, 0, LIFT_PLACE_NONE, 0, ""},
		{fake_machine_three, "anon:preferred=0-2", NULL, 0, 0, 0, LIFT_PLACE_NONE, 0, ""},
		{fake_machine_flat_two, "anon:bind=fast", NULL, 0, 0, 0, LIFT_PLACE_NONE, 0, ""},
		/* balancing */
		{fake_machine_three, "anon:bind=2", NULL, BALANCING, 0, 0, LIFT_PLACE_NODES,
			BIND | FLAG, "2"},
		{fake_machine_three, "anon:bind=2", NULL, BALANCING | NO_FLAG_BIND, 0, 0,
			LIFT_PLACE_NODES, BIND, "2"},
		{fake_machine_three, "anon:preferred=2", NULL, 0, 0, 0, LIFT_PLACE_NODES, PREFERRED,
			"2"},
		{fake_machine_three, "anon:preferred=1-2", NULL, 0, 0, 0, LIFT_PLACE_NODES, MANY,
			"1-2"},
		{fake_machine_three, "anon:preferred=1-2", NULL, NO_MANY, 0, 1, LIFT_PLACE_NODES,
			PREFERRED, "1"},
		{fake_machine_eight, "anon:preferred=4-5", NULL, NO_MANY, 0, 1, LIFT_PLACE_NODES,
			PREFERRED, "5"},
		{fake_machine_three, "anon:preferred=2", NULL, BALANCING, 0, 0, LIFT_PLACE_NODES,
			MANY | FLAG, "2"},
		{fake_machine_three, "anon:preferred=2", NULL, BALANCING | OLD, 0, 0,
			LIFT_PLACE_NODES, PREFERRED, "2"},
		{fake_machine_three, "anon:preferred=1-2", NULL, BALANCING | OLD, 0, 0,
			LIFT_PLACE_NODES, MANY, "1-2"},
	};

	run(rows, SIZE(rows));
}

Test(placement, weighted)
{
	static const struct {
		void (*make)(struct fake_machine *m);
		const char *weights;
		const char *allowed;
		unsigned how;
		enum lift_place_kind kind;
		int mode;
		const char *nodes;
	} rows[] = {
		{fake_machine_three, "", NULL, 0, LIFT_PLACE_NODES, WEIGHTED, "0-2"},
		{fake_machine_three, "", "1-2", 0, LIFT_PLACE_NODES, WEIGHTED, "1-2"},
		{fake_machine_three, "", NULL, NO_WEIGHTED, LIFT_PLACE_CHUNKS, PREFERRED, "0-2"},
		/* the user's weights are not the kernel's */
		{fake_machine_three, "0:3,2:1", NULL, 0, LIFT_PLACE_CHUNKS, PREFERRED, "0,2"},
		{fake_machine_three, "0:3,2:1", NULL, BALANCING, LIFT_PLACE_CHUNKS, MANY | FLAG,
			"0,2"},
		{fake_machine_three, "0:3,2:1", NULL, BALANCING | OLD, LIFT_PLACE_CHUNKS, PREFERRED,
			"0,2"},
		/* fewer than two are left: as local */
		{fake_machine_three, "0:3,9:1", NULL, 0, LIFT_PLACE_NODES, MANY, "0-1"},
		{fake_machine_flat_two, "9:1", NULL, 0, LIFT_PLACE_NONE, 0, ""},
	};

	for (size_t i = 0; i < SIZE(rows); i++) {
		static struct fake_machine m;
		struct lift_decision d;
		struct lift_config cfg;
		char what[20];

		rows[i].make(&m);
		adjust(&m, rows[i].how, rows[i].allowed);
		set_place(&cfg, "anon:weighted", rows[i].weights);
		cr_assert_eq(
			lift_place_decide(&cfg, &m.view, LIFT_CLASS_ANON, LIFT_GIB, 0, 0, &d), 0);
		snprintf(what, sizeof(what), "row %zu", i);
		expect_decision(&d, rows[i].kind, rows[i].mode, rows[i].nodes, what);
		cr_expect_eq(d.by_weight, rows[i].kind == LIFT_PLACE_CHUNKS, "%s", what);
	}
}

/* "Fast" is the fastest tier of which anything may be used. */
Test(placement, fast_within_the_cpuset)
{
	static struct fake_machine m;
	struct lift_decision d;
	struct lift_config cfg;

	fake_machine_init(&m);
	for (int n = 0; n < 6; n++)
		fake_machine_add(&m, n, true, LIFT_GIB)->kernel_tier = n / 2;
	fake_machine_done(&m);
	m.view.allowed = fake_nodes("2-5");
	set_place(&cfg, "anon:local", "");
	cr_assert_eq(lift_place_decide(&cfg, &m.view, LIFT_CLASS_ANON, 1, 0, 4, &d), 0);
	expect_decision(&d, LIFT_PLACE_NODES, MANY, "2-3", "two of three tiers");
}

Test(placement, class_and_size_choose_the_rule)
{
	static struct fake_machine m;
	struct lift_decision d;
	struct lift_config cfg;

	fake_machine_flat_two(&m);
	set_place(&cfg, "anon>=1G:interleave,slab:bind=1", "");
	cr_assert_eq(lift_place_decide(&cfg, &m.view, LIFT_CLASS_ANON, LIFT_GIB - 1, 0, 0, &d), 0);
	cr_expect_eq(d.kind, LIFT_PLACE_NONE);
	cr_assert_eq(lift_place_decide(&cfg, &m.view, LIFT_CLASS_ANON, LIFT_GIB, 0, 0, &d), 0);
	cr_expect_eq(d.kind, LIFT_PLACE_CHUNKS);
	cr_assert_eq(lift_place_decide(&cfg, &m.view, LIFT_CLASS_SLAB, 1, 0, 0, &d), 0);
	cr_expect_eq(d.mode, BIND);
	cr_assert_eq(lift_place_decide(&cfg, &m.view, LIFT_CLASS_FILE, 1, 0, 0, &d), 0);
	cr_expect_eq(d.kind, LIFT_PLACE_CHUNKS);
}

Test(placement, a_class_that_is_none_changes_nothing)
{
	static struct fake_machine m;
	struct lift_decision d;
	struct lift_decision was;
	struct lift_config cfg;

	fake_machine_flat_two(&m);
	lift_config_init(&cfg);
	memset(&d, 0x5a, sizeof(d));
	was = d;
	cr_assert_eq(lift_place_decide(&cfg, &m.view, LIFT_CLASS_MAX, 1, 0, 0, &d), -EINVAL);
	cr_assert_eq(memcmp(&d, &was, sizeof(d)), 0);
}

/* Nodes that came after the tiers were made: used, but not ranked. */
Test(placement, stale_tiers)
{
	static struct fake_machine m;
	struct lift_decision d;
	struct lift_config cfg;

	fake_machine_flat_two(&m);
	fake_machine_add(&m, 5, true, LIFT_GIB);
	fake_machine_add(&m, 6, true, LIFT_GIB);
	m.view.allowed = fake_nodes("5-6");
	set_place(&cfg, "anon:interleave", "");
	cr_assert_eq(lift_place_decide(&cfg, &m.view, LIFT_CLASS_ANON, LIFT_GIB, 0, 5, &d), 0);
	expect_decision(&d, LIFT_PLACE_CHUNKS, PREFERRED, "5-6", "new nodes");
}

Test(placement, weights_for_the_credits)
{
	static struct fake_machine m;
	struct lift_node_weight w[LIFT_TOPO_NODES];
	struct lift_decision d = {.kind = LIFT_PLACE_CHUNKS};
	struct lift_config cfg;

	fake_machine_three(&m);
	m.topo.node[2].weight = 9;
	lift_config_init(&cfg);
	d.nodes = fake_nodes("1-2,500");

	/* by capacity */
	cr_assert_eq(lift_place_weights(&cfg, &m.view, &d, w), 2);
	cr_expect_eq(w[0].node, 1);
	cr_expect_eq(w[0].weight, LIFT_GIB);
	cr_expect_eq(w[1].node, 2);
	cr_expect_eq(w[1].weight, 4 * LIFT_GIB);
	/* one capacity is not known: all alike */
	m.topo.node[1].total_bytes = 0;
	cr_assert_eq(lift_place_weights(&cfg, &m.view, &d, w), 2);
	cr_expect_eq(w[0].weight, 1);
	cr_expect_eq(w[1].weight, 1);
	/* by the kernel's weights, 1 where it has none */
	d.by_weight = true;
	cr_assert_eq(lift_place_weights(&cfg, &m.view, &d, w), 2);
	cr_expect_eq(w[0].weight, 1);
	cr_expect_eq(w[1].weight, 9);
	/* by the user's */
	set_place(&cfg, "anon:weighted", "2:30,1:20");
	cr_assert_eq(lift_place_weights(&cfg, &m.view, &d, w), 2);
	cr_expect_eq(w[0].weight, 20);
	cr_expect_eq(w[1].weight, 30);
}

Test(placement, names)
{
	cr_expect_str_eq(lift_place_kind_name(LIFT_PLACE_NONE), "none");
	cr_expect_str_eq(lift_place_kind_name(LIFT_PLACE_NODES), "nodes");
	cr_expect_str_eq(lift_place_kind_name(LIFT_PLACE_CHUNKS), "chunks");
	cr_expect_str_eq(lift_place_kind_name(LIFT_PLACE_MAX), "?");
	cr_expect_str_eq(lift_place_kind_name((enum lift_place_kind)9), "?");
}
