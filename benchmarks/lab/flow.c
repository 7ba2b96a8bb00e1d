// SPDX-License-Identifier: MIT
/*
 * Loads whose memory fits: nothing is to be gained by moving it, and nothing must be lost.
 *
 *   triad     a[i] = b[i] + s * c[i] over three arrays, in passes
 *   faults    maps memory, touches every page once, unmaps it, in passes
 *
 * Threads have parts of their own. Results are checked. After each pass a line of JSON.
 */
#include <errno.h>
#include <getopt.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "benchmarks/lab/eat.h"
#include "benchmarks/lab/pass.h"

enum { MAX_THREADS = 64 };

#define PAGE 4096ul
#define MIB (1ul << 20)
#define KIB (1ul << 10)

struct thread {
	pthread_t id;
	unsigned long number;
	double *a;
	double *b;
	double *c;
	size_t n; /* of each array */
	unsigned long on[PASS_MAX_NODES];
};

static struct pass pass = {.program = "flow", .passes = 10};
static unsigned long nr_threads = 1;
static unsigned long size_mib = 48; /* of all threads */
static unsigned long chunk_kib = 1024;
static unsigned long rounds = 1;
static uint64_t fast = 1;
static bool triad;
static struct thread threads[MAX_THREADS];
static pthread_barrier_t barrier;
static _Atomic bool wrong;

static _Noreturn void die(const char *what)
{
	fprintf(stderr, "flow: %s: %s\n", what, strerror(errno));
	exit(2);
}

static void *map(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		die("mmap");
	return p;
}

static void add_pages(struct thread *t, const void *start, size_t bytes)
{
	if (pass_add_pages(start, bytes, t->on) < 0)
		die("move_pages");
}

/* --- triad ------------------------------------------------------------------------------------ */

static double value_of_b(size_t i)
{
	return (double)(i % 1000);
}

static double value_of_c(size_t i)
{
	return (double)(i % 77);
}

static void fill_arrays(struct thread *t)
{
	size_t bytes = size_mib * MIB / nr_threads / 3 & ~(PAGE - 1);

	t->n = bytes / sizeof(double);
	t->a = map(bytes);
	t->b = map(bytes);
	t->c = map(bytes);
	for (size_t i = 0; i < t->n; i++) {
		t->a[i] = 0;
		t->b[i] = value_of_b(i);
		t->c[i] = value_of_c(i);
	}
}

/* Another factor in each pass, so that what is found afterwards is this pass's work. */
static double factor(void)
{
	return (double)(pass.number + 1);
}

static void run_triad(struct thread *t)
{
	double s = factor();

	for (unsigned long k = 0; k < rounds; k++)
		for (size_t i = 0; i < t->n; i++)
			t->a[i] = t->b[i] + s * t->c[i];
}

static void after_triad(struct thread *t)
{
	enum { STEP = 97 };

	for (size_t i = t->number; i < t->n; i += STEP)
		if (t->a[i] != value_of_b(i) + factor() * value_of_c(i))
			atomic_store_explicit(&wrong, true, memory_order_relaxed);
	add_pages(t, t->a, t->n * sizeof(double));
	add_pages(t, t->b, t->n * sizeof(double));
	add_pages(t, t->c, t->n * sizeof(double));
}

/* --- faults ----------------------------------------------------------------------------------- */

/* Maps, touches and unmaps the thread's share of --size, a chunk at a time. */
static void touch(struct thread *t, bool asking)
{
	size_t bytes = size_mib * MIB / nr_threads;

	for (size_t done = 0; done < bytes; done += chunk_kib * KIB) {
		char *p = map(chunk_kib * KIB);

		for (size_t i = 0; i < chunk_kib * KIB; i += PAGE) {
			if (p[i])
				atomic_store_explicit(&wrong, true, memory_order_relaxed);
			p[i] = 1;
		}
		if (asking)
			add_pages(t, p, chunk_kib * KIB);
		munmap(p, chunk_kib * KIB);
		if (asking)
			break;
	}
}

static void run_faults(struct thread *t)
{
	for (unsigned long k = 0; k < rounds; k++)
		touch(t, false);
}

/* --- passes ----------------------------------------------------------------------------------- */

static bool pin;

static void *work(void *arg)
{
	struct thread *t = arg;

	if (pin)
		pass_pin(t->number);
	if (triad)
		fill_arrays(t);
	pthread_barrier_wait(&barrier);
	for (unsigned long i = 0; i < pass.passes; i++) {
		pthread_barrier_wait(&barrier);
		if (triad)
			run_triad(t);
		else
			run_faults(t);
		pthread_barrier_wait(&barrier);
		memset(t->on, 0, sizeof(t->on));
		if (triad)
			after_triad(t);
		else
			touch(t, true);
		pthread_barrier_wait(&barrier);
	}
	return NULL;
}

static void report(void)
{
	unsigned long accesses = triad ? 3 * threads[0].n * nr_threads : size_mib * MIB / PAGE;
	unsigned long on[PASS_MAX_NODES] = {0};
	unsigned long on_fast = 0;
	unsigned long all = 0;

	for (int n = 0; n < PASS_MAX_NODES; n++) {
		for (unsigned long t = 0; t < nr_threads; t++)
			on[n] += threads[t].on[n];
		all += on[n];
		if (fast >> n & 1)
			on_fast += on[n];
	}
	printf("{\"pass\": %lu, \"accesses\": %lu, \"share\": %.6f, \"ms\": %.3f, ", pass.number,
		accesses * rounds, all ? (double)on_fast / (double)all : 0, pass.ms);
	pass_print_nodes(on);
	printf("}\n");
	fflush(stdout);
}

/* --- options ---------------------------------------------------------------------------------- */

static int usage(FILE *to, int status)
{
	fputs("Usage: flow triad|faults [OPTION...]\n"
	      "\n"
	      "Goes through memory in passes: over three arrays, or over pages that are new each "
	      "time.\n"
	      "\n"
	      "  --size MIB     of all threads together (48)\n"
	      "  --threads N    (1)\n"
	      "  --rounds N     how often, in a pass (1)\n"
	      "  --chunk KIB    that faults maps at a time (1024)\n"
	      "  --passes N     (10)\n"
	      "  --period MS    a pass begins so long after the one before (0: at once)\n"
	      "  --fast NODES   which nodes are fast: 0,1 (0)\n"
	      "  --pin          a CPU for each thread\n"
	      "  --mark[=FROM]  marks passes and the pauses between them for the cost\n"
	      "                 model; from this one on, or all\n"
	      "\n"
	      "Exit status: 1 when data was wrong, 2 for everything else.\n",
		to);
	return status;
}

static const struct option LONG[] = {
	{"size", required_argument, NULL, 's'},
	{"threads", required_argument, NULL, 't'},
	{"rounds", required_argument, NULL, 'r'},
	{"chunk", required_argument, NULL, 'k'},
	{"fast", required_argument, NULL, 'f'},
	{"pin", no_argument, NULL, 'c'},
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
		case 's':
			size_mib = pass_number(&pass, name, optarg, 1, 1ul << 20);
			break;
		case 't':
			nr_threads = pass_number(&pass, name, optarg, 1, MAX_THREADS);
			break;
		case 'r':
			rounds = pass_number(&pass, name, optarg, 1, 1000);
			break;
		case 'k':
			chunk_kib = pass_number(&pass, name, optarg, 4, 1ul << 20) & ~3ul;
			break;
		case 'f':
			if (eat_parse(optarg, &fast, NULL))
				return false;
			break;
		case 'c':
			pin = true;
			break;
		case 'h':
			exit(usage(stdout, 0));
		default:
			return false;
		}
	}
	if (optind != argc - 1)
		return false;
	triad = strcmp(argv[optind], "triad") == 0;
	return triad || strcmp(argv[optind], "faults") == 0;
}

int main(int argc, char **argv)
{
	if (!parse(argc, argv))
		return usage(stderr, 2);
	pthread_barrier_init(&barrier, NULL, (unsigned)nr_threads + 1);
	for (unsigned long t = 0; t < nr_threads; t++) {
		threads[t].number = t;
		if ((errno = pthread_create(&threads[t].id, NULL, work, &threads[t])))
			die("pthread_create");
	}
	pthread_barrier_wait(&barrier);
	printf("{\"begin\": true}\n");
	fflush(stdout);
	while (pass_next(&pass)) {
		pass_begin(&pass);
		pthread_barrier_wait(&barrier);
		pthread_barrier_wait(&barrier);
		pass_end(&pass);
		pthread_barrier_wait(&barrier);
		report();
		pass_rest(&pass);
	}
	for (unsigned long t = 0; t < nr_threads; t++)
		pthread_join(threads[t].id, NULL);
	if (wrong)
		fprintf(stderr, "flow: wrong data\n");
	return wrong ? 1 : 0;
}
