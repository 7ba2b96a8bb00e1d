/* Blocks from 1 MiB to 2 GiB: ends usable, zero from calloc, given back by free, none overlapping.
 */
#include <malloc.h>

#include "victim.h"

int main(void)
{
	unsigned char *live[12];
	size_t size[12];

	for (int i = 0; i < 12; i++) {
		size[i] = (MIB << i) + (size_t)i * 12345;
		live[i] = i % 2 ? malloc(size[i]) : calloc(size[i], 1);
		if (!live[i])
			FAIL("cannot get %zu bytes, errno %d", size[i], errno);
		CHECK((uintptr_t)live[i] % 16 == 0 && malloc_usable_size(live[i]) >= size[i]);
		if (i % 2 == 0)
			for (size_t k = 0; k < size[i]; k += 32 * MIB - 4096)
				CHECK(live[i][k] == 0);
		live[i][0] = live[i][size[i] / 2] = live[i][size[i] - 1] = (unsigned char)(i + 1);
	}
	for (int i = 0; i < 12; i++)
		CHECK(live[i][0] == i + 1 && live[i][size[i] - 1] == i + 1);
	for (int i = 0; i < 12; i++)
		free(live[i]);

	/* memory of freed large blocks goes back to the system, as it does with glibc */
	long before = status_kb("VmRSS:");

	for (int round = 0; round < 6; round++) {
		char *big = malloc(256 * MIB);

		CHECK(big);
		memset(big, 1, 256 * MIB);
		free(big);
	}
	long kept = status_kb("VmRSS:") - before;

	if (kept > 100 * 1024)
		FAIL("%ld kB stay resident after all large blocks are freed", kept);
	return pass();
}
