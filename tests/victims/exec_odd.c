/* Started with no arguments at all, with a huge environment, or with nothing in it but the preload.
 */
#include "victim.h"

static void start_again(const char *mode)
{
	enum { VARIABLES = 4000 };
	static char *env[VARIABLES + 8];
	char *argv[] = {(char *)"exec_odd", NULL};
	const char *preload = getenv("LD_PRELOAD");
	int count = 0;

	if (preload)
		CHECK(asprintf(&env[count++], "LD_PRELOAD=%s", preload) > 0);
	if (!strcmp(mode, "huge")) {
		for (int i = 0; i < VARIABLES; i++)
			CHECK(asprintf(&env[count++], "VICTIM_%d=%0*d", i, i % 100, i) > 0);
		CHECK(asprintf(&env[count++], "VICTIM_LONG=%0100000d", 1) > 0);
		env[count++] = strdup("no equals sign");
		env[count++] = strdup("=");
		env[count++] = strdup("NUMALIFT");
	}
	CHECK(asprintf(&env[count++], "VICTIM_MODE=%s", mode) > 0);
	if (!strcmp(mode, "bare"))
		argv[0] = NULL;
	execve("/proc/self/exe", argv, env);
	FAIL("exec: errno %d", errno);
}

int main(int argc, char **argv)
{
	const char *mode = getenv("VICTIM_MODE");

	if (argc > 1)
		start_again(argv[1]);
	CHECK(mode);
	exercise_heap(1, 5000);
	free(malloc(100 * MIB));
	CHECK(!setenv("VICTIM_LATE", "set", 1) && getenv("VICTIM_LATE"));
	return pass();
}
