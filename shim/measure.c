// SPDX-License-Identifier: MIT
#include "shim/measure.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>

#include "policy/procparse.h"
#include "policy/topology.h"
#include "shim/os/rawsys.h"
#include "shim/os/sys.h"
#include "shim/os/topo_sysfs.h"

#define PAGE ((uintptr_t)4096)
#define PAGES 128
#define ROUNDS 15
#define ROUNDS_LEAST 3 /* the first is in nobody's cache */
#define MOST_CPU_NS UINT64_C(20000000)
#define NODE_DIR "/sys/devices/system/node/"

enum figure { ARM, RELEASE, SCAN, FAULT, PROMOTE, DEMOTE, FIGURES };

/* Per page in ns. Outside of the bounds something else was measured: an interruption, a debugger.
 */
static const struct {
	uint32_t min;
	uint32_t max;
	uint32_t usual;
	uint32_t of_sums; /* for samplers that see no pages: nothing is taken by the program */
} bounds[FIGURES] = {
	[ARM] = {2, 20000, 50, 120},
	[RELEASE] = {2, 20000, 50, 1},
	[SCAN] = {1, 10000, 20, 150},
	[FAULT] = {100, 100000, 1000, 0},
	[PROMOTE] = {300, 200000, 4000, 4000},
	[DEMOTE] = {300, 200000, 4000, 4000},
};

struct series {
	unsigned nr;
	uint64_t ns[ROUNDS];
};

struct bench {
	const struct lift_sampler *s;
	const struct lift_memsys *m;
	struct lift_range range;
	struct series of[FIGURES];
};

/* The worker's only. */
static uintptr_t page[PAGES];
static int status[PAGES];
static char text[8192];
static struct lift_topology topo;

/* --- figures --- */

static void note(struct bench *b, enum figure f, uint64_t ns, uint64_t pages)
{
	struct series *s = &b->of[f];
	uint64_t each = ns / pages;
	unsigned i;

	/* Kept in order. */
	for (i = s->nr++; i > 0 && s->ns[i - 1] > each; i--)
		s->ns[i] = s->ns[i - 1];
	s->ns[i] = each;
}

static uint32_t figure(const struct bench *b, enum figure f, bool sums)
{
	const struct series *s = &b->of[f];
	uint64_t ns;

	if (s->nr == 0)
		return sums ? bounds[f].of_sums : bounds[f].usual;
	/* What disturbs only ever adds. */
	ns = s->ns[s->nr / 4];
	return ns < bounds[f].min   ? bounds[f].min
	       : ns > bounds[f].max ? bounds[f].max
				    : (uint32_t)ns;
}

/* --- what is measured --- */

static void touch_all(struct lift_range r)
{
	/* By writing: some samplers see nothing else. */
	for (uintptr_t a = r.start; a < r.end; a += PAGE)
		*(volatile char *)a = 1;
}

static void count(void *arg, const struct lift_sample *s)
{
	*(uint64_t *)arg += s->accessed_bytes / PAGE;
}

static int sample_round(struct bench *b)
{
	unsigned how = b->s->traits & LIFT_SAMPLER_READS ? LIFT_COLLECT_IDLE : 0;
	uint64_t seen = 0;
	uint64_t t[7];
	int64_t watched = b->s->watch(&b->range, 1);
	int rc;

	if (watched < 0)
		return (int)watched;
	touch_all(b->range);
	t[0] = lift_sys_thread_cpu_ns();
	rc = b->s->arm(&b->range, 1);
	if (rc < 0)
		return rc;
	t[1] = lift_sys_thread_cpu_ns();
	touch_all(b->range);
	t[2] = lift_sys_thread_cpu_ns();
	touch_all(b->range); /* what touching takes anyway */
	t[3] = lift_sys_thread_cpu_ns();
	rc = b->s->collect(&b->range, 1, how, count, &seen);
	if (rc < 0)
		return rc;
	t[4] = lift_sys_thread_cpu_ns();
	if (seen < PAGES / 2)
		return -EIO; /* then what was measured is not what is meant */
	rc = b->s->arm(&b->range, 1);
	if (rc < 0)
		return rc;
	t[5] = lift_sys_thread_cpu_ns();
	if (b->s->release)
		b->s->release(&b->range, 1);
	t[6] = lift_sys_thread_cpu_ns();
	note(b, ARM, t[1] - t[0], PAGES);
	note(b, FAULT, t[2] - t[1] > t[3] - t[2] ? t[2] - t[1] - (t[3] - t[2]) : 0, PAGES);
	note(b, SCAN, t[4] - t[3], PAGES);
	note(b, RELEASE, t[6] - t[5], PAGES);
	return 0;
}

/* Moves all pages. How many are there afterwards, or -errno. */
static int move_all(struct bench *b, int node)
{
	int there = 0;
	int error = 0;
	int rc = b->m->move(b->m->ctx, page, PAGES, node, status);

	if (rc < 0)
		return rc;
	for (unsigned i = 0; i < PAGES; i++) {
		there += status[i] == node;
		if (status[i] < 0)
			error = status[i];
	}
	return there < PAGES / 2 ? (error ? error : -EIO) : there;
}

static int move_round(struct bench *b, int slow, int fast)
{
	uint64_t t[3];
	int up;
	int down;

	t[0] = lift_sys_thread_cpu_ns();
	up = move_all(b, fast);
	t[1] = lift_sys_thread_cpu_ns();
	if (up < 0)
		return up;
	down = move_all(b, slow);
	t[2] = lift_sys_thread_cpu_ns();
	if (down < 0)
		return down;
	note(b, PROMOTE, t[1] - t[0], (uint64_t)up);
	note(b, DEMOTE, t[2] - t[1], (uint64_t)down);
	return 0;
}

/* Nothing is measured that would push the node to its limits. */
static int room_on(const struct lift_memsys *m, int node)
{
	uint64_t has;
	uint64_t total;
	int rc = m->free_memory(m->ctx, node, &has, &total);

	if (rc < 0)
		return rc;
	return has < total / 32 + 4 * PAGES * PAGE ? -ENOMEM : 0;
}

static int moves_possible(struct bench *b, int slow, int fast)
{
	int rc = slow == fast ? -ENODEV : room_on(b->m, slow);

	if (rc == 0)
		rc = room_on(b->m, fast);
	if (rc == 0)
		rc = move_all(b, slow);
	return rc < 0 ? rc : 0;
}

/* --- the gap --- */

static uint32_t latency_of(int node)
{
	static const char *const names[] = {
		/* Of the nearest initiator of any kind; of the nearest CPUs. */
		"/access0/initiators/read_latency",
		"/access1/initiators/read_latency",
	};
	char path[128];
	uint64_t ns;

	for (unsigned i = 0; i < 2; i++) {
		long n = lift_sys_read_file(
			lift_os_path(path, NODE_DIR "node", node, names[i]), text, sizeof(text));

		if (n > 0 && lift_parse_u64(text, (size_t)n, &ns) == 0 && ns > 0)
			return ns > UINT32_MAX ? UINT32_MAX : (uint32_t)ns;
	}
	return 0;
}

/* [from][to]; 0: not known. */
static uint8_t distance_of(int from, int to)
{
	uint8_t row[LIFT_MAX_NODES];
	struct lift_nodeset online;
	char path[128];
	unsigned at = 0;
	unsigned nr;
	long n = lift_sys_read_file(NODE_DIR "online", text, sizeof(text));

	if (n < 0 || lift_parse_nodelist(text, (size_t)n, &online) < 0 ||
		!lift_nodeset_test(&online, to))
		return 0;
	/* A column for each node that is online. */
	for (int node = lift_nodeset_first(&online); node != to;
		node = lift_nodeset_next(&online, node))
		at++;
	n = lift_sys_read_file(
		lift_os_path(path, NODE_DIR "node", from, "/distance"), text, sizeof(text));
	if (n < 0 || lift_parse_distances(text, (size_t)n, row, LIFT_MAX_NODES, &nr) < 0)
		return 0;
	return at < nr ? row[at] : 0;
}

/* Not lift_os_topology(): its buffer belongs to the threads of the program. */
static uint32_t gap_between(int slow, int fast)
{
	int i;
	int k;

	if (slow < 0 || fast < 0)
		return lift_topology_gap_ns(&topo, -1, -1);
	lift_topology_init(&topo);
	i = lift_topology_add(&topo, slow);
	k = lift_topology_add(&topo, fast);
	if (i >= 0 && k >= 0) {
		topo.node[i].read_latency_ns = latency_of(slow);
		topo.node[k].read_latency_ns = latency_of(fast);
		topo.distance[k][i] = distance_of(fast, slow);
	}
	return lift_topology_gap_ns(&topo, slow, fast);
}

/* --- all of it --- */

int lift_measure_costs(const struct lift_sampler *s, const struct lift_memsys *m, int slow_node,
	int fast_node, struct lift_costs *ret)
{
	bool pages = s && s->traits & LIFT_SAMPLER_PAGES;
	/* What is done to all of the process is not measured on a few pages of it. */
	bool apart = pages && !(s->traits & LIFT_SAMPLER_WHOLE);
	struct bench b = {.s = s, .m = m};
	uint64_t began = lift_sys_thread_cpu_ns();
	int sample_rc = apart ? 0 : -EOPNOTSUPP;
	int move_rc;
	long map = lift_sys_mmap_apart(PAGES * PAGE, 0);

	if (lift_syserr(map)) {
		move_rc = (int)map;
	} else {
		b.range = (struct lift_range){(uintptr_t)map, (uintptr_t)map + PAGES * PAGE};
		(void)lift_sys_madvise((void *)map, PAGES * PAGE, MADV_NOHUGEPAGE);
		touch_all(b.range);
		for (unsigned i = 0; i < PAGES; i++)
			page[i] = b.range.start + i * PAGE;
		move_rc = moves_possible(&b, slow_node, fast_node);
		for (unsigned i = 0; i < ROUNDS; i++) {
			if (i >= ROUNDS_LEAST && lift_sys_thread_cpu_ns() - began > MOST_CPU_NS)
				break;
			if (sample_rc == 0)
				sample_rc = sample_round(&b);
			if (move_rc == 0)
				move_rc = move_round(&b, slow_node, fast_node);
		}
		if (apart)
			s->disarm(&b.range, 1);
		(void)lift_sys_munmap((void *)map, PAGES * PAGE);
	}
	*ret = (struct lift_costs){
		.arm_ns = figure(&b, ARM, !pages),
		.release_ns = figure(&b, RELEASE, !pages),
		.scan_ns = figure(&b, SCAN, !pages),
		.fault_ns = figure(&b, FAULT, !pages),
		.promote_ns = figure(&b, PROMOTE, !pages),
		.demote_ns = figure(&b, DEMOTE, !pages),
		.gap_ns = gap_between(slow_node, fast_node),
	};
	return move_rc < 0 ? move_rc : sample_rc;
}
