/* What has to be the same for all threads of a process: the lines about it in a thread's status. */
#ifndef NUMALIFT_TESTS_VICTIMS_RIGHTS_H
#define NUMALIFT_TESTS_VICTIMS_RIGHTS_H

#include <stdio.h>
#include <string.h>

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

#endif
