// SPDX-License-Identifier: MIT
#include "shim/thread.h"

#include <errno.h>
#include <pthread.h>

#include "shim/heap.h"
#include "shim/lock.h"

__thread struct lift_thread lift_thread_self __attribute__((tls_model("initial-exec")));

/* Not zero, so it tells whether thread-local storage has its initial values. */
static __thread int image_is_there __attribute__((tls_model("initial-exec"))) = 1;

/* What a fork touches lies together: each page of it is copied in the parent and again in the
 * child. */
static struct {
	struct lift_lock lock; /* guards the list, and who may close the limit of another thread */
	struct lift_thread *first;
	pthread_key_t exit_key;
	bool have_exit_key;
	_Atomic bool all_slow;
	_Atomic bool heap_closed;
} list;

bool lift_thread_ready(void)
{
	/* volatile: the compiler knows that nobody else writes it, and would answer by itself */
	return *(volatile int *)&image_is_there != 0;
}

bool lift_thread_heap_closed(void)
{
	return atomic_load_explicit(&list.heap_closed, memory_order_relaxed);
}

static void open_limit(struct lift_thread *t)
{
	if (t->starved > 0)
		return;
	atomic_store_explicit(&t->limit, LIFT_FAST_LIMIT, memory_order_seq_cst);
	/* Whoever closes all sets the flag first and the limits then, so one of us sees the other.
	 */
	if (unlikely(atomic_load_explicit(&list.all_slow, memory_order_seq_cst)))
		atomic_store_explicit(&t->limit, 0, memory_order_relaxed);
}

static void close_limit(struct lift_thread *t)
{
	atomic_store_explicit(&t->limit, 0, memory_order_seq_cst);
}

/* Under the list lock. */
static void add(struct lift_thread *t)
{
	t->next = list.first;
	t->link = &list.first;
	if (t->next)
		t->next->link = &t->next;
	list.first = t;
}

/* Runs at thread exit, before or after the program's own destructors, and on the thread itself. */
static void thread_ends(void *arg)
{
	struct lift_thread *t = arg;

	t->inside = 1;
	close_limit(t);
	lift_lock(&list.lock);
	*t->link = t->next;
	if (t->next)
		t->next->link = t->link;
	t->state = LIFT_THREAD_EXITING;
	lift_unlock(&list.lock);
	atomic_signal_fence(memory_order_seq_cst);
	t->inside = 0;
}

/* Under the list lock. Without a destructor nobody would take the slot off the list again. */
static void register_thread(struct lift_thread *t)
{
	if (!list.have_exit_key)
		list.have_exit_key = pthread_key_create(&list.exit_key, thread_ends) == 0;
	if (!list.have_exit_key || pthread_setspecific(list.exit_key, t) != 0) {
		t->state = LIFT_THREAD_EXITING;
		return;
	}
	add(t);
	t->state = LIFT_THREAD_REGISTERED;
}

bool lift_thread_enter(bool wants_memory)
{
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
	saved = errno;
	lift_lock(&list.lock);
	if (t->state == LIFT_THREAD_NEW)
		register_thread(t);
	/* An exiting thread keeps the lock as long as its call lasts: no fork happens meanwhile. */
	if (t->state == LIFT_THREAD_REGISTERED)
		lift_unlock(&list.lock);
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
		lift_unlock(&list.lock);
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

void lift_thread_all_slow(void)
{
	struct lift_thread *t;

	/* A signal handler that allocates meanwhile must not wait for this lock. */
	lift_thread_self.inside = 1;
	atomic_store_explicit(&list.all_slow, true, memory_order_seq_cst);
	lift_lock(&list.lock);
	for (t = list.first; t; t = t->next)
		close_limit(t);
	lift_unlock(&list.lock);
	atomic_signal_fence(memory_order_seq_cst);
	lift_thread_self.inside = 0;
}

void lift_thread_all_fast(void)
{
	/* Each thread opens its own limit when it next leaves the heap. */
	atomic_store_explicit(&list.all_slow, false, memory_order_seq_cst);
}

void lift_thread_fork_prepare(void)
{
	/* Until it is over what other fork handlers allocate goes to libc: a new thread would need
	 * the lock. */
	lift_thread_self.inside = 1;
	close_limit(&lift_thread_self);
	lift_lock(&list.lock);
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
	lift_unlock(&list.lock);
	fork_done();
}

void lift_thread_fork_child(void)
{
	struct lift_thread *self = &lift_thread_self;
	struct lift_thread *t;

	for (t = list.first; t; t = t->next) {
		if (t != self)
			atomic_store_explicit(&list.heap_closed, true, memory_order_relaxed);
	}
	list.first = NULL;
	if (self->state == LIFT_THREAD_REGISTERED)
		add(self);
	lift_lock_reset(&list.lock);
	if (lift_thread_heap_closed())
		lift_heap_forget_thread();
	fork_done();
}
