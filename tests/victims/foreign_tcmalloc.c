/* A program linked with tcmalloc: blocks of its own entry points end in free and realloc. */
#include <malloc.h>

#include "victim.h"

/* declared by hand: the run-time package has no header */
void *tc_malloc(size_t size);
void *tc_memalign(size_t align, size_t size);

int main(void)
{
	static const size_t sizes[] = {8, 100, 4096, 20000, 300000, 9000000};

	for (int round = 0; round < 200; round++)
		for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
			unsigned char *block =
				round % 2 ? tc_malloc(sizes[i]) : tc_memalign(4096, sizes[i]);

			CHECK(block && malloc_usable_size(block) >= sizes[i]);
			block[0] = block[sizes[i] - 1] = 0x42;
			if (round % 3 == 1) {
				block = realloc(block, sizes[i] * 2 + 50);
				CHECK(block && block[0] == 0x42 && block[sizes[i] - 1] == 0x42);
			}
			free(block);
			free(malloc(sizes[i]));
			free(strdup("text"));
		}
	return pass();
}
