// SPDX-License-Identifier: MIT
/*
 * Fills a memcached through its socket, and reads it all again.
 *
 *   mcload SOCKET KEYS BYTES     prints "stored N found N"
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/numa/where.h"

static FILE *connect_to(const char *path)
{
	enum { TRIES = 3000 };
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd;

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", path);
	for (int i = 0; i < TRIES; i++) {
		fd = socket(AF_UNIX, SOCK_STREAM, 0);
		if (fd < 0)
			where_die("socket");
		if (connect(fd, (struct sockaddr *)&addr, sizeof(addr)) == 0)
			return fdopen(fd, "r+");
		close(fd);
		usleep(20000); /* it has only just been started */
	}
	where_die(path);
}

int main(int argc, char **argv)
{
	unsigned long stored = 0;
	unsigned long found = 0;
	unsigned long keys;
	size_t bytes;
	char line[256];
	char *value;
	FILE *f;

	if (argc != 4)
		return 2;
	keys = strtoul(argv[2], NULL, 10);
	bytes = strtoul(argv[3], NULL, 10);
	value = malloc(bytes + 3);
	if (!value)
		where_die("malloc");
	memset(value, 'v', bytes);
	memcpy(value + bytes, "\r\n", 3);
	f = connect_to(argv[1]);
	if (!f)
		where_die("fdopen");
	for (unsigned long i = 0; i < keys; i++) {
		fprintf(f, "set key%lu 0 0 %zu\r\n%s", i, bytes, value);
		fflush(f);
		if (fgets(line, sizeof(line), f) && strcmp(line, "STORED\r\n") == 0)
			stored++;
	}
	for (unsigned long i = 0; i < keys; i++) {
		fprintf(f, "get key%lu\r\n", i);
		fflush(f);
		if (!fgets(line, sizeof(line), f) || strncmp(line, "VALUE ", 6) != 0)
			continue;
		if (fread(value, 1, bytes + 2, f) == bytes + 2 && value[0] == 'v' &&
			fgets(line, sizeof(line), f))
			found++;
	}
	fclose(f);
	printf("stored %lu found %lu\n", stored, found);
	return 0;
}
