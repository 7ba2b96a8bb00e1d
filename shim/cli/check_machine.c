// SPDX-License-Identifier: MIT
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>

#include "policy/interleave.h"
#include "policy/vmabudget.h"
#include "shim/cli/check.h"
#include "shim/cli/probe.h"
#include "shim/cli/settings.h"
#include "shim/cli/text.h"
#include "shim/os/sys.h"
#include "shim/os/topo_sysfs.h"

#define OK LIFT_VERDICT_OK
#define LIMITED LIFT_VERDICT_LIMITED
#define OFF LIFT_VERDICT_OFF

#define UNKNOWN UINT64_MAX

/* Of a file that holds one number. */
static uint64_t number(const char *path)
{
	return lift_os_number(path, UNKNOWN);
}

static const char *mode_name(int mode)
{
	static const char *const names[] = {"default", "preferred", "bind", "interleave", "local",
		"preferred-many", "weighted interleave"};
	int base = mode & ~LIFT_MPOL_F_MASK;

	return base >= 0 && base < LIFT_MPOL_MAX ? names[base] : "?";
}

/* Why nothing is placed: the first reason found is the one to tell. */
static void stop(struct lift_check *c, const char *why)
{
	if (!c->why_not)
		c->why_not = why;
}

/* --- settings ------------------------------------------------------------------------------------
 */

static void refused(void *arg, const char *line)
{
	struct lift_check *c = arg;

	lift_report_add(&c->report, "setting", LIMITED, "correct the value, or unset the variable",
		"%s", line);
}

void lift_check_settings(struct lift_check *c)
{
	unsigned bad = lift_settings_read(&c->config, NULL, refused, c);

	if (!c->config.enabled)
		lift_report_add(&c->report, "settings", OFF, "unset NUMALIFT, or set it to on",
			"NUMALIFT switches everything off");
	else if (bad == 0)
		lift_report_add(&c->report, "settings", OK, NULL,
			"%d of the variables set, all understood",
			__builtin_popcountll(c->config.given));
}

/* --- kernel --------------------------------------------------------------------------------------
 */

static void check_kernel(struct lift_check *c)
{
	struct utsname u;

	if (uname(&u) == 0)
		lift_report_add(&c->report, "kernel", OK, NULL, "%s %s, %s", u.sysname, u.release,
			u.machine);
}

static void check_proc(struct lift_check *c, int err)
{
	if (err == 0)
		lift_report_add(&c->report, "proc", OK, NULL, "/proc is there");
	else
		lift_report_add(&c->report, "proc", LIMITED, "mount -t proc proc /proc",
			"/proc/self/status cannot be read (%s): cpusets and kernel settings are "
			"not known",
			lift_text_errno(err));
}

static void check_sys(struct lift_check *c, int err)
{
	if (err == 0) {
		lift_report_add(&c->report, "sys", OK, NULL, "/sys is there");
		return;
	}
	lift_report_add(&c->report, "sys", OFF,
		"mount -t sysfs sysfs /sys, or a kernel with CONFIG_NUMA",
		"/sys/devices/system/node cannot be read (%s): no node is known",
		lift_text_errno(err));
	stop(c, "the nodes are not known");
}

static void check_nodes(struct lift_check *c, const struct lift_nodeset *memory)
{
	char list[LIFT_TEXT_NODES];
	unsigned nr = lift_nodeset_count(memory);

	if (nr > 1) {
		lift_report_add(&c->report, "nodes", OK, NULL,
			"%u nodes with memory (%s) in %u tier%s", nr, lift_text_nodes(memory, list),
			c->tiers.nr, c->tiers.nr == 1 ? "" : "s");
		return;
	}
	lift_report_add(&c->report, "nodes", OFF,
		"a machine with two or more; numalift costs nothing here, and only its heap is of "
		"use",
		"%s with memory: there is nothing to choose", nr ? "one node" : "no node");
	stop(c, "there is one node");
}

static void check_allowed(struct lift_check *c, const struct lift_nodeset *memory, int err)
{
	char list[LIFT_TEXT_NODES];
	unsigned nr = lift_nodeset_count(&c->usable);
	bool all = nr == lift_nodeset_count(memory);

	if (err) {
		lift_report_add(&c->report, "mems-allowed", LIMITED, "mount -t proc proc /proc",
			"not known: all nodes are taken to be allowed");
		return;
	}
	lift_text_nodes(&c->usable, list);
	if (all || nr > 1) {
		lift_report_add(&c->report, "mems-allowed", all ? OK : LIMITED,
			all ? NULL : "cpuset.mems of the control group", "%s (%s)",
			all ? "all nodes" : "some of the nodes", list);
		return;
	}
	lift_report_add(&c->report, "mems-allowed", OFF, "cpuset.mems of the control group",
		"the cpuset leaves %s (%s): there is nothing to choose",
		nr ? "one node" : "no node", list);
	stop(c, "the cpuset leaves one node");
}

/* --- permission ----------------------------------------------------------------------------------
 */

static void check_policies(struct lift_check *c)
{
	static const char remedy[] = "in a container: the capability CAP_SYS_NICE, or a seccomp "
				     "profile that permits mbind";
	struct lift_machine_view *v = &c->view;
	int node = lift_nodeset_first(&c->usable);
	int rc = lift_probe_policies(v, node < 0 ? 0 : node);

	if (rc) {
		lift_report_add(&c->report, "policies", OFF,
			rc == -ENOSYS ? "a kernel with CONFIG_NUMA, or a sandbox that permits mbind"
				      : remedy,
			rc > 0 ? "mbind ends the process (%s)" : "mbind is refused (%s)",
			rc > 0 ? sigabbrev_np(rc) : lift_text_errno(rc));
		stop(c, "policies cannot be set");
		c->policies_refused = true;
		return;
	}
	lift_report_add(&c->report, "policies", v->has_preferred_many ? OK : LIMITED,
		v->has_preferred_many ? NULL : "Linux 5.15 or newer",
		"can be set; preferred-many %s, weighted interleave %s, balancing "
		"flag %s",
		v->has_preferred_many ? "yes" : "no", v->has_weighted_interleave ? "yes" : "no",
		v->balancing_flag_preferred_many ? "yes"
		: v->balancing_flag_bind         ? "with bind only"
						 : "no");
}

static void check_seccomp(struct lift_check *c, unsigned mode)
{
	bool asked = c->config.given >> lift_config_find("NUMALIFT_PLACE") & 1;

	if (mode == 0) {
		lift_report_add(&c->report, "seccomp", OK, NULL, "no filter");
	} else if (asked) {
		lift_report_add(&c->report, "seccomp", OK, NULL,
			"a filter is active; NUMALIFT_PLACE is set, so that placing is tried all "
			"the same");
	} else {
		lift_report_add(&c->report, "seccomp", OFF,
			"set NUMALIFT_PLACE (numalift run --place=...), if only to its default",
			"a filter is active, and nothing is placed under one unless asked for by "
			"name");
		stop(c, "a seccomp filter is active");
	}
}

static void check_own_policy(struct lift_check *c)
{
	int mode = LIFT_MPOL_DEFAULT;
	long err = lift_sys_get_mempolicy(&mode, NULL, NULL);

	c->own_mode = err < 0 ? (int)err : mode;
	if (err < 0)
		lift_report_add(&c->report, "own-policy", OFF,
			"in a container: the capability CAP_SYS_NICE, or a seccomp profile that "
			"permits "
			"get_mempolicy",
			"cannot be asked for (%s): it may be there, so nothing is placed",
			lift_text_errno((int)err));
	else if (mode == LIFT_MPOL_DEFAULT)
		lift_report_add(&c->report, "own-policy", OK, NULL,
			"none is set: programs started here have none either");
	else
		lift_report_add(&c->report, "own-policy", OFF, "start without numactl or the like",
			"a memory policy (%s) is set here and inherited by programs: it wins, "
			"nothing is placed",
			mode_name(mode));
	if (c->own_mode != LIFT_MPOL_DEFAULT)
		stop(c, err < 0 ? "a memory policy cannot be asked for"
				: "a memory policy is set already");
}

/* --- kernel settings -----------------------------------------------------------------------------
 */

static void check_balancing(struct lift_check *c)
{
	uint64_t v = number("/proc/sys/kernel/numa_balancing");

	c->view.kernel_balancing = v != UNKNOWN && v != 0;
	if (v == UNKNOWN)
		lift_report_add(&c->report, "numa-balancing", OK, NULL, "not in this kernel");
	else if (v == 0)
		lift_report_add(
			&c->report, "numa-balancing", OK, NULL, "kernel.numa_balancing is off");
	else if (c->nr_tiers < 2 || c->view.balancing_flag_preferred_many)
		lift_report_add(&c->report, "numa-balancing", OK, NULL,
			"kernel.numa_balancing is %" PRIu64 ": the kernel balances beside numalift",
			v);
	else
		lift_report_add(&c->report, "numa-balancing", LIMITED,
			"a kernel that takes MPOL_F_NUMA_BALANCING with MPOL_PREFERRED_MANY, or "
			"sysctl "
			"kernel.numa_balancing=0",
			"kernel.numa_balancing is %" PRIu64
			", and a policy would end it for a range: local "
			"and interleave leave memory to the kernel",
			v);
}

static void check_zone_reclaim(struct lift_check *c)
{
	uint64_t v = number("/proc/sys/vm/zone_reclaim_mode");

	c->view.zone_reclaim = v != UNKNOWN && v != 0;
	if (c->view.zone_reclaim)
		stop(c, "vm.zone_reclaim_mode asks for local memory");
	if (!c->view.zone_reclaim)
		lift_report_add(&c->report, "zone-reclaim", OK, NULL,
			v == UNKNOWN ? "not in this kernel" : "vm.zone_reclaim_mode is off");
	else
		lift_report_add(&c->report, "zone-reclaim", OFF, "sysctl vm.zone_reclaim_mode=0",
			"vm.zone_reclaim_mode is %" PRIu64
			": local memory is asked for, so nothing is placed",
			v);
}

static void check_map_count(struct lift_check *c)
{
	uint64_t v = lift_os_number("/proc/sys/vm/max_map_count", 65530);
	struct lift_vmabudget b;
	bool small;

	lift_vmabudget_init(&b, v);
	/* Fewer than four regions of the most pieces that one is cut into. */
	small = lift_vmabudget_left(&b) < 4 * LIFT_CHUNKS_MAX;
	lift_report_add(&c->report, "max-map-count", small ? LIMITED : OK,
		small ? "sysctl vm.max_map_count=65530" : NULL,
		"vm.max_map_count is %" PRIu64 ": numalift makes at most %" PRIu64 " mappings more",
		v, lift_vmabudget_left(&b));
}

static void check_overcommit(struct lift_check *c)
{
	uint64_t v = number("/proc/sys/vm/overcommit_memory");

	if (v == UNKNOWN)
		lift_report_add(&c->report, "overcommit", OK, NULL, "not known");
	else if (v != 2)
		lift_report_add(&c->report, "overcommit", OK, NULL,
			"vm.overcommit_memory is %" PRIu64 " (%s)", v,
			v == 0 ? "heuristic" : "always");
	else
		lift_report_add(&c->report, "overcommit", LIMITED, "sysctl vm.overcommit_memory=0",
			"vm.overcommit_memory is 2 (strict): what the heap holds ready counts "
			"before it is used");
}

static void check_huge_pages(struct lift_check *c)
{
	char buf[64];
	long n =
		lift_sys_read_file("/sys/kernel/mm/transparent_hugepage/enabled", buf, sizeof(buf));
	char *open = n > 0 ? strchr(buf, '[') : NULL;
	char *close = open ? strchr(open, ']') : NULL;

	if (!close) {
		lift_report_add(&c->report, "huge-pages", LIMITED,
			"a kernel with CONFIG_TRANSPARENT_HUGEPAGE",
			"no transparent huge pages: memory is in small pages, with or without "
			"numalift");
		return;
	}
	*close = '\0';
	if (strcmp(open + 1, "never") == 0)
		lift_report_add(&c->report, "huge-pages", LIMITED,
			"echo madvise >/sys/kernel/mm/transparent_hugepage/enabled",
			"switched off: memory is in small pages, with or without numalift");
	else
		lift_report_add(
			&c->report, "huge-pages", OK, NULL, "transparent huge pages: %s", open + 1);
}

/* --- limits --------------------------------------------------------------------------------------
 */

static void check_address_space(struct lift_check *c)
{
	char bytes[LIFT_TEXT_BYTES];
	struct rlimit r;

	if (getrlimit(RLIMIT_AS, &r) < 0 || r.rlim_cur == RLIM_INFINITY)
		lift_report_add(&c->report, "address-space", OK, NULL, "not limited");
	else
		lift_report_add(&c->report, "address-space", LIMITED, "ulimit -v unlimited",
			"limited to %s: the heap reserves less, and the limit is reached sooner "
			"than without",
			lift_text_bytes(r.rlim_cur, bytes));
}

static void check_locked_memory(struct lift_check *c)
{
	char bytes[LIFT_TEXT_BYTES];
	struct rlimit r;

	/* numalift locks nothing: this only matters to programs that call mlockall. */
	if (getrlimit(RLIMIT_MEMLOCK, &r) < 0 || r.rlim_cur == RLIM_INFINITY)
		lift_report_add(&c->report, "locked-memory", OK, NULL, "not limited");
	else
		lift_report_add(&c->report, "locked-memory", OK, NULL,
			"limited to %s, which matters to programs that lock all their memory",
			lift_text_bytes(r.rlim_cur, bytes));
}

/* --- the whole -----------------------------------------------------------------------------------
 */

void lift_check_machine(struct lift_check *c)
{
	struct lift_nodeset memory = {{0}};
	unsigned seccomp = 0;
	int proc_err;
	int sys_err = lift_os_topology(&c->topo);

	c->has_topo = sys_err == 0;
	if (c->has_topo) {
		lift_topology_memory_nodes(&c->topo, &memory);
		c->has_tiers =
			lift_tiers_build(&c->topo, c->config.tiers.nr ? &c->config.tiers : NULL,
				&c->tiers) == 0;
	}
	proc_err = lift_os_mems_allowed(&c->view.allowed, &seccomp);
	if (proc_err)
		c->view.allowed = memory;
	lift_nodeset_and(&c->usable, &memory, &c->view.allowed);
	for (unsigned i = 0; i < c->tiers.nr; i++) {
		struct lift_nodeset left;

		lift_nodeset_and(&left, &c->tiers.tier[i], &c->usable);
		c->nr_tiers += !lift_nodeset_empty(&left);
	}

	check_kernel(c);
	check_proc(c, proc_err);
	check_sys(c, sys_err);
	if (c->has_topo) {
		check_nodes(c, &memory);
		check_allowed(c, &memory, proc_err);
	}
	check_policies(c);
	check_seccomp(c, seccomp);
	check_own_policy(c);
	check_balancing(c);
	check_zone_reclaim(c);
	check_map_count(c);
	check_overcommit(c);
	check_huge_pages(c);
	check_address_space(c);
	check_locked_memory(c);
}

/* --- placement -----------------------------------------------------------------------------------
 */

static void check_class(struct lift_check *c, enum lift_class cls, uint64_t bytes)
{
	const char *name = lift_class_name(cls);
	const struct lift_place_rule *rule = lift_config_rule(&c->config, cls, bytes);
	char list[LIFT_TEXT_NODES];
	char size[LIFT_TEXT_BYTES];
	struct lift_decision d;

	if (lift_place_decide(
		    &c->config, &c->view, cls, bytes, c->own_mode, lift_sys_cpu_node(), &d))
		return;
	switch (d.kind) {
	case LIFT_PLACE_NODES:
		lift_report_add(&c->report, name, OK, NULL, "%s %s: %s", mode_name(d.mode),
			lift_text_nodes(&d.nodes, list), d.why);
		break;
	case LIFT_PLACE_CHUNKS:
		lift_report_add(&c->report, name, OK, NULL,
			"pieces of %s or more over nodes %s: %s",
			lift_text_bytes(
				c->config.batch_bytes ? c->config.batch_bytes : LIFT_HUGE_BYTES,
				size),
			lift_text_nodes(&d.nodes, list), d.why);
		break;
	default:
		/* First touch is what `local` asks for, unless slower nodes are to be avoided. */
		lift_report_add(&c->report, name,
			rule->how == LIFT_HOW_LOCAL && c->nr_tiers < 2 ? OK : LIMITED, NULL,
			"left to the kernel: %s", d.why);
		break;
	}
}

void lift_check_placement(struct lift_check *c)
{
	if (!c->config.enabled)
		c->why_not = "NUMALIFT switches it off";
	if (!c->has_tiers)
		stop(c, "no node is known to have memory");
	if (c->why_not) {
		lift_report_add(
			&c->report, "placement", OFF, NULL, "nothing is placed: %s", c->why_not);
		return;
	}
	c->view.topo = &c->topo;
	c->view.tiers = &c->tiers;
	/* Of sizes at which each class is placed at all; rules by size may decide otherwise for
	 * others. */
	check_class(c, LIFT_CLASS_SLAB, 32 * LIFT_MIB);
	check_class(c, LIFT_CLASS_ANON, LIFT_GIB);
	check_class(c, LIFT_CLASS_FILE, LIFT_GIB);
}
