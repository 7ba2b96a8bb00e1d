// SPDX-License-Identifier: MIT
#include "shim/memsys_linux.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "policy/procparse.h"
#include "shim/os/fd.h"
#include "shim/os/pagemap.h"
#include "shim/os/rawsys.h"
#include "shim/os/sys.h"
#include "shim/os/topo_sysfs.h"
#include "shim/registry.h"

#define PAGE ((uintptr_t)4096)
#define NODE_DIR "/sys/devices/system/node/node"

/* Pages per system call. The kernel has no limit, but it can neither be stopped meanwhile. */
#define CALL_PAGES 4096

/* Of move_pages() for what is left of one call, until the rest is left for another time. */
#define ROUNDS 16

/* What the kernel keeps free for itself, with huge pages in use: up to 50 MiB of a small node. */
#define LOW_BYTES (64 * LIFT_MIB)

#define RUN_PAGES (LIFT_HUGE_BYTES / PAGE)

enum { MF_MOVE = 2 };
enum { UNSET = INT_MIN }; /* neither a node nor an -errno */

static enum lift_memsys_how how = LIFT_MEMSYS_MOVE_PAGES;
static int hints = -1; /* whether NUMA balancing is on; -1: not asked yet */

static uintptr_t todo[CALL_PAGES];
static uint16_t todo_at[CALL_PAGES]; /* whose status it is */
static int targets[CALL_PAGES];
static int told[CALL_PAGES];
static uintptr_t again[CALL_PAGES];
static uint16_t again_at[CALL_PAGES];
static int again_told[CALL_PAGES];
static int found[CALL_PAGES];
static int looked[RUN_PAGES];
static uint64_t words[RUN_PAGES];
static unsigned char cores[RUN_PAGES];
static char text[8192];

/* --- small questions --- */

/* How many of the pages follow one another, up to a limit. */
static size_t run_of(const uintptr_t *pages, size_t nr)
{
	size_t n = 1;

	while (n < nr && n < RUN_PAGES && pages[n] == pages[n - 1] + PAGE)
		n++;
	return n;
}

static bool refused(long rc)
{
	return rc == -EPERM || rc == -ENOSYS || rc == -EACCES;
}

static int status_of(int st)
{
	if (st >= 0)
		return st;
	switch (st) {
	case -ENOENT:
	case -EFAULT:
	case -EACCES:
	case -ENOMEM:
		return st;
	default: /* -EBUSY, -EIO (cannot be written back), whatever it may be tomorrow */
		return -EBUSY;
	}
}

static int read_memory(int node, uint64_t *ret_free_bytes, uint64_t *ret_total_bytes)
{
	struct lift_node_meminfo mem;
	char path[128];
	long n;
	int rc;

	if (node < 0 || node >= LIFT_MAX_NODES)
		return -ENODEV;
	n = lift_sys_read_file(lift_os_path(path, NODE_DIR, node, "/meminfo"), text, sizeof(text));
	if (n == -ENOENT)
		return -ENODEV;
	if (n < 0)
		return (int)n;
	rc = lift_parse_node_meminfo(text, (size_t)n, &mem);
	if (rc < 0)
		return rc;
	*ret_free_bytes = mem.free_bytes;
	*ret_total_bytes = mem.total_bytes;
	return 0;
}

/* Where the kernel looks for memory on other nodes, roughly. */
static uint64_t low_bytes(uint64_t total_bytes)
{
	return total_bytes / 64 + LOW_BYTES;
}

static bool node_allowed(int node)
{
	struct lift_proc_status st;
	long n = lift_sys_read_file("/proc/thread-self/status", text, sizeof(text));

	if (n < 0)
		return true;
	lift_parse_status(text, (size_t)n, &st);
	return !st.has_mems_allowed || lift_nodeset_test(&st.mems_allowed, node);
}

/*
 * Up to some kernel after 6.1 move_pages() says -EFAULT of anonymous pages that are not there, as
 * of the zero page. mincore() knows better.
 */
static void tell_absent(const uintptr_t *pages, size_t nr, int *status)
{
	size_t n;

	for (size_t i = 0; i < nr; i += n) {
		long rc;

		n = 1;
		if (status[i] != -EFAULT)
			continue;
		while (i + n < nr && n < RUN_PAGES && status[i + n] == -EFAULT &&
			pages[i + n] == pages[i + n - 1] + PAGE)
			n++;
		rc = lift_sys_mincore(pages[i], n * PAGE, cores);
		if (rc == -ENOMEM && n > 1) {
			/* A hole, somewhere. */
			n = 1;
			rc = lift_sys_mincore(pages[i], PAGE, cores);
		}
		for (size_t k = 0; rc == 0 && k < n; k++)
			if (!(cores[k] & 1))
				status[i + k] = -ENOENT;
	}
}

/* Which pages are there, by the words of pagemap, else by mincore. -ENOENT where one is not. */
static void look_present(int pagemap, const uintptr_t *pages, size_t nr, int *ret_status)
{
	enum { SHARED = -EACCES };
	const uint64_t whose = UINT64_C(1) << 56 | UINT64_C(1) << 61; /* exclusive; of a file */
	long n = pagemap < 0 ? pagemap : lift_pagemap_read(pagemap, pages[0], words, nr);

	for (size_t i = 0; i < nr; i++) {
		bool there;

		if (n >= 0)
			there = (long)i < n && (words[i] & LIFT_PAGEMAP_PRESENT);
		else
			there = lift_sys_mincore(pages[i], PAGE, cores) == 0 && (cores[0] & 1);
		ret_status[i] = there ? 0 : -ENOENT;
		/* The zero page, or anonymous and shared. */
		if (there && n >= 0 && !(words[i] & whose))
			ret_status[i] = SHARED;
	}
}

/*
 * From 6.1 to 6.4 move_pages() takes a page for absent that NUMA balancing waits for the next touch
 * of. It is touched here, then, as get_mempolicy() does; cold pages would be stuck else. How many.
 */
static size_t wake_hinted(const uintptr_t *pages, size_t nr, int *status)
{
	struct lift_fd fd = {0};
	int pagemap;
	size_t woken = 0;
	size_t n;

	if (hints < 0)
		hints = lift_sys_read_file("/proc/sys/kernel/numa_balancing", text, sizeof(text)) >
				0 &&
			text[0] != '0';
	if (!hints)
		return 0;
	for (size_t i = 0; i < nr; i += n) {
		n = 1;
		if (status[i] != -ENOENT)
			continue;
		if (!fd.nr && lift_pagemap_open(&fd) < 0)
			return 0; /* mincore() would call more present than is mapped */
		pagemap = lift_fd_get(&fd);
		n = run_of(pages + i, nr - i);
		look_present(pagemap, pages + i, n, looked);
		for (size_t k = 0; k < n; k++) {
			long node;

			if (status[i + k] != -ENOENT || looked[k] == -ENOENT)
				continue;
			node = lift_sys_page_node(pages[i + k]);
			if (node >= 0) {
				status[i + k] = (int)node;
				woken++;
			}
		}
	}
	lift_fd_close(&fd);
	return woken;
}

/* --- by move_pages --- */

/* At most CALL_PAGES. */
static int ask_nodes(const uintptr_t *pages, size_t nr, int *ret_status)
{
	long rc = lift_sys_move_pages(nr, pages, NULL, ret_status, 0);

	if (rc < 0)
		return (int)rc;
	for (size_t i = 0; i < nr; i++)
		ret_status[i] = status_of(ret_status[i]);
	tell_absent(pages, nr, ret_status);
	(void)wake_hinted(pages, nr, ret_status);
	return 0;
}

/*
 * The kernel gathers pages until there is one that cannot be, or need not be moved: of that it
 * notes the status, then moves what it has gathered, and only when all of that went well notes its
 * status and goes on. So, of what was asked for:
 *
 *     node node -EFAULT node .... .... .... -EBUSY .... ....
 *                            tried, failed         not tried
 *
 * Without a status after the gap the gap was the last there was to be moved. Returns where what
 * was not tried begins.
 */
static size_t tried_end(const int *st, size_t nr)
{
	size_t first = 0;
	size_t end = nr;

	while (first < nr && st[first] != UNSET)
		first++;
	while (end > first && st[end - 1] == UNSET)
		end--;
	return end == first ? nr : end;
}

/* May the first one be a huge page? So it is, or one of those that happen to begin like it. */
static bool maybe_huge(const uintptr_t *pages, size_t nr)
{
	return pages[0] % LIFT_HUGE_BYTES == 0 && (nr == 1 || pages[1] != pages[0] + PAGE);
}

/* The first region that is asked for, in *ret; false when there is none, or it cannot be told. */
static bool first_region(const struct lift_pagemap_ask *ask, struct lift_page_region *ret)
{
	struct lift_fd fd = {0};
	uintptr_t end;
	long n = -1;

	if (lift_pagemap_open(&fd) == 0)
		n = lift_pagemap_scan(lift_fd_get(&fd), ask, ret, 1, &end);
	lift_fd_close(&fd);
	return n == 1;
}

/* Is the huge page that may begin here known to be none? */
static bool is_small(uintptr_t addr)
{
	struct lift_pagemap_ask ask = {
		.range = {addr, addr + PAGE},
		.all = LIFT_PAGE_PRESENT,
		.none = LIFT_PAGE_HUGE,
		.tell = LIFT_PAGE_PRESENT,
	};
	struct lift_page_region region;

	return first_region(&ask, &region);
}

/*
 * Where there is no room the kernel splits huge pages, and then does not move the pieces either.
 * Better not to try.
 */
static bool lacks_huge(const uintptr_t *pages, size_t nr, int node)
{
	uint64_t free_bytes;
	uint64_t total_bytes;
	uint64_t bytes = 0;

	for (size_t i = 0; i < nr; i++)
		bytes += maybe_huge(pages + i, nr - i) ? LIFT_HUGE_BYTES : 0;
	return bytes > 0 && read_memory(node, &free_bytes, &total_bytes) == 0 &&
	       free_bytes < low_bytes(total_bytes) + bytes;
}

static int move_rounds(const uintptr_t *pages, size_t all, int node, int *ret_status)
{
	bool keep_huge = lacks_huge(pages, all, node);
	size_t nr = 0;

	for (size_t i = 0; i < all; i++) {
		if (keep_huge && maybe_huge(pages + i, all - i) && !is_small(pages[i])) {
			ret_status[i] = -ENOMEM;
			continue;
		}
		todo[nr] = pages[i];
		todo_at[nr] = (uint16_t)i;
		targets[nr++] = node;
	}
	for (unsigned round = 0; nr > 0 && round < ROUNDS; round++) {
		size_t left = 0;
		size_t end;
		long rc;
		int err;

		for (size_t k = 0; k < nr; k++)
			told[k] = UNSET;
		rc = lift_sys_move_pages(nr, todo, targets, told, MF_MOVE);
		if (rc < 0 && rc != -ENOMEM)
			return (int)rc;
		end = tried_end(told, nr);
		for (size_t k = 0; k < nr; k++) {
			if (told[k] != UNSET)
				ret_status[todo_at[k]] = status_of(told[k]);
			else
				left++;
		}
		if (left == 0)
			break;
		/* Of those without a status some may have moved. */
		err = ask_nodes(todo, nr, found);
		if (err < 0)
			return err;
		left = 0;
		for (size_t k = 0; k < nr; k++) {
			int *st = &ret_status[todo_at[k]];

			if (told[k] != UNSET)
				continue;
			if (found[k] < 0 || found[k] == node) {
				*st = found[k];
			} else if (rc == -ENOMEM) {
				*st = -ENOMEM; /* for the rest there is no room either */
			} else if (k < end) {
				*st = -EBUSY;
			} else {
				todo[left] = todo[k];
				todo_at[left++] = todo_at[k];
			}
		}
		nr = left;
	}
	return 0;
}

/* At most CALL_PAGES, whose status is -EAGAIN so far. */
static int move_call(const uintptr_t *pages, size_t nr, int node, int *ret_status)
{
	size_t nr_again = 0;
	int rc = move_rounds(pages, nr, node, ret_status);

	tell_absent(pages, nr, ret_status);
	if (rc < 0 || wake_hinted(pages, nr, ret_status) == 0)
		return rc;
	for (size_t i = 0; i < nr; i++) {
		if (ret_status[i] >= 0 && ret_status[i] != node) {
			again[nr_again] = pages[i];
			again_at[nr_again++] = (uint16_t)i;
		}
	}
	for (size_t k = 0; k < nr_again; k++)
		again_told[k] = -EAGAIN;
	rc = move_rounds(again, nr_again, node, again_told);
	tell_absent(again, nr_again, again_told);
	/* The kernel may have been there again. */
	for (size_t k = 0; k < nr_again; k++)
		ret_status[again_at[k]] = again_told[k] == -ENOENT ? -EBUSY : again_told[k];
	return rc;
}

/* --- by mbind --- */

/*
 * get_mempolicy() knows the node of a page but brings one into being that is not there, hence the
 * look before. One that is discarded right in between becomes a zero page, which takes no memory.
 */
static int where_by_policy(const uintptr_t *pages, size_t nr, int *ret_status)
{
	struct lift_fd fd = {0};
	int pagemap;
	size_t n;
	int rc = 0;

	/* Not kept open: in the child of a fork it would tell about the parent. */
	(void)lift_pagemap_open(&fd);
	pagemap = lift_fd_get(&fd);
	for (size_t i = 0; i < nr && rc == 0; i += n) {
		n = run_of(pages + i, nr - i);
		look_present(pagemap, pages + i, n, ret_status + i);
		for (size_t k = i; k < i + n; k++) {
			long node = ret_status[k];

			if (node == 0)
				node = lift_sys_page_node(pages[k]);
			else if (node == -ENOENT &&
				 lift_sys_get_mempolicy(NULL, NULL, (void *)pages[k]) == -EFAULT)
				node = -EFAULT;
			if (node == -EPERM || node == -ENOSYS) {
				rc = (int)node;
				break;
			}
			ret_status[k] = status_of((int)node);
		}
	}
	lift_fd_close(&fd);
	return rc;
}

static bool is_huge(uintptr_t addr)
{
	struct lift_pagemap_ask ask = {
		.range = {addr, addr + LIFT_HUGE_BYTES},
		.all = LIFT_PAGE_PRESENT | LIFT_PAGE_HUGE,
		.tell = LIFT_PAGE_HUGE,
	};
	struct lift_page_region region;

	return first_region(&ask, &region) && region.start == ask.range.start &&
	       region.end == ask.range.end;
}

struct policy {
	int mode;
	struct lift_nodeset nodes;
};

static bool policy_equal(const struct policy *a, const struct policy *b)
{
	return a->mode == b->mode && lift_nodeset_equal(&a->nodes, &b->nodes);
}

static int policy_read(uintptr_t addr, struct policy *ret)
{
	lift_nodeset_zero(&ret->nodes);
	return (int)lift_sys_get_mempolicy(&ret->mode, &ret->nodes, (void *)addr);
}

static void policy_write(struct lift_range r, const struct policy *p)
{
	bool none = lift_nodeset_empty(&p->nodes);

	if (lift_sys_mbind(
		    (void *)r.start, lift_range_bytes(r), p->mode, none ? NULL : &p->nodes, 0) == 0)
		return;
	/* Its nodes are not allowed any more. Better none than the one that was for moving. */
	(void)lift_sys_mbind((void *)r.start, lift_range_bytes(r), LIFT_MPOL_DEFAULT, NULL, 0);
}

/*
 * Pages that follow one another, in mappings of one policy, are put on the node. Preferred, not
 * bound: what the program touches there meanwhile must not run out of memory.
 */
static int bind_over(struct lift_range r, const struct policy *was, int node)
{
	struct lift_nodeset one;
	bool locked;
	long rc;

	lift_nodeset_zero(&one);
	lift_nodeset_set(&one, node);
	/* Changes where mappings end: not while a call of mremap counts on it (vm.c). */
	locked = lift_registry_enter();
	rc = lift_sys_mbind(
		(void *)r.start, lift_range_bytes(r), LIFT_MPOL_PREFERRED, &one, MF_MOVE);
	/* Also after an error: it may have come late. */
	if (!refused(rc))
		policy_write(r, was);
	if (locked)
		lift_registry_leave();
	return (int)rc;
}

/* The run at the beginning of what is to be moved: how many units of it, and which range it is. */
static size_t bind_run(const uintptr_t *pages, const int *status, size_t nr, int node,
	struct lift_range *ret, struct policy *ret_was)
{
	struct policy next;
	size_t n = 1;

	*ret = (struct lift_range){pages[0], pages[0] + PAGE};
	if (policy_read(pages[0], ret_was) < 0)
		return 0;
	if (maybe_huge(pages, nr) && is_huge(pages[0])) {
		ret->end = ret->start + LIFT_HUGE_BYTES;
		return 1;
	}
	while (n < nr && n < RUN_PAGES && pages[n] == ret->end && status[n] >= 0 &&
		status[n] != node && policy_read(pages[n], &next) == 0 &&
		policy_equal(&next, ret_was)) {
		ret->end += PAGE;
		n++;
	}
	return n;
}

/* At most CALL_PAGES, whose status is -EAGAIN so far. */
static int bind_call(const uintptr_t *pages, size_t nr, int node, int *ret_status)
{
	uint64_t free_bytes = 0;
	uint64_t total_bytes = 0;
	size_t n;
	int rc = read_memory(node, &free_bytes, &total_bytes);

	if (rc < 0)
		return rc;
	if (total_bytes == 0)
		return -ENODEV;
	if (!node_allowed(node))
		return -EACCES;
	rc = where_by_policy(pages, nr, found);
	for (size_t i = 0; i < nr && rc == 0; i += n) {
		struct lift_range r;
		struct policy was;

		n = 1;
		if (found[i] < 0 || found[i] == node) {
			ret_status[i] = found[i];
			continue;
		}
		n = bind_run(pages + i, found + i, nr - i, node, &r, &was);
		if (n == 0) {
			ret_status[i] = -EFAULT; /* unmapped by now */
			n = 1;
			continue;
		}
		/* From the low watermark on pages would go to any other node. */
		if (free_bytes < low_bytes(total_bytes) + lift_range_bytes(r)) {
			for (size_t k = i; k < i + n; k++)
				ret_status[k] = -ENOMEM;
			continue;
		}
		rc = bind_over(r, &was, node);
		if (rc == -EFAULT)
			rc = 0; /* likewise; of the others it will be seen where they are */
		else if (rc < 0)
			break; /* -ENOMEM: no more mappings */
		rc = where_by_policy(pages + i, n, ret_status + i);
		/* Others may have filled the node meanwhile; then they are anywhere. */
		if (rc == 0 && read_memory(node, &free_bytes, &total_bytes) < 0)
			free_bytes = 0;
		for (size_t k = i; k < i + n && rc == 0; k++)
			if (ret_status[k] >= 0 && ret_status[k] != node)
				ret_status[k] =
					free_bytes < low_bytes(total_bytes) ? -ENOMEM : -EBUSY;
	}
	return rc;
}

/* --- which of them --- */

static bool works_by_move_pages(uintptr_t page)
{
	int node = -1;
	int st = -1;

	return lift_sys_move_pages(1, &page, NULL, &node, 0) == 0 && node >= 0 &&
	       lift_sys_move_pages(1, &page, &node, &st, MF_MOVE) == 0 && st == node;
}

static bool works_by_mbind(uintptr_t page)
{
	const struct policy none = {.mode = LIFT_MPOL_DEFAULT};
	long node = lift_sys_page_node(page);

	return node >= 0 &&
	       bind_over((struct lift_range){page, page + PAGE}, &none, (int)node) == 0;
}

int lift_memsys_probe(int *ret_how)
{
	long map = lift_sys_mmap_apart(PAGE, 0);

	if (lift_syserr(map))
		return (int)map;
	*(volatile char *)map = 1;
	hints = -1;
	how = works_by_move_pages((uintptr_t)map) ? LIFT_MEMSYS_MOVE_PAGES
	      : works_by_mbind((uintptr_t)map)    ? LIFT_MEMSYS_MBIND
						  : LIFT_MEMSYS_NONE;
	(void)lift_sys_munmap((void *)map, PAGE);
	*ret_how = how;
	return 0;
}

/* After an error that may mean that this way is not open any more. True: there is another one. */
static bool other_way(int rc)
{
	enum lift_memsys_how was = how;
	int now;

	return refused(rc) && lift_memsys_probe(&now) == 0 && how != was;
}

static int move_some(const uintptr_t *pages, size_t nr, int node, int *ret_status)
{
	return how == LIFT_MEMSYS_MOVE_PAGES ? move_call(pages, nr, node, ret_status)
	       : how == LIFT_MEMSYS_MBIND    ? bind_call(pages, nr, node, ret_status)
					     : -EPERM;
}

static int where_some(const uintptr_t *pages, size_t nr, int *ret_status)
{
	return how == LIFT_MEMSYS_MOVE_PAGES ? ask_nodes(pages, nr, ret_status)
	       : how == LIFT_MEMSYS_MBIND    ? where_by_policy(pages, nr, ret_status)
					     : -EPERM;
}

/* --- the table --- */

static int do_place(void *ctx, struct lift_range range, int mode, const struct lift_nodeset *nodes)
{
	(void)ctx;
	return (int)lift_sys_mbind((void *)range.start, lift_range_bytes(range), mode, nodes, 0);
}

static int do_move(void *ctx, const uintptr_t *pages, size_t nr, int node, int *ret_status)
{
	(void)ctx;
	for (size_t i = 0; i < nr; i++)
		ret_status[i] = -EAGAIN;
	while (nr > 0) {
		size_t n = nr < CALL_PAGES ? nr : CALL_PAGES;
		int rc = move_some(pages, n, node, ret_status);

		/* Refused as a whole, nothing has a status yet. */
		while (rc < 0 && other_way(rc))
			rc = move_some(pages, n, node, ret_status);
		if (rc < 0)
			return rc == -EPERM || rc == -ENOSYS ? -EPERM : rc;
		pages += n;
		ret_status += n;
		nr -= n;
	}
	return 0;
}

static int do_where(void *ctx, const uintptr_t *pages, size_t nr, int *ret_status)
{
	(void)ctx;
	while (nr > 0) {
		size_t n = nr < CALL_PAGES ? nr : CALL_PAGES;
		int rc = where_some(pages, n, ret_status);

		while (rc < 0 && other_way(rc))
			rc = where_some(pages, n, ret_status);
		if (rc < 0)
			return refused(rc) ? -EPERM : rc;
		pages += n;
		ret_status += n;
		nr -= n;
	}
	return 0;
}

static int do_free_memory(void *ctx, int node, uint64_t *ret_free_bytes, uint64_t *ret_total_bytes)
{
	(void)ctx;
	return read_memory(node, ret_free_bytes, ret_total_bytes);
}

static uint64_t do_now(void *ctx)
{
	struct timespec ts = {0, 0};

	(void)ctx;
	(void)clock_gettime(CLOCK_MONOTONIC, &ts); /* the vDSO: no call of the kernel */
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

const struct lift_memsys *lift_memsys_linux(void)
{
	static const struct lift_memsys linux_memsys = {
		.place = do_place,
		.move = do_move,
		.where = do_where,
		.free_memory = do_free_memory,
		.now = do_now,
	};

	return &linux_memsys;
}
