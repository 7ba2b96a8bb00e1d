/* Loads a library in the middle of its life, which may refuse, and goes on as before. Argument: its
 * path. */
#include <dlfcn.h>
#include <malloc.h>

#include "victim.h"

int main(int argc, char **argv)
{
	enum { BLOCKS = 300 };
	static char *block[BLOCKS];

	for (int i = 0; i < BLOCKS; i++) {
		block[i] = malloc((size_t)i * i + 1);
		CHECK(block[i]);
	}
	for (int round = 0; round < 3; round++) {
		void *late =
			argc > 1 ? dlopen(argv[1], round == 1 ? RTLD_LAZY | RTLD_GLOBAL : RTLD_NOW)
				 : NULL;

		exercise_heap((unsigned)round, 1000);
		for (int i = round; i < BLOCKS; i += 3) {
			block[i] = realloc(block[i], (size_t)i * 100 + 1);
			CHECK(block[i] && malloc_usable_size(block[i]) > (size_t)i * 100);
		}
		if (late)
			CHECK(!dlclose(late));
	}
	for (int i = 0; i < BLOCKS; i++)
		free(block[i]);
	exercise_heap(9, 1000);
	return pass();
}
