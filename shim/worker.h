// SPDX-License-Identifier: MIT
/*
 * The background thread: when it is started, that it stays out of the program's way, and how it is
 * stopped. What it does is in promoter.h.
 *
 * There is none on a machine where nothing can be gained, in a program that has mapped little, or
 * in a child that executes another program soon. It is started late, from within a call of malloc,
 * because a process with threads may not enter a user namespace (unshare(2), setns(2)), and a
 * mapping call may come from a signal handler, where no thread can be created. So mapping calls
 * only say that one is wanted; then all threads take malloc's slow way until one of them has
 * created it.
 */
#ifndef NUMALIFT_SHIM_WORKER_H
#define NUMALIFT_SHIM_WORKER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "shim/compiler.h"

/* Whether there is, or may come to be, a worker. */
extern __attribute__((visibility("hidden"))) _Atomic bool lift_worker_possible;
extern __attribute__((visibility("hidden"))) _Atomic bool lift_worker_wanted;

/* From lift_boot(): nodes as for lift_place_boot(). */
void lift_worker_boot(unsigned nodes);

/* From the constructor: a program can bring memory along that it never asks for (static data). */
void lift_worker_constructed(void);

void lift_worker_count(size_t len);
void lift_worker_start(void);

/* After mapping len bytes. Async-signal-safe. */
static inline void lift_worker_mapped(size_t len)
{
	if (unlikely(atomic_load_explicit(&lift_worker_possible, memory_order_relaxed)))
		lift_worker_count(len);
}

/* From malloc's slow way, outside of all locks of ours. errno is kept. */
static inline void lift_worker_poke(void)
{
	if (unlikely(atomic_load_explicit(&lift_worker_wanted, memory_order_relaxed)))
		lift_worker_start();
}

/*
 * Ends the thread and waits until the kernel has taken it off the process. True: there was one, and
 * lift_worker_resume() is due. Not from the worker itself, nor with a lock of ours held.
 */
bool lift_worker_pause(void);
void lift_worker_resume(void);

/* Ends it for good in this process. */
void lift_worker_end(void);

/* A sandbox goes up: a call that only the worker makes may be the end of the program. */
void lift_worker_sandboxed(void);

/* In the child of a fork: there is no thread; one comes when the child turns out to stay. */
void lift_worker_fork_child(void);

#endif
