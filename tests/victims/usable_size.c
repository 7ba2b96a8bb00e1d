/* malloc_usable_size is at least what was asked, and every byte of it belongs to the block. */
#include <malloc.h>

#include "victim.h"

enum { BLOCKS = 600 };

static unsigned char *block[BLOCKS];
static size_t usable[BLOCKS];

static unsigned char mark(int i)
{
	return (unsigned char)(i * 7 + 3);
}

int main(void)
{
	unsigned state = 99;

	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < BLOCKS; i++) {
			size_t size = mixed_size(&state) / 4;

			if (i % 4 == 0)
				block[i] = calloc(1, size);
			else if (i % 4 == 1)
				block[i] = memalign((size_t)32 << (i % 8), size);
			else
				block[i] = malloc(size);
			CHECK(block[i]);
			usable[i] = malloc_usable_size(block[i]);
			if (usable[i] < size)
				FAIL("usable size %zu of a block of %zu", usable[i], size);
			memset(block[i], mark(i), usable[i]);
		}
		for (int i = 0; i < BLOCKS; i++)
			for (size_t k = 0; k < usable[i]; k++)
				if (block[i][k] != mark(i))
					FAIL("block %d of %zu bytes overwritten at %zu", i,
						usable[i], k);
		for (int i = 0; i < BLOCKS;
			i++) { /* what was written beyond the request moves along */
			unsigned char *grown = realloc(block[i], usable[i] * 2 + 100);

			CHECK(grown);
			for (size_t k = 0; k < usable[i]; k++)
				if (grown[k] != mark(i))
					FAIL("realloc lost byte %zu of %zu", k, usable[i]);
			free(grown);
		}
	}
	return pass();
}
