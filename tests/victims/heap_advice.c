/* Programs advise on pages of their own heap blocks: DONTFORK, DONTNEED, FREE, huge pages, locks.
 */
#include <sys/mman.h>

#include "victim.h"

enum { BLOCKS = 120, PAGE = 4096 };

int main(void)
{
	static unsigned char *block[BLOCKS];
	static char *small[BLOCKS];

	for (int i = 0; i < BLOCKS; i++) {
		size_t length = (size_t)(i % 9 + 1) * PAGE;

		block[i] = aligned_alloc(PAGE, length);
		small[i] = malloc((size_t)i + 40);
		CHECK(block[i] && small[i]);
		memset(block[i], i, length);
		memset(small[i], i, 40);
		if (i % 3 == 0)
			CHECK(!madvise(block[i], length, MADV_DONTFORK));
	}
	pid_t child = fork();

	if (!child) {
		for (int i = 0; i < BLOCKS; i++) {
			CHECK(small[i][39] == (char)i && (i % 3 == 0 || block[i][1] == i));
			free(small[i]);
			if (i % 3)
				free(block[i]);
		}
		exercise_heap(1, 3000);
		_exit(0);
	}
	expect_child_ok(child, "a child without the DONTFORK pages");
	for (int i = 0; i < BLOCKS; i++) {
		size_t length = (size_t)(i % 9 + 1) * PAGE;

		if (i % 3 == 0)
			CHECK(!madvise(block[i], length, MADV_DOFORK));
		CHECK(!madvise(block[i], length, MADV_DONTNEED));
		CHECK(block[i][0] == 0 && block[i][length - 1] == 0);
		memset(block[i], 7, length);
		CHECK(!madvise(block[i], length, MADV_FREE));
		block[i][length - 1] = 8;
		(void)madvise(block[i], length, MADV_HUGEPAGE);
		(void)madvise(block[i], length, MADV_MERGEABLE);
		if (!mlock(block[i], length))
			CHECK(!munlock(block[i], length));
		block[i] = realloc(block[i], length * 4);
		CHECK(block[i] && block[i][length - 1] == 8);
		free(block[i]);
		free(small[i]);
	}
	return pass();
}
