// SPDX-License-Identifier: MIT
/*
 * The sampler damon, as root: coarse as it is, it has to tell a large hot stretch from a large idle
 * one, and to leave sysfs as it was. Prints TAP.
 *
 *     damon [--expect ERRNO]
 *
 * --expect: this is what probe() has to say. Without it a machine without DAMON is a skip.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "shim/os/sys.h"
#include "tests/sampler/ground.h"

#define MIB ((size_t)1 << 20)
#define LOOKS 15
#define ENTRIES "/sys/kernel/mm/damon/admin/kdamonds/nr_kdamonds"

static const struct lift_sampler *const s = &lift_sampler_damon;
static unsigned tests;
static unsigned failures;

static void check(bool good, const char *what, long figure)
{
	printf("%s %u - damon %s (%ld)\n", good ? "ok" : "not ok", ++tests, what, figure);
	failures += !good;
}

static int entries(void)
{
	char text[32];

	return lift_sys_read_file(ENTRIES, text, sizeof(text)) > 0 ? atoi(text) : -1;
}

/* A kernel thread: their names are in brackets, or have no command line. */
static int kdamonds(void)
{
	FILE *f = popen("cat /proc/[0-9]*/comm 2>/dev/null | grep -c '^kdamond'", "r");
	int n = -1;

	if (f) {
		(void)!fscanf(f, "%d", &n);
		pclose(f);
	}
	return n;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void use(struct ground *g, double seconds)
{
	for (double end = now() + seconds; now() < end;)
		for (size_t at = 0; at < g->len / 4; at += PAGE)
			(void)((volatile char *)g->base)[at];
}

struct found {
	struct lift_range hot;
	struct lift_range idle;
	size_t hot_told;
	size_t idle_told;
	size_t regions;
};

static void hear(void *arg, const struct lift_sample *m)
{
	struct found *f = arg;

	f->regions++;
	if (!m->accessed_bytes)
		return;
	f->hot_told += lift_range_bytes(lift_range_and(m->range, f->hot));
	f->idle_told += lift_range_bytes(lift_range_and(m->range, f->idle));
}

static void finds(void)
{
	struct ground g;
	struct found f = {{0, 0}, {0, 0}, 0, 0, 0};
	struct lift_range r;
	int rc;

	ground_make(&g, GROUND_SMALL, 128 * MIB);
	r = ground_range(&g);
	f.hot = (struct lift_range){r.start, r.start + 32 * MIB};
	f.idle = (struct lift_range){r.start + 64 * MIB, r.end};
	rc = s->watch(&r, 1) < 0 ? -1 : s->arm(&r, 1);
	check(rc == 0 && kdamonds() == 1, "is on", rc);
	/*
	 * It samples a page of a region at a time, and its regions have to find their borders
	 * first: on a busy machine one look may see nothing.
	 */
	for (int looks = 0; rc >= 0 && looks < LOOKS; looks++) {
		f.hot_told = f.idle_told = f.regions = 0;
		use(&g, 4);
		rc = s->collect(&r, 1, LIFT_COLLECT_IDLE, hear, &f);
		if (f.hot_told > 16 * MIB && f.idle_told < 16 * MIB)
			break;
	}
	check(rc == 0 && f.regions > 0, "regions", rc < 0 ? rc : (long)f.regions);
	check(f.hot_told > 16 * MIB, "MiB told of 32 that are hot", (long)(f.hot_told / MIB));
	check(f.idle_told < 16 * MIB, "MiB told of 64 that are idle", (long)(f.idle_told / MIB));
	s->close();
	check(entries() == 0 && kdamonds() == 0, "closed: entries", entries());
	ground_drop(&g);
}

static void dies(void)
{
	struct lift_range r = {0, 0};
	int status;
	pid_t pid = fork();

	if (pid < 0)
		die("fork");
	if (pid == 0) {
		s->forked();
		_exit(s->watch(&r, 0) < 0 ? 1 : 0);
	}
	waitpid(pid, &status, 0);
	for (int i = 0; i < 50 && kdamonds() != 0; i++)
		usleep(100000);
	check(status == 0 && kdamonds() == 0, "a process that dies leaves no kdamond", kdamonds());
	check(entries() == 1, "but its entry", entries());
	check(s->open() == 0, "which is taken over", entries());
	pid = fork();
	if (pid == 0) {
		s->forked();
		_exit(s->probe() == -EBUSY ? 0 : 1);
	}
	waitpid(pid, &status, 0);
	check(status == 0, "a child is told that it is busy", status);
	s->close();
	check(entries() == 0 && kdamonds() == 0, "closed: entries", entries());
}

int main(int argc, char **argv)
{
	int before = entries();
	int rc;

	setvbuf(stdout, NULL, _IOLBF, 0);
	rc = s->probe();
	if (argc == 3 && strcmp(argv[1], "--expect") == 0) {
		check(rc == -atoi(argv[2]), strerror(-rc), rc);
		check(entries() == before, "entries as before", before);
	} else if (rc < 0) {
		printf("ok %u - damon probe # SKIP %s\n", ++tests, strerror(-rc));
	} else {
		finds();
		dies();
	}
	printf("1..%u\n", tests);
	return failures != 0;
}
