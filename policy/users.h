/*
 * On which node are the threads that use a chunk? Samplers do not say who used a page, but kernels
 * count faults by thread. So pages of a group of chunks are armed by themselves: the threads that
 * take the faults are those that use the group. One that is used from one node is to go there; of
 * another one half is asked about. Groups grow again after each answer and keep their size from one
 * pass to the next, so what one thread uses is known after few questions however much it is, and
 * memory that all use, after some more than the binary logarithm of the number of its chunks.
 *
 * Only of interest where threads run on several fast nodes. Worker only.
 */
#ifndef LIFT_POLICY_USERS_H
#define LIFT_POLICY_USERS_H

#include <stdbool.h>
#include <stdint.h>

#include "policy/heat.h"
#include "policy/types.h"

/* Faults that an answer takes. */
#define LIFT_USERS_ENOUGH 16

struct lift_users {
	uint32_t size;  /* chunks of the next group; 0: all there are */
	uint32_t at;    /* where it begins, in this pass, */
	uint32_t end;   /* and ends: a chunk's number */
	uint32_t group; /* chunks that the question is about */
	unsigned asked; /* questions in this pass */
	unsigned mixed; /* chunks in a row that are used from several nodes */
	uint32_t rest;  /* passes without questions after one without an answer: doubles */
	uint32_t wait;  /* those that are left */
};

/* Before the questions of a pass. Nothing else may be armed when they are asked. */
void lift_users_begin(struct lift_users *u);

/* Whether there will be one in this pass, if anything is to be promoted. */
bool lift_users_wonders(const struct lift_users *u, const struct lift_heat *h);

/*
 * The next question: pages of chunks that were used in the last sample, are on slow nodes, and of
 * which it is not known who uses them; LIFT_CHUNK_ASKED is set when that was asked. At most
 * @max runs of pages in @ret, their number in *ret_nr. False: no more questions in this pass.
 */
bool lift_users_next(struct lift_users *u, const struct lift_heat *h, struct lift_range *ret,
	unsigned max, unsigned *ret_nr);

/*
 * The answer: faults by threads on each of @nr_slots, @all with those of others, and how many units
 * (pages, huge pages) of the ranges were used. Too few faults, or far more than that explains, are
 * none: then nothing is asked for some passes. Returns the slot whose threads use the group, or -1.
 */
int lift_users_answer(struct lift_users *u, struct lift_heat *h, const uint32_t *faults,
	unsigned nr_slots, uint32_t all, uint32_t used);

/* All is to be asked again. */
void lift_users_forget(struct lift_heat *h);

#endif
