// SPDX-License-Identifier: MIT
#include "shim/thread.h"

#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>
#include <time.h>

#include "shim/bootalloc.h"
#include "shim/heap.h"
#include "shim/lifecycle.h"
#include "shim/lock.h"
#include "shim/os/rawsys.h"

/* A thread that has no slot yet, and one whose slot was given back at its end. */
static struct lift_thread unregistered = {.gate = LIFT_GATE_CLOSED};
static struct lift_thread exiting = {.gate = LIFT_GATE_CLOSED};

__thread struct lift_thread *lift_thread_self __attribute__((tls_model("initial-exec"))) = &unregistered;

/* Set while this thread is in the slow path: a signal or a re-entry there must not come here again. */
static __thread uint8_t in_slow __attribute__((tls_model("initial-exec")));

static struct lift_lock list_lock; /* guards `slots` and who may open a gate */
static struct lift_thread *slots;
static pthread_key_t exit_key;
static bool have_exit_key;

/* Runs at thread exit, before or after the program's own destructors: later calls take the exiting slot. */
static void thread_ends(void *arg)
{
	struct lift_thread *t = arg;

	lift_thread_self = &exiting;
	atomic_store_explicit(&t->in_use, false, memory_order_release);
}

static struct lift_thread *slot_take(void)
{
	struct lift_thread *t;

	for (t = slots; t; t = t->all) {
		if (!atomic_load_explicit(&t->in_use, memory_order_acquire))
			break;
	}
	if (!t) {
		t = lift_bootalloc(sizeof(*t), _Alignof(struct lift_thread));
		if (!t)
			return NULL;
		t->all = slots;
		slots = t;
	}
	atomic_store_explicit(&t->in_use, true, memory_order_relaxed);
	atomic_store_explicit(&t->busy, 0, memory_order_relaxed);
	atomic_store_explicit(&t->gate, 0, memory_order_relaxed);
	t->starved = 0;
	t->starve_step = 0;
	return t;
}

/* Called with the list lock held. */
static void register_thread(void)
{
	struct lift_thread *t;

	if (!have_exit_key)
		have_exit_key = pthread_key_create(&exit_key, thread_ends) == 0;
	t = slot_take();
	if (!t)
		return;
	/* Without a key nobody would give the slot back, so such a thread stays without one. */
	if (!have_exit_key || pthread_setspecific(exit_key, t) != 0) {
		atomic_store_explicit(&t->in_use, false, memory_order_relaxed);
		lift_thread_self = &exiting;
		return;
	}
	lift_thread_self = t;
}

bool lift_thread_inside(void)
{
	struct lift_thread *t = lift_thread_self;

	return in_slow || (t != &unregistered && t != &exiting &&
				  atomic_load_explicit(&t->busy, memory_order_relaxed));
}

struct lift_thread *lift_thread_enter_slow(bool wants_memory)
{
	struct lift_thread *t = lift_thread_self;
	uint8_t gate;
	int saved;

	if (in_slow)
		return NULL;
	if (t != &unregistered && t != &exiting) {
		if (atomic_load_explicit(&t->busy, memory_order_relaxed))
			return NULL;
		gate = atomic_load_explicit(&t->gate, memory_order_relaxed);
		if ((gate & LIFT_GATE_STARVED) && wants_memory) {
			if (t->starved > 0) {
				t->starved--;
				return NULL;
			}
			atomic_fetch_and_explicit(&t->gate, (uint8_t)~LIFT_GATE_STARVED, memory_order_relaxed);
		}
	}

	saved = errno;
	in_slow = 1;
	atomic_signal_fence(memory_order_seq_cst);
	lift_lock(&list_lock); /* waits for a fork to be over */
	if (lift_thread_self == &unregistered)
		register_thread();
	t = lift_thread_self;
	if (t == &exiting) {
		/* No slot: keep the lock as long as this call lasts, which holds off forks just as well. */
		lift_heap_drain();
		errno = saved;
		return t;
	}
	atomic_store_explicit(&t->busy, 1, memory_order_relaxed);
	atomic_fetch_and_explicit(&t->gate, (uint8_t)~LIFT_GATE_DEFER, memory_order_relaxed);
	lift_unlock(&list_lock);
	in_slow = 0;
	lift_heap_drain();
	errno = saved;
	return t;
}

void lift_thread_leave_slow(struct lift_thread *t)
{
	if (t == &exiting) {
		lift_unlock(&list_lock);
		atomic_signal_fence(memory_order_seq_cst);
		in_slow = 0;
		return;
	}
	lift_thread_leave(t);
}

void lift_thread_starved(struct lift_thread *t)
{
	if (t == &exiting)
		return;
	t->starve_step = (uint16_t)(t->starve_step ? t->starve_step * 2 : 8);
	if (t->starve_step > 4096)
		t->starve_step = 4096;
	t->starved = t->starve_step;
	atomic_fetch_or_explicit(&t->gate, LIFT_GATE_STARVED, memory_order_relaxed);
}

void lift_thread_fed(struct lift_thread *t)
{
	t->starve_step = 0;
}

void lift_thread_defer(void)
{
	struct lift_thread *t = lift_thread_self;

	if (t != &unregistered && t != &exiting)
		atomic_fetch_or_explicit(&t->gate, LIFT_GATE_DEFER, memory_order_relaxed);
}

static uint64_t now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

/*
 * Another thread may have stored busy and read an open gate, with its store still in its CPU's store
 * buffer. membarrier(2) would flush it, but a sandbox that kills unknown calls would take the program
 * down at its next fork. Stores leave the buffer by themselves within a few hundred nanoseconds, even in
 * a virtual machine (an exit drains it), so waiting some tens of microseconds, with a TLB shootdown to all
 * CPUs of the process thrown in, is enough; a fork of a threaded process takes longer than that anyway.
 */
static void let_stores_drain(void)
{
	static _Alignas(4096) unsigned char page[4096];
	uint64_t start = now_us();

	*(volatile unsigned char *)page = 1;
	(void)lift_sys_mprotect(page, sizeof(page), PROT_READ);
	(void)lift_sys_mprotect(page, sizeof(page), PROT_READ | PROT_WRITE);
	while (now_us() - start < 30)
		;
}

void lift_thread_stop(void)
{
	struct lift_thread *t;
	bool others = false;
	uint64_t start;

	in_slow = 1;
	atomic_signal_fence(memory_order_seq_cst);
	lift_lock(&list_lock);
	for (t = slots; t; t = t->all) {
		if (t == lift_thread_self || !atomic_load_explicit(&t->in_use, memory_order_acquire))
			continue;
		atomic_fetch_or_explicit(&t->gate, LIFT_GATE_CLOSED, memory_order_seq_cst);
		others = true;
	}
	if (others) {
		let_stores_drain();
		start = now_us();
		for (t = slots; t; t = t->all) {
			if (t == lift_thread_self)
				continue;
			while (atomic_load_explicit(&t->in_use, memory_order_acquire) &&
				atomic_load_explicit(&t->busy, memory_order_acquire) &&
				now_us() - start < 2000000)
				lift_sys_yield();
		}
	}
	/* in_slow stays set: what other fork handlers allocate on an unregistered thread goes to libc. */
}

void lift_thread_resume(void)
{
	struct lift_thread *t;

	for (t = slots; t; t = t->all)
		atomic_fetch_and_explicit(&t->gate, (uint8_t)~LIFT_GATE_CLOSED, memory_order_release);
	lift_unlock(&list_lock);
	in_slow = 0;
}

void lift_thread_resume_child(void)
{
	struct lift_thread *t;

	for (t = slots; t; t = t->all) {
		if (t != lift_thread_self) {
			atomic_store_explicit(&t->busy, 0, memory_order_relaxed);
			atomic_store_explicit(&t->in_use, false, memory_order_relaxed);
		}
		atomic_fetch_and_explicit(&t->gate, (uint8_t)~LIFT_GATE_CLOSED, memory_order_relaxed);
	}
	lift_lock_reset(&list_lock);
	in_slow = 0;
}
