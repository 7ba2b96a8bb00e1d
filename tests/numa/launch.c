// SPDX-License-Identifier: MIT
/*
 * Starts a program in a state that a test wants, without being in anybody's way itself:
 *
 *   launch [-e NODE[,NODE...]:LEFT] [-n NODE] [-u UID] [-p NAME=VALUE]... [-d ERRNO|kill] --
 * PROGRAM ARGS
 *
 *   -e  while it runs these nodes are full: LEFT MiB are left free on each
 *   -n  on the first CPU of this node, and only there
 *   -u  as this user, with no capability and no other group
 *   -p  with this in its environment (LD_PRELOAD so that it does not reach this program)
 *   -d  every memory policy call fails with that number, or kills
 */
#include <errno.h>
#include <grp.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/mempolicy.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/numa/where.h"

#ifndef SYS_set_mempolicy_home_node
#define SYS_set_mempolicy_home_node 450
#endif

static unsigned long free_mib(int node)
{
	char path[64];
	char line[128];
	unsigned long kb = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/sys/devices/system/node/node%d/meminfo", node);
	f = fopen(path, "r");
	if (!f)
		where_die(path);
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "Node %*d MemFree: %lu", &kb) == 1)
			break;
	fclose(f);
	return kb >> 10;
}

/* True: there was something to fill. */
static bool fill(int node, unsigned long left)
{
	enum { STEP = 4 }; /* MiB */
	unsigned long mask = 1ul << node;
	bool filled = false;

	while (free_mib(node) > left) {
		size_t len = (size_t)STEP << 20;
		void *p =
			mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (p == MAP_FAILED || syscall(SYS_mbind, p, len, MPOL_BIND, &mask, 64ul, 0ul))
			where_die("filling a node");
		where_touch(p, len, "filling a node");
		filled = true;
	}
	return filled;
}

static void fill_nodes(const char *spec)
{
	const char *colon = strchr(spec, ':');
	unsigned long left = colon ? strtoul(colon + 1, NULL, 10) : 0;
	char *end;

	/* What a program before has freed comes back with time: until none does. */
	for (unsigned quiet = 0; quiet < 3; quiet++) {
		for (const char *p = spec; p < colon; p = end + 1)
			if (fill((int)strtol(p, &end, 10), left))
				quiet = 0;
		usleep(50000);
	}
}

static void deny(const char *how)
{
	unsigned what = strcmp(how, "kill") == 0
				? SECCOMP_RET_KILL_PROCESS
				: SECCOMP_RET_ERRNO | ((unsigned)atoi(how) & SECCOMP_RET_DATA);
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mbind, 4, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_set_mempolicy, 3, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_get_mempolicy, 2, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_set_mempolicy_home_node, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, what),
	};
	struct sock_fprog prog = {sizeof(code) / sizeof(code[0]), code};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
		prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog))
		where_die("seccomp");
}

int main(int argc, char **argv)
{
	const char *filled = NULL;
	const char *denied = NULL;
	int node = -1;
	long uid = -1;
	int opt;

	while ((opt = getopt(argc, argv, "+e:n:u:p:d:")) != -1) {
		switch (opt) {
		case 'e':
			filled = optarg;
			break;
		case 'n':
			node = atoi(optarg);
			break;
		case 'u':
			uid = atol(optarg);
			break;
		case 'p':
			putenv(optarg);
			break;
		case 'd':
			denied = optarg;
			break;
		default:
			return 2;
		}
	}
	if (optind >= argc)
		return 2;
	if (filled) {
		int status;
		pid_t pid;

		fill_nodes(filled);
		pid = fork();
		if (pid < 0)
			where_die("fork");
		if (pid > 0) {
			if (waitpid(pid, &status, 0) != pid)
				where_die("waitpid");
			return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
		}
		/* The child has no use for the mappings, and exec drops them; the parent keeps the
		 * pages. */
	}
	if (node >= 0 && where_pin(node))
		where_die("pinning to a node");
	if (uid >= 0 && (setgroups(0, NULL) || setgid((gid_t)uid) || setuid((uid_t)uid)))
		where_die("changing the user");
	if (denied)
		deny(denied);
	execvp(argv[optind], argv + optind);
	where_die(argv[optind]);
}
