/* Brings its own malloc, as programs do that are linked with an allocator's archive. */
#include <stddef.h>
#include <stdlib.h>

static _Alignas(16) char pool[1 << 20];
static size_t used;

void *malloc(size_t n)
{
	void *p = pool + used;

	n = (n + 15) & ~(size_t)15;
	if (n > sizeof(pool) - used)
		return NULL;
	used += n;
	return p;
}

void free(void *p)
{
	(void)p;
}

int main(void)
{
	return malloc(1) == NULL;
}
