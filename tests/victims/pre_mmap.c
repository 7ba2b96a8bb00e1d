/* Another preload: sees every mmap and munmap and allocates while it notes them. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

unsigned long pre_mmap_calls(void);

static unsigned long calls;
static __thread int inside;

static void note(void)
{
	calls++;
	if (inside)
		return;
	inside = 1;
	char *line = malloc(300 + calls % 5000);

	if (line)
		memset(line, 'm', 300);
	line = realloc(line, 9000);
	free(line);
	inside = 0;
}

unsigned long pre_mmap_calls(void)
{
	return calls;
}

void *mmap(void *address, size_t length, int prot, int flags, int fd, off_t offset)
{
	static void *(*real)(void *, size_t, int, int, int, off_t);

	if (!real)
		real = (void *(*)(void *, size_t, int, int, int, off_t))dlsym(RTLD_NEXT, "mmap");
	note();
	return real(address, length, prot, flags, fd, offset);
}

int munmap(void *address, size_t length)
{
	static int (*real)(void *, size_t);

	if (!real)
		real = (int (*)(void *, size_t))dlsym(RTLD_NEXT, "munmap");
	note();
	return real(address, length);
}
