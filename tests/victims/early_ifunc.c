/* An IFUNC resolver that allocates runs while the program is still being relocated (linked lazily).
 */
#include "victim.h"

static char *found;

static int one(void)
{
	return found ? 1 : 0;
}

__attribute__((used)) static int (*resolve(void))(void)
{
	found = malloc(3000);
	if (found)
		memset(found, 6, 3000);
	free(calloc(40, 40));
	return one;
}

int chosen(void) __attribute__((ifunc("resolve")));

int main(void)
{
	CHECK(chosen() == 1);
	CHECK(found[2999] == 6);
	found = realloc(found, 100000);
	CHECK(found && found[2999] == 6);
	free(found);
	exercise_heap(1, 1000);
	return pass();
}
