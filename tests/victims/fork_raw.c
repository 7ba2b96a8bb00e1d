/* Children that no fork handler hears of: clone by system call, _Fork, vfork; and fork in a signal
 * handler. */
#include <dlfcn.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>

#include "victim.h"

static void in_child(unsigned seed)
{
	alarm(20);
	exercise_heap(seed, 500);
	free(malloc(20 * MIB));
	_exit(0);
}

static void on_signal(int signal)
{
	(void)signal;
	pid_t child = fork();

	if (!child)
		in_child(3);
	expect_child_ok(child, "fork in a signal handler");
}

static int cloned(void *arg)
{
	in_child((unsigned)(uintptr_t)arg);
	return 0;
}

static int on_same_memory(void *arg)
{
	char *block = malloc(5000);

	(void)arg;
	free(malloc(3 * MIB));
	free(block);
	_exit(!block);
}

int main(void)
{
	pid_t (*bare)(void) = (pid_t(*)(void))dlsym(RTLD_DEFAULT, "_Fork");
	char *stack = malloc(256 * KIB);

	exercise_heap(1, 3000);
	for (unsigned i = 0; i < 20; i++) {
		pid_t child = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);

		if (!child)
			in_child(i);
		expect_child_ok(child, "clone by system call");
		if (bare) {
			child = bare();
			if (!child)
				in_child(i);
			expect_child_ok(child, "_Fork");
		}
		child = clone(cloned, stack + 256 * KIB, SIGCHLD, (void *)(uintptr_t)i);
		expect_child_ok(child, "clone");
		child = clone(
			on_same_memory, stack + 256 * KIB, CLONE_VM | CLONE_VFORK | SIGCHLD, NULL);
		expect_child_ok(child, "a clone on the same memory");
		child = vfork();
		if (!child)
			_exit(0);
		expect_child_ok(child, "vfork");
	}
	signal(SIGUSR1, on_signal);
	for (int i = 0; i < 20; i++) {
		raise(SIGUSR1);
		exercise_heap(9, 100);
	}
	free(stack);
	return pass();
}
