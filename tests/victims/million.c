/* A million allocations of mixed sizes that live for a while; for counting what else they cost. */
#include "victim.h"

int main(int argc, char **argv)
{
	enum { SLOTS = 4096 };
	static char *slot[SLOTS];
	long count = argc > 1 ? atol(argv[1]) : 1000000;
	unsigned state = 1;

	for (long i = 0; i < count; i++) {
		char **place = &slot[rnd(&state) % SLOTS];
		size_t size = rnd(&state) % 100 ? rnd(&state) % 600 + 1 : rnd(&state) % 20000 + 1;

		free(*place);
		*place = malloc(size);
		CHECK(*place);
		**place = 1;
	}
	for (int i = 0; i < SLOTS; i++)
		free(slot[i]);
	return pass();
}
