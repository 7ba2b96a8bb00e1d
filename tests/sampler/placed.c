// SPDX-License-Identifier: MIT
/* What the samplers ask of placement, without placement: what it bound is what a test says. */
#include "shim/place.h"

#include "tests/sampler/ground.h"

int placed_mode = LIFT_MPOL_DEFAULT;

_Atomic bool lift_placing;

void lift_place_stop(void)
{
}

bool lift_place_may_reword(struct lift_range range, int mode)
{
	(void)range;
	return mode == LIFT_MPOL_DEFAULT || mode == placed_mode;
}
