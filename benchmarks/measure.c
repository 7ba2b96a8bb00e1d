// SPDX-License-Identifier: MIT
/*
 * Runs a program with a preload and writes what it used as one line of JSON. A small program of
 * its own because the peak that the kernel reports for a child is never below what its parent had
 * resident when it started the child: from a Python driver that would hide most differences.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

static volatile pid_t program;

/* Ends the program rather than leaving it behind; the report is written all the same. */
static void end_program(int number)
{
	(void)number;
	kill(program, SIGKILL);
}

/* Starts the program; no signal comes between its start and `program` being known. */
static int start_program(char **argv)
{
	posix_spawnattr_t attributes;
	sigset_t blocked;
	sigset_t before;
	pid_t pid;
	int error;

	sigemptyset(&blocked);
	sigaddset(&blocked, SIGTERM);
	sigaddset(&blocked, SIGINT);
	sigprocmask(SIG_BLOCK, &blocked, &before);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setsigmask(&attributes, &before);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
	error = posix_spawnp(&pid, argv[0], NULL, &attributes, argv, environ);
	posix_spawnattr_destroy(&attributes);
	if (error == 0) {
		program = pid;
		signal(SIGTERM, end_program);
		signal(SIGINT, end_program);
	}
	sigprocmask(SIG_SETMASK, &before, NULL);
	return error;
}

static double seconds(struct timeval t)
{
	return (double)t.tv_sec + (double)t.tv_usec * 1e-6;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int usage(FILE *to, int status)
{
	fputs("Usage: measure [-p PRELOAD] -o REPORT -- PROGRAM [ARGUMENT...]\n"
	      "\n"
	      "Runs PROGRAM and writes its time, processor time and peak memory to REPORT as one\n"
	      "line of JSON; the peak is that of its largest process. Exits as PROGRAM did.\n"
	      "SIGTERM and SIGINT end PROGRAM at once.\n"
	      "\n"
	      "  -p PRELOAD  value of LD_PRELOAD for PROGRAM\n"
	      "  -o REPORT   file to write\n",
		to);
	return status;
}

int main(int argc, char **argv)
{
	const char *report = NULL;
	struct rusage used;
	double start;
	double wall;
	FILE *out;
	int status;
	int c;

	if (argc == 2 && strcmp(argv[1], "--help") == 0)
		return usage(stdout, 0);
	while ((c = getopt(argc, argv, "+p:o:")) != -1) {
		if (c == 'p')
			setenv("LD_PRELOAD", optarg, 1);
		else if (c == 'o')
			report = optarg;
		else
			return usage(stderr, 2);
	}
	if (report == NULL || optind == argc)
		return usage(stderr, 2);
	out = fopen(report, "we");
	if (out == NULL) {
		fprintf(stderr, "measure: %s: %s\n", report, strerror(errno));
		return 1;
	}
	start = now();
	errno = start_program(argv + optind);
	if (errno != 0) {
		fprintf(stderr, "measure: %s: %s\n", argv[optind], strerror(errno));
		return 127;
	}
	while (wait4(program, &status, 0, &used) < 0)
		if (errno != EINTR)
			return 1;
	wall = now() - start;
	fprintf(out,
		"{\"pid\": %d, \"seconds\": %.6f, \"user\": %.6f, \"system\": %.6f, "
		"\"peak_kib\": %ld, \"faults\": %ld}\n",
		(int)program, wall, seconds(used.ru_utime), seconds(used.ru_stime), used.ru_maxrss,
		used.ru_minflt);
	if (fclose(out) != 0)
		return 1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
