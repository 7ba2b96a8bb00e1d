/* Requests for nothing: distinct blocks that can be freed, grown, and asked for their size. */
#include <malloc.h>

#include "victim.h"

int main(void)
{
	enum { EACH = 50, KINDS = 8 };
	void *block[EACH * KINDS];
	int count = 0;

	for (int i = 0; i < EACH; i++) {
		block[count++] = malloc(0);
		block[count++] = calloc(0, 7);
		block[count++] = calloc(7, 0);
		block[count++] = realloc(NULL, 0);
		block[count++] = reallocarray(NULL, 0, 9);
		block[count++] = memalign(64, 0);
		block[count++] = aligned_alloc(32, 0);
		block[count++] = valloc(0);
	}
	for (int i = 0; i < count; i++) {
		if (!block[i])
			FAIL("kind %d gave NULL", i % KINDS);
		if ((uintptr_t)block[i] % 16)
			FAIL("kind %d gave %p", i % KINDS, block[i]);
		for (int k = 0; k < i; k++)
			if (block[k] == block[i])
				FAIL("kinds %d and %d gave the same block", i % KINDS, k % KINDS);
	}
	for (int i = 0; i < count; i++) {
		memset(block[i], 0x11, malloc_usable_size(block[i]));
		if (i % 2) {
			block[i] = realloc(block[i], 500);
			CHECK(block[i]);
			memset(block[i], 0x22, 500);
		}
		free(block[i]);
	}
	free(NULL);
	CHECK(malloc_usable_size(NULL) == 0);

	/* realloc(p, 0) frees: glibc gives NULL and keeps errno; nothing may be lost either way */
	long before = status_kb("VmRSS:");

	for (int i = 0; i < 300000; i++) {
		char *some = malloc(3000);

		CHECK(some);
		some[0] = 1;
		errno = 0;
		some = realloc(some, 0);
		CHECK(errno == 0);
		free(some);
	}
	if (status_kb("VmRSS:") > before + 20000)
		FAIL("realloc(p, 0) leaks: %ld kB more", status_kb("VmRSS:") - before);
	return pass();
}
