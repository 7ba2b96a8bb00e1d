// SPDX-License-Identifier: MIT
/*
 * Two threads, one on each of two nodes, and each reads its own half of one mapping, all of which
 * is on a slow node at first.
 *
 *   whose SLOW SECONDS      ends when nine tenths have left that node, or after so long; prints
 *                           "home N", pages on the node of the thread that reads them, "far N", on
 *                           other nodes, and "slow N", on the slow one
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "tests/numa/where.h"

enum { THREADS = 2, HALF = 80 << 20, PIECE = 1 << 20, LOOK_S = 4 };

static char *memory;
static int slow;
static atomic_bool ended;

static void *reads(void *arg)
{
	int node = (int)(size_t)arg;
	char *own = memory + (size_t)node * HALF;
	const volatile char *p = own;
	unsigned sum = 0;

	if (where_pin(node))
		where_die("a CPU for the thread");
	/* In pieces, so that it is never seen anywhere else. */
	for (size_t at = 0; at < HALF; at += PIECE) {
		where_touch(own + at, PIECE, "mmap");
		where_move(own + at, PIECE, slow);
	}
	while (!atomic_load_explicit(&ended, memory_order_relaxed))
		for (size_t at = 0; at < HALF; at += WHERE_PAGE)
			for (size_t i = 0; i < 16; i++)
				sum += (unsigned char)p[at + i * 64];
	return (void *)(size_t)sum;
}

int main(int argc, char **argv)
{
	unsigned long home = 0;
	unsigned long far = 0;
	unsigned long on_slow = 0;
	pthread_t thread[THREADS];

	if (argc != 3)
		return 2;
	int seconds = atoi(argv[2]);

	slow = atoi(argv[1]);
	(void)prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
	memory = mmap(NULL, THREADS * (size_t)HALF, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (size_t t = 0; t < THREADS; t++)
		if (pthread_create(&thread[t], NULL, reads, (void *)t))
			where_die("pthread_create");
	do {
		sleep(LOOK_S);
		home = far = on_slow = 0;
		for (int t = 0; t < THREADS; t++) {
			struct where w = {.absent = 0};

			where_pages(&w, memory + (size_t)t * HALF, HALF);
			home += w.on[t];
			far += w.on[THREADS - 1 - t];
			on_slow += w.on[slow];
		}
	} while (on_slow * 10 > home + far + on_slow && (seconds -= LOOK_S) > 0);
	atomic_store(&ended, true);
	for (size_t t = 0; t < THREADS; t++)
		pthread_join(thread[t], NULL);
	printf("home %lu\nfar %lu\nslow %lu\n", home, far, on_slow);
	return 0;
}
