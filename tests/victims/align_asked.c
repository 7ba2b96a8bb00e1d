/* memalign, posix_memalign, aligned_alloc and valloc keep the alignment asked for, for sizes around
 * it. */
#include <malloc.h>

#include "victim.h"

enum { LIVE = 96 };

static void *get(int way, size_t align, size_t size)
{
	void *block = NULL;

	if (way == 0)
		return posix_memalign(&block, align, size) ? NULL : block;
	return way == 1 ? memalign(align, size) : aligned_alloc(align, size);
}

static void try_pair(size_t align, size_t size)
{
	unsigned char *live[LIVE];
	int count = size > 64 * KIB ? 6 : LIVE;

	for (int i = 0; i < count; i++) {
		live[i] = get(i % 3, align, size);
		if (!live[i] || (uintptr_t)live[i] % align)
			FAIL("way %d align %zu size %zu gave %p", i % 3, align, size,
				(void *)live[i]);
		memset(live[i], i, size);
	}
	for (int i = 0; i < count; i++) {
		if (size && (live[i][0] != i || live[i][size - 1] != i))
			FAIL("aligned blocks of %zu/%zu overlap", align, size);
		if (i % 2) {
			free(live[i]);
		} else { /* the program may resize it as any other block */
			unsigned char *grown = realloc(live[i], size + 1000);

			if (!grown || (size && (grown[0] != i || grown[size - 1] != i)))
				FAIL("realloc of an aligned block %zu/%zu", align, size);
			free(grown);
		}
	}
}

int main(void)
{
	for (size_t align = sizeof(void *); align <= 16 * KIB; align *= 2) {
		const size_t size[] = {0, 1, align / 2, align - 1, align, align + 1, 2 * align,
			3 * align - 8, 5 * align};

		for (size_t i = 0; i < sizeof(size) / sizeof(size[0]); i++)
			try_pair(align, size[i]);
	}
	for (size_t align = 64 * KIB; align <= 64 * MIB; align *= 4)
		try_pair(align, 100);
	for (int i = 0; i < 100; i++) {
		void *page = valloc((size_t)i * 77);
		void *whole = pvalloc((size_t)i * 77 + 1);

		CHECK(page && (uintptr_t)page % 4096 == 0);
		CHECK(whole && (uintptr_t)whole % 4096 == 0);
		CHECK(malloc_usable_size(whole) >= ((size_t)i * 77 + 4096) / 4096 * 4096);
		free(page);
		free(whole);
	}
	return pass();
}
