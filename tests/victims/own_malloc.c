/* A program with an allocator of its own: all of the family, and libc's calls go to it too. */
#include "victim.h"

void *malloc(size_t size);
void *calloc(size_t count, size_t size);
void *realloc(void *block, size_t size);
void free(void *block);

static char pool[16 << 20] __attribute__((aligned(16)));
static size_t used;
static long calls;

static void check_ours(const void *block)
{
	if ((const char *)block < pool || (const char *)block >= pool + sizeof(pool))
		FAIL("%p is not from the program's own allocator", block);
}

void *malloc(size_t size)
{
	size_t want = (size + 31) / 16 * 16;
	size_t at = __atomic_fetch_add(&used, want, __ATOMIC_RELAXED);

	calls++;
	if (size > sizeof(pool) || at + want > sizeof(pool)) {
		errno = ENOMEM;
		return NULL;
	}
	*(size_t *)(void *)(pool + at) = size;
	return pool + at + 16;
}

void *calloc(size_t count, size_t size)
{
	return malloc(count * size); /* the pool is zero and never used twice */
}

void *realloc(void *block, size_t size)
{
	void *next = malloc(size);

	if (block && next) {
		check_ours(block);
		size_t old = *(size_t *)(void *)((char *)block - 16);

		memcpy(next, block, old < size ? old : size);
	}
	return next;
}

void free(void *block)
{
	if (block)
		check_ours(block);
	calls++;
}

int main(void)
{
	char *text = NULL;
	size_t size = 0;
	FILE *stream;

	for (int i = 0; i < 100; i++) {
		char *block = malloc((size_t)i * 50);

		check_ours(block);
		block = realloc(block, (size_t)i * 80 + 1);
		check_ours(block);
		free(block);
	}
	long before = calls;

	check_ours(text = strdup("text"));
	free(text);
	CHECK(asprintf(&text, "%d", 5) == 1);
	check_ours(text);
	free(text);
	stream = open_memstream(&text, &size);
	CHECK(stream && fputs("some words", stream) >= 0 && !fclose(stream));
	check_ours(text);
	free(text);
	CHECK(calls > before + 5);
	return pass();
}
