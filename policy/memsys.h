/*
 * The seam to the machine: what promotion asks of it, as one table of functions. shim/os has the
 * real one, tests/fake one of RAM and arithmetic. policy/ itself never calls it; it says what is to
 * be done (policy/promote.h), and the worker does that through this table.
 *
 * Worker thread only. No function touches errno, allocates or takes a lock of the program. All
 * return 0 or more, or -errno as told below; outputs are untouched on failure unless said
 * otherwise.
 */
#ifndef LIFT_POLICY_MEMSYS_H
#define LIFT_POLICY_MEMSYS_H

#include <stddef.h>
#include <stdint.h>

#include "policy/types.h"

struct lift_memsys {
	void *ctx; /* handed to every function */

	/*
	 * Sets the policy of @range, whole pages: @mode is an enum lift_mpol with flags, @nodes its
	 * nodes (NULL with LIFT_MPOL_DEFAULT and _LOCAL). Pages that are there do not move.
	 * -EINVAL: the kernel has not got this mode or flag, or no node of it is allowed here;
	 * -ENOMEM: no more mappings; -EFAULT: part of the range is not mapped; -EPERM, -ENOSYS:
	 * forbidden here.
	 */
	int (*place)(
		void *ctx, struct lift_range range, int mode, const struct lift_nodeset *nodes);

	/*
	 * Moves @nr pages, given by address, to @node. ret_status[i] is the node that page i is on
	 * afterwards (@node: moved, or was there before) or its own -errno:
	 *   -EBUSY    in use by the kernel (I/O, a lock) or locked in memory: another time
	 *   -ENOENT   not there: never touched, discarded, swapped
	 *   -EFAULT   the zero page, or not mapped any more
	 *   -EACCES   shared with another process: needs a privilege
	 *   -ENOMEM   no room on @node
	 *   -EAGAIN   not tried, because the call ended early
	 * 0: every page has a status. -errno: the call ended early; pages that it did not reach
	 * have -EAGAIN, and the error says why it ended: -ENODEV: there is no such node (any more);
	 * -EACCES: it is not among the nodes allowed; -ENOMEM: out of memory; -EPERM, -ENOSYS:
	 * moving is forbidden here at all. A huge page is given by its first address and moves
	 * whole.
	 */
	int (*move)(void *ctx, const uintptr_t *pages, size_t nr, int node, int *ret_status);

	/*
	 * The node of each page, or -ENOENT (not there), -EFAULT (zero page, not mapped), -EACCES.
	 * 0, or -errno when nothing could be found out: -EPERM, -ENOSYS, -ENOMEM.
	 */
	int (*where)(void *ctx, const uintptr_t *pages, size_t nr, int *ret_status);

	/* What a node has and has left. -ENODEV: there is no such node (any more). */
	int (*free_memory)(
		void *ctx, int node, uint64_t *ret_free_bytes, uint64_t *ret_total_bytes);

	/* Nanoseconds of a clock that only goes forward. */
	uint64_t (*now)(void *ctx);
};

#endif
