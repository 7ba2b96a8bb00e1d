/* Tells whether a library is in the process: exits 0 and prints "yes" or "no". Argument: its file
 * name. */
#include "victim.h"

int main(int argc, char **argv)
{
	char line[1000];
	FILE *maps = fopen("/proc/self/maps", "re");
	int found = 0;

	if (!maps || argc < 2)
		SKIP("cannot read the list of mappings");
	while (fgets(line, sizeof(line), maps))
		found |= strstr(line, argv[1]) != NULL;
	fclose(maps);
	exercise_heap(1, 1000);
	puts(found ? "yes" : "no");
	return 0;
}
