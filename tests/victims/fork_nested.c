/* Five generations of forks; each starts threads that allocate and frees what its ancestors made.
 */
#include <pthread.h>

#include "victim.h"

static void *work(void *arg)
{
	exercise_heap((unsigned)(uintptr_t)arg, 3000);
	return strdup("result");
}

static void generation(int depth, char *inherited)
{
	pthread_t thread[3];
	void *result;

	CHECK(!strcmp(inherited, "from the ancestor"));
	for (uintptr_t i = 0; i < 3; i++)
		CHECK(!pthread_create(&thread[i], NULL, work, (void *)(i + 10)));
	char *next = strdup("from the ancestor");

	if (depth > 0) {
		pid_t child = fork(); /* beside its three threads */

		if (!child) {
			alarm(20);
			free(inherited);
			generation(depth - 1, next);
			_exit(0);
		}
		expect_child_ok(child, "nested fork");
	}
	for (int i = 0; i < 3; i++) {
		CHECK(!pthread_join(thread[i], &result));
		free(result);
	}
	free(next);
	if (count_names("/proc/self/task") > 1) { /* the joined threads may take a moment to go */
		for (int i = 0; i < 200 && count_names("/proc/self/task") > 1; i++)
			usleep(10000);
		if (count_names("/proc/self/task") > 1)
			FAIL("%d threads in generation %d", count_names("/proc/self/task"), depth);
	}
}

int main(void)
{
	generation(5, strdup("from the ancestor"));
	return pass();
}
