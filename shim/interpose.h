// SPDX-License-Identifier: MIT
/*
 * What interposed functions share; and some of them under names that no other library can take, for
 * comparing addresses.
 */
#ifndef NUMALIFT_SHIM_INTERPOSE_H
#define NUMALIFT_SHIM_INTERPOSE_H

#include <errno.h>
#include <stddef.h>
#include <sys/types.h>

#include "shim/compiler.h"
#include "shim/os/rawsys.h"

__attribute__((visibility("hidden"))) void *lift_own_mmap(
	void *addr, size_t len, int prot, int flags, int fd, off_t off);

__attribute__((visibility("hidden"))) int lift_own_munmap(void *addr, size_t len);
__attribute__((visibility("hidden"))) int lift_own_madvise(void *addr, size_t len, int advice);
__attribute__((visibility("hidden"))) int lift_own_mprotect(void *addr, size_t len, int prot);

/*
 * A system call of the program, for which the worker makes way where it would be an obstacle, or be
 * left with what the calling thread gives up; it comes back afterwards. Result or -errno.
 */
__attribute__((visibility("hidden"))) long lift_process_call(long nr, const long a[6]);

/* What the kernel says, as libc's functions say it. */
static inline long lift_result(long ret)
{
	if (likely(!lift_syserr(ret)))
		return ret;
	errno = (int)-ret;
	return -1;
}

__attribute__((visibility("hidden"))) void *lift_own_malloc(size_t n);

#endif
