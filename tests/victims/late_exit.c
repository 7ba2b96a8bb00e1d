/* The heap works until the very end: exit handlers, quick_exit handlers, destructors, threads that
 * go on. */
#include <pthread.h>

#include "victim.h"

static char *kept[200];
static const char *mode;

static void *go_on(void *arg)
{
	for (;;)
		exercise_heap((unsigned)(uintptr_t)arg, 100);
	return NULL;
}

static void handler(void)
{
	for (int i = 0; i < 200; i++) {
		kept[i] = realloc(kept[i], 5000);
		CHECK(kept[i]);
	}
	exercise_heap(8, 300);
}

__attribute__((destructor)) static void last(void)
{
	for (int i = 0; i < 200; i++)
		free(kept[i]);
	free(malloc(3 * MIB));
}

static void *end_process(void *arg)
{
	pthread_join(*(pthread_t *)arg, NULL); /* the main thread is gone by then */
	exercise_heap(5, 1000);
	exit(pass());
}

int main(int argc, char **argv)
{
	static pthread_t self;
	pthread_t thread;

	mode = argc > 1 ? argv[1] : "exit";
	for (int i = 0; i < 200; i++)
		kept[i] = malloc((size_t)i * 200 + 1);
	atexit(handler);
	at_quick_exit(handler);
	for (uintptr_t i = 0; i < 2; i++)
		CHECK(!pthread_create(&thread, NULL, go_on, (void *)i));
	if (!strcmp(mode, "main-thread")) { /* main leaves first, another thread ends the process */
		self = pthread_self();
		CHECK(!pthread_create(&thread, NULL, end_process, &self));
		pthread_exit(NULL);
	}
	if (!strcmp(mode, "quick"))
		quick_exit(pass());
	if (!strcmp(mode, "_exit"))
		_exit(pass());
	setvbuf(stdout, malloc(1 << 16), _IOFBF, 1 << 16); /* flushed by exit */
	puts("ok");
	return 0;
}
