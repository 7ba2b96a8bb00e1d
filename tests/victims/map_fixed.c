/* MAP_FIXED replaces, MAP_FIXED_NOREPLACE does not, hints are honoured, holes can be cut and
 * filled. */
#include <sys/mman.h>

#include "victim.h"

enum { PAGE = 4096 };

static char *map(void *where, size_t length, int more)
{
	return mmap(
		where, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | more, -1, 0);
}

static int is_mapped(char *page)
{
	unsigned char in_core;

	return mincore(page, PAGE, &in_core) == 0;
}

int main(void)
{
	for (int round = 0; round < 50; round++) {
		char *range = map(NULL, 64 * PAGE, 0);

		CHECK(range != MAP_FAILED);
		for (int i = 0; i < 64; i++)
			range[i * PAGE] = (char)(i + 1);
		CHECK(map(range + 10 * PAGE, 5 * PAGE, MAP_FIXED) == range + 10 * PAGE);
		CHECK(range[9 * PAGE] == 10 && range[10 * PAGE] == 0 && range[14 * PAGE] == 0 &&
			range[15 * PAGE] == 16);
		CHECK(map(range + 20 * PAGE, PAGE, MAP_FIXED_NOREPLACE) == MAP_FAILED &&
			errno == EEXIST);
		CHECK(range[20 * PAGE] == 21);
		CHECK(!munmap(range + 30 * PAGE, 4 * PAGE));
		CHECK(!is_mapped(range + 30 * PAGE) && !is_mapped(range + 33 * PAGE));
		CHECK(is_mapped(range + 29 * PAGE) && is_mapped(range + 34 * PAGE));
		CHECK(map(range + 31 * PAGE, PAGE, MAP_FIXED_NOREPLACE) == range + 31 * PAGE);
		CHECK(!is_mapped(range + 30 * PAGE));
		char *hinted =
			map(range + 32 * PAGE, PAGE, 0); /* free and aligned: taken as asked */

		if (hinted != range + 32 * PAGE)
			FAIL("a hint for a free page gave %p, not %p", (void *)hinted,
				(void *)(range + 32 * PAGE));
		char *taken = map(range + 40 * PAGE, PAGE, 0); /* taken: somewhere else */

		CHECK(taken != MAP_FAILED && taken != range + 40 * PAGE);
		munmap(taken, PAGE);
		char *low = map(NULL, 10 * PAGE, MAP_32BIT);

		CHECK(low != MAP_FAILED && (uintptr_t)low < (uintptr_t)1 << 32);
		munmap(low, 10 * PAGE);
		char *stack = map(NULL, 64 * PAGE, MAP_STACK | MAP_NORESERVE);

		CHECK(stack != MAP_FAILED);
		munmap(stack, 64 * PAGE);
		/* over a block of the heap's neighbourhood nothing may be replaced by itself */
		char *block = malloc(3 * MIB);

		memset(block, 5, 3 * MIB);
		char *other = map(NULL, 40 * MIB, 0);

		CHECK(other != MAP_FAILED && other[0] == 0 && other[40 * MIB - 1] == 0);
		CHECK(other + 40 * MIB <= block || other >= block + 3 * MIB);
		CHECK(block[0] == 5 && block[3 * MIB - 1] == 5);
		munmap(other, 40 * MIB);
		free(block);
		CHECK(!munmap(range, 64 * PAGE)); /* with holes in it */
		CHECK(!is_mapped(range) && !is_mapped(range + 63 * PAGE));
	}
	/* a large range keeps the address it had when it is given back and mapped again by hint */
	char *range = map(NULL, GIB, MAP_NORESERVE);

	CHECK(range != MAP_FAILED && !munmap(range, GIB));
	CHECK(map(range, 16 * PAGE, 0) == range);
	return pass();
}
