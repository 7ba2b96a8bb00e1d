// SPDX-License-Identifier: MIT
/*
 * Calls for which a process has to be without threads, or without one that libc does not know: the
 * worker makes way, and comes back.
 *
 * A process that has threads may not enter a user namespace, and some others not while it shares
 * its root and working folder (unshare(2), setns(2)).
 *
 * Credentials belong to a thread. libc changes those of all threads that it has created; ours it
 * would leave with the old ones, so it takes over those of the thread that has changed its own.
 */
#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <sched.h>
#include <unistd.h>

#include "shim/compiler.h"
#include "shim/interpose.h"
#include "shim/lifecycle.h"
#include "shim/next.h"
#include "shim/os/rawsys.h"
#include "shim/os/sys.h"
#include "shim/worker.h"

long lift_ns_call(long nr, long a, long b)
{
	const long apart = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET |
			   CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP | CLONE_VM |
			   CLONE_SIGHAND | CLONE_THREAD;
	bool alone = nr == SYS_setns || (a & apart) != 0;
	long ret;

	if (!alone || !lift_worker_pause())
		return lift_syscall(nr, a, b, 0, 0, 0, 0);
	ret = lift_syscall(nr, a, b, 0, 0, 0, 0);
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

/* --- namespaces --- */

LIFT_EXPORT int unshare(int flags)
{
	if (lift_aside() && lift_next_fn(LIFT_NEXT_unshare))
		return LIFT_NEXT(unshare, int, (int), (flags));
	return result(lift_ns_call(SYS_unshare, flags, 0));
}

/* A thread with the old root would be a way out of the new one, by /proc. */
LIFT_EXPORT int chroot(const char *path)
{
	bool paused;
	long ret;

	if (lift_aside() && lift_next_fn(LIFT_NEXT_chroot))
		return LIFT_NEXT(chroot, int, (const char *), (path));
	paused = lift_worker_pause();
	ret = lift_syscall(SYS_chroot, (long)path, 0, 0, 0, 0, 0);
	if (paused)
		lift_worker_resume();
	return result(ret);
}

LIFT_EXPORT int setns(int fd, int type)
{
	if (lift_aside() && lift_next_fn(LIFT_NEXT_setns))
		return LIFT_NEXT(setns, int, (int, int), (fd, type));
	return result(lift_ns_call(SYS_setns, fd, type));
}

/* --- credentials --- */

/* clang-format off */
#define CREDENTIALS(name, types, params, args)                                                     \
	LIFT_EXPORT int name params                                                                \
	{                                                                                          \
		int ret;                                                                           \
                                                                                                   \
		if (unlikely(!lift_next_fn(LIFT_NEXT_##name))) {                                   \
			errno = ENOSYS;                                                            \
			return -1;                                                                 \
		}                                                                                  \
		if (lift_aside())                                                                  \
			return LIFT_NEXT(name, int, types, args);                                  \
		lift_worker_before_credentials();                                                  \
		ret = LIFT_NEXT(name, int, types, args);                                           \
		lift_worker_after_credentials();                                                   \
		return ret;                                                                        \
	}

CREDENTIALS(setuid, (uid_t), (uid_t u), (u))
CREDENTIALS(seteuid, (uid_t), (uid_t e), (e))
CREDENTIALS(setreuid, (uid_t, uid_t), (uid_t r, uid_t e), (r, e))
CREDENTIALS(setresuid, (uid_t, uid_t, uid_t), (uid_t r, uid_t e, uid_t s), (r, e, s))
CREDENTIALS(setgid, (gid_t), (gid_t g), (g))
CREDENTIALS(setegid, (gid_t), (gid_t e), (e))
CREDENTIALS(setregid, (gid_t, gid_t), (gid_t r, gid_t e), (r, e))
CREDENTIALS(setresgid, (gid_t, gid_t, gid_t), (gid_t r, gid_t e, gid_t s), (r, e, s))
CREDENTIALS(setgroups, (size_t, const gid_t *), (size_t n, const gid_t *g), (n, g))
CREDENTIALS(initgroups, (const char *, gid_t), (const char *user, gid_t g), (user, g))
/* clang-format on */

/* libc changes these for the calling thread only. */
int capset(cap_user_header_t header, const cap_user_data_t data); /* in libcap's headers only */
LIFT_EXPORT int capset(cap_user_header_t header, const cap_user_data_t data)
{
	bool paused;
	long ret;

	if (lift_aside() && lift_next_fn(LIFT_NEXT_capset))
		return LIFT_NEXT(
			capset, int, (cap_user_header_t, const cap_user_data_t), (header, data));
	paused = lift_worker_pause();
	ret = lift_syscall(SYS_capset, (long)header, (long)data, 0, 0, 0, 0);
	if (paused)
		lift_worker_resume();
	return result(ret);
}
