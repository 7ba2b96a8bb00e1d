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

static int connect_to(const char *path)
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
			return fd;
		close(fd);
		usleep(20000); /* it has only just been started */
	}
	where_die(path);
}

enum { BATCH = 20 };

int main(int argc, char **argv)
{
	unsigned long stored = 0;
	unsigned long found = 0;
	unsigned long keys;
	size_t bytes;
	char line[256];
	char *value;
	FILE *in;
	FILE *out;
	int fd;

	if (argc != 4)
		return 2;
	keys = strtoul(argv[2], NULL, 10);
	bytes = strtoul(argv[3], NULL, 10);
	value = malloc(bytes + 3);
	if (!value)
		where_die("malloc");
	memset(value, 'v', bytes);
	memcpy(value + bytes, "\r\n", 3);
	fd = connect_to(argv[1]);
	in = fdopen(fd, "r");
	out = fdopen(dup(fd), "w");
	if (!in || !out)
		where_die("fdopen");
	/* Some at a time: every change between it and the server costs much in a guest. */
	for (unsigned long i = 0; i < keys; i += BATCH) {
		for (unsigned long k = i; k < keys && k < i + BATCH; k++)
			fprintf(out, "set key%lu 0 0 %zu\r\n%s", k, bytes, value);
		fflush(out);
		for (unsigned long k = i; k < keys && k < i + BATCH; k++)
			if (fgets(line, sizeof(line), in) && strcmp(line, "STORED\r\n") == 0)
				stored++;
	}
	for (unsigned long i = 0; i < keys; i += BATCH) {
		fprintf(out, "get");
		for (unsigned long k = i; k < keys && k < i + BATCH; k++)
			fprintf(out, " key%lu", k);
		fprintf(out, "\r\n");
		fflush(out);
		while (fgets(line, sizeof(line), in) && strncmp(line, "VALUE ", 6) == 0)
			if (fread(value, 1, bytes + 2, in) == bytes + 2 && value[0] == 'v')
				found++;
	}
	fclose(out);
	fclose(in);
	printf("stored %lu found %lu\n", stored, found);
	return 0;
}
