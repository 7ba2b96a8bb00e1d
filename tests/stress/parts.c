// SPDX-License-Identifier: MIT
/*
 * The library's own parts, without mimalloc and interposition, used by many threads at once in a
 * program that a sanitizer watches. The machine is made up: two nodes of different sizes and a slow
 * one, on which every policy is accepted and nothing happens.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "policy/config.h"
#include "policy/placement.h"
#include "policy/regions.h"
#include "shim/apart.h"
#include "shim/bootalloc.h"
#include "shim/fork.h"
#include "shim/heap.h"
#include "shim/lifecycle.h"
#include "shim/lock.h"
#include "shim/log.h"
#include "shim/os/rawsys.h"
#include "shim/os/sys.h"
#include "shim/os/topo_sysfs.h"
#include "shim/place.h"
#include "shim/registry.h"
#include "shim/thread.h"
#include "shim/vm.h"
#include "shim/worker.h"

enum { THREADS = 4, ROUNDS = 300 };

/* A report goes where the other output goes: descriptor 2 is used by the test of messages. */
const char *__tsan_default_options(void);
const char *__tsan_default_options(void)
{
	return "log_path=stdout";
}

const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "log_path=stdout";
}

const char *__ubsan_default_options(void);
const char *__ubsan_default_options(void)
{
	return "log_path=stdout:halt_on_error=1:print_stacktrace=1";
}

/* --- what the parts expect of the others -------------------------------------------------------
 */

static struct lift_config config;
int lift_mode_now = LIFT_MODE_ACTIVE;

void lift_boot(void)
{
}

const struct lift_config *lift_config_now(void)
{
	return &config;
}

bool lift_config_given(const char *name)
{
	(void)name;
	return false;
}

void lift_heap_drain(void)
{
}

void lift_heap_forget_thread(void)
{
}

/* No worker. */
_Atomic bool lift_worker_possible;
bool lift_worker_was_possible;
_Atomic bool lift_worker_undecided;

void lift_worker_count(size_t len)
{
	(void)len;
}

void lift_worker_fork_child(void)
{
}

void lift_worker_policy(bool own)
{
	(void)own;
}

bool lift_apart_give_back(void)
{
	return false;
}

int lift_os_topology(struct lift_topology *ret)
{
	static const uint64_t mib[] = {512, 1024, 2048};

	lift_topology_init(ret);
	for (int id = 0; id < 3; id++) {
		struct lift_topo_node *n = &ret->node[lift_topology_add(ret, id)];

		n->has_memory = true;
		n->has_cpu = id < 2;
		n->total_bytes = mib[id] << 20;
		n->free_bytes = n->total_bytes;
		n->read_latency_ns = id < 2 ? 80 : 300;
		n->perf_source = LIFT_FACT_HMAT;
	}
	return 0;
}

int lift_os_memory_nodes(struct lift_nodeset *ret)
{
	lift_nodeset_zero(ret);
	for (int id = 0; id < 3; id++)
		lift_nodeset_set(ret, id);
	return 0;
}

void lift_os_refresh_free(struct lift_topology *topo)
{
	(void)topo;
}

int lift_os_mems_allowed(struct lift_nodeset *ret, unsigned *ret_seccomp)
{
	if (ret_seccomp)
		*ret_seccomp = 0;
	return lift_os_memory_nodes(ret);
}

uint64_t lift_os_number(const char *path, uint64_t otherwise)
{
	(void)path;
	return otherwise;
}

int lift_os_probe_policies(struct lift_machine_view *ret, int node)
{
	(void)node;
	ret->has_preferred_many = true;
	return 0;
}

/* In the place of those of shim/os/sys.c (--wrap). */
long __wrap_lift_sys_mbind(
	void *addr, size_t len, int mode, const struct lift_nodeset *nodes, unsigned flags);
long __wrap_lift_sys_mbind(
	void *addr, size_t len, int mode, const struct lift_nodeset *nodes, unsigned flags)
{
	(void)addr, (void)mode, (void)nodes, (void)flags;
	return len > 0 ? 0 : -1;
}

long __wrap_lift_sys_get_mempolicy(int *ret_mode, struct lift_nodeset *ret_nodes, void *addr);
long __wrap_lift_sys_get_mempolicy(int *ret_mode, struct lift_nodeset *ret_nodes, void *addr)
{
	(void)addr;
	if (ret_nodes)
		lift_nodeset_zero(ret_nodes);
	*ret_mode = LIFT_MPOL_DEFAULT;
	return 0;
}

int __wrap_lift_sys_cpu_node(void);
int __wrap_lift_sys_cpu_node(void)
{
	return sched_getcpu() & 1;
}

/* By libc, where the sanitizer sees that an address that comes again is new memory. */
long __wrap_lift_sys_mmap(void *addr, size_t len, int prot, int flags, int fd, off_t off);
long __wrap_lift_sys_mmap(void *addr, size_t len, int prot, int flags, int fd, off_t off)
{
	void *p = mmap(addr, len, prot, flags, fd, off);

	return p == MAP_FAILED ? -errno : (long)p;
}

long __wrap_lift_sys_munmap(void *addr, size_t len);
long __wrap_lift_sys_munmap(void *addr, size_t len)
{
	return munmap(addr, len) ? -errno : 0;
}

/* --- the threads --------------------------------------------------------------------------------
 */

static pthread_barrier_t together;
static _Atomic int faults;

static void expect(bool holds)
{
	if (!holds)
		atomic_fetch_add_explicit(&faults, 1, memory_order_relaxed);
}

/* xorshift: which step comes next. */
static unsigned dice(unsigned *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 17;
	*state ^= *state << 5;
	return *state;
}

static void *take_pieces(void *arg)
{
	enum { PIECES = 2000 };
	unsigned seed = (unsigned)(size_t)arg;
	unsigned char *piece[PIECES];
	size_t size[PIECES];

	pthread_barrier_wait(&together);
	for (int i = 0; i < PIECES; i++) {
		size_t align = (size_t)1 << dice(&seed) % 9;

		size[i] = 1 + dice(&seed) % 600;
		piece[i] = lift_bootalloc(size[i], align);
		expect(piece[i] && ((size_t)piece[i] & (align - 1)) == 0);
		if (!piece[i])
			return NULL;
		for (size_t j = 0; j < size[i]; j++)
			expect(piece[i][j] == 0);
		memset(piece[i], (int)(size_t)arg, size[i]);
	}
	for (int i = 0; i < PIECES; i++)
		for (size_t j = 0; j < size[i]; j++)
			expect(piece[i][j] == (unsigned char)(size_t)arg);
	return NULL;
}

/* Ranges of all threads lie among each other. */
static void *edit_registry(void *arg)
{
	unsigned seed = (unsigned)(size_t)arg;
	sigset_t blocked;

	pthread_barrier_wait(&together);
	for (int i = 0; i < ROUNDS * 10; i++) {
		uintptr_t start = (uintptr_t)(dice(&seed) % 4096) << 21;
		struct lift_range range = {start, start + ((uintptr_t)(1 + dice(&seed) % 8) << 20)};
		struct lift_region_info info = {
			.range = range, .cls = LIFT_CLASS_ANON, .kind = LIFT_PLACE_CHUNKS};

		if (!lift_registry_enter()) {
			expect(false);
			continue;
		}
		/* A handler must not find it half-way: signals wait. */
		expect(pthread_sigmask(SIG_BLOCK, NULL, &blocked) == 0 &&
			sigismember(&blocked, SIGUSR1));
		switch (dice(&seed) % 4) {
		case 0:
			lift_registry_cut(range);
			break;
		case 1:
			lift_registry_move(range,
				(struct lift_range){range.start ^ (1 << 22),
					(range.start ^ (1 << 22)) + lift_range_bytes(range)});
			break;
		default:
			lift_registry_add(&info);
		}
		if (i % 64 == 0)
			expect(lift_regions_check(lift_registry_regions()));
		lift_registry_leave();
	}
	return NULL;
}

static void *place_mappings(void *arg)
{
	enum { SLOTS = 6 };
	unsigned seed = (unsigned)(size_t)arg;
	struct {
		uintptr_t start;
		size_t len;
	} slot[SLOTS] = {{0, 0}};
	int file = memfd_create("parts", MFD_CLOEXEC);

	expect(file >= 0 && ftruncate(file, 64 << 20) == 0);
	pthread_barrier_wait(&together);
	for (int i = 0; i < ROUNDS; i++) {
		unsigned k = dice(&seed) % SLOTS;
		size_t len = (size_t)(1 + dice(&seed) % 40) << 20;
		bool anonymous = dice(&seed) % 2;
		long ret;

		if (!slot[k].len) {
			ret = lift_vm_mmap(NULL, len, PROT_READ | PROT_WRITE,
				(anonymous ? MAP_ANONYMOUS | MAP_PRIVATE : MAP_SHARED) |
					MAP_NORESERVE,
				anonymous ? -1 : file, 0);
			expect(!lift_syserr(ret));
		} else if (dice(&seed) % 2) {
			ret = lift_vm_remap(
				(void *)slot[k].start, slot[k].len, len, MREMAP_MAYMOVE, NULL);
			expect(!lift_syserr(ret));
		} else {
			ret = lift_vm_unmap((void *)slot[k].start, slot[k].len);
			expect(ret == 0);
			len = 0;
		}
		slot[k].start = (uintptr_t)ret;
		slot[k].len = lift_syserr(ret) ? 0 : len;
		if (i % 50 == 7)
			lift_place_range_taken(slot[k].start, slot[k].len);
	}
	for (unsigned k = 0; k < SLOTS; k++)
		if (slot[k].len)
			expect(lift_vm_unmap((void *)slot[k].start, slot[k].len) == 0);
	close(file);
	return NULL;
}

static void *say_lines(void *arg)
{
	pthread_barrier_wait(&together);
	for (int i = 0; i < ROUNDS; i++) {
		lift_log(LIFT_LOG_WARN, "thread %zu says %d of %u %s", (size_t)arg, i, 1u, "lines");
		lift_log(LIFT_LOG_DEBUG, "%s", "and this is not seen");
		lift_log_given_up("the first of these is a warning, in thread %zu", (size_t)arg);
	}
	return NULL;
}

/* One short life after another, in and out of the heap all the time. */
static void *live_shortly(void *arg)
{
	(void)arg;
	for (int i = 0; i < 30; i++) {
		if (lift_thread_fast(16) || !lift_thread_enter(true))
			continue;
		expect(!lift_thread_enter(true)); /* as a signal handler would find it */
		if (i % 10 == 9)
			lift_thread_starved();
		else
			lift_thread_fed();
		lift_thread_leave();
		if (i % 8 == 0) {
			lift_thread_all_slow(LIFT_SLOW_NO_SPARE);
			lift_thread_all_fast(LIFT_SLOW_NO_SPARE);
		}
	}
	return NULL;
}

static void *start_threads(void *arg)
{
	pthread_t t[2];

	(void)arg;
	pthread_barrier_wait(&together);
	for (int i = 0; i < ROUNDS / 6; i++) {
		for (int k = 0; k < 2; k++)
			if (pthread_create(&t[k], NULL, live_shortly, NULL))
				abort();
		for (int k = 0; k < 2; k++)
			pthread_join(t[k], NULL);
	}
	return NULL;
}

/* Forks while others are in the registry and in the heap; the child finds both usable. */
static void *fork_often(void *arg)
{
	int status;

	(void)arg;
	pthread_barrier_wait(&together);
	for (int i = 0; i < 25; i++) {
		pid_t pid = fork();

		if (pid == 0) {
			bool good = lift_registry_enter();

			if (good) {
				lift_registry_cut((struct lift_range){1 << 21, 1 << 24});
				good = lift_regions_check(lift_registry_regions());
				lift_registry_leave();
			}
			if (lift_thread_enter(true))
				lift_thread_leave();
			_exit(good ? 0 : 1);
		}
		expect(pid > 0);
		if (pid > 0)
			expect(waitpid(pid, &status, 0) == pid && status == 0);
	}
	return NULL;
}

/* --- the tests ----------------------------------------------------------------------------------
 */

static int points;

static bool run(const char *name, void *(*some)(void *), void *(*others)(void *))
{
	pthread_t t[THREADS];
	int bad;

	atomic_store(&faults, 0);
	pthread_barrier_init(&together, NULL, THREADS);
	for (size_t i = 0; i < THREADS; i++)
		if (pthread_create(&t[i], NULL, i % 2 ? others : some, (void *)(i + 1)))
			abort();
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	pthread_barrier_destroy(&together);
	bad = atomic_load(&faults);
	printf("%s %d - %s\n", bad ? "not ok" : "ok", ++points, name);
	if (bad)
		printf("# %d times what was expected did not hold\n", bad);
	fflush(stdout);
	return !bad;
}

/* Lines arrive whole, however many threads write them. */
static bool lines_are_whole(void)
{
	char path[] = "/tmp/numalift-parts-XXXXXX";
	int file = mkstemp(path);
	int kept = dup(2);
	char line[600];
	size_t thread;
	int lines = 0;
	int number;
	bool good;
	FILE *f;

	unlink(path);
	fcntl(file, F_SETFL, O_APPEND);
	dup2(file, 2);
	lift_log_open();
	good = run("messages", say_lines, say_lines);
	dup2(kept, 2);
	close(kept);
	f = fdopen(file, "r");
	rewind(f);
	while (fgets(line, sizeof(line), f)) {
		lines++;
		if (sscanf(line, "numalift: thread %zu says %d of 1 lines", &thread, &number) !=
				2 &&
			!strstr(line, "the first of these"))
			good = false;
	}
	fclose(f);
	good = good && lines == THREADS * ROUNDS + 1;
	printf("%s %d - %d lines, each of them whole\n", good ? "ok" : "not ok", ++points, lines);
	return good;
}

int main(void)
{
	bool good = true;

	lift_config_init(&config);
	lift_lock_adopt();
	lift_place_boot(3);
	lift_fork_init();
	alarm(500);
	good = run("memory for records", take_pieces, take_pieces) && good;
	good = run("registry", edit_registry, edit_registry) && good;
	good = run("placement", place_mappings, place_mappings) && good;
	good = run("placement and registry", place_mappings, edit_registry) && good;
	good = run("threads that come and go", start_threads, start_threads) && good;
	good = run("fork and threads", fork_often, start_threads) && good;
	good = run("fork and placement", fork_often, place_mappings) && good;
	good = lines_are_whole() && good;
	printf("1..%d\n", points);
	return good ? 0 : 1;
}
