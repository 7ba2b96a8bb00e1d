// SPDX-License-Identifier: MIT
/*
 * placer map PID
 *     prints the pages of a process that are in memory, "ADDRESS FRAME" in hexadecimal, as root
 * placer place PID FAST SLOW PAGES < addresses
 *     moves up to so many of these pages, the first ones first, to the fast nodes (NODE[,NODE...]),
 * and what else of the process is on them to the slow ones before; prints a line of JSON
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "benchmarks/lab/eat.h"
#include "benchmarks/lab/place.h"

#define PAGE 4096ul
#define PRESENT (1ull << 63)
#define FRAME ((1ull << 55) - 1)
#define MAX_NODES 64

struct page {
	uint64_t address;
	uint64_t frame;
};

struct pages {
	struct page *page;
	unsigned long n;
	unsigned long room;
};

static _Noreturn void die(const char *what)
{
	fprintf(stderr, "placer: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void add(struct pages *all, uint64_t address, uint64_t frame)
{
	if (all->n == all->room) {
		all->room = all->room ? 2 * all->room : 4096;
		all->page = realloc(all->page, all->room * sizeof(*all->page));
		if (!all->page)
			die("memory");
	}
	all->page[all->n++] = (struct page){address, frame};
}

static void add_range(struct pages *all, int pagemap, uint64_t start, uint64_t end)
{
	enum { BATCH = 512 };
	uint64_t entry[BATCH];

	while (start < end) {
		uint64_t left = (end - start) / PAGE;
		size_t size = (left < BATCH ? left : BATCH) * sizeof(*entry);
		ssize_t got = pread(pagemap, entry, size, (off_t)(start / PAGE * sizeof(*entry)));

		if (got <= 0)
			return; /* the kernel's own page at the end of the addresses */
		for (size_t i = 0; i < (size_t)got / sizeof(*entry); i++, start += PAGE)
			if (entry[i] & PRESENT)
				add(all, start, entry[i] & FRAME);
	}
}

static struct pages pages_of(pid_t pid)
{
	struct pages all = {0};
	char path[64];
	char line[4096];
	uint64_t start;
	uint64_t end;
	int pagemap;
	FILE *maps;

	snprintf(path, sizeof(path), "/proc/%d/pagemap", (int)pid);
	pagemap = open(path, O_RDONLY | O_CLOEXEC);
	if (pagemap < 0)
		die(path);
	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	maps = fopen(path, "re");
	if (!maps)
		die(path);
	while (fgets(line, sizeof(line), maps))
		if (sscanf(line, "%" SCNx64 "-%" SCNx64, &start, &end) == 2)
			add_range(&all, pagemap, start, end);
	fclose(maps);
	close(pagemap);
	if (all.n == 0) {
		fprintf(stderr, "placer: process %d has no page in memory\n", (int)pid);
		exit(1);
	}
	return all;
}

static int print_map(pid_t pid)
{
	struct pages all = pages_of(pid);

	if (geteuid()) {
		fprintf(stderr, "placer: only root is told where pages are\n");
		return 1;
	}
	for (unsigned long i = 0; i < all.n; i++)
		printf("%" PRIx64 " %" PRIx64 "\n", all.page[i].address, all.page[i].frame);
	free(all.page);
	return fflush(stdout) ? 1 : 0;
}

static int by_address(const void *a, const void *b)
{
	uint64_t x = ((const struct page *)a)->address;
	uint64_t y = ((const struct page *)b)->address;

	return x < y ? -1 : x > y;
}

static bool has(const struct pages *sorted, uint64_t address)
{
	struct page key = {.address = address};

	return sorted->n &&
	       bsearch(&key, sorted->page, sorted->n, sizeof(*sorted->page), by_address);
}

/* The listed ones that the process has, in their order. */
static struct pages read_wanted(const struct pages *present, unsigned long most)
{
	struct pages wanted = {0};
	uint64_t address;

	while (wanted.n < most && scanf("%" SCNx64, &address) == 1)
		if (has(present, address))
			add(&wanted, address, 0);
	return wanted;
}

static void **addresses(const struct pages *p)
{
	void **ret = calloc(p->n + 1, sizeof(*ret));

	if (!ret)
		die("memory");
	for (unsigned long i = 0; i < p->n; i++)
		ret[i] = (void *)(uintptr_t)p->page[i].address; // NOLINT: another process's
	return ret;
}

static void sort(struct pages *p)
{
	if (p->n)
		qsort(p->page, p->n, sizeof(*p->page), by_address);
}

/* Those of all that are on these nodes and not wanted. */
static struct pages in_the_way(
	pid_t pid, const struct pages *all, const struct pages *wanted, uint64_t fast)
{
	struct pages ret = {0};
	void **at = addresses(all);
	int *node = calloc(all->n + 1, sizeof(*node));

	if (!node)
		die("memory");
	if ((errno = -place_ask(pid, at, all->n, node)))
		die("move_pages");
	for (unsigned long i = 0; i < all->n; i++)
		if (node[i] >= 0 && node[i] < MAX_NODES && (fast >> node[i] & 1) &&
			!has(wanted, all->page[i].address))
			add(&ret, all->page[i].address, 0);
	free(node);
	free(at);
	return ret;
}

static long move(pid_t pid, const struct pages *pages, uint64_t nodes)
{
	void **at = addresses(pages);
	long ret = place_pages(pid, at, pages->n, nodes);

	if (ret < 0) {
		errno = (int)-ret;
		die("move_pages");
	}
	free(at);
	return ret;
}

static int place(pid_t pid, uint64_t fast, uint64_t slow, unsigned long most)
{
	struct pages present = pages_of(pid);
	struct pages wanted;
	struct pages sorted = {0};
	struct pages others;
	long out;
	long in;

	sort(&present);
	wanted = read_wanted(&present, most);
	for (unsigned long i = 0; i < wanted.n; i++)
		add(&sorted, wanted.page[i].address, 0);
	sort(&sorted);
	others = in_the_way(pid, &present, &sorted, fast);
	out = move(pid, &others, slow);
	in = move(pid, &wanted, fast);
	printf("{\"present\": %lu, \"wanted\": %lu, \"fast\": %ld, \"others\": %lu, "
	       "\"moved_away\": %ld}\n",
		present.n, wanted.n, in, others.n, out);
	free(present.page);
	free(wanted.page);
	free(sorted.page);
	free(others.page);
	return fflush(stdout) ? 1 : 0;
}

static bool number(const char *text, unsigned long max, unsigned long *ret)
{
	char *end;

	errno = 0;
	*ret = strtoul(text, &end, 10);
	return *text >= '0' && *text <= '9' && !*end && !errno && *ret <= max;
}

int main(int argc, char **argv)
{
	unsigned long pid;
	unsigned long most;
	uint64_t fast;
	uint64_t slow;

	if (argc == 3 && strcmp(argv[1], "map") == 0 && number(argv[2], INT32_MAX, &pid))
		return print_map((pid_t)pid);
	if (argc == 6 && strcmp(argv[1], "place") == 0 && number(argv[2], INT32_MAX, &pid) &&
		eat_parse(argv[3], &fast, NULL) == 0 && eat_parse(argv[4], &slow, NULL) == 0 &&
		number(argv[5], UINT32_MAX, &most))
		return place((pid_t)pid, fast, slow, most);
	fputs("Usage: placer map PID | placer place PID FAST SLOW PAGES < ADDRESSES\n", stderr);
	return 2;
}
