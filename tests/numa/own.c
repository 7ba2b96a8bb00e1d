// SPDX-License-Identifier: MIT
/*
 * A program with policies of its own. Every line says where the memory is that the policy is about;
 * the driver knows where it has to be.
 *
 *   own TEST NODE     NODE: the one that the program asks for; it runs on another
 */
#include <numa.h>
#include <numaif.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/numa/where.h"

#define RW (PROT_READ | PROT_WRITE)
#define LEN (32ul << 20)
#define HUGE (2ul << 20)
#define MAXNODE 64ul

static unsigned long mask;
static int node;

/* At the start of a huge page: one that lies across a border belongs to whoever touches it first.
 */
static char *anon(void)
{
	char *p = mmap(NULL, LEN + HUGE, RW, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		where_die("mmap");
	return p + (-(uintptr_t)p & (HUGE - 1));
}

static int file(void)
{
	int fd = memfd_create("own", 0);

	if (fd < 0 || ftruncate(fd, (off_t)LEN))
		where_die("memfd_create");
	return fd;
}

static char *shared(int fd)
{
	char *p = mmap(NULL, LEN, RW, MAP_SHARED, fd, 0);

	if (p == MAP_FAILED)
		where_die("mmap");
	return p;
}

static void report(const char *name, char *p, size_t len)
{
	where_report(name, where_touch(p, len, name), len);
}

static void raw_mbind(void *p, size_t len, int mode, unsigned flags)
{
	if (syscall(SYS_mbind, p, len, mode, &mask, MAXNODE, flags))
		where_die("mbind");
}

/* Calls that no library sees. */
static void test_mbind_raw(void)
{
	char *p = anon();
	int fd = file();
	char *q = shared(fd);

	raw_mbind(p, LEN, MPOL_BIND, 0);
	report("anon", p, LEN);
	raw_mbind(q, LEN, MPOL_BIND, 0);
	report("memfd", q, LEN);
}

static void test_mbind(void)
{
	char *p = anon();
	int fd = file();
	char *q = shared(fd);

	if (mbind(p, LEN, MPOL_BIND, &mask, MAXNODE, 0) ||
		mbind(q, LEN / 2, MPOL_BIND, &mask, MAXNODE, 0))
		where_die("mbind");
	report("anon", p, LEN);
	report("memfd", q, LEN / 2);
	/* What was not bound is still placed. */
	report("memfd-rest", q + LEN / 2, LEN / 2);
	/* Growing keeps the policy. */
	p = mremap(p, LEN, 2 * LEN, MREMAP_MAYMOVE);
	report("anon-grown", p, 2 * LEN);
}

/* The object has the program's policy already when it is mapped once more. */
static void test_mapped_again(void)
{
	int fd = file();
	char *q = shared(fd);

	raw_mbind(q, LEN, MPOL_BIND, 0);
	munmap(q, LEN);
	report("memfd", shared(fd), LEN);
}

static void test_early(void)
{
	if (syscall(SYS_set_mempolicy, MPOL_BIND, &mask, MAXNODE))
		where_die("set_mempolicy");
	report("anon", anon(), LEN);
	report("memfd", shared(file()), LEN);
	report("malloc", malloc(LEN), LEN);
}

/* Mapped before, touched after. */
static void test_late(void)
{
	char *p = anon();
	char *q = shared(file());
	char *m = malloc(LEN);

	where_touch(p, LEN / 2, "anon");
	if (set_mempolicy(MPOL_BIND, &mask, MAXNODE))
		where_die("set_mempolicy");
	report("anon", p + LEN / 2, LEN / 2);
	report("memfd", q, LEN);
	report("malloc", m, LEN);
	report("anon-new", anon(), LEN);
	report("memfd-new", shared(file()), LEN);
	/* Back to none: what comes now is placed again. */
	if (set_mempolicy(MPOL_DEFAULT, NULL, 0))
		where_die("set_mempolicy");
	report("anon-back", anon(), LEN);
	report("memfd-back", shared(file()), LEN);
}

/* Late, and unseen: holds for what is mapped from then on. */
static void test_late_raw(void)
{
	report("anon-before", anon(), LEN);
	if (syscall(SYS_set_mempolicy, MPOL_BIND, &mask, MAXNODE))
		where_die("set_mempolicy");
	report("anon", anon(), LEN);
	report("memfd", shared(file()), LEN);
	report("malloc", malloc(LEN), LEN);
}

static void test_move(void)
{
	char *p = anon();
	char *q = shared(file());
	void **pages = malloc(LEN / WHERE_PAGE * sizeof(*pages));
	int *to = malloc(LEN / WHERE_PAGE * sizeof(*to));
	int *status = malloc(LEN / WHERE_PAGE * sizeof(*status));

	where_touch(p, LEN, "anon");
	where_touch(q, LEN, "memfd");
	raw_mbind(p, LEN, MPOL_BIND, MPOL_MF_MOVE);
	where_report("anon", p, LEN);
	if (mbind(q, LEN, MPOL_BIND, &mask, MAXNODE, MPOL_MF_MOVE))
		where_die("mbind");
	where_report("memfd", q, LEN);
	/* And by page. */
	p = where_touch(anon(), LEN, "anon");
	for (size_t i = 0; i < LEN / WHERE_PAGE; i++) {
		pages[i] = p + i * WHERE_PAGE;
		to[i] = node;
	}
	if (move_pages(0, LEN / WHERE_PAGE, pages, to, status, MPOL_MF_MOVE))
		where_die("move_pages");
	where_report("pages", p, LEN);
}

static void test_libnuma(void)
{
	struct bitmask *both = numa_parse_nodestring("0,1");
	char *p;

	if (numa_available() < 0 || !both)
		where_die("libnuma");
	report("onnode", numa_alloc_onnode(LEN, node), LEN);
	report("interleaved", numa_alloc_interleaved_subset(LEN, both), LEN);
	p = anon();
	numa_tonode_memory(p, LEN, node);
	report("tonode", p, LEN);
	numa_set_preferred(node);
	report("preferred", anon(), LEN);
	report("preferred-memfd", shared(file()), LEN);
	numa_set_localalloc();
	report("localalloc-memfd", shared(file()), LEN);
}

static const struct test {
	const char *name;
	void (*fn)(void);
} tests[] = {
	{"mbind-raw", test_mbind_raw},
	{"mbind", test_mbind},
	{"mapped-again", test_mapped_again},
	{"early", test_early},
	{"late", test_late},
	{"late-raw", test_late_raw},
	{"move", test_move},
	{"libnuma", test_libnuma},
};

int main(int argc, char **argv)
{
	if (argc != 3)
		return 2;
	node = atoi(argv[2]);
	mask = 1ul << node;
	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++) {
		if (strcmp(argv[1], tests[i].name) == 0) {
			tests[i].fn();
			return 0;
		}
	}
	return 2;
}
