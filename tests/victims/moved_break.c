/* A program that moves the break itself, with malloc in between: its own memory is never touched.
 */
#include "victim.h"

int main(void)
{
	enum { STEPS = 60, STEP = 300 * 1024 };
	static unsigned char *own[STEPS];

	for (int i = 0; i < STEPS; i++) {
		void *before = sbrk(0);

		own[i] = sbrk(STEP);
		if (own[i] == (void *)-1)
			SKIP("the break cannot be moved, errno %d", errno);
		CHECK(own[i] == before && (unsigned char *)sbrk(0) == own[i] + STEP);
		memset(own[i], i + 1, STEP);
		exercise_heap((unsigned)i, 200);
	}
	for (int i = 0; i < STEPS; i++)
		for (int k = 0; k < STEP; k++)
			if (own[i][k] != i + 1)
				FAIL("memory from sbrk was overwritten at step %d", i);
	char *end = sbrk(0);

	if (!brk(end + 8192)) {
		CHECK(sbrk(0) == end + 8192 && !brk(end) && sbrk(0) == end);
		CHECK(sbrk(-4096) == end && sbrk(0) == end - 4096);
	}
	CHECK(sbrk(INTPTR_MAX) == (void *)-1 && errno == ENOMEM);
	exercise_heap(1, 3000);
	return pass();
}
