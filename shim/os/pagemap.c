// SPDX-License-Identifier: MIT
#include "shim/os/pagemap.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/fs.h>
#include <string.h>
#include <sys/ioctl.h>

#include "shim/os/rawsys.h"
#include "shim/os/sys.h"

#define PAGE 4096

/* What the oldest headers that we build with do not have. */
#ifndef PAGEMAP_SCAN
#define PAGE_IS_WPALLOWED (1 << 0)
#define PAGE_IS_WRITTEN (1 << 1)
#define PAGE_IS_PRESENT (1 << 3)
#define PAGE_IS_PFNZERO (1 << 5)
#define PAGE_IS_HUGE (1 << 6)
struct page_region {
	__u64 start;
	__u64 end;
	__u64 categories;
};
#define PM_SCAN_WP_MATCHING (1 << 0)
#define PM_SCAN_CHECK_WPASYNC (1 << 1)
struct pm_scan_arg {
	__u64 size;
	__u64 flags;
	__u64 start;
	__u64 end;
	__u64 walk_end;
	__u64 vec;
	__u64 vec_len;
	__u64 max_pages;
	__u64 category_inverted;
	__u64 category_mask;
	__u64 category_anyof_mask;
	__u64 return_mask;
};
#define PAGEMAP_SCAN _IOWR('f', 16, struct pm_scan_arg)
#endif
#ifndef PAGE_IS_ACCESSED
#define PAGE_IS_ACCESSED (1 << 9)
#endif

static_assert(LIFT_PAGE_WP_WATCHED == PAGE_IS_WPALLOWED && LIFT_PAGE_WRITTEN == PAGE_IS_WRITTEN &&
		      LIFT_PAGE_PRESENT == PAGE_IS_PRESENT && LIFT_PAGE_ZERO == PAGE_IS_PFNZERO &&
		      LIFT_PAGE_HUGE == PAGE_IS_HUGE && LIFT_PAGE_ACCESSED == PAGE_IS_ACCESSED,
	"the kernel's numbers");
static_assert(
	sizeof(struct lift_page_region) == sizeof(struct page_region) &&
		offsetof(struct lift_page_region, is) == offsetof(struct page_region, categories),
	"the kernel's layout");

/*
 * Opened with CAP_SYS_ADMIN it would show physical addresses, for as long as it is open and to
 * whoever has it. Capabilities are the thread's own.
 */
static int open_plain(struct lift_fd *ret, const char *path)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct had[2];
	struct __user_cap_data_struct less[2];
	bool dropped = false;
	int rc;

	if (lift_syscall(SYS_capget, (long)&head, (long)had, 0, 0, 0, 0) == 0 &&
		(had[0].effective >> CAP_SYS_ADMIN & 1)) {
		memcpy(less, had, sizeof(less));
		less[0].effective &= ~(UINT32_C(1) << CAP_SYS_ADMIN);
		dropped = lift_syscall(SYS_capset, (long)&head, (long)less, 0, 0, 0, 0) == 0;
	}
	rc = lift_fd_open(ret, path, O_RDONLY);
	if (dropped)
		(void)lift_syscall(SYS_capset, (long)&head, (long)had, 0, 0, 0, 0);
	return rc;
}

static struct lift_fd early;

int lift_pagemap_open(struct lift_fd *ret)
{
	int rc = open_plain(ret, "/proc/thread-self/pagemap");
	struct lift_fd got;
	int fd;

	if (rc != -EACCES || early.nr == 0)
		return rc;
	fd = lift_sys_borrow_fd(early.nr - 1);
	if (fd < 0 || lift_fd_adopt(&got, fd) < 0)
		return rc;
	/* The program may have closed it and have something else by this number. */
	if (got.dev != early.dev || got.ino != early.ino) {
		lift_fd_close(&got);
		return rc;
	}
	*ret = got;
	return 0;
}

void lift_pagemap_open_early(void)
{
	/* The process's: this thread may end. */
	if (lift_fd_get(&early) < 0)
		(void)open_plain(&early, "/proc/self/pagemap");
}

void lift_pagemap_forked(void)
{
	lift_fd_close(&early);
}

static long scan(int fd, struct pm_scan_arg *arg)
{
	long ret;

	do
		ret = lift_syscall(SYS_ioctl, fd, (long)PAGEMAP_SCAN, (long)arg, 0, 0, 0);
	while (ret == -EINTR);
	return ret;
}

long lift_pagemap_scan(int fd, const struct lift_pagemap_ask *ask, struct lift_page_region *ret,
	size_t nr, uintptr_t *ret_end)
{
	struct pm_scan_arg arg = {
		.size = sizeof(arg),
		.start = ask->range.start,
		.end = ask->range.end,
		.vec = (uintptr_t)ret,
		.vec_len = nr,
		.category_inverted = ask->none,
		.category_mask = ask->all | ask->none,
		.return_mask = ask->tell,
	};
	long n = scan(fd, &arg);

	if (n >= 0)
		*ret_end = (uintptr_t)arg.walk_end;
	/*
	 * The kernel has a buffer of its own for 512 regions. When that was full meanwhile, and all
	 * was told in the end, walk_end still says where that was: going on from there would tell
	 * of the rest twice.
	 */
	if (n > 0 && ret[n - 1].end > *ret_end)
		*ret_end = (uintptr_t)ret[n - 1].end;
	return n;
}

int lift_pagemap_protect(int fd, struct lift_range range)
{
	struct pm_scan_arg arg = {
		.size = sizeof(arg),
		.flags = PM_SCAN_WP_MATCHING | PM_SCAN_CHECK_WPASYNC,
		.start = range.start,
		.end = range.end,
		.category_inverted = PAGE_IS_HUGE,
		.category_mask = PAGE_IS_PRESENT | PAGE_IS_WRITTEN | PAGE_IS_HUGE,
	};
	long n = scan(fd, &arg);

	return n < 0 ? (int)n : 0;
}

long lift_pagemap_read(int fd, uintptr_t start, uint64_t *ret, size_t nr)
{
	long n = lift_fd_read_at(fd, ret, nr * sizeof(*ret), start / PAGE * sizeof(*ret));

	return n < 0 ? n : n / (long)sizeof(*ret);
}
