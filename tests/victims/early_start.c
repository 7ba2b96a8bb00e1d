/* Heap use in preinit_array and first constructors, whose blocks live on; atfork handlers older
 * than any preload's. */
#include <pthread.h>

#include "victim.h"

int early_good(void);
int early_forks(void);

static char *from_preinit[3];
static int handled;

static void preinit(int argc, char **argv, char **envp)
{
	(void)argc;
	(void)argv;
	(void)envp;
	from_preinit[0] = malloc(100);
	from_preinit[1] = calloc(100, 100);
	from_preinit[2] = realloc(malloc(10), 4000000);
	free(malloc(70000));
	memset(from_preinit[2], 4, 4000000);
}

__attribute__((section(".preinit_array"), used)) static void (*first_of_all)(
	int, char **, char **) = preinit;

static void own_handler(void)
{
	free(malloc(900));
	handled++;
}

int main(void)
{
	CHECK(from_preinit[0] && from_preinit[1] && from_preinit[2]);
	CHECK(from_preinit[1][9999] == 0 && from_preinit[2][3999999] == 4);
	if (early_good() != 400)
		FAIL("only %d of 400 early blocks are right", early_good());
	for (int i = 0; i < 3; i++) {
		from_preinit[i] = realloc(from_preinit[i], 200000);
		CHECK(from_preinit[i]);
		from_preinit[i][199999] = 1;
		free(from_preinit[i]);
	}
	pthread_atfork(own_handler, own_handler, own_handler);
	for (int i = 0; i < 5; i++) {
		pid_t child = fork();

		if (!child) {
			exercise_heap(5, 500);
			_exit(early_good() != 400);
		}
		expect_child_ok(child, "fork with handlers that allocate");
	}
	if (early_forks() != 10 || handled != 10)
		FAIL("%d and %d fork handlers ran, not 10", early_forks(), handled);
	exercise_heap(1, 3000);
	return pass();
}
