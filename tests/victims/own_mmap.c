/* A program that defines mmap and munmap itself: its own are called for its own calls. */
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "victim.h"

static int calls;

void *mmap(void *address, size_t length, int prot, int flags, int fd, off_t offset)
{
	calls++;
	return (void *)syscall(SYS_mmap, address, length, prot, flags, fd, offset);
}

int munmap(void *address, size_t length)
{
	calls++;
	return (int)syscall(SYS_munmap, address, length);
}

static void *work(void *arg)
{
	exercise_heap((unsigned)(uintptr_t)arg, 3000);
	return NULL;
}

int main(void)
{
	pthread_t thread;
	int before = calls;

	for (uintptr_t i = 0; i < 50; i++) {
		char *map =
			mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		CHECK(map != MAP_FAILED);
		map[MIB - 1] = 1;
		CHECK(!munmap(map, MIB));
	}
	CHECK(calls >= before + 100);
	for (uintptr_t i = 0; i < 4; i++) {
		CHECK(!pthread_create(&thread, NULL, work, (void *)i));
		pthread_join(thread, NULL);
	}
	free(malloc(100 * MIB));
	return pass();
}
