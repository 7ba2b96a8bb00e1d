/*
 * daemon() and the classical double fork after the heap has been busy: the daemon is in a session
 * of its own, allocates with threads, has no thread or descriptor of anybody else, and costs
 * nothing idle.
 */
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "victim.h"

static void *work(void *arg)
{
	exercise_heap((unsigned)(uintptr_t)arg, 5000);
	return NULL;
}

/* Threads, without the one of that name that comes a second after the fork where it is asked for.
 */
static int own_threads(void)
{
	DIR *dir = getenv("NUMALIFT_PROMOTE") ? opendir("/proc/self/task") : NULL;
	int count = count_names("/proc/self/task");

	for (struct dirent *entry; dir && (entry = readdir(dir)) != NULL;) {
		char path[300];
		char name[32] = "";
		FILE *f;

		snprintf(path, sizeof(path), "/proc/self/task/%s/comm", entry->d_name);
		f = entry->d_name[0] == '.' ? NULL : fopen(path, "r");
		if (!f)
			continue;
		if (fgets(name, sizeof(name), f))
			count -= strcmp(name, "numalift\n") == 0;
		fclose(f);
	}
	if (dir)
		closedir(dir);
	return count;
}

static void be_daemon(char *kept)
{
	pthread_t thread[3];
	struct rusage before;
	struct rusage after;

	for (uintptr_t i = 0; i < 3; i++)
		CHECK(!pthread_create(&thread[i], NULL, work, (void *)i));
	for (int i = 0; i < 3; i++)
		pthread_join(thread[i], NULL);
	for (size_t i = 0; i < 3 * MIB; i += 4096)
		CHECK(kept[i] == 'k');
	free(kept);
	for (int i = 0; i < 200 && own_threads() != 1; i++)
		usleep(10000);
	CHECK(own_threads() == 1);
	getrusage(RUSAGE_SELF, &before);
	usleep(300000);
	getrusage(RUSAGE_SELF, &after);
	CHECK(after.ru_nvcsw - before.ru_nvcsw < 5);
	_exit(0);
}

static void double_fork(char *kept)
{
	pid_t first = fork();

	if (first == 0) {
		CHECK(setsid() == getpid());
		pid_t second = fork();

		if (second == 0) {
			CHECK(getsid(0) != getpid());
			be_daemon(kept);
		}
		_exit(second < 0);
	}
	expect_child_ok(first, "the first of two forks");
}

int main(void)
{
	char *kept = malloc(3 * MIB);
	int daemons = 0;
	int status;

	CHECK(!prctl(PR_SET_CHILD_SUBREAPER, 1)); /* the daemons come back to this process */
	memset(kept, 'k', 3 * MIB);
	exercise_heap(1, 20000);
	double_fork(kept);
	pid_t caller = fork();

	if (!caller) {
		CHECK(!daemon(1, 1));
		be_daemon(kept);
	}
	while (wait(&status) > 0) {
		daemons++;
		if (status)
			FAIL("a daemon ended with %#x", (unsigned)status);
	}
	CHECK(daemons == 3 && errno == ECHILD); /* two daemons and the caller of daemon() */
	return pass();
}
