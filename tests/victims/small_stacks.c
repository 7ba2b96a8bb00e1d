/* Threads with the smallest stacks there are can allocate, resize and free; many of them. */
#include <limits.h>
#include <pthread.h>

#include "victim.h"

static void *body(void *arg)
{
	unsigned seed = (unsigned)(uintptr_t)arg;
	char *block = malloc(seed * 100 + 1);

	CHECK(block);
	block[0] = 1;
	block = realloc(block, seed * 3000 + 10);
	CHECK(block && block[0] == 1);
	free(calloc(1, 5 * MIB));
	free(block);
	exercise_heap(seed, 30); /* 2 KiB of its own */
	return NULL;
}

int main(int argc, char **argv)
{
	size_t stack = argc > 1 ? strtoul(argv[1], NULL, 10) * KIB : 64 * KIB;
	pthread_attr_t attributes;

	if (stack < (size_t)PTHREAD_STACK_MIN)
		stack = (size_t)PTHREAD_STACK_MIN;
	CHECK(!pthread_attr_init(&attributes));
	CHECK(!pthread_attr_setstacksize(&attributes, stack));
	for (unsigned round = 0; round < 20; round++) {
		pthread_t thread[20];

		for (unsigned i = 0; i < 20; i++) {
			int refused = pthread_create(
				&thread[i], &attributes, body, (void *)(uintptr_t)(round * 20 + i));

			if (refused)
				FAIL("pthread_create with %zu KiB gave %d", stack / KIB, refused);
		}
		for (int i = 0; i < 20; i++)
			pthread_join(thread[i], NULL);
	}
	body((void *)7);
	return pass();
}
