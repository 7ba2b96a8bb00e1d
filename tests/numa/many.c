// SPDX-License-Identifier: MIT
/*
 * Many mappings, counting what the kernel refuses.
 *
 *   many N anon     2 MiB each, private; neighbours with the same policy become one
 *   many N memfd    1 MiB each of one file, in an order in which no two can become one
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/numa/where.h"

#define RW (PROT_READ | PROT_WRITE)

int main(int argc, char **argv)
{
	size_t n = argc == 3 ? strtoul(argv[1], NULL, 10) : 0;
	int shared = argc == 3 && strcmp(argv[2], "memfd") == 0;
	size_t len = shared ? 1ul << 20 : 2ul << 20;
	size_t failed = 0;
	size_t vmas = 0;
	char line[1024];
	char **at;
	FILE *f;
	int fd = -1;

	if (n == 0)
		return 2;
	at = calloc(n, sizeof(*at));
	if (!at)
		where_die("calloc");
	if (shared) {
		fd = memfd_create("many", 0);
		if (fd < 0 || ftruncate(fd, (off_t)(n * len)))
			where_die("memfd_create");
	}
	for (size_t i = 0; i < n; i++) {
		/* The kernel goes down through the address space, so offsets that go up never meet.
		 */
		at[i] = shared ? mmap(NULL, len, RW, MAP_SHARED, fd, (off_t)(i * len))
			       : mmap(NULL, len, RW, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (at[i] == MAP_FAILED)
			failed++;
		else if (i % 16 == 0)
			at[i][0] = 1;
	}
	f = fopen("/proc/self/maps", "r");
	while (f && fgets(line, sizeof(line), f))
		vmas++;
	if (f)
		fclose(f);
	/* The unmapping must work too: it can split what was joined. */
	for (size_t i = 0; i < n; i += 2)
		if (at[i] != MAP_FAILED && munmap(at[i], len))
			failed++;
	printf("mapped %zu failed %zu vmas %zu\n", n, failed, vmas);
	return 0;
}
