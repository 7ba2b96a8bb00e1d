// SPDX-License-Identifier: MIT
/*
 * The background thread: when it is started, that it stays out of the program's way, and how it is
 * stopped. What it does is in promoter.h.
 *
 * There is none on a machine where nothing can be gained, in a program that has mapped little, or
 * in a child that executes another program soon.
 *
 * It is not a thread of libc's. pthread_create may not be called where the need for it shows: in a
 * mapping call, under whatever locks an allocator holds, perhaps in a signal handler; and libc
 * takes slower ways in a program that has two threads. So it is a bare clone(2) with a stack and
 * thread-local storage of its own, which makes system calls and nothing else. What follows from
 * that: libc does not know it, so it takes a change of user over by itself, and makes way for calls
 * that change what one thread may do, or that want a process without threads
 * (interpose_process.c).
 */
#ifndef NUMALIFT_SHIM_WORKER_H
#define NUMALIFT_SHIM_WORKER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "shim/compiler.h"

/* Whether there is, or may come to be, a worker. */
extern __attribute__((visibility("hidden"))) _Atomic bool lift_worker_possible;
/* The same at the start: mappings that it has cut can stay so when it is over. */
extern __attribute__((visibility("hidden"))) bool lift_worker_was_possible;
/* In the child of a fork that has not yet turned out to stay. */
extern __attribute__((visibility("hidden"))) _Atomic bool lift_worker_undecided;

/* From lift_boot(): nodes as for lift_place_boot(). */
void lift_worker_boot(unsigned nodes);

/* From the constructor: starts it where enough is mapped by then, static data included. */
void lift_worker_constructed(void);

void lift_worker_count(size_t len);
void lift_worker_decide(void);

/* After mapping len bytes. Async-signal-safe, as all below. errno is kept. */
static inline void lift_worker_mapped(size_t len)
{
	if (unlikely(atomic_load_explicit(&lift_worker_possible, memory_order_relaxed)))
		lift_worker_count(len);
}

/* From malloc's slow way, which all calls take while it is undecided. */
static inline void lift_worker_poke(void)
{
	if (unlikely(atomic_load_explicit(&lift_worker_undecided, memory_order_relaxed)))
		lift_worker_decide();
}

/*
 * Ends the thread and waits until the kernel has let go of it. True: there was one, and
 * lift_worker_resume() is due. Not from the worker itself, nor with a lock of ours held.
 */
bool lift_worker_pause(void);
void lift_worker_resume(void);

/* Ends it for good in this process. */
void lift_worker_end(void);

/*
 * A thread has a memory policy of its own now, or none any more: while there is one nothing is
 * moved, and never again if much was mapped meanwhile. (libnuma's constructor sets one to try it.)
 */
void lift_worker_policy(bool own);

/* A sandbox goes up: a call that only the worker makes may be the end of the program. */
void lift_worker_sandboxed(void);

/* The program is about to give up privileges: what only they can open is opened now. */
void lift_worker_before_credentials(void);
/* And has done so, or not: the worker takes over what the calling thread has now. */
void lift_worker_after_credentials(void);

/* The worker's part of it. */
void lift_worker_take_credentials(void);

/* In the child of a fork: there is no thread. */
void lift_worker_fork_child(void);

#endif
