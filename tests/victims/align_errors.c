/* What is no power of two: EINVAL or glibc's rounding; *out stays as it was; errno is not touched.
 */
#include <malloc.h>

#include "victim.h"

int main(void)
{
	static const volatile size_t refused[] = {
		0, 1, 2, 4, 5, 9, 24, 96, 4095, SIZE_MAX, SIZE_MAX / 2, ((size_t)1 << 63) + 8};
	void *const mark = &(char){0};

	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		void *out = mark;

		errno = EXDEV;
		int got = posix_memalign(&out, refused[i], 100);

		if (got != EINVAL || out != mark || errno != EXDEV)
			FAIL("posix_memalign(%zu) gave %d, errno %d, out %s", refused[i], got,
				errno, out == mark ? "kept" : "changed");
	}
	for (size_t align = 8; align <= 4096; align *= 8) {
		void *out = mark;

		errno = EXDEV;
		int got = posix_memalign(&out, align, (size_t)PTRDIFF_MAX);

		if (got != ENOMEM || out != mark)
			FAIL("posix_memalign(%zu, PTRDIFF_MAX) gave %d", align, got);
	}
	/* glibc's memalign rounds an odd alignment up to the next power of two */
	static const volatile size_t odd[] = {0, 1, 3, 24, 48, 100, 1000, 5000};

	for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
		void *block = memalign(odd[i], 200);

		if (!block)
			FAIL("memalign(%zu, 200) gave NULL, errno %d", odd[i], errno);
		size_t next = 16;

		while (next < odd[i])
			next *= 2;
		if ((uintptr_t)block % next)
			FAIL("memalign(%zu) gave %p, not aligned to %zu", odd[i], block, next);
		free(block);
	}
	static volatile size_t most[] = {SIZE_MAX / 2 + 2, SIZE_MAX};

	for (int i = 0; i < 2; i++) {
		errno = 0;
		CHECK(!memalign(most[i], 16) && errno == EINVAL);
	}
	return pass();
}
