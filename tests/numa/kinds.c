// SPDX-License-Identifier: MIT
/*
 * Makes one mapping of each kind, touches all of it, and says where the pages are: one line per
 * kind, as where_print() writes it. Whoever starts it chooses the CPU.
 *
 *   kinds [-s MIB] [-k KIND,...] [-2 COMMAND] [-f FILE] [-m] [-q]
 *
 *   -s  size of each (default 64)
 *   -k  these kinds only; those that need something of the machine are made only when named
 *   -2  touch one half, run the shell command, touch the other half; two lines, KIND and KIND.2
 *   -f  pagecache: reads this file first
 *   -m  the numa_maps lines of each as well
 *   -q  only fail or not; prints nothing
 * At the end: "threads N" and "maps N", of the whole process.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/numa/where.h"

#define RW (PROT_READ | PROT_WRITE)

static size_t len = 64ul << 20;
static const char *between;
static const char *file;
static int with_maps;
static int quiet;

static void show(const char *kind, char *p, size_t n)
{
	if (quiet)
		return;
	where_report(kind, p, n);
	if (with_maps)
		where_print_maps(kind, p, n);
}

static void use(const char *kind, void *mapping)
{
	char second[32];
	char *p = mapping;
	size_t half = between ? len / 2 : len;

	where_touch(p, half, kind);
	show(kind, p, half);
	if (!between)
		return;
	if (system(between) != 0)
		where_die(between);
	where_touch(p + half, len - half, kind);
	snprintf(second, sizeof(second), "%s.2", kind);
	show(second, p + half, len - half);
}

static unsigned long huge_of_process(void)
{
	char line[256];
	unsigned long kb = 0;
	FILE *f = fopen("/proc/self/smaps_rollup", "r");

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "AnonHugePages: %lu", &kb) == 1)
			break;
	if (f)
		fclose(f);
	return kb;
}

static void slab(const char *kind)
{
	enum { BLOCK = 2000 };
	size_t n = len / BLOCK;
	char **block = malloc(n * sizeof(*block));
	unsigned long before = huge_of_process();
	struct where w = {0};
	size_t last = 0;

	if (!block)
		where_die(kind);
	for (size_t i = 0; i < n; i++) {
		block[i] = malloc(BLOCK);
		if (!block[i])
			where_die(kind);
		memset(block[i], 1, BLOCK);
	}
	for (size_t i = 0; i < n; i++) {
		size_t page = (size_t)block[i] / WHERE_PAGE;

		if (page != last)
			where_pages(&w, block[i], 1);
		last = page;
	}
	if (!quiet) {
		where_maps(&w, block[n / 2], 1);
		w.huge_kb = huge_of_process() - before;
		where_print(kind, &w);
	}
	for (size_t i = 0; i < n; i++)
		free(block[i]);
	free(block);
}

static void anon(const char *kind)
{
	void *p = mmap(NULL, len, RW, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	use(kind, p);
	munmap(p, len);
}

static void anon_huge(const char *kind)
{
	void *p = mmap(NULL, len, RW, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p != MAP_FAILED)
		madvise(p, len, MADV_HUGEPAGE);
	use(kind, p);
	munmap(p, len);
}

static void malloc_large(const char *kind)
{
	void *p = malloc(len);

	use(kind, p);
	free(p);
}

static void anon_shared(const char *kind)
{
	void *p = mmap(NULL, len, RW, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	use(kind, p);
	munmap(p, len);
}

static void sysv(const char *kind)
{
	int id = shmget(IPC_PRIVATE, len, IPC_CREAT | 0600);
	void *p;

	if (id < 0)
		where_die(kind);
	p = shmat(id, NULL, 0);
	shmctl(id, IPC_RMID, NULL);
	use(kind, p);
	shmdt(p);
}

static void mapped(const char *kind, int fd, int how)
{
	void *p;

	if (fd < 0 || ftruncate(fd, (off_t)len))
		where_die(kind);
	p = mmap(NULL, len, RW, how, fd, 0);
	use(kind, p);
	munmap(p, len);
	close(fd);
}

static void memfd(const char *kind)
{
	mapped(kind, memfd_create("kinds", 0), MAP_SHARED);
}

static void memfd_private(const char *kind)
{
	mapped(kind, memfd_create("kinds", 0), MAP_PRIVATE);
}

static void shm_opened(const char *kind)
{
	char name[64];
	int fd;

	snprintf(name, sizeof(name), "/kinds.%d", getpid());
	fd = shm_open(name, O_CREAT | O_RDWR, 0600);
	shm_unlink(name);
	mapped(kind, fd, MAP_SHARED);
}

static void hugetlb(const char *kind)
{
	void *p = mmap(NULL, len, RW, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);

	use(kind, p);
	munmap(p, len);
}

static void hugetlb_file(const char *kind)
{
	mapped(kind, memfd_create("kinds", MFD_HUGETLB), MAP_SHARED);
}

/* Half of it first; then mremap adds the other half, or moves the whole, and every byte must be
 * there. */
static void remapped(const char *kind, int fd, int how, int move)
{
	size_t half = len / 2;
	size_t from = move ? len : half;
	char *p;

	if (fd >= 0 && ftruncate(fd, (off_t)len))
		where_die(kind);
	p = where_touch(mmap(NULL, from, RW, how, fd, 0), from, kind);
	for (size_t i = 0; i < from; i += WHERE_PAGE)
		memcpy(p + i, &i, sizeof(i));
	if (move) {
		void *to = mmap(NULL, len, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		p = mremap(p, len, len, MREMAP_MAYMOVE | MREMAP_FIXED, to);
	} else {
		p = mremap(p, half, len, MREMAP_MAYMOVE);
	}
	if (p == MAP_FAILED)
		where_die(kind);
	for (size_t i = 0; i < from; i += WHERE_PAGE) {
		if (memcmp(p + i, &i, sizeof(i)) != 0) {
			fprintf(stderr, "%s: other contents at %zu\n", kind, i);
			exit(1);
		}
	}
	where_touch(p, len, kind);
	show(kind, p, len);
	if (munmap(p, len))
		where_die(kind);
	if (fd >= 0)
		close(fd);
}

static void memfd_grown(const char *kind)
{
	remapped(kind, memfd_create("kinds", 0), MAP_SHARED, 0);
}

static void memfd_moved(const char *kind)
{
	remapped(kind, memfd_create("kinds", 0), MAP_SHARED, 1);
}

static void anon_grown(const char *kind)
{
	remapped(kind, -1, MAP_PRIVATE | MAP_ANONYMOUS, 0);
}

/* Page cache: read(2) brings it in, and a mapping shows where it is. */
static void pagecache(const char *kind)
{
	static char buf[1 << 16];
	struct stat st;
	int fd = open(file, O_RDONLY);
	char *p;

	if (fd < 0 || fstat(fd, &st))
		where_die(file);
	while (read(fd, buf, sizeof(buf)) > 0)
		;
	p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		where_die(file);
	show(kind, p, (size_t)st.st_size);
	munmap(p, (size_t)st.st_size);
	close(fd);
}

static const struct kind {
	const char *name;
	void (*make)(const char *name);
	int only_named;
} kinds[] = {
	/* The page cache first: what comes later must not be able to warm it. */
	{"pagecache", pagecache, 1},
	{"slab", slab, 0},
	{"anon", anon, 0},
	{"anon-huge", anon_huge, 0},
	{"malloc-large", malloc_large, 0},
	{"anon-shared", anon_shared, 0},
	{"sysv", sysv, 0},
	{"memfd", memfd, 0},
	{"shm_open", shm_opened, 0},
	{"memfd-private", memfd_private, 0},
	{"memfd-grown", memfd_grown, 1},
	{"memfd-moved", memfd_moved, 1},
	{"anon-grown", anon_grown, 1},
	{"hugetlb", hugetlb, 1},
	{"hugetlb-file", hugetlb_file, 1},
};

static int named(const char *list, const char *name)
{
	size_t n = strlen(name);
	const char *at = list;

	while ((at = strstr(at, name))) {
		if ((at == list || at[-1] == ',') && (at[n] == ',' || at[n] == '\0'))
			return 1;
		at += n;
	}
	return 0;
}

static unsigned long count_lines(const char *path, const char *prefix, unsigned long *value)
{
	char line[1024];
	unsigned long n = 0;
	FILE *f = fopen(path, "r");

	while (f && fgets(line, sizeof(line), f)) {
		n++;
		if (prefix && strncmp(line, prefix, strlen(prefix)) == 0)
			*value = strtoul(line + strlen(prefix), NULL, 10);
	}
	if (f)
		fclose(f);
	return n;
}

int main(int argc, char **argv)
{
	const char *list = NULL;
	unsigned long threads = 0;
	int opt;

	while ((opt = getopt(argc, argv, "s:k:2:f:mq")) != -1) {
		switch (opt) {
		case 's':
			len = strtoul(optarg, NULL, 10) << 20;
			break;
		case 'k':
			list = optarg;
			break;
		case '2':
			between = optarg;
			break;
		case 'f':
			file = optarg;
			break;
		case 'm':
			with_maps = 1;
			break;
		case 'q':
			quiet = 1;
			break;
		default:
			return 2;
		}
	}
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (list ? named(list, kinds[i].name) : !kinds[i].only_named)
			kinds[i].make(kinds[i].name);
	if (quiet)
		return 0;
	count_lines("/proc/self/status", "Threads:", &threads);
	printf("threads %lu\n", threads);
	printf("maps %lu\n", count_lines("/proc/self/maps", NULL, NULL));
	return 0;
}
