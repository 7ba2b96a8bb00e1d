/* Several threads fork at the same time; each child allocates, frees and forks again. */
#include <pthread.h>

#include "victim.h"

static void *forker(void *arg)
{
	for (unsigned i = 0; i < 25; i++) {
		char *text = strdup("made before the fork");
		pid_t child = fork();

		if (!child) {
			alarm(20);
			free(text);
			exercise_heap(i, 200);
			pid_t grandchild = fork();

			if (!grandchild) {
				exercise_heap(i + 1, 200);
				_exit(0);
			}
			expect_child_ok(grandchild, "a fork in the child");
			_exit(0);
		}
		exercise_heap(i + (unsigned)(uintptr_t)arg, 50);
		expect_child_ok(child, "threads that fork together");
		free(text);
	}
	return NULL;
}

int main(void)
{
	pthread_t thread[4];

	for (uintptr_t i = 0; i < 4; i++)
		CHECK(!pthread_create(&thread[i], NULL, forker, (void *)(i + 1)));
	for (int i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
	return pass();
}
