// SPDX-License-Identifier: MIT
/*
 * The samplers that see sums, left to choose their regions themselves: how soon they find what is
 * hot, what that costs in mappings, and that nothing of it is left behind. Prints TAP.
 *
 *     regions [--need NAME[,NAME...]] [--mib N]
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "shim/apart.h"
#include "shim/os/sys.h"
#include "shim/registry.h"
#include "tests/sampler/ground.h"
#include "tests/sampler/tap.h"

#define MIB ((size_t)1 << 20)
#define UNIT (2 * MIB)
#define MAPS_MAX 65530

static size_t mib = 512;
static const struct lift_sampler *s;

static void set_budget(uint64_t max_map_count)
{
	if (!lift_registry_enter())
		die("registry");
	lift_vmabudget_resize(lift_registry_budget(), max_map_count);
	lift_registry_leave();
}

static unsigned long budget_used(void)
{
	return lift_registry_budget()->used;
}

/* --- passes --- */

static bool is_hot(const unsigned char *hot, size_t at)
{
	return hot[at / UNIT] != 0;
}

static void use(struct ground *g, const unsigned char *hot)
{
	for (size_t at = 0; at < g->len; at += PAGE)
		if (is_hot(hot, at))
			(void)((volatile char *)g->base)[at];
}

/* As a worker takes it: a sum is used when an eighth of what is there was. */
static void hear(void *arg, const struct lift_sample *m)
{
	struct ground *g = arg;
	struct lift_range r = lift_range_and(m->range, ground_range(g));

	if (m->accessed_bytes < m->resident_bytes / 8 || m->accessed_bytes == 0)
		return;
	for (uintptr_t a = r.start; a < r.end; a += UNIT)
		g->told[(a - (uintptr_t)g->base) / UNIT] = 1;
}

static int pass(struct ground *g, const unsigned char *hot)
{
	struct lift_range r = ground_range(g);
	int rc = s->arm(&r, 1);

	ground_start(g);
	if (rc == 0) {
		use(g, hot);
		rc = s->collect(&r, 1, LIFT_COLLECT_IDLE, hear, g);
	}
	if (rc < 0)
		printf("# a pass failed: %s\n", strerror(-rc));
	return rc;
}

/* All that is hot, and besides at most an eighth of a region that is hot otherwise. */
static bool exact(const struct ground *g, const unsigned char *hot)
{
	size_t missed = 0;
	size_t right = 0;
	size_t wrong = 0;

	for (size_t i = 0; i < g->len / UNIT; i++) {
		missed += hot[i] && !g->told[i];
		right += hot[i] && g->told[i];
		wrong += !hot[i] && g->told[i];
	}
	return missed == 0 && wrong <= right / 8;
}

/* Passes until what is told is what is hot; 99: never. */
static unsigned passes(struct ground *g, const unsigned char *hot)
{
	for (unsigned n = 1; n <= 20; n++)
		if (pass(g, hot) < 0)
			break;
		else if (exact(g, hot))
			return n;
	return 99;
}

static void watch(const struct ground *g)
{
	struct lift_range r = ground_range(g);

	if (s->watch(&r, 1) < 0)
		die("watch");
}

static void make(struct ground *g, enum ground_kind kind, size_t len)
{
	ground_make(g, kind, len);
	ground_units(g, UNIT);
}

/* A few stretches of 2 MiB, one of 6 MiB, and one of 64 MiB. */
static unsigned char *heat_up(const struct ground *g, size_t seed)
{
	size_t nr = g->len / UNIT;
	unsigned char *hot = calloc(nr, 1);

	if (!hot)
		die("calloc");
	for (size_t i = 0; i < 4; i++)
		hot[(i * 53 + seed * 29 + 3) % nr] = 1;
	for (size_t i = 0; i < 3; i++)
		hot[(i + seed * 31 + 20) % nr] = 1;
	for (size_t i = 0; i < nr / 8; i++)
		hot[(i + seed * 7 + nr / 2) % nr] = 1;
	return hot;
}

/* --- the cases --- */

static void converges(enum ground_kind kind)
{
	struct ground g;
	unsigned char *hot;
	size_t mappings;
	size_t most;
	size_t huge;
	unsigned first;
	unsigned again;

	make(&g, kind, mib * MIB);
	huge = ground_huge_kb(&g);
	if (kind == GROUND_HUGE && huge * 1024 != g.len) {
		skip("huge pages", "not all of it is in some");
		ground_drop(&g);
		return;
	}
	mappings = ground_mappings(&g);
	hot = heat_up(&g, 0);
	watch(&g);
	first = passes(&g, hot);
	for (unsigned i = 0; i < 3; i++)
		(void)pass(&g, hot);
	check(first <= 6 && exact(&g, hot), "%s: stretches of 2 MiB in %zu MiB found in %u passes",
		g.name, mib, first);
	most = ground_mappings(&g);
	free(hot);
	hot = heat_up(&g, 1);
	again = passes(&g, hot);
	check(again <= 12 && exact(&g, hot), "%s: and others in %u more", g.name, again);
	for (unsigned i = 0; i < 20; i++)
		(void)pass(&g, hot);
	check(exact(&g, hot) && ground_mappings(&g) <= most + 20,
		"%s: %zu mappings at first, %zu then, %zu after 20 passes", g.name, mappings, most,
		ground_mappings(&g));
	check(budget_used() + mappings >= ground_mappings(&g), "%s: the budget was charged %lu",
		g.name, budget_used());
	s->close();
	check(ground_mappings(&g) == mappings && budget_used() == 0,
		"%s: closed: %zu mappings, as before", g.name, ground_mappings(&g));
	check(ground_huge_kb(&g) >= huge, "%s: %zu kB of huge pages, %zu before", g.name,
		ground_huge_kb(&g), huge);
	free(hot);
	ground_drop(&g);
}

/* Hardly any mappings are left to have. */
static void small_budget(void)
{
	struct ground g;
	unsigned char *hot;
	size_t mappings;

	make(&g, GROUND_SMALL, 128 * MIB);
	mappings = ground_mappings(&g);
	hot = heat_up(&g, 0);
	set_budget(100);
	watch(&g);
	for (unsigned i = 0; i < 10; i++)
		(void)pass(&g, hot);
	check(budget_used() > 0 && budget_used() <= 12 && ground_mappings(&g) <= mappings + 12,
		"a budget of 25, half of it for others: %lu charged, %zu mappings", budget_used(),
		ground_mappings(&g));
	set_budget(0);
	(void)pass(&g, hot);
	check(budget_used() == 0 && ground_mappings(&g) == mappings,
		"and of 0: %lu charged, %zu mappings", budget_used(), ground_mappings(&g));
	set_budget(MAPS_MAX);
	s->close();
	free(hot);
	ground_drop(&g);
}

/*
 * By pages: some are written here and there, some stretches are read, a few pages of what is idle
 * otherwise are read and cannot be told from it.
 */
static void pages(void)
{
	enum { IDLE_READ = 1, WRITTEN = 2, READ = 4 };
	struct ground g;
	struct lift_range r;
	size_t used[3] = {0};
	size_t told[3] = {0};
	size_t idle = 0;
	int rc = 0;

	make(&g, GROUND_SMALL, mib * MIB);
	ground_units(&g, PAGE);
	r = ground_range(&g);
	watch(&g);
	for (unsigned round = 0; round < 12 && rc == 0; round++) {
		unsigned char *p = g.used;

		rc = s->arm(&r, 1);
		ground_start(&g);
		for (size_t i = 0; i < g.len / PAGE; i++) {
			size_t unit = i * PAGE / UNIT;
			bool hot = unit % 29 == 3 || (unit >= 40 && unit < 49);

			p[i] = i % 37 == 5 || i % 4099 < 24 ? WRITTEN
			       : hot                        ? READ
			       : i % 211 == 0               ? IDLE_READ
							    : 0;
			if (p[i] == WRITTEN)
				((volatile char *)g.base)[i * PAGE] = 2;
			else if (p[i])
				(void)((volatile char *)g.base)[i * PAGE];
		}
		if (rc == 0)
			rc = s->collect(&r, 1, LIFT_COLLECT_IDLE, ground_hear, &g);
	}
	for (size_t i = 0; i < g.len / PAGE; i++) {
		unsigned kind = g.used[i] == WRITTEN ? 0 : g.used[i] == READ ? 1 : 2;

		idle += !g.used[i] && g.told[i];
		used[kind] += g.used[i] != 0;
		told[kind] += g.used[i] && g.told[i];
	}
	check(rc == 0 && told[0] == used[0], "pages: %zu of %zu written pages told", told[0],
		used[0]);
	check(told[1] == used[1], "pages: %zu of %zu pages that are read by stretches told",
		told[1], used[1]);
	check(idle == 0, "pages: precision %.4f, recall %.4f; of %zu single reads %zu",
		(double)(told[0] + told[1] + told[2]) /
			(double)(told[0] + told[1] + told[2] + idle),
		(double)(told[0] + told[1] + told[2]) / (double)(used[0] + used[1] + used[2]),
		used[2], told[2]);
	s->close();
	ground_drop(&g);
}

static int in_child(int (*fn)(void *arg), void *arg)
{
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid < 0)
		die("fork");
	if (pid == 0) {
		s->forked();
		_exit(fn(arg));
	}
	if (waitpid(pid, &status, 0) != pid)
		die("waitpid");
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

struct shared {
	struct ground *g;
	const unsigned char *hot;
};

/* After a fork the kernel makes one mapping again only of what was one then. */
static int child_passes(void *arg)
{
	struct shared *sh = arg;
	size_t apart = ground_mappings(sh->g);
	int mode;
	int rc;

	watch(sh->g);
	if (ground_mappings(sh->g) < apart)
		return 2;
	/* Pages that are shared with the parent may be of no use to a child, but are no error. */
	rc = pass(sh->g, sh->hot);
	s->close();
	for (size_t at = 0; at < sh->g->len; at += MIB)
		if (lift_sys_get_mempolicy(&mode, NULL, sh->g->base + at) != 0 ||
			mode != LIFT_MPOL_DEFAULT)
			return 4;
	return rc < 0 ? 3 : budget_used() != 0 ? 5 : 0;
}

static void forks(void)
{
	struct ground g;
	struct shared sh = {.g = &g};
	unsigned char *hot;
	int status;

	make(&g, GROUND_SMALL, 128 * MIB);
	hot = heat_up(&g, 0);
	sh.hot = hot;
	watch(&g);
	(void)passes(&g, hot);
	status = in_child(child_passes, &sh);
	check(status == 0, "fork: the child goes on with its own and ends it (%d)", status);
	(void)pass(&g, hot);
	check(exact(&g, hot), "fork: the parent's regions are as they were");
	s->close();
	check(ground_mappings(&g) == 1, "fork: the parent's are one again");
	free(hot);
	ground_drop(&g);
}

/* Mappings go, come, and move while they are divided. */
static void changes(void)
{
	struct ground g;
	struct lift_range r;
	unsigned char *hot;
	size_t used;
	char *to;
	char *hole;
	int mode = -1;
	long rc;

	make(&g, GROUND_SMALL, 128 * MIB);
	r = ground_range(&g);
	hot = heat_up(&g, 0);
	watch(&g);
	(void)passes(&g, hot);
	s->disarm(&r, 1);
	to = mremap(g.base, g.len, g.len, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, NULL);
	check(to != MAP_FAILED, "disarmed: mremap takes all of it at once (%zu mappings)",
		ground_mappings(&g));
	if (to != MAP_FAILED)
		munmap(to, g.len);
	for (size_t at = 0; at < g.len; at += PAGE)
		g.base[at] = 1;
	watch(&g);
	check(passes(&g, hot) < 20, "watched again: found again");

	/* A hole, not along a border, and something else in it that must not be touched. */
	(void)s->arm(&r, 1);
	hole = g.base + 30 * MIB + 5 * PAGE;
	munmap(hole, 20 * MIB);
	rc = s->collect(&r, 1, LIFT_COLLECT_IDLE, hear, &g);
	check(rc == 0, "unmapped between arm and collect (%ld)", rc);
	if (mmap(hole, 20 * MIB, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1,
		    0) != hole)
		die("mmap");
	for (unsigned i = 0; i < 6; i++) {
		memset(hole, i, UNIT);
		(void)pass(&g, hot);
		if (i == 2)
			watch(&g);
	}
	for (size_t at = 0; at < 20 * MIB && mode != LIFT_MPOL_LOCAL; at += MIB)
		if (lift_sys_get_mempolicy(&mode, NULL, hole + at) != 0)
			die("get_mempolicy");
	check(mode == LIFT_MPOL_DEFAULT, "what is mapped there is shared: no policy of ours");
	used = ground_mappings(&g);
	s->close();
	check(ground_mappings(&g) == 3 && budget_used() == 0,
		"closed: %zu mappings of %zu are left", ground_mappings(&g), used);
	free(hot);
	ground_drop(&g);
}

/* What the program says about its memory stays said. */
static void policies(void)
{
	struct lift_nodeset zero;
	struct ground g;
	unsigned char *hot;
	int mode[3];

	lift_nodeset_zero(&zero);
	lift_nodeset_set(&zero, 0);
	make(&g, GROUND_SMALL, 128 * MIB);
	hot = heat_up(&g, 0);
	if (lift_sys_mbind(g.base, 32 * MIB, LIFT_MPOL_LOCAL, NULL, 0) != 0) {
		skip("policies", "refused");
		return;
	}
	watch(&g);
	(void)passes(&g, hot);
	(void)lift_sys_mbind(g.base + 63 * MIB, 34 * MIB, LIFT_MPOL_BIND, &zero, 0);
	for (unsigned i = 0; i < 4; i++) {
		(void)pass(&g, hot);
		if (i == 1)
			watch(&g);
	}
	s->close();
	(void)lift_sys_get_mempolicy(&mode[0], NULL, g.base + 17 * MIB);
	(void)lift_sys_get_mempolicy(&mode[1], NULL, g.base + 40 * MIB);
	(void)lift_sys_get_mempolicy(&mode[2], NULL, g.base + 80 * MIB);
	check(mode[0] == LIFT_MPOL_LOCAL && mode[1] == LIFT_MPOL_DEFAULT &&
			mode[2] == LIFT_MPOL_BIND && ground_mappings(&g) == 4,
		"policies of the program: %d %d %d, %zu mappings", mode[0], mode[1], mode[2],
		ground_mappings(&g));
	/* Where the thread has a policy, "local" is not the same as none. */
	if (lift_sys_set_mempolicy(LIFT_MPOL_PREFERRED, &zero) != 0)
		die("set_mempolicy");
	watch(&g);
	(void)pass(&g, hot);
	check(ground_mappings(&g) == 4, "the task has a policy: nothing is divided");
	(void)lift_sys_set_mempolicy(LIFT_MPOL_DEFAULT, NULL);
	s->close();
	free(hot);
	ground_drop(&g);
}

/* Memory that placement has bound as a whole is divided as well, and has its policy afterwards. */
static void placed(void)
{
	const int bound = LIFT_MPOL_PREFERRED;
	struct lift_nodeset zero;
	struct lift_nodeset nodes;
	struct ground g;
	unsigned char *hot;
	bool good = true;
	size_t most;
	unsigned n;
	int mode;

	lift_nodeset_zero(&zero);
	lift_nodeset_set(&zero, 0);
	make(&g, GROUND_SMALL, 128 * MIB);
	hot = heat_up(&g, 0);
	placed_mode = bound;
	if (lift_sys_mbind(g.base, g.len, bound, &zero, 0) != 0) {
		skip("placement's own policy", "refused");
		return;
	}
	watch(&g);
	n = passes(&g, hot);
	most = ground_mappings(&g);
	s->close();
	for (size_t at = 0; at < g.len && good; at += MIB)
		good = lift_sys_get_mempolicy(&mode, &nodes, g.base + at) == 0 && mode == bound &&
		       lift_nodeset_equal(&nodes, &zero);
	check(n <= 7 && good && ground_mappings(&g) == 1,
		"placement's own policy: found in %u passes, %zu mappings, %zu afterwards", n, most,
		ground_mappings(&g));
	placed_mode = LIFT_MPOL_DEFAULT;
	free(hot);
	ground_drop(&g);
}

/* Clearing is not possible, nor is pagemap: the child of a process that changed its user. */
static int undumpable_passes(void *arg)
{
	struct ground g;
	unsigned char *hot;
	unsigned n;

	(void)arg;
	prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	if (geteuid() == 0)
		return 77;
	if (s->probe() != 0)
		return 10;
	make(&g, GROUND_SMALL, 128 * MIB);
	hot = heat_up(&g, 0);
	watch(&g);
	n = passes(&g, hot);
	s->close();
	return ground_mappings(&g) == 1 ? (int)n : 98;
}

static void undumpable(void)
{
	int status = in_child(undumpable_passes, NULL);

	if (status == 77)
		skip("undumpable", "root may open everything");
	else if (s == &lift_sampler_refs)
		check(status <= 6, "undumpable: found in %d passes", status);
	else
		check(status == 10, "undumpable: not possible (%d)", status);
}

/* The process is at vm.max_map_count. */
static int full_passes(void *arg)
{
	enum { SPARE = 3 };
	struct ground g;
	unsigned char *hot;
	size_t len = 2 * MAPS_MAX * PAGE;
	char *fill = mmap(NULL, len, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	size_t at = 0;
	int rc = 0;

	(void)arg;
	if (fill == MAP_FAILED)
		return 77;
	make(&g, GROUND_SMALL, 128 * MIB);
	hot = heat_up(&g, 0);
	while (at < len && mprotect(fill + at, PAGE, PROT_READ) == 0)
		at += 2 * PAGE;
	if (at == len)
		return 77; /* the limit is higher here */
	(void)mprotect(fill, SPARE * 2 * PAGE, PROT_NONE);
	watch(&g);
	for (unsigned i = 0; i < 6 && rc == 0; i++)
		rc = pass(&g, hot);
	if (rc < 0 || budget_used() != 0)
		return 2;
	/* As much room as there was: each needs two. */
	for (unsigned i = 0; i < SPARE - 1; i++)
		if (mprotect(fill + 2 * i * PAGE, PAGE, PROT_READ) != 0)
			return 3;
	return 0;
}

static void full(void)
{
	int status = in_child(full_passes, NULL);

	if (status == 77)
		skip("at vm.max_map_count", "another limit");
	else
		check(status == 0, "at vm.max_map_count: gives way (%d)", status);
}

static double ms_since(const struct timespec *from)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)(now.tv_sec - from->tv_sec) * 1e3 +
	       (double)(now.tv_nsec - from->tv_nsec) / 1e6;
}

static void ignore(void *arg, const struct lift_sample *m)
{
	(void)arg;
	(void)m;
}

/* A program with very many mappings, all of them to be sampled. */
static void many(void)
{
	enum { MAPPINGS = 50000 };
	size_t len = MAPPINGS * PAGE;
	char *fill = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct lift_range r = {(uintptr_t)fill, (uintptr_t)fill + len};
	struct timespec t;
	double ms[4];
	int64_t rc;

	if (fill == MAP_FAILED)
		die("mmap");
	for (size_t at = 0; at < len; at += 2 * PAGE)
		if (mprotect(fill + at, PAGE, PROT_READ) != 0)
			break;
	clock_gettime(CLOCK_MONOTONIC, &t);
	rc = s->watch(&r, 1);
	ms[0] = ms_since(&t);
	clock_gettime(CLOCK_MONOTONIC, &t);
	rc = rc < 0 ? rc : s->arm(&r, 1);
	ms[1] = ms_since(&t);
	clock_gettime(CLOCK_MONOTONIC, &t);
	rc = rc < 0 ? rc : s->collect(&r, 1, LIFT_COLLECT_IDLE, ignore, NULL);
	ms[2] = ms_since(&t);
	clock_gettime(CLOCK_MONOTONIC, &t);
	s->close();
	ms[3] = ms_since(&t);
	check(rc >= 0, "%d mappings: watch %.1f ms, arm %.1f, collect %.1f, close %.1f", MAPPINGS,
		ms[0], ms[1], ms[2], ms[3]);
	munmap(fill, len);
}

static void all_cases(void)
{
	converges(GROUND_SMALL);
	converges(GROUND_HUGE);
	small_budget();
	if (s->traits & LIFT_SAMPLER_PAGES)
		pages();
	forks();
	changes();
	policies();
	placed();
	undumpable();
	full();
	many();
	s->close();
}

int main(int argc, char **argv)
{
	static const char *const names[] = {"refs", "wp+refs"};
	const char *need = "";

	setvbuf(stdout, NULL, _IOLBF, 0);
	for (int i = 1; i + 1 < argc; i += 2) {
		if (strcmp(argv[i], "--need") == 0)
			need = argv[i + 1];
		else if (strcmp(argv[i], "--mib") == 0)
			mib = strtoul(argv[i + 1], NULL, 10);
	}
	set_budget(MAPS_MAX);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		int rc;

		s = lift_sampler_find(names[i]);
		tap_about = s->name;
		if (!s)
			continue;
		rc = s->probe();
		if (rc == 0)
			all_cases();
		else if (strstr(need, s->name))
			check(false, "is needed here: %s", strerror(-rc));
		else
			skip("probe", strerror(-rc));
	}
	return tap_end();
}
