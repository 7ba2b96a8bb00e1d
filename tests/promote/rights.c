// SPDX-License-Identifier: MIT
/*
 * A program that is large enough for a worker, waits for it, and then changes what it may do. All
 * its threads have to have the same rights afterwards.
 *
 *   rights WHAT      prints "threads N", and "differs ..." where one has other rights
 */
#include <dirent.h>
#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/numa/where.h"
#include "tests/victims/rights.h"

static char *on_one_line(char *text)
{
	for (char *p = text; *p; p++)
		if (*p == '\n' || *p == '\t')
			*p = ' ';
	return text;
}

static void compare(void)
{
	char mine[1024];
	char other[1024];
	char self[16];
	unsigned threads = 0;
	DIR *d = opendir("/proc/self/task");

	snprintf(self, sizeof(self), "%d", (int)getpid());
	rights_of(self, mine, sizeof(mine));
	for (struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d)) {
		if (e->d_name[0] == '.')
			continue;
		threads++;
		if (rights_differ(e->d_name, mine, other, sizeof(other)))
			printf("differs: %s; main thread %s\n", on_one_line(other),
				on_one_line(mine));
	}
	if (d)
		closedir(d);
	printf("threads %u\n", threads);
}

static void grow(void)
{
	enum { BYTES = 136 << 20, TENTHS = 25 };
	char *p = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	where_touch(p, BYTES, "mmap");
	for (int i = 0; i < TENTHS; i++) {
		usleep(100000);
		where_touch(p, BYTES / TENTHS, "mmap");
	}
}

static void no_capabilities(void)
{
	struct __user_cap_header_struct h = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct none[2] = {{0}};

	if (syscall(SYS_capset, &h, none))
		where_die("capset");
}

static void child_ends(pid_t pid, const char *what)
{
	enum { TENTHS = 600 };
	int status = 0;

	if (pid < 0)
		where_die(what);
	for (int i = 0; i < TENTHS; i++) {
		if (waitpid(pid, &status, WNOHANG) == pid) {
			printf("child %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
			return;
		}
		usleep(100000);
	}
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	printf("child hung\n");
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	pid_t pid;

	grow();
	if (strcmp(what, "setuid") == 0) {
		gid_t groups[] = {1000, 101};

		if (setgroups(2, groups) || setresgid(1000, 1000, 1000) ||
			setresuid(1000, 1000, 1000))
			where_die(what);
	} else if (strcmp(what, "seteuid") == 0) {
		if (setegid(1000) || seteuid(1000))
			where_die(what);
	} else if (strcmp(what, "raw") == 0) {
		if (syscall(SYS_setresuid, 1000, 1000, 1000))
			where_die(what);
	} else if (strcmp(what, "capset") == 0) {
		no_capabilities();
	} else if (strcmp(what, "bounding") == 0) {
		if (prctl(PR_CAPBSET_DROP, CAP_SYS_ADMIN, 0, 0, 0))
			where_die(what);
	} else if (strcmp(what, "no-new-privs") == 0) {
		if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
			where_die(what);
	} else if (strcmp(what, "unshare") == 0) {
		if (unshare(CLONE_NEWUSER))
			where_die(what);
	} else if (strcmp(what, "raw-fork") == 0) {
		pid = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
		if (pid == 0)
			_exit(setgid(1000) || setuid(1000) ||
				prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
		child_ends(pid, what);
	} else if (strcmp(what, "vfork") == 0) {
		pid = vfork();
		if (pid == 0)
			_exit(setgid(1000) || setuid(1000));
		child_ends(pid, what);
	} else if (strcmp(what, "leave") == 0) {
		fflush(stdout);
		syscall(SYS_exit, 0);
	}
	compare();
	return 0;
}
