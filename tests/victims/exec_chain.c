/* A chain of six execs keeps the environment, LD_PRELOAD among it, and the heap works in every
 * link. */
#include "victim.h"

static int mapped(const char *name)
{
	char line[1000];
	FILE *maps = fopen("/proc/self/maps", "re");
	int found = 0;

	while (maps && fgets(line, sizeof(line), maps))
		found |= strstr(line, name) != NULL;
	if (maps)
		fclose(maps);
	return found;
}

int main(int argc, char **argv)
{
	int left = argc > 1 ? atoi(argv[1]) : 6;
	const char *preload = getenv("LD_PRELOAD");
	const char *at_start = argc > 2 ? argv[2] : preload ? preload : "";
	char number[20];
	char descriptors[20];

	if (strcmp(preload ? preload : "", at_start) != 0)
		FAIL("LD_PRELOAD changed to '%s' with %d execs to go", preload, left);
	const char *slash = strrchr(at_start, '/');

	if (slash && !mapped(slash + 1))
		FAIL("the preload is gone with %d execs to go", left);
	exercise_heap((unsigned)left, 2000);
	int open_now = count_names("/proc/self/fd");
	int open_first = argc > 3 ? atoi(argv[3]) : open_now;

	if (open_now != open_first)
		FAIL("%d descriptors, %d at first", open_now, open_first);
	if (left == 0)
		return pass();
	snprintf(number, sizeof(number), "%d", left - 1);
	snprintf(descriptors, sizeof(descriptors), "%d", open_first);
	execl("/proc/self/exe", argv[0], number, at_start, descriptors, (char *)NULL);
	FAIL("exec failed, errno %d", errno);
}
