// SPDX-License-Identifier: MIT
/*
 * The machine's nodes as sysfs and procfs tell them, read with raw system calls into the caller's
 * memory: it must work inside an allocation, where hwloc and libnuma (which allocate, print and can
 * exit) may not be called. `numalift topology` puts hwloc's view beside it. Any thread, but
 * one at a time: they share a buffer, since the caller may be on a small stack.
 */
#ifndef NUMALIFT_SHIM_OS_TOPO_SYSFS_H
#define NUMALIFT_SHIM_OS_TOPO_SYSFS_H

#include <stdbool.h>
#include <stdint.h>

#include "policy/placement.h"
#include "policy/topology.h"
#include "policy/types.h"

/* Nodes that have memory. -errno when sysfs cannot say (no sysfs, no NUMA in the kernel). */
int lift_os_memory_nodes(struct lift_nodeset *ret);

/* All online nodes with what is known of each. -errno as above. */
int lift_os_topology(struct lift_topology *ret);

/* MemFree of every node described, again. Nodes that cannot be read keep what they had. */
void lift_os_refresh_free(struct lift_topology *topo);

/*
 * Nodes that the calling process may use (Mems_allowed of its status), and its seccomp mode;
 * *ret_seccomp may be NULL. -errno when /proc cannot say.
 */
int lift_os_mems_allowed(struct lift_nodeset *ret, unsigned *ret_seccomp);

/* "prefix" n "suffix", for names of files; n is not negative. Any thread; returns buf. */
const char *lift_os_path(char buf[128], const char *prefix, int n, const char *suffix);

/* One number from a file of /proc or /sys, or `otherwise`. */
uint64_t lift_os_number(const char *path, uint64_t otherwise);

/*
 * Fills the has_... and balancing_... members of *ret by trying each policy on a page of its own,
 * with `node`, which must be allowed. Nothing of the process changes. -errno when policies cannot
 * be set at all (EPERM, ENOSYS in a container): all members are false then.
 */
int lift_os_probe_policies(struct lift_machine_view *ret, int node);

#endif
