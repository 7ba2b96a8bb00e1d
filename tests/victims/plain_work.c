/* An ordinary busy program: heap, threads, forks, mappings. For runs whose point is the
 * surroundings. */
#include <pthread.h>
#include <sys/mman.h>

#include "victim.h"

static void *work(void *arg)
{
	exercise_heap((unsigned)(uintptr_t)arg, 3000);
	return strdup("joined");
}

int main(void)
{
	pthread_t thread[3];
	void *text;

	for (uintptr_t i = 0; i < 3; i++)
		CHECK(!pthread_create(&thread[i], NULL, work, (void *)i));
	for (int i = 0; i < 3; i++) {
		CHECK(!pthread_join(thread[i], &text));
		free(text);
	}
	char *map = mmap(NULL, 5 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(map != MAP_FAILED);
	map = mremap(map, 5 * MIB, 9 * MIB, MREMAP_MAYMOVE);
	CHECK(map != MAP_FAILED && !munmap(map, 9 * MIB));
	char *large = calloc(1, 60 * MIB);

	CHECK(large);
	large = realloc(large, 90 * MIB);
	CHECK(large);
	free(large);
	pid_t child = fork();

	if (!child) {
		exercise_heap(9, 500);
		_exit(0);
	}
	expect_child_ok(child, "a fork");
	return pass();
}
