/* The functions of plug_blocks.so, found by name. */
#ifndef PLUG_H
#define PLUG_H

#include <dlfcn.h>
#include <stddef.h>

#include "victim.h"

struct plug {
	void *(*make)(size_t size);
	void *(*make_aligned)(size_t align, size_t size);
	void *(*resize)(void *block, size_t size);
	char *(*text)(const char *text);
	void (*drop)(void *block);
};

static inline struct plug plug_of(void *handle)
{
	if (!handle)
		SKIP("the plug-in cannot be loaded: %s", dlerror());
	return (struct plug){
		.make = (void *(*)(size_t))dlsym(handle, "plug_make"),
		.make_aligned = (void *(*)(size_t, size_t))dlsym(handle, "plug_make_aligned"),
		.resize = (void *(*)(void *, size_t))dlsym(handle, "plug_resize"),
		.text = (char *(*)(const char *))dlsym(handle, "plug_text"),
		.drop = (void (*)(void *))dlsym(handle, "plug_drop"),
	};
}

/* The path of a file in the folder that holds the victims. */
static inline const char *beside(const char *name)
{
	static char path[4096];
	const char *folder = getenv("VICTIM_DIR");

	snprintf(path, sizeof(path), "%s/%s", folder ? folder : ".", name);
	return path;
}

#endif
