/*
 * Started without descriptors 0, 1 and 2 ("none"): the first file that the program opens gets 0.
 * With garbage for numalift in the environment and a standard error that nobody reads: "broken" (a
 * write raises SIGPIPE) and "full" (a write waits forever). Reports go to descriptor 500.
 */
#include "victim.h"

enum { REPORT = 500 };

static void start_again(const char *mode)
{
	int ends[2];

	CHECK(dup2(1, REPORT) == REPORT);
	CHECK(!setenv("NUMALIFT_PLACE", "garbage:!", 1) && !setenv("NUMALIFT_BATCH", "?", 1));
	if (!strcmp(mode, "none")) {
		for (int fd = 0; fd < 3; fd++)
			close(fd);
	} else {
		CHECK(!pipe(ends) && dup2(ends[1], 2) == 2);
		if (!strcmp(mode, "broken")) {
			close(ends[0]);
		} else {
			CHECK(!fcntl(2, F_SETFL, O_NONBLOCK));
			while (write(2, "0123456789abcdef", 16) > 0)
				;
			CHECK(!fcntl(2, F_SETFL, 0));
		}
	}
	execl("/proc/self/exe", "fd_closed", mode, "again", (char *)NULL);
	_exit(1);
}

int main(int argc, char **argv)
{
	if (argc < 3)
		start_again(argc > 1 ? argv[1] : "none");
	exercise_heap(1, 5000);
	if (!strcmp(argv[1], "none"))
		for (int fd = 0; fd < 3; fd++)
			if (open("/dev/null", O_RDWR) != fd) {
				dup2(REPORT, 1);
				FAIL("descriptor %d is in use at the start", fd);
			}
	exercise_heap(2, 5000);
	free(malloc(100 * MIB));
	dup2(REPORT, 1);
	return pass();
}
