// SPDX-License-Identifier: MIT
#include "benchmarks/lab/eat.h"

#include <errno.h>
#include <linux/mempolicy.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGE 4096ul
#define MIB (1ul << 20)
#define MAX_NODES 64

static _Noreturn void die(const char *what)
{
	fprintf(stderr, "filling nodes: %s: %s\n", what, strerror(errno));
	exit(2);
}

int eat_parse(const char *text, uint64_t *ret_nodes, unsigned long *ret_mib)
{
	uint64_t nodes = 0;
	unsigned long n;
	char *end;

	do {
		if (*text < '0' || *text > '9')
			return -1;
		n = strtoul(text, &end, 10);
		if (n >= MAX_NODES)
			return -1;
		nodes |= 1ull << n;
		text = end + 1;
	} while (*end == ',');
	if (ret_mib) {
		if (*end != ':' || *text < '0' || *text > '9')
			return -1;
		*ret_mib = strtoul(text, &end, 10);
	}
	if (*end)
		return -1;
	*ret_nodes = nodes;
	return 0;
}

static unsigned long free_mib(int node)
{
	char path[64];
	char line[128];
	unsigned long kb = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/sys/devices/system/node/node%d/meminfo", node);
	f = fopen(path, "r");
	if (!f)
		die(path);
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "Node %*d MemFree: %lu", &kb) == 1)
			break;
	fclose(f);
	return kb >> 10;
}

static unsigned long kept_mib(int node)
{
	enum { MARGIN_MIB = 4 }; /* for what is cached per CPU */
	char line[128];
	unsigned long pages = 0;
	unsigned long n;
	int where = -1;
	FILE *f = fopen("/proc/zoneinfo", "r");

	if (!f)
		die("/proc/zoneinfo");
	while (fgets(line, sizeof(line), f)) {
		(void)sscanf(line, "Node %d,", &where);
		if (where == node && sscanf(line, " high %lu", &n) == 1)
			pages += n;
	}
	fclose(f);
	return pages * PAGE / MIB + MARGIN_MIB;
}

static void eat(int node, unsigned long left_mib)
{
	uint64_t mask = 1ull << node;
	unsigned long kept = kept_mib(node);

	if (left_mib < kept)
		left_mib = kept;
	while (free_mib(node) > left_mib) {
		char *p =
			mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (p == MAP_FAILED ||
			syscall(SYS_mbind, p, MIB, MPOL_BIND, &mask, MAX_NODES + 1ul, 0ul))
			die("memory of a node");
		for (size_t i = 0; i < MIB; i += PAGE)
			((volatile char *)p)[i] = 1;
		/* Where it is allowed: a kernel that makes room would move these pages away. */
		(void)mlock(p, MIB);
	}
}

void eat_nodes(uint64_t nodes, unsigned long left_mib)
{
	for (int node = 0; node < MAX_NODES; node++)
		if (nodes >> node & 1)
			eat(node, left_mib);
}

int eat_end(pid_t pid)
{
	enum { WAIT_US = 1000 };
	char state = 'R';
	char path[64];

	if (kill(pid, SIGKILL))
		return -1;
	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	while (state != 'Z') {
		FILE *f = fopen(path, "r");

		if (!f || fscanf(f, "%*d (%*[^)]) %c", &state) != 1)
			state = 'Z';
		if (f)
			fclose(f);
		if (state != 'Z')
			usleep(WAIT_US);
	}
	return 0;
}
