/*
 * Descriptors are the program's: the first one it opens has the lowest free number, all can be
 * closed or replaced at any time, and none that it did not open is ever there.
 */
#include <sys/mman.h>
#include <sys/stat.h>

#include "victim.h"

static int open_count(void)
{
	int count = 0;

	for (int fd = 0; fd < 4096; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

static void check_file(int fd, off_t size, const char *when)
{
	struct stat now;

	if (fstat(fd, &now) || !S_ISREG(now.st_mode) || now.st_size != size)
		FAIL("%s: the program's file was closed or written to", when);
}

static int own_file(void)
{
	int fd = memfd_create("own", 0);

	if (fd < 0 || write(fd, "0123456789", 10) != 10)
		FAIL("cannot make a file, errno %d", errno);
	return fd;
}

int main(void)
{
	int at_start = open_count();
	int first = open("/dev/null", O_RDWR);

	if (at_start != 3 || first != 3)
		FAIL("%d open descriptors at start, the first own one is %d", at_start, first);
	exercise_heap(1, 5000);
	free(malloc(200 * MIB));
	CHECK(open_count() == 4);

	int file = own_file();

	CHECK(file == 4);
	for (int fd = 5; fd < 1000; fd++) /* over everything there may be */
		CHECK(dup2(file, fd) == fd);
	exercise_heap(2, 5000);
	check_file(file, 10, "after dup2 over all");
	CHECK(open_count() == 1000);
	closefrom(5);
	exercise_heap(3, 5000);
	CHECK(open_count() == 5);
	CHECK(!close_range(3, ~0U, 0));
	exercise_heap(4, 5000);
	CHECK(open_count() == 3);
	file = own_file();
	CHECK(file == 3);
	pid_t child = fork();

	if (!child) {
		exercise_heap(5, 5000);
		free(malloc(100 * MIB));
		_exit(open_count() != 4);
	}
	expect_child_ok(child, "descriptors in a child");
	check_file(file, 10, "after a fork");
	for (int fd = 3; fd < 1024; fd++)
		close(fd);
	CHECK(open("/dev/null", O_RDONLY) == 3);
	close(3);
	close(0);
	close(2); /* what is opened next gets these numbers, and nobody may write to them */
	CHECK(own_file() == 0 && own_file() == 2);
	exercise_heap(6, 5000);
	free(malloc(300 * MIB));
	check_file(0, 10, "at number 0");
	check_file(2, 10, "at number 2");
	return pass();
}
