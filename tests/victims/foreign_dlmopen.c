/* A plug-in in a namespace of its own has a whole libc of its own; both heaps work side by side. */
#include <pthread.h>

#include "plug.h"

static struct plug plug;

static void *both(void *arg)
{
	unsigned state = (unsigned)(uintptr_t)arg;

	for (int i = 0; i < 5000; i++) {
		size_t size = mixed_size(&state) / 8 + 1;
		unsigned char *theirs = plug.make(size);
		unsigned char *mine = malloc(size);

		CHECK(theirs && mine && theirs != mine);
		mine[0] = mine[size - 1] = 1;
		theirs = plug.resize(theirs, size * 2);
		CHECK(theirs && theirs[size - 1] == 0x3c && mine[size - 1] == 1);
		plug.drop(theirs);
		free(mine);
	}
	return NULL;
}

int main(void)
{
	void *space = dlmopen(LM_ID_NEWLM, beside("plug_blocks.so"), RTLD_NOW | RTLD_LOCAL);
	pthread_t thread;

	plug = plug_of(space);
	CHECK(!pthread_create(&thread, NULL, both, (void *)5));
	both((void *)9);
	pthread_join(thread, NULL);
	for (int i = 0; i < 5; i++) { /* namespaces come and go; a program has at most 16 */
		void *other = dlmopen(LM_ID_NEWLM, beside("plug_blocks.so"), RTLD_NOW | RTLD_LOCAL);
		struct plug second = plug_of(other);

		second.drop(second.make(3000000));
		CHECK(!dlclose(other));
	}
	exercise_heap(3, 2000);
	CHECK(!dlclose(space));
	exercise_heap(4, 2000);
	return pass();
}
