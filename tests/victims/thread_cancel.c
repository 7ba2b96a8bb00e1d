/*
 * malloc, free, mmap and their relatives are no cancellation points: a thread with a pending
 * cancellation gets through them, also where it is the first to use the heap or memory is refused.
 */
#include <pthread.h>
#include <sys/mman.h>

#include "victim.h"

enum { THREADS = 60 };

static int go[THREADS];
static int passed[THREADS];

static void cleanup(void *arg)
{
	free(arg);
}

static void *body(void *arg)
{
	int me = (int)(intptr_t)arg;

	while (!__atomic_load_n(&go[me], __ATOMIC_ACQUIRE))
		;
	char *block = malloc((size_t)me * 1000 + 1); /* the cancellation is pending from here on */

	pthread_cleanup_push(cleanup, block);
	exercise_heap((unsigned)me, 300);
	if (malloc((size_t)PTRDIFF_MAX) || errno != ENOMEM)
		FAIL("a request of PTRDIFF_MAX");
	char *map = mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(map != MAP_FAILED);
	map = mremap(map, MIB, 3 * MIB, MREMAP_MAYMOVE);
	CHECK(map != MAP_FAILED && !mprotect(map, MIB, PROT_READ) && !munmap(map, 3 * MIB));
	free(calloc(1, 70 * MIB));
	passed[me] = 1;
	pthread_testcancel();
	passed[me] = 2;
	pthread_cleanup_pop(1);
	return NULL;
}

int main(void)
{
	pthread_t thread[THREADS];

	for (intptr_t i = 0; i < THREADS; i++) {
		CHECK(!pthread_create(&thread[i], NULL, body, (void *)i));
		CHECK(!pthread_cancel(thread[i]));
		__atomic_store_n(&go[i], 1, __ATOMIC_RELEASE);
	}
	for (int i = 0; i < THREADS; i++) {
		void *result;

		CHECK(!pthread_join(thread[i], &result));
		if (passed[i] != 1 || result != PTHREAD_CANCELED)
			FAIL("thread %d was cancelled %s", i,
				passed[i] ? "too late" : "in the middle of a heap call");
	}
	exercise_heap(1, 2000);
	return pass();
}
