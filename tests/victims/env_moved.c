/* The environment is moved, grown, overwritten and cleared while and after libraries read it. */
#include "victim.h"

extern char **environ;

__attribute__((constructor)) static void early(void)
{
	for (int i = 0; i < 500; i++) {
		char name[40];

		snprintf(name, sizeof(name), "VICTIM_EARLY_%d", i);
		CHECK(!setenv(name, "a value of some length", 1));
		if (i % 3 == 0)
			CHECK(!unsetenv(name));
	}
}

int main(int argc, char **argv)
{
	/* as programs do that show their state in ps: the space of the environment is written over
	 */
	char *space = argc > 1 ? argv[1] : argv[0];
	static char *own[] = {NULL, NULL, NULL};

	exercise_heap(1, 2000);
	own[0] = strdup("ONLY=this");
	own[1] = strdup("NUMALIFT_PLACE=changed:later");
	environ = own;
	memset(space, 'p', strlen(space));
	exercise_heap(2, 2000);
	CHECK(!strcmp(getenv("ONLY"), "this"));
	CHECK(!setenv("MORE", "x", 1) && !strcmp(getenv("MORE"), "x"));
	pid_t child = fork();

	if (!child) {
		exercise_heap(3, 2000);
		_exit(0);
	}
	expect_child_ok(child, "a child with another environment");
	environ = NULL;
	exercise_heap(4, 2000);
	free(malloc(200 * MIB));
	CHECK(!getenv("ONLY"));
	CHECK(!setenv("AGAIN", "y", 1) && !clearenv());
	exercise_heap(5, 2000);
	return pass();
}
