// SPDX-License-Identifier: MIT
#include "shim/thread.h"

#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>
#include <time.h>

#include "shim/heap.h"
#include "shim/lock.h"
#include "shim/os/sys.h"

enum {
	LIFT_STOP_FORK = 1,
	LIFT_STOP_DEFERRED = 2, /* blocks wait in the deferred list */
	LIFT_STOP_STARVED = 4,
};

__thread struct lift_thread lift_thread_self __attribute__((tls_model("initial-exec")));

/* Not zero, so it tells whether thread-local storage has its initial values. */
static __thread int image_is_there __attribute__((tls_model("initial-exec"))) = 1;

/* What a fork touches lies together: each page of it is copied in the parent and again in the child. */
static struct {
	struct lift_lock lock; /* guards the list, and who may open a limit */
	struct lift_thread *first;
	pthread_key_t exit_key;
	bool have_exit_key;
} list;

bool lift_thread_ready(void)
{
	/* volatile: the compiler knows that nobody else writes it, and would answer by itself */
	return *(volatile int *)&image_is_there != 0;
}

static void stop(struct lift_thread *t, uint8_t why)
{
	atomic_fetch_or_explicit(&t->stops, why, memory_order_seq_cst);
	atomic_store_explicit(&t->limit, 0, memory_order_seq_cst);
}

/* Under the list lock. */
static void go(struct lift_thread *t, uint8_t why)
{
	uint8_t left = atomic_fetch_and_explicit(&t->stops, (uint8_t)~why, memory_order_relaxed) & ~why;

	if (left == 0)
		atomic_store_explicit(&t->limit, LIFT_FAST_LIMIT, memory_order_release);
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

	t->in_slow = 1;
	atomic_signal_fence(memory_order_seq_cst);
	lift_lock(&list.lock);
	*t->link = t->next;
	if (t->next)
		t->next->link = t->link;
	t->state = LIFT_THREAD_EXITING;
	atomic_store_explicit(&t->limit, 0, memory_order_relaxed);
	lift_unlock(&list.lock);
	atomic_signal_fence(memory_order_seq_cst);
	t->in_slow = 0;
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

bool lift_thread_enter_slow(bool wants_memory)
{
	struct lift_thread *t = &lift_thread_self;
	int saved;

	if (t->in_slow)
		return false;
	if (t->state == LIFT_THREAD_REGISTERED) {
		if (atomic_load_explicit(&t->busy, memory_order_relaxed))
			return false;
		if (wants_memory && t->starved > 0) {
			t->starved--;
			return false;
		}
		/* Nothing stands in the way of a request that is merely too large for the fast path. */
		atomic_store_explicit(&t->busy, 1, memory_order_relaxed);
		atomic_signal_fence(memory_order_seq_cst);
		if (likely(atomic_load_explicit(&t->limit, memory_order_relaxed) != 0))
			return true;
		atomic_store_explicit(&t->busy, 0, memory_order_release);
	}

	saved = errno;
	t->in_slow = 1;
	atomic_signal_fence(memory_order_seq_cst);
	lift_lock(&list.lock); /* waits for a fork to be over */
	if (t->state == LIFT_THREAD_NEW)
		register_thread(t);
	if (t->state == LIFT_THREAD_REGISTERED) {
		atomic_store_explicit(&t->busy, 1, memory_order_relaxed);
		go(t, LIFT_STOP_DEFERRED | LIFT_STOP_STARVED);
		lift_unlock(&list.lock);
		t->in_slow = 0;
	}
	/* An exiting thread keeps the lock as long as its call lasts, which holds off forks just as well. */
	lift_heap_drain();
	errno = saved;
	return true;
}

void lift_thread_leave_slow(void)
{
	struct lift_thread *t = &lift_thread_self;

	if (likely(t->state == LIFT_THREAD_REGISTERED)) {
		lift_thread_leave();
		return;
	}
	lift_unlock(&list.lock);
	atomic_signal_fence(memory_order_seq_cst);
	t->in_slow = 0;
}

void lift_thread_starved(void)
{
	struct lift_thread *t = &lift_thread_self;

	if (t->state != LIFT_THREAD_REGISTERED)
		return;
	t->starve_step = (uint16_t)(t->starve_step ? t->starve_step * 2 : 8);
	if (t->starve_step > 4096)
		t->starve_step = 4096;
	t->starved = t->starve_step;
	stop(t, LIFT_STOP_STARVED);
}

void lift_thread_fed(void)
{
	lift_thread_self.starve_step = 0;
}

void lift_thread_defer(void)
{
	if (lift_thread_self.state == LIFT_THREAD_REGISTERED)
		stop(&lift_thread_self, LIFT_STOP_DEFERRED);
}

static uint64_t now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

/*
 * Another thread may have stored busy and read an open limit, with its store still in its CPU's store
 * buffer. membarrier(2) would flush it, but a sandbox that kills unknown calls would take the program
 * down at its next fork. Stores leave the buffer by themselves within a few hundred nanoseconds, even in
 * a virtual machine (an exit drains it), so waiting some tens of microseconds, with a TLB shootdown to all
 * CPUs of the process thrown in, is enough; a fork of a threaded process takes longer than that anyway.
 */
static void let_stores_drain(void)
{
	enum { DRAIN_US = 30 };
	static _Alignas(4096) unsigned char page[4096];
	uint64_t start = now_us();

	*(volatile unsigned char *)page = 1;
	(void)lift_sys_mprotect(page, sizeof(page), PROT_READ);
	(void)lift_sys_mprotect(page, sizeof(page), PROT_READ | PROT_WRITE);
	while (now_us() - start < DRAIN_US)
		;
}

void lift_thread_stop(void)
{
	enum { PATIENCE_US = 2000000 };
	struct lift_thread *self = &lift_thread_self;
	struct lift_thread *t;
	bool others = false;
	uint64_t start;

	/* Stays set until resumed: what other fork handlers allocate on a new thread goes to libc. */
	self->in_slow = 1;
	atomic_signal_fence(memory_order_seq_cst);
	lift_lock(&list.lock);
	for (t = list.first; t; t = t->next) {
		if (t == self)
			continue;
		stop(t, LIFT_STOP_FORK);
		others = true;
	}
	if (!others)
		return;
	let_stores_drain();
	start = now_us();
	for (t = list.first; t; t = t->next) {
		while (t != self && atomic_load_explicit(&t->busy, memory_order_acquire) &&
			now_us() - start < PATIENCE_US)
			lift_sys_yield();
	}
}

void lift_thread_resume(void)
{
	struct lift_thread *t;

	for (t = list.first; t; t = t->next) {
		if (t != &lift_thread_self)
			go(t, LIFT_STOP_FORK);
	}
	lift_unlock(&list.lock);
	lift_thread_self.in_slow = 0;
}

void lift_thread_resume_child(void)
{
	struct lift_thread *self = &lift_thread_self;

	list.first = NULL;
	if (self->state == LIFT_THREAD_REGISTERED)
		add(self);
	lift_lock_reset(&list.lock);
	self->in_slow = 0;
}
