// SPDX-License-Identifier: MIT
/*
 * numalift topology: the machine as the library sees it, and where each fact comes from. What hwloc
 * says differently is told, not mixed in: the library reads sysfs only, and this is to show what it
 * acts on.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "policy/config.h"
#include "policy/tiers.h"
#include "policy/topology.h"
#include "shim/cli/args.h"
#include "shim/cli/cli.h"
#include "shim/cli/json.h"
#include "shim/cli/settings.h"
#include "shim/cli/text.h"
#include "shim/cli/topo_hwloc.h"
#include "shim/os/sys.h"
#include "shim/os/topo_sysfs.h"

enum { OPT_JSON, OPT_XML };

static const struct lift_cli_option table[] = {
	[OPT_JSON] = {.name = "json", .help = "Print JSON."},
	[OPT_XML] =
		{
			.name = "xml",
			.arg = "FILE",
			.help = "Describe the machine in an hwloc XML file (lstopo --of xml) "
				"instead of this one.",
		},
};

static size_t options(const struct lift_cli_option **ret)
{
	*ret = table;
	return sizeof(table) / sizeof(table[0]);
}

/* One fact of which hwloc knows otherwise. */
#define DISAGREEMENTS_MAX 32

struct view {
	struct lift_topology topo;
	struct lift_tiers tiers;
	struct lift_config config;
	struct lift_hwloc hwloc;
	bool has_hwloc;
	bool from_xml;
	bool allowed_known;
	struct lift_nodeset allowed;
	char cpus[LIFT_TOPO_NODES][LIFT_HWLOC_CPUS];
	unsigned nr_disagreements;
	char *disagreement[DISAGREEMENTS_MAX];
};

/* --- words for sources ---------------------------------------------------------------------------
 */

/* Of what the topology itself says: which nodes, how large, with which CPUs, how far apart. */
static const char *base_source(const struct view *v)
{
	return v->from_xml ? "hwloc" : "sysfs";
}

/* Of latency and bandwidth. */
static const char *perf_source(const struct view *v, const struct lift_topo_node *node)
{
	if (node->perf_source != LIFT_FACT_HMAT)
		return NULL;
	return v->from_xml ? "hwloc memory attributes" : "HMAT (sysfs access0)";
}

static const char *tiers_source(const struct view *v)
{
	switch (v->tiers.source) {
	case LIFT_FACT_OVERRIDE:
		return "NUMALIFT_TIERS";
	case LIFT_FACT_HMAT:
		return v->from_xml ? "hwloc memory attributes" : "HMAT (sysfs access0)";
	case LIFT_FACT_KERNEL_TIER:
		return "kernel memory tiers";
	case LIFT_FACT_DISTANCE:
		return "distances from the nodes with CPUs";
	case LIFT_FACT_SYSFS:
		return "which nodes have CPUs";
	case LIFT_FACT_NONE:
	case LIFT_FACT_MAX:
		break;
	}
	return "nothing";
}

static uint64_t weight_of(
	const struct view *v, const struct lift_topo_node *node, const char **ret_source)
{
	for (unsigned i = 0; i < v->config.weights.nr; i++) {
		if (v->config.weights.item[i].node != node->id)
			continue;
		*ret_source = "NUMALIFT_WEIGHTS";
		return v->config.weights.item[i].weight;
	}
	*ret_source = node->weight ? "kernel weighted interleave" : NULL;
	return node->weight;
}

/* --- gathering -----------------------------------------------------------------------------------
 */

static void read_cpus(struct view *v)
{
	for (unsigned i = 0; i < v->topo.nr; i++) {
		char path[64];
		long n;

		(void)snprintf(path, sizeof(path), "/sys/devices/system/node/node%d/cpulist",
			v->topo.node[i].id);
		n = lift_sys_read_file(path, v->cpus[i], sizeof(v->cpus[i]));
		if (n < 0)
			n = 0;
		v->cpus[i][n] = '\0';
		v->cpus[i][strcspn(v->cpus[i], "\n")] = '\0';
	}
}

static void disagree(struct view *v, char *text)
{
	if (v->nr_disagreements < DISAGREEMENTS_MAX)
		v->disagreement[v->nr_disagreements++] = text;
	else
		free(text);
}

static void compare_number(
	struct view *v, int id, const char *what, const char *unit, uint64_t sysfs, uint64_t hwloc)
{
	if (sysfs == hwloc)
		return;
	if (sysfs && hwloc)
		disagree(v, lift_text("node %d: %s %" PRIu64 "%s in sysfs, %" PRIu64 "%s by hwloc",
				    id, what, sysfs, unit, hwloc, unit));
	else
		disagree(v, lift_text("node %d: %s %" PRIu64 "%s %s, not known to %s", id, what,
				    sysfs ? sysfs : hwloc, unit, sysfs ? "in sysfs" : "by hwloc",
				    sysfs ? "hwloc" : "sysfs"));
}

static void compare_distances(
	struct view *v, const struct lift_topology *other, unsigned i, unsigned j)
{
	for (unsigned k = 0; k < v->topo.nr; k++) {
		int to = lift_topology_find(other, v->topo.node[k].id);

		/* hwloc keeps no distances of a single node. */
		if (to < 0 || !other->distance[j][to] ||
			other->distance[j][to] == v->topo.distance[i][k])
			continue;
		disagree(v, lift_text("node %d to %d: distance %u in sysfs, %u by hwloc",
				    v->topo.node[i].id, v->topo.node[k].id, v->topo.distance[i][k],
				    other->distance[j][to]));
	}
}

static void compare(struct view *v)
{
	const struct lift_topology *other = &v->hwloc.topo;

	for (unsigned i = 0; i < v->topo.nr; i++) {
		const struct lift_topo_node *a = &v->topo.node[i];
		int j = lift_topology_find(other, a->id);
		const struct lift_topo_node *b = &other->node[j < 0 ? 0 : j];

		if (j < 0) {
			disagree(v, lift_text("node %d: in sysfs, not known to hwloc", a->id));
			continue;
		}
		compare_number(
			v, a->id, "memory", " KiB", a->total_bytes >> 10, b->total_bytes >> 10);
		compare_number(v, a->id, "latency", " ns", a->read_latency_ns, b->read_latency_ns);
		compare_number(v, a->id, "bandwidth", " MB/s", a->read_bandwidth_mbs,
			b->read_bandwidth_mbs);
		compare_distances(v, other, i, (unsigned)j);
	}
	for (unsigned j = 0; j < other->nr; j++)
		if (lift_topology_find(&v->topo, other->node[j].id) < 0)
			disagree(v, lift_text("node %d: known to hwloc, not in sysfs",
					    other->node[j].id));
}

static int gather_here(struct view *v)
{
	int rc = lift_os_topology(&v->topo);

	if (rc) {
		lift_cli_say("/sys/devices/system/node cannot be read (%s): without it nothing is "
			     "known of "
			     "this machine's nodes; mount sysfs on /sys, or use a kernel with "
			     "CONFIG_NUMA",
			lift_text_errno(rc));
		return LIFT_EXIT_OFF;
	}
	read_cpus(v);
	v->allowed_known = lift_os_mems_allowed(&v->allowed, NULL) == 0;
	v->has_hwloc = lift_hwloc_topology(NULL, &v->hwloc) == 0;
	if (!v->has_hwloc)
		lift_cli_say("hwloc cannot describe this machine: nothing to compare with");
	else if (v->hwloc.this_machine)
		compare(v);
	else
		disagree(v, lift_text("hwloc was told to describe another machine (HWLOC_XMLFILE "
				      "or the like)"));
	return LIFT_EXIT_OK;
}

static int gather_xml(struct view *v, const char *xml)
{
	int rc = lift_hwloc_topology(xml, &v->hwloc);

	if (rc == -EINVAL)
		lift_cli_say("%s: hwloc takes this for no topology", xml);
	else if (rc == -ENODEV)
		lift_cli_say("%s: describes no NUMA node", xml);
	else if (rc)
		lift_cli_say("%s: %s", xml, strerror(-rc));
	if (rc)
		return LIFT_EXIT_OFF;
	v->has_hwloc = true;
	v->from_xml = true;
	v->topo = v->hwloc.topo;
	memcpy(v->cpus, v->hwloc.cpus, sizeof(v->cpus));
	return LIFT_EXIT_OK;
}

static const char *subtype_of(const struct view *v, int id)
{
	int j = v->has_hwloc && (v->from_xml || v->hwloc.this_machine)
			? lift_topology_find(&v->hwloc.topo, id)
			: -1;

	return j < 0 ? "" : v->hwloc.subtype[j];
}

/* --- for people ----------------------------------------------------------------------------------
 */

static char *or_dash(const char *text)
{
	return lift_text("%s", text && *text ? text : "-");
}

static char *number_or_dash(uint64_t v, const char *unit)
{
	return v ? lift_text("%" PRIu64 "%s", v, unit) : or_dash(NULL);
}

static void print_nodes(const struct view *v)
{
	static const char *const head[] = {"NODE", "TIER", "CPUS", "MEMORY", "FREE", "LATENCY",
		"BANDWIDTH", "KERNEL TIER", "WEIGHT", "KIND", "ALLOWED"};
	enum { COLUMNS = sizeof(head) / sizeof(head[0]) };
	char bytes[LIFT_TEXT_BYTES];
	struct lift_table t;
	const char *source;

	lift_table_init(&t, COLUMNS, ">><>>>>>><<");
	for (unsigned i = 0; i < COLUMNS; i++)
		lift_table_add(&t, lift_text("%s", head[i]));
	for (unsigned i = 0; i < v->topo.nr; i++) {
		const struct lift_topo_node *node = &v->topo.node[i];
		int tier = lift_tiers_of(&v->tiers, node->id);

		lift_table_add(&t, lift_text("%d", node->id));
		lift_table_add(&t, tier < 0 ? or_dash(NULL) : lift_text("%d", tier));
		lift_table_add(&t, or_dash(v->cpus[i]));
		lift_table_add(&t, lift_text("%s", lift_text_bytes(node->total_bytes, bytes)));
		lift_table_add(&t,
			v->from_xml ? or_dash(NULL)
				    : lift_text("%s", lift_text_bytes(node->free_bytes, bytes)));
		lift_table_add(&t, number_or_dash(node->read_latency_ns, " ns"));
		lift_table_add(&t, number_or_dash(node->read_bandwidth_mbs, " MB/s"));
		lift_table_add(&t,
			node->kernel_tier < 0 ? or_dash(NULL) : lift_text("%d", node->kernel_tier));
		lift_table_add(&t, number_or_dash(weight_of(v, node, &source), ""));
		lift_table_add(&t, or_dash(subtype_of(v, node->id)));
		lift_table_add(&t, or_dash(!v->allowed_known                          ? NULL
					   : lift_nodeset_test(&v->allowed, node->id) ? "yes"
										      : "no"));
	}
	lift_table_print(&t, stdout);
	lift_table_fini(&t);
}

static const char *node_or_nodes(const struct lift_nodeset *set)
{
	return lift_nodeset_count(set) == 1 ? "node" : "nodes";
}

static void print_tiers(const struct view *v)
{
	char nodes[LIFT_TEXT_NODES];

	(void)printf("\nTiers, fastest first (from %s):\n", tiers_source(v));
	for (unsigned i = 0; i < v->tiers.nr; i++)
		(void)printf("  %u: %s %s\n", i, node_or_nodes(&v->tiers.tier[i]),
			lift_text_nodes(&v->tiers.tier[i], nodes));
}

static void print_distances(const struct view *v)
{
	char align[LIFT_TOPO_NODES + 1];
	struct lift_table t;

	memset(align, '>', sizeof(align));
	lift_table_init(&t, v->topo.nr + 1, align);
	lift_table_add(&t, lift_text("  from"));
	for (unsigned i = 0; i < v->topo.nr; i++)
		lift_table_add(&t, lift_text("%d", v->topo.node[i].id));
	for (unsigned i = 0; i < v->topo.nr; i++) {
		lift_table_add(&t, lift_text("%d", v->topo.node[i].id));
		for (unsigned j = 0; j < v->topo.nr; j++)
			lift_table_add(&t, number_or_dash(v->topo.distance[i][j], ""));
	}
	(void)printf("\nDistances (from %s):\n", base_source(v));
	lift_table_print(&t, stdout);
	lift_table_fini(&t);
}

/* "NAME  SOURCE (nodes LIST)" for a fact that some nodes have; the source is that of the last. */
static void print_source(struct lift_table *t, const char *name, const struct lift_nodeset *nodes,
	const char *source, unsigned all)
{
	char list[LIFT_TEXT_NODES];

	lift_table_add(t, lift_text("  %s", name));
	if (lift_nodeset_empty(nodes))
		lift_table_add(t, lift_text("not known"));
	else if (lift_nodeset_count(nodes) == all)
		lift_table_add(t, lift_text("%s", source));
	else
		lift_table_add(t, lift_text("%s (%s %s only)", source, node_or_nodes(nodes),
					  lift_text_nodes(nodes, list)));
}

static void print_sources(const struct view *v)
{
	struct lift_nodeset latency = {{0}};
	struct lift_nodeset bandwidth = {{0}};
	struct lift_nodeset kernel_tier = {{0}};
	struct lift_nodeset kernel_weight = {{0}};
	struct lift_nodeset own_weight = {{0}};
	struct lift_nodeset kind = {{0}};
	const char *perf = NULL;
	const char *source;
	struct lift_table t;

	for (unsigned i = 0; i < v->topo.nr; i++) {
		const struct lift_topo_node *node = &v->topo.node[i];

		if (perf_source(v, node))
			perf = perf_source(v, node);
		if (node->read_latency_ns)
			lift_nodeset_set(&latency, node->id);
		if (node->read_bandwidth_mbs)
			lift_nodeset_set(&bandwidth, node->id);
		if (node->kernel_tier >= 0)
			lift_nodeset_set(&kernel_tier, node->id);
		if (*subtype_of(v, node->id))
			lift_nodeset_set(&kind, node->id);
		if (weight_of(v, node, &source))
			lift_nodeset_set(strcmp(source, "NUMALIFT_WEIGHTS") == 0 ? &own_weight
										 : &kernel_weight,
				node->id);
	}
	lift_table_init(&t, 2, "<<");
	lift_table_add(&t, lift_text("  nodes, CPUs, memory"));
	lift_table_add(&t, lift_text("%s", base_source(v)));
	print_source(&t, "latency", &latency, perf, v->topo.nr);
	print_source(&t, "bandwidth", &bandwidth, perf, v->topo.nr);
	print_source(&t, "kernel tier", &kernel_tier, "kernel memory tiers", v->topo.nr);
	if (!lift_nodeset_empty(&own_weight))
		print_source(&t, "weight", &own_weight, "NUMALIFT_WEIGHTS", v->topo.nr);
	if (!lift_nodeset_empty(&kernel_weight) || lift_nodeset_empty(&own_weight))
		print_source(
			&t, "weight", &kernel_weight, "kernel weighted interleave", v->topo.nr);
	print_source(&t, "kind", &kind, "hwloc", v->topo.nr);
	(void)printf("\nWhere it comes from:\n");
	lift_table_print(&t, stdout);
	lift_table_fini(&t);
}

static void print_human(const struct view *v)
{
	print_nodes(v);
	print_tiers(v);
	print_distances(v);
	print_sources(v);
	if (v->from_xml || !v->has_hwloc)
		return;
	if (v->nr_disagreements == 0)
		(void)printf("\nhwloc (API %s) agrees.\n", v->hwloc.api);
	else
		(void)printf(
			"\nhwloc (API %s) disagrees (the library goes by sysfs):\n", v->hwloc.api);
	for (unsigned i = 0; i < v->nr_disagreements; i++)
		(void)printf("  %s\n", v->disagreement[i]);
}

/* --- for machines --------------------------------------------------------------------------------
 */

/* {"value": ..., "source": ...}; null where nothing is known. */
static void json_fact(
	struct lift_json *j, const char *key, bool known, uint64_t value, const char *source)
{
	if (!known) {
		lift_json_string(j, key, NULL);
		return;
	}
	lift_json_object(j, key);
	lift_json_number(j, "value", (int64_t)value);
	lift_json_string(j, "source", source);
	lift_json_end(j);
}

static void json_node(struct lift_json *j, const struct view *v, unsigned i)
{
	const struct lift_topo_node *node = &v->topo.node[i];
	int tier = lift_tiers_of(&v->tiers, node->id);
	const char *subtype = subtype_of(v, node->id);
	const char *source;
	uint64_t weight = weight_of(v, node, &source);
	char key[12];

	lift_json_object(j, NULL);
	lift_json_number(j, "id", node->id);
	if (tier < 0)
		lift_json_string(j, "tier", NULL);
	else
		lift_json_number(j, "tier", tier);
	lift_json_string(j, "cpus", v->cpus[i]);
	lift_json_number(j, "total_bytes", (int64_t)node->total_bytes);
	if (v->from_xml)
		lift_json_string(j, "free_bytes", NULL);
	else
		lift_json_number(j, "free_bytes", (int64_t)node->free_bytes);
	if (v->allowed_known)
		lift_json_bool(j, "allowed", lift_nodeset_test(&v->allowed, node->id));
	else
		lift_json_string(j, "allowed", NULL);
	lift_json_string(j, "kind", *subtype ? subtype : NULL);
	lift_json_string(j, "source", base_source(v));
	json_fact(j, "read_latency_ns", node->read_latency_ns > 0, node->read_latency_ns,
		perf_source(v, node));
	json_fact(j, "read_bandwidth_mbs", node->read_bandwidth_mbs > 0, node->read_bandwidth_mbs,
		perf_source(v, node));
	json_fact(j, "kernel_tier", node->kernel_tier >= 0, (uint64_t)node->kernel_tier,
		"kernel memory tiers");
	json_fact(j, "weight", weight > 0, weight, source);
	lift_json_object(j, "distances");
	for (unsigned k = 0; k < v->topo.nr; k++) {
		(void)snprintf(key, sizeof(key), "%d", v->topo.node[k].id);
		lift_json_known(j, key, v->topo.distance[i][k]);
	}
	lift_json_end(j);
	lift_json_end(j);
}

static void print_json(const struct view *v)
{
	char nodes[LIFT_TEXT_NODES];
	struct lift_json j;

	lift_json_init(&j, stdout);
	lift_json_object(&j, NULL);
	lift_json_string(&j, "version", LIFT_VERSION);
	lift_json_array(&j, "nodes");
	for (unsigned i = 0; i < v->topo.nr; i++)
		json_node(&j, v, i);
	lift_json_end(&j);
	lift_json_array(&j, "tiers");
	for (unsigned i = 0; i < v->tiers.nr; i++)
		lift_json_string(&j, NULL, lift_text_nodes(&v->tiers.tier[i], nodes));
	lift_json_end(&j);
	lift_json_string(&j, "tiers_source", tiers_source(v));
	lift_json_string(&j, "hwloc_api", v->has_hwloc ? v->hwloc.api : NULL);
	lift_json_array(&j, "disagreements");
	for (unsigned i = 0; i < v->nr_disagreements; i++)
		lift_json_string(&j, NULL, v->disagreement[i]);
	lift_json_end(&j);
	lift_json_end(&j);
}

/* --- the command ---------------------------------------------------------------------------------
 */

static int topology(const char *xml, bool json)
{
	static struct view v; /* large, and zero */
	int status;

	/* As for the library, a setting that is not understood is said and left out. */
	(void)lift_settings_read(&v.config, NULL, lift_settings_say, NULL);
	status = xml ? gather_xml(&v, xml) : gather_here(&v);
	if (status)
		return status;
	if (lift_tiers_build(&v.topo, v.config.tiers.nr ? &v.config.tiers : NULL, &v.tiers)) {
		lift_cli_say("no node is known to have memory%s",
			v.from_xml ? "" : "; is /sys/devices/system/node hidden in part?");
		return LIFT_EXIT_OFF;
	}
	if (json)
		print_json(&v);
	else
		print_human(&v);
	for (unsigned i = 0; i < v.nr_disagreements; i++)
		free(v.disagreement[i]);
	return lift_cli_finish(LIFT_EXIT_OK);
}

static int run(const struct lift_command *self, int argc, char **argv)
{
	const char *xml = NULL;
	struct lift_args args;
	bool json = false;
	const char *value;
	int i;

	lift_args_init(&args, self, argc, argv);
	while ((i = lift_args_next(&args, &value)) >= 0) {
		if (i == OPT_JSON)
			json = true;
		else
			xml = value;
	}
	if (i == LIFT_ARGS_EXIT)
		return args.status;
	i = lift_args_done(&args);
	return i ? i : topology(xml, json);
}

const struct lift_command lift_cmd_topology = {
	.name = "topology",
	.usage = "[OPTION]...",
	.summary = "Show nodes, tiers and distances, and where each fact comes from.",
	.text = "Shows the machine as the library sees it: its nodes with their memory, CPUs, "
		"latency and\n"
		"bandwidth, the tiers they are ranked into, how far apart they are, and where each "
		"of these\n"
		"facts comes from. NUMALIFT_TIERS and NUMALIFT_WEIGHTS count as they do for the "
		"library.\n",
	.options = options,
	.run = run,
};
