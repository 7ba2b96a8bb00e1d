/* Sizes that cannot be served or that wrap: NULL with ENOMEM from every entry point, never a small
 * block. */
#include <malloc.h>

#include "victim.h"

#define REFUSED(call)                                                                              \
	do {                                                                                       \
		errno = 0;                                                                         \
		void *volatile got_ = (call);                                                      \
		if (got_)                                                                          \
			FAIL("%s gave %p", #call, got_);                                           \
		if (errno != ENOMEM)                                                               \
			FAIL("%s left errno at %d", #call, errno);                                 \
	} while (0)

int main(void)
{
	volatile size_t huge[] = {SIZE_MAX, SIZE_MAX - 1, SIZE_MAX - 15, SIZE_MAX - 4095,
		SIZE_MAX - 65536, (size_t)PTRDIFF_MAX + 1, (size_t)PTRDIFF_MAX, (size_t)1 << 62};
	volatile size_t half = (size_t)1 << 32;
	volatile size_t wide[] = {(size_t)1 << 62, (size_t)1 << 46};
	volatile size_t none = 0;
	char *kept = malloc(100);

	CHECK(kept);
	memset(kept, 7, 100);
	for (size_t i = 0; i < sizeof(huge) / sizeof(huge[0]); i++) {
		REFUSED(malloc(huge[i]));
		REFUSED(calloc(1, huge[i]));
		REFUSED(calloc(huge[i], 1));
		REFUSED(realloc(NULL, huge[i]));
		REFUSED(realloc(kept, huge[i]));
		REFUSED(reallocarray(NULL, 1, huge[i]));
		REFUSED(reallocarray(kept, huge[i], 1));
		REFUSED(memalign(64, huge[i]));
		REFUSED(memalign(8192, huge[i]));
		REFUSED(aligned_alloc(4096, huge[i]));
		REFUSED(aligned_alloc(2 * MIB, huge[i]));
		REFUSED(valloc(huge[i]));
		REFUSED(pvalloc(huge[i]));
	}
	REFUSED(calloc(half, half));
	REFUSED(calloc(half + 1, half));
	REFUSED(calloc(SIZE_MAX / 2 + 1, 2));
	REFUSED(calloc(SIZE_MAX / 16 + 2, 16));
	REFUSED(calloc(3, SIZE_MAX / 3 + 1));
	REFUSED(reallocarray(NULL, half, half));
	REFUSED(reallocarray(kept, half, half));
	REFUSED(reallocarray(kept, SIZE_MAX / 8 + 3, 8));
	/* an alignment so large that size + alignment wraps */
	REFUSED(memalign(wide[0], (size_t)3 << 61));
	REFUSED(aligned_alloc(wide[1], PTRDIFF_MAX - 64));
	for (int i = 0; i < 100; i++)
		CHECK(kept[i] == 7);
	kept = realloc(kept, 200);
	CHECK(kept && kept[99] == 7);
	free(kept);
	CHECK(calloc(none, SIZE_MAX));
	CHECK(malloc_usable_size(kept = calloc(1, 1)) >= 1);
	free(kept);
	return pass();
}
