/* A program linked with jemalloc: blocks of its own entry points end in free, and the other way
 * round. */
#include <malloc.h>

#include "victim.h"

/* declared by hand: the run-time package has no header */
void *mallocx(size_t size, int flags);
void *rallocx(void *block, size_t size, int flags);
size_t sallocx(const void *block, int flags);

int main(void)
{
	static const size_t sizes[] = {8, 100, 4096, 20000, 300000, 9000000};

	for (int round = 0; round < 200; round++)
		for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
			unsigned char *block =
				mallocx(sizes[i], round % 2 ? 7 : 0); /* 2^7 aligned */

			CHECK(block && sallocx(block, 0) >= sizes[i]);
			CHECK(malloc_usable_size(block) >= sizes[i]);
			block[0] = block[sizes[i] - 1] = 0x42;
			if (round % 3 == 0) {
				block = rallocx(block, sizes[i] * 2, 0);
				CHECK(block && block[sizes[i] - 1] == 0x42);
			} else if (round % 3 == 1) {
				block = realloc(block, sizes[i] * 3);
				CHECK(block && block[0] == 0x42 && block[sizes[i] - 1] == 0x42);
			}
			errno = ELOOP;
			free(block);
			CHECK(errno == ELOOP);
			free(malloc(sizes[i]));
			free(strdup("text"));
		}
	return pass();
}
