/*
 * A large, busy program on one node: after two seconds of CPU time and 200 MiB resident it still
 * has only its own threads, children, timers and signal handlers.
 */
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>
#include <time.h>

#include "victim.h"

static void *wait_here(void *arg)
{
	sigset_t *all = arg;
	int got;

	sigwait(all, &got);
	return NULL;
}

int main(int argc, char **argv)
{
	enum { OWN = 3 };
	const long seconds = argc > 1 ? atol(argv[1]) : 2;
	pthread_t thread[OWN];
	struct itimerval timer;
	struct timespec used = {0, 0};
	sigset_t all;
	sigset_t mask;

	sigemptyset(&all);
	sigaddset(&all, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &all, NULL);
	for (int i = 0; i < OWN; i++)
		CHECK(!pthread_create(&thread[i], NULL, wait_here, &all));
	char *large = malloc(200 * MIB);

	CHECK(large);
	memset(large, 1, 200 * MIB);
	for (unsigned round = 0; used.tv_sec < seconds; round++) {
		exercise_heap(round, 1000);
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
	}
	int tasks = count_names("/proc/self/task");

	if (tasks > 0 && tasks != OWN + 1)
		FAIL("%d threads instead of %d", tasks, OWN + 1);
	CHECK(waitpid(-1, NULL, WNOHANG | __WALL) == -1 && errno == ECHILD);
	for (int which = ITIMER_REAL; which <= ITIMER_PROF; which++)
		CHECK(!getitimer(which, &timer) && !timer.it_value.tv_sec &&
			!timer.it_value.tv_usec);
	for (int signal = 1; signal < 32; signal++) {
		struct sigaction action;

		if (!sigaction(signal, NULL, &action) && action.sa_handler != SIG_DFL)
			FAIL("signal %d has a handler or is ignored", signal);
	}
	pthread_sigmask(SIG_BLOCK, NULL, &mask);
	for (int signal = 1; signal < 32; signal++)
		CHECK(sigismember(&mask, signal) == (signal == SIGUSR1));
	for (int i = 0; i < OWN; i++)
		pthread_kill(thread[i], SIGUSR1);
	for (int i = 0; i < OWN; i++)
		pthread_join(thread[i], NULL);
	free(large);
	return pass();
}
