/* A dependency that uses the heap from its first constructor to its last destructor, and around
 * fork. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

int early_good(void);
int early_forks(void);

enum { BLOCKS = 400 };
static char *block[BLOCKS];
static char *extra;
static int good;
static int forks;

static void around_fork(void)
{
	char *some = malloc(2000);

	extra = realloc(extra, 100 + (size_t)forks * 10);
	if (some && extra) {
		memset(some, 1, 2000);
		forks++;
	}
	free(some);
	free(malloc(3000000));
}

static void at_end(void)
{
	free(block[BLOCKS - 1]);
	block[BLOCKS - 1] = malloc(50);
}

__attribute__((constructor(101))) static void first(void)
{
	free(NULL);
	for (int i = 0; i < BLOCKS; i++) {
		size_t size = (size_t)(i * i) + 1;

		block[i] = i % 4 == 0 ? calloc(1, size) : malloc(size);
		if (i % 4 == 1)
			block[i] = realloc(block[i], size * 2);
		if (i % 4 == 2)
			good += !posix_memalign((void **)&block[i], 64, size) && block[i];
		else
			good += block[i] != NULL;
		block[i][size - 1] = (char)i;
	}
	for (int i = 0; i < 100; i++)
		atexit(at_end); /* libc's own table grows by its inner calloc */
	pthread_atfork(around_fork, around_fork, around_fork);
}

__attribute__((destructor(101))) static void last(void)
{
	for (int i = 0; i < BLOCKS; i++) {
		block[i] = realloc(block[i], 30000);
		free(block[i]);
	}
	free(malloc(5000000));
}

int early_good(void)
{
	for (int i = 0; i < BLOCKS - 1; i++)
		if (i % 4 != 2 && block[i][(size_t)(i * i)] != (char)i)
			return -i;
	return good;
}

int early_forks(void)
{
	return forks;
}
