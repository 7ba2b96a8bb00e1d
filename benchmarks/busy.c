// SPDX-License-Identifier: MIT
/* busy MIB: fills so much memory and reads it at random until it is killed, a quarter of it most. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

int main(int argc, char **argv)
{
	size_t len = (argc == 2 ? strtoul(argv[1], NULL, 10) : 0) << 20;
	uint64_t x = 1;
	uint64_t sum = 0;
	char *at;

	if (len == 0) {
		fprintf(stderr, "usage: busy MIB\n");
		return 2;
	}
	at = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (at == MAP_FAILED) {
		perror("busy: mmap");
		return 1;
	}
	/* The dear case: each page is looked at by itself. */
	(void)madvise(at, len, MADV_NOHUGEPAGE);
	memset(at, 1, len);
	for (;;) {
		x = x * 6364136223846793005u + 1442695040888963407u;
		sum += (uint64_t)((volatile char *)at)[(x >> 16) % (x >> 60 ? len / 4 : len)];
		if (sum == UINT64_MAX)
			puts("never");
	}
}
