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
 * mremap that must see one mapping (mremap(2): EFAULT), over a range that placement or a sampler
 * has cut into several. Without numalift it would have been one, so it is done mapping by mapping.
 * Only moves and growth come here; the kernel shrinks by itself.
 *
 * With MREMAP_FIXED the kernel's own try would do harm: up to 6.16 it unmaps the target before it
 * refuses, from 6.17 on it gives up in the middle, and in the holes that this leaves other threads
 * may map something. So it is asked before, without effect, where mappings end, and the target is
 * reserved. What lies between holds as long as the registry's lock is held, under which the worker
 * changes mappings.
 */
#define PAGE ((size_t)4096)

static size_t whole_pages(size_t len)
{
	return (len + PAGE - 1) & ~(PAGE - 1);
}

/* How much of the range is within its first mapping. 0: nothing that mremap could move. */
static size_t first_mapping(uintptr_t at, size_t len)
{
	size_t within = 0;
	size_t beyond = len;

	if (lift_sys_within_mapping(at, len))
		return len;
	while (beyond - within > PAGE) {
		size_t try = within + ((beyond - within) / 2 & ~(PAGE - 1));

		if (lift_sys_within_mapping(at, try))
			within = try;
		else
			beyond = try;
	}
	return within;
}

/* Several mappings without holes between them? *ret_last: where the last one begins. */
static bool several_mappings(uintptr_t at, size_t len, size_t *ret_last)
{
	size_t last = 0;
	size_t n = 0;

	for (size_t done = 0; done < len; done += n) {
		last = done;
		n = first_mapping(at + done, len - done);
		if (n == 0)
			return false;
	}
	*ret_last = last;
	return last > 0;
}

static long move_one(uintptr_t from, size_t len, size_t new_len, int flags, uintptr_t to)
{
	return lift_sys_mremap((void *)from, len, new_len,
		MREMAP_MAYMOVE | MREMAP_FIXED | (flags & MREMAP_DONTUNMAP), (void *)to);
}

static long reserve(uintptr_t at, size_t len, int fixed)
{
	return lift_sys_mmap((void *)at, len, PROT_NONE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | fixed, -1, 0);
}

/* Where another thread has mapped something since, it stays what it is. */
static void move_back(uintptr_t from, size_t len, int flags, uintptr_t to)
{
	size_t n;

	for (size_t done = 0; done < len; done += n) {
		n = first_mapping(from + done, len - done);
		if (n == 0)
			return;
		if ((flags & MREMAP_DONTUNMAP) ||
			reserve(to + done, n, MAP_FIXED_NOREPLACE) != -EEXIST)
			(void)move_one(from + done, n, n, 0, to + done);
	}
}

/* Of several mappings. */
struct move {
	uintptr_t old;
	size_t last; /* the last one begins at old + last */
	size_t keep; /* bytes at old that are to be at the result */
	size_t new_len;
	int flags;
	uintptr_t to;
	bool reserved; /* to, until something is there */
};

/*
 * The reservation [at, at + len), from whose part the kernel has turned back: that it may have
 * unmapped, and another thread may have got it since.
 */
static void give_up(uintptr_t at, size_t len, struct lift_range tried)
{
	uintptr_t end = at + len;

	if (lift_sys_within_mapping(at, len)) {
		(void)lift_sys_munmap((void *)at, len);
		return;
	}
	if (tried.start > at)
		(void)lift_sys_munmap((void *)at, tried.start - at);
	if (tried.end < end)
		(void)lift_sys_munmap((void *)tried.end, end - tried.end);
}

/* What is at `to` up to done, and the last mapping, goes back; the kernel has tried the next. */
static void undo(const struct move *m, size_t done, size_t tried)
{
	uintptr_t at = m->to + done;

	if (m->reserved)
		give_up(at, m->last - done, (struct lift_range){at, at + tried});
	if (m->new_len > m->keep)
		(void)lift_sys_munmap((void *)(m->to + m->keep), m->new_len - m->keep);
	move_back(m->to + m->last, m->keep - m->last, m->flags, m->old + m->last);
	move_back(m->to, done, m->flags, m->old);
}

static long move_all(const struct move *m)
{
	/* First what can be refused: growth. */
	long ret = move_one(m->old + m->last, m->keep - m->last, m->new_len - m->last, m->flags,
		m->to + m->last);
	size_t n;

	if (lift_syserr(ret)) {
		if (m->reserved)
			give_up(m->to, m->new_len,
				(struct lift_range){m->to + m->last, m->to + m->new_len});
		return ret;
	}
	for (size_t done = 0; done < m->last; done += n) {
		n = first_mapping(m->old + done, m->last - done);
		ret = n ? move_one(m->old + done, n, n, m->flags, m->to + done) : -EFAULT;
		if (lift_syserr(ret)) {
			undo(m, done, n);
			return ret;
		}
	}
	return (long)m->to;
}

static long remap_pieces(struct move m)
{
	size_t last_len = m.keep - m.last;
	bool fixed = m.flags & MREMAP_FIXED;
	long ret;

	if (!(m.flags & (MREMAP_FIXED | MREMAP_DONTUNMAP))) {
		ret = lift_sys_mremap(
			(void *)(m.old + m.last), last_len, m.new_len - m.last, 0, NULL);
		if (!lift_syserr(ret))
			return (long)m.old;
		if (!(m.flags & MREMAP_MAYMOVE))
			return ret;
	}
	ret = reserve(m.to, m.new_len, fixed ? MAP_FIXED : 0);
	m.reserved = !lift_syserr(ret);
	if (m.reserved)
		m.to = (uintptr_t)ret;
	else if (!fixed)
		return ret;
	/* Where address space is limited, a fixed target does without. */
	return move_all(&m);
}

/* What the kernel would refuse without having touched anything it must be asked itself. */
static bool fits(uintptr_t old, size_t old_len, size_t new_len, int flags, uintptr_t to)
{
	const int known = MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP;

	return (flags & ~known) == 0 && (flags & MREMAP_MAYMOVE) && to % PAGE == 0 &&
	       new_len <= UINTPTR_MAX - to && (to >= old + old_len || to + new_len <= old) &&
	       (!(flags & MREMAP_DONTUNMAP) || old_len == new_len);
}

/* Under the registry's lock. */
static long remap_cut(uintptr_t old, size_t old_len, size_t new_len, int flags, uintptr_t to)
{
	struct move m = {.old = old, .new_len = new_len, .flags = flags};
	bool fixed = flags & MREMAP_FIXED;
	bool sound;
	long ret = 0;

	m.keep = old_len < new_len ? old_len : new_len;
	sound = old % PAGE == 0 && m.keep > 0 && old_len <= UINTPTR_MAX - old;
	if (fixed) {
		m.to = to;
		sound = sound && fits(old, old_len, new_len, flags, to);
	} else {
		ret = lift_sys_mremap((void *)old, old_len, new_len, flags, NULL);
		if (ret != -EFAULT)
			return ret;
	}
	if (!sound || !several_mappings(old, m.keep, &m.last))
		return fixed ? lift_sys_mremap((void *)old, old_len, new_len, flags, (void *)to)
			     : ret;
	/* The kernel, too, cuts off the rest first. */
	if (old_len > m.keep) {
		ret = lift_sys_munmap((void *)(old + m.keep), old_len - m.keep);
		if (lift_syserr(ret))
			return ret;
	}
	return remap_pieces(m);
}

static long remap_once(void *old, size_t old_len, size_t new_len, int flags, void *new_addr)
{
	bool placed = lift_place_active();
	/*
	 * Memory that is watched, and what was mapped behind it since, are two mappings, and stay
	 * so when it is not watched any more.
	 */
	bool watched = lift_worker_was_possible;
	/* Both ranges change hands at once, so the registry's lock is held across the call. */
	bool locked = (placed || watched) && lift_registry_enter();
	size_t pages = whole_pages(old_len);
	long ret;

	if (locked && (watched || lift_place_cut_up((uintptr_t)old, pages)))
		ret = remap_cut(
			(uintptr_t)old, pages, whole_pages(new_len), flags, (uintptr_t)new_addr);
	else
		ret = lift_sys_mremap(old, old_len, new_len, flags, new_addr);
	if (locked && placed && !lift_syserr(ret))
		lift_place_remapped((uintptr_t)old, old_len, (uintptr_t)ret, new_len,
			(flags & MREMAP_DONTUNMAP) != 0);
	if (locked)
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
