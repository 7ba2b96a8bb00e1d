/*
 * Under RLIMIT_AS or RLIMIT_DATA a program can allocate 60 % of the limit in mixed sizes, is
 * refused cleanly beyond, and can go on after it has freed something. Arguments: the limit in MiB,
 * "self" where the program sets the limit itself after it has used its heap.
 */
#include <pthread.h>
#include <sys/resource.h>

#include "victim.h"

enum { MOST = 400000 };

static char *block[MOST];

static void *in_thread(void *arg)
{
	exercise_heap((unsigned)(uintptr_t)arg, 200);
	return NULL;
}

int main(int argc, char **argv)
{
	const size_t limit = (argc > 1 ? strtoul(argv[1], NULL, 10) : 64) * MIB;
	size_t total = 0;
	size_t beyond = 0;
	unsigned state = 5;
	int count = 0;

	if (argc > 2) {
		exercise_heap(1, 2000);
		CHECK(!setrlimit(RLIMIT_AS, &(struct rlimit){limit, limit}));
	}
	while (total < limit / 10 * 6) {
		unsigned kind = rnd(&state) % 20;
		size_t size = kind < 17   ? rnd(&state) % 2000 + 1
			      : kind < 19 ? rnd(&state) % 20000 + 1
					  : rnd(&state) % 200000 + 1;

		CHECK(count < MOST);
		block[count] = malloc(size);
		if (!block[count])
			FAIL("refused at %zu of %zu MiB", total / MIB, limit / MIB);
		memset(block[count++], 'm', size);
		total += size;
	}
	char *large = malloc(limit / 8);

	if (!large)
		FAIL("no block of an eighth of the limit");
	large[limit / 8 - 1] = 1;
	free(large);
	CHECK(!malloc(limit * 2) && errno == ENOMEM);
	CHECK(!calloc(2, limit) && errno == ENOMEM);
	/* all the way to the end: a refusal, nothing worse */
	char **chain = NULL;

	for (;;) {
		char **link = malloc(50000);

		if (!link) {
			CHECK(errno == ENOMEM);
			break;
		}
		*link = (char *)chain;
		chain = link;
		beyond += 50000;
		CHECK(beyond < limit);
	}
	while (chain) {
		char **next = (char **)*chain;

		free(chain);
		chain = next;
	}
	for (int i = 0; i < count; i++) {
		CHECK(block[i][0] == 'm');
		free(block[i]);
	}
	for (int i = 0; i < 4; i++) { /* what was freed can be had again, as one block too */
		char *again = malloc(limit / 4);

		if (!again)
			FAIL("a quarter of the limit is not there after freeing all");
		again[0] = again[limit / 4 - 1] = 1;
		free(again);
	}
	pthread_t thread;
	pthread_attr_t small;

	CHECK(!pthread_attr_init(&small) && !pthread_attr_setstacksize(&small, 256 * KIB));
	for (uintptr_t i = 0; i < 20; i++) {
		CHECK(!pthread_create(&thread, &small, in_thread, (void *)i));
		pthread_join(thread, NULL);
	}
	return pass();
}
