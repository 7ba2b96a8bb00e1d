/*
 * Like a container's profile: the NUMA, perf, userfaultfd and bpf calls give EPERM or ENOSYS from
 * before the program starts; or "kill": they end the process, so nobody may try them on one node.
 * Arguments: the errno or "kill", then (after the exec) "go".
 */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "victim.h"

static const unsigned denied[] = {SYS_mbind, SYS_set_mempolicy, SYS_get_mempolicy, SYS_move_pages,
	SYS_migrate_pages, SYS_perf_event_open, SYS_userfaultfd, SYS_bpf, SYS_getcpu,
	450 /* set_mempolicy_home_node */, SYS_sched_setaffinity, SYS_membarrier};

static void *work(void *arg)
{
	exercise_heap((unsigned)(uintptr_t)arg, 5000);
	return NULL;
}

int main(int argc, char **argv)
{
	enum { COUNT = sizeof(denied) / sizeof(denied[0]) };
	struct sock_filter code[2 * COUNT + 2];
	struct sock_fprog program = {.len = 0, .filter = code};
	const int kills = argc > 1 && !strcmp(argv[1], "kill");
	unsigned error = argc > 1 ? (unsigned)atoi(argv[1]) : EPERM;
	pthread_t thread[3];

	if (argc < 3) {
		code[program.len++] = (struct sock_filter)BPF_STMT(
			BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
		for (int i = 0; i < COUNT; i++) {
			code[program.len++] = (struct sock_filter)BPF_JUMP(
				BPF_JMP | BPF_JEQ | BPF_K, denied[i], 0, 1);
			code[program.len++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K,
				kills ? SECCOMP_RET_KILL_PROCESS : SECCOMP_RET_ERRNO | error);
		}
		code[program.len++] =
			(struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
		if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
			prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
			SKIP("no seccomp filters here, errno %d", errno);
		execl("/proc/self/exe", argv[0], argc > 1 ? argv[1] : "1", "go", (char *)NULL);
		FAIL("exec: errno %d", errno);
	}
	for (uintptr_t i = 0; i < 3; i++)
		CHECK(!pthread_create(&thread[i], NULL, work, (void *)i));
	for (int i = 0; i < 20; i++) {
		char *large = malloc(40 * MIB);

		CHECK(large);
		memset(large, 1, 40 * MIB);
		free(large);
	}
	for (int i = 0; i < 3; i++)
		pthread_join(thread[i], NULL);
	if (kills)
		return pass();
	errno = 0;
	CHECK(syscall(SYS_mbind, NULL, 0, 0, NULL, 0, 0) == -1 && errno == (int)error);
	return pass();
}
