// SPDX-License-Identifier: MIT
/*
 * policy/memsys.h over Linux: move_pages(2), and where that is refused (seccomp, containers) mbind
 * with MPOL_MF_MOVE, after which each mapping gets the policy back that it had. Static buffers
 * only: one thread, the worker, and in the child of a fork whoever takes its place.
 *
 * Beyond the contract:
 * - move() with 0 may leave pages at -EAGAIN, after the kernel has given up on call upon call.
 * - mlock()ed pages move like others.
 * - A huge page is -ENOMEM, and not tried, from some 64 MiB and a 64th of the node's memory on: the
 *   kernel would split it. It also does when free memory is too scattered, and moves the pieces.
 * - By mbind: a page on its own costs two calls and, in between, two mappings. It splits the
 *   mapping of huge pages where the kernel cannot say that they are huge (PAGEMAP_SCAN, 6.7). A
 *   policy that the program sets at the very same time, and the home node of one
 *   (set_mempolicy_home_node) are lost. Memory that several processes share is not told from the
 *   zero page: both -EACCES.
 */
#ifndef NUMALIFT_SHIM_MEMSYS_LINUX_H
#define NUMALIFT_SHIM_MEMSYS_LINUX_H

#include "policy/memsys.h"

enum lift_memsys_how {
	LIFT_MEMSYS_MOVE_PAGES,
	LIFT_MEMSYS_MBIND,
	LIFT_MEMSYS_NONE, /* move() and where() return -EPERM */
};

const struct lift_memsys *lift_memsys_linux(void);

/*
 * Finds out how pages can be moved here, with a page of its own, and keeps to it. Until the first
 * call, and whenever the present way is refused, move() asks by itself; so this is for knowing it
 * in advance, and for trying again after LIFT_MEMSYS_NONE. 0, or -errno: nothing could be tried.
 *
 * A seccomp filter that kills is none of these: where there is a filter, it is the caller's
 * decision to call anything in this table at all.
 */
int lift_memsys_probe(int *ret_how);

#endif
