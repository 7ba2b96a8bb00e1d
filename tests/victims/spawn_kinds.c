/* vfork with exec, posix_spawn, system and popen, from a program whose other threads allocate. */
#include <pthread.h>
#include <signal.h>
#include <spawn.h>

#include "victim.h"

extern char **environ;

static int stop;

static void *churn(void *arg)
{
	for (unsigned i = 0; !__atomic_load_n(&stop, __ATOMIC_RELAXED); i++)
		exercise_heap(i + (unsigned)(uintptr_t)arg, 100);
	return NULL;
}

static void by_spawn(void)
{
	char *const argv[] = {"sh", "-c", "read line; test \"$line\" = hello", NULL};
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t none;
	int ends[2];
	pid_t child;

	CHECK(!pipe2(ends, O_CLOEXEC) && !sigemptyset(&none));
	CHECK(!posix_spawn_file_actions_init(&actions) && !posix_spawnattr_init(&attributes));
	CHECK(!posix_spawn_file_actions_adddup2(&actions, ends[0], 0));
	CHECK(!posix_spawnattr_setsigmask(&attributes, &none));
	CHECK(!posix_spawnattr_setflags(
		&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP));
	CHECK(!posix_spawnp(&child, "sh", &actions, &attributes, argv, environ));
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attributes);
	CHECK(write(ends[1], "hello\n", 6) == 6);
	close(ends[0]);
	close(ends[1]);
	expect_child_ok(child, "posix_spawn");
}

int main(void)
{
	pthread_t thread[2];

	for (uintptr_t i = 0; i < 2; i++)
		CHECK(!pthread_create(&thread[i], NULL, churn, (void *)i));
	for (int i = 0; i < 8; i++) {
		char line[100] = "";
		pid_t child = vfork();

		if (!child) {
			execl("/bin/sh", "sh", "-c", "exit 0", (char *)NULL);
			_exit(9);
		}
		expect_child_ok(child, "vfork and exec");
		by_spawn();
		int status = system("exit 5");

		if (!WIFEXITED(status) || WEXITSTATUS(status) != 5)
			FAIL("system gave %#x", (unsigned)status);
		FILE *from = popen("echo one", "re");

		CHECK(from && fgets(line, sizeof(line), from) && !strcmp(line, "one\n"));
		CHECK(!fgets(line, sizeof(line), from));
		CHECK(pclose(from) == 0);
		CHECK(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD);
	}
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	for (int i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	return pass();
}
