/* errno survives every call that succeeds, and every free, also one that gives memory back to the
 * system. */
#include <malloc.h>

#include "victim.h"

static const size_t sizes[] = {1, 40, 5000, 100000, 3 * MIB, 40 * MIB, 300 * MIB};

#define KEEPS(call)                                                                                \
	do {                                                                                       \
		errno = ELOOP;                                                                     \
		call;                                                                              \
		if (errno != ELOOP)                                                                \
			FAIL("%s changed errno to %d (size %zu)", #call, errno, size);             \
	} while (0)

int main(void)
{
	for (int round = 0; round < 3; round++)
		for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
			size_t size = sizes[i];
			char *a = NULL;
			char *b = NULL;
			char *c = NULL;
			void *d = NULL;

			KEEPS(a = malloc(size));
			KEEPS(b = calloc(2, size / 2 + 1));
			KEEPS(c = memalign(256, size));
			KEEPS(CHECK(posix_memalign(&d, 4096, size) == 0));
			CHECK(a && b && c && d);
			a[size - 1] = b[size - 1] = c[size - 1] = 1;
			KEEPS(a = realloc(a, size * 2));
			KEEPS(b = realloc(b, size / 2 + 1));
			CHECK(a && b && a[size - 1] == 1);
			KEEPS((void)malloc_usable_size(a));
			KEEPS(free(a));
			KEEPS(free(b));
			KEEPS(free(c));
			KEEPS(free(d));
			KEEPS(free(NULL));
			KEEPS(malloc_trim(0));
		}
	return pass();
}
