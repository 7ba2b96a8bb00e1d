/* Guards, code made at run time, write-protected data and signals on them; stacks that grow down.
 */
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>

#include "victim.h"

enum { PAGE = 4096 };

static sigjmp_buf back;
static void *volatile fault;

static void on_fault(int signal, siginfo_t *info, void *context)
{
	(void)context;
	(void)signal;
	fault = info->si_addr;
	siglongjmp(back, 1);
}

static int faults(volatile char *at, int write)
{
	fault = NULL;
	if (sigsetjmp(back, 1))
		return fault == (void *)(uintptr_t)at;
	if (write)
		*at = 1;
	else
		(void)*at;
	return 0;
}

static void run_code(void)
{
	/* mov eax, imm32; ret */
	static const unsigned char code[] = {0xb8, 0x2a, 0, 0, 0, 0xc3};

	for (int i = 0; i < 200; i++) {
		unsigned char *room = mmap(NULL, 65536, PROT_READ | PROT_WRITE | PROT_EXEC,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (room == MAP_FAILED)
			return; /* a hardened system */
		memcpy(room + 100, code, sizeof(code));
#ifdef __x86_64__
		int (*made)(void) = (int (*)(void))(void *)(room + 100);

		CHECK(made() == 42);
#endif
		CHECK(!mprotect(room, 65536, PROT_READ | PROT_EXEC));
		CHECK(faults((char *)room, 1));
		munmap(room, 65536);
	}
}

int main(void)
{
	struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};

	CHECK(!sigaction(SIGSEGV, &action, NULL) && !sigaction(SIGBUS, &action, NULL));
	for (int i = 0; i < 100; i++) {
		char *range = mmap(NULL, 32 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		CHECK(range != MAP_FAILED);
		CHECK(!mprotect(range + PAGE, 30 * PAGE, PROT_READ | PROT_WRITE));
		memset(range + PAGE, 3, 30 * PAGE);
		CHECK(faults(range, 0) && faults(range + PAGE - 1, 1) &&
			faults(range + 31 * PAGE, 0));
		CHECK(!faults(range + PAGE, 1));
		CHECK(!mprotect(range + 5 * PAGE, PAGE, PROT_READ));
		CHECK(faults(range + 5 * PAGE, 1) && range[5 * PAGE] == 3);
		munmap(range, 32 * PAGE);
		CHECK(faults(range + 10 * PAGE, 0));
	}
	/* protecting pages of a block of the heap, as garbage collectors and checkers do */
	for (int i = 0; i < 50; i++) {
		char *block = aligned_alloc(PAGE, 8 * PAGE);

		CHECK(block && !mprotect(block + PAGE, 2 * PAGE, PROT_READ));
		CHECK(faults(block + PAGE, 1));
		CHECK(!mprotect(block + PAGE, 2 * PAGE, PROT_READ | PROT_WRITE));
		memset(block, 1, 8 * PAGE);
		free(block);
	}
	run_code();
	char *stack =
		mmap(NULL, 64 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(stack != MAP_FAILED && !munmap(stack, 62 * PAGE));
	CHECK(mmap(stack + 62 * PAGE, 2 * PAGE, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_GROWSDOWN | MAP_FIXED, -1,
		      0) != MAP_FAILED);
	stack[61 * PAGE + 100] = 1;
	CHECK(stack[61 * PAGE + 100] == 1);
	/* beyond the end of a file */
	int file = memfd_create("short", 0);

	CHECK(file >= 0 && !ftruncate(file, 100));
	char *mapped = mmap(NULL, 4 * PAGE, PROT_READ, MAP_SHARED, file, 0);

	CHECK(mapped != MAP_FAILED && !faults(mapped + 99, 0) && faults(mapped + 2 * PAGE, 0));
	exercise_heap(1, 2000);
	return pass();
}
