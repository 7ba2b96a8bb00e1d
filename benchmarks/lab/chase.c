// SPDX-License-Identifier: MIT
/*
 * Follows pointers through the memory of one node after the other, from the CPUs of each: what the
 * cost model says of it is known beforehand, as every step misses the cache once.
 *
 *   chase STEPS CPUNODE[,CPUNODE...] NODE:MIB[,NODE:MIB...]
 *
 * Phases: "cached CPUNODE", "CPUNODE-NODE", "CPUNODE-NODE again" for each pair, with STEPS steps;
 * the same walk is made once more without a mark. "twice" is opened two times, "empty" closed at
 * once.
 */
#include <errno.h>
#include <linux/mempolicy.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "benchmarks/lab/marker.h"
#include "tests/numa/where.h"

enum { LINE = 64, MAX_RINGS = 16 };

struct ring {
	int node;
	void **start;
};

/* All lines of [at, at + len) in one cycle of random order (Sattolo's). */
static void **link_ring(char *at, size_t len)
{
	size_t n = len / LINE;
	uint32_t *order = malloc(n * sizeof(*order));
	uint64_t x = 88172645463325252u;

	if (!order)
		where_die("malloc");
	for (size_t i = 0; i < n; i++)
		order[i] = (uint32_t)i;
	for (size_t i = n - 1; i > 0; i--) {
		uint32_t t = order[i];
		size_t j;

		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		j = x % i;
		order[i] = order[j];
		order[j] = t;
	}
	for (size_t i = 0; i < n; i++)
		*(void **)(void *)(at + order[i] * (size_t)LINE) =
			at + order[(i + 1) % n] * (size_t)LINE;
	free(order);
	return (void **)(void *)at;
}

static void **ring_on(int node, size_t len)
{
	uint64_t mask = 1ull << node;
	char *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED ||
		(node >= 0 && syscall(SYS_mbind, p, len, MPOL_BIND, &mask, 65ul, 0ul)))
		where_die("memory of a node");
	where_touch(p, len, "memory of a node");
	return link_ring(p, len);
}

__attribute__((noinline)) static void **walk(void **p, unsigned long steps)
{
	while (steps-- > 0)
		p = *p;
	return p;
}

static void phase(const char *name, void **ring, unsigned long steps)
{
	marker_open(name);
	ring = walk(ring, steps);
	marker_close();
	if (!ring)
		where_die("a broken ring");
}

int main(int argc, char **argv)
{
	struct ring rings[MAX_RINGS];
	unsigned nr_rings = 0;
	unsigned long steps;
	void **small;
	char name[64];
	char *p;

	if (argc != 4)
		return 2;
	steps = strtoul(argv[1], NULL, 10);
	for (p = argv[3]; *p && nr_rings < MAX_RINGS; p += *p == ',') {
		struct ring *r = &rings[nr_rings++];

		r->node = (int)strtol(p, &p, 10);
		r->start = ring_on(r->node, strtoul(p + (*p == ':'), &p, 10) << 20);
	}
	small = ring_on(-1, 16 << 10);
	for (p = argv[2]; *p; p += *p == ',') {
		int from = (int)strtol(p, &p, 10);

		if (where_pin(from))
			where_die("pinning to a node");
		snprintf(name, sizeof(name), "cached %d", from);
		phase(name, small, steps);
		for (unsigned i = 0; i < nr_rings; i++) {
			snprintf(name, sizeof(name), "%d-%d", from, rings[i].node);
			phase(name, rings[i].start, steps);
			if (!walk(rings[i].start, steps))
				return 1;
			snprintf(name, sizeof(name), "%d-%d again", from, rings[i].node);
			phase(name, rings[i].start, steps);
		}
	}
	phase("twice", rings[0].start, steps);
	phase("empty", small, 0);
	phase("twice", rings[0].start, steps);
	return 0;
}
