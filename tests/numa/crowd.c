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

enum { MIX_LIVE = 6000, MIX_STEPS = 60000, CHURN_THREADS = 24, CHURN_KEEP = 8, LARGEST = 4000 };

static unsigned next_random(unsigned *state)
{
	*state = *state * 1664525 + 1013904223;
	return *state >> 8;
}

struct mixer {
	struct heap h;
	int node;
	pthread_mutex_t lock;  /* guards what follows */
	void *given[MIX_LIVE]; /* by the other thread, to be freed */
	size_t nr_given;
	struct mixer *other;
};

static void mixer_give(struct mixer *to, void *p)
{
	pthread_mutex_lock(&to->lock);
	if (to->nr_given < MIX_LIVE) {
		to->given[to->nr_given++] = p;
		p = NULL;
	}
	pthread_mutex_unlock(&to->lock);
	free(p);
}

static void mixer_free_given(struct mixer *m)
{
	pthread_mutex_lock(&m->lock);
	while (m->nr_given > 0)
		free(m->given[--m->nr_given]);
	pthread_mutex_unlock(&m->lock);
}

static void *mix_thread(void *arg)
{
	struct mixer *m = arg;
	unsigned seed = (unsigned)m->node + 1;

	pthread_barrier_wait(&barrier);
	for (int i = 0; i < MIX_STEPS; i++) {
		void **slot = &m->h.block[next_random(&seed) % MIX_LIVE];
		size_t len = 16 + next_random(&seed) % LARGEST;

		if (*slot && i % 4 == 0)
			mixer_give(m->other, *slot);
		else
			free(*slot);
		*slot = malloc(len);
		if (!*slot)
			where_die("malloc");
		memset(*slot, 1, len);
		if (i % 64 == 0)
			mixer_free_given(m);
	}
	pthread_barrier_wait(&barrier);
	for (size_t i = 0; i < MIX_LIVE; i++) {
		if (!m->h.block[i]) {
			m->h.block[i] = malloc(16);
			where_touch(m->h.block[i], 16, "malloc");
		}
	}
	m->h.n = MIX_LIVE;
	return NULL;
}

static void mix(int a, int b)
{
	static struct mixer m[2];
	pthread_t thread[2];

	pthread_barrier_init(&barrier, NULL, 2);
	for (int i = 0; i < 2; i++) {
		m[i].h = heap_new(REUSE_MIB);
		m[i].node = i ? b : a;
		m[i].other = &m[!i];
		pthread_mutex_init(&m[i].lock, NULL);
	}
	for (int i = 0; i < 2; i++)
		thread[i] = start(m[i].node, mix_thread, &m[i]);
	for (int i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	for (int i = 0; i < 2; i++)
		heap_report("mix", m[i].node, &m[i].h);
}

/* Takes all, frees it but for every CHURN_KEEPth block, which nobody frees. */
static void take_and_leave(struct heap *h, int node)
{
	take_all(h, node);
	for (size_t i = 0; i < h->n; i++)
		if (i % CHURN_KEEP)
			free(h->block[i]);
}

static void churn(int a, int b)
{
	struct heap h = heap_new(4);
	struct heap g = heap_new(REUSE_MIB / 2);

	for (int i = 0; i < CHURN_THREADS; i++)
		on(i % 2 ? b : a, take_and_leave, &h);
	on(a, take_all, &g);
	heap_report("churn", a, &g);
	on(b, take_all, &g);
	heap_report("churn", b, &g);
}

static void moved(int a, int b)
{
	struct heap h = heap_new(REUSE_MIB);

	if (where_pin(a))
		where_die("pinning to a node");
	take_all(&h, a);
	if (where_pin(b))
		where_die("pinning to a node");
	drop_all(&h, b);
	take_all(&h, b);
	heap_report("moved", b, &h);
}

static const struct {
	const char *name;
	void (*fn)(int a, int b);
} pairs[] = {
	{"reuse", reuse}, {"pipe", pipe_rounds}, {"mix", mix}, {"churn", churn}, {"moved", moved}};

int main(int argc, char **argv)
{
	int nodes[THREADS_MAX];
	int n = 0;

	for (int i = 2; i < argc && n < THREADS_MAX; i++)
		nodes[n++] = atoi(argv[i]);
	if (argc > 2 && strcmp(argv[1], "own") == 0) {
		own(nodes, n);
		return 0;
	}
	for (size_t i = 0; n == 2 && i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		if (strcmp(argv[1], pairs[i].name) == 0) {
			pairs[i].fn(nodes[0], nodes[1]);
			return 0;
		}
	}
	return 2;
}
