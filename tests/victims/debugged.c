/* For a debugger: stops are expected in `stop_here`, and the heap works between them. */
#include "victim.h"

__attribute__((noinline)) void stop_here(int number);

static volatile int last;

__attribute__((noinline)) void stop_here(int number)
{
	last = number;
}

int main(void)
{
	for (int i = 0; i < 3; i++) {
		exercise_heap((unsigned)i, 500);
		stop_here(i);
	}
	return pass();
}
