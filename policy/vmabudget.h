/*
 * How many VMAs numalift may cost the program. A process has at most vm.max_map_count of them, and
 * past that its own mmap and munmap fail; so we take a share and leave the rest. Plain
 * counters: the caller serialises.
 */
#ifndef LIFT_POLICY_VMABUDGET_H
#define LIFT_POLICY_VMABUDGET_H

#include <stdint.h>

#define LIFT_VMABUDGET_PERCENT 25

struct lift_vmabudget {
	uint64_t max;
	uint64_t used; /* <= max, but for a max that was lowered while more was in use */
};

/* LIFT_VMABUDGET_PERCENT of @max_map_count, none used. 0 (not known): nothing is ever granted. */
void lift_vmabudget_init(struct lift_vmabudget *b, uint64_t max_map_count);

/* vm.max_map_count was changed; what is in use stays in use. */
void lift_vmabudget_resize(struct lift_vmabudget *b, uint64_t max_map_count);

/* Takes @nr, all or none: 0, or -ENOSPC. */
int lift_vmabudget_take(struct lift_vmabudget *b, uint64_t nr);

/* Gives back @nr; more than was taken counts as all. */
void lift_vmabudget_give(struct lift_vmabudget *b, uint64_t nr);

uint64_t lift_vmabudget_left(const struct lift_vmabudget *b);

#endif
