// SPDX-License-Identifier: MIT
#include "shim/home.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/auxv.h>
#include <time.h>

#include "policy/procparse.h"
#include "shim/os/sys.h"
#include "shim/os/tasks.h"
#include "shim/os/topo_sysfs.h"

#define NODE_DIR "/sys/devices/system/node/"
#define NS_PER_S UINT64_C(1000000000)

/* Slots in which a thread may be found. */
#define PROBES 8

/* The worker's only. */
static char dents[4096];
static char text[8192];

static uint64_t now_ns(void)
{
	struct timespec ts = {0, 0};

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}

/* --- CPUs --- */

/* At the first update, and in any later one that meets a CPU that is not known. */
static void read_cpus(struct lift_home *h)
{
	uint64_t bits[LIFT_HOME_CPUS / 64];
	struct lift_nodeset online;
	char path[128];
	long n = lift_sys_read_file(NODE_DIR "online", text, sizeof(text));

	if (n < 0 || lift_parse_nodelist(text, (size_t)n, &online) < 0)
		return;
	lift_nodeset_foreach (node, &online) {
		n = lift_sys_read_file(
			lift_os_path(path, NODE_DIR "node", node, "/cpulist"), text, sizeof(text));
		memset(bits, 0, sizeof(bits));
		if (n < 0 || lift_parse_cpulist(text, (size_t)n, bits, LIFT_HOME_CPUS) < 0)
			continue;
		for (unsigned i = 0; i < LIFT_HOME_CPUS; i++)
			if (bits[i / 64] >> (i % 64) & 1)
				h->node_of[i] = (int16_t)(node + 1);
	}
}

static int node_of(struct lift_home *h, unsigned cpu, bool *may_read)
{
	if (cpu >= LIFT_HOME_CPUS)
		return -1;
	if (h->node_of[cpu] == 0 && *may_read) {
		read_cpus(h);
		*may_read = false;
	}
	return h->node_of[cpu] - 1;
}

/* --- threads --- */

/* Its slot, or else the one that it gets: an empty one, or that of the thread seen longest ago. */
static struct lift_home_thread *slot_of(struct lift_home *h, int tid)
{
	struct lift_home_thread *best = NULL;

	for (unsigned i = 0; i < PROBES; i++) {
		/* Ids of threads mostly follow one another: they need no mixing. */
		struct lift_home_thread *t = &h->thread[((unsigned)tid + i) % LIFT_HOME_THREADS];

		if (t->tid == tid)
			return t;
		if (!best ||
			(best->tid && (!t->tid || h->updates - t->seen > h->updates - best->seen)))
			best = t;
	}
	return best;
}

/* Ticks that the thread has used since it was last seen. */
static uint64_t used(struct lift_home *h, int tid, uint64_t ticks, uint64_t most)
{
	struct lift_home_thread *t = slot_of(h, tid);
	/* 32 bits of ticks go round in more than a year. */
	uint64_t delta = (uint32_t)ticks - t->ticks;

	/* One that is new may be old: no more than it can have used between two looks. */
	if (t->tid != tid || delta > UINT32_MAX / 2)
		delta = ticks < most ? ticks : most;
	if (t->tid != tid)
		*t = (struct lift_home_thread){.tid = tid};
	t->ticks = (uint32_t)ticks;
	t->seen = h->updates;
	return delta;
}

/* False: it may have ended by now. */
static bool read_stat(const struct lift_tasks *t, struct lift_task_stat *ret)
{
	long n = lift_tasks_read(t, "stat", text, sizeof(text));

	return n > 0 && lift_parse_task_stat(text, (size_t)n, ret) == 0;
}

int lift_home_update(struct lift_home *h)
{
	uint64_t tick_ns = NS_PER_S / (getauxval(AT_CLKTCK) ? getauxval(AT_CLKTCK) : 100);
	uint64_t now = now_ns();
	uint64_t most;
	int self = lift_sys_gettid();
	bool may_read = true;
	struct lift_tasks tasks;
	unsigned looked = 0;
	int rc = lift_tasks_open(&tasks, dents, sizeof(dents));

	if (rc < 0)
		return rc;
	rc = lift_tasks_seek(&tasks, h->pos);
	if (h->updates)
		lift_cpushare_age(&h->share, now - h->updated_ns);
	if (h->pos == 0) {
		h->round_ns = h->updates ? now - h->began_ns : 0;
		h->began_ns = now;
	}
	h->updates++;
	h->updated_ns = now;
	/* From when it was passed by to when it is met at the latest, and a second at first. */
	most = (h->round_ns ? h->round_ns + (now - h->began_ns) : NS_PER_S) / tick_ns + 1;
	while (rc == 0 && looked < LIFT_HOME_LOOK && (rc = lift_tasks_next(&tasks)) > 0) {
		struct lift_task_stat st;
		uint64_t ticks;

		looked++;
		rc = 0;
		if (tasks.tid == self || !read_stat(&tasks, &st))
			continue;
		ticks = used(h, tasks.tid, st.cpu_ticks, most);
		if (ticks > 0)
			lift_cpushare_add(
				&h->share, node_of(h, st.cpu, &may_read), ticks * tick_ns);
	}
	h->pos = looked == LIFT_HOME_LOOK ? tasks.pos : 0;
	lift_tasks_close(&tasks);
	return rc < 0 ? rc : 0;
}

int lift_home_faults(struct lift_home *h, lift_home_faults_fn *fn, void *arg)
{
	int self = lift_sys_gettid();
	bool may_read = true;
	struct lift_tasks tasks;
	unsigned looked = 0;
	int rc = lift_tasks_open(&tasks, dents, sizeof(dents));

	if (rc < 0)
		return rc;
	while ((rc = lift_tasks_next(&tasks)) > 0) {
		struct lift_home_thread *t;
		struct lift_task_stat st;
		uint32_t more;

		if (looked++ == LIFT_HOME_LOOK) {
			rc = -E2BIG;
			break;
		}
		if (tasks.tid == self || !read_stat(&tasks, &st))
			continue;
		t = slot_of(h, tasks.tid);
		if (t->tid != tasks.tid)
			*t = (struct lift_home_thread){.tid = tasks.tid,
				.ticks = (uint32_t)st.cpu_ticks,
				.seen = h->updates};
		more = (uint32_t)st.faults - t->faults;
		/* More than that is another thread of the same number. */
		if (fn && t->counted && more && more < UINT32_MAX / 2)
			fn(arg, node_of(h, st.cpu, &may_read), more);
		t->faults = (uint32_t)st.faults;
		t->counted = true;
	}
	lift_tasks_close(&tasks);
	return rc < 0 ? rc : 0;
}

int lift_home_node(const struct lift_home *h)
{
	return lift_cpushare_home(&h->share);
}

uint32_t lift_home_share(const struct lift_home *h, int node)
{
	return lift_cpushare_of(&h->share, node);
}
