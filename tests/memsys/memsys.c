// SPDX-License-Identifier: MIT
/*
 * The machine as promotion sees it (policy/memsys.h over Linux), linked directly and without the
 * library: every status of a page made to happen for real. Prints TAP.
 *
 *     memsys [--nodes FROM,TO] [--churn] [--deny move_pages|both] [--errno N] [--blind]
 *         [--forbidden NODE]
 *
 * --nodes: what needs two nodes is done between these, and nothing may be skipped. Without it that
 * is a skip. --churn: only what NUMA balancing is not in the way of. --deny: under a seccomp filter
 * that refuses these calls with EPERM, or with N. --blind: pagemap cannot be read, as in a process
 * that has changed its user.
 * --forbidden: a node that this process is in no cpuset for. Exit status 0 or 1.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shim/memsys_linux.h"
#include "shim/os/sys.h"
#include "shim/os/tasks.h"
#include "tests/memsys/area.h"
#include "tests/memsys/figures.h"
#include "tests/sampler/tap.h"

#define SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define MOST 5000

static const struct lift_memsys *m;
static enum lift_memsys_how how = LIFT_MEMSYS_MOVE_PAGES; /* expected */
static bool blind;
static int from_node = -1;
static int to_node = -1;

static uintptr_t pages[MOST];
static int status[MOST];

/* --- saying it --- */

static const char *word(int st)
{
	static char buf[8][32];
	static unsigned at;
	char *s = buf[at++ % 8];

	if (st >= 0)
		snprintf(s, sizeof(buf[0]), "node %d", st);
	else
		snprintf(s, sizeof(buf[0]), "-%s", strerrorname_np(-st));
	return s;
}

/* How many of the statuses are this one. */
static size_t count(const int *st, size_t nr, int what)
{
	size_t n = 0;

	for (size_t i = 0; i < nr; i++)
		n += st[i] == what;
	return n;
}

static const char *summary(size_t nr)
{
	static char buf[256];
	size_t at = 0;

	buf[0] = '\0';
	for (size_t i = 0; i < nr && at < sizeof(buf) - 40; i++) {
		if (count(status, i, status[i]))
			continue;
		at += (size_t)snprintf(buf + at, sizeof(buf) - at, "%s%zu %s", at ? ", " : "",
			count(status, nr, status[i]), word(status[i]));
	}
	return buf;
}

/* --- asking for it --- */

static size_t of_area(const struct area *a, size_t from, size_t to)
{
	for (size_t p = from; p < to; p++)
		pages[p - from] = (uintptr_t)area_page(a, p);
	return to - from;
}

/* Prefilled with what no function may leave there. */
static int move(size_t nr, int node)
{
	for (size_t i = 0; i < nr; i++)
		status[i] = 4711;
	return m->move(m->ctx, pages, nr, node, status);
}

static int where(size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		status[i] = 4711;
	return m->where(m->ctx, pages, nr, status);
}

/* --- the cases --- */

static void probed(void)
{
	static const char *const words[] = {"move_pages", "mbind", "none"};
	int found = -1;
	int rc = lift_memsys_probe(&found);

	check(rc == 0 && found == (int)how, "probe: %s, %s",
		rc           ? word(rc)
		: found >= 0 ? words[found]
			     : "?",
		words[how]);
}

static void moved(size_t nr, enum area_kind kind, const char *what)
{
	struct area a;
	int rc;

	area_make(&a, nr, kind);
	area_write(&a, 0, nr, from_node);
	of_area(&a, 0, nr);
	rc = where(nr);
	check(rc == 0 && count(status, nr, from_node) == nr && area_on(&a, from_node) == nr,
		"%s, %zu: before, %s", what, nr, summary(nr));
	errno = 4711;
	rc = move(nr, to_node);
	check(rc == 0 && count(status, nr, to_node) == nr && errno == 4711, "%s, %zu: rc %d, %s",
		what, nr, rc, summary(nr));
	check(area_on(&a, to_node) == nr && area_on(&a, from_node) == 0,
		"%s, %zu: %zu are there by numa_maps", what, nr, area_on(&a, to_node));
	check(area_intact(&a, 0, nr) && area_mappings(&a) == 1 && area_policy_is(&a, "default"),
		"%s, %zu: contents, %zu mapping, policy", what, nr, area_mappings(&a));
	rc = move(nr, to_node);
	check(rc == 0 && count(status, nr, to_node) == nr, "%s, %zu: there already: rc %d, %s",
		what, nr, rc, summary(nr));
	rc = where(nr);
	check(rc == 0 && count(status, nr, to_node) == nr, "%s, %zu: where: rc %d, %s", what, nr,
		rc, summary(nr));
	area_drop(&a);
}

/* One of each in turn, so that a call is cut short again and again. */
static void mixed(int node)
{
	enum { ROUNDS = 64, KINDS = 4, NR = ROUNDS * KINDS, ZERO = 2 };
	/* Only pagemap tells the zero page from others that policies tell of. */
	bool like_any = blind && how == LIFT_MEMSYS_MBIND;
	static const char *const names[] = {"there", "absent", "zero page", "not mapped"};
	int elsewhere = node == to_node ? from_node : node;
	struct area a;

	area_make(&a, NR + 1, AREA_SMALL);
	for (size_t i = 0; i < NR; i += KINDS) {
		area_write(&a, i, i + 1, elsewhere);
		(void)*(volatile char *)area_page(&a, i + 2);
		munmap(area_page(&a, i + 3), PAGE);
	}
	of_area(&a, 0, NR);
	for (int moving = 0; moving < 2; moving++) {
		int rc = moving ? move(NR, node) : where(NR);
		const char *call = moving ? "move" : "where";
		int zero = how == LIFT_MEMSYS_MBIND ? -EACCES : -EFAULT;
		int expected[KINDS] = {moving ? node : elsewhere, -ENOENT, zero, -EFAULT};

		check(rc == 0 && area_present(&a) == 2 * ROUNDS,
			"%s, mixed: rc %d, %zu pages present", call, rc, area_present(&a));
		for (size_t k = 0; k < KINDS; k++) {
			size_t right = 0;

			for (size_t i = k; i < NR; i += KINDS)
				right += status[i] == expected[k] ||
					 (k == ZERO && like_any &&
						 (status[i] >= 0 || status[i] == -EBUSY));
			check(right == ROUNDS, "%s, %s: %zu of %d are %s, the first %s", call,
				names[k], right, ROUNDS, word(expected[k]), word(status[k]));
		}
	}
	for (size_t i = 0; i < NR; i += KINDS)
		if (!area_intact(&a, i, i + 1))
			check(false, "mixed: contents of page %zu", i);
	area_drop(&a);
}

static void no_such_node(void)
{
	static const int none[] = {-1, 63, 1023, 1024, 1 << 20};
	struct area a;
	uint64_t x = 1;
	uint64_t y = 2;

	area_make(&a, 16, AREA_SMALL);
	area_write(&a, 0, 16, -1);
	of_area(&a, 0, 16);
	for (size_t i = 0; i < SIZE(none); i++) {
		int rc = move(16, none[i]);

		check(rc == -ENODEV && count(status, 16, -EAGAIN) == 16, "node %d: %s, %s", none[i],
			word(rc), summary(16));
		rc = m->free_memory(m->ctx, none[i], &x, &y);
		check(rc == -ENODEV && x == 1 && y == 2, "memory of node %d: %s", none[i],
			word(rc));
	}
	area_drop(&a);
}

static void forbidden(int node)
{
	struct area a;
	int rc;

	area_make(&a, 16, AREA_SMALL);
	area_write(&a, 0, 16, -1);
	of_area(&a, 0, 16);
	rc = move(16, node);
	check(rc == -EACCES && count(status, 16, -EAGAIN) == 16, "not in the cpuset: %s, %s",
		word(rc), summary(16));
	area_drop(&a);
}

static void shared(void)
{
	enum { NR = 64 };
	struct area a;
	int fds[2];
	char c = 0;
	pid_t pid;
	int rc;

	area_make(&a, NR, AREA_SMALL);
	area_write(&a, 0, NR, from_node);
	if (pipe(fds) != 0)
		die("pipe");
	fflush(stdout);
	pid = fork();
	if (pid < 0)
		die("fork");
	if (pid == 0) {
		close(fds[1]);
		(void)!read(fds[0], &c, 1);
		_exit(0);
	}
	/* Half of them are the parent's own again. */
	area_write(&a, 0, NR / 2, from_node);
	of_area(&a, 0, NR);
	rc = move(NR, to_node);
	check(rc == 0 && count(status, NR / 2, to_node) == NR / 2 &&
			count(status + NR / 2, NR / 2, -EACCES) == NR / 2,
		"shared with a child, half of it: rc %d, %s", rc, summary(NR));
	close(fds[0]);
	close(fds[1]);
	waitpid(pid, NULL, 0);
	rc = move(NR, to_node);
	check(rc == 0 && count(status, NR, to_node) == NR, "the child has gone: rc %d, %s", rc,
		summary(NR));
	check(area_intact(&a, 0, NR) && area_mappings(&a) == 1, "shared: contents");
	area_drop(&a);
}

static void locked(void)
{
	enum { NR = 16 };
	struct area a;
	int rc;

	area_make(&a, NR, AREA_SMALL);
	area_write(&a, 0, NR, from_node);
	if (mlock(area_page(&a, 4), 4 * PAGE) != 0) {
		skip("mlock", "refused");
		area_drop(&a);
		return;
	}
	of_area(&a, 0, NR);
	rc = move(NR, to_node);
	check(rc == 0 && count(status, NR, to_node) == NR && area_on(&a, to_node) == NR,
		"mlock()ed, a part of it: rc %d, %s", rc, summary(NR));
	check(area_intact(&a, 0, NR) && area_mappings(&a) == 3, "mlock()ed: contents");
	area_drop(&a);
}

/* A page in a pipe has a reference more, and cannot be moved. */
static void pinned(void)
{
	enum { NR = 256, PIPED = 8 };
	struct area a;
	int fds[2];
	size_t busy = 0;
	size_t there = 0;
	int rc;

	area_make(&a, NR, AREA_SMALL);
	area_write(&a, 0, NR - 2, from_node); /* and two that are absent */
	if (pipe(fds) != 0)
		die("pipe");
	for (size_t i = 0; i < PIPED; i++) {
		struct iovec io = {area_page(&a, 3 + 20 * i), PAGE};

		if (vmsplice(fds[1], &io, 1, 0) != (ssize_t)PAGE)
			die("vmsplice");
	}
	of_area(&a, 0, NR);
	/* An absent one in the middle: what comes after it is not tried at once. */
	madvise(area_page(&a, 40), PAGE, MADV_DONTNEED);
	rc = move(NR, to_node);
	for (size_t i = 0; i < PIPED; i++)
		busy += status[3 + 20 * i] == -EBUSY;
	there = count(status, NR, to_node);
	check(rc == 0 && busy == PIPED && there == NR - PIPED - 3 &&
			count(status, NR, -ENOENT) == 3,
		"in use by a pipe: rc %d, %s", rc, summary(NR));
	check(area_on(&a, to_node) == there && area_on(&a, from_node) == PIPED,
		"in use by a pipe: %zu and %zu by numa_maps", area_on(&a, to_node),
		area_on(&a, from_node));
	close(fds[0]);
	close(fds[1]);
	rc = move(NR, to_node);
	check(rc == 0 && count(status, NR, to_node) == NR - 3, "out of the pipe: rc %d, %s", rc,
		summary(NR));
	check(area_intact(&a, 0, 40) && area_intact(&a, 41, NR - 2) && area_mappings(&a) == 1,
		"in use by a pipe: contents, %zu mapping", area_mappings(&a));
	area_drop(&a);
}

static void huge(void)
{
	enum { NR = 4 };
	struct area a;
	int rc;

	area_make(&a, NR * HUGE_PAGES, AREA_HUGE);
	area_write(&a, 0, NR * HUGE_PAGES, from_node);
	if (area_huge_kb(&a) != NR * 2048) {
		skip("huge pages", "there are none");
		area_drop(&a);
		return;
	}
	for (size_t i = 0; i < NR; i++)
		pages[i] = (uintptr_t)area_page(&a, i * HUGE_PAGES);
	rc = where(NR);
	check(rc == 0 && count(status, NR, from_node) == NR, "huge: before, rc %d, %s", rc,
		summary(NR));
	/* The second one stays. */
	pages[1] = pages[3];
	rc = move(NR - 1, to_node);
	check(rc == 0 && count(status, NR - 1, to_node) == NR - 1, "huge: rc %d, %s", rc,
		summary(NR - 1));
	check(area_on(&a, to_node) == 3 * HUGE_PAGES && area_on(&a, from_node) == HUGE_PAGES,
		"huge: %zu pages moved", area_on(&a, to_node));
	if (how == LIFT_MEMSYS_MOVE_PAGES || area_huge_kb(&a) == NR * 2048)
		check(area_huge_kb(&a) == NR * 2048, "huge: %zu kB in huge pages",
			area_huge_kb(&a));
	else
		check(true, "huge: by mbind %zu kB are mapped huge (no PAGEMAP_SCAN)",
			area_huge_kb(&a));
	check(area_intact(&a, 0, NR * HUGE_PAGES) && area_mappings(&a) == 1,
		"huge: contents, %zu mapping", area_mappings(&a));
	area_drop(&a);
}

/* The node is full. The kernel would split a huge page then, and move what it can. */
static void huge_without_room(void)
{
	struct area a;
	size_t before;
	int rc;

	area_make(&a, HUGE_PAGES, AREA_HUGE);
	area_write(&a, 0, HUGE_PAGES, from_node);
	before = area_huge_kb(&a);
	pages[0] = (uintptr_t)a.base;
	rc = move(1, to_node);
	/* By mbind and without PAGEMAP_SCAN it is not known to be one. */
	check(rc == 0 && area_intact(&a, 0, HUGE_PAGES) &&
			((status[0] == -ENOMEM && area_huge_kb(&a) == before) ||
				(how == LIFT_MEMSYS_MBIND && status[0] == to_node)),
		"full: a huge page: rc %d, %s; %zu of %zu kB still huge, %zu pages moved", rc,
		word(status[0]), area_huge_kb(&a), before, area_on(&a, to_node));
	area_drop(&a);
}

/* Fills the node by moving to it, which ends without anybody being killed. */
static void full(void)
{
	enum { CHUNK = 4096 };
	struct area a;
	uint64_t has = 0;
	uint64_t total = 0;
	size_t at = 0;
	size_t kept;
	int rc = 0;

	if (m->free_memory(m->ctx, to_node, &has, &total) != 0 || has > total) {
		check(false, "memory of node %d", to_node);
		return;
	}
	area_make(&a, has / PAGE + 2 * CHUNK, AREA_SMALL);
	do {
		/* A piece at a time: on the other node there need not be room for all of it. */
		area_write(&a, at, at + CHUNK, from_node);
		of_area(&a, at, at + CHUNK);
		rc = move(CHUNK, to_node);
		at += CHUNK;
	} while (rc == 0 && count(status, CHUNK, to_node) == CHUNK && at + CHUNK <= a.pages);
	kept = count(status, CHUNK, to_node);
	check(rc == 0 && count(status, CHUNK, -ENOMEM) == CHUNK - kept && kept < CHUNK,
		"full: after %zu pages rc %d, %s", at, rc, summary(CHUNK));
	check(area_on(&a, to_node) >= at - CHUNK && area_on(&a, to_node) <= at &&
			area_on(&a, from_node) == at - area_on(&a, to_node),
		"full: %zu and %zu by numa_maps", area_on(&a, to_node), area_on(&a, from_node));
	rc = m->free_memory(m->ctx, to_node, &has, &total);
	check(rc == 0 && has < total / 8, "full: %llu of %llu kB free",
		(unsigned long long)has / 1024, (unsigned long long)total / 1024);
	/* Some are gone, some have no room, some are there. */
	madvise(area_page(&a, at - 3), PAGE, MADV_DONTNEED);
	rc = move(CHUNK, to_node);
	check(rc == 0 && status[CHUNK - 3] == -ENOENT &&
			count(status, CHUNK, to_node) + count(status, CHUNK, -ENOMEM) == CHUNK - 1,
		"full, again: rc %d, %s", rc, summary(CHUNK));
	huge_without_room();
	check(area_intact(&a, 0, at - 3) && area_intact(&a, at - 2, at) &&
			area_policy_is(&a, "default"),
		"full: contents, policy");
	madvise(area_page(&a, 0), (at - CHUNK) * PAGE, MADV_DONTNEED);
	of_area(&a, at - CHUNK, at);
	rc = move(CHUNK, to_node);
	check(rc == 0 && count(status, CHUNK, to_node) == CHUNK - 1, "room again: rc %d, %s", rc,
		summary(CHUNK));
	area_drop(&a);
}

/* A policy of the program's own, with flags, over a part of what is moved. */
static void policies(void)
{
	enum { NR = 64, BIND = 2, STATIC_NODES = 1 << 15, INTERLEAVE = 3 };
	unsigned long both = 1ul << from_node | 1ul << to_node;
	unsigned long one = 1ul << from_node;
	char expected[2][64];
	struct area a;
	struct area part;
	int rc;

	if (how == LIFT_MEMSYS_NONE)
		return;
	area_make(&a, NR, AREA_SMALL);
	area_write(&a, 0, NR, from_node);
	/* The filter, if there is one, is for the kernel's eyes: this is the same call. */
	if (syscall(SYS_mbind, area_page(&a, 16), 16 * PAGE, BIND | STATIC_NODES, &one, 64, 0) ||
		syscall(SYS_mbind, area_page(&a, 32), 16 * PAGE, INTERLEAVE, &both, 64, 0))
		die("mbind");
	of_area(&a, 0, NR);
	rc = move(NR, to_node);
	check(rc == 0 && count(status, NR, to_node) == NR && area_on(&a, to_node) == NR,
		"with policies: rc %d, %s", rc, summary(NR));
	check(area_mappings(&a) == 4, "with policies: %zu mappings", area_mappings(&a));
	snprintf(expected[0], sizeof(expected[0]), "bind=static:%d", from_node);
	snprintf(expected[1], sizeof(expected[1]),
		abs(from_node - to_node) == 1 ? "interleave:%d-%d" : "interleave:%d,%d",
		from_node < to_node ? from_node : to_node,
		from_node < to_node ? to_node : from_node);
	for (size_t i = 0; i < 4; i++) {
		part = a;
		part.base += i * 16 * PAGE;
		part.pages = 16;
		check(area_policy_is(&part, i == 1   ? expected[0]
					    : i == 2 ? expected[1]
						     : "default"),
			"with policies: piece %zu has its own", i);
	}
	area_drop(&a);
}

struct churn {
	char *base;
	size_t len;
	_Atomic bool stop;
	unsigned long turns;
	unsigned long wrong;
};

static void *churn(void *arg)
{
	struct churn *c = arg;

	while (!atomic_load_explicit(&c->stop, memory_order_relaxed)) {
		if (mmap(c->base, c->len, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != c->base)
			die("mmap");
		for (size_t i = 0; i < c->len; i += PAGE)
			*(volatile unsigned long *)(void *)(c->base + i) = c->turns + i;
		for (size_t i = 0; i < c->len; i += PAGE)
			c->wrong +=
				*(volatile unsigned long *)(void *)(c->base + i) != c->turns + i;
		munmap(c->base, c->len);
		c->turns++;
	}
	return NULL;
}

/* Another thread unmaps and maps what is being moved. */
static void raced(void)
{
	enum { NR = 512, TURNS = 150 };
	struct churn c = {.len = 128 * PAGE};
	pthread_t thread;
	struct area a;
	size_t odd = 0;
	size_t there = 0;
	int error = 0;

	area_make(&a, NR, AREA_SMALL);
	area_write(&a, 0, NR, from_node);
	c.base = area_page(&a, 128);
	if (pthread_create(&thread, NULL, churn, &c) != 0)
		die("pthread_create");
	for (unsigned i = 0; i < TURNS; i++) {
		int node = i % 2 ? from_node : to_node;
		int rc;

		of_area(&a, 0, NR);
		rc = move(NR, node);
		error = rc ? rc : error;
		for (size_t p = 0; p < NR; p++) {
			bool stable = p < 128 || p >= 256;
			size_t was = odd;

			there += stable && status[p] == node;
			/* A page can be busy for a moment, while it is being mapped. */
			odd += stable ? status[p] != node && status[p] != -EBUSY &&
						status[p] != -EAGAIN
				      : status[p] != node && status[p] != -EFAULT &&
						status[p] != -ENOENT && status[p] != -EBUSY &&
						status[p] != -EAGAIN && status[p] != -EACCES;
			if (odd != was)
				printf("# page %zu to node %d: %s\n", p, node, word(status[p]));
		}
	}
	atomic_store_explicit(&c.stop, true, memory_order_relaxed);
	pthread_join(thread, NULL);
	check(error == 0 && odd == 0 && c.turns > 0,
		"unmapped meanwhile, %lu times: %s, %zu statuses that cannot be, the last %s",
		c.turns, word(error), odd, summary(NR));
	check(there > (size_t)TURNS * 384 / 2, "unmapped meanwhile: %zu of %d moved", there,
		TURNS * 384);
	check(c.wrong == 0 && area_intact(&a, 0, 128) && area_intact(&a, 256, NR) &&
			area_mappings(&a) == 2 && area_policy_is(&a, "default"),
		"unmapped meanwhile: contents, %zu mappings, policy", area_mappings(&a));
	area_drop(&a);
}

/* No more mappings can be made: mbind may not get anywhere, but nothing is left behind. */
static void out_of_mappings(void)
{
	enum { NR = 64 };
	FILE *f = fopen("/proc/sys/vm/max_map_count", "re");
	long limit = 0;
	struct area a;
	struct area many;
	size_t made = 0;
	int rc;

	if (!f || fscanf(f, "%ld", &limit) != 1)
		die("max_map_count");
	fclose(f);
	if (limit > 5000) {
		skip("out of mappings", "the limit is high here");
		return;
	}
	area_make(&a, NR, AREA_SMALL);
	area_write(&a, 0, NR, from_node);
	area_make(&many, (size_t)limit, AREA_SMALL);
	while (made < many.pages && mprotect(area_page(&many, made), PAGE, PROT_READ) == 0)
		made += 2;
	of_area(&a, 10, 20);
	rc = move(10, to_node);
	if (how == LIFT_MEMSYS_MBIND)
		check(rc == -ENOMEM && count(status, 10, -EAGAIN) == 10 && made < many.pages,
			"out of mappings: rc %s, %s", word(rc), summary(10));
	else
		check(rc == 0 && count(status, 10, to_node) == 10 && made < many.pages,
			"out of mappings: rc %s, %s", word(rc), summary(10));
	check(area_mappings(&a) == 1 && area_policy_is(&a, "default") && area_intact(&a, 0, NR),
		"out of mappings: contents, %zu mapping, policy", area_mappings(&a));
	area_drop(&many);
	rc = move(10, to_node);
	check(rc == 0 && count(status, 10, to_node) == 10, "mappings again: rc %s, %s", word(rc),
		summary(10));
	area_drop(&a);
}

static void placed(void)
{
	enum { NR = 16 };
	struct lift_nodeset set;
	struct area a;
	char policy[32];
	struct lift_range r;

	area_make(&a, NR, AREA_SMALL);
	r = (struct lift_range){(uintptr_t)a.base, (uintptr_t)a.base + NR * PAGE};
	area_write(&a, 0, NR / 2, from_node);
	lift_nodeset_zero(&set);
	lift_nodeset_set(&set, to_node);
	snprintf(policy, sizeof(policy), "bind:%d", to_node);
	check(m->place(m->ctx, r, LIFT_MPOL_BIND, &set) == 0 && area_policy_is(&a, policy),
		"place: %s", policy);
	area_write(&a, NR / 2, NR, -1);
	check(area_on(&a, from_node) == NR / 2 && area_on(&a, to_node) == NR / 2,
		"place: what is there does not move");
	check(m->place(m->ctx, r, LIFT_MPOL_DEFAULT, NULL) == 0 && area_policy_is(&a, "default"),
		"place: default");
	lift_nodeset_zero(&set);
	lift_nodeset_set(&set, 1000);
	check(m->place(m->ctx, r, LIFT_MPOL_BIND, &set) == -EINVAL, "place: no node of it exists");
	r.end += PAGE;
	munmap(area_page(&a, NR), PAGE);
	check(m->place(m->ctx, r, LIFT_MPOL_LOCAL, NULL) == -EFAULT, "place: partly not mapped");
	area_drop(&a);
}

static void clocks(void)
{
	enum { NR = 4096 };
	uint64_t now = m->now(m->ctx);
	uint64_t thread = lift_sys_thread_cpu_ns();
	uint64_t process = lift_sys_process_cpu_ns();
	uint64_t rss = lift_os_bytes().resident;
	uint64_t has = 0;
	uint64_t total = 0;
	struct area a;
	int rc;

	area_make(&a, NR, AREA_SMALL);
	area_write(&a, 0, NR, -1);
	check(m->now(m->ctx) > now && lift_sys_thread_cpu_ns() > thread &&
			lift_sys_process_cpu_ns() > process && thread > 0 && process >= thread,
		"clocks go forward");
	check(rss > 0 && lift_os_bytes().resident > rss + NR * PAGE / 2,
		"resident: %llu kB more for %zu kB",
		(unsigned long long)(lift_os_bytes().resident - rss) / 1024, NR * PAGE / 1024);
	rc = m->free_memory(m->ctx, from_node < 0 ? 0 : from_node, &has, &total);
	check(rc == 0 && has > 0 && has < total, "memory: %llu of %llu kB free",
		(unsigned long long)has / 1024, (unsigned long long)total / 1024);
	area_drop(&a);
}

static void costs(void)
{
	enum { NR = 4096 };
	static const size_t batches[] = {1, 64, 512, 4096};
	struct area a;

	area_make(&a, NR, AREA_SMALL);
	area_write(&a, 0, NR, from_node);
	for (size_t i = 0; i < SIZE(batches); i++) {
		int node = i % 2 ? from_node : to_node;
		size_t nr = batches[i] == 1 ? 64 : NR;
		uint64_t cpu = lift_sys_thread_cpu_ns();
		uint64_t now = m->now(m->ctx);

		for (size_t p = 0; p < nr; p += batches[i]) {
			of_area(&a, p, p + batches[i]);
			(void)move(batches[i], node);
		}
		printf("# batches of %zu: %llu ns a page, %llu of them CPU time\n", batches[i],
			(unsigned long long)(m->now(m->ctx) - now) / nr,
			(unsigned long long)(lift_sys_thread_cpu_ns() - cpu) / nr);
		of_area(&a, 0, NR);
		(void)move(NR, node);
	}
	for (int k = 0; k < 2; k++) {
		uint64_t cpu = lift_sys_thread_cpu_ns();

		if (k == 1)
			madvise(a.base, NR * PAGE, MADV_DONTNEED);
		(void)where(NR);
		printf("# where, %s: %llu ns a page\n", k ? "absent" : "there",
			(unsigned long long)(lift_sys_thread_cpu_ns() - cpu) / NR);
	}
	area_drop(&a);
}

/* Refused altogether. */
static void refused(void)
{
	struct area a;
	int rc;

	area_make(&a, 16, AREA_SMALL);
	area_write(&a, 0, 16, -1);
	of_area(&a, 0, 16);
	rc = move(16, 0);
	check(rc == -EPERM && count(status, 16, -EAGAIN) == 16, "refused: %s, %s", word(rc),
		summary(16));
	rc = where(16);
	check(rc == -EPERM && count(status, 16, 4711) == 16, "refused: where: %s", word(rc));
	area_drop(&a);
}

static void deny(int error, bool both)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_move_pages, 2, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, both ? SYS_mbind : SYS_move_pages, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)error),
	};
	struct sock_fprog prog = {SIZE(code), code};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
		prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog) != 0)
		die("seccomp");
	how = both ? LIFT_MEMSYS_NONE : LIFT_MEMSYS_MBIND;
}

static void be_blind(void)
{
	enum { NOBODY = 65534 };

	if (geteuid() == 0 && (setgid(NOBODY) != 0 || setuid(NOBODY) != 0))
		die("setuid");
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0)
		die("PR_SET_DUMPABLE");
	if (open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC) >= 0)
		die("pagemap can be read");
}

static void with_two_nodes(void)
{
	moved(512, AREA_SMALL, "moved");
	if (blind) {
		mixed(to_node);
		policies();
		raced();
		return;
	}
	moved(4096, AREA_SMALL, "moved");
	moved(MOST, AREA_SMALL, "moved");
	moved(600, AREA_SHARED, "moved, shared memory");
	mixed(to_node);
	shared();
	locked();
	pinned();
	huge();
	policies();
	placed();
	raced();
	costs();
	out_of_mappings();
	full();
}

int main(int argc, char **argv)
{
	int error = EPERM;
	const char *denied = NULL;
	int forbidden_node = -1;
	bool churning = false;

	setvbuf(stdout, NULL, _IOLBF, 0);
	for (int i = 1; i < argc; i++) {
		if (i + 1 < argc && !strcmp(argv[i], "--nodes")) {
			tap_needed = true;
			if (sscanf(argv[++i], "%d,%d", &from_node, &to_node) != 2)
				die("--nodes");
		} else if (!strcmp(argv[i], "--churn")) {
			churning = true;
		} else if (!strcmp(argv[i], "--blind")) {
			blind = true;
		} else if (i + 1 < argc && !strcmp(argv[i], "--deny")) {
			denied = argv[++i];
		} else if (i + 1 < argc && !strcmp(argv[i], "--errno")) {
			error = atoi(argv[++i]);
		} else if (i + 1 < argc && !strcmp(argv[i], "--forbidden")) {
			forbidden_node = atoi(argv[++i]);
		} else {
			fprintf(stderr, "memsys: what is %s?\n", argv[i]);
			return 2;
		}
	}
	m = lift_memsys_linux();
	if (blind)
		be_blind();
	if (denied)
		deny(error, !strcmp(denied, "both"));
	if (how == LIFT_MEMSYS_NONE) {
		/* First without having asked. */
		refused();
		probed();
		refused();
	} else if (forbidden_node >= 0) {
		forbidden(forbidden_node);
		probed();
	} else if (churning) {
		probed();
		raced();
	} else {
		no_such_node();
		probed();
		mixed(0);
		clocks();
		test_costs(from_node, to_node);
		test_home(from_node >= 0);
		if (from_node >= 0)
			with_two_nodes();
		else
			skip("between nodes", "not asked for");
	}
	return tap_end();
}
