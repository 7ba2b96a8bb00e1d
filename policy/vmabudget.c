#include "policy/vmabudget.h"

#include <errno.h>

void lift_vmabudget_init(struct lift_vmabudget *b, uint64_t max_map_count)
{
	b->used = 0;
	lift_vmabudget_resize(b, max_map_count);
}

void lift_vmabudget_resize(struct lift_vmabudget *b, uint64_t max_map_count)
{
	/* Divided first: no overflow, and less than 100 VMAs are not worth a share. */
	b->max = max_map_count / 100 * LIFT_VMABUDGET_PERCENT;
}

int lift_vmabudget_take(struct lift_vmabudget *b, uint64_t nr)
{
	if (nr > lift_vmabudget_left(b))
		return -ENOSPC;
	b->used += nr;
	return 0;
}

void lift_vmabudget_give(struct lift_vmabudget *b, uint64_t nr)
{
	b->used -= nr < b->used ? nr : b->used;
}

uint64_t lift_vmabudget_left(const struct lift_vmabudget *b)
{
	return b->used < b->max ? b->max - b->used : 0;
}
