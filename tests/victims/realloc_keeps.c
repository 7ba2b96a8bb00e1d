/* realloc keeps what the block held across every size class, both ways, and on failure keeps the
 * block. */
#include <malloc.h>

#include "victim.h"

static void fill(unsigned char *block, size_t from, size_t to)
{
	for (size_t i = from; i < to; i++)
		block[i] = (unsigned char)(i * 31 + 7);
}

static void check(const unsigned char *block, size_t to)
{
	for (size_t i = 0; i < to; i++)
		if (block[i] != (unsigned char)(i * 31 + 7))
			FAIL("byte %zu of %zu lost", i, to);
}

int main(void)
{
	static const size_t sizes[] = {1, 15, 16, 17, 100, 255, 256, 1000, 1024, 1025, 4000, 8192,
		8193, 16384, 60000, 131072, 131073, 500000, 2097152, 5000000};
	enum { COUNT = sizeof(sizes) / sizeof(sizes[0]) };

	for (int from = 0; from < COUNT; from++)
		for (int to = 0; to < COUNT; to++) {
			size_t least = sizes[from] < sizes[to] ? sizes[from] : sizes[to];
			unsigned char *block =
				(from + to) % 3 ? malloc(sizes[from]) : memalign(128, sizes[from]);

			CHECK(block);
			fill(block, 0, sizes[from]);
			block = realloc(block, sizes[to]);
			CHECK(block && malloc_usable_size(block) >= sizes[to]);
			check(block, least);
			fill(block, least, sizes[to]);
			CHECK(!realloc(block, (size_t)PTRDIFF_MAX) && errno == ENOMEM);
			CHECK(!reallocarray(block, SIZE_MAX / 2, 3) && errno == ENOMEM);
			check(block, sizes[to]);
			block = reallocarray(block, 2, sizes[to]);
			CHECK(block);
			check(block, sizes[to]);
			free(block);
		}
	/* the slow walk: byte by byte, as naive readers do */
	unsigned char *walk = NULL;

	for (size_t size = 1; size < 20000; size++) {
		walk = realloc(walk, size);
		CHECK(walk);
		walk[size - 1] = (unsigned char)((size - 1) * 31 + 7);
	}
	check(walk, 19999);
	free(walk);
	return pass();
}
