// SPDX-License-Identifier: MIT
/*
 * Keeps regions of memory apart as mappings of their own, for the sampler refs, which sees one sum
 * per mapping. policy/split says where the borders are. They are made of policies that say the same
 * in two ways in turn, so that the kernel does not merge what lies on both sides; pages do not
 * move, and borders lie on multiples of 2 MiB.
 *
 * Only private anonymous memory is taken, whose policy is none, or one that placement set for it as
 * a whole (lift_place_may_reword()). No policy can only be said as "local", which is the same as
 * long as no thread has a policy: where the calling thread has one nothing of that kind is taken,
 * and lift_apart_give_back() has to be called when a thread gets one later on. Automatic NUMA
 * balancing passes over "local".
 *
 * The mappings come out of the registry's budget, of which at least half is left to placement.
 *
 * Threads: the worker's, but for join() and give_back(). Borders and what they cost change under
 * the registry's lock only, so over a fork they are right in the child, too.
 */
#ifndef NUMALIFT_SHIM_APART_H
#define NUMALIFT_SHIM_APART_H

#include <stdbool.h>
#include <stddef.h>

#include "policy/split.h"
#include "policy/types.h"

/*
 * Divides what can be divided of the mappings that ranges lie in, anew where something has changed.
 * 0 or -errno.
 */
int lift_apart_watch(const struct lift_range *ranges, size_t nr);

/* The regions as they are, to read, to lift_split_sampled(), and to mark. */
struct lift_split *lift_apart_split(void);

/* Set by whoever has looked: the mappings that the region is made of are as they were. */
#define LIFT_APART_SEEN LIFT_SPLIT_MARK

/* Moves the borders by what was sampled. Only regions that are marked as seen are touched. */
void lift_apart_adapt(void);

/*
 * Makes each mapping of ranges one again, until the next watch(). Any thread, without the
 * registry's lock.
 */
void lift_apart_join(const struct lift_range *ranges, size_t nr);

/*
 * All of them, for the rest of the process's life: it has met vm.max_map_count, or a thread has a
 * policy now. True when there was something. Any thread, with the registry's lock held.
 */
bool lift_apart_give_back(void);

/* Ends it: all is as it was found, the budget too. */
void lift_apart_close(void);

#endif
