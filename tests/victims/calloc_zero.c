/* calloc is zero although the memory was dirty before, in every size class and across threads. */
#include <pthread.h>

#include "victim.h"

static void *dirty_then_zero(void *arg)
{
	unsigned state = (unsigned)(uintptr_t)arg;

	for (int i = 0; i < 4000; i++) {
		size_t size = mixed_size(&state);
		unsigned char *dirty = malloc(size);

		CHECK(dirty);
		memset(dirty, 0xa5, size);
		free(dirty);
		unsigned char *clean = calloc(i % 2 ? size : 1, i % 2 ? 1 : size);

		CHECK(clean);
		for (size_t k = 0; k < size; k++)
			if (clean[k])
				FAIL("calloc of %zu has %#x at %zu", size, clean[k], k);
		memset(clean, 0x5a, size);
		free(clean);
	}
	return NULL;
}

int main(void)
{
	pthread_t thread[3];

	for (uintptr_t i = 0; i < 3; i++)
		CHECK(!pthread_create(&thread[i], NULL, dirty_then_zero, (void *)(i * 77 + 5)));
	for (int i = 0; i < 3; i++)
		pthread_join(thread[i], NULL);
	return pass();
}
