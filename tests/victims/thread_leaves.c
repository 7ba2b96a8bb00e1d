/* Memory of threads that are gone is used again: neither ends of threads nor one-way traffic pile
 * it up. */
#include <pthread.h>
#include <sched.h>

#include "victim.h"

enum { BLOCKS = 400, BLOCK = 50000, QUEUE = 64 };

static char *queue[QUEUE];

static void *leave(void *arg)
{
	char **block = malloc(BLOCKS * sizeof(*block));

	(void)arg;
	CHECK(block);
	for (int i = 0; i < BLOCKS; i++) {
		block[i] = malloc(BLOCK);
		CHECK(block[i]);
		memset(block[i], 1, BLOCK);
	}
	return block; /* 20 MB that the joining thread frees */
}

static void *produce(void *arg)
{
	for (long i = 0; i < 100000; i++) {
		char *made = malloc((size_t)(i % 4000) + 100);
		char *none = NULL;

		CHECK(made);
		made[0] = 1;
		while (!__atomic_compare_exchange_n(
			&queue[i % QUEUE], &none, made, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
			none = NULL;
			sched_yield();
		}
	}
	return arg;
}

static void *consume(void *arg)
{
	for (long i = 0; i < 100000; i++) {
		char *taken;

		while (!(taken = __atomic_exchange_n(&queue[i % QUEUE], NULL, __ATOMIC_ACQ_REL)))
			sched_yield();
		CHECK(taken[0] == 1);
		free(taken);
	}
	return arg;
}

int main(void)
{
	pthread_t one;
	pthread_t other;
	long before = 0;

	for (int round = 0; round < 40; round++) {
		void *result;

		CHECK(!pthread_create(&one, NULL, leave, NULL) && !pthread_join(one, &result));
		char **block = result;

		for (int i = 0; i < BLOCKS; i++)
			free(block[i]);
		free(block);
		if (round == 5)
			before = status_kb("VmRSS:");
	}
	if (status_kb("VmRSS:") > before + 60000)
		FAIL("%ld kB pile up behind threads", status_kb("VmRSS:") - before);
	before = status_kb("VmRSS:");
	CHECK(!pthread_create(&one, NULL, produce, NULL));
	CHECK(!pthread_create(&other, NULL, consume, NULL));
	pthread_join(one, NULL);
	pthread_join(other, NULL);
	if (status_kb("VmRSS:") > before + 60000)
		FAIL("%ld kB pile up in one-way traffic", status_kb("VmRSS:") - before);
	return pass();
}
