/* A plug-in for victims that load it in some unusual way: makes and drops blocks by what it binds
 * to. */
#include <stdlib.h>
#include <string.h>

void *plug_make(size_t size);
void *plug_make_aligned(size_t align, size_t size);
void *plug_resize(void *block, size_t size);
char *plug_text(const char *text);
void plug_drop(void *block);

void *plug_make(size_t size)
{
	void *block = malloc(size);

	return block ? memset(block, 0x3c, size) : NULL;
}

void *plug_make_aligned(size_t align, size_t size)
{
	void *block = NULL;

	return posix_memalign(&block, align, size) ? NULL : memset(block, 0x3c, size);
}

void *plug_resize(void *block, size_t size)
{
	return realloc(block, size);
}

char *plug_text(const char *text)
{
	return strdup(text);
}

void plug_drop(void *block)
{
	free(block);
}
