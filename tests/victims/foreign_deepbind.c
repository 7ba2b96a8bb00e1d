/*
 * A plug-in loaded with RTLD_DEEPBIND gets libc's own allocator. "take": its blocks are sized,
 * resized and freed by the program. "give": it frees and resizes the program's blocks.
 */
#include <malloc.h>

#include "plug.h"

static const size_t sizes[] = {1, 24, 500, 1032, 6000, 70000, 200000, 5000000};
enum { COUNT = sizeof(sizes) / sizeof(sizes[0]) };

static void take(const struct plug *plug)
{
	for (int round = 0; round < 300; round++)
		for (int i = 0; i < COUNT - (round > 3); i++) {
			unsigned char *block = plug->make(sizes[i]);

			CHECK(block && malloc_usable_size(block) >= sizes[i]);
			memset(block, 0x3c, malloc_usable_size(block));
			if (round % 3 == 1) {
				block = realloc(block, sizes[i] * 3 + 100);
				CHECK(block && block[0] == 0x3c && block[sizes[i] - 1] == 0x3c);
			} else if (round % 3 == 2) {
				block = reallocarray(block, 1, sizes[i] / 2 + 1);
				CHECK(block && block[sizes[i] / 2] == 0x3c);
			}
			errno = ELOOP;
			free(block);
			CHECK(errno == ELOOP);
			free(plug->make_aligned(8192, sizes[i]));
			free(plug->text("some text"));
			block = realloc(plug->make(sizes[i]), 0);
			free(block);
			plug->drop(plug->make(sizes[i]));
		}
}

static void give(const struct plug *plug)
{
	for (int round = 0; round < 300; round++)
		for (int i = 0; i < COUNT - (round > 3); i++) {
			unsigned char *block = malloc(sizes[i]);

			CHECK(block);
			memset(block, 9, sizes[i]);
			if (round % 2) {
				block = plug->resize(block, sizes[i] * 2 + 10);
				CHECK(block && block[0] == 9 && block[sizes[i] - 1] == 9);
			}
			plug->drop(block);
			plug->drop(strdup("text"));
			plug->drop(memalign(256, sizes[i]));
		}
}

int main(int argc, char **argv)
{
	struct plug plug = plug_of(dlopen(beside("plug_blocks.so"), RTLD_NOW | RTLD_DEEPBIND));

	if (argc > 1 && !strcmp(argv[1], "give"))
		give(&plug);
	else
		take(&plug);
	return pass();
}
