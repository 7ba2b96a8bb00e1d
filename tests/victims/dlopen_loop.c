/* dlopen and dlclose in a loop, beside allocating threads: nothing accumulates, no descriptor
 * stays. */
#include <dlfcn.h>
#include <pthread.h>

#include "plug.h"

static int stop;

static void *churn(void *arg)
{
	for (unsigned i = 0; !__atomic_load_n(&stop, __ATOMIC_ACQUIRE); i++)
		exercise_heap(i + (unsigned)(uintptr_t)arg, 200);
	return NULL;
}

static int lines(const char *path)
{
	FILE *file = fopen(path, "re");
	int count = 0;

	for (int c = file ? fgetc(file) : EOF; c != EOF; c = fgetc(file))
		count += c == '\n';
	if (file)
		fclose(file);
	return count;
}

int main(void)
{
	pthread_t thread[2];
	int maps = 0;
	int descriptors = 0;

	for (uintptr_t i = 0; i < 2; i++)
		CHECK(!pthread_create(&thread[i], NULL, churn, (void *)i));
	for (int i = 0; i < 400; i++) {
		void *plug = dlopen(beside("plug_tls.so"), i % 2 ? RTLD_LAZY : RTLD_NOW);

		if (!plug)
			FAIL("dlopen: %s", dlerror());
		int (*touch)(int) = (int (*)(int))dlsym(plug, "plug_touch");

		CHECK(touch && touch(i) == 1);
		CHECK(!dlsym(plug, "no_such_name") && dlerror());
		CHECK(!dlopen("/nowhere/libnone.so", RTLD_NOW) && dlerror());
		CHECK(!dlclose(plug));
		if (i == 100) {
			maps = lines("/proc/self/maps");
			descriptors = count_names("/proc/self/fd");
		}
	}
	int more = lines("/proc/self/maps") - maps;

	if (more > 60)
		FAIL("%d more mappings after 300 rounds", more);
	CHECK(count_names("/proc/self/fd") == descriptors);
	__atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
	for (int i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	return pass();
}
