/* An OpenMP program: a pool of threads that allocate, free each other's blocks and come and go. */
#include "victim.h"

int main(void)
{
	enum { COUNT = 2000 };
	static char *block[COUNT];
	long sum = 0;

	for (int round = 0; round < 20; round++) {
#pragma omp parallel for schedule(dynamic, 7) num_threads(2 + round % 4)
		for (int i = 0; i < COUNT; i++) {
			block[i] = malloc((size_t)i * 20 + 1);
			CHECK(block[i]);
			block[i][i] = 1;
		}
#pragma omp parallel for reduction(+ : sum) schedule(static, 3) num_threads(3)
		for (int i = 0; i < COUNT; i++) {
			int at = (i * 769) % COUNT;

			sum += block[at][at];
			free(block[at]);
		}
	}
	if (sum != 20L * COUNT)
		FAIL("%ld of %ld blocks kept their mark", sum, 20L * COUNT);
	return pass();
}
