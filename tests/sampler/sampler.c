// SPDX-License-Identifier: MIT
/*
 * Each sampler against memory whose use is known in advance, page by page, linked directly and
 * without the library. Prints TAP: what was used, what was told, precision and recall; and what
 * arming and collecting cost.
 *
 *     sampler [--need NAME[,NAME...]] [--mib N] [NAME...]
 *
 * A sampler that is not possible here is a skip, but for those that are needed. Exit status 0 or 1.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/sampler/ground.h"
#include "tests/sampler/tap.h"

#define MIB ((size_t)1 << 20)
#define REGION (2 * MIB)
#define SIZE(a) (sizeof(a) / sizeof((a)[0]))

static size_t cost_mib = 256;

static const struct lift_sampler *s; /* the one that is tested */

/* --- saying it --- */

/*
 * Exact, but for soft-dirty bits where pages change their node, by request or by NUMA balancing: up
 * to some kernel after 6.1 they count as written then.
 */
static bool well_told(const struct score *r, bool may_move)
{
	return may_move && s == &lift_sampler_dirty ? r->right == r->used : score_exact(r);
}

/* Single reads are not known to wp+refs, and are neither told as use nor as idle. */
static unsigned seen(void)
{
	return s == &lift_sampler_wp_refs ? s->traits & ~LIFT_SAMPLER_READS : s->traits;
}

static bool by_uffd(void)
{
	return s == &lift_sampler_rwp || s == &lift_sampler_wp || s == &lift_sampler_wp_refs;
}

static void check_score_of(const char *what, const struct ground *g, bool may_move)
{
	struct score r = ground_score(g, seen());

	check(well_told(&r, may_move) && g->outside == 0,
		"%s %s: %zu of %zu units used, %zu told: precision %.4f, recall %.4f%s", what,
		g->name, r.used, r.units, r.told, r.told ? (double)r.right / (double)r.told : 1,
		r.used ? (double)r.right / (double)r.used : 1,
		g->outside ? "; and some outside of it" : "");
}

static void check_score(const char *what, const struct ground *g)
{
	check_score_of(what, g, false);
}

/* --- one round --- */

static bool by_region(void)
{
	return !(s->traits & LIFT_SAMPLER_PAGES);
}

static void make(struct ground *g, enum ground_kind kind, size_t len)
{
	ground_make(g, kind, len);
	if (by_region() && !ground_apart(g, REGION))
		printf("# regions of %s could not be kept apart\n", g->name);
}

static int ready(struct ground *g)
{
	struct lift_range r = ground_range(g);
	int64_t bytes = s->watch(&r, 1);
	int rc = bytes < 0 ? (int)bytes : s->arm(&r, 1);

	ground_start(g);
	return rc;
}

static int hear(struct ground *g)
{
	struct lift_range r = ground_range(g);

	return s->collect(&r, 1, 0, ground_hear, g);
}

static void round_trip(const char *what, struct ground *g, unsigned seed)
{
	int rc = ready(g);

	if (rc == 0) {
		ground_use(g, seed);
		rc = hear(g);
	}
	if (rc < 0)
		check(false, "%s %s: %s", what, g->name, strerror(-rc));
	else
		check_score(what, g);
}

/* --- the cases --- */

static void kinds(void)
{
	for (int kind = 0; kind < GROUND_MAX; kind++) {
		struct ground g;
		size_t huge;

		if (kind == GROUND_HUGE && s == &lift_sampler_wp_refs)
			continue; /* told by regions (regions.c) */
		make(&g, kind, 16 * MIB);
		huge = ground_huge_kb(&g);
		round_trip("first", &g, 1);
		round_trip("again", &g, 2);
		if (kind == GROUND_HUGE)
			check(ground_huge_kb(&g) == huge, "huge pages: %zu kB before, %zu kB after",
				huge, ground_huge_kb(&g));
		ground_drop(&g);
	}
}

struct sums {
	size_t used;
	size_t idle;
	uintptr_t last;
	bool disorder;
};

static void add_up(void *arg, const struct lift_sample *m)
{
	struct sums *t = arg;

	t->disorder |= m->range.start < t->last || lift_range_empty(m->range) ||
		       m->accessed_bytes > m->resident_bytes;
	t->last = m->range.end;
	t->used += m->accessed_bytes;
	t->idle += m->resident_bytes - m->accessed_bytes;
}

static void idle(void)
{
	struct ground g;
	struct sums t = {0};
	struct lift_range r;
	int rc;

	make(&g, GROUND_SMALL, 8 * MIB);
	madvise(g.base + 6 * MIB, MIB, MADV_DONTNEED);
	r = ground_range(&g);
	rc = ready(&g);
	ground_write(&g, 3);
	ground_write(&g, 4);
	ground_write(&g, 9);
	if (rc == 0)
		rc = s->collect(&r, 1, LIFT_COLLECT_IDLE, add_up, &t);
	if (s->traits & LIFT_SAMPLER_READS)
		check(rc == 0 && !t.disorder && t.used == 3 * PAGE && t.used + t.idle == 7 * MIB,
			"idle: %zu bytes used, %zu resident and not used", t.used, t.idle);
	else
		check(rc == 0 && !t.disorder && t.used == 3 * PAGE && t.idle == 0,
			"idle: %zu bytes written, nothing said of others", t.used);
	ground_drop(&g);
}

/* What is let go is not noted any more, which looks like use; the rest still is. */
static void released(void)
{
	struct ground g;
	struct sums t = {0};
	struct lift_range r;
	struct lift_range part;
	int rc;

	if (!s->release)
		return;
	make(&g, GROUND_SMALL, 8 * MIB);
	r = ground_range(&g);
	part = (struct lift_range){r.start + MIB, r.start + 3 * MIB};
	rc = ready(&g);
	if (rc == 0) {
		s->release(&part, 1);
		ground_write(&g, 3);
		rc = s->collect(&r, 1, 0, add_up, &t);
	}
	check(rc == 0 && !t.disorder && t.used == 2 * MIB + PAGE, "released: %zu bytes told",
		t.used);
	rc = rc == 0 ? ready(&g) : rc;
	t = (struct sums){0};
	if (rc == 0)
		rc = s->collect(&r, 1, 0, add_up, &t);
	check(rc == 0 && t.used == 0, "and armed again: %zu bytes told", t.used);
	ground_drop(&g);
}

/* Pages are discarded after arming; what is touched again is there, what is not is not. */
static void discarded(void)
{
	struct ground g;

	make(&g, GROUND_SMALL, 8 * MIB);
	if (ready(&g) == 0) {
		madvise(g.base + 2 * MIB, 4 * MIB, MADV_DONTNEED);
		ground_write(&g, 2 * MIB / PAGE + 7);
		ground_write(&g, 1);
		hear(&g);
	}
	check_score("discarded, then touched", &g);
	for (size_t i = 0; i < g.len; i += PAGE)
		g.base[i] = 1;
	round_trip("armed again", &g, 3);
	ground_drop(&g);
}

static int in_child(void (*fn)(void *arg), void *arg)
{
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid < 0)
		die("fork");
	if (pid == 0) {
		s->forked();
		fn(arg);
		_exit(0);
	}
	if (waitpid(pid, &status, 0) != pid)
		die("waitpid");
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void child_round(void *arg)
{
	struct ground *g = arg;
	struct score r;

	/* First everything, which must not show in the parent; then a round of its own. */
	for (size_t i = 0; i < g->len; i += PAGE)
		g->base[i] = 3;
	if (ready(g) != 0)
		_exit(2);
	ground_use(g, 77);
	if (hear(g) != 0)
		_exit(3);
	r = ground_score(g, seen());
	s->close();
	_exit(score_exact(&r) ? 0 : 4);
}

static void forks(void)
{
	struct ground g;
	int status;

	make(&g, GROUND_SMALL, 8 * MIB);
	if (ready(&g) == 0) {
		ground_use(&g, 4);
		status = in_child(child_round, &g);
		hear(&g);
		check(status == 0, "fork: the child's own round (%d)", status);
	}
	check_score("fork, parent", &g);
	round_trip("after fork, parent", &g, 5);
	ground_drop(&g);
}

/* The program closes whatever it has not opened. */
static void closed(void)
{
	struct ground g;
	struct stat before;
	struct stat after;
	int low;
	int high = 3;
	int rc;

	make(&g, GROUND_SMALL, 4 * MIB);
	rc = ready(&g);
	if (rc == 0) {
		ground_use(&g, 6);
		syscall(SYS_close_range, 3, ~0u, 0);
		rc = hear(&g);
	}
	if (by_uffd())
		check(rc == -ESTALE, "closed: told so (%s)", strerror(-rc));
	else
		check_score("closed", &g);
	round_trip("closed, opened anew", &g, 7);

	/* And then uses the numbers for files of its own. */
	if (ready(&g) == 0) {
		ground_use(&g, 8);
		syscall(SYS_close_range, 3, ~0u, 0);
		low = open("/dev/null", O_RDONLY | O_CLOEXEC);
		fstat(low, &before);
		while (high < 4200 && dup2(low, high + 1) >= 0)
			high++;
		(void)hear(&g);
		s->disarm(&(struct lift_range){0}, 0);
		s->close();
		rc = 0;
		for (int fd = low; fd <= high; fd++)
			rc |= fstat(fd, &after) != 0 || after.st_ino != before.st_ino;
		check(rc == 0, "descriptors that are the program's now, up to %d, are left alone",
			high);
		syscall(SYS_close_range, 3, ~0u, 0);
	}
	round_trip("after that", &g, 9);
	ground_drop(&g);
}

static int own_uffd(void)
{
	struct uffdio_api api = {.api = UFFD_API};
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | 1);

	if (fd >= 0 && ioctl(fd, UFFDIO_API, &api) != 0) {
		close(fd);
		fd = -1;
	}
	return fd;
}

static int own_register(int fd, const void *at, size_t len)
{
	struct uffdio_register reg = {
		.range = {.start = (uintptr_t)at, .len = len},
		.mode = UFFDIO_REGISTER_MODE_MISSING,
	};

	return ioctl(fd, UFFDIO_REGISTER, &reg) == 0 ? 0 : -errno;
}

/* The program has a userfaultfd itself. */
static void own(void)
{
	struct ground g;
	struct lift_range r;
	struct uffdio_range whole;
	int fd = own_uffd();
	int rc;

	if (fd < 0) {
		skip("beside the program's own userfaultfd", "there is none");
		return;
	}
	make(&g, GROUND_SMALL, 8 * MIB);
	r = ground_range(&g);
	if (own_register(fd, g.base + 2 * MIB, 2 * MIB) != 0)
		die("UFFDIO_REGISTER");
	if (ready(&g) == 0) {
		ground_use(&g, 10);
		hear(&g);
	}
	/* What is registered by somebody else is not sampled. */
	if (s->traits & LIFT_SAMPLER_PAGES && s != &lift_sampler_dirty)
		memset(g.used + 2 * MIB / g.unit, 0, 2 * MIB / g.unit);
	check_score("beside the program's own userfaultfd", &g);
	/* Nor is it given away. */
	s->disarm(&r, 1);
	rc = own_register(fd, g.base + 2 * MIB, 2 * MIB);
	check(rc == 0, "the program's registration is as it was (%d)", rc);
	whole = (struct uffdio_range){.start = r.start + 2 * MIB, .len = 2 * MIB};
	if (ioctl(fd, UFFDIO_UNREGISTER, &whole) != 0)
		die("UFFDIO_UNREGISTER");
	round_trip("the program's userfaultfd is gone", &g, 11);

	/* It comes when we are there already, and finds its way free after disarm(). */
	if (ready(&g) == 0)
		s->disarm(&r, 1);
	rc = own_register(fd, g.base, g.len);
	check(rc == 0, "disarmed: the program can register (%d)", rc);
	ready(&g);
	close(fd);
	ground_drop(&g);
}

/* More pieces of the program's than can be remembered: less is sampled, but nothing of theirs. */
static void own_many(void)
{
	enum { PIECES = 600, SPREAD = 2 * PIECES };
	struct ground g;
	size_t foreign = 0;
	size_t wrong = 0;
	size_t missed = 0;
	int fd = own_uffd();

	if (fd < 0 || !by_uffd()) {
		skip("many pieces of the program's own", "does not apply");
		if (fd >= 0)
			close(fd);
		return;
	}
	make(&g, GROUND_SMALL, 8 * MIB);
	for (size_t i = 0; i < PIECES; i++)
		if (own_register(fd, g.base + 2 * i * PAGE, PAGE) != 0)
			die("UFFDIO_REGISTER");
	if (ready(&g) == 0) {
		for (size_t i = 0; i < g.len / PAGE; i += 3)
			ground_write(&g, i);
		hear(&g);
	}
	for (size_t i = 0; i < g.len / PAGE; i++) {
		bool theirs = i < SPREAD && i % 2 == 0;

		foreign += theirs && g.told[i];
		wrong += !theirs && g.told[i] && !g.used[i];
		missed += i >= SPREAD && g.used[i] && !g.told[i];
	}
	check(foreign == 0 && wrong == 0 && missed == 0,
		"%d pieces of the program's own: %zu of them told, %zu wrong, %zu missed behind "
		"them",
		PIECES, foreign, wrong, missed);
	close(fd);
	round_trip("and without them", &g, 16);
	ground_drop(&g);
}

/* A child that nobody was told of holds the descriptor open; closing has to end it all the same. */
static void held(void)
{
	struct ground g;
	pid_t pid;
	int fd;
	int rc;

	make(&g, GROUND_SMALL, 4 * MIB);
	rc = ready(&g);
	pid = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
	if (pid == 0) {
		for (;;)
			pause();
	}
	s->close();
	fd = own_uffd();
	if (fd >= 0) {
		if (rc == 0)
			rc = own_register(fd, g.base, g.len);
		check(rc == 0, "closed while a child has the descriptors: it is over (%d)", rc);
		close(fd);
	} else {
		skip("closed while a child has the descriptors", "no userfaultfd");
	}
	round_trip("and anew", &g, 15);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	ground_drop(&g);
}

/* Pages change their node while they are watched. */
static void moved(void)
{
	struct ground g;
	size_t nr;
	void **pages;
	int *nodes;
	int *status;
	size_t there = 0;
	char online[64] = "";
	int fd = open("/sys/devices/system/node/has_memory", O_RDONLY | O_CLOEXEC);
	int to;

	if (fd >= 0) {
		(void)!read(fd, online, sizeof(online) - 1);
		close(fd);
	}
	to = strpbrk(online, "-,") ? atoi(strpbrk(online, "-,") + 1) : 0;
	if (to == 0) {
		skip("moved", "one node");
		return;
	}
	make(&g, GROUND_SMALL, 8 * MIB);
	nr = g.len / PAGE;
	pages = calloc(nr, sizeof(*pages));
	nodes = calloc(nr, sizeof(*nodes));
	status = calloc(nr, sizeof(*status));
	for (size_t i = 0; i < nr; i++) {
		pages[i] = g.base + i * PAGE;
		nodes[i] = to;
	}
	if (ready(&g) == 0) {
		ground_use(&g, 12);
		if (syscall(SYS_move_pages, 0, nr, pages, nodes, status, 2) < 0)
			die("move_pages");
		for (size_t i = 0; i < nr; i++)
			there += status[i] == to;
		hear(&g);
	}
	check(there == nr, "moved: %zu of %zu pages", there, nr);
	check_score_of("moved after use", &g, true);
	if (ready(&g) == 0) {
		memset(nodes, 0, nr * sizeof(*nodes));
		if (syscall(SYS_move_pages, 0, nr, pages, nodes, status, 2) < 0)
			die("move_pages");
		ground_use(&g, 13);
		hear(&g);
	}
	check_score_of("moved before use", &g, true);
	free(pages);
	free(nodes);
	free(status);
	ground_drop(&g);
}

struct churn {
	char *base;
	size_t len;
	_Atomic bool stop;
	unsigned long turns;
};

/* Maps, touches, protects, discards and unmaps within a window. */
static void *churn_thread(void *arg)
{
	struct churn *c = arg;
	unsigned seed = 1;

	while (!atomic_load_explicit(&c->stop, memory_order_relaxed)) {
		size_t from = (size_t)rand_r(&seed) % (c->len / PAGE) * PAGE;
		size_t len = ((size_t)rand_r(&seed) % 64 + 1) * PAGE;
		char *at = c->base + from;

		if (from + len > c->len)
			len = c->len - from;
		munmap(at, len);
		if (mmap(at, len, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) != at)
			continue;
		for (size_t i = 0; i < len; i += 2 * PAGE)
			at[i] = 1;
		if (c->turns % 3 == 0)
			mprotect(at, len / 2 + PAGE - (len / 2) % PAGE, PROT_READ);
		if (c->turns % 5 == 0)
			madvise(at, len, MADV_DONTNEED);
		if (c->turns % 7 == 0)
			munmap(at, len);
		c->turns++;
	}
	return NULL;
}

static void churned(void)
{
	struct churn c = {.len = 32 * MIB};
	struct ground g;
	struct lift_range r[2];
	struct timespec from;
	struct timespec now;
	pthread_t thread;
	unsigned rounds = 0;
	unsigned wrong = 0;
	unsigned disorder = 0;
	size_t extra = 0;
	int error = 0;

	make(&g, GROUND_SMALL, 4 * MIB);
	c.base = mmap(NULL, c.len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	r[0] = ground_range(&g);
	r[1] = (struct lift_range){(uintptr_t)c.base, (uintptr_t)c.base + c.len};
	if (r[1].start < r[0].start) {
		struct lift_range first = r[1];

		r[1] = r[0];
		r[0] = first;
	}
	if (pthread_create(&thread, NULL, churn_thread, &c) != 0)
		die("pthread_create");
	clock_gettime(CLOCK_MONOTONIC, &from);
	do {
		struct lift_range own_range = ground_range(&g);
		struct sums t = {0};
		struct score sc;
		int64_t bytes = s->watch(r, 2);
		int rc = bytes < 0 ? (int)bytes : s->arm(r, 2);

		ground_start(&g);
		ground_use(&g, rounds);
		if (rc == 0)
			rc = s->collect(r, 2, 0, add_up, &t);
		if (rc == 0)
			rc = s->collect(&own_range, 1, 0, ground_hear, &g);
		if (rc < 0)
			error = rc;
		sc = ground_score(&g, seen());
		wrong += !well_told(&sc, true);
		extra += sc.told - sc.right;
		disorder += t.disorder;
		rounds++;
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while (now.tv_sec - from.tv_sec < 3);
	atomic_store_explicit(&c.stop, true, memory_order_relaxed);
	pthread_join(thread, NULL);
	check(error == 0 && wrong == 0 && disorder == 0,
		"among %lu changes of mappings: %u rounds, %u wrong, %u out of order, %zu units "
		"too many (%s)",
		c.turns, rounds, wrong, disorder, extra, error ? strerror(-error) : "no error");
	s->disarm(r, 2);
	munmap(c.base, c.len);
	ground_drop(&g);
}

static void remapped(void)
{
	struct ground g;
	struct lift_range r;
	char *to;

	make(&g, GROUND_SMALL, 4 * MIB);
	r = ground_range(&g);
	if (ready(&g) != 0 || by_region()) {
		skip("moved by mremap", "by mapping");
		ground_drop(&g);
		return;
	}
	to = mremap(g.base, MIB, MIB, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, NULL);
	if (to == MAP_FAILED)
		die("mremap");
	memset(to, 5, MIB); /* elsewhere now */
	ground_write(&g, 300);
	check(s->collect(&r, 1, 0, ground_hear, &g) == 0, "moved by mremap");
	check_score("moved by mremap", &g);
	munmap(to, MIB);
	ground_drop(&g);

	/* Watching splits mappings, and mremap takes one at a time. */
	ground_make(&g, GROUND_SMALL, 4 * MIB);
	r = ground_range(&g);
	r.start += MIB;
	(void)s->watch(&r, 1);
	s->disarm(&r, 1);
	to = mremap(g.base, g.len, g.len, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, NULL);
	check(to != MAP_FAILED, "disarmed: mremap of all of a mapping (%zu, %s)",
		ground_mappings(&g), to == MAP_FAILED ? strerror(errno) : "done");
	if (to != MAP_FAILED)
		munmap(to, g.len);
	ground_drop(&g);
}

static void undumpable_round(void *arg)
{
	struct ground g;
	struct score r;
	int rc;

	(void)arg;
	prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	rc = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);
	if (rc >= 0)
		_exit(77);
	rc = s->open();
	if (rc < 0)
		_exit(rc == -EACCES ? 10 : 11);
	make(&g, GROUND_SMALL, 64 * MIB);
	if (ready(&g) != 0)
		_exit(12);
	ground_use(&g, 14);
	if (hear(&g) != 0)
		_exit(13);
	r = ground_score(&g, seen());
	_exit(score_exact(&r) ? 0 : 14);
}

/* The child of a process that changed its user: its files in /proc are root's. */
static void undumpable(void)
{
	int status = in_child(undumpable_round, NULL);

	if (status == 77)
		skip("undumpable", "root may open everything");
	else
		check(status == (s == &lift_sampler_refs ? 0 : 10), "undumpable: %s (%d)",
			status == 10  ? "EACCES"
			: status == 0 ? "works"
				      : "fails",
			status);
}

static unsigned count_fds(int *ret_lowest_high)
{
	unsigned nr = 0;

	*ret_lowest_high = -1;
	for (int fd = 3; fd < 70000; fd++) {
		int flags = fcntl(fd, F_GETFD);

		if (flags < 0)
			continue;
		nr++;
		if (*ret_lowest_high < 0 || !(flags & FD_CLOEXEC))
			*ret_lowest_high = flags & FD_CLOEXEC ? fd : 0;
	}
	return nr;
}

/* What is open meanwhile, what is left afterwards, and errno. */
static void tidy(void)
{
	struct ground g;
	int lowest;
	int unused;
	unsigned before;
	unsigned during;
	size_t mappings;

	s->close();
	syscall(SYS_close_range, 3, ~0u, 0);
	make(&g, GROUND_SMALL, 4 * MIB);
	mappings = ground_mappings(&g);
	before = count_fds(&unused);
	errno = 4711;
	if (ready(&g) == 0) {
		ground_write(&g, 1);
		hear(&g);
	}
	check(errno == 4711, "errno is as it was");
	during = count_fds(&lowest);
	check(during == (s == &lift_sampler_wp_refs ? 4 : 2) && lowest >= 64,
		"%u descriptors, close-on-exec, from %d on", during, lowest);
	s->close();
	check(count_fds(&unused) == before, "closed: no descriptor is left");
	check(ground_mappings(&g) == mappings, "closed: as many mappings as before");
	ground_drop(&g);
}

static double us_since(const struct timespec *from)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)(now.tv_sec - from->tv_sec) * 1e6 +
	       (double)(now.tv_nsec - from->tv_nsec) / 1e3;
}

static void ignore(void *arg, const struct lift_sample *m)
{
	(void)arg;
	(void)m;
}

static double touch(struct ground *g, bool write)
{
	struct timespec from;
	size_t nr = g->len / PAGE / 16;

	clock_gettime(CLOCK_MONOTONIC, &from);
	for (size_t i = 0; i < nr; i++) {
		if (write)
			((volatile char *)g->base)[i * 16 * PAGE] = 1;
		else
			(void)((volatile char *)g->base)[i * 16 * PAGE];
	}
	return us_since(&from) / (double)nr;
}

struct costs {
	double watch; /* us */
	double arm;
	double rearm; /* when nothing was used */
	double collect;
	double collect_used; /* one page in 16 was */
	double plain;        /* per touch, not armed */
	double armed;        /* per touch, the first after arming */
	double run;          /* to arm one page that was used, by itself */
};

struct runs {
	struct lift_range *ranges;
	size_t nr;
};

static void add_run(void *arg, const struct lift_sample *m)
{
	struct runs *r = arg;

	if (m->accessed_bytes && m->accessed_bytes == m->resident_bytes)
		r->ranges[r->nr++] = m->range;
}

static double least(double a, double b)
{
	return a && a < b ? a : b;
}

static void measure(struct ground *g, struct costs *c)
{
	bool write = !(s->traits & LIFT_SAMPLER_READS);
	struct lift_range r = ground_range(g);
	struct timespec t;

	c->plain = least(c->plain, touch(g, write));
	clock_gettime(CLOCK_MONOTONIC, &t);
	s->watch(&r, 1);
	c->watch = least(c->watch, us_since(&t));
	clock_gettime(CLOCK_MONOTONIC, &t);
	s->arm(&r, 1);
	c->arm = least(c->arm, us_since(&t));
	clock_gettime(CLOCK_MONOTONIC, &t);
	s->arm(&r, 1);
	c->rearm = least(c->rearm, us_since(&t));
	clock_gettime(CLOCK_MONOTONIC, &t);
	s->collect(&r, 1, 0, ignore, NULL);
	c->collect = least(c->collect, us_since(&t));
	c->armed = least(c->armed, touch(g, write));
	clock_gettime(CLOCK_MONOTONIC, &t);
	s->collect(&r, 1, LIFT_COLLECT_IDLE, ignore, NULL);
	c->collect_used = least(c->collect_used, us_since(&t));
	if (!by_region()) {
		struct runs runs = {.ranges = calloc(g->len / PAGE, sizeof(*runs.ranges))};

		s->collect(&r, 1, 0, add_run, &runs);
		clock_gettime(CLOCK_MONOTONIC, &t);
		s->arm(runs.ranges, runs.nr);
		if (runs.nr)
			c->run = least(c->run, us_since(&t) / (double)runs.nr);
		free(runs.ranges);
	}
	s->disarm(&r, 1);
}

/* The least of three. */
static void cost(void)
{
	double gib = (double)cost_mib / 1024;

	for (int kind = GROUND_SMALL; kind <= GROUND_HUGE; kind++) {
		struct costs c = {0};
		struct ground g;

		make(&g, kind, cost_mib * MIB);
		if (kind == GROUND_HUGE && ground_huge_kb(&g) == 0) {
			ground_drop(&g);
			continue;
		}
		for (unsigned i = 0; i < 3; i++) {
			for (size_t at = 0; at < g.len; at += PAGE)
				((volatile char *)g.base)[at] = 1;
			measure(&g, &c);
		}
		printf("# %s cost, %s, us per GiB: watch %.0f, arm %.0f, again %.0f, collect %.0f "
		       "(one page in 16 used: %.0f); a touch %.3f us, the first %.3f us; "
		       "to arm a single run %.3f us\n",
			s->name, g.name, c.watch / gib, c.arm / gib, c.rearm / gib, c.collect / gib,
			c.collect_used / gib, c.plain, c.armed, c.run);
		ground_drop(&g);
	}
}

static void counts(void)
{
	struct lift_kernel_counts c;
	int rc = lift_sampler_kernel_counts(&c);

	check(rc == 0,
		"counts: hint faults %llu, promoted %llu, demoted %llu; own migrated %llu, faults "
		"%llu",
		(unsigned long long)c.numa_hint_faults, (unsigned long long)c.pgpromote_success,
		(unsigned long long)c.pgdemote, (unsigned long long)c.self_pages_migrated,
		(unsigned long long)c.self_faults);
}

static void all_cases(void)
{
	if (s->traits & LIFT_SAMPLER_COUNTS) {
		counts();
		return;
	}
	kinds();
	idle();
	released();
	discarded();
	forks();
	own();
	own_many();
	held();
	moved();
	remapped();
	churned();
	undumpable();
	closed();
	tidy();
	cost();
	s->close();
}

static bool listed(const char *list, const char *name)
{
	size_t len = strlen(name);

	for (const char *p = list; p && *p; p += *p == ',') {
		size_t n = strcspn(p, ",");

		if (n == len && strncmp(p, name, n) == 0)
			return true;
		p += n;
	}
	return false;
}

int main(int argc, char **argv)
{
	static const char *const names[] = {"rwp", "wp", "dirty", "refs", "wp+refs", "kernel"};
	const char *need = "";
	int first = 1;

	setvbuf(stdout, NULL, _IOLBF, 0);
	while (first + 1 < argc && argv[first][0] == '-') {
		if (strcmp(argv[first], "--need") == 0)
			need = argv[first + 1];
		else if (strcmp(argv[first], "--mib") == 0)
			cost_mib = strtoul(argv[first + 1], NULL, 10);
		first += 2;
	}
	for (size_t i = 0; i < SIZE(names); i++) {
		bool wanted = first == argc;
		int rc;

		for (int k = first; k < argc; k++)
			wanted |= strcmp(argv[k], names[i]) == 0;
		if (!wanted)
			continue;
		s = lift_sampler_find(names[i]);
		tap_about = s->name;
		rc = s->probe();
		if (rc == 0)
			all_cases();
		else if (listed(need, s->name))
			check(false, "is needed here: %s", strerror(-rc));
		else
			skip("probe", strerror(-rc));
	}
	return tap_end();
}
