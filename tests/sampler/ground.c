// SPDX-License-Identifier: MIT
#include "tests/sampler/ground.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "policy/procparse.h"
#include "shim/os/sys.h"

#define HUGE ((size_t)2 << 20)

void die(const char *what)
{
	perror(what);
	exit(99);
}

static void *checked(void *p, const char *what)
{
	if (!p || p == MAP_FAILED)
		die(what);
	return p;
}

static uintptr_t up(uintptr_t at)
{
	return (at + HUGE - 1) & ~(HUGE - 1);
}

void ground_make(struct ground *g, enum ground_kind kind, size_t len)
{
	static const char *const names[] = {"small", "huge", "shared", "memfd", "brk"};
	int flags = kind == GROUND_SHARED  ? MAP_SHARED | MAP_ANONYMOUS
		    : kind == GROUND_MEMFD ? MAP_SHARED
					   : MAP_PRIVATE | MAP_ANONYMOUS;
	int fd = -1;

	*g = (struct ground){.kind = kind, .name = names[kind], .len = len};
	if (kind == GROUND_BREAK) {
		char *now = sbrk(0);
		size_t pad = up((uintptr_t)now) - (uintptr_t)now;

		if (sbrk((intptr_t)(pad + len)) != now)
			die("sbrk");
		g->base = now + pad;
		if (madvise(g->base, len, MADV_NOHUGEPAGE) != 0)
			die("madvise");
	} else {
		g->map_len = len + HUGE;
		if (kind == GROUND_MEMFD) {
			fd = memfd_create("ground", MFD_CLOEXEC);
			if (fd < 0 || ftruncate(fd, (off_t)g->map_len) != 0)
				die("memfd_create");
		}
		g->map = checked(
			mmap(NULL, g->map_len, PROT_READ | PROT_WRITE, flags, fd, 0), "mmap");
		if (fd >= 0)
			close(fd);
		g->base = (char *)up((uintptr_t)g->map);
		(void)madvise(g->base, len, kind == GROUND_HUGE ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
	}
	for (size_t i = 0; i < len; i += PAGE)
		((volatile char *)g->base)[i] = 1;
	ground_units(g, ground_huge_kb(g) == len / 1024 ? HUGE : PAGE);
}

void ground_units(struct ground *g, size_t bytes)
{
	free(g->used);
	free(g->told);
	g->unit = bytes;
	g->used = checked(calloc(g->len / bytes, 1), "calloc");
	g->told = checked(calloc(g->len / bytes, 1), "calloc");
}

bool ground_apart(struct ground *g, size_t bytes)
{
	struct lift_nodeset zero;

	lift_nodeset_zero(&zero);
	lift_nodeset_set(&zero, 0);
	for (size_t at = 0; at < g->len; at += bytes) {
		int mode = LIFT_MPOL_PREFERRED | (at / bytes % 2 ? LIFT_MPOL_F_STATIC_NODES : 0);

		if (lift_sys_mbind(g->base + at, bytes, mode, &zero, 0) != 0)
			return false;
	}
	ground_units(g, bytes);
	return true;
}

void ground_drop(struct ground *g)
{
	if (g->kind == GROUND_BREAK)
		(void)madvise(g->base, g->len, MADV_DONTNEED);
	else
		munmap(g->map, g->map_len);
	free(g->used);
	free(g->told);
}

struct lift_range ground_range(const struct ground *g)
{
	return (struct lift_range){.start = (uintptr_t)g->base, .end = (uintptr_t)g->base + g->len};
}

void ground_start(struct ground *g)
{
	memset(g->used, 0, g->len / g->unit);
	memset(g->told, 0, g->len / g->unit);
	g->outside = 0;
}

void ground_read(struct ground *g, size_t page)
{
	(void)((volatile char *)g->base)[page * PAGE];
	g->used[page * PAGE / g->unit] |= USED_READ;
}

void ground_write(struct ground *g, size_t page)
{
	((volatile char *)g->base)[page * PAGE] = 2;
	g->used[page * PAGE / g->unit] |= USED_WRITTEN;
}

void ground_call(struct ground *g, size_t page)
{
	/* Not kept open: some tests close all there is. */
	int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);

	if (fd < 0 || read(fd, g->base + page * PAGE + 100, 64) != 64)
		die("read into a sampled page");
	close(fd);
	g->used[page * PAGE / g->unit] |= USED_SYSCALL;
}

void ground_use(struct ground *g, unsigned seed)
{
	size_t per_unit = g->unit / PAGE;

	for (size_t i = 0; i < g->len / g->unit; i++) {
		uint64_t h = (i + 1) * 0x9e3779b97f4a7c15u ^ (seed + 1) * 0xc2b2ae3d27d4eb4fu;
		size_t page;

		h = (h ^ h >> 29) * 0xbf58476d1ce4e5b9u;
		h ^= h >> 32;
		page = i * per_unit + (h >> 8) % per_unit;
		switch (h % 9) {
		case 0:
			ground_read(g, page);
			break;
		case 1:
			ground_write(g, page);
			break;
		case 2:
			ground_call(g, page);
			break;
		default:
			break;
		}
	}
}

void ground_hear(void *arg, const struct lift_sample *s)
{
	struct ground *g = arg;
	struct lift_range all = ground_range(g);

	/* Of single pages a sum that is neither all nor nothing tells none. */
	if (!s->accessed_bytes || (g->unit == PAGE && s->accessed_bytes < s->resident_bytes))
		return;
	if (s->range.start < all.start || s->range.end > all.end) {
		g->outside += lift_range_bytes(s->range);
		return;
	}
	for (uintptr_t a = s->range.start; a < s->range.end; a += PAGE)
		g->told[(a - all.start) / g->unit] = 1;
}

struct score ground_score(const struct ground *g, unsigned traits)
{
	unsigned mask = USED_WRITTEN | USED_SYSCALL;
	struct score s = {.units = g->len / g->unit};

	if (traits & LIFT_SAMPLER_READS)
		mask |= USED_READ;
	if (traits & LIFT_SAMPLER_SMALL && ground_huge_kb(g))
		mask = 0;
	for (size_t i = 0; i < s.units; i++) {
		bool used = (g->used[i] & mask) != 0;

		s.used += used;
		s.told += g->told[i];
		s.right += used && g->told[i];
	}
	return s;
}

bool score_exact(const struct score *s)
{
	return s->right == s->used && s->right == s->told;
}

/* Line by line through stdio: another reader than the samplers' own. */
static void look(const struct ground *g, size_t *ret_kb, size_t *ret_mappings)
{
	struct lift_range all = ground_range(g);
	FILE *f = checked(fopen("/proc/self/smaps", "re"), "smaps");
	struct lift_smaps vma = {0};
	char line[8192];

	*ret_kb = 0;
	*ret_mappings = 0;
	while (fgets(line, sizeof(line), f)) {
		if (lift_parse_smaps_line(line, strlen(line), &vma) != LIFT_SMAPS_LAST ||
			!lift_range_overlaps(all, vma.range))
			continue;
		++*ret_mappings;
		*ret_kb += vma.huge_bytes / 1024;
	}
	fclose(f);
}

size_t ground_huge_kb(const struct ground *g)
{
	size_t kb;
	size_t nr;

	look(g, &kb, &nr);
	return kb;
}

size_t ground_mappings(const struct ground *g)
{
	size_t kb;
	size_t nr;

	look(g, &kb, &nr);
	return nr;
}
