// SPDX-License-Identifier: MIT
/*
 * Threads, processes, and who uses whose memory: loads for what balances memory between nodes.
 *
 *   shared    each process has a buffer, and all of its threads go over all of it
 *   own       each thread has a part of the buffer of its process, and goes over that
 *
 * With --processes 2 these are what is known as numa01 and numa01 with thread-local memory; with
 * one process and "own" numa02. Each thread updates a word of every line, as often as --rounds
 * says. The words are counters, so what was lost, or counted twice, is found at the end: threads
 * that share a buffer take every n-th line at a time, each in turn.
 *
 * After each pass a line of JSON: share of the updates on fast nodes, which is known as all pages
 * get equally many, and where the pages of all processes are.
 */
#include <errno.h>
#include <getopt.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "benchmarks/lab/eat.h"
#include "benchmarks/lab/pass.h"

enum { MAX_PROCESSES = 8, MAX_THREADS = 64 };

#define MIB (1ul << 20)
#define WORDS_OF_LINE 8ul

/* Shared by all processes. */
struct common {
	pthread_barrier_t barrier; /* all threads of all processes, and the parent */
	unsigned long on[MAX_PROCESSES][PASS_MAX_NODES];
	unsigned long unknown[MAX_PROCESSES];
};

static struct pass pass = {.program = "numaload", .passes = 10};
static unsigned long processes = 1;
static unsigned long threads = 2; /* of each process */
static unsigned long mib = 64;    /* of each process */
static unsigned long rounds = 1;
static bool own;
static bool pin;
static pid_t eater;
static unsigned long capacity; /* MiB of the fast nodes */
static uint64_t fast = 1;
static struct common *common;
static unsigned long my_process;
static uint64_t *buffer;
static pthread_barrier_t turn; /* the threads of this process */
static unsigned long nr_lines;

static _Noreturn void die(const char *what)
{
	fprintf(stderr, "numaload: %s: %s\n", what, strerror(errno));
	exit(2);
}

static void *need_mapping(size_t bytes, int flags)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		die("memory");
	return p;
}

static void meet(void)
{
	pthread_barrier_wait(&common->barrier);
}

static void update(unsigned long first, unsigned long step, unsigned long end)
{
	for (unsigned long i = first; i < end; i += step)
		((volatile uint64_t *)buffer)[i * WORDS_OF_LINE]++;
}

static void go_over(unsigned long t)
{
	unsigned long begin = nr_lines * t / threads;
	unsigned long end = nr_lines * (t + 1) / threads;

	for (unsigned long k = 0; k < rounds; k++) {
		if (own)
			update(begin, 1, end);
		else
			/* every thread once over every line, in parts that no two have at a time */
			for (unsigned long part = 0; part < threads; part++) {
				update((t + part) % threads, threads, nr_lines);
				pthread_barrier_wait(&turn);
			}
	}
}

static void ask(void)
{
	unsigned long *on = common->on[my_process];
	long unknown;

	memset(on, 0, sizeof(common->on[0]));
	unknown = pass_add_pages((const char *)buffer, mib * MIB, on);
	if (unknown < 0)
		die("move_pages");
	common->unknown[my_process] = (unsigned long)unknown;
}

static void *work(void *arg)
{
	unsigned long t = (unsigned long)(uintptr_t)arg;

	if (pin)
		pass_pin(my_process * threads + t);
	/* who uses it touches it first; what all use, the first thread, as programs do */
	if (own)
		memset(buffer + nr_lines * t / threads * WORDS_OF_LINE, 0,
			(nr_lines * (t + 1) / threads - nr_lines * t / threads) * 64);
	else if (t == 0)
		memset(buffer, 0, mib * MIB);
	meet();
	for (unsigned long i = 0; i < pass.passes; i++) {
		meet();
		go_over(t);
		meet();
		if (t == 0)
			ask();
		meet();
	}
	return NULL;
}

static int check(void)
{
	uint64_t wanted = pass.passes * rounds * (own ? 1 : threads);

	for (unsigned long i = 0; i < nr_lines; i++)
		if (buffer[i * WORDS_OF_LINE] != wanted) {
			fprintf(stderr, "numaload: line %lu has %llu updates instead of %llu\n", i,
				(unsigned long long)buffer[i * WORDS_OF_LINE],
				(unsigned long long)wanted);
			return 1;
		}
	return 0;
}

static int process(void)
{
	pthread_t thread[MAX_THREADS];

	buffer = need_mapping(mib * MIB, MAP_PRIVATE);
	pthread_barrier_init(&turn, NULL, (unsigned)threads);
	for (unsigned long t = 0; t < threads; t++)
		if ((errno = pthread_create(&thread[t], NULL, work, (void *)(uintptr_t)t)))
			die("pthread_create");
	for (unsigned long t = 0; t < threads; t++)
		pthread_join(thread[t], NULL);
	return check();
}

static void report(void)
{
	unsigned long on[PASS_MAX_NODES] = {0};
	unsigned long pages_fast = 0;
	unsigned long unknown = 0;
	unsigned long all = 0;

	for (unsigned long p = 0; p < processes; p++) {
		unknown += common->unknown[p];
		for (int n = 0; n < PASS_MAX_NODES; n++)
			on[n] += common->on[p][n];
	}
	for (int n = 0; n < PASS_MAX_NODES; n++) {
		all += on[n];
		if (fast >> n & 1)
			pages_fast += on[n];
	}
	printf("{\"pass\": %lu, \"accesses\": %lu, \"share\": %.6f, \"ms\": %.3f, ", pass.number,
		processes * nr_lines * rounds * (own ? 1 : threads),
		all ? (double)pages_fast / (double)all : 0, pass.ms);
	pass_print_nodes(on);
	printf(", \"unknown\": %lu}\n", unknown);
	fflush(stdout);
}

static void print_end(void)
{
	double room = (double)capacity / (double)(processes * mib);

	printf("{\"end\": true, \"passes\": %lu", pass.passes);
	if (capacity)
		printf(", \"best_static\": %.6f", room < 1 ? room : 1);
	printf("}\n");
	fflush(stdout);
}

static volatile sig_atomic_t ended;

/* One that failed does not come to the barrier, at which the parent would wait for ever. */
static void on_end(int sig)
{
	int status;

	(void)sig;
	while (waitpid(-1, &status, WNOHANG) > 0) {
		if (status != 0)
			_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 2);
		ended++;
	}
}

static int usage(FILE *to, int status)
{
	fputs("Usage: numaload [OPTION...]\n"
	      "\n"
	      "Threads of one process or several go over memory in passes.\n"
	      "\n"
	      "  --processes N   (1)\n"
	      "  --threads N     of each (2)\n"
	      "  --size MIB      of each (64)\n"
	      "  --own           each thread has a part of it; otherwise all go over all\n"
	      "  --rounds N      how often, in a pass (1)\n"
	      "  --passes N      (10)\n"
	      "  --period MS     a pass begins so long after the one before (0: at once)\n"
	      "  --fast NODES    which nodes are fast: 0,1 (0)\n"
	      "  --pin           a CPU for each thread\n"
	      "  --eater PID     a process that is ended when the memory is filled\n"
	      "  --capacity MIB  room on the fast nodes, for what the best placement gives\n"
	      "  --mark[=FROM]   marks passes and the pauses between them for the cost\n"
	      "                  model; from this one on, or all\n"
	      "\n"
	      "Exit status: 1 when data was wrong, 2 for everything else.\n",
		to);
	return status;
}

static const struct option LONG[] = {
	{"processes", required_argument, NULL, 'p'},
	{"threads", required_argument, NULL, 't'},
	{"size", required_argument, NULL, 's'},
	{"own", no_argument, NULL, 'o'},
	{"rounds", required_argument, NULL, 'r'},
	{"fast", required_argument, NULL, 'f'},
	{"pin", no_argument, NULL, 'c'},
	{"eater", required_argument, NULL, 'E'},
	{"capacity", required_argument, NULL, 'C'},
	PASS_OPTIONS,
	{"help", no_argument, NULL, 'h'},
	{NULL, 0, NULL, 0},
};

static bool parse(int argc, char **argv)
{
	int index;
	int c;

	while ((c = getopt_long(argc, argv, "", LONG, &index)) != -1) {
		const char *name = c == '?' ? "" : LONG[index].name;

		if (pass_option(&pass, c, name, optarg, 1))
			continue;

		switch (c) {
		case 'p':
			processes = pass_number(&pass, name, optarg, 1, MAX_PROCESSES);
			break;
		case 't':
			threads = pass_number(&pass, name, optarg, 1, MAX_THREADS);
			break;
		case 's':
			mib = pass_number(&pass, name, optarg, 1, 1ul << 20);
			break;
		case 'o':
			own = true;
			break;
		case 'r':
			rounds = pass_number(&pass, name, optarg, 1, 1000);
			break;
		case 'f':
			if (eat_parse(optarg, &fast, NULL))
				return false;
			break;
		case 'c':
			pin = true;
			break;
		case 'E':
			eater = (pid_t)pass_number(&pass, name, optarg, 1, INT32_MAX);
			break;
		case 'C':
			capacity = pass_number(&pass, name, optarg, 0, 1ul << 20);
			break;
		case 'h':
			exit(usage(stdout, 0));
		default:
			return false;
		}
	}
	return optind == argc;
}

int main(int argc, char **argv)
{
	pthread_barrierattr_t attr;

	if (!parse(argc, argv))
		return usage(stderr, 2);
	nr_lines = mib * MIB / 64;
	common = need_mapping(sizeof(*common), MAP_SHARED);
	pthread_barrierattr_init(&attr);
	pthread_barrierattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_barrier_init(&common->barrier, &attr, (unsigned)(processes * threads) + 1);
	signal(SIGCHLD, on_end);
	for (unsigned long p = 0; p < processes; p++) {
		pid_t child = fork();

		if (child < 0)
			die("fork");
		if (child == 0) {
			signal(SIGCHLD, SIG_DFL);
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			my_process = p;
			exit(process());
		}
	}
	meet();
	if (eater && eat_end(eater))
		die("--eater");
	printf("{\"begin\": true}\n");
	fflush(stdout);
	while (pass_next(&pass)) {
		pass_begin(&pass);
		meet();
		meet();
		pass_end(&pass);
		meet();
		report();
		pass_rest(&pass);
	}
	print_end();
	while (ended < (sig_atomic_t)processes)
		usleep(1000);
	return 0;
}
