// SPDX-License-Identifier: MIT
/*
 * Where the pages of a process are that hold values of mcreads, which are the pages that its gets
 * read: a run of one letter is in each. As root.
 *
 *   holds PID SLOW      prints "value-pages N", and "value-slow N" of them on the slow node
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/numa/where.h"

#define PAGE 4096ul
enum { BATCH = 512, RUN = 64 };

static unsigned long pages;
static unsigned long on_slow;
static int slow;
static int pid;
static int memory;
static int present;

static int open_of(const char *name)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		where_die(path);
	return fd;
}

static bool holds_value(const char *page)
{
	for (size_t i = 0; i + RUN < PAGE; i += RUN)
		if (page[i] >= 'a' && page[i] <= 'z' &&
			memcmp(page + i, page + i + 1, RUN - 1) == 0)
			return true;
	return false;
}

/* By frame: to move_pages some kernels do not tell of pages that balancing waits for. */
static struct {
	unsigned long start;
	unsigned long nr;
} zones[8];
static unsigned nr_zones;

static void read_zones(void)
{
	unsigned long spanned = 0;
	unsigned long n;
	char line[256];
	int node = -1;
	FILE *f = fopen("/proc/zoneinfo", "r");

	if (!f)
		where_die("/proc/zoneinfo");
	while (fgets(line, sizeof(line), f)) {
		(void)sscanf(line, "Node %d,", &node);
		(void)sscanf(line, " spanned %lu", &spanned);
		if (sscanf(line, " start_pfn: %lu", &n) == 1 && node == slow && spanned &&
			nr_zones < 8) {
			zones[nr_zones].start = n;
			zones[nr_zones++].nr = spanned;
		}
	}
	fclose(f);
}

static bool is_slow(uint64_t entry)
{
	unsigned long frame = entry & ((UINT64_C(1) << 55) - 1);

	for (unsigned i = 0; i < nr_zones; i++)
		if (frame - zones[i].start < zones[i].nr)
			return true;
	return false;
}

/* At most BATCH pages. To read them is an access, so where they are is asked first. */
static void look(uintptr_t start, size_t nr)
{
	static char page[PAGE];
	uint64_t entry[BATCH];

	if (pread(present, entry, nr * sizeof(entry[0]),
		    (off_t)(start / PAGE * sizeof(entry[0]))) != (ssize_t)(nr * sizeof(entry[0])))
		where_die("pagemap");
	for (size_t i = 0; i < nr; i++) {
		if (!(entry[i] >> 63) ||
			pread(memory, page, PAGE, (off_t)(start + i * PAGE)) != (ssize_t)PAGE ||
			!holds_value(page))
			continue;
		pages++;
		on_slow += is_slow(entry[i]);
	}
}

int main(int argc, char **argv)
{
	char line[512];
	FILE *maps;

	if (argc != 3)
		return 2;
	pid = atoi(argv[1]);
	slow = atoi(argv[2]);
	read_zones();
	memory = open_of("mem");
	present = open_of("pagemap");
	maps = fdopen(open_of("maps"), "r");
	while (maps && fgets(line, sizeof(line), maps)) {
		unsigned long start;
		unsigned long end;
		char mode[8];
		char *path = strchr(line, '/');

		if (path || sscanf(line, "%lx-%lx %7s", &start, &end, mode) != 3 ||
			strncmp(mode, "rw", 2) != 0)
			continue;
		for (; start < end; start += BATCH * PAGE)
			look(start, end - start < BATCH * PAGE ? (end - start) / PAGE : BATCH);
	}
	printf("value-pages %lu\nvalue-slow %lu\n", pages, on_slow);
	return 0;
}
