/* The kernel reads and writes heap blocks as any other memory: direct I/O, vmsplice, other
 * processes. */
#include <pthread.h>
#include <sys/mman.h>
#include <sys/uio.h>

#include "victim.h"

static void direct(void)
{
	char name[] = "/var/tmp/victim-io-XXXXXX";
	int fd = mkstemp(name);

	if (fd < 0)
		return;
	CHECK(!unlink(name));
	for (size_t size = 4096; size <= 4 * MIB; size *= 4) {
		unsigned char *out = aligned_alloc(4096, size);
		unsigned char *in = aligned_alloc(4096, size);

		CHECK(out && in);
		for (size_t i = 0; i < size; i++)
			out[i] = (unsigned char)(i * 7 >> 3);
		(void)fcntl(fd, F_SETFL, O_DIRECT); /* not on every file system */
		if (pwrite(fd, out, size, 0) != (ssize_t)size ||
			pread(fd, in, size, 0) != (ssize_t)size)
			FAIL("I/O on a heap block of %zu: errno %d", size, errno);
		CHECK(!memcmp(out, in, size));
		free(out);
		free(in);
	}
	close(fd);
}

static void across(void)
{
	const size_t size = 3 * MIB;
	char *block = malloc(size);
	char *copy = malloc(size);

	CHECK(block && copy);
	memset(block, 'x', size);
	pid_t child = fork();

	if (!child) {
		struct iovec mine = {copy, size};
		struct iovec theirs = {block, size};
		ssize_t got = process_vm_readv(getppid(), &mine, 1, &theirs, 1, 0);

		if (got < 0 && (errno == EPERM || errno == ENOSYS))
			_exit(0);
		_exit(got != (ssize_t)size || memcmp(copy, block, size) != 0);
	}
	expect_child_ok(child, "process_vm_readv");
	free(block);
	free(copy);
}

static void splice_out(void)
{
	int ends[2];

	CHECK(!pipe(ends));
	for (int i = 0; i < 100; i++) {
		char *block = aligned_alloc(4096, 8192);
		struct iovec part = {block, 8192};
		char back[8192];

		CHECK(block);
		memset(block, i, 8192);
		CHECK(vmsplice(ends[1], &part, 1, 0) == 8192);
		CHECK(read(ends[0], back, 8192) == 8192 && back[0] == i && back[8191] == i);
		free(block);
	}
	close(ends[0]);
	close(ends[1]);
}

static void shared_mutex(void)
{
	struct shared {
		pthread_mutex_t lock;
		long count;
	} *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pthread_mutexattr_t attributes;
	pid_t child[4];

	CHECK(shared != MAP_FAILED && !pthread_mutexattr_init(&attributes));
	CHECK(!pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED));
	CHECK(!pthread_mutex_init(&shared->lock, &attributes));
	for (int c = 0; c < 4; c++) {
		child[c] = fork();
		if (!child[c]) {
			for (int i = 0; i < 5000; i++) {
				pthread_mutex_lock(&shared->lock);
				shared->count++;
				pthread_mutex_unlock(&shared->lock);
				free(malloc((size_t)i));
			}
			_exit(0);
		}
	}
	for (int c = 0; c < 4; c++)
		expect_child_ok(child[c], "a mutex in shared memory");
	CHECK(shared->count == 20000);
}

int main(void)
{
	direct();
	across();
	splice_out();
	shared_mutex();
	return pass();
}
