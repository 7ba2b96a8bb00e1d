// SPDX-License-Identifier: MIT
#include "shim/os/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "shim/os/rawsys.h"

#define CALL(nr, a, b, c, d, e, f)                                                                 \
	lift_syscall(nr, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))

#define OWN_MODE 0600

int lift_file_open(const char *path, int flags)
{
	return (int)CALL(
		SYS_openat, AT_FDCWD, path, flags | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY, 0, 0, 0);
}

int lift_file_create(const char *path)
{
	int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
	long fd = CALL(SYS_openat, AT_FDCWD, path, flags, OWN_MODE, 0, 0);

	if (fd >= 0)
		CALL(SYS_fchmod, fd, OWN_MODE, 0, 0, 0, 0);
	return (int)fd;
}

void lift_file_close(int fd)
{
	CALL(SYS_close, fd, 0, 0, 0, 0, 0);
}

static void info_of(const struct stat *st, struct lift_file_info *ret)
{
	*ret = (struct lift_file_info){
		.dev = (uint64_t)st->st_dev,
		.ino = (uint64_t)st->st_ino,
		.size = (uint64_t)st->st_size,
		.links = (uint64_t)st->st_nlink,
		.mode = st->st_mode,
		.uid = st->st_uid,
	};
}

int lift_file_info(int fd, struct lift_file_info *ret)
{
	struct stat st;
	long rc = CALL(SYS_fstat, fd, &st, 0, 0, 0, 0);

	if (rc < 0)
		return (int)rc;
	info_of(&st, ret);
	return 0;
}

int lift_file_info_at(const char *path, struct lift_file_info *ret)
{
	struct stat st;
	long rc = CALL(SYS_newfstatat, AT_FDCWD, path, &st, 0, 0, 0);

	if (rc < 0)
		return (int)rc;
	info_of(&st, ret);
	return 0;
}

int lift_file_reserve(int fd, uint64_t len)
{
	long rc;

	do
		rc = CALL(SYS_fallocate, fd, 0, 0, len, 0, 0);
	while (rc == -EINTR);
	return rc == -EOPNOTSUPP || rc == -ENOSYS ? 0 : (int)rc;
}

int lift_file_cut(int fd, uint64_t len)
{
	return (int)CALL(SYS_ftruncate, fd, len, 0, 0, 0, 0);
}

int lift_file_write_at(int fd, const void *buf, size_t len, uint64_t offset)
{
	size_t done = 0;

	while (done < len) {
		long n = CALL(SYS_pwrite64, fd, (const char *)buf + done, len - done, offset + done,
			0, 0);

		if (n == -EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? (int)n : -ENOSPC;
		done += (size_t)n;
	}
	return 0;
}

int lift_file_unlink(const char *path)
{
	return (int)CALL(SYS_unlinkat, AT_FDCWD, path, 0, 0, 0, 0);
}

uint64_t lift_file_limit(void)
{
	struct rlimit lim;

	if (CALL(SYS_prlimit64, 0, RLIMIT_FSIZE, NULL, &lim, 0, 0) < 0)
		return 0;
	return lim.rlim_cur;
}

uint32_t lift_file_euid(void)
{
	return (uint32_t)CALL(SYS_geteuid, 0, 0, 0, 0, 0, 0);
}

bool lift_file_process_exists(uint32_t pid)
{
	return CALL(SYS_kill, pid, 0, 0, 0, 0, 0) != -ESRCH;
}

long lift_file_entries(int fd, void *buf, size_t size)
{
	return CALL(SYS_getdents64, fd, buf, size, 0, 0, 0);
}

const char *lift_file_entry(const void *buf, long n, long *at)
{
	const struct dirent64 *d;

	if (*at >= n)
		return NULL;
	d = (const struct dirent64 *)(const void *)((const char *)buf + *at);
	*at += d->d_reclen;
	return d->d_name;
}
