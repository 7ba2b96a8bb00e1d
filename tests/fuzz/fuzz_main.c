/*
 * Replays files, and all files of folders, through a fuzz target: the corpus as an ordinary test,
 * for any compiler. Fails when there is nothing to replay.
 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "fuzz.h"

static unsigned replayed;

static int replay_file(const char *path, size_t size)
{
	FILE *f = fopen(path, "rb");
	uint8_t *data = malloc(size ? size : 1);
	int rc = -1;

	if (f && data && fread(data, 1, size, f) == size) {
		/* Said before, so that the last line names the input that crashed. */
		printf("# %s, %zu bytes\n", path, size);
		fflush(stdout);
		LLVMFuzzerTestOneInput(data, size);
		replayed++;
		rc = 0;
	} else {
		fprintf(stderr, "%s: %s\n", path, strerror(errno));
	}
	free(data);
	if (f)
		fclose(f);
	return rc;
}

static int replay_folder(const char *path);

static int replay(const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0) {
		fprintf(stderr, "%s: %s\n", path, strerror(errno));
		return -1;
	}
	return S_ISDIR(st.st_mode) ? replay_folder(path) : replay_file(path, (size_t)st.st_size);
}

static int replay_folder(const char *path)
{
	DIR *dir = opendir(path);
	struct dirent *entry;
	int rc = 0;

	if (!dir) {
		fprintf(stderr, "%s: %s\n", path, strerror(errno));
		return -1;
	}
	while (rc == 0 && (entry = readdir(dir))) {
		char child[4096];

		if (entry->d_name[0] == '.')
			continue;
		if ((size_t)snprintf(child, sizeof(child), "%s/%s", path, entry->d_name) >=
			sizeof(child))
			rc = -1;
		else
			rc = replay(child);
	}
	closedir(dir);
	return rc;
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (replay(argv[i]) < 0)
			return 1;
	if (replayed == 0) {
		fprintf(stderr, "usage: %s FILE-OR-FOLDER...; nothing was replayed\n", argv[0]);
		return 1;
	}
	printf("# %u inputs\n", replayed);
	return 0;
}
