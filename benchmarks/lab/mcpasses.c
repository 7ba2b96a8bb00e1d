// SPDX-License-Identifier: MIT
/*
 * A load for memcached: fills it, then gets every key once in each pass, in an order of the pass,
 * and compares the values. After each pass a line of JSON, with where the server's pages are.
 *
 * mcpasses --help lists the options.
 */
#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "benchmarks/lab/marker.h"

/* Some at a time: every change between it and the server costs much in a guest. */
enum { BATCH = 20, MAX_NODES = 64 };

static FILE *in;
static FILE *out;
static unsigned long keys = 100000;
static unsigned long value_bytes = 1000;
static char *value;
static char *wanted;

static _Noreturn void die(const char *what)
{
	fprintf(stderr, "mcpasses: %s: %s\n", what, strerror(errno));
	exit(2);
}

static _Noreturn void wrong(const char *what, const char *line)
{
	fprintf(stderr, "mcpasses: %s: '%.*s'\n", what, (int)strcspn(line, "\r\n"), line);
	exit(1);
}

static void connect_to(const char *path)
{
	enum { TRIES = 3000, WAIT_US = 20000 };
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd = -1;

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", path);
	for (int i = 0; i < TRIES; i++) {
		fd = socket(AF_UNIX, SOCK_STREAM, 0);
		if (fd < 0)
			die("socket");
		if (connect(fd, (struct sockaddr *)&addr, sizeof(addr)) == 0)
			break;
		close(fd);
		fd = -1;
		usleep(WAIT_US); /* it may only just have been started */
	}
	if (fd < 0)
		die(path);
	in = fdopen(fd, "r");
	out = fdopen(dup(fd), "w");
	if (!in || !out)
		die("fdopen");
}

/* What key number i is worth: its number, over and over. */
static void make_value(char *to, unsigned long i)
{
	char text[24];
	size_t len = (size_t)snprintf(text, sizeof(text), "%lu,", i);

	for (size_t at = 0; at < value_bytes; at += len)
		memcpy(to + at, text, len < value_bytes - at ? len : value_bytes - at);
	memcpy(to + value_bytes, "\r\n", 3);
}

static void fill(void)
{
	char line[256];

	for (unsigned long i = 0; i < keys; i += BATCH) {
		for (unsigned long k = i; k < keys && k < i + BATCH; k++) {
			make_value(wanted, k);
			fprintf(out, "set key%lu 0 0 %zu\r\n%s", k, (size_t)value_bytes, wanted);
		}
		fflush(out);
		for (unsigned long k = i; k < keys && k < i + BATCH; k++)
			if (!fgets(line, sizeof(line), in) || strcmp(line, "STORED\r\n") != 0)
				wrong("not stored", line);
	}
}

/* Values that the server has thrown out are missed, not wrong. Returns how many were there. */
static unsigned long get_batch(const uint32_t *key, unsigned n)
{
	unsigned long found = 0;
	char line[256];

	fprintf(out, "get");
	for (unsigned i = 0; i < n; i++)
		fprintf(out, " key%u", key[i]);
	fprintf(out, "\r\n");
	fflush(out);
	while (fgets(line, sizeof(line), in) && strncmp(line, "VALUE key", 9) == 0) {
		make_value(wanted, strtoul(line + 9, NULL, 10));
		if (fread(value, 1, value_bytes + 2, in) != value_bytes + 2 ||
			memcmp(value, wanted, value_bytes + 2) != 0)
			wrong("wrong value", line);
		found++;
	}
	if (strcmp(line, "END\r\n") != 0)
		wrong("not an answer to get", line);
	return found;
}

static uint64_t draw(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static void shuffle(uint32_t *order, uint64_t *state)
{
	for (unsigned long i = keys - 1; i > 0; i--) {
		unsigned long j = draw(state) % (i + 1);
		uint32_t t = order[i];

		order[i] = order[j];
		order[j] = t;
	}
}

static double now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static void phase(bool mark, const char *what, unsigned long pass)
{
	char name[32];

	if (!mark)
		return;
	snprintf(name, sizeof(name), "%s %lu", what, pass);
	marker_open(name);
}

/* The pages of the process's anonymous memory, by node. */
static void print_nodes(long pid)
{
	unsigned long on[MAX_NODES] = {0};
	const char *comma = "";
	char path[64];
	char line[4096];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%ld/numa_maps", pid);
	f = fopen(path, "r");
	if (!f)
		die(path);
	while (fgets(line, sizeof(line), f)) {
		if (!strstr(line, " anon="))
			continue;
		for (char *p = strstr(line, " N"); p; p = strstr(p + 1, " N")) {
			unsigned long pages;
			unsigned node;

			if (sscanf(p, " N%u=%lu", &node, &pages) == 2 && node < MAX_NODES)
				on[node] += pages;
		}
	}
	fclose(f);
	printf(", \"nodes\": {");
	for (int i = 0; i < MAX_NODES; i++)
		if (on[i]) {
			printf("%s\"%d\": %lu", comma, i, on[i]);
			comma = ", ";
		}
	printf("}");
}

static int usage(FILE *to, int status)
{
	fputs("Usage: mcpasses --socket PATH [--fill] [--passes N] [OPTION...]\n"
	      "\n"
	      "Fills a memcached, and reads all of it again in passes, each in another order.\n"
	      "\n"
	      "  --socket PATH   the server's\n"
	      "  --keys N        (100000)\n"
	      "  --bytes N       of a value (1000)\n"
	      "  --fill          store them; otherwise they are there already\n"
	      "  --passes N      (0)\n"
	      "  --period MS     a pass begins so long after the one before (0: at once)\n"
	      "  --pid N         the server's, to say where its pages are\n"
	      "  --mark          marks passes and the pauses between them for the cost model\n"
	      "\n"
	      "Exit status: 1 when a value was wrong, 2 for everything else.\n",
		to);
	return status;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"socket", required_argument, NULL, 's'},
		{"keys", required_argument, NULL, 'k'},
		{"bytes", required_argument, NULL, 'b'},
		{"fill", no_argument, NULL, 'f'},
		{"passes", required_argument, NULL, 'n'},
		{"period", required_argument, NULL, 'P'},
		{"pid", required_argument, NULL, 'p'},
		{"mark", no_argument, NULL, 'M'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	const char *path = NULL;
	unsigned long passes = 0;
	unsigned long period = 0;
	uint64_t state = 88172645463325252u;
	bool filling = false;
	bool mark = false;
	long pid = 0;
	uint32_t *order;
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (c) {
		case 's':
			path = optarg;
			break;
		case 'k':
			keys = strtoul(optarg, NULL, 10);
			break;
		case 'b':
			value_bytes = strtoul(optarg, NULL, 10);
			break;
		case 'f':
			filling = true;
			break;
		case 'n':
			passes = strtoul(optarg, NULL, 10);
			break;
		case 'P':
			period = strtoul(optarg, NULL, 10);
			break;
		case 'p':
			pid = strtol(optarg, NULL, 10);
			break;
		case 'M':
			mark = true;
			break;
		case 'h':
			return usage(stdout, 0);
		default:
			return usage(stderr, 2);
		}
	}
	if (!path || optind < argc || keys < 1 || keys > UINT32_MAX || value_bytes < 1)
		return usage(stderr, 2);
	value = malloc(value_bytes + 3);
	wanted = malloc(value_bytes + 3);
	order = malloc(keys * sizeof(*order));
	if (!value || !wanted || !order)
		die("malloc");
	connect_to(path);
	if (filling)
		fill();
	for (unsigned long i = 0; i < keys; i++)
		order[i] = (uint32_t)i;
	printf("{\"begin\": true, \"keys\": %lu", keys);
	if (pid)
		print_nodes(pid);
	printf("}\n");
	fflush(stdout);
	for (unsigned long pass = 1; pass <= passes; pass++) {
		double start;
		double ms;
		unsigned long found = 0;

		shuffle(order, &state);
		start = now_ms();
		phase(mark, "pass", pass);
		for (unsigned long i = 0; i < keys; i += BATCH)
			found += get_batch(
				order + i, (unsigned)(keys - i < BATCH ? keys - i : BATCH));
		if (mark)
			marker_close();
		ms = now_ms() - start;
		printf("{\"pass\": %lu, \"accesses\": %lu, \"found\": %lu, \"ms\": %.3f", pass,
			keys, found, ms);
		if (pid)
			print_nodes(pid);
		printf("}\n");
		fflush(stdout);
		if (pass < passes && now_ms() < start + (double)period) {
			phase(mark, "pause", pass);
			usleep((useconds_t)((start + (double)period - now_ms()) * 1e3));
			if (mark)
				marker_close();
		}
	}
	return 0;
}
