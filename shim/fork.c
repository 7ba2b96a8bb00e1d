// SPDX-License-Identifier: MIT
/*
 * All of numalift's fork handling is here, in lock order (lock.h): the list of threads, then the
 * registry. The handlers are registered in the constructor, before the program can register its
 * own, so ours run last before the fork and first after it, and the program's handlers may
 * allocate.
 *
 * vfork, posix_spawn and clone with CLONE_VM share the heap and run no handlers; nothing needs to
 * be done.
 */
#include "shim/fork.h"

#include <pthread.h>

#include "shim/lock.h"
#include "shim/registry.h"
#include "shim/thread.h"
#include "shim/worker.h"

static void prepare(void)
{
	lift_thread_fork_prepare();
	lift_registry_fork_prepare();
}

static void parent(void)
{
	lift_registry_fork_parent();
	lift_thread_fork_parent();
}

static void child(void)
{
	lift_lock_adopt();
	lift_registry_fork_child();
	lift_thread_fork_child();
	lift_worker_fork_child();
}

void lift_fork_init(void)
{
	(void)pthread_atfork(prepare, parent, child);
}
