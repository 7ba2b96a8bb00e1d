/*
 * Forks from one thread while eight others allocate and free each other's blocks, so that the child
 * inherits blocks in every state of transit; the child must be able to use and free all it can
 * reach.
 */
#include <pthread.h>

#include "victim.h"

enum { THREADS = 8, SLOTS = 256, FORKS = 150 };

static char *slot[SLOTS];
static int stop;

static void *churn(void *arg)
{
	unsigned state = (unsigned)(uintptr_t)arg * 7919 + 1;

	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		size_t size = mixed_size(&state) / 4 + 1;
		char *mine = malloc(size);

		CHECK(mine);
		mine[0] = mine[size - 1] = 'c';
		free(__atomic_exchange_n(&slot[rnd(&state) % SLOTS], mine, __ATOMIC_ACQ_REL));
	}
	return NULL;
}

static void *short_life(void *arg)
{
	exercise_heap((unsigned)(uintptr_t)arg, 200);
	return strdup("from a thread of the child");
}

static void child(char **own, unsigned round)
{
	pthread_t thread;
	void *text;

	alarm(20);
	for (int i = 0; i < SLOTS; i++) {
		if (slot[i] && slot[i][0] != 'c')
			FAIL("round %u: an inherited block was overwritten", round);
		if (i % 3 == 0)
			slot[i] = realloc(slot[i], 5000);
		if (i % 3 != 2)
			free(slot[i]);
	}
	for (int i = 0; i < 40; i++) {
		CHECK(own[i][i * 100] == (char)i);
		free(own[i]);
	}
	exercise_heap(round, 400);
	CHECK(!pthread_create(&thread, NULL, short_life, (void *)(uintptr_t)round));
	CHECK(!pthread_join(thread, &text));
	free(text);
	_exit(0);
}

int main(void)
{
	pthread_t thread[THREADS];
	char *own[40];

	for (int i = 0; i < 40; i++) {
		own[i] = malloc((size_t)i * 3000 + 200);
		CHECK(own[i]);
		own[i][i * 100] = (char)i;
	}
	for (uintptr_t i = 0; i < THREADS; i++)
		CHECK(!pthread_create(&thread[i], NULL, churn, (void *)(i + 1)));
	for (unsigned round = 0; round < FORKS; round++) {
		pid_t pid = fork();

		if (!pid)
			child(own, round);
		expect_child_ok(pid, "fork beside eight allocating threads");
	}
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	return pass();
}
