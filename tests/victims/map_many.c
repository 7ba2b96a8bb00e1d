/* 50,000 small mappings beside a growing heap; each keeps its content and all can be given back. */
#include <sys/mman.h>

#include "victim.h"

enum { MAPS = 50000, PAGE = 4096 };

static char *mapping[MAPS];

int main(void)
{
	static char *block[1000];
	int made = 0;

	for (; made < MAPS; made++) {
		int prot = made % 2 ? PROT_READ | PROT_WRITE : PROT_READ | PROT_WRITE | PROT_EXEC;
		char *page = mmap(NULL, PAGE, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (page == MAP_FAILED && made == 0)
			SKIP("no writable and executable memory here");
		if (page == MAP_FAILED)
			FAIL("mapping %d failed, errno %d", made, errno);
		page[1] = (char)made;
		mapping[made] = page;
		if (made % 50 == 0) {
			block[made / 50] = malloc((size_t)made * 3 + 1);
			CHECK(block[made / 50]);
			block[made / 50][(size_t)made * 3] = 'b';
		}
	}
	for (int i = 0; i < made; i++) {
		if (mapping[i][1] != (char)i)
			FAIL("mapping %d lost its content", i);
		CHECK(!munmap(mapping[i], PAGE));
	}
	for (int i = 0; i < 1000; i++) {
		CHECK(block[i][(size_t)i * 150] == 'b');
		free(block[i]);
	}
	exercise_heap(1, 5000);
	return pass();
}
