/* A C program loads C++ plug-ins for itself only (RTLD_LOCAL): operator new that fails throws there
 * too. */
#include "plug.h"

static void try_plugin(int flags)
{
	volatile size_t size = SIZE_MAX / 2 - 4096;
	void *plug = dlopen(beside("plug_cxx.so"), flags);

	if (!plug)
		SKIP("the plug-in cannot be loaded: %s", dlerror());
	int (*works)(void) = (int (*)(void))dlsym(plug, "plug_works");
	int (*refused)(size_t) = (int (*)(size_t))dlsym(plug, "plug_refused");

	CHECK(works && refused && works() == 1000);
	for (int i = 0; i < 10; i++)
		if (refused(size) != 3)
			FAIL("%d of 3 failures of operator new arrived as they must",
				refused(size));
	CHECK(works() == 1000 && !dlclose(plug));
}

int main(void)
{
	for (int i = 0; i < 5; i++) {
		try_plugin(RTLD_NOW | RTLD_LOCAL);
		try_plugin(RTLD_LAZY | RTLD_LOCAL);
	}
	exercise_heap(1, 1000);
	return pass();
}
