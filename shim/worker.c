// SPDX-License-Identifier: MIT
#include "shim/worker.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>

#include "policy/types.h"
#include "shim/heap.h"
#include "shim/lifecycle.h"
#include "shim/log.h"
#include "shim/os/pagemap.h"
#include "shim/os/rawsys.h"
#include "shim/os/sys.h"
#include "shim/os/tasks.h"
#include "shim/os/topo_sysfs.h"
#include "shim/promoter.h"
#include "shim/thread.h"

/* Half of what has to be resident before anything is sampled: most programs stay below. */
#define MAPPED_ENOUGH (64 * LIFT_MIB)
/* A child that is to execute something has done so by then. */
#define CHILD_AFTER_S 1

#define STACK_BYTES ((size_t)128 << 10)
#define MAX_GROUPS 1024
#define CPU_BYTES 128 /* a mask of 1024 processors */

enum state {
	NONE,
	STARTING,
	RUNNING,
	STOPPING,
	OVER, /* for good */
};

_Atomic bool lift_worker_possible;
bool lift_worker_was_possible;
_Atomic bool lift_worker_undecided;

LIFT_FORKED static struct {
	_Atomic int state;
	struct lift_orders orders;
	_Atomic uint32_t tid; /* cleared, and woken, by the kernel when the thread is gone */
	_Atomic size_t mapped;
	_Atomic pid_t process;
	_Atomic bool constructed;
	pid_t parent; /* of the fork that made this process */
	int64_t decide_at;
	uintptr_t memory; /* stack and thread-local storage */
	size_t memory_bytes;
	long cpu_bytes; /* the main thread's processors at its start; 0: not known */
	unsigned char cpus[CPU_BYTES];
} t;

/* What a thread that has changed its credentials has now. */
static struct {
	long nr_groups;
	gid_t groups[MAX_GROUPS];
	uid_t uid[3];
	gid_t gid[3];
} ids;

static int64_t seconds(void)
{
	struct timespec ts;

	return clock_gettime(CLOCK_MONOTONIC_COARSE, &ts) ? 0 : (int64_t)ts.tv_sec;
}

/*
 * A child of vfork shares the memory, one that was made without handlers (clone, _Fork) has a copy:
 * to neither does the thread belong.
 */
static bool in_its_process(void)
{
	return lift_sys_getpid() == atomic_load_explicit(&t.process, memory_order_relaxed);
}

/* --- the thread --- */

static int run(void *arg)
{
	const uint64_t all = ~UINT64_C(0);
	const struct sched_param ordinary = {0};

	(void)arg;
	lift_sys_restore_signals(all);
	(void)lift_syscall(SYS_prctl, PR_SET_NAME, (long)"numalift", 0, 0, 0, 0);
	/* Nor as urgent as that. */
	if (lift_syscall(SYS_sched_getscheduler, 0, 0, 0, 0, 0, 0) > 0)
		(void)lift_syscall(
			SYS_sched_setscheduler, 0, SCHED_OTHER, (long)&ordinary, 0, 0, 0);
	/* Not where the thread is bound to that happened to map memory. */
	if (t.cpu_bytes > 0)
		(void)lift_syscall(SYS_sched_setaffinity, 0, t.cpu_bytes, (long)t.cpus, 0, 0, 0);
	lift_promoter_run(&t.orders);
	return 0;
}

/*
 * Of thread-local variables the worker has this library's, all zero. They are at the same distance
 * from its thread pointer as everywhere, to either side, by machine.
 */
static int map_memory(char **ret_stack, char **ret_pointer)
{
	ptrdiff_t off = (char *)&lift_thread_self - (char *)__builtin_thread_pointer();
	size_t side = ((size_t)(off < 0 ? -off : off) + 2 * 4096) & ~(size_t)4095;
	size_t bytes = 4096 + STACK_BYTES + 2 * side;
	long at = lift_sys_mmap_apart(bytes, 0);
	char *p;

	if (lift_syserr(at))
		return (int)at;
	(void)lift_sys_mprotect((void *)at, 4096, PROT_NONE);
	p = (char *)at + 4096 + STACK_BYTES + side;
#if defined(__x86_64__)
	*(void **)(void *)p = p;        /* the psABI's: the thread pointer points to itself */
	*(void **)(void *)(p + 16) = p; /* and libc's */
#endif
	*ret_stack = (char *)at + 4096 + STACK_BYTES;
	*ret_pointer = p;
	t.memory = (uintptr_t)at;
	t.memory_bytes = bytes;
	return 0;
}

/* A fork in another thread may come at any time: what is unmapped is not to be unmapped again. */
static void unmap_memory(void)
{
	size_t bytes = t.memory_bytes;

	t.memory_bytes = 0;
	atomic_signal_fence(memory_order_seq_cst);
	if (bytes > 0)
		(void)lift_sys_munmap((void *)t.memory, bytes);
}

/* Signals are blocked: the thread starts like that. */
static int create(void)
{
	const int flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD |
			  CLONE_SYSVSEM | CLONE_SETTLS | CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID;
	char *stack;
	char *pointer;
	int rc = map_memory(&stack, &pointer);

	if (rc < 0)
		return rc;
	atomic_store(&t.orders.word, LIFT_ORDER_NONE);
	rc = clone(run, stack, flags, NULL, &t.tid, pointer, &t.tid) < 0 ? -errno : 0;
	if (rc < 0)
		unmap_memory();
	return rc;
}

/* A filter may kill for calls that a program like this never makes (place.c). */
static bool in_sandbox(void)
{
	struct lift_nodeset nodes;
	unsigned seccomp = 0;

	return !lift_config_given("NUMALIFT_PROMOTE") &&
	       lift_os_mems_allowed(&nodes, &seccomp) == 0 && seccomp != 0;
}

static void start(void)
{
	int none = NONE;
	int saved = errno;
	uint64_t mask;
	int rc = 0;

	/* Before the constructor there may be no heap yet. */
	if (!atomic_load_explicit(&t.constructed, memory_order_acquire) || !in_its_process())
		return;
	if (in_sandbox()) {
		errno = saved;
		lift_worker_end();
		return;
	}
	/* A handler that wants the thread gone would wait for us. */
	mask = lift_sys_block_signals();
	if (atomic_compare_exchange_strong(&t.state, &none, STARTING)) {
		t.cpu_bytes = lift_syscall(SYS_sched_getaffinity,
			atomic_load_explicit(&t.process, memory_order_relaxed), CPU_BYTES,
			(long)t.cpus, 0, 0, 0);
		rc = create();
		atomic_store(&t.state, rc == 0 ? RUNNING : OVER);
	}
	lift_sys_restore_signals(mask);
	if (rc < 0)
		lift_log(LIFT_LOG_INFO, "no thread for promotion could be created (%d)", -rc);
	errno = saved;
}

static void order(enum lift_order what)
{
	atomic_store(&t.orders.word, what);
	lift_sys_futex_wake(&t.orders.word, INT_MAX);
}

/* The kernel wakes as if the word were shared with other processes. */
static void wait_until_gone(void)
{
	uint32_t tid = atomic_load(&t.tid);
	uint32_t gone = tid;

	for (; tid != 0; tid = atomic_load(&t.tid))
		(void)lift_syscall(SYS_futex, (long)&t.tid, FUTEX_WAIT, (long)tid, 0, 0, 0);
	unmap_memory();
	/* Its memory is free by now, but it is counted among the threads for a moment more. */
	while (gone && lift_syscall(SYS_tgkill, lift_sys_getpid(), (long)gone, 0, 0, 0, 0) == 0)
		lift_sys_yield();
}

/* Ends the thread; afterwards the state is `then`. True: there was one. */
static bool stop_masked(enum state then)
{
	for (;;) {
		int is = atomic_load(&t.state);

		switch (is) {
		case NONE:
			if (atomic_compare_exchange_strong(&t.state, &is, then))
				return false;
			break;
		case STARTING:
		case STOPPING:
			lift_sys_yield();
			break;
		case RUNNING:
			if (!atomic_compare_exchange_strong(&t.state, &is, STOPPING))
				break;
			order(LIFT_ORDER_STOP);
			wait_until_gone();
			atomic_store(&t.state, then);
			return true;
		default:
			return false;
		}
	}
}

static bool stop(enum state then)
{
	uint64_t mask;
	bool was;

	if (!in_its_process())
		return false;
	mask = lift_sys_block_signals(); /* as in start() */
	was = stop_masked(then);
	lift_sys_restore_signals(mask);
	return was;
}

/* --- when --- */

void lift_worker_boot(unsigned nodes)
{
	enum lift_promote_mode how = lift_config_now()->promote;

	/* Tracking was asked for by name, so it is done where it can bring nothing else. */
	atomic_store_explicit(&t.process, lift_sys_getpid(), memory_order_relaxed);
	lift_worker_was_possible =
		how == LIFT_PROMOTE_TRACK || (how == LIFT_PROMOTE_ON && nodes > 1);
	atomic_store_explicit(
		&lift_worker_possible, lift_worker_was_possible, memory_order_relaxed);
}

void lift_worker_constructed(void)
{
	if (!atomic_load_explicit(&lift_worker_possible, memory_order_relaxed))
		return;
	atomic_store_explicit(&t.constructed, true, memory_order_release);
	if (lift_os_bytes().data >= MAPPED_ENOUGH + LIFT_GRANULE)
		start();
}

/*
 * What is mapped at once in one piece will be used. Else it takes memory to be there, as a heap
 * maps more than it needs; or to be much: who allocates first and fills later may never map again.
 */
void lift_worker_count(size_t len)
{
	size_t before = atomic_fetch_add_explicit(&t.mapped, len, memory_order_relaxed);
	size_t all = before + len;

	if (atomic_load_explicit(&t.state, memory_order_relaxed) != NONE || all < MAPPED_ENOUGH)
		return;
	if (len < MAPPED_ENOUGH) {
		struct lift_os_bytes bytes;

		if (before / LIFT_GRANULE == all / LIFT_GRANULE)
			return;
		bytes = lift_os_bytes();
		if (bytes.resident < MAPPED_ENOUGH / 2 && bytes.data < 2 * MAPPED_ENOUGH)
			return;
	}
	start();
}

/*
 * A daemon's parent is gone by now, and the child is the program. One whose parent goes on is a
 * helper or a snapshot, which shares its pages, or a server that is to grow by itself.
 */
void lift_worker_decide(void)
{
	if (seconds() < t.decide_at)
		return;
	atomic_store_explicit(&lift_worker_undecided, false, memory_order_relaxed);
	lift_thread_all_fast(LIFT_SLOW_WORKER);
	if (lift_syscall(SYS_getppid, 0, 0, 0, 0, 0, 0) != t.parent)
		start();
}

bool lift_worker_pause(void)
{
	return atomic_load_explicit(&t.state, memory_order_relaxed) == RUNNING &&
	       in_its_process() && stop(NONE);
}

void lift_worker_resume(void)
{
	start();
}

void lift_worker_end(void)
{
	if (!atomic_load_explicit(&lift_worker_possible, memory_order_relaxed) || !in_its_process())
		return;
	atomic_store_explicit(&lift_worker_possible, false, memory_order_relaxed);
	(void)stop(OVER);
}

void lift_worker_policy(bool own)
{
	enum { LITTLE = 16 << 20 };
	static _Atomic bool is_own;
	static _Atomic size_t mapped_at;
	static _Atomic bool for_good;
	size_t now = atomic_load_explicit(&t.mapped, memory_order_relaxed);

	if (own && !atomic_exchange(&is_own, true))
		atomic_store(&mapped_at, now);
	else if (!own && atomic_exchange(&is_own, false) && now - atomic_load(&mapped_at) > LITTLE)
		atomic_store(&for_good, true);
	lift_promoter_keep_off(own || atomic_load(&for_good));
}

void lift_worker_sandboxed(void)
{
	if (!lift_config_given("NUMALIFT_PROMOTE"))
		lift_worker_end();
}

void lift_worker_before_credentials(void)
{
	if (!atomic_load_explicit(&lift_worker_possible, memory_order_relaxed) || !in_its_process())
		return;
	/*
	 * A worker that runs has opened it. Small programs do this by the thousand, so none is
	 * started for it.
	 */
	if (atomic_load_explicit(&t.state, memory_order_relaxed) == NONE &&
		lift_syscall(SYS_geteuid, 0, 0, 0, 0, 0, 0) == 0)
		lift_pagemap_open_early();
}

void lift_worker_take_credentials(void)
{
	static gid_t have[MAX_GROUPS];
	bool ok =
		lift_syscall(SYS_setgroups, ids.nr_groups, (long)ids.groups, 0, 0, 0, 0) == 0 ||
		(lift_syscall(SYS_getgroups, MAX_GROUPS, (long)have, 0, 0, 0, 0) == ids.nr_groups &&
			memcmp(have, ids.groups, (size_t)ids.nr_groups * sizeof(have[0])) == 0);

	ok = lift_syscall(SYS_setresgid, ids.gid[0], ids.gid[1], ids.gid[2], 0, 0, 0) == 0 && ok;
	ok = lift_syscall(SYS_setresuid, ids.uid[0], ids.uid[1], ids.uid[2], 0, 0, 0) == 0 && ok;
	/* Rather no worker than one with other rights than the program has. */
	order(ok ? LIFT_ORDER_NONE : LIFT_ORDER_STOP);
}

/* Signals are blocked, as in start(). */
static void hand_credentials_on(void)
{
	int running = RUNNING;
	uid_t *u = ids.uid;
	gid_t *g = ids.gid;

	if (!atomic_compare_exchange_strong(&t.state, &running, STARTING))
		return;
	ids.nr_groups = lift_syscall(SYS_getgroups, MAX_GROUPS, (long)ids.groups, 0, 0, 0, 0);
	if (ids.nr_groups >= 0 &&
		lift_syscall(SYS_getresuid, (long)&u[0], (long)&u[1], (long)&u[2], 0, 0, 0) == 0 &&
		lift_syscall(SYS_getresgid, (long)&g[0], (long)&g[1], (long)&g[2], 0, 0, 0) == 0)
		order(LIFT_ORDER_CREDENTIALS);
	else
		order(LIFT_ORDER_STOP);
	while (atomic_load(&t.tid) && atomic_load(&t.orders.word) == LIFT_ORDER_CREDENTIALS)
		(void)lift_sys_futex_wait(&t.orders.word, LIFT_ORDER_CREDENTIALS, 10);
	atomic_store(&t.state, RUNNING);
}

void lift_worker_after_credentials(void)
{
	uint64_t mask;

	if (!atomic_load_explicit(&lift_worker_possible, memory_order_relaxed) || !in_its_process())
		return;
	mask = lift_sys_block_signals();
	hand_credentials_on();
	lift_sys_restore_signals(mask);
}

void lift_worker_fork_child(void)
{
	int was = atomic_load(&t.state);

	t.parent = atomic_load_explicit(&t.process, memory_order_relaxed);
	atomic_store_explicit(&t.process, lift_sys_getpid(), memory_order_relaxed);
	if (was == OVER || !atomic_load_explicit(&lift_worker_possible, memory_order_relaxed))
		return;
	if (was != NONE) {
		lift_promoter_forked();
		unmap_memory();
	}
	lift_pagemap_forked();
	atomic_store(&t.tid, 0);
	atomic_store(&t.state, NONE);
	if (atomic_exchange(&t.mapped, 0) < MAPPED_ENOUGH)
		return;
	t.decide_at = seconds() + CHILD_AFTER_S;
	atomic_store_explicit(&lift_worker_undecided, true, memory_order_relaxed);
	lift_thread_all_slow(LIFT_SLOW_WORKER);
}
