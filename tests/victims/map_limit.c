/* A program that uses up vm.max_map_count gets nearly all of it, clean refusals there, and
 * recovers. */
#include <sys/mman.h>

#include "victim.h"

int main(void)
{
	FILE *file = fopen("/proc/sys/vm/max_map_count", "re");
	long limit = 0;
	static char *small[500];
	static char *large[100];
	long used = 0;

	if (!file || fscanf(file, "%ld", &limit) != 1 || limit > 300000)
		SKIP("vm.max_map_count is unknown or large");
	fclose(file);
	exercise_heap(1, 5000);
	for (int i = 0; i < 100; i++) {
		large[i] = malloc((size_t)i * 40000 + 1);
		CHECK(large[i]);
	}
	size_t room = (size_t)limit * 8192;
	char *range =
		mmap(NULL, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	CHECK(range != MAP_FAILED);
	while (!mprotect(
		range + used * 4096, 4096, PROT_READ)) /* every second page: a mapping each */
		used += 2;
	CHECK(errno == ENOMEM);
	if (used < limit * 95 / 100)
		FAIL("only %ld of %ld mappings were left to the program", used, limit);
	for (int i = 0; i < 500; i++) {
		small[i] = malloc((size_t)(i % 50) * 100000 + 10);
		if (small[i])
			memset(small[i], 1, 10);
		else if (errno != ENOMEM)
			FAIL("refused with errno %d", errno);
	}
	for (int i = 0; i < 500; i++)
		free(small[i]);
	for (int i = 0; i < 100; i++) /* free may need a mapping more, and must cope without */
		free(large[i]);
	CHECK(!munmap(range, room));
	exercise_heap(2, 5000);
	return pass();
}
