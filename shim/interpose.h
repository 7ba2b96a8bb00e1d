// SPDX-License-Identifier: MIT
/* Interposed functions under names that no other library can take: for comparing addresses. */
#ifndef NUMALIFT_SHIM_INTERPOSE_H
#define NUMALIFT_SHIM_INTERPOSE_H

#include <stddef.h>
#include <sys/types.h>

__attribute__((visibility("hidden"))) void *lift_own_mmap(
	void *addr, size_t len, int prot, int flags, int fd, off_t off);

__attribute__((visibility("hidden"))) int lift_own_munmap(void *addr, size_t len);
__attribute__((visibility("hidden"))) int lift_own_madvise(void *addr, size_t len, int advice);
__attribute__((visibility("hidden"))) int lift_own_mprotect(void *addr, size_t len, int prot);

/* unshare(2) and setns(2), without the worker where it would be in the way. Result or -errno. */
__attribute__((visibility("hidden"))) long lift_ns_call(long nr, long a, long b);

__attribute__((visibility("hidden"))) void *lift_own_malloc(size_t n);

#endif
