/* The names that few programs use, looked up as a program that probes for them does. */
#include <dlfcn.h>
#include <malloc.h>

#include "victim.h"

int main(void)
{
	void (*old_free)(void *) = (void (*)(void *))dlsym(RTLD_DEFAULT, "cfree");
	void (*sized)(void *, size_t) = (void (*)(void *, size_t))dlsym(RTLD_DEFAULT, "free_sized");
	void (*aligned)(void *, size_t, size_t) =
		(void (*)(void *, size_t, size_t))dlsym(RTLD_DEFAULT, "free_aligned_sized");

	for (size_t size = 1; size < 4 * MIB; size = size * 2 + 3) {
		void *block = malloc(size);

		CHECK(block);
		if (old_free)
			old_free(block);
		else
			free(block);
		block = malloc(size);
		errno = ELOOP;
		if (sized)
			sized(block, size);
		else
			free(block);
		block = aligned_alloc(64, size * 64);
		if (aligned)
			aligned(block, 64, size * 64);
		else
			free(block);
		CHECK(errno == ELOOP);
	}
	if (sized)
		sized(NULL, 10);
	if (aligned)
		aligned(NULL, 16, 10);

	/* malloc found by name is the malloc that is linked: blocks can be mixed */
	void *(*by_name)(size_t) = (void *(*)(size_t))dlsym(RTLD_DEFAULT, "malloc");
	void *(*next)(size_t) = (void *(*)(size_t))dlsym(RTLD_NEXT, "malloc");

	CHECK(by_name && next);
	free(by_name(100));
	free(realloc(by_name(100), 10000));
	free(next(100));

	CHECK(mallopt(M_MMAP_THRESHOLD, 1 << 20) == 1);
	CHECK(mallopt(M_TRIM_THRESHOLD, 1 << 20) == 1);
	CHECK(mallopt(M_ARENA_MAX, 1) == 1);
	CHECK(mallopt(M_TOP_PAD, 0) == 1);
	int trimmed = malloc_trim(0);

	CHECK(trimmed == 0 || trimmed == 1);
	return pass();
}
