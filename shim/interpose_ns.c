// SPDX-License-Identifier: MIT
/*
 * Namespaces. A process that has threads may not enter a user namespace, and some others not while
 * it shares its root and working folder (unshare(2), setns(2)): the worker makes way, and comes
 * back later.
 */
#include <errno.h>
#include <sched.h>

#include "shim/compiler.h"
#include "shim/interpose.h"
#include "shim/lifecycle.h"
#include "shim/next.h"
#include "shim/os/rawsys.h"
#include "shim/os/sys.h"
#include "shim/worker.h"

/* The kernel takes a thread off its process a moment after it has told those that wait for it. */
static long until_alone(long nr, long a, long b)
{
	enum { TRIES = 200 };
	long ret = lift_syscall(nr, a, b, 0, 0, 0, 0);

	for (int i = 0; ret == -EINVAL && i < TRIES; i++) {
		lift_sys_yield();
		ret = lift_syscall(nr, a, b, 0, 0, 0, 0);
	}
	return ret;
}

long lift_ns_call(long nr, long a, long b)
{
	bool alone = nr == SYS_setns ||
		     (a & (CLONE_NEWUSER | CLONE_VM | CLONE_SIGHAND | CLONE_THREAD)) != 0;
	long ret;

	if (!alone || !lift_worker_pause())
		return lift_syscall(nr, a, b, 0, 0, 0, 0);
	ret = until_alone(nr, a, b);
	lift_worker_resume();
	return ret;
}

static int result(long ret)
{
	if (likely(!lift_syserr(ret)))
		return (int)ret;
	errno = (int)-ret;
	return -1;
}

LIFT_EXPORT int unshare(int flags)
{
	if (lift_aside() && lift_next_fn(LIFT_NEXT_unshare))
		return LIFT_NEXT(unshare, int, (int), (flags));
	return result(lift_ns_call(SYS_unshare, flags, 0));
}

LIFT_EXPORT int setns(int fd, int type)
{
	if (lift_aside() && lift_next_fn(LIFT_NEXT_setns))
		return LIFT_NEXT(setns, int, (int, int), (fd, type));
	return result(lift_ns_call(SYS_setns, fd, type));
}
