/* Mappings of files: private copies, shared writes, holes, growth, several views, what forks see.
 */
#include <sys/mman.h>
#include <sys/stat.h>

#include "victim.h"

enum { PAGE = 4096, PAGES = 600 };

static char *view(int fd, size_t length, int prot, int flags, off_t offset)
{
	char *map = mmap(NULL, length, prot, flags, fd, offset);

	if (map == MAP_FAILED)
		FAIL("mmap of a file: errno %d", errno);
	return map;
}

static void try_file(int fd)
{
	const size_t size = (size_t)PAGES * PAGE;
	const int rw = PROT_READ | PROT_WRITE;
	struct stat state;

	CHECK(!ftruncate(fd, (off_t)size));
	char *shared = view(fd, size, rw, MAP_SHARED, 0);
	char *private = view(fd, size, rw, MAP_PRIVATE, 0);
	char *late = view(fd, size - 100 * PAGE, PROT_READ, MAP_SHARED | MAP_POPULATE, 100 * PAGE);

	for (int i = 0; i < PAGES; i++)
		shared[i * PAGE] = (char)i;
	CHECK(private[7 * PAGE] == 7 && late[0] == 100 && late[50 * PAGE] == (char)150);
	private[7 * PAGE] = 99;
	CHECK(shared[7 * PAGE] == 7);
	shared[7 * PAGE] = 70;
	CHECK(private[7 * PAGE] == 99);
	CHECK(!madvise(private + 7 * PAGE, PAGE, MADV_DONTNEED) && private[7 * PAGE] == 70);
	char byte = 0;

	CHECK(!msync(shared, size, MS_SYNC) && pread(fd, &byte, 1, 200 * PAGE) == 1);
	CHECK(byte == (char)200 && pwrite(fd, "w", 1, 201 * PAGE) == 1 &&
		shared[201 * PAGE] == 'w');
	if (!fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 300 * PAGE, 10 * PAGE)) {
		CHECK(shared[300 * PAGE] == 0 && shared[309 * PAGE] == 0);
		CHECK(shared[310 * PAGE] == (char)310);
		shared[305 * PAGE] = 5;
	}
	CHECK(!fstat(fd, &state) && state.st_size == (off_t)size);
	CHECK(!ftruncate(fd, (off_t)size * 2));
	shared = mremap(shared, size, size * 2, MREMAP_MAYMOVE);
	CHECK(shared != MAP_FAILED && shared[199 * PAGE] == (char)199 && shared[size] == 0);
	pid_t child = fork();

	if (!child) {
		shared[size] = 'c';
		private[0] = 'c';
		exercise_heap(1, 200);
		_exit(0);
	}
	expect_child_ok(child, "a child with file mappings");
	CHECK(shared[size] == 'c' && private[0] == 0);
	CHECK(!munmap(shared, size * 2) && !munmap(private, size));
	CHECK(!munmap(late, size - 100 * PAGE));
}

int main(void)
{
	char name[] = "/tmp/victim-map-XXXXXX";
	int fd = mkstemp(name);

	CHECK(fd >= 0 && !unlink(name));
	try_file(fd);
	close(fd);
	fd = memfd_create("map", MFD_CLOEXEC);
	CHECK(fd >= 0);
	try_file(fd);
	close(fd);
	fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	char *image = view(fd, PAGE, PROT_READ, MAP_PRIVATE, 0);

	CHECK(!memcmp(image, "\177ELF", 4));
	char *zero = view(open("/dev/zero", O_RDWR | O_CLOEXEC), 10 * PAGE, PROT_READ | PROT_WRITE,
		MAP_PRIVATE, 0);

	zero[5] = 1;
	CHECK(!munmap(zero, 10 * PAGE));
	char *wipe = view(-1, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, 0);

	memset(wipe, 1, 4 * PAGE);
	if (!madvise(wipe, 2 * PAGE, MADV_WIPEONFORK)) {
		pid_t child = fork();

		if (!child)
			_exit(wipe[0] != 0 || wipe[2 * PAGE] != 1);
		expect_child_ok(child, "MADV_WIPEONFORK");
	}
	return pass();
}
