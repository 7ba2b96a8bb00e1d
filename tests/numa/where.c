// SPDX-License-Identifier: MIT
#include "tests/numa/where.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

void where_die(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	exit(2);
}

void where_pages(struct where *w, const void *start, size_t len)
{
	enum { BATCH = 512, TRIES = 3 };
	void *pages[BATCH];
	int status[BATCH];
	uintptr_t p = (uintptr_t)start & ~(WHERE_PAGE - 1);
	uintptr_t end = (uintptr_t)start + len;

	while (p < end) {
		unsigned long n = 0;
		unsigned long left = 0;

		for (; n < BATCH && p < end; p += WHERE_PAGE)
			pages[n++] = (void *)p;
		/* A page that kernel balancing has marked has no node until it is touched: try
		 * again. */
		for (int i = 0; n > 0 && i < TRIES; i++) {
			for (unsigned long k = 0; k < n; k++)
				(void)*(volatile char *)pages[k];
			if (syscall(SYS_move_pages, 0, n, pages, NULL, status, 0))
				where_die("move_pages");
			left = 0;
			for (unsigned long k = 0; k < n; k++) {
				if (status[k] >= 0 && status[k] < WHERE_NODES)
					w->on[status[k]]++;
				else
					pages[left++] = pages[k];
			}
			n = left;
		}
		w->absent += left;
	}
}

void where_move(void *start, size_t len, int node)
{
	enum { BATCH = 512, MOVE = 1 << 1 }; /* MPOL_MF_MOVE */
	void *pages[BATCH];
	int to[BATCH];
	int status[BATCH];

	for (size_t at = 0; at < len;) {
		unsigned long n = 0;

		for (; n < BATCH && at < len; n++, at += WHERE_PAGE) {
			pages[n] = (char *)start + at;
			to[n] = node;
		}
		if (syscall(SYS_move_pages, 0, n, pages, to, status, MOVE))
			where_die("move_pages");
	}
}

static void add_policy(struct where *w, const char *text, size_t len)
{
	char name[sizeof(w->policy[0])];
	unsigned i;

	len = len < sizeof(name) ? len : sizeof(name) - 1;
	for (i = 0; i < len; i++)
		name[i] = (char)(text[i] == ' ' ? '_' : text[i]);
	name[len] = '\0';
	for (i = 0; i < w->nr_policies; i++)
		if (strcmp(w->policy[i], name) == 0)
			return;
	if (i < WHERE_POLICIES)
		memcpy(w->policy[w->nr_policies++], name, len + 1);
}

/* The policy ends where the first word of another kind begins; "prefer (many):0-1" is one policy.
 */
static size_t policy_length(const char *text)
{
	static const char *const next[] = {" file=", " anon=", " heap", " stack", " huge",
		" dirty=", " mapped=", " mapmax=", " active=", " writeback=", " N",
		" kernelpagesize_kB=", " swapcache=", "\n"};
	size_t len = strlen(text);

	for (size_t i = 0; i < sizeof(next) / sizeof(next[0]); i++) {
		const char *at = strstr(text, next[i]);

		if (at && (size_t)(at - text) < len)
			len = (size_t)(at - text);
	}
	return len;
}

void where_maps(struct where *w, const void *start, size_t len)
{
	uintptr_t from = (uintptr_t)start;
	uintptr_t to = from + len;
	unsigned long a;
	unsigned long b;
	unsigned long kb;
	char line[1024];
	char first[1024] = "";
	int inside = 0;
	int at;
	FILE *f = fopen("/proc/self/smaps", "r");

	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%lx-%lx ", &a, &b) == 2) {
			inside = a < to && b > from;
			w->vmas += (unsigned long)inside;
		} else if (inside && (sscanf(line, "AnonHugePages: %lu", &kb) == 1 ||
					     sscanf(line, "ShmemPmdMapped: %lu", &kb) == 1)) {
			w->huge_kb += kb;
		}
	}
	if (f)
		fclose(f);
	f = fopen("/proc/self/numa_maps", "r");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "%lx %n", &a, &at) == 1 && a <= from)
			memcpy(first, line + at, strlen(line + at) + 1);
		else if (a > from && a < to)
			add_policy(w, line + at, policy_length(line + at));
	/* The mapping in which the range begins; numa_maps has no ends. */
	add_policy(w, first, policy_length(first));
	if (f)
		fclose(f);
}

void where_print(const char *name, const struct where *w)
{
	printf("%s", name);
	for (int i = 0; i < WHERE_NODES; i++)
		if (w->on[i])
			printf(" %d=%lu", i, w->on[i]);
	if (w->absent)
		printf(" absent=%lu", w->absent);
	if (w->vmas)
		printf(" vmas=%lu huge=%lu", w->vmas, w->huge_kb);
	for (unsigned i = 0; i < w->nr_policies; i++)
		printf("%s%s", i ? "|" : " policy=", w->policy[i]);
	printf("\n");
	fflush(stdout);
}

void where_report(const char *name, const void *start, size_t len)
{
	struct where w = {0};

	where_pages(&w, start, len);
	where_maps(&w, start, len);
	where_print(name, &w);
}

void where_print_maps(const char *name, const void *start, size_t len)
{
	uintptr_t from = (uintptr_t)start;
	unsigned long a;
	char line[1024];
	FILE *f = fopen("/proc/self/numa_maps", "r");

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "%lx", &a) == 1 && a >= from && a < from + len)
			printf("map %s %s", name, line);
	if (f)
		fclose(f);
	fflush(stdout);
}

char *where_touch(void *p, size_t len, const char *what)
{
	if (!p || p == MAP_FAILED)
		where_die(what);
	for (size_t i = 0; i < len; i += WHERE_PAGE)
		((volatile char *)p)[i] = 1;
	if (len > 0)
		((volatile char *)p)[len - 1] = 1; /* p need not be the start of a page */
	return p;
}

int where_cpu(int node, cpu_set_t *ret)
{
	char path[64];
	FILE *f;
	int cpu = -1;

	snprintf(path, sizeof(path), "/sys/devices/system/node/node%d/cpulist", node);
	f = fopen(path, "r");
	if (!f)
		return -1;
	if (fscanf(f, "%d", &cpu) != 1)
		cpu = -1;
	fclose(f);
	if (cpu < 0)
		return -1;
	CPU_ZERO(ret);
	CPU_SET(cpu, ret);
	return 0;
}

int where_pin(int node)
{
	cpu_set_t set;

	return where_cpu(node, &set) ? -1 : sched_setaffinity(0, sizeof(set), &set);
}
