/* A program with a userfaultfd of its own: its pages are served by it, whatever else watches
 * memory. */
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "victim.h"

enum { PAGES = 256, PAGE = 4096 };

static int fd;
static char *range;

static void *serve(void *arg)
{
	static char page[PAGE] __attribute__((aligned(4096)));

	(void)arg;
	for (int i = 0; i < PAGES; i++) {
		struct uffd_msg message;

		CHECK(read(fd, &message, sizeof(message)) == sizeof(message));
		CHECK(message.event == UFFD_EVENT_PAGEFAULT);
		size_t at = (size_t)(message.arg.pagefault.address - (uintptr_t)range) / PAGE;

		memset(page, (int)at + 1, sizeof(page));
		struct uffdio_copy copy = {
			.dst = (uintptr_t)range + at * PAGE, .src = (uintptr_t)page, .len = PAGE};

		CHECK(!ioctl(fd, UFFDIO_COPY, &copy));
		free(malloc(at * 100));
	}
	return NULL;
}

int main(void)
{
	struct uffdio_api api = {.api = UFFD_API};
	pthread_t thread;

	fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | 1 /* user mode only */);
	if (fd < 0)
		SKIP("no userfaultfd here, errno %d", errno);
	CHECK(!ioctl(fd, UFFDIO_API, &api));
	exercise_heap(1, 2000);
	range = mmap(
		NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct uffdio_register wanted = {
		.range = {(uintptr_t)range, PAGES * PAGE}, .mode = UFFDIO_REGISTER_MODE_MISSING};

	CHECK(range != MAP_FAILED && !ioctl(fd, UFFDIO_REGISTER, &wanted));
	CHECK(!pthread_create(&thread, NULL, serve, NULL));
	for (int i = 0; i < PAGES; i++) {
		int at = (i * 37) % PAGES;

		if (range[at * PAGE + 9] != (char)(at + 1))
			FAIL("page %d was not served by the program", at);
	}
	pthread_join(thread, NULL);
	CHECK(!munmap(range, PAGES * PAGE));
	return pass();
}
