// SPDX-License-Identifier: MIT
#include "benchmarks/lab/place.h"

#include <errno.h>
#include <linux/mempolicy.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { BATCH = 256, MAX_NODES = 64 };

static int flags(void)
{
	/* also those that other processes map, where it is allowed */
	return geteuid() == 0 ? MPOL_MF_MOVE_ALL : MPOL_MF_MOVE;
}

int place_ask(pid_t pid, void **pages, unsigned long n, int *ret_nodes)
{
	for (unsigned long i = 0; i < n; i += BATCH) {
		unsigned long now = n - i < BATCH ? n - i : BATCH;

		if (syscall(SYS_move_pages, pid, now, pages + i, NULL, ret_nodes + i, 0))
			return -errno;
	}
	return 0;
}

/* Keeps those that are on none of the nodes, but could be. Returns how many, or -errno. */
static long keep_others(pid_t pid, void **pages, unsigned long n, uint64_t nodes)
{
	int at[BATCH];
	long kept = 0;
	int err = place_ask(pid, pages, n, at);

	if (err)
		return err;
	for (unsigned long i = 0; i < n; i++)
		if (at[i] >= 0 && at[i] < MAX_NODES && !(nodes >> at[i] & 1))
			pages[kept++] = pages[i];
	return kept;
}

/* How many of up to BATCH pages are left when this node has taken what it can, or -errno. */
static long move_to(
	pid_t pid, void **pages, unsigned long n, int node, uint64_t nodes, bool *ret_full)
{
	int to[BATCH];
	int status[BATCH];
	long err = 0;

	for (unsigned long i = 0; i < n; i++)
		to[i] = node;
	if (syscall(SYS_move_pages, pid, n, pages, to, status, flags()) < 0)
		err = errno;
	if (err && err != ENOMEM && err != ENOENT)
		return -err;
	*ret_full = err == ENOMEM;
	/* What came of it is asked for: kernels differ in what they answer here. */
	return keep_others(pid, pages, n, nodes);
}

/* Pages that none of the nodes takes are left where they are; open are nodes that are not full. */
static long place_batch(pid_t pid, void **pages, unsigned long n, uint64_t nodes, uint64_t *open)
{
	uint64_t untried = *open;
	long left = keep_others(pid, pages, n, nodes);

	while (left > 0 && untried) {
		int node = __builtin_ctzll(untried);
		long before = left;
		bool full = false;

		left = move_to(pid, pages, (unsigned long)left, node, nodes, &full);
		if (left != before)
			continue;
		untried &= ~(1ull << node);
		if (full)
			*open &= ~(1ull << node);
	}
	return left;
}

long place_pages(pid_t pid, void **pages, unsigned long n, uint64_t nodes)
{
	uint64_t open = nodes;
	long there = 0;

	for (unsigned long i = 0; i < n; i += BATCH) {
		unsigned long now = n - i < BATCH ? n - i : BATCH;
		void *some[BATCH];
		int at[BATCH];
		long left;
		int err;

		for (unsigned long k = 0; k < now; k++)
			some[k] = pages[i + k];
		left = place_batch(pid, some, now, nodes, &open);
		if (left < 0)
			return left;
		err = place_ask(pid, pages + i, now, at);
		if (err)
			return err;
		for (unsigned long k = 0; k < now; k++)
			there += at[k] >= 0 && at[k] < MAX_NODES && (nodes >> at[k] & 1);
	}
	return there;
}
