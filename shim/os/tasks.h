// SPDX-License-Identifier: MIT
/*
 * The threads of this process, from /proc/self/task, and what /proc tells about them. errno is left
 * alone, nothing is allocated; any thread.
 */
#ifndef NUMALIFT_SHIM_OS_TASKS_H
#define NUMALIFT_SHIM_OS_TASKS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct lift_tasks {
	int fd;
	pid_t tid;    /* the current one */
	uint64_t pos; /* for lift_tasks_seek(): behind it */
	char name[16];
	char *buf;
	size_t size;
	size_t from;
	size_t have;
};

/* The buffer is the caller's, 512 bytes at least. 0 or -errno. */
int lift_tasks_open(struct lift_tasks *t, char *buf, size_t size);

/* 1: t->tid is the next thread; 0: there is none; -errno. Threads that come and go meanwhile may be
 * missed. */
int lift_tasks_next(struct lift_tasks *t);

/* Before the first one: goes on where another reading stopped, 0 is the beginning. 0 or -errno. */
int lift_tasks_seek(struct lift_tasks *t, uint64_t pos);

/* As lift_sys_read_file(), of the file `name` in the current thread's folder. */
long lift_tasks_read(const struct lift_tasks *t, const char *name, char *buf, size_t size);

void lift_tasks_close(struct lift_tasks *t);

/* Memory of the process; all 0: /proc cannot say. */
struct lift_os_bytes {
	uint64_t resident;
	uint64_t data; /* mapped for writing, stack included */
};
struct lift_os_bytes lift_os_bytes(void);

#endif
