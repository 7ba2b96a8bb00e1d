/* SECCOMP_MODE_STRICT: after a warm-up, small blocks come and go without any system call. */
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "victim.h"

static void small_blocks(void)
{
	static char *block[500];

	for (int i = 0; i < 20000; i++) {
		char **place = &block[i % 500];

		free(*place);
		*place = malloc((size_t)(i * 7) % 500 + 1);
		CHECK(*place);
		**place = 1;
	}
	for (int i = 0; i < 500; i++) {
		free(block[i]);
		block[i] = NULL;
	}
}

int main(void)
{
	small_blocks();
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT, 0, 0, 0))
		SKIP("no strict seccomp here, errno %d", errno);
	small_blocks();
	pass();
	syscall(SYS_exit, 0); /* exit_group is not allowed */
	return 1;
}
