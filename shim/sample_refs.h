// SPDX-License-Identifier: MIT
/*
 * What the samplers refs and wp+refs have in common: the sums, region by region.
 */
#ifndef NUMALIFT_SHIM_SAMPLE_REFS_H
#define NUMALIFT_SHIM_SAMPLE_REFS_H

#include <stdbool.h>
#include <stddef.h>

#include "policy/types.h"
#include "shim/sampler.h"

/*
 * mixed: hot and cold lie in one region that is going to be split, so its sum says little about any
 * page of it.
 */
typedef void lift_refs_fn(void *arg, const struct lift_sample *sample, bool mixed);

/* Reports all that is resident, whether used or not. The first time after arm() it moves borders.
 */
int lift_refs_collect(const struct lift_range *ranges, size_t nr, lift_refs_fn *fn, void *arg);

#endif
