// SPDX-License-Identifier: MIT
/*
 * Placement: looks at every mapping that is worth a decision, asks policy/placement what to do, and
 * binds the range. On a machine with one node lift_placing is 0 and nothing here is ever called.
 *
 * The machine is read when the first decision is due, not at start: a compiler run by the thousand
 * should not pay for sysfs. What the kernel refuses stays as it was, is counted, and said once. All
 * calls keep errno, never fail, and are safe from any thread and from signal handlers (where they
 * may do nothing).
 */
#ifndef NUMALIFT_SHIM_PLACE_H
#define NUMALIFT_SHIM_PLACE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "policy/tiers.h"
#include "policy/topology.h"
#include "policy/types.h"
#include "shim/compiler.h"

extern __attribute__((visibility("hidden"))) _Atomic bool lift_placing;

/* The one question that the mapping calls ask on every machine. */
static inline bool lift_place_active(void)
{
	return unlikely(atomic_load_explicit(&lift_placing, memory_order_relaxed));
}

/* From lift_boot(). nodes: how many there are with memory; 1 or 0 turns placement off. */
void lift_place_boot(unsigned nodes);

/* The constructor's part: the page cache policy, messages. */
void lift_place_start(void);

/* After a successful mmap. */
void lift_place_mapped(uintptr_t start, size_t len, int prot, int flags, int fd);
/* After a successful mprotect that gives access: address space that was reserved may become memory.
 */
void lift_place_opened(uintptr_t start, size_t len);
/* After shmat: a System V segment. */
void lift_place_attached(uintptr_t start, size_t len);
void lift_place_detached(uintptr_t start);
/* mimalloc's granules, and blocks that are mappings of their own. */
void lift_place_heap(uintptr_t start, size_t len);
void lift_place_block(uintptr_t start, size_t len);
void lift_place_unmapped(uintptr_t start, size_t len);
/* With the registry's lock held: may bindings of ours have made several mappings of this range? */
bool lift_place_cut_up(uintptr_t start, size_t len);

/* After a successful mremap, with the registry's lock held by the caller. */
void lift_place_remapped(
	uintptr_t old, size_t old_len, uintptr_t new, size_t new_len, bool keep_old);

/* The program bound a range itself: it is its own from now on. */
void lift_place_range_taken(uintptr_t start, size_t len);
/*
 * The calling thread has this memory policy now. If it is one of its own: what was bound
 * for placement's sake is unbound again, so that the policy decides about every page not yet
 * touched.
 */
void lift_place_thread_policy(int mode);

/*
 * The program has met vm.max_map_count: takes apart what costs mappings, and makes no more of it.
 * True when there was something, so that the call is worth another try.
 */
bool lift_place_give_mappings_back(void);

/*
 * With the registry's lock held: may the policy of this range, whose mode is given, be said in
 * another form? Yes where it is none or placement's own for all of it, and nobody set it meanwhile.
 */
bool lift_place_may_reword(struct lift_range range, int mode);

/* True when memory can be populated after it is bound (madvise, 5.14), instead of by mmap itself.
 */
bool lift_place_populates_late(void);

/*
 * For the worker: the machine as placement sees it, read if it has not been yet. allowed: nodes of
 * the cpuset, and of the calling thread's own policy if it is one that binds. False when there is
 * nothing to place on.
 */
struct lift_place_machine {
	struct lift_topology topo;
	struct lift_tiers tiers;
	struct lift_nodeset allowed;
	int task_mode; /* the calling thread's own policy; LIFT_MPOL_DEFAULT: it has none */
};
bool lift_place_machine(struct lift_place_machine *ret);

/*
 * For the worker: memory whose place was chosen by the program's own mbind or by the user's naming
 * nodes, ascending, at most max ranges. How many.
 */
size_t lift_place_fixed(struct lift_range *ret, size_t max);

/* How often there was more of it: what was read before may be out of date. Any thread. */
unsigned lift_place_fixed_changes(void);

/* Nothing is placed any more in this process. Async-signal-safe. */
void lift_place_stop(void);

/* A sandbox goes up: policies are not set any more, unless they were asked for by name. */
void lift_place_sandboxed(void);

#endif
