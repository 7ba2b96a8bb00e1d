/* What has to be the same for all threads of a process: the lines about it in a thread's status. */
#ifndef NUMALIFT_TESTS_VICTIMS_RIGHTS_H
#define NUMALIFT_TESTS_VICTIMS_RIGHTS_H

#include <linux/capability.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static inline void rights_of(const char *task, char *to, size_t size)
{
	static const char *const names[] = {
		"Uid:", "Gid:", "Groups:", "NoNewPrivs:", "Cap", "Seccomp:"};
	char path[300];
	char line[256];
	FILE *file;

	*to = '\0';
	snprintf(path, sizeof(path), "/proc/self/task/%s/status", task);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file))
		for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
			if (strncmp(line, names[i], strlen(names[i])) == 0)
				strncat(to, line, size - strlen(to) - 1);
	if (file)
		fclose(file);
}

/* Whether the two differ in nothing but that the other has laid CAP_SYS_ADMIN down. */
static inline bool opens_pagemap(const char *mine, const char *other)
{
	static const char name[] = "CapEff:\t";
	const char *at = strstr(other, name);
	char digits[17];
	char with[1024];

	if (!at)
		return false;
	at += strlen(name);
	snprintf(digits, sizeof(digits), "%016llx", strtoull(at, NULL, 16) | 1ull << CAP_SYS_ADMIN);
	snprintf(with, sizeof(with), "%s", other);
	memcpy(with + (at - other), digits, 16);
	return strcmp(mine, with) == 0;
}

/*
 * Whether a thread has other rights than `mine`; `other` has them then. One that has just been
 * started anew lays that capability down while it opens pagemap, which on a busy machine can take a
 * while: waited for, and nothing else is. A thread that is gone has none.
 */
static inline bool rights_differ(const char *task, const char *mine, char *other, size_t size)
{
	enum { TRIES = 100 };

	for (int i = 0; i < TRIES; i++) {
		rights_of(task, other, size);
		if (!other[0] || strcmp(mine, other) == 0)
			return false;
		if (!opens_pagemap(mine, other))
			return true;
		usleep(20000);
	}
	return true;
}

#endif
