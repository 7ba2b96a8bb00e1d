// SPDX-License-Identifier: MIT
#include "tests/memsys/area.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "policy/procparse.h"

#define HUGE (HUGE_PAGES * PAGE)

void die(const char *what)
{
	perror(what);
	exit(99);
}

void area_make(struct area *a, size_t pages, enum area_kind kind)
{
	int how = kind == AREA_SHARED ? MAP_SHARED : MAP_PRIVATE;

	a->pages = pages;
	a->map_len = pages * PAGE + 2 * HUGE;
	/* Without access around it: it cannot become part of a neighbour. */
	a->map = mmap(NULL, a->map_len, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (a->map == MAP_FAILED)
		die("mmap");
	a->base = (char *)(((uintptr_t)a->map + HUGE) & ~(HUGE - 1));
	if (mmap(a->base, pages * PAGE, PROT_READ | PROT_WRITE, how | MAP_ANONYMOUS | MAP_FIXED, -1,
		    0) != a->base)
		die("mmap");
	(void)madvise(a->base, pages * PAGE, kind == AREA_HUGE ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
}

void area_drop(struct area *a)
{
	munmap(a->map, a->map_len);
}

char *area_page(const struct area *a, size_t page)
{
	return a->base + page * PAGE;
}

static uint64_t content(const struct area *a, size_t page, size_t word)
{
	return ((uintptr_t)a->base + page * PAGE + word * 8) * 0x9e3779b97f4a7c15u;
}

void area_write(const struct area *a, size_t from, size_t to, int node)
{
	enum { PREFERRED = 1 };
	unsigned long mask = node >= 0 ? 1ul << node : 0;

	if (node >= 0 && syscall(SYS_set_mempolicy, PREFERRED, &mask, 64) != 0)
		die("set_mempolicy");
	for (size_t p = from; p < to; p++)
		for (size_t w = 0; w < PAGE / 8; w += 64)
			((volatile uint64_t *)(void *)area_page(a, p))[w] = content(a, p, w);
	if (node >= 0 && syscall(SYS_set_mempolicy, 0, NULL, 0) != 0)
		die("set_mempolicy");
}

bool area_intact(const struct area *a, size_t from, size_t to)
{
	for (size_t p = from; p < to; p++)
		for (size_t w = 0; w < PAGE / 8; w += 64)
			if (((volatile uint64_t *)(void *)area_page(a, p))[w] != content(a, p, w))
				return false;
	return true;
}

struct view {
	size_t on[64];
	size_t mappings;
	size_t other_policy;
};

static void look(const struct area *a, const char *policy, struct view *ret)
{
	FILE *f = fopen("/proc/self/numa_maps", "re");
	char line[8192];

	if (!f)
		die("numa_maps");
	memset(ret, 0, sizeof(*ret));
	while (fgets(line, sizeof(line), f)) {
		struct lift_numa_maps_line m;
		uint64_t each;

		if (lift_parse_numa_maps_line(line, strlen(line), &m) != 0 ||
			m.start < (uintptr_t)a->base ||
			m.start >= (uintptr_t)a->base + a->pages * PAGE)
			continue;
		ret->mappings++;
		ret->other_policy += policy && !lift_text_is(m.policy, policy);
		/* Counted in pages of 4 KiB, but for hugetlbfs. */
		each = m.huge ? m.page_bytes / PAGE : 1;
		for (unsigned i = 0; i < m.nr_nodes; i++)
			if (m.pages[i].node < 64)
				ret->on[m.pages[i].node] += m.pages[i].weight * each;
	}
	fclose(f);
}

size_t area_on(const struct area *a, int node)
{
	struct view v;

	look(a, NULL, &v);
	return v.on[node];
}

size_t area_mappings(const struct area *a)
{
	struct view v;

	look(a, NULL, &v);
	return v.mappings;
}

bool area_policy_is(const struct area *a, const char *policy)
{
	struct view v;

	look(a, policy, &v);
	return v.mappings > 0 && v.other_policy == 0;
}

size_t area_huge_kb(const struct area *a)
{
	FILE *f = fopen("/proc/self/smaps", "re");
	struct lift_smaps vma = {0};
	char line[8192];
	size_t kb = 0;

	if (!f)
		die("smaps");
	while (fgets(line, sizeof(line), f))
		if (lift_parse_smaps_line(line, strlen(line), &vma) == LIFT_SMAPS_LAST &&
			vma.range.start >= (uintptr_t)a->base &&
			vma.range.end <= (uintptr_t)a->base + a->pages * PAGE)
			kb += vma.huge_bytes / 1024;
	fclose(f);
	return kb;
}

size_t area_present(const struct area *a)
{
	size_t nr = 0;
	unsigned char there;

	for (size_t p = 0; p < a->pages; p++)
		nr += mincore(area_page(a, p), PAGE, &there) == 0 && (there & 1);
	return nr;
}
