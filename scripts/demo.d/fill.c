// SPDX-License-Identifier: MIT
/*
 * Fills a memcached with keys over its socket and reads all of them back.
 *
 *   fill SOCKET KEYS VALUE_BYTES
 *
 * Status 0: every key is there with its value. 1: some are not. 2: the server could not be reached
 * or went away. Progress goes to standard error.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum {
	VALUE_MAX = 512 << 10,
	KEYS_AT_ONCE = 16,
	LINE_BYTES = 64,
};

static FILE *to_server;
static FILE *from_server;

static _Noreturn void gone(const char *what)
{
	fprintf(stderr, "fill: %s: %s\n", what, errno ? strerror(errno) : "the server went away");
	exit(2);
}

static void reach(const char *path)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd;

	if (strlen(path) >= sizeof(addr.sun_path)) {
		errno = ENAMETOOLONG;
		gone(path);
	}
	strcpy(addr.sun_path, path);
	fd = socket(AF_UNIX, SOCK_STREAM, 0);
	if (fd < 0)
		gone("socket");
	/* The server may be starting. */
	for (int tries = 0; connect(fd, (struct sockaddr *)&addr, sizeof(addr)); tries++) {
		if (tries == 600)
			gone(path);
		usleep(100000);
	}
	to_server = fdopen(fd, "w");
	from_server = fdopen(dup(fd), "r");
	if (!to_server || !from_server)
		gone("fdopen");
}

/* A value that no other key has, cheap to make. */
static void make_value(char *value, size_t len, unsigned long key)
{
	uint64_t word = (key + 1) * UINT64_C(0x9e3779b97f4a7c15);

	for (size_t i = 0; i < len; i += sizeof(word)) {
		memcpy(value + i, &word, len - i < sizeof(word) ? len - i : sizeof(word));
		word += UINT64_C(0x0101010101010101);
	}
}

static void progress(const char *what, unsigned long done, unsigned long all)
{
	if (done * 4 / all != (done + 1) * 4 / all)
		fprintf(stderr, "    %s %3lu %%\n", what, (done + 1) * 4 / all * 25);
}

static void fill(unsigned long keys, size_t len, char *value)
{
	for (unsigned long k = 0; k < keys; k++) {
		make_value(value, len, k);
		fprintf(to_server, "set key:%lu 0 0 %zu noreply\r\n", k, len);
		fwrite(value, 1, len, to_server);
		if (fwrite("\r\n", 1, 2, to_server) != 2)
			gone("set");
		progress("set ", k, keys);
	}
}

/* Reads the answer to a get of keys from `first` on; how many of them have the right value. */
static unsigned long right_ones(unsigned long first, size_t len, char *value, char *got)
{
	char line[LINE_BYTES];
	unsigned long key;
	unsigned long right = 0;
	size_t bytes;

	while (fgets(line, sizeof(line), from_server)) {
		if (strcmp(line, "END\r\n") == 0)
			return right;
		if (sscanf(line, "VALUE key:%lu 0 %zu", &key, &bytes) != 2 || bytes != len)
			return 0;
		if (fread(got, 1, len + 2, from_server) != len + 2)
			break;
		make_value(value, len, key);
		right += key - first < KEYS_AT_ONCE && memcmp(got, value, len) == 0;
	}
	errno = ferror(from_server) ? errno : 0;
	gone("get");
}

static unsigned long check(unsigned long keys, size_t len, char *value, char *got)
{
	unsigned long right = 0;

	for (unsigned long k = 0; k < keys; k += KEYS_AT_ONCE) {
		fputs("get", to_server);
		for (unsigned long i = k; i < keys && i < k + KEYS_AT_ONCE; i++)
			fprintf(to_server, " key:%lu", i);
		fputs("\r\n", to_server);
		if (fflush(to_server))
			gone("get");
		right += right_ones(k, len, value, got);
		for (unsigned long i = k; i < keys && i < k + KEYS_AT_ONCE; i++)
			progress("read", i, keys);
	}
	return right;
}

int main(int argc, char **argv)
{
	static char value[VALUE_MAX];
	static char got[VALUE_MAX + 2];
	unsigned long keys = argc == 4 ? strtoul(argv[2], NULL, 10) : 0;
	size_t len = argc == 4 ? strtoul(argv[3], NULL, 10) : 0;
	unsigned long right;

	if (keys == 0 || len == 0 || len > VALUE_MAX) {
		fprintf(stderr, "usage: fill SOCKET KEYS VALUE_BYTES (at most %d)\n", VALUE_MAX);
		return 2;
	}
	reach(argv[1]);
	fill(keys, len, value);
	right = check(keys, len, value, got);
	fprintf(stderr, "    %lu of %lu keys have their value\n", right, keys);
	return right == keys ? 0 : 1;
}
