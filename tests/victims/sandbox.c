/*
 * A strict sandbox installed by the program after its start: every call that is not on a short list
 * kills the process. The heap, threads and forks must get by with what glibc's own need.
 * Modes: heap, large, threads, fork.
 */
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "victim.h"

static const unsigned allowed[] = {
	SYS_read,
	SYS_write,
	SYS_close,
	SYS_fstat,
	SYS_mmap,
	SYS_munmap,
	SYS_mprotect,
	SYS_mremap,
	SYS_brk,
	SYS_madvise,
	SYS_futex,
	SYS_exit,
	SYS_exit_group,
	SYS_rt_sigaction,
	SYS_rt_sigprocmask,
	SYS_rt_sigreturn,
	SYS_clone,
	SYS_set_robust_list,
	SYS_rseq,
	SYS_gettid,
	SYS_getpid,
	SYS_clock_gettime,
	SYS_clock_nanosleep,
	SYS_nanosleep,
	SYS_sched_yield,
	SYS_wait4,
	SYS_getrandom,
#ifdef SYS_clone3
	SYS_clone3,
#endif
};

static void lock_up(void)
{
	enum { COUNT = sizeof(allowed) / sizeof(allowed[0]) };
	struct sock_filter code[2 * COUNT + 2];
	struct sock_fprog program = {.len = 0, .filter = code};

	code[program.len++] = (struct sock_filter)BPF_STMT(
		BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
	for (int i = 0; i < COUNT; i++) {
		code[program.len++] =
			(struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, allowed[i], 0, 1);
		code[program.len++] =
			(struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	}
	code[program.len++] =
		(struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
		prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		SKIP("no seccomp filters here, errno %d", errno);
}

static void *work(void *arg)
{
	exercise_heap((unsigned)(uintptr_t)arg, 3000);
	return strdup("joined");
}

static void threads(void)
{
	pthread_t thread[4];
	void *text;

	for (int round = 0; round < 10; round++) {
		for (uintptr_t i = 0; i < 4; i++)
			CHECK(!pthread_create(&thread[i], NULL, work, (void *)i));
		for (int i = 0; i < 4; i++) {
			CHECK(!pthread_join(thread[i], &text));
			free(text);
		}
	}
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "heap";

	mallopt(M_ARENA_MAX, 1); /* glibc reads files for any other arena */
	lock_up();
	if (!strcmp(mode, "heap")) {
		exercise_heap(1, 100000);
	} else if (!strcmp(mode, "large")) {
		for (size_t size = MIB; size <= GIB; size *= 2) {
			char *block = calloc(1, size);

			CHECK(block);
			block[size - 1] = 1;
			block = realloc(block, size + size / 2);
			CHECK(block && block[size - 1] == 1);
			free(block);
			char *map = mmap(NULL, size, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

			CHECK(map != MAP_FAILED && !munmap(map, size));
		}
	} else if (!strcmp(mode, "threads")) {
		threads();
	} else {
		for (unsigned i = 0; i < 20; i++) {
			pid_t child = fork();

			if (!child) {
				exercise_heap(i, 1000);
				_exit(0);
			}
			expect_child_ok(child, "fork in the sandbox");
		}
	}
	return pass();
}
