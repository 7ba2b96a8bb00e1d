/*
 * Programs that give up rights after their start: chroot to an empty folder, setuid of all threads,
 * no dumps, no new executable memory, no files at all. Argument: which.
 */
#include <grp.h>
#include <linux/landlock.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "victim.h"

#ifndef PR_SET_MDWE
#define PR_SET_MDWE 65
#define PR_MDWE_REFUSE_EXEC_GAIN 1
#endif

static int stop;

static void *churn(void *arg)
{
	for (unsigned i = 0; !__atomic_load_n(&stop, __ATOMIC_RELAXED); i++)
		exercise_heap(i + (unsigned)(uintptr_t)arg, 100);
	return NULL;
}

static void enter_empty_root(void)
{
	char folder[] = "/tmp/victim-root-XXXXXX";

	CHECK(mkdtemp(folder));
	int refused = chroot(folder) || chdir("/");

	if (refused) {
		rmdir(folder);
		SKIP("chroot is not allowed here");
	}
}

static void drop_user(void)
{
	DIR *tasks;

	if (geteuid() != 0)
		SKIP("needs root");
	CHECK(!setgroups(0, NULL) && !setresgid(65534, 65534, 65534));
	CHECK(!setresuid(65534, 65534, 65534));
	tasks = opendir("/proc/self/task");
	for (struct dirent *task = tasks ? readdir(tasks) : NULL; task; task = readdir(tasks)) {
		char path[300];
		struct stat owner;

		snprintf(path, sizeof(path), "/proc/self/task/%s/fdinfo", task->d_name);
		if (task->d_name[0] != '.' && !stat(path, &owner))
			CHECK(owner.st_uid == 65534 || owner.st_uid == 0);
		snprintf(path, sizeof(path), "/proc/self/task/%s/status", task->d_name);
		FILE *status = task->d_name[0] == '.' ? NULL : fopen(path, "re");
		char line[200];

		while (status && fgets(line, sizeof(line), status))
			if (!strncmp(line, "Uid:", 4) &&
				strcmp(line + 4, "\t65534\t65534\t65534\t65534\n"))
				FAIL("thread %s kept its ids", task->d_name);
		if (status)
			fclose(status);
	}
	if (tasks)
		closedir(tasks);
}

static void forbid_files(void)
{
	struct landlock_ruleset_attr all = {.handled_access_fs = (1ULL << 13) - 1};
	int rules = (int)syscall(SYS_landlock_create_ruleset, &all, sizeof(all), 0);

	if (rules < 0)
		SKIP("no landlock here, errno %d", errno);
	CHECK(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	CHECK(!syscall(SYS_landlock_restrict_self, rules, 0));
	close(rules);
	CHECK(open("/proc/self/status", O_RDONLY) < 0 && errno == EACCES);
}

int main(int argc, char **argv)
{
	const char *which = argc > 1 ? argv[1] : "user";
	pthread_t thread[3];

	exercise_heap(1, 5000);
	for (uintptr_t i = 0; i < 3; i++)
		CHECK(!pthread_create(&thread[i], NULL, churn, (void *)i));
	usleep(50000);
	if (!strcmp(which, "root"))
		enter_empty_root();
	else if (!strcmp(which, "user"))
		drop_user();
	else if (!strcmp(which, "files"))
		forbid_files();
	else if (!strcmp(which, "dumps"))
		CHECK(!prctl(PR_SET_DUMPABLE, 0));
	else if (prctl(PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN, 0, 0, 0))
		SKIP("no PR_SET_MDWE here, errno %d", errno);
	exercise_heap(2, 20000);
	free(calloc(1, 300 * MIB));
	pid_t child = fork();

	if (!child) {
		exercise_heap(3, 5000);
		_exit(0);
	}
	expect_child_ok(child, "a child without rights");
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	for (int i = 0; i < 3; i++)
		pthread_join(thread[i], NULL);
	return pass();
}
