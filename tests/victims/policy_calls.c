/* Memory policies that the program sets by system call are exactly as set, now and after heap use.
 */
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "victim.h"

enum { DEFAULT = 0, PREFERRED = 1, BIND = 2, INTERLEAVE = 3, LOCAL = 4, BITS = 1024 };

static unsigned long node0[BITS / 64] = {1};

static int policy_at(void *address)
{
	unsigned long nodes[BITS / 64] = {0};
	int mode = -1;

	if (syscall(SYS_get_mempolicy, &mode, nodes, (unsigned long)BITS, address,
		    address ? 2UL /* MPOL_F_ADDR */ : 0UL))
		return -errno;
	return mode;
}

static int set_thread(int mode)
{
	return (int)syscall(SYS_set_mempolicy, mode,
		mode == DEFAULT || mode == LOCAL ? NULL : node0, (unsigned long)BITS);
}

static int set_range(void *start, size_t length, int mode)
{
	return (int)syscall(SYS_mbind, start, length, mode, mode == DEFAULT ? NULL : node0,
		(unsigned long)BITS, 0UL);
}

static void *in_thread(void *arg)
{
	exercise_heap(4, 2000);
	if (policy_at(NULL) != (int)(intptr_t)arg)
		FAIL("a new thread has policy %d, not %d", policy_at(NULL), (int)(intptr_t)arg);
	return NULL;
}

int main(void)
{
	static const int modes[] = {BIND, INTERLEAVE, PREFERRED, LOCAL, DEFAULT};
	const size_t length = 16 * MIB;
	pthread_t thread;

	exercise_heap(1, 3000);
	if (policy_at(NULL) < 0)
		SKIP("no memory policies here, errno %d", -policy_at(NULL));
	if (policy_at(NULL) != DEFAULT)
		FAIL("the program starts with policy %d", policy_at(NULL));
	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		CHECK(!set_thread(modes[i]));
		exercise_heap(2, 2000);
		free(malloc(100 * MIB));
		if (policy_at(NULL) != modes[i])
			FAIL("own policy %d became %d", modes[i], policy_at(NULL));
		CHECK(!pthread_create(&thread, NULL, in_thread, (void *)(intptr_t)modes[i]));
		pthread_join(thread, NULL);
		pid_t child = fork();

		if (!child) {
			exercise_heap(3, 500);
			_exit(policy_at(NULL) != modes[i]);
		}
		expect_child_ok(child, "the policy in a child");
		for (int shared = 0; shared < 2; shared++) {
			char *range = mmap(NULL, length, PROT_READ | PROT_WRITE,
				MAP_ANONYMOUS | (shared ? MAP_SHARED : MAP_PRIVATE), -1, 0);

			CHECK(range != MAP_FAILED);
			CHECK(!set_range(range + MIB, MIB, INTERLEAVE));
			CHECK(!set_range(range + 2 * MIB, MIB, BIND));
			memset(range, 1, length);
			exercise_heap(4, 500);
			CHECK(!madvise(range + MIB, 2 * MIB, MADV_DONTNEED));
			CHECK(!mprotect(range + MIB, 4096, PROT_READ));
			CHECK(!mprotect(range + MIB, 4096, PROT_READ | PROT_WRITE));
			if (policy_at(range + MIB) != INTERLEAVE ||
				policy_at(range + 2 * MIB - 1) != INTERLEAVE ||
				policy_at(range + 2 * MIB) != BIND)
				FAIL("ranges have policies %d and %d, not 3 and 2",
					policy_at(range + MIB), policy_at(range + 2 * MIB));
			CHECK(!set_range(range + MIB, MIB, DEFAULT));
			munmap(range, length);
		}
	}
	errno = 0;
	CHECK(syscall(SYS_mbind, (void *)1, 4096UL, BIND, node0, (unsigned long)BITS, 0UL) == -1);
	CHECK(errno == EINVAL && set_thread(77) == -1 && errno == EINVAL);
	return pass();
}
