/* mallinfo2 is honest: what it reports in use grows with what is allocated and shrinks afterwards.
 */
#include <malloc.h>

#include "victim.h"

static size_t in_use(void)
{
	struct mallinfo2 info = mallinfo2();

	return info.uordblks + info.hblkhd;
}

int main(void)
{
	enum { SMALL = 2000 };
	static char *small[SMALL];
	size_t before = in_use();
	char *large = malloc(64 * MIB);

	CHECK(large);
	memset(large, 1, 64 * MIB);
	for (int i = 0; i < SMALL; i++) {
		small[i] = malloc(8000);
		CHECK(small[i]);
		memset(small[i], 1, 8000);
	}
	size_t during = in_use();

	if (during < before + 64 * MIB)
		FAIL("in use %zu before and %zu after allocating 64 MiB", before, during);
	if (during > before + 512 * MIB)
		FAIL("in use %zu for 80 MiB", during);
	for (int i = 0; i < SMALL; i++)
		free(small[i]);
	free(large);
	CHECK(in_use() < during);
	return pass();
}
