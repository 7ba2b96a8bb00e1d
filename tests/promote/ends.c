// SPDX-License-Identifier: MIT
/*
 * A program whose memory is being moved when something happens to it.
 *
 *   ends WHAT SLOW
 *
 *   run       nothing does, for ever
 *   exit      it ends, while its threads work
 *   exec      it executes itself, which ends well
 *   fork      two threads fork all the time, and the children check what they have
 *   seccomp   a filter for all threads kills at calls that only a library makes
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/mempolicy.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/numa/where.h"

#define PAGE 4096ul
#define PAGES (160ul << 20 >> 12)
#define BATCH 1024ul
#define PARTS 4ul

static uint64_t *memory;
static time_t began;

static time_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec;
}

static void check(unsigned long part)
{
	for (unsigned long i = part * (PAGES / PARTS); i < (part + 1) * (PAGES / PARTS); i++)
		if (memory[i * PAGE / 8] != i) {
			fprintf(stderr, "page %lu holds %lu\n", i,
				(unsigned long)memory[i * PAGE / 8]);
			_exit(1);
		}
}

/* Another part is hot every two seconds. */
static void *work(void *arg)
{
	(void)arg;
	for (;;) {
		check((unsigned long)(now() - began) / 2 % PARTS);
		usleep(10000);
	}
	return NULL;
}

static void *forks(void *arg)
{
	int status;

	while (now() < began + 6) {
		pid_t pid = fork();

		if (pid < 0)
			where_die("fork");
		if (pid == 0) {
			check((unsigned long)(uintptr_t)arg);
			_exit(0);
		}
		if (waitpid(pid, &status, 0) != pid || status != 0) {
			fprintf(stderr, "a child ended with %#x\n", (unsigned)status);
			_exit(1);
		}
	}
	return NULL;
}

static void deny(void)
{
	static const unsigned calls[] = {SYS_move_pages, SYS_mbind, SYS_set_mempolicy,
		SYS_userfaultfd, SYS_process_madvise, SYS_migrate_pages};
	enum { NR = sizeof(calls) / sizeof(calls[0]) };
	struct sock_filter f[NR + 3];
	struct sock_fprog prog = {.len = NR + 3, .filter = f};

	f[0] = (struct sock_filter)BPF_STMT(
		BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
	for (unsigned i = 0; i < NR; i++)
		f[1 + i] = (struct sock_filter)BPF_JUMP(
			BPF_JMP | BPF_JEQ | BPF_K, calls[i], (unsigned char)(NR - i), 0);
	f[NR + 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	f[NR + 2] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
		syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &prog))
		where_die("seccomp");
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	pthread_t thread[2];

	if (argc != 3)
		return 2;
	if (strcmp(what, "again") == 0) {
		puts("ends well");
		return 0;
	}
	memory = mmap(
		NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		where_die("mmap");
	for (unsigned long i = 0; i < PAGES; i++)
		memory[i * PAGE / 8] = i;
	where_move(memory, PAGES * PAGE, atoi(argv[2]));
	began = now();
	for (uintptr_t i = 0; i < 2; i++)
		if (pthread_create(
			    &thread[i], NULL, strcmp(what, "fork") ? work : forks, (void *)i))
			where_die("pthread_create");
	if (strcmp(what, "run") == 0)
		pause();
	if (strcmp(what, "fork") == 0) {
		pthread_join(thread[0], NULL);
		pthread_join(thread[1], NULL);
	} else {
		usleep(3500000 + (unsigned)getpid() % 8 * 100000);
	}
	if (strcmp(what, "exec") == 0) {
		execl("/proc/self/exe", "ends", "again", argv[2], NULL);
		where_die("execl");
	}
	if (strcmp(what, "seccomp") == 0) {
		deny();
		sleep(4);
	}
	puts("ends well");
	exit(0);
}
