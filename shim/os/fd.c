// SPDX-License-Identifier: MIT
#include "shim/os/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "shim/os/rawsys.h"

#define CALL(nr, a, b, c, d, e, f)                                                                 \
	lift_syscall(nr, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))

/*
 * Where to look for a number first: close to the limit, but not so high that the kernel's table of
 * descriptors, which has 8 bytes for each number up to the highest, becomes large.
 */
#define HIGH_NR 4096
#define HIGH_ROOM 32
/* Below this a program would see a difference. */
#define LOW_NR 16

static long close_nr(int fd)
{
	return CALL(SYS_close, fd, 0, 0, 0, 0, 0);
}

static int identify(int fd, uint64_t *ret_dev, uint64_t *ret_ino)
{
	struct stat st;
	long ret = CALL(SYS_fstat, fd, &st, 0, 0, 0, 0);

	if (ret < 0)
		return (int)ret;
	*ret_dev = (uint64_t)st.st_dev;
	*ret_ino = (uint64_t)st.st_ino;
	return 0;
}

int lift_fd_adopt(struct lift_fd *ret, int fd)
{
	struct lift_fd f = {0};
	struct rlimit lim;
	long from = HIGH_NR;
	long high;
	int rc;

	if (CALL(SYS_prlimit64, 0, RLIMIT_NOFILE, NULL, &lim, 0, 0) == 0 && lim.rlim_cur < HIGH_NR)
		from = (long)lim.rlim_cur;
	from -= HIGH_ROOM;
	do {
		high = CALL(SYS_fcntl, fd, F_DUPFD_CLOEXEC, from, 0, 0, 0);
		from /= 2;
	} while ((high == -EMFILE || high == -EINVAL) && from >= LOW_NR);
	close_nr(fd);
	if (high < 0)
		return (int)high;
	rc = identify((int)high, &f.dev, &f.ino);
	if (rc < 0) {
		close_nr((int)high);
		return rc;
	}
	f.nr = (int)high + 1;
	*ret = f;
	return 0;
}

int lift_fd_open(struct lift_fd *ret, const char *path, int flags)
{
	long fd = CALL(SYS_openat, AT_FDCWD, path, flags | O_CLOEXEC, 0, 0, 0);

	return fd < 0 ? (int)fd : lift_fd_adopt(ret, (int)fd);
}

int lift_fd_get(const struct lift_fd *f)
{
	uint64_t dev = 0;
	uint64_t ino = 0;

	if (f->nr == 0 || identify(f->nr - 1, &dev, &ino) < 0 || dev != f->dev || ino != f->ino)
		return -EBADF;
	return f->nr - 1;
}

void lift_fd_close(struct lift_fd *f)
{
	int fd = lift_fd_get(f);

	if (fd >= 0)
		close_nr(fd);
	f->nr = 0;
}

long lift_fd_read_at(int fd, void *buf, size_t len, uint64_t offset)
{
	long n;

	do
		n = CALL(SYS_pread64, fd, buf, len, offset, 0, 0);
	while (n == -EINTR);
	return n;
}
