/* Every block of malloc, calloc and realloc is aligned to 16, whatever its size, also after reuse.
 */
#include <stddef.h>

#include "victim.h"

enum { LIVE = 64 };

static void check(const void *block, const char *call, size_t size)
{
	if (!block)
		FAIL("%s(%zu) gave NULL", call, size);
	if ((uintptr_t)block % _Alignof(max_align_t))
		FAIL("%s(%zu) gave %p, not a multiple of 16", call, size, block);
}

static void try_size(size_t size)
{
	void *live[LIVE];

	for (int i = 0; i < LIVE; i++) {
		live[i] = i % 3 == 0 ? malloc(size) : i % 3 == 1 ? calloc(1, size) : NULL;
		if (i % 3 == 2)
			live[i] = realloc(malloc(size / 2), size);
		if (size || i % 3 != 2)
			check(live[i],
				i % 3 == 0   ? "malloc"
				: i % 3 == 1 ? "calloc"
					     : "realloc",
				size);
	}
	for (int i = 0; i < LIVE; i += 2) {
		free(live[i]);
		live[i] = malloc(size);
		check(live[i], "malloc after free", size);
	}
	for (int i = 0; i < LIVE; i++)
		free(live[i]);
}

int main(void)
{
	for (size_t size = 0; size <= 2100; size++)
		try_size(size);
	for (size_t size = 4096; size <= 4 * MIB; size = size * 3 / 2 + 7)
		try_size(size);
	return pass();
}
