/*
 * mlockall(MCL_CURRENT | MCL_FUTURE) makes every mapping resident: whatever an allocator reserves
 * in advance turns into memory. "limit": as an ordinary user under RLIMIT_MEMLOCK.
 */
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "victim.h"

static void *in_thread(void *arg)
{
	exercise_heap((unsigned)(uintptr_t)arg, 500);
	return NULL;
}

int main(int argc, char **argv)
{
	int limited = argc > 1 && !strcmp(argv[1], "limit");
	struct rlimit room;
	pthread_attr_t small;
	pthread_t thread;

	CHECK(!getrlimit(RLIMIT_MEMLOCK, &room));
	if (limited) {
		room.rlim_cur = 128 * MIB;
		if (room.rlim_max < room.rlim_cur)
			SKIP("the hard limit of locked memory is below 128 MiB");
		CHECK(!setrlimit(RLIMIT_MEMLOCK, &room));
		if (geteuid() == 0)
			CHECK(!setgid(65534) && !setuid(65534));
	}
	if (mlockall(MCL_CURRENT | MCL_FUTURE)) {
		if (limited || errno == EPERM || errno == ENOMEM)
			SKIP("mlockall: errno %d", errno);
		FAIL("mlockall: errno %d", errno);
	}
	static char *block[3000];

	for (int i = 0; i < 3000; i++) {
		block[i] = malloc(10000);
		if (!block[i])
			FAIL("refused after %d of 30 MB", i / 100);
		block[i][0] = 1;
	}
	char *large = malloc(10 * MIB);

	CHECK(large);
	CHECK(!pthread_attr_init(&small) && !pthread_attr_setstacksize(&small, 256 * KIB));
	for (uintptr_t i = 0; i < 4; i++) {
		CHECK(!pthread_create(&thread, &small, in_thread, (void *)i));
		pthread_join(thread, NULL);
	}
	long locked = status_kb("VmLck:");
	long resident = status_kb("VmRSS:");

	if (locked > 128 * 1024 || resident > 128 * 1024) /* 45 MB used; glibc has 60 to 110 */
		FAIL("%ld kB locked and %ld kB resident for 45 MB", locked, resident);
	free(large);
	for (int i = 0; i < 3000; i++)
		free(block[i]);
	CHECK(!munlockall());
	return pass();
}
