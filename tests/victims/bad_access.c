/* For sanitizers: a use after free that the tool must still find. Exits 0 where it is not found. */
#include "victim.h"

int main(void)
{
	char *volatile block = malloc(100);

	memset(block, 1, 100);
	free(block);
	return block[50] == 12 ? 2 : pass();
}
