// SPDX-License-Identifier: MIT
#include "shim/worker.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <time.h>

#include "policy/procparse.h"
#include "policy/types.h"
#include "shim/lifecycle.h"
#include "shim/log.h"
#include "shim/os/rawsys.h"
#include "shim/os/sys.h"
#include "shim/place.h"
#include "shim/promoter.h"
#include "shim/thread.h"

/* Half of what has to be resident before anything is sampled: most programs stay below. */
#define MAPPED_ENOUGH (64 * LIFT_MIB)
/* A child that is to execute something has done so by then; so has one that writes a snapshot. */
#define CHILD_AFTER_S 1
#define RETRY_AFTER_S 10

enum state {
	NONE,
	WANTED,
	STARTING,
	RUNNING,
	STOPPING,
	OVER, /* for good */
};

_Atomic bool lift_worker_possible;
_Atomic bool lift_worker_wanted;

static _Atomic int state;
static _Atomic uint32_t stop_word;
static _Atomic size_t mapped;
static _Atomic pid_t process;
static _Atomic int64_t not_before; /* CLOCK_MONOTONIC, seconds */
static _Atomic bool constructed;
static pthread_t thread; /* valid while STARTING, RUNNING, STOPPING */

static int64_t seconds(void)
{
	struct timespec ts;

	return clock_gettime(CLOCK_MONOTONIC_COARSE, &ts) ? 0 : (int64_t)ts.tv_sec;
}

static void want(int64_t when)
{
	int none = NONE;

	atomic_store_explicit(&not_before, when, memory_order_relaxed);
	if (!atomic_compare_exchange_strong(&state, &none, WANTED))
		return;
	atomic_store_explicit(&lift_worker_wanted, true, memory_order_relaxed);
	lift_thread_all_slow(LIFT_SLOW_WORKER);
}

static void not_wanted(void)
{
	atomic_store_explicit(&lift_worker_wanted, false, memory_order_relaxed);
	lift_thread_all_fast(LIFT_SLOW_WORKER);
}

void lift_worker_boot(unsigned nodes)
{
	enum lift_promote_mode how = lift_config_now()->promote;

	/* Tracking was asked for by name, so it is done where it can bring nothing else. */
	atomic_store_explicit(&process, lift_sys_getpid(), memory_order_relaxed);
	atomic_store_explicit(&lift_worker_possible,
		how == LIFT_PROMOTE_TRACK || (how == LIFT_PROMOTE_ON && nodes > 1),
		memory_order_relaxed);
}

void lift_worker_constructed(void)
{
	enum { DATA = 5 }; /* which number of /proc/self/statm is data and stack, in pages */
	char buf[128];
	const char *at = buf;
	uint64_t pages = 0;
	long n;

	atomic_store_explicit(&constructed, true, memory_order_release);
	if (!atomic_load_explicit(&lift_worker_possible, memory_order_relaxed))
		return;
	n = lift_sys_read_file("/proc/self/statm", buf, sizeof(buf));
	for (int i = 0; i < DATA && n > 0; i++) {
		while (*at && *at != ' ')
			at++;
		at += *at == ' ';
	}
	for (; n > 0 && *at >= '0' && *at <= '9' && pages < UINT64_MAX / 100; at++)
		pages = pages * 10 + (uint64_t)(*at - '0');
	/* Twice the heap's first segment is no sign of a large program. */
	if (pages * 4096 > 2 * MAPPED_ENOUGH)
		want(0);
}

void lift_worker_count(size_t len)
{
	size_t all = atomic_fetch_add_explicit(&mapped, len, memory_order_relaxed);

	if (all < MAPPED_ENOUGH && (len >= MAPPED_ENOUGH || all + len >= MAPPED_ENOUGH))
		want(0);
}

/* --- the thread --- */

static void *run(void *arg)
{
	/* libc signals its own threads, and waits for them: when a program changes its user, and
	 * to cancel one. */
	const uint64_t all_but_libcs = ~(UINT64_C(1) << 31 | UINT64_C(1) << 32);

	(void)arg;
	lift_sys_restore_signals(all_but_libcs);
	(void)lift_syscall(SYS_prctl, PR_SET_NAME, (long)"numalift", 0, 0, 0, 0);
	lift_promoter_run(&stop_word);
	return NULL;
}

static int create(void)
{
	enum { STACK = 256 << 10 };
	pthread_attr_t attr;
	uint64_t mask;
	int err;

	err = pthread_attr_init(&attr);
	if (err)
		return err;
	/* Too small for a program with much thread-local storage: then libc's default it is. */
	(void)pthread_attr_setstacksize(&attr, STACK);
	atomic_store(&stop_word, 0);
	mask = lift_sys_block_signals();
	err = pthread_create(&thread, &attr, run, NULL);
	if (err == EINVAL)
		err = pthread_create(&thread, NULL, run, NULL);
	lift_sys_restore_signals(mask);
	(void)pthread_attr_destroy(&attr);
	return err;
}

void lift_worker_start(void)
{
	int wanted = WANTED;
	int saved;
	int err;

	/* A child of vfork shares the memory, but the thread would be its own. */
	if (!atomic_load_explicit(&constructed, memory_order_acquire) ||
		seconds() < atomic_load_explicit(&not_before, memory_order_relaxed) ||
		lift_sys_getpid() != atomic_load_explicit(&process, memory_order_relaxed) ||
		!atomic_compare_exchange_strong(&state, &wanted, STARTING))
		return;
	saved = errno;
	not_wanted();
	err = create();
	if (err == 0) {
		atomic_store(&state, RUNNING);
	} else {
		/* RLIMIT_NPROC, no memory: perhaps later. */
		lift_log(LIFT_LOG_INFO, "no thread for promotion could be created (%d)", err);
		atomic_store(&state, NONE);
		want(seconds() + RETRY_AFTER_S);
	}
	errno = saved;
}

/* Ends the thread; afterwards the state is `then`. True: there was one. */
static bool stop(enum state then)
{
	for (;;) {
		int is = atomic_load(&state);

		switch (is) {
		case NONE:
		case WANTED:
			if (atomic_compare_exchange_strong(&state, &is, then)) {
				if (is == WANTED)
					not_wanted();
				return false;
			}
			break;
		case STARTING:
		case STOPPING:
			lift_sys_yield();
			break;
		case RUNNING:
			if (!atomic_compare_exchange_strong(&state, &is, STOPPING))
				break;
			atomic_store(&stop_word, 1);
			lift_sys_futex_wake(&stop_word, 1);
			(void)pthread_join(thread, NULL);
			atomic_store(&state, then);
			return true;
		default:
			return false;
		}
	}
}

bool lift_worker_pause(void)
{
	if (!atomic_load_explicit(&lift_worker_possible, memory_order_relaxed) ||
		atomic_load_explicit(&state, memory_order_relaxed) != RUNNING)
		return false;
	return stop(NONE);
}

void lift_worker_resume(void)
{
	want(seconds() + CHILD_AFTER_S);
}

void lift_worker_end(void)
{
	if (!atomic_load_explicit(&lift_worker_possible, memory_order_relaxed))
		return;
	atomic_store_explicit(&lift_worker_possible, false, memory_order_relaxed);
	(void)stop(OVER);
}

void lift_worker_sandboxed(void)
{
	if (!lift_config_given("NUMALIFT_PROMOTE"))
		lift_worker_end();
}

void lift_worker_fork_child(void)
{
	int was = atomic_load(&state);

	atomic_store_explicit(&process, lift_sys_getpid(), memory_order_relaxed);
	if (was == OVER || !atomic_load_explicit(&lift_worker_possible, memory_order_relaxed))
		return;
	if (was == STARTING || was == RUNNING || was == STOPPING)
		lift_promoter_forked();
	if (was == WANTED)
		not_wanted();
	atomic_store(&state, NONE);
	if (atomic_load_explicit(&mapped, memory_order_relaxed) >= MAPPED_ENOUGH ||
		was != NONE)
		want(seconds() + CHILD_AFTER_S);
}
