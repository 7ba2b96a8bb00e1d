// SPDX-License-Identifier: MIT
#include "shim/vm.h"

#include <errno.h>
#include <sys/mman.h>

#include "shim/compiler.h"
#include "shim/os/rawsys.h"
#include "shim/os/sys.h"
#include "shim/place.h"
#include "shim/registry.h"
#include "shim/worker.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif

/* ENOMEM can mean vm.max_map_count, of which placement has a share; the program goes first. */
static bool worth_another_try(long ret)
{
	return unlikely(ret == -ENOMEM) && lift_place_active() && lift_place_give_mappings_back();
}

long lift_vm_mmap(void *addr, size_t len, int prot, int flags, int fd, off_t off)
{
	/* Pages that mmap itself populates would lie where they are before they are bound. */
	bool late = lift_place_active() && (flags & MAP_POPULATE) &&
		    !(flags & (MAP_LOCKED | MAP_NONBLOCK)) && lift_place_populates_late();
	int how = late ? flags & ~MAP_POPULATE : flags;
	long ret = lift_sys_mmap(addr, len, prot, how, fd, off);

	if (worth_another_try(ret))
		ret = lift_sys_mmap(addr, len, prot, how, fd, off);
	if (prot != PROT_NONE)
		lift_worker_mapped(len);
	if (!lift_place_active() || lift_syserr(ret))
		return ret;
	lift_place_mapped((uintptr_t)ret, len, prot, flags, fd);
	if (late)
		(void)lift_sys_madvise((void *)ret, len,
			prot & PROT_WRITE ? MADV_POPULATE_WRITE : MADV_POPULATE_READ);
	return ret;
}

long lift_vm_unmap(void *addr, size_t len)
{
	long ret;

	/* Before the call: afterwards the range may be another thread's new mapping already. */
	if (lift_place_active())
		lift_place_unmapped((uintptr_t)addr, len);
	ret = lift_sys_munmap(addr, len);
	return worth_another_try(ret) ? lift_sys_munmap(addr, len) : ret;
}

long lift_vm_protect(void *addr, size_t len, int prot)
{
	long ret = lift_sys_mprotect(addr, len, prot);

	if (worth_another_try(ret))
		ret = lift_sys_mprotect(addr, len, prot);
	if (ret == 0 && prot != PROT_NONE) {
		lift_worker_mapped(len);
		if (lift_place_active())
			lift_place_opened((uintptr_t)addr, len);
	}
	return ret;
}

long lift_vm_advise(void *addr, size_t len, int advice)
{
	long ret = lift_sys_madvise(addr, len, advice);

	return worth_another_try(ret) ? lift_sys_madvise(addr, len, advice) : ret;
}

/*
 * mremap that must see one mapping (mremap(2): EFAULT), over a range that placement has cut into
 * several. Without numalift it would have been one, so it is done piece by piece: the kernel says
 * of each try whether it was within one mapping. Only moves and growth come here; the kernel
 * shrinks by itself.
 */
#define PAGE ((size_t)4096)

/* How much of the range, which had no holes, is not there any more from its start on. */
static size_t gone(uintptr_t at, size_t len)
{
	unsigned char core;
	size_t n = 0;

	while (n < len && lift_sys_mincore(at + n, PAGE, &core) == -ENOMEM)
		n += PAGE;
	return n;
}

/* msync says of a range that has a hole that it has; with MS_ASYNC it does nothing else. */
static bool has_no_hole(uintptr_t at, size_t len)
{
	return len > 0 && lift_syscall(SYS_msync, (long)at, (long)len, MS_ASYNC, 0, 0, 0) == 0;
}

/*
 * Moves [from, from + len), which had no holes, to `to`, in as few pieces as there are mappings. 0
 * or -errno. Since 6.17 the kernel does several at once, but gives up at one that is watched by
 * userfaultfd: those before it are moved then.
 */
static long move_pieces(uintptr_t from, size_t len, uintptr_t to, int flags)
{
	size_t done = 0;
	size_t try = len;
	size_t part;
	long ret;

	while (done < len) {
		if (try > len - done)
			try = len - done;
		ret = lift_sys_mremap((void *)(from + done), try, try,
			MREMAP_MAYMOVE | MREMAP_FIXED | (flags & MREMAP_DONTUNMAP),
			(void *)(to + done));
		if (!lift_syserr(ret)) {
			done += try;
			try *= 2; /* the next may be larger; if not, a few tries find out */
		} else if (ret == -EFAULT && (part = gone(from + done, try)) > 0) {
			done += part;
		} else if (ret == -EFAULT && try > PAGE) {
			try = (try / 2 + PAGE - 1) & ~(PAGE - 1);
		} else {
			/* Back, for the caller to find everything as it was. */
			if (done > 0 && !(flags & MREMAP_DONTUNMAP))
				(void)move_pieces(to, done, from, 0);
			return ret;
		}
	}
	return 0;
}

/* keep: bytes at old that are to be at the result; new_len is at least that. */
static long remap_pieces(uintptr_t old, size_t keep, size_t new_len, int flags, uintptr_t fixed)
{
	size_t grow = new_len - keep;
	uintptr_t last = old + keep - PAGE;
	bool reserved;
	size_t there;
	uintptr_t to;
	long ret;

	/* In place: the last mapping is the one that grows. */
	if (!(flags & (MREMAP_FIXED | MREMAP_DONTUNMAP)) && grow > 0) {
		ret = lift_sys_mremap((void *)last, PAGE, PAGE + grow, 0, NULL);
		if (!lift_syserr(ret))
			return (long)old;
		if (!(flags & MREMAP_MAYMOVE))
			return ret;
	}
	/*
	 * The kernel has unmapped a fixed target already, but for what it has moved there: what
	 * another thread has got in the rest meanwhile must not be overwritten. Since 6.17 it may
	 * not have come to that: then the target is still what the program gives up.
	 */
	there = flags & MREMAP_FIXED ? gone(old, keep) : 0;
	ret = lift_sys_mmap((void *)(fixed + there), new_len - there, PROT_NONE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE |
			(flags & MREMAP_FIXED ? MAP_FIXED_NOREPLACE : 0),
		-1, 0);
	reserved = !lift_syserr(ret);
	if (!reserved && (ret != -EEXIST || !has_no_hole(fixed + there, new_len - there)))
		return ret == -EEXIST ? -EFAULT : ret;
	to = reserved ? (uintptr_t)ret - there : fixed;
	ret = move_pieces(old, keep - PAGE, to, flags);
	if (ret == 0) {
		/* The last page takes the growth along; it is always within one mapping. */
		ret = lift_sys_mremap((void *)last, PAGE, PAGE + grow,
			MREMAP_MAYMOVE | MREMAP_FIXED | (flags & MREMAP_DONTUNMAP),
			(void *)(to + keep - PAGE));
		if (lift_syserr(ret) && !(flags & MREMAP_DONTUNMAP))
			(void)move_pieces(to, keep - PAGE, old, 0);
	}
	if (lift_syserr(ret)) {
		if (reserved)
			(void)lift_sys_munmap((void *)to, new_len);
		return ret;
	}
	return (long)to;
}

static size_t whole_pages(size_t len)
{
	return (len + PAGE - 1) & ~(PAGE - 1);
}

static long remap_once(void *old, size_t old_len, size_t new_len, int flags, void *new_addr)
{
	/* Both ranges change hands at once, so the registry's lock is held across the call. */
	bool tracked = lift_place_active() && lift_registry_enter();
	size_t keep =
		old_len < new_len ? old_len : new_len; /* the kernel cuts off the rest first */
	/* Memory that is watched, and what was mapped behind it since, are two mappings. */
	bool watched = atomic_load_explicit(&lift_worker_possible, memory_order_relaxed);
	bool was_whole =
		watched && (flags & MREMAP_FIXED) && has_no_hole((uintptr_t)old, whole_pages(keep));
	long ret = lift_sys_mremap(old, old_len, new_len, flags, new_addr);

	if (ret == -EFAULT &&
		(was_whole || ((watched || (tracked && lift_place_cut_up((uintptr_t)old, keep))) &&
				      has_no_hole((uintptr_t)old, whole_pages(keep)))))
		ret = remap_pieces((uintptr_t)old, whole_pages(keep), whole_pages(new_len), flags,
			(uintptr_t)new_addr);
	if (!tracked)
		return ret;
	if (!lift_syserr(ret))
		lift_place_remapped((uintptr_t)old, old_len, (uintptr_t)ret, new_len,
			(flags & MREMAP_DONTUNMAP) != 0);
	lift_registry_leave();
	return ret;
}

long lift_vm_remap(void *old, size_t old_len, size_t new_len, int flags, void *new_addr)
{
	long ret = remap_once(old, old_len, new_len, flags, new_addr);

	return worth_another_try(ret) ? remap_once(old, old_len, new_len, flags, new_addr) : ret;
}

long lift_vm_map_block(size_t len)
{
	/* Without MAP_NORESERVE, like libc's: more than the machine has is to be refused. */
	long ret = lift_sys_mmap(
		NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	lift_worker_mapped(len);
	if (lift_place_active() && !lift_syserr(ret))
		lift_place_block((uintptr_t)ret, len);
	return ret;
}

void lift_vm_heap_mapped(uintptr_t start, size_t len)
{
	lift_worker_mapped(len);
	if (lift_place_active())
		lift_place_heap(start, len);
}

void lift_vm_heap_unmapped(uintptr_t start, size_t len)
{
	if (lift_place_active())
		lift_place_unmapped(start, len);
}
