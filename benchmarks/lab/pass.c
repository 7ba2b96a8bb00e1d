// SPDX-License-Identifier: MIT
#include "benchmarks/lab/pass.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "benchmarks/lab/marker.h"

#define PAGE 4096ul

double pass_now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static bool is_marked(const struct pass *p)
{
	return p->mark && p->number >= p->mark;
}

static void open_phase(const struct pass *p, const char *what)
{
	char name[32];

	if (!is_marked(p))
		return;
	snprintf(name, sizeof(name), "%s %lu", what, p->number);
	marker_open(name);
}

bool pass_next(struct pass *p)
{
	if (p->number >= p->passes)
		return false;
	p->number++;
	return true;
}

void pass_begin(struct pass *p)
{
	p->start_ms = pass_now_ms();
	open_phase(p, "pass");
}

void pass_end(struct pass *p)
{
	if (is_marked(p))
		marker_close();
	p->ms = pass_now_ms() - p->start_ms;
}

void pass_rest(const struct pass *p)
{
	double until = p->start_ms + p->period_ms;
	struct timespec t = {.tv_sec = (time_t)(until / 1e3)};

	if (p->number >= p->passes || pass_now_ms() >= until)
		return;
	t.tv_nsec = (long)((until - (double)t.tv_sec * 1e3) * 1e6);
	open_phase(p, "pause");
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
		;
	if (is_marked(p))
		marker_close();
}

unsigned long pass_number(const struct pass *p, const char *option, const char *text,
	unsigned long min, unsigned long max)
{
	char *end;
	unsigned long n;

	errno = 0;
	n = strtoul(text, &end, 10);
	if (*text < '0' || *text > '9' || *end || errno || n < min || n > max) {
		fprintf(stderr, "%s: --%s '%s': expected a number from %lu to %lu\n", p->program,
			option, text, min, max);
		exit(2);
	}
	return n;
}

bool pass_option(
	struct pass *p, int what, const char *option, const char *text, unsigned long least)
{
	switch (what) {
	case 'n':
		p->passes = pass_number(p, option, text, least, 100000);
		return true;
	case 'P':
		p->period_ms = (double)pass_number(p, option, text, 0, 1000000);
		return true;
	case 'M':
		p->mark = text ? pass_number(p, option, text, 1, 100000) : 1;
		return true;
	default:
		return false;
	}
}

void pass_pin(unsigned long number)
{
	cpu_set_t allowed;
	cpu_set_t one;

	CPU_ZERO(&one);
	if (sched_getaffinity(0, sizeof(allowed), &allowed) == 0) {
		number %= (unsigned long)CPU_COUNT(&allowed);
		for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
			if (CPU_ISSET(cpu, &allowed) && number-- == 0)
				CPU_SET(cpu, &one);
		if (sched_setaffinity(0, sizeof(one), &one) == 0)
			return;
	}
	perror("affinity of a thread");
	exit(2);
}

bool pass_add_nodes(long pid, unsigned long *on)
{
	char path[64];
	char line[4096];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%ld/numa_maps", pid);
	f = fopen(path, "r");
	if (!f)
		return false;
	while (fgets(line, sizeof(line), f)) {
		if (!strstr(line, " anon="))
			continue;
		for (char *at = strstr(line, " N"); at; at = strstr(at + 1, " N")) {
			unsigned long pages;
			unsigned node;

			if (sscanf(at, " N%u=%lu", &node, &pages) == 2 && node < PASS_MAX_NODES)
				on[node] += pages;
		}
	}
	fclose(f);
	return true;
}

long pass_add_pages(const char *start, size_t bytes, unsigned long *on)
{
	enum { BATCH = 512 };
	long unknown = 0;

	for (size_t at = 0; at < bytes; at += BATCH * PAGE) {
		size_t n = (bytes - at + PAGE - 1) / PAGE;
		const char *page[BATCH];
		int status[BATCH];

		n = n < BATCH ? n : BATCH;
		for (size_t i = 0; i < n; i++)
			page[i] = start + at + i * PAGE;
		if (syscall(SYS_move_pages, 0, n, page, NULL, status, 0))
			return -1;
		for (size_t i = 0; i < n; i++)
			if (status[i] >= 0 && status[i] < PASS_MAX_NODES)
				on[status[i]]++;
			else
				unknown++;
	}
	return unknown;
}

void pass_print_nodes(const unsigned long *on)
{
	const char *comma = "";

	printf("\"nodes\": {");
	for (int i = 0; i < PASS_MAX_NODES; i++)
		if (on[i]) {
			printf("%s\"%d\": %lu", comma, i, on[i]);
			comma = ", ";
		}
	printf("}");
}

void pass_print_migrated(void)
{
	static const char name[] = "pgmigrate_success ";
	char line[128];
	FILE *f = fopen("/proc/vmstat", "r");

	while (f && fgets(line, sizeof(line), f))
		if (strncmp(line, name, sizeof(name) - 1) == 0)
			printf(", \"migrated\": %lu", strtoul(line + sizeof(name) - 1, NULL, 10));
	if (f)
		fclose(f);
}
