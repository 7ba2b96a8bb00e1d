// SPDX-License-Identifier: MIT
/*
 * What things cost here, for policy/schedule.h: tried out on a few pages that are given back. The
 * worker only. It takes some milliseconds of CPU, 20 at most natively, and up to 512 KiB of memory.
 */
#ifndef NUMALIFT_SHIM_MEASURE_H
#define NUMALIFT_SHIM_MEASURE_H

#include "policy/memsys.h"
#include "policy/schedule.h"
#include "shim/sampler.h"

/*
 * *ret is always complete and within sane bounds: what cannot be measured has figures of a usual
 * machine. 0: all was measured. Else what kept moves from being measured: -ENOMEM: no room on a
 * node, or at all; -ENODEV: the nodes are the same one, or not there; or what move() said. Else
 * what kept the sampler from it: -EOPNOTSUPP: there is none (s is NULL), it sees no pages, or it
 * arms the whole process; or what it said itself.
 *
 * The sampler is opened by that, and left open. It must not be in the middle of a sample.
 */
int lift_measure_costs(const struct lift_sampler *s, const struct lift_memsys *m, int slow_node,
	int fast_node, struct lift_costs *ret);

#endif
