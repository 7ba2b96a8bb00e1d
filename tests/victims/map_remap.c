/* mremap in all its forms, with the fifth argument used and not used; content moves along. */
#include <sys/mman.h>

#include "victim.h"

enum { PAGE = 4096 };

static char *map(size_t pages, int flags)
{
	char *range =
		mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);

	CHECK(range != MAP_FAILED);
	return range;
}

static void fill(char *range, int pages)
{
	for (int i = 0; i < pages; i++)
		range[i * PAGE + i] = (char)(i % 100 + 1);
}

static void check(const char *range, int pages)
{
	for (int i = 0; i < pages; i++)
		if (range[i * PAGE + i] != (char)(i % 100 + 1))
			FAIL("page %d of %d lost in mremap", i, pages);
}

static int is_mapped(char *page)
{
	unsigned char in_core;

	return mincore(page, PAGE, &in_core) == 0;
}

static void one_round(int flags)
{
	char *range = map(50, flags);

	fill(range, 50);
	if (flags == MAP_PRIVATE) { /* a shared object does not grow with its mapping */
		char *grown = mremap(range, 50 * PAGE, 5000 * PAGE, MREMAP_MAYMOVE);

		CHECK(grown != MAP_FAILED);
		check(grown, 50);
		CHECK(grown[4999 * PAGE] == 0);
		CHECK(grown == range || !is_mapped(range));
		range = grown;
		CHECK(mremap(range, 5000 * PAGE, 50 * PAGE, 0) == range);
		CHECK(!is_mapped(range + 50 * PAGE));
	}
	char *target = map(200, MAP_PRIVATE);

	target[0] = target[199 * PAGE] = 9;
	char *moved = mremap(
		range, 50 * PAGE, 50 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, target + 100 * PAGE);

	CHECK(moved == target + 100 * PAGE && !is_mapped(range));
	check(moved, 50);
	CHECK(target[0] == 9 && target[199 * PAGE] == 9);
	CHECK(mremap(target + 98 * PAGE, PAGE, 2 * PAGE, 0) == MAP_FAILED && errno == ENOMEM);
	/* a part from the middle */
	char *part = mremap(moved + 20 * PAGE, 10 * PAGE, 10 * PAGE, MREMAP_MAYMOVE);

	CHECK(part == moved + 20 * PAGE);
	char *left = mremap(moved, 20 * PAGE, 20 * PAGE, MREMAP_MAYMOVE | MREMAP_DONTUNMAP);

	if (left != MAP_FAILED) {
		check(left, 20);
		CHECK(is_mapped(moved) && (flags == MAP_SHARED || moved[0] == 0));
		munmap(left, 20 * PAGE);
	}
	if (flags == MAP_SHARED) {
		char *twin = mremap(part, 0, 10 * PAGE, MREMAP_MAYMOVE);

		CHECK(twin != MAP_FAILED && twin != part);
		part[0] = 77;
		CHECK(twin[0] == 77);
		munmap(twin, 10 * PAGE);
	}
	munmap(target, 200 * PAGE);
}

int main(void)
{
	for (int round = 0; round < 60; round++)
		one_round(round % 2 ? MAP_SHARED : MAP_PRIVATE);
	/* growing step by step, as a vector on mappings does */
	size_t size = 16 * PAGE;
	char *vector = map(16, MAP_PRIVATE);

	fill(vector, 16);
	while (size < 512 * MIB) {
		vector = mremap(vector, size, size * 2, MREMAP_MAYMOVE);
		CHECK(vector != MAP_FAILED);
		size *= 2;
		vector[size - 1] = 1;
	}
	check(vector, 16);
	CHECK(!munmap(vector, size));
	return pass();
}
