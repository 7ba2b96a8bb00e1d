/* Another preload: counts the calls of the malloc family and passes them on to whoever comes next.
 */
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>

unsigned long pre_count_calls(void);
void *malloc(size_t size);
void *calloc(size_t count, size_t size);
void *realloc(void *block, size_t size);
void free(void *block);

static unsigned long calls;
static char early[65536] __attribute__((aligned(16))); /* serves dlsym's own requests */
static size_t early_used;
static __thread volatile int looking; /* dlsym is declared not to call back; it does */

static void *next(const char *name)
{
	looking = 1;
	void *found = dlsym(RTLD_NEXT, name);

	looking = 0;
	return found;
}

static void *early_block(size_t size)
{
	void *block = early + early_used;

	early_used += (size + 15) / 16 * 16;
	return early_used <= sizeof(early) ? block : NULL;
}

static int is_early(const void *block)
{
	return (uintptr_t)block - (uintptr_t)early < sizeof(early);
}

unsigned long pre_count_calls(void)
{
	return __atomic_load_n(&calls, __ATOMIC_RELAXED);
}

void *malloc(size_t size)
{
	static void *(*real)(size_t);

	if (looking)
		return early_block(size);
	if (!real)
		real = (void *(*)(size_t))next("malloc");
	__atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED);
	return real(size);
}

void *calloc(size_t count, size_t size)
{
	static void *(*real)(size_t, size_t);

	if (looking)
		return early_block(count * size);
	if (!real)
		real = (void *(*)(size_t, size_t))next("calloc");
	__atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED);
	return real(count, size);
}

void *realloc(void *block, size_t size)
{
	static void *(*real)(void *, size_t);

	if (!real)
		real = (void *(*)(void *, size_t))next("realloc");
	__atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED);
	return real(is_early(block) ? NULL : block, size);
}

void free(void *block)
{
	static void (*real)(void *);

	if (looking || is_early(block)) /* what dlsym drops while it looks is lost */
		return;
	if (!real)
		real = (void (*)(void *))next("free");
	__atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED);
	real(block);
}
