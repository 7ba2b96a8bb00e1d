/* Coroutines and threads whose stacks are heap blocks or mappings of the program, and deep
 * recursion. */
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <ucontext.h>

#include "victim.h"

enum { FIBERS = 50, STACK = 64 * 1024 };

static ucontext_t scheduler;
static ucontext_t fiber[FIBERS];
static int steps;

static void run(int me)
{
	for (int round = 0; round < 20; round++) {
		char *block = malloc((size_t)me * 997 + (size_t)round + 1);

		CHECK(block);
		block[0] = (char)me;
		swapcontext(&fiber[me], &scheduler); /* others allocate before this goes on */
		CHECK(block[0] == (char)me);
		free(block);
		steps++;
	}
}

static void *on_own_stack(void *arg)
{
	exercise_heap((unsigned)(uintptr_t)arg, 500);
	return arg;
}

static long descend(int depth)
{
	char frame[8000];

	memset(frame, depth, sizeof(frame));
	if (depth == 0)
		return frame[5];
	char *block = depth % 50 ? NULL : malloc(3000);
	long below = descend(depth - 1);

	free(block);
	return below + frame[(size_t)depth % sizeof(frame)];
}

int main(int argc, char **argv)
{
	if (argc > 1) { /* a deep stack is given at the start of a program */
		CHECK(descend(30000) != 1);
		return pass();
	}
	for (int i = 0; i < FIBERS; i++) {
		CHECK(!getcontext(&fiber[i]));
		fiber[i].uc_stack.ss_size = STACK;
		fiber[i].uc_stack.ss_sp =
			i % 2 ? malloc(STACK)
			      : mmap(NULL, STACK, PROT_READ | PROT_WRITE,
					MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
		fiber[i].uc_link = &scheduler;
		makecontext(&fiber[i], (void (*)(void))run, 1, i);
	}
	for (int round = 0; round < 21; round++)
		for (int i = 0; i < FIBERS; i++)
			CHECK(!swapcontext(&scheduler, &fiber[i]));
	CHECK(steps == FIBERS * 20);
	for (int i = 0; i < FIBERS; i++)
		if (i % 2)
			free(fiber[i].uc_stack.ss_sp);
		else
			CHECK(!munmap(fiber[i].uc_stack.ss_sp, STACK));
	for (int i = 0; i < 40; i++) {
		void *stack = aligned_alloc(4096, 128 * KIB);
		pthread_attr_t attributes;
		pthread_t thread;

		CHECK(stack && !pthread_attr_init(&attributes));
		CHECK(!pthread_attr_setstack(&attributes, stack, 128 * KIB));
		CHECK(!pthread_create(&thread, &attributes, on_own_stack, (void *)5));
		CHECK(!pthread_join(thread, NULL));
		free(stack);
	}
	struct rlimit limit;

	CHECK(!getrlimit(RLIMIT_STACK, &limit));
	limit.rlim_cur = 512 * MIB;
	if (setrlimit(RLIMIT_STACK, &limit))
		return pass();
	execl("/proc/self/exe", argv[0], "deep", (char *)NULL);
	FAIL("exec: errno %d", errno);
}
