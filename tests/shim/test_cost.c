/* On one node the library costs no system calls beyond mimalloc's own, and none per allocation. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/shim/victim_row.h"

/* Calls of a run of the victim `million` under strace -c with @preload; -1 where it cannot be
 * counted. */
static long count_calls(const char *preload, const char *allocations)
{
	static struct victim_outcome got;
	char table[] = "/tmp/victim-calls-XXXXXX";
	char variable[4200];
	char line[300];
	long calls = -1;
	int fd = mkstemp(table);
	const char *tool = victim_tool("strace");

	cr_assert(fd >= 0);
	close(fd);
	snprintf(variable, sizeof(variable), "LD_PRELOAD=%s", preload);
	const char *args[] = {"-f", "-c", "-o", table, "-E", variable,
		strdup(victim_path("million")), allocations, NULL};
	struct victim_order order = {.path = tool, .args = args};

	if (!tool || victim_run(&order, &got) || got.status || strcmp(got.out, "ok\n") != 0) {
		unlink(table);
		return -1;
	}
	FILE *file = fopen(table, "re");

	while (file && fgets(line, sizeof(line), file)) {
		long number;
		char word[2][40];

		if (strstr(line, " total") &&
			sscanf(line, "%*s %*s %39s %39s", word[0], word[1]) == 2) {
			number = strtol(
				word[1], NULL, 10); /* the column of usecs/call may be empty */
			calls = number ? number : strtol(word[0], NULL, 10);
		}
	}
	if (file)
		fclose(file);
	unlink(table);
	return calls;
}

static const char *peer(void)
{
	static const char *const names[] = {"libmimalloc.so.2", "libmimalloc.so.3"};
	static const char *const folders[] = {"/usr/lib/x86_64-linux-gnu",
		"/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib"};
	static char path[100];

	for (size_t n = 0; n < 2; n++)
		for (size_t f = 0; f < 4; f++) {
			snprintf(path, sizeof(path), "%s/%s", folders[f], names[n]);
			if (access(path, R_OK) == 0)
				return path;
		}
	return NULL;
}

Test(preloaded, system_calls_as_mimalloc)
{
	const char *library = victim_library();
	long theirs = peer() ? count_calls(peer(), "1000000") : -1;
	long ours = count_calls(library, "1000000");

	if (theirs < 0 || ours < 0)
		cr_skip_test("strace or mimalloc is not here, or tracing is not allowed");
	cr_assert(ours <= theirs + 25, "%ld system calls, mimalloc alone makes %ld", ours, theirs);
}

Test(preloaded, system_calls_do_not_grow)
{
	const char *library = victim_library();
	long few = count_calls(library, "200000");
	long many = count_calls(library, "2000000");

	if (few < 0 || many < 0)
		cr_skip_test("strace is not here, or tracing is not allowed");
	cr_assert(many <= few + 25, "%ld system calls for 200,000 blocks and %ld for 2,000,000",
		few, many);
}
