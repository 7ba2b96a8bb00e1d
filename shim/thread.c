// SPDX-License-Identifier: MIT
#include "shim/thread.h"

#include <errno.h>
#include <pthread.h>

#include "shim/heap.h"
#include "shim/lock.h"

__thread struct lift_thread lift_thread_self __attribute__((tls_model("initial-exec")));

/* Not zero, so it tells whether thread-local storage has its initial values. */
static __thread int image_is_there __attribute__((tls_model("initial-exec"))) = 1;

_Atomic size_t lift_thread_slow;

LIFT_FORKED static struct {
	struct lift_lock lock; /* guards the count, and threads that have no slot of their own */
	unsigned registered;   /* threads that may be on the fast path; too many does no harm */
	pthread_key_t exit_key;
	bool have_exit_key;
	_Atomic bool heap_closed;
} all;

bool lift_thread_ready(void)
{
	/* volatile: the compiler knows that nobody else writes it, and would answer by itself */
	return *(volatile int *)&image_is_there != 0;
}

bool lift_thread_heap_closed(void)
{
	return atomic_load_explicit(&all.heap_closed, memory_order_relaxed);
}

static void open_limit(struct lift_thread *t)
{
	if (t->starved == 0)
		__atomic_store_n(&t->limit, LIFT_FAST_LIMIT, __ATOMIC_RELAXED);
}

static void close_limit(struct lift_thread *t)
{
	__atomic_store_n(&t->limit, 0, __ATOMIC_RELAXED);
	atomic_signal_fence(memory_order_seq_cst);
}

/* Runs at thread exit, before or after the program's own destructors, and on the thread itself. */
static void thread_ends(void *arg)
{
	struct lift_thread *t = arg;
	uint64_t mask;

	t->inside = 1;
	close_limit(t);
	if (lift_lock_masked(&all.lock, &mask)) {
		all.registered--;
		lift_unlock_masked(&all.lock, mask);
	}
	t->state = LIFT_THREAD_EXITING;
	atomic_signal_fence(memory_order_seq_cst);
	t->inside = 0;
}

/* Under the lock. */
static void register_thread(struct lift_thread *t)
{
	if (!all.have_exit_key)
		all.have_exit_key = pthread_key_create(&all.exit_key, thread_ends) == 0;
	if (!all.have_exit_key || pthread_setspecific(all.exit_key, t) != 0) {
		t->state = LIFT_THREAD_EXITING;
		return;
	}
	all.registered++;
	t->state = LIFT_THREAD_REGISTERED;
}

bool lift_thread_enter(bool wants_memory)
{
	/* More than libc frees for a thread that ends: its buffers, and a few for its TLS. */
	enum { AT_ITS_END = 200 };
	struct lift_thread *t = &lift_thread_self;
	int saved;

	if (t->inside || lift_thread_heap_closed())
		return false;
	if (wants_memory && t->starved > 0) {
		t->starved--;
		return false;
	}
	t->inside = 1;
	close_limit(t);
	if (likely(t->state == LIFT_THREAD_REGISTERED))
		return true;
	if (!lift_lock_masked(&all.lock, &t->mask)) {
		/* A child made without fork handlers, while another thread of the parent was in
		 * there. */
		atomic_store_explicit(&all.heap_closed, true, memory_order_relaxed);
		t->inside = 0;
		return false;
	}
	saved = errno;
	if (t->state == LIFT_THREAD_NEW && (wants_memory || t->frees++ > AT_ITS_END))
		register_thread(t);
	/* A thread without a slot keeps the lock as long as its call lasts: no fork happens
	 * meanwhile. */
	if (t->state == LIFT_THREAD_REGISTERED)
		lift_unlock_masked(&all.lock, t->mask);
	errno = saved;
	return true;
}

void lift_thread_leave(void)
{
	struct lift_thread *t = &lift_thread_self;

	lift_heap_drain(); /* what a signal handler freed meanwhile */
	if (likely(t->state == LIFT_THREAD_REGISTERED))
		open_limit(t);
	else
		lift_unlock_masked(&all.lock, t->mask);
	atomic_signal_fence(memory_order_seq_cst);
	t->inside = 0;
}

void lift_thread_starved(void)
{
	struct lift_thread *t = &lift_thread_self;

	t->starve_step = (uint16_t)(t->starve_step ? t->starve_step * 2 : 8);
	if (t->starve_step > 4096)
		t->starve_step = 4096;
	t->starved = t->starve_step;
}

void lift_thread_fed(void)
{
	lift_thread_self.starve_step = 0;
}

bool lift_thread_came_fast(void)
{
	return !lift_thread_self.inside;
}

static _Atomic unsigned slow_reasons;

/* Whoever changes the reasons last has the last word about what follows from them, too. */
static void set_slow(void)
{
	unsigned seen;

	do {
		seen = atomic_load(&slow_reasons);
		atomic_store(&lift_thread_slow, seen ? SIZE_MAX : 0);
	} while (seen != atomic_load(&slow_reasons));
}

void lift_thread_all_slow(enum lift_slow why)
{
	atomic_fetch_or(&slow_reasons, (unsigned)why);
	set_slow();
}

void lift_thread_all_fast(enum lift_slow why)
{
	atomic_fetch_and(&slow_reasons, ~(unsigned)why);
	set_slow();
}

void lift_thread_fork_prepare(void)
{
	/* Until it is over what other fork handlers allocate goes to libc: a new thread would need
	 * the lock. */
	lift_thread_self.inside = 1;
	close_limit(&lift_thread_self);
	(void)lift_lock(&all.lock);
}

static void fork_done(void)
{
	struct lift_thread *self = &lift_thread_self;

	if (self->state == LIFT_THREAD_REGISTERED && !lift_thread_heap_closed())
		open_limit(self);
	atomic_signal_fence(memory_order_seq_cst);
	self->inside = 0;
}

void lift_thread_fork_parent(void)
{
	lift_unlock(&all.lock);
	fork_done();
}

void lift_thread_fork_child(void)
{
	unsigned self = lift_thread_self.state == LIFT_THREAD_REGISTERED;

	if (all.registered > self)
		atomic_store_explicit(&all.heap_closed, true, memory_order_relaxed);
	all.registered = self;
	lift_lock_reset(&all.lock);
	if (lift_thread_heap_closed())
		lift_heap_forget_thread();
	fork_done();
}
