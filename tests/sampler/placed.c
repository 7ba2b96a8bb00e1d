// SPDX-License-Identifier: MIT
/* What the samplers ask of placement, without placement: nothing is bound for its sake here. */
#include "shim/place.h"

_Atomic bool lift_placing;

void lift_place_stop(void)
{
}

bool lift_place_may_reword(struct lift_range range, int mode)
{
	(void)range;
	return mode == LIFT_MPOL_DEFAULT;
}
