// SPDX-License-Identifier: MIT
/*
 * Threads allocate, grow, shrink and free blocks of all sizes and alignments; most blocks go
 * through a table that all threads exchange with, so that they are freed by others; threads come
 * and go; now and then one forks, and the child goes on with the blocks that it inherited. Every
 * block's content is checked whenever it changes hands. Run as it is and with the library
 * preloaded: the same, and status 0.
 */
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 6, LIVES = 4, STEPS = 6000, SLOTS = 256 };

/* In front of every block's content. */
struct head {
	uint32_t size;
	uint32_t check;
};

static _Atomic(struct head *) table[SLOTS];

static _Noreturn void die(const char *what)
{
	fprintf(stderr, "storm_heap: %s\n", what);
	abort();
}

static unsigned dice(unsigned *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 17;
	*state ^= *state << 5;
	return *state;
}

static unsigned char byte_of(const struct head *h)
{
	return (unsigned char)(h->size * 7 + 13);
}

/* A few places of a large block, all of a small one. */
static size_t step_of(size_t size)
{
	return size > 4096 ? 997 : 1;
}

static void fill(struct head *h, size_t size)
{
	h->size = (uint32_t)size;
	h->check = (uint32_t)size ^ 0x5bd1e995u;
	for (size_t i = sizeof(*h); i < size; i += step_of(size))
		((unsigned char *)h)[i] = byte_of(h);
	if (size > sizeof(*h))
		((unsigned char *)h)[size - 1] = byte_of(h);
}

static void check(const struct head *h)
{
	const unsigned char *p = (const unsigned char *)h;

	if ((h->size ^ 0x5bd1e995u) != h->check)
		die("a block has lost its head");
	for (size_t i = sizeof(*h); i < h->size; i += step_of(h->size))
		if (p[i] != byte_of(h))
			die("a block has lost its content");
	if (h->size > sizeof(*h) && p[h->size - 1] != byte_of(h))
		die("a block has lost its end");
	if (malloc_usable_size((void *)(uintptr_t)h) < h->size)
		die("a block is smaller than what was asked for");
}

static size_t size_from(unsigned *seed)
{
	unsigned kind = dice(seed) % 100;

	if (kind < 70)
		return sizeof(struct head) + dice(seed) % 500;
	if (kind < 95)
		return sizeof(struct head) + dice(seed) % 40000;
	if (kind < 99)
		return sizeof(struct head) + dice(seed) % (1 << 20);
	return sizeof(struct head) + dice(seed) % (18 << 20);
}

static struct head *make(unsigned *seed)
{
	size_t size = size_from(seed);
	size_t align = 16;
	void *p = NULL;

	switch (dice(seed) % 4) {
	case 0:
		p = calloc(1, size);
		for (size_t i = 0; p && i < size; i += step_of(size))
			if (((unsigned char *)p)[i] != 0)
				die("calloc gave used memory");
		break;
	case 1:
		align = (size_t)16 << dice(seed) % 9;
		if (posix_memalign(&p, align, size) != 0)
			p = NULL;
		break;
	default:
		p = malloc(size);
	}
	if (!p || ((uintptr_t)p & (align - 1)) != 0)
		die("no block, or not aligned");
	fill(p, size);
	return p;
}

static void step(unsigned *seed)
{
	_Atomic(struct head *) *slot = &table[dice(seed) % SLOTS];
	struct head *h = NULL;
	size_t size;

	if (dice(seed) % 3)
		h = make(seed);
	h = atomic_exchange_explicit(slot, h, memory_order_acq_rel);
	if (!h)
		return;
	check(h);
	if (dice(seed) % 4 == 0) {
		size = size_from(seed);
		if (size < h->size)
			fill(h, size); /* the part that is kept has to agree with its head */
		h = realloc(h, size);
		if (!h)
			die("realloc failed");
		check(h);
		fill(h, size);
		check(h);
	}
	free(h);
}

/* Another program's life: the table as it was when this thread forked. */
static _Noreturn void live_as_child(unsigned seed)
{
	for (int i = 0; i < SLOTS; i++)
		if (table[i])
			check(table[i]);
	for (int i = 0; i < 300; i++)
		step(&seed);
	_exit(0);
}

static void *live(void *arg)
{
	unsigned seed = (unsigned)(uintptr_t)arg;
	int status;
	pid_t pid;

	for (int i = 0; i < STEPS; i++) {
		step(&seed);
		if (i % 1500 != 1499)
			continue;
		pid = fork();
		if (pid == 0)
			live_as_child(seed);
		if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
			die("a child did not end well");
	}
	return NULL;
}

static void *keep_alive(void *arg)
{
	pthread_t t;

	for (uintptr_t i = 0; i < LIVES; i++) {
		if (pthread_create(&t, NULL, live, (void *)((uintptr_t)arg * 1000 + i + 1)))
			die("no thread");
		pthread_join(t, NULL);
	}
	return NULL;
}

int main(void)
{
	pthread_t t[THREADS];

	for (uintptr_t i = 0; i < THREADS; i++)
		if (pthread_create(&t[i], NULL, keep_alive, (void *)(i + 1)))
			die("no thread");
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	for (int i = 0; i < SLOTS; i++) {
		if (table[i])
			check(table[i]);
		free(table[i]);
	}
	return 0;
}
