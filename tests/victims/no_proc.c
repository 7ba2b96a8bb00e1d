/* Started without /proc and /sys (it hides them in a mount namespace and runs itself again). */
#include <pthread.h>
#include <sched.h>
#include <sys/mount.h>

#include "victim.h"

static void *work(void *arg)
{
	exercise_heap((unsigned)(uintptr_t)arg, 5000);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t thread[3];
	char self[4096];

	if (argc < 2) {
		ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);

		CHECK(length > 0);
		self[length] = '\0';
		if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
			mount("none", "/sys", "tmpfs", 0, NULL) ||
			mount("none", "/proc", "tmpfs", 0, NULL))
			SKIP("cannot hide /proc and /sys, errno %d", errno);
		execl(self, argv[0], "hidden", (char *)NULL);
		FAIL("exec: errno %d", errno);
	}
	CHECK(count_names("/proc") == 0 && count_names("/sys") == 0);
	for (uintptr_t i = 0; i < 3; i++)
		CHECK(!pthread_create(&thread[i], NULL, work, (void *)i));
	for (int i = 0; i < 3; i++)
		pthread_join(thread[i], NULL);
	char *large = malloc(200 * MIB);

	CHECK(large);
	memset(large, 1, 200 * MIB);
	free(large);
	return pass();
}
