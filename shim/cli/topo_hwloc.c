// SPDX-License-Identifier: MIT
#include "shim/cli/topo_hwloc.h"

#include <errno.h>
#include <fcntl.h>
#include <hwloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static uint32_t clamp(uint64_t v)
{
	return v > UINT32_MAX ? UINT32_MAX : (uint32_t)v;
}

/* The figure from the initiator that is served best; 0 when there is none. */
static uint32_t attribute(hwloc_topology_t h, hwloc_memattr_id_t id, hwloc_obj_t node)
{
	struct hwloc_location initiator;
	hwloc_uint64_t value;

	if (hwloc_memattr_get_best_initiator(h, id, node, 0, &initiator, &value) < 0)
		return 0;
	return clamp(value);
}

/*
 * hwloc says which CPUs a node is near, not which are in it. For memory without CPUs of its own
 * (CXL, HBM) these are the CPUs of another node, which Linux numbers first; so a CPU is taken to be
 * in the lowest of the nodes that it is near.
 */
static bool read_cpus(hwloc_topology_t h, hwloc_obj_t obj, char ret[LIFT_HWLOC_CPUS])
{
	hwloc_bitmap_t own = obj->cpuset ? hwloc_bitmap_dup(obj->cpuset) : NULL;
	hwloc_obj_t other = NULL;
	bool any;

	if (!own)
		return false;
	while ((other = hwloc_get_next_obj_by_type(h, HWLOC_OBJ_NUMANODE, other)))
		if (other->os_index < obj->os_index && other->cpuset)
			(void)hwloc_bitmap_andnot(own, own, other->cpuset);
	(void)hwloc_bitmap_list_snprintf(ret, LIFT_HWLOC_CPUS, own);
	any = !hwloc_bitmap_iszero(own);
	hwloc_bitmap_free(own);
	return any;
}

static void read_node(hwloc_topology_t h, hwloc_obj_t obj, struct lift_hwloc *ret)
{
	int i = lift_topology_add(&ret->topo, (int)obj->os_index);
	struct lift_topo_node *node;

	if (i < 0)
		return;
	node = &ret->topo.node[i];
	node->total_bytes = obj->attr->numanode.local_memory;
	node->has_memory = node->total_bytes > 0;
	node->has_cpu = read_cpus(h, obj, ret->cpus[i]);
	node->read_latency_ns = attribute(h, HWLOC_MEMATTR_ID_LATENCY, obj);
	node->read_bandwidth_mbs = attribute(h, HWLOC_MEMATTR_ID_BANDWIDTH, obj);
	if (node->read_latency_ns || node->read_bandwidth_mbs)
		node->perf_source = LIFT_FACT_HMAT;
	if (obj->subtype)
		(void)snprintf(ret->subtype[i], LIFT_HWLOC_WORD, "%s", obj->subtype);
}

static void read_distances(hwloc_topology_t h, struct lift_topology *topo)
{
	struct hwloc_distances_s *d;
	unsigned nr = 1;

	if (hwloc_distances_get_by_type(
		    h, HWLOC_OBJ_NUMANODE, &nr, &d, HWLOC_DISTANCES_KIND_MEANS_LATENCY, 0) < 0 ||
		nr == 0)
		return;
	for (unsigned i = 0; i < d->nbobjs; i++) {
		int from = d->objs[i] ? lift_topology_find(topo, (int)d->objs[i]->os_index) : -1;

		for (unsigned j = 0; j < d->nbobjs && from >= 0; j++) {
			int to = d->objs[j] ? lift_topology_find(topo, (int)d->objs[j]->os_index)
					    : -1;
			hwloc_uint64_t v = d->values[i * d->nbobjs + j];

			if (to >= 0 && v <= UINT8_MAX)
				topo->distance[from][to] = (uint8_t)v;
		}
	}
	hwloc_distances_release(h, d);
}

/* A hint is asked of the XML library only after the file was seen to be there: its errors are
 * vague. */
static int readable(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	(void)close(fd);
	return 0;
}

static int load(hwloc_topology_t h, const char *xml)
{
	int rc = xml ? readable(xml) : 0;

	if (rc)
		return rc;
	if (xml && hwloc_topology_set_xml(h, xml) < 0)
		return -EINVAL;
	/* Nodes outside of the cpuset are shown too: that they may not be used is worth seeing. */
	(void)hwloc_topology_set_flags(h, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
	return hwloc_topology_load(h) < 0 ? -EINVAL : 0;
}

int lift_hwloc_topology(const char *xml, struct lift_hwloc *ret)
{
	unsigned api = hwloc_get_api_version();
	struct lift_hwloc found = {0};
	hwloc_obj_t obj = NULL;
	hwloc_topology_t h;
	int rc;

	if (hwloc_topology_init(&h) < 0)
		return -ENOMEM;
	rc = load(h, xml);
	if (rc)
		goto out_destroy;
	lift_topology_init(&found.topo);
	(void)snprintf(found.api, sizeof(found.api), "%u.%u", api >> 16, api >> 8 & 0xff);
	found.this_machine = hwloc_topology_is_thissystem(h);
	while ((obj = hwloc_get_next_obj_by_type(h, HWLOC_OBJ_NUMANODE, obj)))
		read_node(h, obj, &found);
	read_distances(h, &found.topo);
	if (found.topo.nr == 0)
		rc = -ENODEV;
	else
		*ret = found;
out_destroy:
	hwloc_topology_destroy(h);
	return rc;
}
