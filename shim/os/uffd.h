// SPDX-License-Identifier: MIT
/*
 * userfaultfd in its asynchronous modes: the kernel takes the first access after arming, lets it
 * through and notes it, and nobody is woken. Synchronous modes are not offered here at all: with
 * them system calls on such memory would fail or wait.
 *
 * All return 0 or -errno, leave errno alone, and are async-signal-safe.
 */
#ifndef NUMALIFT_SHIM_OS_UFFD_H
#define NUMALIFT_SHIM_OS_UFFD_H

#include <stdbool.h>
#include <stdint.h>

#include "policy/types.h"
#include "shim/os/fd.h"

enum lift_uffd_kind {
	LIFT_UFFD_RWP, /* reads and writes */
	LIFT_UFFD_WP,  /* writes; armed by lift_pagemap_protect() */
};

/*
 * A descriptor that can do this and nothing else, for user mode faults only, which needs no
 * privilege. -EINVAL: the kernel cannot; -ENOSYS, -EPERM: not here.
 */
int lift_uffd_open(struct lift_fd *ret, enum lift_uffd_kind kind);

/*
 * Registers the mappings in a range, whole: 0 also when they are registered with this descriptor.
 * -EBUSY: one of them is with another one; -EINVAL: nothing mapped, or something that cannot be;
 * -ENOMEM. Nothing is registered on failure.
 */
int lift_uffd_register(int fd, enum lift_uffd_kind kind, struct lift_range range);

/*
 * To be called only after a lift_uffd_register() of the same range has succeeded: some kernels
 * unregister other descriptors' ranges, too.
 */
int lift_uffd_unregister(int fd, struct lift_range range);

/*
 * RWP: the next access to each page now present will be noted. -ENOENT: some or all of it is not
 * registered (pages below may be armed already). Does not ask whose registration it is.
 */
int lift_uffd_arm(int fd, struct lift_range range);

/* The opposite, of either kind: accesses are not noted any more, and cost no fault. */
int lift_uffd_release(int fd, enum lift_uffd_kind kind, struct lift_range range);

#endif
