// SPDX-License-Identifier: MIT
/*
 * /proc/self/pagemap: PAGEMAP_SCAN (6.7), which answers with ranges of pages, and the old file of
 * one word per page, for its soft-dirty bits. errno is left alone; async-signal-safe.
 */
#ifndef NUMALIFT_SHIM_OS_PAGEMAP_H
#define NUMALIFT_SHIM_OS_PAGEMAP_H

#include <stddef.h>
#include <stdint.h>

#include "policy/types.h"
#include "shim/os/fd.h"

/* Of pages; the kernel's PAGE_IS_* numbers. */
#define LIFT_PAGE_WP_WATCHED (UINT64_C(1) << 0) /* registered for WP_ASYNC */
#define LIFT_PAGE_WRITTEN (UINT64_C(1) << 1)    /* since it was protected, or never protected */
#define LIFT_PAGE_PRESENT (UINT64_C(1) << 3)
#define LIFT_PAGE_ZERO (UINT64_C(1) << 5) /* the zero page: takes no memory */
#define LIFT_PAGE_HUGE (UINT64_C(1) << 6)
#define LIFT_PAGE_ACCESSED (UINT64_C(1) << 9) /* 7.2; as WRITTEN, for RWP */

struct lift_page_region {
	uint64_t start;
	uint64_t end;
	uint64_t is; /* of what was asked for in `tell` */
};

struct lift_pagemap_ask {
	struct lift_range range;
	uint64_t all;  /* LIFT_PAGE_*: a page must be all of these */
	uint64_t none; /* and none of these */
	uint64_t tell; /* which of them the answer distinguishes; not 0 */
};

/*
 * 0 or -errno; -EACCES in a process that changed its user, unless it was opened early. The thread's
 * own file, for the process's has nothing in it once its first thread has ended.
 */
int lift_pagemap_open(struct lift_fd *ret);

/*
 * For a process that is about to change its user: a descriptor is kept in the calling thread's
 * table, and lift_pagemap_open() of a thread with another table borrows it.
 */
void lift_pagemap_open_early(void);
/* In the child of a fork: it is the parent's memory that it tells about. Async-signal-safe. */
void lift_pagemap_forked(void);

/*
 * Fills up to nr regions, ascending and merged, and says in *ret_end how far it got, which is the
 * end of the range when all has been told. Returns how many, or -errno: -ENOTTY or -EINVAL: the
 * kernel cannot.
 */
long lift_pagemap_scan(int fd, const struct lift_pagemap_ask *ask, struct lift_page_region *ret,
	size_t nr, uintptr_t *ret_end);

/*
 * Write-protects (as WP_ASYNC does) pages that are present, mapped small, and not protected. Pages
 * that are absent are not marked as the ioctl of userfaultfd would: that takes page tables and
 * keeps huge pages from being used there. 0 or -errno; -EPERM: some of it is not registered for
 * WP_ASYNC (with anybody).
 */
int lift_pagemap_protect(int fd, struct lift_range range);

/* The words of nr pages from start on: how many were read, or -errno. */
long lift_pagemap_read(int fd, uintptr_t start, uint64_t *ret, size_t nr);

#define LIFT_PAGEMAP_SOFT_DIRTY (UINT64_C(1) << 55)
#define LIFT_PAGEMAP_PRESENT (UINT64_C(1) << 63)

#endif
