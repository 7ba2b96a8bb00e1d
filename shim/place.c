// SPDX-License-Identifier: MIT
#include "shim/place.h"

#include <errno.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <time.h>

#include "policy/classify.h"
#include "policy/config.h"
#include "policy/interleave.h"
#include "policy/placement.h"
#include "shim/apart.h"
#include "shim/compiler.h"
#include "shim/lifecycle.h"
#include "shim/log.h"
#include "shim/os/rawsys.h"
#include "shim/os/sys.h"
#include "shim/os/topo_sysfs.h"
#include "shim/registry.h"
#include "shim/worker.h"

#define PAGE ((size_t)4096)
#define TMPFS_MAGIC_NR 0x01021994
#define HUGETLBFS_MAGIC_NR 0x958458f6
#define ALIGN_UP(x, a) (((x) + (a)-1) & ~((a)-1))

/* Of a region's record: the program's own policy lies on it. */
#define REGION_TAKEN (LIFT_REGION_USER << 0)
#define REGION_HEAP (LIFT_REGION_USER << 1)
#define REGION_SHARED (LIFT_REGION_USER << 2)
#define REGION_SMALL_PAGES (LIFT_REGION_USER << 3) /* no huge pages, so chunks may be small */
/*
 * Address space only (PROT_NONE) that would be interleaved: databases and runtimes reserve far more
 * than they use, so it is cut into chunks when a piece is opened. The upper half of the flags is
 * its size.
 */
#define REGION_RESERVED (LIFT_REGION_USER << 4)
/* The upper half: the mode it was bound with, to tell ours from what the program set since. */
#define REGION_MODE_SHIFT 16

/*
 * A round of credits: long enough for an even order, short enough that memory of other classes
 * shifts the interleave by a chunk or two and no more.
 */
#define ROUND_BYTES_PER_NODE (2 * LIFT_MIB)

_Atomic bool lift_placing;
static _Atomic unsigned fixed_changes;

/* All of it guarded by the registry's lock. */
static struct {
	bool read;
	struct lift_topology topo;
	struct lift_tiers tiers;
	struct lift_machine_view view;
	struct lift_credits credits; /* of the interleave over what it was last asked for */
	struct lift_nodeset credit_nodes;
	bool credits_by_weight;
	bool pagecache; /* our own task policy is set: local must be said aloud */
	int pagecache_mode;
	struct lift_nodeset pagecache_nodes;
	time_t fresh_until; /* CLOCK_MONOTONIC, seconds: when Mems_allowed is read again */
	uint64_t refused;   /* ranges that the kernel would not bind */
	uint64_t over_budget;
	bool no_chunks; /* the program needs all mappings it can have */
	bool again;     /* what was just decided is out of date: the cpuset has changed */
	struct lift_range
		early_heap; /* the heap's first granules, from before the machine was read */
} m;

static const char *errno_name(long err)
{
	switch (-err) {
	case EPERM:
		return "EPERM";
	case ENOSYS:
		return "ENOSYS";
	case EINVAL:
		return "EINVAL";
	case ENOMEM:
		return "ENOMEM";
	case EIO:
		return "EIO";
	case EFAULT:
		return "EFAULT";
	default:
		return "an error";
	}
}

/* --- the machine --- */

void lift_place_stop(void)
{
	atomic_store_explicit(&lift_placing, false, memory_order_relaxed);
}

/* Under the lock. False when there is nothing to place on. */
static bool read_machine(void)
{
	const struct lift_config *cfg = lift_config_now();
	struct lift_nodeset nodes;
	unsigned seccomp = 0;
	int err;

	m.read = true;
	err = lift_os_topology(&m.topo);
	if (err) {
		lift_place_stop();
		return false;
	}
	lift_topology_memory_nodes(&m.topo, &nodes);
	if (lift_os_mems_allowed(&m.view.allowed, &seccomp))
		m.view.allowed = nodes;
	lift_nodeset_and(&nodes, &nodes, &m.view.allowed);
	if (lift_nodeset_count(&nodes) < 2 ||
		lift_tiers_build(&m.topo, cfg->tiers.nr ? &cfg->tiers : NULL, &m.tiers)) {
		lift_place_stop();
		return false;
	}
	/*
	 * A filter that kills what it does not know cannot be told from one that returns EPERM
	 * without trying. Who asks for a placement by name takes the risk; nobody else's program is
	 * put at it.
	 */
	if (seccomp != 0 && !lift_config_given("NUMALIFT_PLACE")) {
		lift_place_stop();
		lift_log_given_up(
			"a seccomp filter is active, so memory is not placed; set NUMALIFT_PLACE "
			"(its default is slab:local,anon:local,file:interleave) to place it if "
			"the filter permits mbind");
		return false;
	}
	err = lift_os_probe_policies(&m.view, lift_nodeset_first(&nodes));
	if (err) {
		lift_place_stop();
		lift_log_given_up(
			"memory policies are refused here (%s), so memory is not placed; in a "
			"container, CAP_SYS_NICE permits them",
			errno_name(err));
		return false;
	}
	m.view.topo = &m.topo;
	m.view.tiers = &m.tiers;
	m.view.zone_reclaim = lift_os_number("/proc/sys/vm/zone_reclaim_mode", 0) != 0;
	m.view.kernel_balancing = lift_os_number("/proc/sys/kernel/numa_balancing", 0) != 0;
	lift_vmabudget_init(
		lift_registry_budget(), lift_os_number("/proc/sys/vm/max_map_count", 65530));
	return true;
}

/*
 * A cpuset can change at any time. Looked at again when a bind fails for it, and from time to time
 * in case there is more to use than before. Under the lock. True when it is different now.
 */
static bool reread_allowed(void)
{
	struct lift_nodeset now;

	if (lift_os_mems_allowed(&now, NULL) || lift_nodeset_equal(&now, &m.view.allowed))
		return false;
	m.view.allowed = now;
	return true;
}

static void refresh(void)
{
	enum { EVERY_S = 2 };
	struct timespec now;

	if (clock_gettime(CLOCK_MONOTONIC_COARSE, &now) || now.tv_sec < m.fresh_until)
		return;
	if (m.fresh_until != 0)
		(void)reread_allowed();
	m.fresh_until = now.tv_sec + EVERY_S;
}

static bool machine(void)
{
	return m.read ? lift_place_active() : read_machine();
}

void lift_place_boot(unsigned nodes)
{
	atomic_store_explicit(&lift_placing, nodes > 1, memory_order_relaxed);
}

void lift_place_sandboxed(void)
{
	if (!lift_config_given("NUMALIFT_PLACE"))
		lift_place_stop();
}

/* --- deciding --- */

/* The calling thread's own policy as policy/placement wants it; ours for the page cache is none. */
static int thread_policy(void)
{
	struct lift_nodeset nodes = {{0}};
	int mode = LIFT_MPOL_DEFAULT;
	long err = lift_sys_get_mempolicy(&mode, m.pagecache ? &nodes : NULL, NULL);

	if (err < 0)
		return -1;
	if (m.pagecache && mode == m.pagecache_mode &&
		lift_nodeset_equal(&nodes, &m.pagecache_nodes))
		return LIFT_MPOL_DEFAULT;
	return mode;
}

/* Ranges below this are left alone: a bind each would cost more than it can bring. */
static size_t worth_it(const struct lift_place_rule *rule)
{
	if (m.pagecache)
		return PAGE; /* unbound memory would follow the task policy */
	switch (rule->how) {
	case LIFT_HOW_LOCAL:
		return LIFT_HUGE_BYTES;
	case LIFT_HOW_INTERLEAVE:
	case LIFT_HOW_WEIGHTED:
		return 64 << 10;
	default:
		return PAGE; /* the user named the nodes, and means every page */
	}
}

static struct lift_credits *credits_for(const struct lift_decision *d)
{
	struct lift_node_weight weights[LIFT_TOPO_NODES];
	unsigned nr;

	if (m.credits.nr && m.credits_by_weight == d->by_weight &&
		lift_nodeset_equal(&m.credit_nodes, &d->nodes))
		return &m.credits;
	nr = lift_place_weights(lift_config_now(), &m.view, d, weights);
	if (lift_credits_init(&m.credits, weights, nr, nr * ROUND_BYTES_PER_NODE))
		return NULL;
	m.credit_nodes = d->nodes;
	m.credits_by_weight = d->by_weight;
	return &m.credits;
}

/* What the kernel took by itself counts for the fairness of what is steered. */
static void debit_local(size_t len)
{
	if (m.credits.nr)
		lift_credits_debit(&m.credits, lift_sys_cpu_node(), len);
}

/* --- binding --- */

static bool bind(uintptr_t start, uintptr_t end, int mode, const struct lift_nodeset *nodes)
{
	long err = lift_sys_mbind(
		(void *)start, end - start, mode, mode == LIFT_MPOL_LOCAL ? NULL : nodes, 0);

	if (err >= 0)
		return true;
	if (err == -EINVAL && reread_allowed()) {
		m.again = true;
		return false;
	}
	m.refused++;
	if (err == -EPERM || err == -ENOSYS) {
		lift_place_stop();
		lift_log_given_up(
			"mbind is refused (%s), so memory is no longer placed", errno_name(err));
	} else if (m.refused == 1) {
		lift_log_given_up(
			"mbind failed (%s) for %zu bytes, which stay where the kernel puts them; "
			"further cases are only counted",
			errno_name(err), end - start);
	}
	return false;
}

/* A policy that somebody set on this piece of a shared object, in this process or another one. */
static bool object_has_policy(uintptr_t addr)
{
	int mode = LIFT_MPOL_DEFAULT;

	return lift_sys_get_mempolicy(&mode, NULL, (void *)addr) < 0 || mode != LIFT_MPOL_DEFAULT;
}

/*
 * Chunks are huge-page sized so that no huge page is cut. Where the memory has none anyway (tmpfs
 * without the huge= option), a small region can be spread more evenly than in one or two chunks per
 * node.
 */
static uint64_t chunk_of(uint64_t bytes, uint64_t page, uint64_t max)
{
	enum { PIECES = 128, SMALLEST = 256 << 10 };
	uint64_t batch = lift_config_now()->batch_bytes;
	uint64_t chunk;

	if (page < LIFT_HUGE_BYTES && !lift_config_given("NUMALIFT_BATCH")) {
		chunk = SMALLEST;
		while (chunk < batch && chunk * PIECES < bytes)
			chunk *= 2;
		batch = chunk;
	}
	chunk = lift_chunk_bytes(bytes, batch, max);
	return chunk < page ? page : chunk;
}

/*
 * Batch interleave: neighbouring chunks of one node are bound with one call. Returns how many VMAs
 * there are more than before. Chunk borders lie on multiples of the chunk size, so that no huge
 * page is cut and the first and last chunk are what is left over.
 */
static uint32_t bind_chunks(struct lift_range r, const struct lift_decision *d, uint64_t page,
	bool shared, uint64_t vmas)
{
	uint64_t max = vmas < LIFT_CHUNKS_MAX ? vmas : LIFT_CHUNKS_MAX;
	struct lift_credits *credits = credits_for(d);
	struct lift_nodeset one;
	uintptr_t run = r.start;
	uintptr_t at;
	uintptr_t next;
	uint64_t chunk;
	uint32_t runs = 0;
	int run_node = -1;
	int node;

	if (!credits)
		return 0;
	chunk = chunk_of(r.end - r.start, page, max > 1 ? max - 1 : 1);
	for (at = r.start; at <= r.end; at = next) {
		next = (at & ~(chunk - 1)) + chunk;
		if (next > r.end || next < at)
			next = r.end;
		if (at == r.end)
			node = -1;
		else if (shared && object_has_policy(at))
			node = -1;
		else
			node = lift_credits_take(credits, NULL, next - at);
		if (node != run_node) {
			if (run_node >= 0) {
				lift_nodeset_zero(&one);
				lift_nodeset_set(&one, run_node);
				if (!bind(run, at, d->mode, &one))
					return runs;
				runs++;
			}
			run = at;
			run_node = node;
		}
		if (at == r.end)
			break;
	}
	return runs;
}

static void log_decision(
	enum lift_class cls, struct lift_range r, const struct lift_decision *d, uint32_t vmas)
{
	if (!lift_log_enabled(LIFT_LOG_INFO))
		return;
	lift_log(LIFT_LOG_INFO, "%s %zu bytes at %p: %s, %u mappings (%s)", lift_class_name(cls),
		lift_range_bytes(r), (void *)r.start, lift_place_kind_name(d->kind), vmas, d->why);
}

/* Does the registry's record at addr have the same policy as one of class cls placed as a whole? */
static bool continues(uintptr_t addr, enum lift_class cls, uint32_t flags)
{
	const struct lift_region *n = lift_regions_find(lift_registry_regions(), addr);

	return n && n->info.cls == cls && n->info.kind == LIFT_PLACE_NODES &&
	       n->info.flags == flags;
}

/* A range of one policy costs a border at each end, except where the kernel merges it with a like
 * one. */
static uint64_t cost_of_nodes(struct lift_range r, enum lift_class cls, uint32_t flags)
{
	return continues(r.start - 1, cls, flags) || continues(r.end, cls, flags) ? 0 : 2;
}

/* One policy for all. False when the kernel would not have it. */
static bool bind_nodes(struct lift_range r, const struct lift_decision *d, bool shared)
{
	return !(shared && object_has_policy(r.start)) && bind(r.start, r.end, d->mode, &d->nodes);
}

static void decide(
	const struct lift_range *r, uint64_t whole, enum lift_class cls, struct lift_decision *ret)
{
	int own = thread_policy();

	if (lift_place_decide(
		    lift_config_now(), &m.view, cls, whole, own, lift_sys_cpu_node(), ret)) {
		*ret = (struct lift_decision){.kind = LIFT_PLACE_NONE, .why = "no such class"};
		return;
	}
	if (ret->kind != LIFT_PLACE_NONE)
		return;
	debit_local(lift_range_bytes(*r));
	if (m.pagecache && own == LIFT_MPOL_DEFAULT) {
		ret->kind = LIFT_PLACE_NODES;
		ret->mode = LIFT_MPOL_LOCAL;
		ret->why = "local, against the task policy for the page cache";
	}
}

static bool within_budget(uint64_t want)
{
	if (want <= lift_vmabudget_left(lift_registry_budget()))
		return true;
	if (m.over_budget++ == 0)
		lift_log_given_up(
			"the budget of mappings (a quarter of vm.max_map_count) is used up, "
			"so further memory is not placed; raise vm.max_map_count");
	return false;
}

/* A size in 16 bits, rounded down to one part in 512: ten bits of it and how far they are shifted.
 */
static uint32_t pack_size(uint64_t bytes)
{
	uint32_t shift = 0;

	while (bytes >> shift > 1023)
		shift++;
	return shift << 10 | (uint32_t)(bytes >> shift);
}

static uint64_t unpack_size(uint32_t packed)
{
	return (uint64_t)(packed & 1023) << (packed >> 10);
}

/*
 * Decides about a fresh range and binds it; `whole` is the size that the rule goes by, of which
 * this may be a piece. Under the lock.
 */
static void place_as_part(struct lift_range r, uint64_t whole, enum lift_class cls, uint32_t flags,
	uint64_t page, bool shared, bool reserved)
{
	const struct lift_place_rule *rule = lift_config_rule(lift_config_now(), cls, whole);
	struct lift_vmabudget *budget = lift_registry_budget();
	struct lift_region_info info = {.range = r, .cls = cls};
	struct lift_decision d;
	uint64_t left;
	bool done = false;

	flags |= (shared ? REGION_SHARED : 0) | (page < LIFT_HUGE_BYTES ? REGION_SMALL_PAGES : 0);
	lift_registry_cut(r);
	if (lift_range_bytes(r) < worth_it(rule) || !machine())
		return;
	refresh();
	for (int tries = 0; tries < 2 && !done; tries++) {
		m.again = false;
		decide(&r, whole, cls, &d);
		left = lift_vmabudget_left(budget);
		info.flags = flags | (uint32_t)d.mode << REGION_MODE_SHIFT;
		if (d.kind == LIFT_PLACE_NODES) {
			info.vmas = (uint32_t)cost_of_nodes(r, cls, info.flags);
			done = within_budget(info.vmas) && bind_nodes(r, &d, shared);
		} else if (d.kind == LIFT_PLACE_CHUNKS && reserved) {
			info.flags =
				flags | REGION_RESERVED | pack_size(whole) << REGION_MODE_SHIFT;
			lift_registry_add(&info);
			return;
		} else if (d.kind == LIFT_PLACE_CHUNKS) {
			info.vmas = !m.no_chunks && within_budget(2)
					    ? bind_chunks(r, &d, page, shared, left)
					    : 0;
			done = info.vmas > 0 && !m.again;
		}
		if (!m.again)
			break;
	}
	if (done) {
		info.kind = d.kind;
		if (d.kind == LIFT_PLACE_CHUNKS)
			info.flags |= LIFT_REGION_SEPARATE;
		(void)lift_vmabudget_take(budget, info.vmas);
	} else {
		info.vmas = 0;
		info.flags = flags;
	}
	lift_registry_add(&info);
	log_decision(cls, r, &d, info.vmas);
}

static void place(
	struct lift_range r, enum lift_class cls, uint32_t flags, uint64_t page, bool shared)
{
	place_as_part(r, lift_range_bytes(r), cls, flags, page, shared, false);
}

/* The size of the reservation that addr lies in, if it is one; else `otherwise`. Under the lock. */
static uint64_t reserved_size(uintptr_t addr, uint64_t otherwise)
{
	const struct lift_region *n = lift_regions_find(lift_registry_regions(), addr);

	return n && (n->info.flags & REGION_RESERVED)
		       ? unpack_size(n->info.flags >> REGION_MODE_SHIFT)
		       : otherwise;
}

static struct lift_range range_of(uintptr_t start, size_t len)
{
	return (struct lift_range){start, start + ALIGN_UP(len, PAGE)};
}

/* --- what happens to mappings --- */

/* Anonymous memory can come in huge pages at any time (khugepaged), so it is never cut below one.
 */
static uint64_t huge_page_of(int flags)
{
	unsigned shift;

	if (!(flags & MAP_HUGETLB))
		return LIFT_HUGE_BYTES;
	shift = (unsigned)flags >> 26 & 0x3f;
	return shift ? (uint64_t)1 << shift : LIFT_HUGE_BYTES;
}

void lift_place_mapped(uintptr_t start, size_t len, int prot, int flags, int fd)
{
	struct lift_request req = {.origin = LIFT_ORIGIN_MMAP_FILE_PRIVATE, .bytes = len};
	uint64_t page = huge_page_of(flags);
	bool shared = (flags & MAP_TYPE) != MAP_PRIVATE;
	long block;
	long fs;

	if (flags & MAP_ANONYMOUS) {
		req.origin = shared ? LIFT_ORIGIN_MMAP_ANON_SHARED : LIFT_ORIGIN_MMAP_ANON_PRIVATE;
	} else if (shared && fd >= 0) {
		fs = lift_sys_fs_type(fd);
		req.origin = fs == TMPFS_MAGIC_NR       ? LIFT_ORIGIN_MMAP_TMPFS_SHARED
			     : fs == HUGETLBFS_MAGIC_NR ? LIFT_ORIGIN_MMAP_HUGETLB_FILE
							: LIFT_ORIGIN_MMAP_FILE_SHARED;
		block = fs == TMPFS_MAGIC_NR || fs == HUGETLBFS_MAGIC_NR ? lift_sys_block_size(fd)
									 : 0;
		if (block < 0)
			req.origin = LIFT_ORIGIN_MMAP_FILE_SHARED; /* a device on devtmpfs */
		else if (block >= (long)PAGE && (block & (block - 1)) == 0)
			page = (uint64_t)block;
	}
	/* The kernel rounds such lengths up. */
	if ((flags & MAP_HUGETLB) || req.origin == LIFT_ORIGIN_MMAP_HUGETLB_FILE)
		len = ALIGN_UP(len, page);
	if (!lift_registry_enter())
		return;
	/* The page cache of a regular file follows the task policy, whatever its mapping says
	 * (mbind(2)). */
	if (req.origin == LIFT_ORIGIN_MMAP_FILE_SHARED ||
		req.origin == LIFT_ORIGIN_MMAP_FILE_PRIVATE)
		lift_registry_cut(range_of(start, len));
	else
		place_as_part(range_of(start, len), reserved_size(start, len), lift_classify(&req),
			0, page, shared, prot == PROT_NONE && !shared);
	lift_registry_leave();
}

void lift_place_opened(uintptr_t start, size_t len)
{
	struct lift_range r = range_of(start, len);
	uint64_t whole;

	if (!lift_registry_enter())
		return;
	whole = reserved_size(r.start, 0);
	if (whole)
		place_as_part(r, whole, LIFT_CLASS_ANON, 0, LIFT_HUGE_BYTES, false, false);
	lift_registry_leave();
}

void lift_place_attached(uintptr_t start, size_t len)
{
	struct lift_request req = {.origin = LIFT_ORIGIN_SYSV_SHM, .bytes = len};

	if (!lift_registry_enter())
		return;
	place(range_of(start, len), lift_classify(&req), 0, LIFT_HUGE_BYTES, true);
	lift_registry_leave();
}

void lift_place_detached(uintptr_t start)
{
	struct lift_region *r;

	if (!lift_registry_enter())
		return;
	r = lift_regions_find(lift_registry_regions(), start);
	if (r && r->info.range.start == start)
		lift_registry_cut(r->info.range);
	lift_registry_leave();
}

/* Decides about what the heap got before the machine was read. Under the lock. */
static void place_early_heap(void)
{
	struct lift_range r = m.early_heap;

	m.early_heap = (struct lift_range){0, 0};
	if (!lift_range_empty(r))
		place(r, LIFT_CLASS_SLAB, REGION_HEAP, LIFT_HUGE_BYTES, false);
}

void lift_place_heap(uintptr_t start, size_t len)
{
	struct lift_range r = range_of(start, len);

	if (!lift_registry_enter())
		return;
	/*
	 * Every process gets one; most never need a second. What is touched until the machine is
	 * read lies where the kernel's default puts it, which is local as well: unless something
	 * else was asked for.
	 */
	if (!m.read && lift_range_empty(m.early_heap) && !lift_config_given("NUMALIFT_PLACE") &&
		!lift_config_given("NUMALIFT_TIERS")) {
		m.early_heap = r;
	} else {
		place(r, LIFT_CLASS_SLAB, REGION_HEAP, LIFT_HUGE_BYTES, false);
		place_early_heap();
	}
	lift_registry_leave();
}

void lift_place_block(uintptr_t start, size_t len)
{
	struct lift_request req = {.origin = LIFT_ORIGIN_HEAP, .bytes = len};

	if (!lift_registry_enter())
		return;
	place(range_of(start, len), lift_classify(&req), 0, LIFT_HUGE_BYTES, false);
	lift_registry_leave();
}

void lift_place_unmapped(uintptr_t start, size_t len)
{
	if (!lift_registry_enter())
		return;
	lift_registry_cut(range_of(start, len));
	lift_registry_leave();
}

bool lift_place_populates_late(void)
{
	bool yes;

	if (!lift_registry_enter())
		return false;
	/* MADV_POPULATE_ came with 5.14; this with 5.15. */
	yes = machine() && m.view.has_preferred_many;
	lift_registry_leave();
	return yes;
}

bool lift_place_cut_up(uintptr_t start, size_t len)
{
	struct lift_range r = range_of(start, len);
	const struct lift_region *region = lift_regions_first(lift_registry_regions(), r.start);

	return region && lift_range_overlaps(region->info.range, r);
}

void lift_place_remapped(
	uintptr_t old, size_t old_len, uintptr_t new, size_t new_len, bool keep_old)
{
	struct lift_range from = range_of(old, old_len);
	struct lift_range to = range_of(new, new_len);
	struct lift_region *region;
	struct lift_region_info info = {.flags = REGION_TAKEN};
	uintptr_t grown;

	/* An old size of 0 duplicates a shared mapping: its object has the policy, there is nothing
	 * to do. */
	if (lift_range_empty(from) || keep_old) {
		lift_registry_cut(to);
		return;
	}
	region = lift_regions_find(lift_registry_regions(), from.end - 1);
	if (region)
		info = region->info;
	/* The policies moved with the mapping. What is new at its end would all follow the last
	 * chunk. */
	if (lift_range_bytes(to) > lift_range_bytes(from) && info.kind == LIFT_PLACE_CHUNKS &&
		!(info.flags & REGION_TAKEN)) {
		grown = to.start + lift_range_bytes(from);
		lift_registry_move(from, (struct lift_range){to.start, grown});
		/*
		 * The new part has inherited the last chunk's policy, and mbind does nothing for a
		 * range that has the policy already, also not for the object behind it, which
		 * counts.
		 */
		(void)lift_sys_mbind((void *)grown, to.end - grown, LIFT_MPOL_DEFAULT, NULL, 0);
		place((struct lift_range){grown, to.end}, info.cls, info.flags & REGION_HEAP,
			info.flags & REGION_SMALL_PAGES ? PAGE : LIFT_HUGE_BYTES,
			(info.flags & REGION_SHARED) != 0);
	} else {
		lift_registry_move(from, to);
	}
}

/* --- the program's own policies --- */

void lift_place_range_taken(uintptr_t start, size_t len)
{
	struct lift_region_info info = {
		.range = range_of(start, len),
		.cls = LIFT_CLASS_ANON,
		.kind = LIFT_PLACE_NONE,
		.flags = REGION_TAKEN,
	};

	if (lift_range_empty(info.range) || !lift_registry_enter())
		return;
	atomic_fetch_add_explicit(&fixed_changes, 1, memory_order_relaxed);
	lift_registry_add(&info);
	lift_registry_leave();
}

/*
 * Does the range still have the policy that it got here? The program may have bound it by a raw
 * call. MPOL_F_STATIC_NODES is what apart.c tells regions apart by.
 */
static bool still_ours(const struct lift_region_info *info)
{
	int mode = LIFT_MPOL_DEFAULT;

	return info->kind != LIFT_PLACE_NONE && !(info->flags & REGION_TAKEN) &&
	       lift_sys_get_mempolicy(&mode, NULL, (void *)info->range.start) == 0 &&
	       (mode & ~LIFT_MPOL_F_STATIC_NODES) == (int)(info->flags >> REGION_MODE_SHIFT);
}

bool lift_place_may_reword(struct lift_range range, int mode)
{
	const struct lift_region *r = lift_regions_first(lift_registry_regions(), range.start);
	bool known = false;

	for (; r && r->info.range.start < range.end; r = lift_regions_next(r)) {
		const struct lift_region_info *i = &r->info;
		bool ours = i->kind == LIFT_PLACE_NODES && !(i->flags & REGION_SHARED) &&
			    mode == (int)(i->flags >> REGION_MODE_SHIFT);

		if ((i->flags & REGION_TAKEN) || i->kind == LIFT_PLACE_CHUNKS ||
			(mode != LIFT_MPOL_DEFAULT && !ours))
			return false;
		known = true;
	}
	return known || mode == LIFT_MPOL_DEFAULT;
}

/* Takes the policies off all records of these kinds. True when there was one. Under the lock. */
static bool unbind_all(bool chunks_only)
{
	struct lift_regions *regions = lift_registry_regions();
	struct lift_region *r;
	bool any = false;

	for (r = lift_regions_first(regions, 0); r; r = lift_regions_next(r)) {
		if (chunks_only && r->info.kind != LIFT_PLACE_CHUNKS)
			continue;
		if (still_ours(&r->info)) {
			(void)lift_sys_mbind((void *)r->info.range.start,
				lift_range_bytes(r->info.range), LIFT_MPOL_DEFAULT, NULL, 0);
			any = true;
		}
		lift_vmabudget_give(lift_registry_budget(), lift_regions_charge(regions, r, 0));
		r->info.kind = LIFT_PLACE_NONE;
	}
	return any;
}

void lift_place_thread_policy(int mode)
{
	bool none = (mode & ~LIFT_MPOL_F_MASK) == LIFT_MPOL_DEFAULT;

	lift_worker_policy(!none);
	if (none || !lift_registry_enter())
		return;
	(void)unbind_all(false);
	(void)lift_apart_give_back();
	lift_registry_leave();
}

bool lift_place_give_mappings_back(void)
{
	bool any;

	if (!lift_registry_enter())
		return false;
	any = unbind_all(true);
	any = lift_apart_give_back() || any;
	m.over_budget++; /* no message: the program is at its limit, not we at ours */
	m.no_chunks = true;
	lift_registry_leave();
	return any;
}

/* --- what the worker asks --- */

bool lift_place_machine(struct lift_place_machine *ret)
{
	struct lift_nodeset nodes = {{0}};
	int mode = LIFT_MPOL_DEFAULT;
	bool ok;

	if (!lift_registry_enter())
		return false;
	ok = machine();
	if (ok) {
		(void)reread_allowed();
		ret->topo = m.topo;
		ret->tiers = m.tiers;
		ret->allowed = m.view.allowed;
		ret->task_mode = thread_policy();
		if (ret->task_mode != LIFT_MPOL_DEFAULT &&
			lift_sys_get_mempolicy(&mode, &nodes, NULL) >= 0 &&
			(mode & ~LIFT_MPOL_F_MASK) == LIFT_MPOL_BIND)
			lift_nodeset_and(&ret->allowed, &ret->allowed, &nodes);
	}
	lift_registry_leave();
	return ok;
}

/* Did the user name the nodes of this region? By its size: of what was merged since, roughly. */
static bool by_name(const struct lift_region_info *info)
{
	const struct lift_place_rule *rule =
		lift_config_rule(lift_config_now(), info->cls, lift_range_bytes(info->range));

	return info->kind != LIFT_PLACE_NONE && rule && rule->how != LIFT_HOW_LOCAL &&
	       rule->how != LIFT_HOW_INTERLEAVE;
}

unsigned lift_place_fixed_changes(void)
{
	return atomic_load_explicit(&fixed_changes, memory_order_relaxed);
}

size_t lift_place_fixed(struct lift_range *ret, size_t max)
{
	const struct lift_region *r;
	size_t nr = 0;

	if (!lift_registry_enter())
		return 0;
	for (r = lift_regions_first(lift_registry_regions(), 0); r && nr < max;
		r = lift_regions_next(r))
		if ((r->info.flags & REGION_TAKEN) || by_name(&r->info))
			ret[nr++] = r->info.range;
	lift_registry_leave();
	return nr;
}

/* --- page cache --- */

/* The nodes that NUMALIFT_PAGECACHE asks for, as far as this process may use them. Under the lock.
 */
static void pagecache_nodes(struct lift_nodeset *ret)
{
	const struct lift_pagecache_option *o = &lift_config_now()->pagecache;

	if (o->kind == LIFT_PAGECACHE_INTERLEAVE || o->nodes.kind == LIFT_NODES_FAST)
		*ret = *lift_tiers_fast(&m.tiers);
	else if (o->nodes.kind == LIFT_NODES_ALL)
		lift_topology_memory_nodes(&m.topo, ret);
	else
		*ret = o->nodes.set;
	lift_nodeset_and(ret, ret, &m.view.allowed);
}

/*
 * The page cache follows the task policy of whoever reads or writes a file first (mbind(2), NOTES),
 * so that one is set, on the main thread before there are others: all threads inherit it. What else
 * would follow it is bound by place(). A policy that the process was started with is its own,
 * unless it is exactly this one: then the parent had the same library.
 */
static void pagecache_start(void)
{
	struct lift_nodeset have = {{0}};
	int mode = LIFT_MPOL_DEFAULT;
	long err;

	pagecache_nodes(&m.pagecache_nodes);
	m.pagecache_mode = LIFT_MPOL_INTERLEAVE;
	if (lift_nodeset_count(&m.pagecache_nodes) < 2) {
		lift_log_given_up(
			"NUMALIFT_PAGECACHE: fewer than two of the nodes can be used, so the page "
			"cache stays local");
		return;
	}
	if (lift_sys_get_mempolicy(&mode, &have, NULL) < 0)
		return;
	if (mode != LIFT_MPOL_DEFAULT &&
		(mode != m.pagecache_mode || !lift_nodeset_equal(&have, &m.pagecache_nodes)))
		return;
	err = lift_sys_set_mempolicy(m.pagecache_mode, &m.pagecache_nodes);
	if (err < 0)
		lift_log_given_up(
			"NUMALIFT_PAGECACHE: set_mempolicy is refused (%s), so the page cache "
			"stays local",
			errno_name(err));
	else
		m.pagecache = true;
}

void lift_place_start(void)
{
	if (lift_config_now()->pagecache.kind == LIFT_PAGECACHE_OFF || !lift_registry_enter())
		return;
	if (lift_place_active() && machine()) {
		pagecache_start();
		place_early_heap();
	}
	lift_registry_leave();
}
