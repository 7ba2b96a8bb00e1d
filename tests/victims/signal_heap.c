/*
 * Signals and the heap. "handler": handlers allocate while no allocation is interrupted. "storm":
 * a timer interrupts allocations all the time and its handler does what handlers may. "jump":
 * handlers leave by siglongjmp. "stack": they run on a small alternate stack. "busy": they allocate
 * whatever they interrupted, which deadlocks under glibc now and then.
 */
#include <setjmp.h>
#include <signal.h>
#include <sys/time.h>

#include "victim.h"

static volatile sig_atomic_t seen;
static sigjmp_buf back;
static char *made;

static void allocate(int signal)
{
	int saved = errno;

	(void)signal;
	seen++;
	made = realloc(made, (size_t)seen % 3000 + 1);
	free(malloc(40000));
	free(calloc(1, 2 * MIB));
	errno = saved;
}

static void count(int signal)
{
	(void)signal;
	seen++;
}

static void jump(int signal)
{
	allocate(signal);
	siglongjmp(back, 1);
}

static void handle(int signal, void (*handler)(int), int flags)
{
	struct sigaction action = {.sa_handler = handler, .sa_flags = flags};

	CHECK(!sigaction(signal, &action, NULL));
}

static void every(long microseconds)
{
	struct itimerval timer = {{0, microseconds}, {0, microseconds}};

	CHECK(!setitimer(ITIMER_REAL, &timer, NULL));
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "handler";

	if (!strcmp(mode, "handler") || !strcmp(mode, "stack")) {
		stack_t small = {.ss_sp = malloc(16 * KIB), .ss_size = 16 * KIB};

		CHECK(!sigaltstack(&small, NULL));
		handle(SIGUSR1, allocate, !strcmp(mode, "stack") ? SA_ONSTACK : 0);
		for (int i = 0; i < 5000; i++) {
			raise(SIGUSR1);
			free(malloc(mixed_size(&(unsigned){(unsigned)i + 1})));
		}
		CHECK(seen == 5000);
	} else if (!strcmp(mode, "jump")) {
		handle(SIGUSR1, jump, SA_NODEFER);
		for (volatile int i = 0; i < 5000; i++) {
			if (!sigsetjmp(back, 1))
				raise(SIGUSR1);
			free(malloc((size_t)i * 50));
		}
		CHECK(seen == 5000);
	} else {
		int quiet = strcmp(mode, "busy") != 0;

		handle(SIGALRM, quiet ? count : allocate, 0);
		every(200);
		for (unsigned round = 0; seen < 500; round++)
			exercise_heap(round, 500);
		every(0);
	}
	exercise_heap(77, 1000);
	return pass();
}
