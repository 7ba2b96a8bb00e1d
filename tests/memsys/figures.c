// SPDX-License-Identifier: MIT
#include "tests/memsys/figures.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "policy/procparse.h"
#include "shim/home.h"
#include "shim/measure.h"
#include "shim/memsys_linux.h"
#include "shim/os/sys.h"
#include "shim/os/tasks.h"
#include "tests/memsys/area.h"
#include "tests/sampler/tap.h"

#define SIZE(a) (sizeof(a) / sizeof((a)[0]))

/* --- costs --- */

static bool between(uint32_t n, uint32_t min, uint32_t max)
{
	return n >= min && n <= max;
}

static size_t lines_of(const char *path)
{
	FILE *f = fopen(path, "re");
	size_t nr = 0;
	int c;

	if (!f)
		die(path);
	while ((c = getc(f)) != EOF)
		nr += c == '\n';
	fclose(f);
	return nr;
}

static void measure(const struct lift_sampler *s, int slow, int fast)
{
	const char *name = s ? s->name : "without a sampler";
	bool apart = s && s->traits & LIFT_SAMPLER_PAGES && !(s->traits & LIFT_SAMPLER_WHOLE);
	struct lift_costs c = {0};
	size_t mappings = lines_of("/proc/self/maps");
	uint64_t cpu = lift_sys_thread_cpu_ns();
	int rc = lift_measure_costs(s, lift_memsys_linux(), slow, fast, &c);
	int expected = slow < 0 || slow == fast ? -ENODEV : apart ? 0 : -EOPNOTSUPP;

	cpu = lift_sys_thread_cpu_ns() - cpu;
	printf("# %s: arm %u, release %u, scan %u, fault %u, promote %u, demote %u, gap %u ns; "
	       "measured in %llu us of CPU time\n",
		name, c.arm_ns, c.release_ns, c.scan_ns, c.fault_ns, c.promote_ns, c.demote_ns,
		c.gap_ns, (unsigned long long)cpu / 1000);
	check(rc == expected, "costs, %s: rc %d", name, rc);
	check(between(c.arm_ns, 1, 20000) && between(c.release_ns, 1, 20000) &&
			between(c.scan_ns, 1, 10000) && c.fault_ns <= 100000 &&
			between(c.promote_ns, 300, 200000) && between(c.demote_ns, 300, 200000) &&
			between(c.gap_ns, 20, 2000),
		"costs, %s: within bounds", name);
	check(!apart || (c.fault_ns >= 100 && c.arm_ns != 50), "costs, %s: sampling", name);
	if (slow >= 0 && slow != fast)
		check(c.promote_ns != 4000 && c.demote_ns != 4000, "costs, %s: moves", name);
	if (s)
		s->close();
	check(lines_of("/proc/self/maps") <= mappings, "costs, %s: nothing is left", name);
}

void test_costs(int slow, int fast)
{
	static const struct lift_sampler *const samplers[] = {
		&lift_sampler_rwp,
		&lift_sampler_wp,
		&lift_sampler_dirty,
		&lift_sampler_refs,
		&lift_sampler_kernel,
	};
	struct lift_costs c;
	int rc;

	(void)lines_of("/proc/self/maps"); /* stdio's buffer is there from now on */
	measure(NULL, slow, fast);
	for (size_t i = 0; i < SIZE(samplers); i++) {
		if (samplers[i]->probe() == 0)
			measure(samplers[i], slow, fast);
		else
			printf("# %s is not possible here\n", samplers[i]->name);
	}
	rc = lift_measure_costs(NULL, lift_memsys_linux(), 0, 1000, &c);
	check(rc == -ENODEV && c.promote_ns == 4000 && c.gap_ns == 100,
		"costs, no such node: rc %d, %u, %u", rc, c.promote_ns, c.gap_ns);
	if (slow < 0)
		return;
	/* The machine is described with 80 and 300 ns; or its distance is 31. */
	(void)lift_measure_costs(NULL, lift_memsys_linux(), 2, 0, &c);
	check(between(c.gap_ns, 180, 230), "costs: a gap of %u ns", c.gap_ns);
	(void)lift_measure_costs(NULL, lift_memsys_linux(), 1, 0, &c);
	check(between(c.gap_ns, 90, 110), "costs: a gap of %u ns between equals", c.gap_ns);
}

/* --- home --- */

static struct lift_home home;
static uint64_t spin_ns;

/* A CPU of the node, or -1. */
static int cpu_of(int node)
{
	char path[64];
	char buf[4096] = "";
	uint64_t bits[64] = {0};
	FILE *f;

	snprintf(path, sizeof(path), "/sys/devices/system/node/node%d/cpulist", node);
	f = fopen(path, "re");
	if (!f)
		return -1;
	if (!fgets(buf, sizeof(buf), f))
		buf[0] = '\0';
	fclose(f);
	if (lift_parse_cpulist(buf, strlen(buf), bits, 4096) != 0)
		return -1;
	for (int i = 0; i < 4096; i++)
		if (bits[i / 64] >> (i % 64) & 1)
			return i;
	return -1;
}

static void *spin(void *arg)
{
	int cpu = *(const int *)arg;
	uint64_t from;

	if (cpu >= 0) {
		cpu_set_t set;

		CPU_ZERO(&set);
		CPU_SET(cpu, &set);
		if (sched_setaffinity(0, sizeof(set), &set) != 0)
			die("sched_setaffinity");
	}
	from = lift_sys_thread_cpu_ns();
	while (lift_sys_thread_cpu_ns() - from < spin_ns)
		;
	return NULL;
}

static _Atomic unsigned spun;
static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;

static void *wait_only(void *arg)
{
	(void)arg;
	pthread_mutex_lock(&gate);
	pthread_mutex_unlock(&gate);
	return NULL;
}

/* A thread has to be there still when it is looked for. */
static void *spin_and_wait(void *arg)
{
	spin(arg);
	atomic_fetch_add_explicit(&spun, 1, memory_order_relaxed);
	return wait_only(NULL);
}

/* Threads that use as much CPU time each, others that use none, and then a look. */
static void busy_on(const int *cpus, unsigned nr_cpus, unsigned nr_waiting)
{
	unsigned nr = nr_cpus + nr_waiting;
	pthread_t *threads = calloc(nr, sizeof(*threads));
	uint64_t began;
	unsigned looks = 0;
	int rc;

	if (!threads)
		die("calloc");
	/* Starting hundreds of threads takes a while, too. */
	spin_ns = nr_waiting ? 1200000000 : 300000000;
	atomic_store_explicit(&spun, 0, memory_order_relaxed);
	pthread_mutex_lock(&gate);
	for (unsigned i = 0; i < nr; i++) {
		/* Those that are of interest come last in the list. */
		void *arg = i < nr_waiting ? NULL : (void *)(uintptr_t)&cpus[i - nr_waiting];

		if (pthread_create(&threads[i], NULL, arg ? spin_and_wait : wait_only, arg) != 0)
			die("pthread_create");
	}
	while (atomic_load_explicit(&spun, memory_order_relaxed) < nr_cpus)
		usleep(20000);
	began = lift_sys_thread_cpu_ns();
	/* Each sees 256 threads, and one may come to the end and see nothing. */
	do {
		rc = lift_home_update(&home);
		looks++;
	} while (rc == 0 && looks < 2 + nr / LIFT_HOME_LOOK);
	printf("# home: %llu us for a look with %u threads\n",
		(unsigned long long)(lift_sys_thread_cpu_ns() - began) / 1000 / looks, nr + 1);
	check(rc == 0, "home: %u looks, rc %d", looks, rc);
	pthread_mutex_unlock(&gate);
	for (unsigned i = 0; i < nr; i++)
		pthread_join(threads[i], NULL);
	free(threads);
}

/* Of the thread on cpus[i], (i + 1) times as many. */
enum { FAULTS = 200 };
static pthread_barrier_t turn;

static void *fault(void *arg)
{
	const int *cpu = arg;
	size_t bytes = (size_t)(cpu[1] + 1) * FAULTS * 4096;
	cpu_set_t set;
	char *p;

	CPU_ZERO(&set);
	CPU_SET(cpu[0] < 0 ? 0 : cpu[0], &set);
	if (cpu[0] >= 0 && sched_setaffinity(0, sizeof(set), &set) != 0)
		die("sched_setaffinity");
	p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED || madvise(p, bytes, MADV_NOHUGEPAGE))
		die("mmap");
	for (int phase = 0; phase < 4; phase++) {
		pthread_barrier_wait(&turn);
		for (size_t i = 0; phase == 1 && i < bytes; i += 4096)
			p[i] = 1;
	}
	munmap(p, bytes);
	return NULL;
}

static void count_faults(void *arg, int node, uint64_t faults)
{
	uint64_t *on = arg;

	on[node == 0 || node == 1 ? node : 2] += faults;
}

static void test_home_faults(const int *cpus, unsigned nr)
{
	int arg[2][2] = {{cpus[0], 0}, {cpus[nr - 1], 1}};
	uint64_t on[3] = {0};
	pthread_t threads[2];
	unsigned one = nr == 2 ? 1 : 0;
	int rc;

	memset(&home, 0, sizeof(home));
	pthread_barrier_init(&turn, NULL, 3);
	for (unsigned i = 0; i < 2; i++)
		if (pthread_create(&threads[i], NULL, fault, arg[i]) != 0)
			die("pthread_create");
	pthread_barrier_wait(&turn);
	rc = lift_home_faults(&home, count_faults, on);
	check(rc == 0 && on[0] + on[1] + on[2] == 0, "faults: none of threads that are new, rc %d",
		rc);
	for (unsigned phase = 1; phase < 3; phase++)
		pthread_barrier_wait(&turn);
	errno = 4711;
	rc = lift_home_faults(&home, count_faults, on);
	check(rc == 0 && errno == 4711 && on[2] == 0 &&
			(nr == 2 ? on[0] >= FAULTS && on[0] < 2 * FAULTS : true) &&
			on[one] >= (nr == 2 ? 2 : 3) * FAULTS && on[one] < 4 * FAULTS,
		"faults: %u and %u, rc %d", (unsigned)on[0], (unsigned)on[1], rc);
	pthread_barrier_wait(&turn);
	for (unsigned i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
}

void test_home(bool two)
{
	int cpus[2] = {cpu_of(0), cpu_of(1)};
	unsigned turns = 0;
	int last = two ? 1 : 0;
	uint32_t share;

	errno = 4711;
	check(lift_home_update(&home) == 0 && errno == 4711 && lift_home_node(&home) == -1,
		"home: nothing is known");
	busy_on(cpus, 1, 0);
	share = lift_home_share(&home, 0);
	check(lift_home_node(&home) == 0 && share > 4000,
		"home, a thread on node 0: %d, %u of 4096", lift_home_node(&home), share);
	if (two) {
		memset(&home, 0, sizeof(home));
		busy_on(cpus, 2, 0);
		share = lift_home_share(&home, 1);
		check(lift_home_node(&home) == -1 && share > 1500 && share < 2600 &&
				share + lift_home_share(&home, 0) >= 4000,
			"home, a thread on each: %d, %u of 4096", lift_home_node(&home), share);
		do
			busy_on(cpus + 1, 1, 0);
		while (lift_home_node(&home) != 1 && ++turns < 30);
		check(turns < 30 && lift_home_share(&home, 1) >= 2730, "home, moved to node 1");
	}
	memset(&home, 0, sizeof(home));
	busy_on(cpus + last, 1, 600);
	share = lift_home_share(&home, last);
	check(lift_home_node(&home) == last, "home, one of many threads: %d, %u of 4096",
		lift_home_node(&home), share);
	test_home_faults(cpus, two ? 2 : 1);
}
