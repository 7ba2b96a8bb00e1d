// SPDX-License-Identifier: MIT
#include "shim/promoter.h"

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "policy/procparse.h"
#include "policy/promote.h"
#include "policy/stats.h"
#include "shim/compiler.h"
#include "shim/home.h"
#include "shim/lifecycle.h"
#include "shim/log.h"
#include "shim/measure.h"
#include "shim/memsys_linux.h"
#include "shim/os/fd.h"
#include "shim/os/pagemap.h"
#include "shim/os/rawsys.h"
#include "shim/os/sys.h"
#include "shim/os/tasks.h"
#include "shim/os/topo_sysfs.h"
#include "shim/place.h"
#include "shim/sampler.h"
#include "shim/stats.h"
#include "shim/tracked.h"
#include "shim/worker.h"

#define PAGE ((uintptr_t)LIFT_PAGE_BYTES)
#define MS UINT64_C(1000000)

/* So many ranges are armed or collected between two looks at whether to stop. */
#define SLICE 4096
/* Runs that are so near are armed as one: a call costs more than the pages between them. */
#define ARM_GAP (8 * PAGE)

#define READ_EVERY_NS (100 * MS)
#define NODES_EVERY_NS (5 * LIFT_NS_PER_S)
#define COUNTS_EVERY_NS (5 * LIFT_NS_PER_S)
#define MAPS_EVERY_NS LIFT_NS_PER_S
#define MAPS_CALM_NS (5 * LIFT_NS_PER_S)
/* Reading what is mapped takes no more than this share of the time; so much when much has come. */
#define MAPS_SHARE 200
#define MAPS_GROWN_SHARE 20
/* For each page of the process, to clear and read back: what it is like is learned. */
#define WHOLE_NS 300
#define LOOK_AROUND_MS 2000
#define SAMPLE_MAX_NS (3 * LIFT_NS_PER_S)
#define WATCH_EVERY 16
#define PUBLISH_EVERY_NS LIFT_NS_PER_S

static struct {
	struct lift_orders *orders;
	const struct lift_memsys *sys;
	const struct lift_sampler *sampler;
	const char *reason; /* why nothing is moved; NULL: it is */

	struct lift_place_machine machine;
	struct lift_promote_now now;
	uint64_t nodes_at;
	uint64_t min_free_pages; /* what the kernel keeps free of all memory */
	uint64_t read_at;

	bool ready; /* promote has its records */
	struct lift_promote promote;
	struct lift_work work;
	struct lift_range own[3]; /* not to be tracked: lists, records, stack */
	struct lift_range own_sorted[3];
	size_t nr_own;
	struct lift_tracked tracked;
	uint64_t tracked_at;    /* when that was read; 0: never */
	unsigned reads;         /* of it */
	uint64_t tracked_ns;    /* how long that took */
	uint64_t tracked_rss;   /* resident then */
	unsigned fixed_changes; /* as of then */
	bool filter;            /* far more is mapped than is there */

	struct lift_range *armed; /* of this sample, ascending once it is armed */
	size_t nr_armed;
	size_t max_armed;
	bool is_armed;
	bool collected;
	unsigned failures; /* of the sampler, in a row */

	struct lift_fd pagemap; /* to see what is there and huge; not open: not known */
	bool no_pagemap;
	struct lift_home home;
	bool too_many; /* threads, to look at each more often than now and then */

	uint64_t began_at;
	uint64_t looked_around_at;
	uint64_t cpu_base;  /* of the worker's threads before this one */
	uint64_t spent_at;  /* CPU time but for moves, when it was last reported */
	uint64_t move_ns;   /* of this thread */
	uint64_t move_base; /* of those before it */
	uint64_t candidates;
	int64_t tokens; /* bytes that may be moved now, with NUMALIFT_RATE */
	uint64_t tokens_at;
	uint64_t published_at;
	uint64_t told; /* passes */
	struct lift_costs costs;
} w;

static _Atomic bool keep_off;
static struct lift_stats stats;
static int move_status[LIFT_BATCH_PAGES];

static bool stopped(void)
{
	uint32_t order = atomic_load_explicit(&w.orders->word, memory_order_acquire);

	if (unlikely(order == LIFT_ORDER_CREDENTIALS)) {
		lift_worker_take_credentials();
		order = atomic_load_explicit(&w.orders->word, memory_order_acquire);
	}
	return order == LIFT_ORDER_STOP;
}

/*
 * Is there nobody else any more? The last of the program's threads may end without ending the
 * process (SYS_exit): that is then the worker's to do. The first thread is counted until the end.
 */
static bool left_alone(void)
{
	char buf[1024];
	struct lift_task_stat st;
	long n = lift_sys_read_file("/proc/self/stat", buf, sizeof(buf));

	return n > 0 && lift_parse_task_stat(buf, (size_t)n, &st) == 0 && st.state == 'Z' &&
	       st.threads == 2;
}

/* False: to be stopped. */
static bool sleep_ns(uint64_t ns)
{
	uint64_t until = w.sys->now(w.sys->ctx) + ns;

	while (!stopped()) {
		uint64_t now = w.sys->now(w.sys->ctx);
		uint64_t ms = now < until ? (until - now + MS - 1) / MS : 0;

		if (ms == 0)
			return true;
		if (now - w.looked_around_at >= LOOK_AROUND_MS * MS) {
			w.looked_around_at = now;
			if (left_alone())
				atomic_store(&w.orders->word, LIFT_ORDER_STOP);
		}
		(void)lift_sys_futex_wait(&w.orders->word, LIFT_ORDER_NONE,
			ms < LOOK_AROUND_MS ? (int)ms : LOOK_AROUND_MS);
	}
	return false;
}

/* CPU time of the program: without that of this thread, and of those before it. */
static uint64_t program_cpu_ns(void)
{
	uint64_t all = lift_sys_process_cpu_ns();
	uint64_t own = w.cpu_base + lift_sys_thread_cpu_ns();

	return all > own ? all - own : 0;
}

static uint64_t cpu_since(uint64_t had)
{
	uint64_t now = program_cpu_ns();

	return now > had ? now - had : 0;
}

/*
 * Until the program has been active for long enough (promote.h). One that is active now and then
 * would be asked hundreds of times if each look were a few milliseconds after the last: the next is
 * when it will have used enough at the rate so far.
 */
static bool sleep_sample(uint64_t ns, uint64_t cpu_ns)
{
	const uint64_t least = 5 * MS;
	const uint64_t most = 250 * MS;
	uint64_t enough = cpu_ns - cpu_ns / 8;
	uint64_t began_at = w.sys->now(w.sys->ctx);
	uint64_t had = program_cpu_ns();

	for (;;) {
		uint64_t clock;
		uint64_t used;

		if (!sleep_ns(ns))
			return false;
		clock = w.sys->now(w.sys->ctx) - began_at;
		used = cpu_since(had);
		if (used >= enough || clock >= SAMPLE_MAX_NS)
			return true;
		ns = used ? (enough - used) * (clock / 1024) / (used / 1024 + 1) : most;
		if (ns < least)
			ns = least;
		if (ns > most)
			ns = most;
	}
}

/* --- before it begins --- */

static bool large_enough(void)
{
	return program_cpu_ns() >= LIFT_START_CPU_NS &&
	       lift_os_bytes().resident >= LIFT_START_RSS_BYTES;
}

/* A program that stays small, or idles, is looked at more and more rarely. */
static bool wait_for_size(void)
{
	uint64_t pause = 250 * MS;
	uint64_t cpu = 0;

	while (!large_enough()) {
		uint64_t used = program_cpu_ns();

		if (used > cpu + pause / 16)
			pause = 250 * MS;
		else if (pause < 8 * LIFT_NS_PER_S)
			pause *= 2;
		cpu = used;
		if (!sleep_ns(pause))
			return false;
	}
	return !stopped();
}

/* Ends it for this process, with a word about why where the user may wonder. */
static bool end(const char *why)
{
	w.reason = why;
	lift_log(LIFT_LOG_INFO, "hot pages are not promoted: %s", why);
	return false;
}

/*
 * Own descriptors, own root. Nothing of the program's table is copied: a second reference would
 * keep its sockets and pipes from being closed.
 */
static void be_apart(void)
{
	enum { UNSHARE = 1u << 1 }; /* CLOSE_RANGE_UNSHARE */

	if (lift_syscall(SYS_close_range, 0, (long)~0u, UNSHARE, 0, 0, 0) < 0)
		return;
	lift_log_elsewhere();
	/* A working folder would keep what it is on from being unmounted. */
	if (lift_syscall(SYS_unshare, CLONE_FS, 0, 0, 0, 0, 0) == 0)
		(void)lift_syscall(SYS_chdir, (long)"/", 0, 0, 0, 0, 0);
}

static bool add_slot(int node, bool fast)
{
	struct lift_promote_node *n = &w.now.node[w.now.nr_nodes];

	if (w.now.nr_nodes == LIFT_SLOTS)
		return false;
	*n = (struct lift_promote_node){.node = node, .fast = fast};
	w.now.nr_nodes++;
	return true;
}

/* Those of set, nearest to `to` first. */
static void add_slots(const struct lift_nodeset *set, int to, bool fast)
{
	struct lift_nodeset left = *set;
	int node;

	while ((node = lift_topology_nearest(&w.machine.topo, to, &left)) >= 0) {
		if (!add_slot(node, fast))
			return;
		lift_nodeset_clear(&left, node);
	}
}

static bool read_machine(void)
{
	bool track = lift_config_now()->promote == LIFT_PROMOTE_TRACK;
	int here = lift_sys_cpu_node();

	w.now.nr_nodes = 0;
	if (!lift_place_machine(&w.machine)) {
		const struct lift_tiers *tiers = &lift_config_now()->tiers;

		/* Nothing is placed here; promotion was asked for by name all the same. */
		if (!lift_config_given("NUMALIFT_PROMOTE") ||
			lift_os_topology(&w.machine.topo) < 0 ||
			lift_tiers_build(
				&w.machine.topo, tiers->nr ? tiers : NULL, &w.machine.tiers) < 0)
			return end("there is one node, or nothing may be placed here");
		lift_topology_memory_nodes(&w.machine.topo, &w.machine.allowed);
		w.machine.task_mode = LIFT_MPOL_DEFAULT;
	}
	if (w.machine.tiers.nr < 2 && !track)
		return end("all nodes are equally fast");
	/* A single tier is watched as if it were a slow one. */
	for (unsigned i = 0; i < w.machine.tiers.nr; i++)
		add_slots(&w.machine.tiers.tier[i], here, i == 0 && w.machine.tiers.nr > 1);
	switch (w.machine.task_mode & ~LIFT_MPOL_F_MASK) {
	case LIFT_MPOL_DEFAULT:
	case LIFT_MPOL_LOCAL:
	case LIFT_MPOL_BIND:
		break;
	default:
		w.reason = "the program was started with a memory policy (numactl)";
	}
	if (track)
		w.reason = "NUMALIFT_PROMOTE=track";
	w.nodes_at = 0;
	return true;
}

static const char *why_not(int err)
{
	switch (-err) {
	case ENOSYS:
	case EINVAL:
	case ENOTTY:
	case ENOENT:
	case EOPNOTSUPP:
		return "the kernel has not got it, or it is off";
	case EPERM:
	case EACCES:
		return "not permitted";
	case EBUSY:
		return "in use by somebody else";
	case EMFILE:
	case ENFILE:
		return "too many open files";
	default:
		return "an error";
	}
}

/*
 * Does the kernel promote? In its other mode, which is on by default where there are several nodes,
 * it moves pages towards the threads that use them, among nodes with processors, and is left to
 * that.
 */
static bool kernel_promotes(void)
{
	enum { TIERING = 2 }; /* Documentation/admin-guide/sysctl/kernel.rst */

	return (lift_os_number("/proc/sys/kernel/numa_balancing", 0) & TIERING) != 0;
}

static const struct lift_sampler *working(enum lift_sampler_choice choice, int *ret_err)
{
	const struct lift_sampler *s = lift_sampler_find(lift_sampler_choice_name(choice));

	*ret_err = s ? s->probe() : -ENOSYS;
	if (*ret_err == 0)
		*ret_err = s->open();
	return *ret_err == 0 ? s : NULL;
}

static bool choose_sampler(void)
{
	static const enum lift_sampler_choice order[] = {
		LIFT_SAMPLER_KERNEL, LIFT_SAMPLER_RWP, LIFT_SAMPLER_WP_REFS, LIFT_SAMPLER_REFS};
	enum lift_sampler_choice asked = lift_config_now()->sampler;
	int err = 0;

	w.sampler = NULL;
	if (asked != LIFT_SAMPLER_AUTO) {
		w.sampler = working(asked, &err);
		if (w.sampler)
			return true;
		lift_log_given_up("NUMALIFT_SAMPLER=%s does not work here: %s; using auto",
			lift_sampler_choice_name(asked), why_not(err));
	}
	for (size_t i = 0; !w.sampler && i < sizeof(order) / sizeof(order[0]); i++) {
		if (order[i] == LIFT_SAMPLER_KERNEL && !kernel_promotes())
			continue;
		w.sampler = working(order[i], &err);
		if (!w.sampler)
			lift_log(LIFT_LOG_DEBUG, "sampler %s: %s",
				lift_sampler_choice_name(order[i]), why_not(err));
	}
	if (w.sampler)
		return true;
	lift_log_given_up("no way to see which memory is used works here (%s), so hot pages are "
			  "not promoted; /proc has to be mounted",
		why_not(err));
	return end("no sampler works here");
}

/* --- nodes --- */

static struct lift_promote_node *some_node(bool fast)
{
	for (unsigned i = 0; i < w.now.nr_nodes; i++)
		if (w.now.node[i].fast == fast && w.now.node[i].usable)
			return &w.now.node[i];
	return NULL;
}

/* Which nodes can be used, and what is free on them. */
static void read_nodes(uint64_t now_ns)
{
	struct lift_nodeset allowed;

	if (w.nodes_at == 0 || now_ns - w.nodes_at >= NODES_EVERY_NS) {
		if (lift_os_mems_allowed(&allowed, NULL) < 0)
			allowed = w.machine.allowed;
		/* What the task policy leaves out stays out. */
		if ((w.machine.task_mode & ~LIFT_MPOL_F_MASK) == LIFT_MPOL_BIND)
			lift_nodeset_and(&allowed, &allowed, &w.machine.allowed);
		w.nodes_at = now_ns;
		w.min_free_pages = lift_os_number("/proc/sys/vm/min_free_kbytes", 0) * 1024 / PAGE;
		for (unsigned i = 0; i < w.now.nr_nodes; i++)
			w.now.node[i].usable = lift_nodeset_test(&allowed, w.now.node[i].node);
		(void)lift_home_update(&w.home);
		w.too_many = false;
	}
	w.now.nodes_ns = now_ns;
	for (unsigned i = 0; i < w.now.nr_nodes; i++) {
		struct lift_promote_node *n = &w.now.node[i];
		uint64_t free_bytes = 0;
		uint64_t total = 0;

		if (w.sys->free_memory(w.sys->ctx, n->node, &free_bytes, &total) < 0)
			n->usable = false;
		n->free_pages = free_bytes / PAGE;
		/*
		 * The kernel begins to reclaim when less is left, and complains when a move finds
		 * nothing. No node's mark is above 3/2 of what it keeps free in all.
		 */
		n->headroom_pages = total / 64 / PAGE;
		if (n->headroom_pages < w.min_free_pages + w.min_free_pages / 2)
			n->headroom_pages = w.min_free_pages + w.min_free_pages / 2;
		if (n->headroom_pages > LIFT_GIB / PAGE)
			n->headroom_pages = LIFT_GIB / PAGE;
		if (n->headroom_pages < 4 * LIFT_MIB / PAGE)
			n->headroom_pages = 4 * LIFT_MIB / PAGE;
	}
}

static void read_now(void)
{
	uint64_t limit = lift_config_now()->fast_limit_bytes;

	w.now.now_ns = w.sys->now(w.sys->ctx);
	if (lift_promote_asks_cpu(&w.promote))
		w.now.cpu_ns = program_cpu_ns();
	/* Some files to read, and there are many steps. */
	if (w.read_at && w.now.now_ns - w.read_at < READ_EVERY_NS)
		return;
	w.read_at = w.now.now_ns;
	w.now.rss_bytes = lift_os_bytes().resident;
	w.now.fast_limit_pages = limit == LIFT_NO_LIMIT ? UINT64_MAX : limit / PAGE;
	read_nodes(w.now.now_ns);
}

/* --- records --- */

/*
 * Address space is plenty, and only what is used becomes memory: records for all memory of the
 * machine. Unless the program's is limited, or all of it is charged for: then for twice what the
 * program has now.
 */
static uint32_t size_records(bool *ret_tight)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; i < w.machine.topo.nr; i++)
		bytes += w.machine.topo.node[i].total_bytes;
	*ret_tight = lift_sys_limited_memory() ||
		     lift_os_number("/proc/sys/vm/overcommit_memory", 0) == 2;
	if (*ret_tight)
		bytes = 2 * lift_os_bytes().resident;
	if (bytes > UINT64_C(64) << 40)
		bytes = UINT64_C(64) << 40;
	/* Mappings begin and end within chunks. */
	return (uint32_t)(bytes / LIFT_CHUNK_BYTES) + (*ret_tight ? 64 : 1024);
}

static int make_records(void)
{
	bool tight;
	uint32_t chunks = size_records(&tight);
	uint64_t mappings;
	size_t bytes;
	long at;
	int rc;

	/* Runs within a chunk; more are joined. */
	w.max_armed = (size_t)chunks * 16;
	mappings = lift_os_number("/proc/sys/vm/max_map_count", 65530);
	if (mappings > 1 << 20)
		mappings = 1 << 20;
	rc = lift_tracked_open(tight ? 1 << 12 : mappings, &w.own[0]);
	if (rc < 0)
		return rc;
	bytes = lift_heat_bytes(chunks, chunks) + w.max_armed * sizeof(*w.armed);
	bytes = (bytes + PAGE - 1) & ~(size_t)(PAGE - 1);
	at = lift_sys_mmap_apart(bytes, MAP_NORESERVE);
	if (lift_syserr(at))
		return (int)at;
	/* Sparse, and of no use in children. */
	(void)lift_sys_madvise((void *)at, bytes, MADV_NOHUGEPAGE);
	(void)lift_sys_madvise((void *)at, bytes, MADV_DONTFORK);
	w.armed = (struct lift_range *)at;
	if (lift_promote_init(&w.promote, (char *)at + w.max_armed * sizeof(*w.armed),
		    bytes - w.max_armed * sizeof(*w.armed), chunks, chunks, &w.costs,
		    (uint32_t)lift_config_now()->budget_ppm))
		return -EINVAL;
	if (lift_config_now()->window_bytes != LIFT_WINDOW_AUTO)
		lift_window_fix(
			&w.promote.window, (unsigned)(lift_config_now()->window_bytes / PAGE));
	w.own[1] = (struct lift_range){(uintptr_t)at, (uintptr_t)at + bytes};
	return 0;
}

/* The worker's stack, which is another one each time: it would only watch itself. */
static void leave_stack_out(void)
{
	enum { AROUND = 64 << 10 };
	uintptr_t here = (uintptr_t)__builtin_frame_address(0) & ~(PAGE - 1);

	w.own[2] = (struct lift_range){here - AROUND, here + AROUND};
	w.nr_own = 0;
	for (size_t i = 0; i < 3; i++) {
		size_t at = w.nr_own++;

		for (; at > 0 && w.own_sorted[at - 1].start > w.own[i].start; at--)
			w.own_sorted[at] = w.own_sorted[at - 1];
		w.own_sorted[at] = w.own[i];
	}
}

/* --- what is tracked --- */

static void gone(void *arg, struct lift_range r)
{
	*(bool *)arg = true;
	lift_promote_forget(&w.promote, r);
}

/* Only chunks with something in them get a record, where most have nothing. */
static void come_filtered(struct lift_range r)
{
	static unsigned char vec[4096];

	while (!lift_range_empty(r)) {
		struct lift_range piece = r;
		size_t nr;

		if (lift_range_bytes(piece) > sizeof(vec) * PAGE)
			piece.end = (piece.start + sizeof(vec) * PAGE) &
				    ~(uintptr_t)(LIFT_CHUNK_BYTES - 1);
		nr = lift_range_bytes(piece) / PAGE;
		if (lift_sys_mincore(piece.start, lift_range_bytes(piece), vec) == 0) {
			for (size_t i = 0; i < nr; i++) {
				uintptr_t at = piece.start + i * PAGE;
				uintptr_t next = (at | (LIFT_CHUNK_BYTES - 1)) + 1;

				if (!(vec[i] & 1))
					continue;
				if (next > piece.end)
					next = piece.end;
				if (!lift_heat_find(&w.promote.heat, at))
					lift_promote_add(&w.promote, (struct lift_range){at, next});
				i = (next - piece.start) / PAGE - 1;
			}
		}
		r.start = piece.end;
	}
}

static void come(void *arg, struct lift_range r)
{
	*(bool *)arg = true;
	if (w.filter)
		come_filtered(r);
	else
		lift_promote_add(&w.promote, r);
}

/* What is mapped, from time to time. Returns false when the sampler is of no use any more. */
static bool sync_tracked(void)
{
	uint64_t now = w.sys->now(w.sys->ctx);
	bool first = w.tracked_at == 0;
	bool changed = false;
	bool again;
	int rc;
	uint64_t every =
		w.promote.schedule.pace == LIFT_PACE_SETTLED ? MAPS_CALM_NS : MAPS_EVERY_NS;

	uint64_t share =
		w.now.rss_bytes > w.tracked_rss + w.tracked_rss / 8 ? MAPS_GROWN_SHARE : MAPS_SHARE;

	if (w.tracked_at &&
		(now - w.tracked_at < every || now - w.tracked_at < w.tracked_ns * share))
		return true;
	w.tracked_rss = w.now.rss_bytes;
	w.fixed_changes = lift_place_fixed_changes();
	rc = lift_tracked_read(w.own_sorted, w.nr_own, &w.tracked);
	w.tracked_at = w.sys->now(w.sys->ctx);
	if (rc < 0)
		return true; /* what is known stays right or is found out when it is used */
	/* What was passed over for having nothing in it may have something now. */
	again = w.filter;
	w.filter = w.tracked.bytes > 2 * w.now.rss_bytes + 64 * LIFT_MIB;
	lift_tracked_changes(gone, come, &changed);
	if (again || w.filter)
		for (size_t i = 0; i < w.tracked.nr; i++)
			come_filtered(w.tracked.range[i]);
	/* What could not be had the last time may be free by now. */
	if (first || changed || w.reads++ % WATCH_EVERY == 0)
		w.failures =
			w.sampler->watch(w.tracked.range, w.tracked.nr) < 0 ? w.failures + 1 : 0;
	w.tracked_ns = w.sys->now(w.sys->ctx) - now;
	return w.failures < 8;
}

/* --- the steps --- */

/* Present pages of r, and whether all of it is one huge page; what is known without asking for
 * nodes. */
static unsigned present(struct lift_range r, uintptr_t *ret, bool *ret_huge)
{
	struct lift_page_region region[64];
	struct lift_pagemap_ask ask = {
		.all = LIFT_PAGE_PRESENT,
		.none = LIFT_PAGE_ZERO,
		.tell = LIFT_PAGE_HUGE | LIFT_PAGE_PRESENT,
	};
	unsigned nr = 0;
	int fd = lift_fd_get(&w.pagemap);

	*ret_huge = false;
	if (fd < 0 && !w.no_pagemap) {
		w.no_pagemap = lift_pagemap_open(&w.pagemap) < 0;
		fd = lift_fd_get(&w.pagemap);
	}
	while (fd >= 0 && !lift_range_empty(r)) {
		uintptr_t end = r.end;
		long n;

		ask.range = r;
		n = lift_pagemap_scan(fd, &ask, region, sizeof(region) / sizeof(region[0]), &end);
		if (n < 0 || end <= r.start) {
			w.no_pagemap = true;
			lift_fd_close(&w.pagemap);
			break;
		}
		for (long i = 0; i < n; i++) {
			*ret_huge = (region[i].is & LIFT_PAGE_HUGE) &&
				    region[i].end - region[i].start == LIFT_CHUNK_BYTES;
			for (uint64_t a = region[i].start; a < region[i].end; a += PAGE)
				ret[nr++] = (uintptr_t)a;
		}
		r.start = end;
	}
	if (fd < 0 || w.no_pagemap) {
		for (; !lift_range_empty(r); r.start += PAGE)
			ret[nr++] = r.start;
	}
	return nr;
}

/* Whether the sampler's faults tell who uses a page. */
static bool may_ask(void)
{
	return w.sampler->traits & LIFT_SAMPLER_FAULTS && !w.too_many;
}

/*
 * The node for all that the process has, or -1. Where it can be asked for each part of it, most of
 * the CPU time is not enough.
 */
static int home_of_all(void)
{
	enum { NEARLY_ALL = 4096 - 4096 / 16 };
	int node = lift_home_node(&w.home);

	return node >= 0 && may_ask() && lift_home_share(&w.home, node) < NEARLY_ALL ? -1 : node;
}

static void locate_chunk(uintptr_t base)
{
	static uintptr_t page[LIFT_CHUNK_PAGES];
	static int status[LIFT_CHUNK_PAGES];
	struct lift_range r;
	uintptr_t from = base;
	bool described = false;

	while (lift_tracked_next(from, base + LIFT_CHUNK_BYTES, &r)) {
		bool huge;
		unsigned nr = present(r, page, &huge);

		if (!described)
			lift_promote_describe(&w.promote, base, huge, home_of_all());
		described = true;
		if (huge)
			nr = 1;
		if (nr && w.sys->where(w.sys->ctx, page, nr, status) == 0)
			for (unsigned i = 0; i < nr; i++)
				lift_promote_located(&w.promote, page[i], status[i]);
		from = r.end;
	}
}

static void sampled(void *arg, const struct lift_sample *s)
{
	(void)arg;
	lift_promote_summed(&w.promote, s->range, s->accessed_bytes, s->resident_bytes);
}

/* Into ascending order: nearly so already, but for chunks that took another one's place. */
static void sift(struct lift_range *r, size_t at, size_t nr)
{
	struct lift_range x = r[at];
	size_t child;

	while ((child = 2 * at + 1) < nr) {
		if (child + 1 < nr && r[child + 1].start > r[child].start)
			child++;
		if (r[child].start <= x.start)
			break;
		r[at] = r[child];
		at = child;
	}
	r[at] = x;
}

static void sort(struct lift_range *r, size_t nr)
{
	bool sorted = true;

	for (size_t i = 1; i < nr && sorted; i++)
		sorted = r[i - 1].start <= r[i].start;
	if (sorted)
		return;
	for (size_t i = nr / 2; i-- > 0;)
		sift(r, i, nr);
	for (size_t i = nr; i-- > 1;) {
		struct lift_range x = r[i];

		r[i] = r[0];
		r[0] = x;
		sift(r, 0, i);
	}
}

static bool all_tracked(uintptr_t start, uintptr_t end)
{
	struct lift_range r;

	return lift_tracked_next(start, end, &r) && r.start == start && r.end == end;
}

/* Near runs become one, unless somebody else's memory lies between them. */
static size_t join(struct lift_range *r, size_t nr, uintptr_t gap)
{
	size_t to = 0;

	for (size_t i = 1; i < nr; i++) {
		if (r[i].start <= r[to].end ||
			(r[i].start - r[to].end <= gap && all_tracked(r[to].end, r[i].start))) {
			if (r[i].end > r[to].end)
				r[to].end = r[i].end;
		} else {
			r[++to] = r[i];
		}
	}
	return nr ? to + 1 : 0;
}

static bool sampler_failed(int err)
{
	w.is_armed = w.collected = false;
	w.nr_armed = 0;
	lift_log(LIFT_LOG_DEBUG, "sampler %s: %s (%d)", w.sampler->name, why_not(err), err);
	lift_promote_restart(&w.promote);
	w.tracked_at = 0; /* and watch again */
	return ++w.failures < 8;
}

/* All that was gathered, at once: what clears or reads the whole process does so once a sample. */
static bool arm_all(void)
{
	size_t slice = w.sampler->traits & LIFT_SAMPLER_WHOLE ? w.max_armed : SLICE;
	int rc;

	sort(w.armed, w.nr_armed);
	w.nr_armed = join(w.armed, w.nr_armed, ARM_GAP);
	w.is_armed = true;
	w.collected = false;
	for (size_t at = 0; at < w.nr_armed && !stopped(); at += slice) {
		size_t nr = w.nr_armed - at < slice ? w.nr_armed - at : slice;

		rc = w.sampler->arm(w.armed + at, nr);
		if (rc < 0)
			return sampler_failed(rc);
	}
	return true;
}

static bool collect_all(void)
{
	size_t slice = w.sampler->traits & LIFT_SAMPLER_WHOLE ? w.max_armed : SLICE;
	int rc;

	w.collected = true;
	w.is_armed = false;
	for (size_t at = 0; at < w.nr_armed && !stopped(); at += slice) {
		size_t nr = w.nr_armed - at < slice ? w.nr_armed - at : slice;

		rc = w.sampler->collect(w.armed + at, nr, LIFT_COLLECT_IDLE, sampled, NULL);
		if (rc < 0)
			return sampler_failed(rc);
	}
	if (w.sampler->faults)
		lift_promote_faulted(&w.promote, w.sampler->faults());
	w.failures = 0;
	return true;
}

static void gather(void)
{
	if (w.is_armed || w.collected) {
		w.is_armed = w.collected = false;
		w.nr_armed = 0;
	}
	for (unsigned i = 0; i < w.work.nr; i++) {
		if (w.nr_armed < w.max_armed)
			w.armed[w.nr_armed++] = w.work.range[i];
		else
			/* More than there is room for: pages in between are armed for nothing. */
			w.armed[w.max_armed - 1].end = w.work.range[i].end;
	}
}

struct answer {
	uint32_t faults[LIFT_SLOTS];
	uint32_t all;
	uint32_t used;
};

static void count_faults(void *arg, int node, uint64_t faults)
{
	struct answer *a = arg;

	a->all += (uint32_t)faults;
	for (unsigned i = 0; i < w.now.nr_nodes; i++)
		if (w.now.node[i].node == node)
			a->faults[i] += (uint32_t)faults;
}

static void count_used(void *arg, const struct lift_sample *s)
{
	struct answer *a = arg;

	a->used += s->huge ? 1 : (uint32_t)(s->accessed_bytes / PAGE);
}

/* Whose threads take the faults? As many as tell are enough. False: to be stopped. */
static bool ask_users(void)
{
	struct lift_range *range = w.work.range;
	struct answer a = {.used = 0};
	uint64_t ns = w.work.sleep_ns / 16;
	int node;

	sort(range, w.work.nr);
	w.work.nr = (unsigned)join(range, w.work.nr, 0);
	w.too_many = lift_home_faults(&w.home, NULL, NULL) < 0;
	if (!w.too_many && w.sampler->arm(range, w.work.nr) == 0) {
		uint64_t began_at = w.sys->now(w.sys->ctx);
		uint64_t had = program_cpu_ns();
		uint64_t used;
		uint64_t clock;

		do {
			if (!sleep_ns(ns))
				return false;
			ns *= 2;
			if (lift_home_faults(&w.home, count_faults, &a) < 0)
				w.too_many = true;
			used = cpu_since(had);
			clock = w.sys->now(w.sys->ctx) - began_at;
		} while (a.all < 4 * LIFT_USERS_ENOUGH && clock < SAMPLE_MAX_NS &&
			 (used < w.work.sleep_ns || clock < w.work.sleep_ns));
		(void)w.sampler->collect(range, w.work.nr, 0, count_used, &a);
		if (w.sampler->release)
			w.sampler->release(range, w.work.nr);
	}
	node = lift_promote_users(&w.promote, a.faults, a.all, a.used);
	lift_log(LIFT_LOG_DEBUG, "who uses %u chunks: %u faults for %u pages, node %d",
		w.promote.users.group, a.all, a.used, node);
	return true;
}

/* The backstop NUMALIFT_RATE: waits until there is something to spend. */
static bool wait_for_tokens(void)
{
	uint64_t rate = lift_config_now()->rate_bytes;
	uint64_t now = w.sys->now(w.sys->ctx);
	double more;

	more = (double)(now - w.tokens_at) * (double)rate / (double)LIFT_NS_PER_S;
	w.tokens_at = now;
	w.tokens += more < (double)rate ? (int64_t)more : (int64_t)rate;
	if (w.tokens > (int64_t)(rate < INT64_MAX ? rate : INT64_MAX))
		w.tokens = (int64_t)rate;
	if (w.tokens > 0)
		return true;
	return sleep_ns(rate ? (uint64_t)((double)(1 - w.tokens) * (double)LIFT_NS_PER_S /
					  (double)rate)
			     : LIFT_NS_PER_S) &&
	       rate > 0;
}

static void moving_refused(void)
{
	w.reason = "moving pages is refused";
	lift_log_given_up("moving pages is refused here, so their use is only tracked; in a "
			  "container, CAP_SYS_NICE permits it");
}

static bool move(void)
{
	const struct lift_batch *b = w.work.batch;
	uint64_t before;
	int rc;

	while (lift_config_now()->rate_bytes != LIFT_NO_LIMIT && w.tokens <= 0)
		if (!wait_for_tokens())
			return !stopped();
	if (lift_place_fixed_changes() != w.fixed_changes) {
		/* The program has bound memory since: it is not to be moved from there. */
		w.tracked_at = 0;
		(void)sync_tracked();
		for (unsigned i = 0; i < b->nr; i++)
			move_status[i] = -EAGAIN;
		lift_promote_moved(&w.promote, 0, move_status);
		return true;
	}
	before = lift_sys_thread_cpu_ns();
	rc = w.sys->move(w.sys->ctx, b->page, b->nr, w.work.node, move_status);
	w.tokens -= (int64_t)(b->weight * PAGE);
	w.move_ns += lift_sys_thread_cpu_ns() - before;
	if (!b->demote)
		w.candidates += b->weight;
	if (rc == -EPERM || rc == -ENOSYS)
		moving_refused();
	/*
	 * What was freed is in the lists of this CPU at first, where the kernel does not count it:
	 * a node is asked before that is taken for room.
	 */
	if (b->demote)
		w.read_at = 0;
	lift_promote_moved(&w.promote, rc, move_status);
	return true;
}

/* NULL: pages are moved. */
static const char *why_not_moved(void)
{
	if (!w.reason && atomic_load_explicit(&keep_off, memory_order_relaxed))
		return "the program sets memory policies of its own";
	return w.reason;
}

/* --- statistics --- */

/* After each pass, for who wants to know what goes on. */
static void tell(void)
{
	static const char *const pace[LIFT_PACE_MAX] = {"waits", "full pace", "settled"};
	const struct lift_promote *p = &w.promote;
	const struct lift_pass *pass = &p->pass;

	if (!lift_log_enabled(LIFT_LOG_DEBUG) || p->stats.passes == w.told ||
		lift_promote_sampling(p))
		return;
	w.told = p->stats.passes;
	lift_log(LIFT_LOG_DEBUG,
		"pass %lu, %s: of %lu pages %lu used in %lu us; %lu up, %lu down, %lu more would "
		"pay; %lu us%s; next sample %lu us, a page stays hot for %lu ms",
		p->stats.passes, pace[p->schedule.pace], pass->armed, pass->accessed,
		p->took_ns / 1000, pass->promoted, pass->demoted, pass->wanted,
		lift_schedule_cost(&p->schedule, pass) / 1000,
		pass->surprised ? ", not as expected" : "", p->schedule.window_ns / 1000,
		p->price.residence_ns / 1000000);
}

static void publish(bool always)
{
	const struct lift_promote_stats *s = &w.promote.stats;
	const struct lift_schedule *d = &w.promote.schedule;
	const char *reason = why_not_moved();
	uint64_t now = w.sys->now(w.sys->ctx);

	if (!always && now - w.published_at < PUBLISH_EVERY_NS)
		return;
	w.published_at = now;
	memset(&stats, 0, sizeof(stats));
	stats.state = w.sampler == NULL ? LIFT_STATS_OFF : LIFT_STATS_WAITING;
	stats.mode = reason ? LIFT_STATS_MODE_TRACK : LIFT_STATS_MODE_ON;
	stats.uptime_ns = now - w.began_at;
	stats.budget_ppm = lift_config_now()->budget_ppm;
	stats.fast_limit_bytes = lift_config_now()->fast_limit_bytes;
	stats.worker_cpu_ns = w.cpu_base + lift_sys_thread_cpu_ns();
	if (w.sampler)
		memcpy(stats.sampler, w.sampler->name, strlen(w.sampler->name) + 1);
	if (reason)
		memcpy(stats.reason, reason, strlen(reason) + 1);
	stats.nr_nodes = w.now.nr_nodes;
	if (w.ready) {
		if (d->pace == LIFT_PACE_FULL)
			stats.state = reason ? LIFT_STATS_TRACKING : LIFT_STATS_PROMOTING;
		else if (d->pace == LIFT_PACE_SETTLED)
			stats.state = LIFT_STATS_SETTLED;
		stats.period_ns = d->period_ns;
		stats.sample_ns = d->window_ns;
		stats.passes = s->passes;
		stats.changes = s->changes;
		stats.pauses = s->pauses;
		stats.tracked_bytes = ((uint64_t)s->slow_pages + s->fast_pages) * PAGE;
		stats.fast_bytes = (uint64_t)s->fast_pages * PAGE;
		stats.slow_bytes = (uint64_t)s->slow_pages * PAGE;
		stats.fast_share = s->fast_share;
		stats.stuck_pages = s->stuck_pages;
		stats.cooling_pages = s->cooling_pages;
		stats.metadata_bytes = lift_heat_used(&w.promote.heat);
		stats.numa_pte_updates = s->armed;
		stats.numa_hint_faults = s->accessed;
		stats.released = s->released;
		stats.located = s->located;
		stats.hot_rate = s->hot_rate;
		stats.wanted = s->wanted;
		stats.pgpromote_candidate = w.candidates;
		stats.pgpromote_success = s->moves.promoted;
		stats.promoted_home = s->moves.home;
		stats.pgdemote = s->moves.demoted;
		stats.bounced = s->moves.bounced;
		stats.move_busy = s->moves.busy;
		stats.move_nomem = s->moves.full;
		stats.move_absent = s->moves.absent;
		stats.move_shared = s->moves.stuck;
		stats.window_bytes = lift_window_bytes(&w.promote.window);
		stats.predicted = s->moves.predicted;
		stats.predicted_hit = w.promote.window.hit;
		stats.predicted_wrong = w.promote.window.wrong;
		stats.move_ns = w.move_base + w.move_ns;
		stats.fault_est_ns = d->fault_ns;
		stats.cost_arm_ns = w.costs.arm_ns;
		stats.cost_release_ns = w.costs.release_ns;
		stats.cost_scan_ns = w.costs.scan_ns;
		stats.cost_fault_ns = d->costs.fault_ns;
		stats.cost_promote_ns = w.costs.promote_ns;
		stats.cost_demote_ns = w.costs.demote_ns;
		stats.gap_ns = w.costs.gap_ns;
	}
	for (unsigned i = 0; i < w.now.nr_nodes; i++)
		stats.node[i] = (struct lift_stats_node){
			.node = w.now.node[i].node,
			.fast = w.now.node[i].fast,
			.usable = w.now.node[i].usable,
			.pages_here = w.promote.heat.census.here[i],
			.free_bytes = w.now.node[i].free_pages * PAGE,
		};
	if (w.sampler && (w.sampler->traits & LIFT_SAMPLER_COUNTS)) {
		struct lift_kernel_counts c;

		stats.state = LIFT_STATS_TRACKING;
		if (lift_sampler_kernel_counts(&c) == 0) {
			stats.kernel_pgpromote_success = c.pgpromote_success;
			stats.kernel_pgdemote = c.pgdemote;
			stats.kernel_numa_pages_migrated = c.numa_pages_migrated;
			stats.kernel_numa_hint_faults = c.numa_hint_faults;
		}
	}
	lift_stats_publish(&stats);
}

/* --- the loop --- */

/* The kernel samples and moves: all that is left is to count. Until that changes. */
static bool watch_kernel(void)
{
	while (kernel_promotes() || lift_config_now()->sampler == LIFT_SAMPLER_KERNEL) {
		read_now();
		publish(true);
		if (!sleep_ns(COUNTS_EVERY_NS))
			return false;
	}
	return true;
}

/* True: once more from the choice of the sampler on. */
static bool promote(void)
{
	uint64_t looked_at = w.sys->now(w.sys->ctx);

	w.spent_at = lift_sys_thread_cpu_ns() - w.move_ns;
	while (!stopped()) {
		enum lift_step step;
		uint64_t spent;
		bool ok = true;

		read_now();
		spent = lift_sys_thread_cpu_ns() - w.move_ns;
		lift_promote_spent(&w.promote, spent - w.spent_at);
		w.spent_at = spent;
		w.promote.track_only = why_not_moved() != NULL;
		w.promote.ask_users = may_ask() && home_of_all() < 0;
		step = lift_promote_step(&w.promote, &w.now, &w.work);
		if (step == LIFT_STEP_ARM) {
			gather();
			continue;
		}
		if (!w.is_armed && !w.collected && w.nr_armed > 0 && !arm_all())
			return false;
		switch (step) {
		case LIFT_STEP_SLEEP:
			publish(false);
			tell();
			if (lift_promote_sampling(&w.promote)) {
				if (!sleep_sample(w.work.sleep_ns, w.work.cpu_ns))
					return false;
				break;
			}
			if (!sleep_ns(w.work.sleep_ns))
				return false;
			if (w.now.now_ns - looked_at > NODES_EVERY_NS) {
				looked_at = w.now.now_ns;
				if (lift_config_now()->sampler == LIFT_SAMPLER_AUTO &&
					kernel_promotes())
					return true;
			}
			ok = sync_tracked();
			break;
		case LIFT_STEP_WHERE:
			for (unsigned i = 0; i < w.work.nr; i++)
				for (uintptr_t a = w.work.range[i].start; a < w.work.range[i].end;
					a += LIFT_CHUNK_BYTES)
					locate_chunk(a);
			break;
		case LIFT_STEP_COLLECT:
			if (!w.collected)
				ok = collect_all();
			break;
		case LIFT_STEP_RELEASE:
			if (w.sampler->release) {
				/* What lies between was used, or is not armed: no harm. */
				sort(w.work.range, w.work.nr);
				w.work.nr = (unsigned)join(w.work.range, w.work.nr, ARM_GAP);
				w.sampler->release(w.work.range, w.work.nr);
			}
			break;
		case LIFT_STEP_ASK:
			if (!ask_users())
				return false;
			break;
		case LIFT_STEP_MOVE:
			ok = move();
			break;
		default:
			break;
		}
		if (!ok && w.failures >= 8)
			return end("the sampler does not work any more");
	}
	return false;
}

static bool begin(void)
{
	struct lift_promote_node *slow;
	struct lift_promote_node *fast;
	int how = 0;

	if (!w.sampler && !choose_sampler())
		return false;
	lift_log(LIFT_LOG_INFO, "sampler %s", w.sampler->name);
	if (w.sampler->traits & LIFT_SAMPLER_COUNTS)
		return true;
	if (!w.reason && lift_memsys_probe(&how) == 0 && how == LIFT_MEMSYS_NONE)
		moving_refused();
	w.now.now_ns = w.sys->now(w.sys->ctx);
	w.nodes_at = 0;
	read_nodes(w.now.now_ns);
	slow = some_node(false);
	fast = some_node(true);
	/* What cannot be measured here keeps what is usual. */
	(void)lift_measure_costs(
		w.sampler, w.sys, slow ? slow->node : -1, fast ? fast->node : -1, &w.costs);
	if (w.sampler->traits & LIFT_SAMPLER_WHOLE)
		w.costs.whole_ns = WHOLE_NS;
	if (w.ready) {
		/* It was stopped in between: what is known is still right. */
		lift_promote_restart(&w.promote);
	} else {
		if (make_records() < 0)
			return end("there is no address space for its records");
		w.ready = true;
	}
	w.promote.hold = w.sampler->traits & LIFT_SAMPLER_WHOLE ? LIFT_HOLD_SAMPLES : 0;
	w.promote.writes_only = !(w.sampler->traits & LIFT_SAMPLER_READS);
	w.promote.grain = w.sampler->traits & LIFT_SAMPLER_WHOLE ? LIFT_CHUNK_PAGES : 1;
	leave_stack_out();
	w.tracked_at = 0;
	w.failures = 0;
	w.nr_armed = 0;
	w.is_armed = w.collected = false;
	return sync_tracked();
}

static void finish(void)
{
	if (w.sampler)
		w.sampler->close();
	w.sampler = NULL;
	lift_fd_close(&w.pagemap);
	w.no_pagemap = false;
	w.cpu_base += lift_sys_thread_cpu_ns();
	w.move_base += w.move_ns;
	w.move_ns = 0;
	lift_stats_close();
}

/* Root's processes may change their user, and cannot open what is about them any more then. */
static void open_early(void)
{
	if (lift_syscall(SYS_geteuid, 0, 0, 0, 0, 0, 0) == 0 && choose_sampler())
		w.no_pagemap = lift_pagemap_open(&w.pagemap) < 0;
}

void lift_promoter_run(struct lift_orders *orders)
{
	bool again = true;

	w.orders = orders;
	w.sys = lift_memsys_linux();
	if (!w.began_at)
		w.began_at = w.sys->now(w.sys->ctx);
	w.reason = NULL;
	w.sampler = NULL;
	/* Before anything else is opened: a number that is in use for a moment is one that the
	 * program, which may count on it, does not get. */
	be_apart();
	if (!read_machine())
		return;
	open_early();
	if (!wait_for_size()) {
		finish();
		return;
	}
	(void)lift_stats_open(lift_config_now()->stats.text);
	while (again && begin()) {
		publish(true);
		again = w.sampler->traits & LIFT_SAMPLER_COUNTS ? watch_kernel() : promote();
		if (again) {
			w.sampler->close();
			w.sampler = NULL;
		}
	}
	if (!stopped()) {
		w.sampler = NULL;
		publish(true);
	}
	finish();
}

void lift_promoter_keep_off(bool yes)
{
	atomic_store_explicit(&keep_off, yes, memory_order_relaxed);
}

void lift_promoter_forked(void)
{
	if (w.sampler)
		w.sampler->forked();
	lift_stats_forked();
	lift_tracked_forked();
	/* The records are not there any more (MADV_DONTFORK). */
	memset(&w, 0, sizeof(w));
}
