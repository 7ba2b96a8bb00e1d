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
#include <sys/prctl.h>
#include <unistd.h>

#include "shim/compiler.h"
#include "shim/interpose.h"
#include "shim/lifecycle.h"
#include "shim/next.h"
#include "shim/os/rawsys.h"
#include "shim/os/sys.h"
#include "shim/worker.h"

static bool without_worker(long nr, long a0)
{
	const long apart = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET |
			   CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP | CLONE_VM |
			   CLONE_SIGHAND | CLONE_THREAD;

	switch (nr) {
	case SYS_unshare:
		return (a0 & apart) != 0;
	case SYS_prctl:
		return a0 == PR_SET_SECCOMP || a0 == PR_SET_NO_NEW_PRIVS || a0 == PR_CAPBSET_DROP ||
		       a0 == PR_SET_SECUREBITS || a0 == PR_CAP_AMBIENT;
	case SYS_setns:
	case SYS_chroot:
	case SYS_pivot_root:
	case SYS_seccomp:
	case SYS_capset:
	case SYS_setuid:
	case SYS_setgid:
	case SYS_setreuid:
	case SYS_setregid:
	case SYS_setresuid:
	case SYS_setresgid:
	case SYS_setgroups:
	case SYS_setfsuid:
	case SYS_setfsgid:
		return true;
	default:
		return false;
	}
}

long lift_process_call(long nr, const long a[6])
{
	bool paused = unlikely(without_worker(nr, a[0])) && lift_worker_pause();
	long ret = lift_syscall(nr, a[0], a[1], a[2], a[3], a[4], a[5]);

	if (paused)
		lift_worker_resume();
	return ret;
}

/* --- namespaces --- */

LIFT_EXPORT int unshare(int flags)
{
	if (lift_aside() && lift_next_fn(LIFT_NEXT_unshare))
		return LIFT_NEXT(unshare, int, (int), (flags));
	return (int)lift_result(lift_process_call(SYS_unshare, (long[6]){flags}));
}

/* A thread with the old root would be a way out of the new one, by /proc. */
LIFT_EXPORT int chroot(const char *path)
{
	if (lift_aside() && lift_next_fn(LIFT_NEXT_chroot))
		return LIFT_NEXT(chroot, int, (const char *), (path));
	return (int)lift_result(lift_process_call(SYS_chroot, (long[6]){(long)path}));
}

LIFT_EXPORT int setns(int fd, int type)
{
	if (lift_aside() && lift_next_fn(LIFT_NEXT_setns))
		return LIFT_NEXT(setns, int, (int, int), (fd, type));
	return (int)lift_result(lift_process_call(SYS_setns, (long[6]){fd, type}));
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
	if (lift_aside() && lift_next_fn(LIFT_NEXT_capset))
		return LIFT_NEXT(
			capset, int, (cap_user_header_t, const cap_user_data_t), (header, data));
	return (int)lift_result(lift_process_call(SYS_capset, (long[6]){(long)header, (long)data}));
}
