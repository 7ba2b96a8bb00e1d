// SPDX-License-Identifier: MIT
/*
 * The parts of `numalift check`. Each adds its lines to the report; later parts use what earlier
 * ones found out.
 */
#ifndef NUMALIFT_SHIM_CLI_CHECK_H
#define NUMALIFT_SHIM_CLI_CHECK_H

#include <stdbool.h>

#include "policy/config.h"
#include "policy/placement.h"
#include "policy/tiers.h"
#include "policy/topology.h"
#include "shim/cli/report.h"

struct lift_check {
	struct lift_report report;
	struct lift_config config;
	struct lift_topology topo;
	struct lift_tiers tiers;
	struct lift_machine_view view;
	struct lift_nodeset usable; /* with memory, and allowed */
	unsigned nr_tiers;          /* that have a usable node */
	bool has_topo;
	bool has_tiers;
	const char *why_not; /* the library places nothing; NULL: it does */
	bool policies_refused;
	int own_mode; /* of get_mempolicy(2), inherited by programs; -errno */
};

/* What the environment sets. First. */
void lift_check_settings(struct lift_check *c);
/* Kernel, nodes, permissions, limits. */
void lift_check_machine(struct lift_check *c);
/* What would be decided for each class. After the machine. */
void lift_check_placement(struct lift_check *c);
/* Whether hot pages would be lifted, and with what is there for watching and moving them. Likewise.
 */
void lift_check_promotion(struct lift_check *c);
/* The library, what it is linked with, and whether it can be preloaded. @asked as in library.h. */
void lift_check_library(struct lift_check *c, const char *asked);
/* One program, by name or path. */
void lift_check_program(struct lift_check *c, const char *name);

#endif
