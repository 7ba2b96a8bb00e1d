// SPDX-License-Identifier: MIT
/*
 * The mapping calls that the program and its libraries bind to. Raw system calls only: no dlsym, no
 * allocation, nothing that could come back here. A call that comes from mimalloc (by its return
 * address) is heap memory: it gets aligned granules and, unlike everybody else, no errno.
 *
 * brk and sbrk are not here: a program's brk heap stays where the kernel puts it.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <sys/mman.h>

#include "shim/compiler.h"
#include "shim/heap.h"
#include "shim/interpose.h"
#include "shim/lifecycle.h"
#include "shim/next.h"
#include "shim/os/rawsys.h"
#include "shim/vm.h"
#include "shim/worker.h"

#define FROM_MIMALLOC() lift_heap_is_caller(__builtin_return_address(0))

LIFT_EXPORT void *mmap(void *addr, size_t len, int prot, int flags, int fd, off_t off)
{
	long ret;

	if (unlikely(FROM_MIMALLOC())) {
		ret = lift_heap_map(addr, len, prot, flags, fd, off);
		return lift_syserr(ret) ? MAP_FAILED : (void *)ret;
	}
	if (lift_aside() && lift_next_fn(LIFT_NEXT_mmap))
		return LIFT_NEXT(mmap, void *, (void *, size_t, int, int, int, off_t),
			(addr, len, prot, flags, fd, off));
	return (void *)lift_result(lift_vm_mmap(addr, len, prot, flags, fd, off));
}

__attribute__((alias("mmap"), visibility("hidden"), nothrow, leaf)) void *lift_own_mmap(
	void *addr, size_t len, int prot, int flags, int fd, off_t off);

/* off_t has 64 bits on every machine that this library is for. */
LIFT_EXPORT void *mmap64(void *addr, size_t len, int prot, int flags, int fd, off64_t off)
{
	return mmap(addr, len, prot, flags, fd, off);
}

LIFT_EXPORT int munmap(void *addr, size_t len)
{
	/* Heap memory is mimalloc's to unmap, whoever stands between us. */
	if (unlikely(lift_heap_owns(addr)) || unlikely(FROM_MIMALLOC()))
		return lift_heap_unmap(addr, len) < 0 ? -1 : 0;
	if (lift_aside() && lift_next_fn(LIFT_NEXT_munmap))
		return LIFT_NEXT(munmap, int, (void *, size_t), (addr, len));
	return (int)lift_result(lift_vm_unmap(addr, len));
}

LIFT_EXPORT void *mremap(void *old, size_t old_len, size_t new_len, int flags, ...)
{
	void *to = NULL;
	va_list ap;

	/* The fifth argument is there only when a flag says so (mremap(2)). */
	if (flags & (MREMAP_FIXED | MREMAP_DONTUNMAP)) {
		va_start(ap, flags);
		to = va_arg(ap, void *);
		va_end(ap);
	}
	if (lift_aside() && lift_next_fn(LIFT_NEXT_mremap))
		return LIFT_NEXT(mremap, void *, (void *, size_t, size_t, int, ...),
			(old, old_len, new_len, flags, to));
	return (void *)lift_result(lift_vm_remap(old, old_len, new_len, flags, to));
}

LIFT_EXPORT int madvise(void *addr, size_t len, int advice)
{
	if (unlikely(FROM_MIMALLOC()))
		return lift_heap_advise(addr, len, advice) < 0 ? -1 : 0;
	if (lift_aside() && lift_next_fn(LIFT_NEXT_madvise))
		return LIFT_NEXT(madvise, int, (void *, size_t, int), (addr, len, advice));
	return (int)lift_result(lift_vm_advise(addr, len, advice));
}

LIFT_EXPORT int mprotect(void *addr, size_t len, int prot)
{
	if (unlikely(FROM_MIMALLOC()))
		return lift_heap_protect(addr, len, prot) < 0 ? -1 : 0;
	if (lift_aside() && lift_next_fn(LIFT_NEXT_mprotect))
		return LIFT_NEXT(mprotect, int, (void *, size_t, int), (addr, len, prot));
	return (int)lift_result(lift_vm_protect(addr, len, prot));
}

__attribute__((alias("munmap"), visibility("hidden"), nothrow, leaf)) int lift_own_munmap(
	void *addr, size_t len);
__attribute__((alias("madvise"), visibility("hidden"), nothrow, leaf)) int lift_own_madvise(
	void *addr, size_t len, int advice);
__attribute__((alias("mprotect"), visibility("hidden"), nothrow, leaf)) int lift_own_mprotect(
	void *addr, size_t len, int prot);

/* Only to know whether new mappings are locked: heap.c then asks for them in smaller pieces. */
LIFT_EXPORT int mlockall(int flags)
{
	long ret;

	if (lift_aside() && lift_next_fn(LIFT_NEXT_mlockall))
		return LIFT_NEXT(mlockall, int, (int), (flags));
	/* What is locked is not moved, and the worker's address space is not to be locked. */
	lift_worker_end();
	ret = lift_syscall(SYS_mlockall, flags, 0, 0, 0, 0, 0);

	if (ret == -ENOMEM) {
		/* RLIMIT_MEMLOCK counts address space: it must not be ours that makes the
		 * difference. */
		(void)lift_heap_drop_spare();
		ret = lift_syscall(SYS_mlockall, flags, 0, 0, 0, 0, 0);
	}
	if (!lift_syserr(ret))
		lift_heap_locked((flags & MCL_FUTURE) != 0);
	return (int)lift_result(ret);
}

LIFT_EXPORT int munlockall(void)
{
	long ret;

	if (lift_aside() && lift_next_fn(LIFT_NEXT_munlockall))
		return LIFT_NEXT(munlockall, int, (void), ());
	ret = lift_syscall(SYS_munlockall, 0, 0, 0, 0, 0, 0);

	if (!lift_syserr(ret))
		lift_heap_unlocked();
	return (int)lift_result(ret);
}
