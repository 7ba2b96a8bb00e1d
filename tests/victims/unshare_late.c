/* Name spaces late in life: what a single-threaded program may do it may still do after a busy
 * heap. */
#include <sched.h>

#include "victim.h"

static void try_kind(int flags, const char *name)
{
	pid_t child = fork();

	if (!child) {
		exercise_heap(2, 500);
		if (unshare(flags)) {
			if (errno == EPERM || errno == ENOSPC || errno == ENOSYS)
				SKIP("unshare(%s) is not allowed here", name);
			FAIL("unshare(%s): errno %d", name, errno);
		}
		exercise_heap(3, 500);
		pid_t grandchild = fork();

		if (!grandchild) {
			exercise_heap(4, 500);
			_exit(0);
		}
		expect_child_ok(grandchild, name);
		_exit(0);
	}
	expect_child_ok(child, name);
}

int main(void)
{
	char *large = malloc(200 * MIB);

	memset(large, 1, 200 * MIB);
	exercise_heap(1, 20000);
	try_kind(CLONE_NEWUSER, "user");
	try_kind(CLONE_NEWNS, "mount");
	try_kind(CLONE_NEWPID, "pid");
	try_kind(CLONE_FS | CLONE_FILES, "fs and files");
	int home = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);

	if (home >= 0 && !unshare(CLONE_NEWNS)) {
		exercise_heap(5, 500);
		CHECK(!setns(home, CLONE_NEWNS));
		exercise_heap(6, 500);
	}
	if (unshare(CLONE_NEWUSER) && errno == EINVAL) /* the process itself, not a fresh child */
		FAIL("the process is not single-threaded any more");
	free(large);
	return pass();
}
