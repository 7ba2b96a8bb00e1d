// SPDX-License-Identifier: MIT
/*
 * Threads of several nodes at once.
 *
 *   crowd own NODE...      a thread on each node; all allocate in turn, each checks its own blocks
 *   crowd reuse A B        small blocks that were allocated on node A are freed, and a thread on B
 * allocates crowd pipe A B         A allocates, B frees, again and again; then both hold memory at
 * once
 *
 * Lines as where_print() writes them; their names end in the node of the thread that touched the
 * memory.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/numa/where.h"

enum { BLOCK = 2000, MIB = 24, REUSE_MIB = 32, ROUNDS = 6, PARTS = 8, THREADS_MAX = 8 };

#define HUGE (2ul << 20)
#define RW (PROT_READ | PROT_WRITE)

struct heap {
	void **block;
	size_t n;
};

static pthread_barrier_t barrier;
static pthread_mutex_t printing = PTHREAD_MUTEX_INITIALIZER;

/* The table of blocks is not in the heap: only the blocks are to be where the heap puts them. */
static struct heap heap_new(size_t mib)
{
	struct heap h = {NULL, (mib << 20) / BLOCK};

	h.block = mmap(NULL, h.n * sizeof(void *), RW, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (h.block == MAP_FAILED)
		where_die("mmap");
	return h;
}

static void heap_take(struct heap *h, size_t from, size_t to)
{
	for (size_t i = from; i < to; i++) {
		h->block[i] = malloc(BLOCK);
		if (!h->block[i])
			where_die("malloc");
		memset(h->block[i], 1, BLOCK);
	}
}

static void heap_drop(struct heap *h)
{
	for (size_t i = 0; i < h->n; i++) {
		free(h->block[i]);
		h->block[i] = NULL;
	}
}

static void heap_where(const struct heap *h, struct where *w)
{
	size_t last = 0;

	for (size_t i = 0; i < h->n; i++) {
		size_t page = (size_t)h->block[i] / WHERE_PAGE;

		if (page != last)
			where_pages(w, h->block[i], 1);
		last = page;
	}
}

static void heap_report(const char *what, int node, const struct heap *h)
{
	struct where w = {0};
	char name[64];

	heap_where(h, &w);
	snprintf(name, sizeof(name), "%s.%d", what, node);
	where_print(name, &w);
}

/* The thread is on its node from its first instruction on: its heap is set up before it runs any of
 * ours. */
static pthread_t start(int node, void *(*fn)(void *), void *arg)
{
	pthread_attr_t attr;
	cpu_set_t set;
	pthread_t t;

	if (where_cpu(node, &set))
		where_die("a node's CPU");
	pthread_attr_init(&attr);
	if (pthread_attr_setaffinity_np(&attr, sizeof(set), &set) ||
		pthread_create(&t, &attr, fn, arg))
		where_die("pthread_create");
	pthread_attr_destroy(&attr);
	return t;
}

static void report(const char *what, int node, const void *p, size_t len)
{
	struct where w = {0};
	char name[64];

	where_pages(&w, p, len);
	snprintf(name, sizeof(name), "%s.%d", what, node);
	pthread_mutex_lock(&printing);
	where_print(name, &w);
	pthread_mutex_unlock(&printing);
}

static void *own_thread(void *arg)
{
	int node = *(int *)arg;
	struct heap h = heap_new(MIB);
	size_t len = (size_t)MIB << 20;
	size_t part = len / PARTS;
	char *large[PARTS];
	char *anon;
	struct where w = {0};
	char name[64];

	/* Neighbours become one mapping, and a huge page may lie across their border: keep them
	 * apart. */
	anon = mmap(NULL, len + 2 * HUGE, RW, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (anon == MAP_FAILED)
		where_die("mmap");
	anon += HUGE - ((uintptr_t)anon & (HUGE - 1));
	for (int i = 0; i < PARTS; i++) {
		pthread_barrier_wait(&barrier);
		heap_take(&h, h.n * (size_t)i / PARTS, h.n * (size_t)(i + 1) / PARTS);
		where_touch(anon + (size_t)i * part, part, "anon");
		large[i] = where_touch(malloc(part), part, "malloc");
	}
	pthread_barrier_wait(&barrier);
	heap_where(&h, &w);
	pthread_mutex_lock(&printing);
	snprintf(name, sizeof(name), "slab.%d", node);
	where_print(name, &w);
	pthread_mutex_unlock(&printing);
	report("anon", node, anon, len);
	memset(&w, 0, sizeof(w));
	for (int i = 0; i < PARTS; i++)
		where_pages(&w, large[i], part);
	pthread_mutex_lock(&printing);
	snprintf(name, sizeof(name), "malloc.%d", node);
	where_print(name, &w);
	pthread_mutex_unlock(&printing);
	pthread_barrier_wait(&barrier);
	return NULL;
}

static void own(int *nodes, int n)
{
	pthread_t thread[THREADS_MAX];

	pthread_barrier_init(&barrier, NULL, (unsigned)n);
	for (int i = 0; i < n; i++)
		thread[i] = start(nodes[i], own_thread, &nodes[i]);
	for (int i = 0; i < n; i++)
		pthread_join(thread[i], NULL);
}

/* Runs fn on a thread of its own that stays on the node, and waits for it. */
struct job {
	void (*fn)(struct heap *h, int node);
	struct heap *h;
	int node;
};

static void *job_thread(void *arg)
{
	struct job *j = arg;

	j->fn(j->h, j->node);
	return NULL;
}

static void on(int node, void (*fn)(struct heap *h, int node), struct heap *h)
{
	struct job j = {fn, h, node};

	pthread_join(start(node, job_thread, &j), NULL);
}

static void take_all(struct heap *h, int node)
{
	(void)node;
	heap_take(h, 0, h->n);
}

static void drop_all(struct heap *h, int node)
{
	(void)node;
	heap_drop(h);
}

static void take_and_drop(struct heap *h, int node)
{
	take_all(h, node);
	drop_all(h, node);
}

/*
 * A thread that stays while others run: steps are handed to it one by one, so that its heap lives
 * on.
 */
struct worker {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	struct job job;
	int node;
	int state; /* 0 idle, 1 has a job, 2 is to end */
};

static void *worker_thread(void *arg)
{
	struct worker *w = arg;

	pthread_mutex_lock(&w->lock);
	for (;;) {
		while (w->state == 0)
			pthread_cond_wait(&w->wake, &w->lock);
		if (w->state == 2)
			break;
		w->job.fn(w->job.h, w->node);
		w->state = 0;
		pthread_cond_broadcast(&w->wake);
	}
	pthread_mutex_unlock(&w->lock);
	return NULL;
}

static void worker_start(struct worker *w, int node)
{
	memset(w, 0, sizeof(*w));
	pthread_mutex_init(&w->lock, NULL);
	pthread_cond_init(&w->wake, NULL);
	w->node = node;
	w->thread = start(node, worker_thread, w);
}

static void worker_do(struct worker *w, void (*fn)(struct heap *h, int node), struct heap *h)
{
	pthread_mutex_lock(&w->lock);
	w->job = (struct job){fn, h, w->node};
	w->state = 1;
	pthread_cond_broadcast(&w->wake);
	while (w->state != 0)
		pthread_cond_wait(&w->wake, &w->lock);
	pthread_mutex_unlock(&w->lock);
}

static void worker_end(struct worker *w)
{
	pthread_mutex_lock(&w->lock);
	w->state = 2;
	pthread_cond_broadcast(&w->wake);
	pthread_mutex_unlock(&w->lock);
	pthread_join(w->thread, NULL);
}

static void reuse(int a, int b)
{
	struct heap h = heap_new(REUSE_MIB);
	struct heap g = heap_new(REUSE_MIB);
	struct worker wa;
	struct worker wb;

	/* The thread that had it is gone. */
	on(a, take_and_drop, &h);
	on(b, take_all, &h);
	heap_report("after-exit", b, &h);
	on(b, drop_all, &h);

	/* It is still there, and keeps what it has freed or gives it up. */
	worker_start(&wa, a);
	worker_start(&wb, b);
	worker_do(&wa, take_and_drop, &h);
	worker_do(&wb, take_all, &g);
	heap_report("after-own-free", b, &g);
	worker_do(&wb, drop_all, &g);

	/* The other one frees it, and then wants as much itself. */
	worker_do(&wa, take_all, &h);
	worker_do(&wb, drop_all, &h);
	worker_do(&wb, take_all, &g);
	heap_report("after-their-free", b, &g);
	worker_do(&wa, take_all, &h);
	heap_report("after-their-free", a, &h);
	worker_end(&wa);
	worker_end(&wb);
}

static void pipe_rounds(int a, int b)
{
	struct heap h = heap_new(REUSE_MIB / 2);
	struct heap g = heap_new(REUSE_MIB / 2);
	struct worker wa;
	struct worker wb;

	worker_start(&wa, a);
	worker_start(&wb, b);
	for (int i = 0; i < ROUNDS; i++) {
		worker_do(&wa, take_all, &h);
		worker_do(&wb, take_all, &g);
		worker_do(&wb, drop_all, &h);
		worker_do(&wa, drop_all, &g);
	}
	worker_do(&wa, take_all, &h);
	worker_do(&wb, take_all, &g);
	heap_report("pipe", a, &h);
	heap_report("pipe", b, &g);
	worker_end(&wa);
	worker_end(&wb);
}

int main(int argc, char **argv)
{
	int nodes[THREADS_MAX];
	int n = 0;

	for (int i = 2; i < argc && n < THREADS_MAX; i++)
		nodes[n++] = atoi(argv[i]);
	if (argc > 2 && strcmp(argv[1], "own") == 0)
		own(nodes, n);
	else if (n == 2 && strcmp(argv[1], "reuse") == 0)
		reuse(nodes[0], nodes[1]);
	else if (n == 2 && strcmp(argv[1], "pipe") == 0)
		pipe_rounds(nodes[0], nodes[1]);
	else
		return 2;
	return 0;
}
