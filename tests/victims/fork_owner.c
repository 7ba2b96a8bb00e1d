/*
 * The thread that forks has made the blocks that eight others are freeing at that moment. An
 * allocator with marks "somebody is about to give this back" must not leave the child waiting for a
 * thread that it does not have: neither on allocation nor when the thread that forked ends there.
 */
#include <pthread.h>
#include <sched.h>

#include "victim.h"

enum { THREADS = 8, HEAP = 600, FORKS = 80 };

static void *heap[HEAP];
static size_t taken = HEAP; /* the next place whose block a thread frees */
static int stop;

static size_t size_of(size_t place)
{
	return 40000 + place % 5 * 9000; /* few to a page of the allocator */
}

static void *give_back(void *arg)
{
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		size_t place = HEAP;

		if (__atomic_load_n(&taken, __ATOMIC_ACQUIRE) < HEAP)
			place = __atomic_fetch_add(&taken, 1, __ATOMIC_ACQ_REL);
		if (place < HEAP)
			free(__atomic_exchange_n(&heap[place], NULL, __ATOMIC_ACQ_REL));
		else
			sched_yield();
	}
	return arg;
}

static void use_heap(void)
{
	static void *mine[HEAP];

	for (int round = 0; round < 2; round++) {
		for (size_t i = 0; i < HEAP; i++) {
			mine[i] = malloc(size_of(i));
			CHECK(mine[i]);
			memset(mine[i], 1, 50);
		}
		for (size_t i = 0; i < HEAP; i++)
			free(mine[i]);
	}
}

static void *finish(void *forker)
{
	pthread_join((pthread_t)forker, NULL);
	use_heap();
	_exit(0);
}

static void *fork_often(void *arg)
{
	for (unsigned round = 0; round < FORKS; round++) {
		for (size_t i = 0; i < HEAP; i++)
			if (!heap[i])
				__atomic_store_n(&heap[i], malloc(size_of(i)), __ATOMIC_RELEASE);
		__atomic_store_n(&taken, 0, __ATOMIC_RELEASE);
		while (__atomic_load_n(&taken, __ATOMIC_ACQUIRE) < 20 + round * 3)
			sched_yield();
		pid_t pid = fork(); /* in the middle of it */

		if (!pid) {
			pthread_t last;

			alarm(15);
			for (size_t i = 0; i < HEAP; i += 2) /* what the others had not got to */
				free(heap[i]);
			use_heap();
			CHECK(!pthread_create(&last, NULL, finish, (void *)pthread_self()));
			return arg;
		}
		expect_child_ok(pid, "fork while others free the forking thread's blocks");
		while (__atomic_load_n(&taken, __ATOMIC_ACQUIRE) < HEAP)
			sched_yield();
	}
	return arg;
}

int main(void)
{
	pthread_t thread[THREADS];
	pthread_t forker;

	for (int i = 0; i < THREADS; i++)
		CHECK(!pthread_create(&thread[i], NULL, give_back, NULL));
	CHECK(!pthread_create(&forker, NULL, fork_often, NULL) && !pthread_join(forker, NULL));
	__atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	return pass();
}
