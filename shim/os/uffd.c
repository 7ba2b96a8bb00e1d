// SPDX-License-Identifier: MIT
#include "shim/os/uffd.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>

#include "shim/os/rawsys.h"

/* What the oldest headers that we build with do not have. */
#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif
#ifndef UFFD_FEATURE_WP_ASYNC
#define UFFD_FEATURE_WP_ASYNC (1 << 15)
#endif
#ifndef UFFD_FEATURE_RWP
#define UFFD_FEATURE_RWP (1 << 17)
#endif
#ifndef UFFD_FEATURE_RWP_ASYNC
#define UFFD_FEATURE_RWP_ASYNC (1 << 18)
#endif
#ifndef UFFDIO_REGISTER_MODE_RWP
#define UFFDIO_REGISTER_MODE_RWP ((__u64)1 << 3)
#endif
#ifndef UFFDIO_RWPROTECT
#define _UFFDIO_RWPROTECT (0x09)
struct uffdio_rwprotect {
	struct uffdio_range range;
	__u64 mode;
};
#define UFFDIO_RWPROTECT_MODE_RWP ((__u64)1 << 0)
#define UFFDIO_RWPROTECT _IOWR(UFFDIO, _UFFDIO_RWPROTECT, struct uffdio_rwprotect)
#endif

static int uffd_ioctl(int fd, unsigned long request, void *arg)
{
	long ret;

	/* -EAGAIN: the address space is being changed (a fork, a move) this very moment. */
	for (unsigned tries = 0; tries < 8; tries++) {
		ret = lift_syscall(SYS_ioctl, fd, (long)request, (long)arg, 0, 0, 0);
		if (ret != -EAGAIN && ret != -EINTR)
			break;
	}
	return ret < 0 ? (int)ret : 0;
}

static struct uffdio_range range_of(struct lift_range r)
{
	return (struct uffdio_range){.start = r.start, .len = lift_range_bytes(r)};
}

int lift_uffd_open(struct lift_fd *ret, enum lift_uffd_kind kind)
{
	struct uffdio_api api = {
		.api = UFFD_API,
		.features = kind == LIFT_UFFD_RWP
				    ? UFFD_FEATURE_RWP | UFFD_FEATURE_RWP_ASYNC
				    : UFFD_FEATURE_PAGEFAULT_FLAG_WP | UFFD_FEATURE_WP_ASYNC,
	};
	struct lift_fd f;
	long fd = lift_syscall(
		SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY, 0, 0, 0, 0, 0);
	int rc;

	if (fd < 0)
		return (int)fd;
	rc = lift_fd_adopt(&f, (int)fd);
	if (rc < 0)
		return rc;
	rc = uffd_ioctl(f.nr - 1, UFFDIO_API, &api);
	if (rc < 0) {
		lift_fd_close(&f);
		return rc;
	}
	*ret = f;
	return 0;
}

int lift_uffd_register(int fd, enum lift_uffd_kind kind, struct lift_range range)
{
	struct uffdio_register reg = {
		.range = range_of(range),
		.mode = kind == LIFT_UFFD_RWP ? UFFDIO_REGISTER_MODE_RWP : UFFDIO_REGISTER_MODE_WP,
	};

	return uffd_ioctl(fd, UFFDIO_REGISTER, &reg);
}

int lift_uffd_unregister(int fd, struct lift_range range)
{
	struct uffdio_range r = range_of(range);

	return uffd_ioctl(fd, UFFDIO_UNREGISTER, &r);
}

int lift_uffd_arm(int fd, struct lift_range range)
{
	struct uffdio_rwprotect p = {.range = range_of(range), .mode = UFFDIO_RWPROTECT_MODE_RWP};

	return uffd_ioctl(fd, UFFDIO_RWPROTECT, &p);
}

int lift_uffd_release(int fd, enum lift_uffd_kind kind, struct lift_range range)
{
	struct uffdio_rwprotect p = {.range = range_of(range)};
	struct uffdio_writeprotect w = {.range = range_of(range)};

	return kind == LIFT_UFFD_RWP ? uffd_ioctl(fd, UFFDIO_RWPROTECT, &p)
				     : uffd_ioctl(fd, UFFDIO_WRITEPROTECT, &w);
}
