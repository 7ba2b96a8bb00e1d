/* Blocks that a program takes from libc's own names, __libc_malloc and so on, end in free and
 * realloc. */
#include <dlfcn.h>
#include <malloc.h>

#include "victim.h"

int main(void)
{
	void *libc = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
	void *(*make)(size_t) = (void *(*)(size_t))dlsym(libc, "__libc_malloc");
	void *(*clear)(size_t, size_t) = (void *(*)(size_t, size_t))dlsym(libc, "__libc_calloc");
	void *(*align)(size_t, size_t) = (void *(*)(size_t, size_t))dlsym(libc, "__libc_memalign");
	void *(*plain)(size_t) = (void *(*)(size_t))dlsym(libc, "malloc");
	void (*drop)(void *) = (void (*)(void *))dlsym(libc, "__libc_free");

	if (!make || !clear || !align || !drop)
		SKIP("this libc has no such names");
	for (unsigned i = 1; i < 20000; i++) {
		size_t size = mixed_size(&(unsigned){i * 2654435761u}) / 4 + 1;
		char *block[4] = {make(size), clear(1, size), align(64, size), plain(size)};

		for (int k = 0; k < 4; k++) {
			CHECK(block[k] && malloc_usable_size(block[k]) >= size);
			block[k][size - 1] = 'l';
			if ((i + (unsigned)k) % 4 == 0) {
				block[k] = realloc(block[k], size * 2);
				CHECK(block[k] && block[k][size - 1] == 'l');
			}
			free(block[k]);
		}
		drop(make(size)); /* and what never leaves libc */
	}
	exercise_heap(1, 2000);
	return pass();
}
