// SPDX-License-Identifier: MIT
#include "shim/os/topo_sysfs.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

#include "policy/procparse.h"
#include "shim/os/rawsys.h"
#include "shim/os/sys.h"

#define NODE_DIR "/sys/devices/system/node/"

/* Callers may be on a small stack, and are serialised (the header says so). */
static char file[16384];

/* Where sprintf would be too much to ask this early. */
const char *lift_os_path(char buf[128], const char *prefix, int n, const char *suffix)
{
	char digits[12];
	size_t d = sizeof(digits);
	size_t at = strlen(prefix);

	memcpy(buf, prefix, at);
	do {
		digits[--d] = (char)('0' + n % 10);
		n /= 10;
	} while (n > 0);
	memcpy(buf + at, digits + d, sizeof(digits) - d);
	at += sizeof(digits) - d;
	memcpy(buf + at, suffix, strlen(suffix) + 1);
	return buf;
}

static int read_nodelist(const char *path, struct lift_nodeset *ret)
{
	long n = lift_sys_read_file(path, file, sizeof(file));

	return n < 0 ? (int)n : lift_parse_nodelist(file, (size_t)n, ret);
}

uint64_t lift_os_number(const char *path, uint64_t otherwise)
{
	long n = lift_sys_read_file(path, file, sizeof(file));
	uint64_t v;

	return n > 0 && lift_parse_u64(file, (size_t)n, &v) == 0 ? v : otherwise;
}

int lift_os_memory_nodes(struct lift_nodeset *ret)
{
	int err = read_nodelist(NODE_DIR "has_memory", ret);

	return err ? read_nodelist(NODE_DIR "online", ret) : 0;
}

static bool read_meminfo(int id, struct lift_node_meminfo *ret)
{
	char path[128];
	long n = lift_sys_read_file(
		lift_os_path(path, NODE_DIR "node", id, "/meminfo"), file, sizeof(file));

	return n > 0 && lift_parse_node_meminfo(file, (size_t)n, ret) == 0;
}

static uint32_t node_number(int id, const char *name)
{
	char path[128];
	uint64_t v = lift_os_number(lift_os_path(path, NODE_DIR "node", id, name), 0);

	return v > UINT32_MAX ? UINT32_MAX : (uint32_t)v;
}

/*
 * The kernel numbers its tiers by abstract distance / 128: DRAM is 4, and slower memory goes up
 * from there. Looking for each number costs a failed open apiece, but only until every node is
 * found.
 */
static void read_kernel_tiers(struct lift_topology *topo)
{
	enum { DEFAULT_TIER_SURELY_SEEN = 64, TIERS_MAX = 1024 };
	char path[128];
	struct lift_nodeset nodes;
	struct lift_nodeset missing;
	bool any = false;
	int i;

	lift_topology_memory_nodes(topo, &missing);
	for (int tier = 0; tier < TIERS_MAX && !lift_nodeset_empty(&missing); tier++) {
		if (tier == DEFAULT_TIER_SURELY_SEEN && !any)
			break; /* a kernel without memory tiering */
		lift_os_path(
			path, "/sys/devices/virtual/memory_tiering/memory_tier", tier, "/nodelist");
		if (read_nodelist(path, &nodes))
			continue;
		any = true;
		lift_nodeset_foreach (id, &nodes) {
			i = lift_topology_find(topo, id);
			if (i < 0)
				continue;
			topo->node[i].kernel_tier = tier;
			topo->node[i].tier_source = LIFT_FACT_KERNEL_TIER;
			lift_nodeset_clear(&missing, id);
		}
	}
}

static void read_node(struct lift_topo_node *node, const struct lift_nodeset *with_cpu)
{
	struct lift_node_meminfo mem;
	char path[128];

	node->has_cpu = lift_nodeset_test(with_cpu, node->id);
	if (read_meminfo(node->id, &mem)) {
		node->total_bytes = mem.total_bytes;
		node->free_bytes = mem.free_bytes;
		node->has_memory = mem.total_bytes > 0;
	}
	node->read_latency_ns = node_number(node->id, "/access0/initiators/read_latency");
	node->read_bandwidth_mbs = node_number(node->id, "/access0/initiators/read_bandwidth");
	if (node->read_latency_ns || node->read_bandwidth_mbs)
		node->perf_source = LIFT_FACT_HMAT;
	node->weight = (uint32_t)lift_os_number(
		lift_os_path(
			path, "/sys/kernel/mm/mempolicy/weighted_interleave/node", node->id, ""),
		0);
}

int lift_os_topology(struct lift_topology *ret)
{
	struct lift_nodeset online;
	struct lift_nodeset with_cpu;
	uint8_t dist[LIFT_TOPO_NODES];
	char path[128];
	unsigned nr;
	long n;
	int err = read_nodelist(NODE_DIR "online", &online);

	if (err)
		return err;
	if (read_nodelist(NODE_DIR "has_cpu", &with_cpu))
		with_cpu = online;
	lift_topology_init(ret);
	lift_nodeset_foreach (id, &online) {
		int i = lift_topology_add(ret, id);

		if (i < 0)
			break; /* more nodes than we describe: the rest is left to the kernel */
		read_node(&ret->node[i], &with_cpu);
	}
	for (unsigned i = 0; i < ret->nr; i++) {
		n = lift_sys_read_file(
			lift_os_path(path, NODE_DIR "node", ret->node[i].id, "/distance"), file,
			sizeof(file));
		/* One column for each online node, in the order in which they were added. */
		if (n > 0 && lift_parse_distances(file, (size_t)n, dist, LIFT_TOPO_NODES, &nr) == 0)
			memcpy(ret->distance[i], dist, nr < ret->nr ? nr : ret->nr);
	}
	read_kernel_tiers(ret);
	return ret->nr ? 0 : -ENODEV;
}

void lift_os_refresh_free(struct lift_topology *topo)
{
	struct lift_node_meminfo mem;

	for (unsigned i = 0; i < topo->nr; i++) {
		if (topo->node[i].has_memory && read_meminfo(topo->node[i].id, &mem))
			topo->node[i].free_bytes = mem.free_bytes;
	}
}

int lift_os_mems_allowed(struct lift_nodeset *ret, unsigned *ret_seccomp)
{
	struct lift_proc_status st;
	long n = lift_sys_read_file("/proc/thread-self/status", file, sizeof(file));

	if (n < 0)
		return (int)n;
	lift_parse_status(file, (size_t)n, &st);
	if (!st.has_mems_allowed)
		return -ENODATA;
	*ret = st.mems_allowed;
	if (ret_seccomp)
		*ret_seccomp = st.has_seccomp ? st.seccomp : 0;
	return 0;
}

int lift_os_probe_policies(struct lift_machine_view *ret, int node)
{
	struct lift_nodeset one = {{0}};
	long map = lift_sys_mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void *p = (void *)map;
	long err;

	if (lift_syserr(map))
		return (int)map;
	lift_nodeset_set(&one, node);
	err = lift_sys_mbind(p, 4096, LIFT_MPOL_PREFERRED, &one, 0);
	ret->balancing_flag_bind =
		lift_sys_mbind(p, 4096, LIFT_MPOL_BIND | LIFT_MPOL_F_NUMA_BALANCING, &one, 0) == 0;
	ret->has_weighted_interleave =
		lift_sys_mbind(p, 4096, LIFT_MPOL_WEIGHTED_INTERLEAVE, &one, 0) == 0;
	ret->balancing_flag_preferred_many =
		lift_sys_mbind(p, 4096, LIFT_MPOL_PREFERRED_MANY | LIFT_MPOL_F_NUMA_BALANCING, &one,
			0) == 0;
	ret->has_preferred_many = lift_sys_mbind(p, 4096, LIFT_MPOL_PREFERRED_MANY, &one, 0) == 0;
	(void)lift_sys_munmap(p, 4096);
	return err < 0 ? (int)err : 0;
}
