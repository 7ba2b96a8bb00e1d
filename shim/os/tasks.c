// SPDX-License-Identifier: MIT
#include "shim/os/tasks.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "policy/procparse.h"
#include "shim/os/rawsys.h"
#include "shim/os/sys.h"

#define TASKS "/proc/self/task"

int lift_tasks_open(struct lift_tasks *t, char *buf, size_t size)
{
	long fd = lift_syscall(
		SYS_openat, AT_FDCWD, (long)TASKS, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0, 0, 0);

	*t = (struct lift_tasks){.fd = (int)fd, .buf = buf, .size = size};
	return fd < 0 ? (int)fd : 0;
}

int lift_tasks_seek(struct lift_tasks *t, uint64_t pos)
{
	long ret = lift_syscall(SYS_lseek, t->fd, (long)pos, SEEK_SET, 0, 0, 0);

	return ret < 0 ? (int)ret : 0;
}

int lift_tasks_next(struct lift_tasks *t)
{
	for (;;) {
		const struct dirent64 *d;
		uint64_t tid;
		size_t len;

		if (t->from == t->have) {
			long n = lift_syscall(
				SYS_getdents64, t->fd, (long)t->buf, (long)t->size, 0, 0, 0);

			if (n <= 0)
				return (int)n;
			t->from = 0;
			t->have = (size_t)n;
		}
		d = (const struct dirent64 *)(const void *)(t->buf + t->from);
		t->from += d->d_reclen;
		t->pos = (uint64_t)d->d_off;
		len = strlen(d->d_name);
		if (len < sizeof(t->name) && lift_parse_u64(d->d_name, len, &tid) == 0) {
			memcpy(t->name, d->d_name, len + 1);
			t->tid = (pid_t)tid;
			return 1;
		}
	}
}

long lift_tasks_read(const struct lift_tasks *t, const char *name, char *buf, size_t size)
{
	char path[64] = TASKS "/";
	size_t at = strlen(path);
	size_t len = strlen(t->name);

	if (at + len + 1 + strlen(name) + 1 > sizeof(path))
		return -ENAMETOOLONG;
	memcpy(path + at, t->name, len);
	at += len;
	path[at++] = '/';
	memcpy(path + at, name, strlen(name) + 1);
	return lift_sys_read_file(path, buf, size);
}

void lift_tasks_close(struct lift_tasks *t)
{
	if (t->fd >= 0)
		lift_syscall(SYS_close, t->fd, 0, 0, 0, 0, 0);
	t->fd = -1;
}

struct lift_os_bytes lift_os_bytes(void)
{
	char buf[128];
	/* It may be some 64 pages per CPU behind: the kernel sums it up lazily. */
	long n = lift_sys_read_file("/proc/thread-self/statm", buf, sizeof(buf));
	struct lift_os_bytes ret = {0};
	uint64_t resident;
	uint64_t data;

	if (n > 0 && lift_parse_statm(buf, (size_t)n, &resident, &data) == 0) {
		ret.resident = resident * getauxval(AT_PAGESZ);
		ret.data = data * getauxval(AT_PAGESZ);
	}
	return ret;
}
