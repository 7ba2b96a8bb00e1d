// SPDX-License-Identifier: MIT
/*
 * The program's own memory policies. mbind and set_mempolicy are libnuma's names, and all of
 * libnuma's other functions go through them, so these two see every program that uses the library;
 * others use syscall(2), which is libc's and looked through for these two numbers. Who traps into
 * the kernel by himself is noticed when memory is next placed: the thread's policy is asked for
 * then.
 *
 * prctl is here, and seccomp's number, because a sandbox goes up through them: a filter may kill a
 * process that calls mbind.
 */
#include <errno.h>
#include <numaif.h>
#include <stdarg.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "shim/compiler.h"
#include "shim/heap.h"
#include "shim/interpose.h"
#include "shim/lifecycle.h"
#include "shim/next.h"
#include "shim/os/rawsys.h"
#include "shim/place.h"
#include "shim/worker.h"

static void sandboxed(void)
{
	lift_worker_sandboxed();
	lift_place_sandboxed();
	lift_heap_sandboxed();
}

LIFT_EXPORT long mbind(void *start, unsigned long len, int mode, const unsigned long *nodes,
	unsigned long maxnode, unsigned flags)
{
	long ret;

	if (lift_aside() && lift_next_fn(LIFT_NEXT_mbind))
		return LIFT_NEXT(mbind, long,
			(void *, unsigned long, int, const unsigned long *, unsigned long,
				unsigned),
			(start, len, mode, nodes, maxnode, flags));
	ret = lift_syscall(
		SYS_mbind, (long)start, (long)len, mode, (long)nodes, (long)maxnode, flags);
	if (ret == 0 && lift_place_active())
		lift_place_range_taken((uintptr_t)start, len);
	return lift_result(ret);
}

LIFT_EXPORT long set_mempolicy(int mode, const unsigned long *nodes, unsigned long maxnode)
{
	long ret;

	if (lift_aside() && lift_next_fn(LIFT_NEXT_set_mempolicy))
		return LIFT_NEXT(set_mempolicy, long, (int, const unsigned long *, unsigned long),
			(mode, nodes, maxnode));
	ret = lift_syscall(SYS_set_mempolicy, mode, (long)nodes, (long)maxnode, 0, 0, 0);
	if (ret == 0 && lift_place_active())
		lift_place_thread_policy(mode);
	return lift_result(ret);
}

LIFT_EXPORT int prctl(int option, ...)
{
	unsigned long a[4];
	va_list ap;

	/* As in libc: four are passed on, whatever the caller gave. */
	va_start(ap, option);
	for (int i = 0; i < 4; i++)
		a[i] = va_arg(ap, unsigned long);
	va_end(ap);
	if (lift_aside() && lift_next_fn(LIFT_NEXT_prctl))
		return LIFT_NEXT(prctl, int, (int, ...), (option, a[0], a[1], a[2], a[3]));
	if (option == PR_SET_SECCOMP || option == PR_SET_NO_NEW_PRIVS)
		sandboxed();
	return (int)lift_result(lift_process_call(
		SYS_prctl, (long[6]){option, (long)a[0], (long)a[1], (long)a[2], (long)a[3]}));
}

LIFT_EXPORT long syscall(long nr, ...)
{
	long a[6];
	long ret;
	va_list ap;

	/* As in libc: six are passed on, whatever the caller gave. */
	va_start(ap, nr);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(ap, long);
	va_end(ap);
	if (unlikely(nr == SYS_seccomp) && !lift_aside())
		sandboxed();
	/* mimalloc asks where it runs for each segment; a filter for a program that never did may
	 * kill. */
	if (unlikely(nr == SYS_getcpu) && lift_heap_in_sandbox() &&
		lift_heap_is_caller(__builtin_return_address(0)))
		return -1;
	/* What the program registers with a userfaultfd of its own must not be taken already. */
	if (unlikely(nr == SYS_userfaultfd) && !lift_aside())
		lift_worker_end();
	ret = lift_aside() ? lift_syscall(nr, a[0], a[1], a[2], a[3], a[4], a[5])
			   : lift_process_call(nr, a);
	if (lift_place_active() && ret == 0) {
		if (nr == SYS_mbind)
			lift_place_range_taken((uintptr_t)a[0], (size_t)a[1]);
		else if (nr == SYS_set_mempolicy)
			lift_place_thread_policy((int)a[0]);
	}
	return lift_result(ret);
}
