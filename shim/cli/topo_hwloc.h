// SPDX-License-Identifier: MIT
/*
 * The machine as hwloc describes it: this one, beside what shim/os/topo_sysfs reads for the
 * library, or another one out of an XML file. The only user of hwloc, which allocates, prints and
 * reads its own variables of the environment (HWLOC_XMLFILE and others), and so has no place in the
 * library.
 */
#ifndef NUMALIFT_SHIM_CLI_TOPO_HWLOC_H
#define NUMALIFT_SHIM_CLI_TOPO_HWLOC_H

#include <stdbool.h>

#include "policy/topology.h"

#define LIFT_HWLOC_WORD 32
#define LIFT_HWLOC_CPUS 256

struct lift_hwloc {
	struct lift_topology topo; /* free_bytes, kernel_tier, weight: not known */
	bool this_machine;         /* not a file's */
	char api[LIFT_HWLOC_WORD]; /* version of its interface: 2.8 for 2.9 too */
	char subtype[LIFT_TOPO_NODES][LIFT_HWLOC_WORD]; /* "HBM", "NVM", ...; empty: not said */
	char cpus[LIFT_TOPO_NODES][LIFT_HWLOC_CPUS];    /* "0-3,8"; empty: none; a guess, see .c */
};

/*
 * @xml: a file as lstopo(1) writes it, NULL for what hwloc finds by itself. 0; -EINVAL: not a
 * topology that this hwloc understands; -ENODEV: it knows of no node; or another -errno. *ret is
 * untouched on failure.
 */
int lift_hwloc_topology(const char *xml, struct lift_hwloc *ret);

#endif
