/* Under a small RLIMIT_NOFILE, from the start or set later (argument), all descriptors are the
 * program's. */
#include <sys/resource.h>

#include "victim.h"

int main(int argc, char **argv)
{
	struct rlimit limit;
	int count = 3;

	CHECK(!getrlimit(RLIMIT_NOFILE, &limit));
	if (argc > 1) {
		limit.rlim_cur = strtoul(argv[1], NULL, 10);
		CHECK(!setrlimit(RLIMIT_NOFILE, &limit));
	}
	exercise_heap(1, 5000);
	while (dup(1) >= 0)
		count++;
	CHECK(errno == EMFILE);
	if ((rlim_t)count != limit.rlim_cur)
		FAIL("%d of %ld descriptors can be used", count, (long)limit.rlim_cur);
	exercise_heap(2, 5000);
	free(malloc(100 * MIB));
	pid_t child = fork();

	if (!child) {
		exercise_heap(3, 2000);
		_exit(0);
	}
	expect_child_ok(child, "a fork without a free descriptor");
	return pass();
}
