/* A buffer that grows from 1 MiB to 1 GiB keeps its content and never needs twice its size in
 * memory. */
#include "victim.h"

static void mark(unsigned char *block, size_t from, size_t to)
{
	for (size_t i = from; i < to; i += 4096)
		block[i] = (unsigned char)(i >> 12 ^ i >> 20);
}

int main(void)
{
	size_t size = MIB;
	unsigned char *block = malloc(size);

	CHECK(block);
	mark(block, 0, size);
	while (size < GIB) {
		size_t bigger = size + size / 2;

		block = realloc(block, bigger);
		if (!block)
			FAIL("realloc to %zu failed", bigger);
		mark(block, (size + 4095) / 4096 * 4096, bigger);
		size = bigger;
	}
	for (size_t i = 0; i < size; i += 4096)
		if (block[i] != (unsigned char)(i >> 12 ^ i >> 20))
			FAIL("byte %zu lost while growing", i);
	long peak = status_kb("VmHWM:");

	if (peak > (long)(size / KIB + size / KIB / 4))
		FAIL("peak of %ld kB for a buffer of %zu kB", peak, size / KIB);
	block = realloc(block, 10 * MIB); /* shrinking gives the rest back */
	CHECK(block);
	for (size_t i = 0; i < 10 * MIB; i += 4096)
		CHECK(block[i] == (unsigned char)(i >> 12 ^ i >> 20));
	long after = status_kb("VmRSS:");

	if (after > 400 * 1024)
		FAIL("%ld kB resident after shrinking to 10 MiB", after);
	free(block);
	return pass();
}
