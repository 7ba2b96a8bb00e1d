// SPDX-License-Identifier: MIT
/*
 * Fills a memcached, or reads all of it in random order, value by value compared.
 *
 *   mcreads SOCKET KEYS BYTES fill
 *   mcreads SOCKET KEYS BYTES PASSES MS    a pass begins MS after the one before
 *
 * Prints "stored N" or "found N" (of all passes) and "ms N" (the longest pass).
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "tests/numa/where.h"

enum { BATCH = 20 }; /* each change between it and the server costs much in a guest */

static FILE *in;
static FILE *out;
static unsigned long keys;
static size_t bytes;
static char *value;
static char *wanted;

static void connect_to(const char *path)
{
	enum { TRIES = 3000, WAIT_US = 20000 };
	struct sockaddr_un addr = {.sun_family = AF_UNIX};

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", path);
	for (int i = 0; i < TRIES; i++) {
		int fd = socket(AF_UNIX, SOCK_STREAM, 0);

		if (fd < 0)
			where_die("socket");
		if (connect(fd, (struct sockaddr *)&addr, sizeof(addr)) == 0) {
			in = fdopen(fd, "r");
			out = fdopen(dup(fd), "w");
			return;
		}
		close(fd);
		usleep(WAIT_US); /* it has only just been started */
	}
	where_die(path);
}

/* Its number, now and then, so that a page that is mixed up shows. */
static void make_value(unsigned long key)
{
	char text[24];

	memset(wanted, 'a' + (int)(key % 26), bytes);
	for (size_t at = 0; at + 24 < bytes; at += 2039)
		memcpy(wanted + at, text,
			(size_t)snprintf(text, sizeof(text), "%lu,%zu,", key, at));
	memcpy(wanted + bytes, "\r\n", 3);
}

static void fill(void)
{
	unsigned long stored = 0;
	char line[256];

	for (unsigned long i = 0; i < keys; i += BATCH) {
		for (unsigned long k = i; k < keys && k < i + BATCH; k++) {
			make_value(k);
			fprintf(out, "set key%lu 0 0 %zu\r\n%s", k, bytes, wanted);
		}
		fflush(out);
		for (unsigned long k = i; k < keys && k < i + BATCH; k++)
			if (fgets(line, sizeof(line), in) && strcmp(line, "STORED\r\n") == 0)
				stored++;
	}
	printf("stored %lu\n", stored);
}

static unsigned long read_some(const uint32_t *order, unsigned long n)
{
	unsigned long found = 0;
	char line[256];

	fprintf(out, "get");
	for (unsigned long k = 0; k < n; k++)
		fprintf(out, " key%u", order[k]);
	fprintf(out, "\r\n");
	fflush(out);
	while (fgets(line, sizeof(line), in) && strncmp(line, "VALUE key", 9) == 0) {
		make_value(strtoul(line + 9, NULL, 10));
		if (fread(value, 1, bytes + 2, in) != bytes + 2 ||
			memcmp(value, wanted, bytes + 2) != 0) {
			fprintf(stderr, "wrong value: %s", line);
			exit(1);
		}
		found++;
	}
	return found;
}

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static void read_all(unsigned long passes, uint64_t period)
{
	uint32_t *order = calloc(keys, sizeof(*order));
	uint64_t s = 88172645463325252u;
	unsigned long found = 0;
	uint64_t longest = 0;

	if (!order)
		where_die("calloc");
	for (unsigned long i = 0; i < keys; i++)
		order[i] = (uint32_t)i;
	for (unsigned long pass = 0; pass < passes; pass++) {
		uint64_t begin = now_ms();
		uint64_t took;

		for (unsigned long i = keys - 1; i > 0; i--) {
			unsigned long j;
			uint32_t t = order[i];

			s ^= s << 13;
			s ^= s >> 7;
			s ^= s << 17;
			j = s % (i + 1);
			order[i] = order[j];
			order[j] = t;
		}
		for (unsigned long i = 0; i < keys; i += BATCH)
			found += read_some(order + i, keys - i < BATCH ? keys - i : BATCH);
		took = now_ms() - begin;
		longest = took > longest ? took : longest;
		if (took < period)
			usleep((useconds_t)((period - took) * 1000));
	}
	printf("found %lu\nms %lu\n", found, (unsigned long)longest);
}

int main(int argc, char **argv)
{
	if (argc < 5)
		return 2;
	keys = strtoul(argv[2], NULL, 10);
	bytes = strtoul(argv[3], NULL, 10);
	value = malloc(bytes + 3);
	wanted = malloc(bytes + 3);
	if (!value || !wanted || keys == 0)
		return 2;
	connect_to(argv[1]);
	if (strcmp(argv[4], "fill") == 0)
		fill();
	else
		read_all(strtoul(argv[4], NULL, 10), argc > 5 ? strtoul(argv[5], NULL, 10) : 0);
	return 0;
}
