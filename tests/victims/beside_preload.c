/* A busy program for runs beside another preload; "count" and "mmap" check that the other one sees
 * its calls. */
#include <dlfcn.h>
#include <pthread.h>
#include <sys/mman.h>

#include "victim.h"

static void *busy(void *arg)
{
	exercise_heap((unsigned)(uintptr_t)arg, 20000);
	for (int i = 0; i < 200; i++) {
		char *map = mmap(
			NULL, 300000, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		CHECK(map != MAP_FAILED);
		map[299999] = 1;
		CHECK(!munmap(map, 300000));
	}
	return NULL;
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "";
	char symbol[40];
	pthread_t thread[3];

	snprintf(symbol, sizeof(symbol), "pre_%s_calls", name);
	unsigned long (*calls)(void) = (unsigned long (*)(void))dlsym(RTLD_DEFAULT, symbol);
	unsigned long before = calls ? calls() : 0;

	if (*name && !calls)
		FAIL("the other preload is not there");
	for (uintptr_t i = 0; i < 3; i++)
		CHECK(!pthread_create(&thread[i], NULL, busy, (void *)(i + 1)));
	for (int i = 0; i < 3; i++)
		pthread_join(thread[i], NULL);
	busy((void *)9);
	if (argc > 2 && calls() - before < strtoul(argv[2], NULL, 10))
		FAIL("the other preload saw %lu calls", calls() - before);
	pid_t child = fork();

	if (!child) {
		busy((void *)11);
		_exit(0);
	}
	expect_child_ok(child, "a fork beside another preload");
	return pass();
}
