// SPDX-License-Identifier: MIT
/*
 * A load for memcached: fills it, then gets keys in passes and compares the values. After each pass
 * a line of JSON, with how long the answers took and where the server's pages are.
 *
 * A pass is every key once, in an order of the pass; or a number of gets by Zipf's law, where which
 * keys are popular follows from the seed and has nothing to do with when they were stored.
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
#include <unistd.h>

#include "benchmarks/lab/draw.h"
#include "benchmarks/lab/pass.h"

enum { MAX_CONNECTIONS = 64 };

struct connection {
	FILE *in;
	FILE *out;
	double asked_ms;
	uint32_t *key; /* of the request that is on its way */
	unsigned nr_keys;
	bool store;
};

static struct pass pass = {.program = "mcpasses"};
static struct connection connections[MAX_CONNECTIONS];
static unsigned long nr_connections = 1;
static unsigned long keys = 100000;
static unsigned long value_bytes = 1000;
static unsigned long batch = 20; /* every change between it and the server costs much in a guest */
static unsigned long gets;       /* of a pass; 0: every key once */
static unsigned long sets;       /* percent of the requests that store */
static double zipf;
static char *value;
static char *wanted;
static unsigned long found;
static unsigned long stored;

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

static void *need(void *p)
{
	if (!p)
		die("memory");
	return p;
}

static void connect_to(const char *path, struct connection *c)
{
	enum { TRIES = 3000, WAIT_US = 20000 };
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd = -1;

	if (strlen(path) >= sizeof(addr.sun_path)) {
		errno = ENAMETOOLONG;
		die(path);
	}
	memcpy(addr.sun_path, path, strlen(path));
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
	c->in = fdopen(fd, "r");
	c->out = fdopen(dup(fd), "w");
	if (!c->in || !c->out)
		die("fdopen");
	c->key = need(calloc(batch, sizeof(*c->key)));
}

/* What key number i is worth: words that follow from it. Few instructions: it is the server that is
 * measured. */
static void make_value(char *to, unsigned long i)
{
	uint64_t word = draw_mix(i + 1);
	size_t at = 0;

	for (; at + sizeof(word) <= value_bytes; at += sizeof(word), word++)
		memcpy(to + at, &word, sizeof(word));
	memcpy(to + at, &word, value_bytes - at);
	memcpy(to + value_bytes, "\r\n", 2);
}

static void ask(struct connection *c)
{
	c->asked_ms = pass_now_ms();
	if (c->store) {
		for (unsigned i = 0; i < c->nr_keys; i++) {
			make_value(wanted, c->key[i]);
			fprintf(c->out, "set key%u 0 0 %lu\r\n", c->key[i], value_bytes);
			fwrite(wanted, 1, value_bytes + 2, c->out);
		}
	} else {
		fprintf(c->out, "get");
		for (unsigned i = 0; i < c->nr_keys; i++)
			fprintf(c->out, " key%u", c->key[i]);
		fprintf(c->out, "\r\n");
	}
	if (fflush(c->out))
		die("request");
}

/* Without answers: each would wake this program up. How many were stored is asked in the end. */
static void fill(void)
{
	static const char items[] = "STAT total_items ";
	struct connection *c = &connections[0];
	unsigned long have = 0;
	char line[256] = "";

	for (unsigned long i = 0; i < keys; i++) {
		make_value(wanted, i);
		fprintf(c->out, "set key%lu 0 0 %lu noreply\r\n", i, value_bytes);
		fwrite(wanted, 1, value_bytes + 2, c->out);
	}
	fprintf(c->out, "stats\r\n");
	if (fflush(c->out))
		die("request");
	while (fgets(line, sizeof(line), c->in) && strncmp(line, "STAT ", 5) == 0)
		if (strncmp(line, items, strlen(items)) == 0)
			have = strtoul(line + strlen(items), NULL, 10);
	if (strcmp(line, "END\r\n") != 0 || have < keys)
		wrong("not all stored", line);
}

static void answer_to_set(struct connection *c)
{
	char line[256] = "";

	for (unsigned i = 0; i < c->nr_keys; i++) {
		if (!fgets(line, sizeof(line), c->in) || strcmp(line, "STORED\r\n") != 0)
			wrong("not stored", line);
		stored++;
	}
}

/* Values that the server has thrown out are missed, not wrong. They come in the order asked for. */
static void answer_to_get(struct connection *c)
{
	unsigned next = 0;
	char line[256] = "";

	while (fgets(line, sizeof(line), c->in) && strncmp(line, "VALUE key", 9) == 0) {
		unsigned long k = strtoul(line + 9, NULL, 10);

		while (next < c->nr_keys && c->key[next] != k)
			next++;
		if (next++ >= c->nr_keys)
			wrong("not asked for", line);
		make_value(wanted, k);
		if (fread(value, 1, value_bytes + 2, c->in) != value_bytes + 2 ||
			memcmp(value, wanted, value_bytes + 2) != 0)
			wrong("wrong value", line);
		found++;
	}
	if (strcmp(line, "END\r\n") != 0)
		wrong("not an answer to get", line);
}

/* --- passes ----------------------------------------------------------------------------------- */

static uint32_t *order;
static struct draw_lots lots;
static uint64_t state;
static double *took; /* of each request of a pass, in ms */
static unsigned long requests;

static uint32_t next_key(unsigned long i)
{
	return order[zipf > 0 ? draw_lot(&lots, draw(&state)) : i % keys];
}

/* All connections ask, then all are listened to, so the server has always more to do than one. */
static void requests_of(unsigned long n)
{
	unsigned long i = 0;

	requests = 0;
	while (i < n) {
		unsigned long asked = 0;

		for (; asked < nr_connections && i < n; asked++) {
			struct connection *c = &connections[asked];

			c->store = draw_below(draw(&state), 100) < sets;
			for (c->nr_keys = 0; c->nr_keys < batch && i < n; i++)
				c->key[c->nr_keys++] = next_key(i);
			ask(c);
		}
		for (unsigned long k = 0; k < asked; k++) {
			if (connections[k].store)
				answer_to_set(&connections[k]);
			else
				answer_to_get(&connections[k]);
			took[requests++] = pass_now_ms() - connections[k].asked_ms;
		}
	}
}

static int by_time(const void *a, const void *b)
{
	double x = *(const double *)a;
	double y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/* The time within which so many of a thousand requests were answered. */
static double within(unsigned long thousandths)
{
	unsigned long i = (requests * thousandths + 999) / 1000;

	return took[i ? i - 1 : 0];
}

static void print_nodes(long pid)
{
	unsigned long on[PASS_MAX_NODES] = {0};

	if (!pid)
		return;
	if (!pass_add_nodes(pid, on))
		die("pages of the server");
	printf(", ");
	pass_print_nodes(on);
}

static void run(long pid)
{
	unsigned long n = gets ? gets : keys;

	printf("{\"begin\": true, \"keys\": %lu", keys);
	print_nodes(pid);
	printf("}\n");
	fflush(stdout);
	while (pass_next(&pass)) {
		if (!(zipf > 0))
			draw_shuffle(order, keys, &state);
		found = 0;
		stored = 0;
		pass_begin(&pass);
		requests_of(n);
		pass_end(&pass);
		qsort(took, requests, sizeof(*took), by_time);
		printf("{\"pass\": %lu, \"accesses\": %lu, \"found\": %lu, \"stored\": %lu, "
		       "\"ms\": %.3f, "
		       "\"p50_ms\": %.3f, \"p99_ms\": %.3f, \"p999_ms\": %.3f",
			pass.number, n, found, stored, pass.ms, within(500), within(990),
			within(999));
		print_nodes(pid);
		printf("}\n");
		fflush(stdout);
		pass_rest(&pass);
	}
}

/* --- options ---------------------------------------------------------------------------------- */

static int usage(FILE *to, int status)
{
	fputs("Usage: mcpasses --socket PATH [--fill] [--passes N] [OPTION...]\n"
	      "\n"
	      "Fills a memcached, and gets from it in passes.\n"
	      "\n"
	      "  --socket PATH   the server's\n"
	      "  --keys N        (100000)\n"
	      "  --bytes N       of a value (1000)\n"
	      "  --fill          store them; otherwise they are there already\n"
	      "  --passes N      (0)\n"
	      "  --gets N        of a pass (0: every key once)\n"
	      "  --zipf EXPONENT some keys are asked for more than others (0: all alike)\n"
	      "  --sets PERCENT  of the requests store again what is there (0)\n"
	      "  --batch N       keys of one request (20)\n"
	      "  --connections N (1)\n"
	      "  --seed N        (1)\n"
	      "  --period MS     a pass begins so long after the one before (0: at once)\n"
	      "  --pid N         the server's, to say where its pages are\n"
	      "  --mark[=FROM]   marks passes and the pauses between them for the cost\n"
	      "                  model; from this one on, or all\n"
	      "\n"
	      "Exit status: 1 when a value was wrong, 2 for everything else.\n",
		to);
	return status;
}

static const struct option LONG[] = {
	{"socket", required_argument, NULL, 's'},
	{"keys", required_argument, NULL, 'k'},
	{"bytes", required_argument, NULL, 'b'},
	{"fill", no_argument, NULL, 'f'},
	{"gets", required_argument, NULL, 'g'},
	{"zipf", required_argument, NULL, 'z'},
	{"sets", required_argument, NULL, 'S'},
	{"batch", required_argument, NULL, 'B'},
	{"connections", required_argument, NULL, 'c'},
	{"seed", required_argument, NULL, 'R'},
	{"pid", required_argument, NULL, 'p'},
	PASS_OPTIONS,
	{"help", no_argument, NULL, 'h'},
	{NULL, 0, NULL, 0},
};

int main(int argc, char **argv)
{
	const char *path = NULL;
	bool filling = false;
	unsigned long seed = 1;
	long pid = 0;
	int index;
	int c;

	while ((c = getopt_long(argc, argv, "", LONG, &index)) != -1) {
		const char *name = c == '?' ? "" : LONG[index].name;
		char *end;

		if (pass_option(&pass, c, name, optarg, 0))
			continue;

		switch (c) {
		case 's':
			path = optarg;
			break;
		case 'k':
			keys = pass_number(&pass, name, optarg, 1, UINT32_MAX);
			break;
		case 'b':
			value_bytes = pass_number(&pass, name, optarg, 1, 1ul << 20);
			break;
		case 'f':
			filling = true;
			break;
		case 'g':
			gets = pass_number(&pass, name, optarg, 0, UINT32_MAX);
			break;
		case 'z':
			zipf = strtod(optarg, &end);
			if (end == optarg || *end || !(zipf >= 0 && zipf <= 4))
				return usage(stderr, 2);
			break;
		case 'S':
			sets = pass_number(&pass, name, optarg, 0, 100);
			break;
		case 'B':
			batch = pass_number(&pass, name, optarg, 1, 100);
			break;
		case 'c':
			nr_connections = pass_number(&pass, name, optarg, 1, MAX_CONNECTIONS);
			break;
		case 'R':
			seed = pass_number(&pass, name, optarg, 0, UINT32_MAX);
			break;
		case 'p':
			pid = (long)pass_number(&pass, name, optarg, 1, INT32_MAX);
			break;
		case 'h':
			return usage(stdout, 0);
		default:
			return usage(stderr, 2);
		}
	}
	if (!path || optind < argc)
		return usage(stderr, 2);
	value = need(malloc(value_bytes + 2));
	wanted = need(malloc(value_bytes + 2));
	order = need(calloc(keys, sizeof(*order)));
	took = need(calloc((gets ? gets : keys) / batch + 1, sizeof(*took)));
	for (unsigned long i = 0; i < keys; i++)
		order[i] = (uint32_t)i;
	state = draw_mix(seed + 1) | 1;
	if (zipf > 0) {
		draw_shuffle(order, keys, &state);
		if (!draw_lots_init(&lots, keys, zipf))
			die("memory");
	}
	for (unsigned long i = 0; i < nr_connections; i++)
		connect_to(path, &connections[i]);
	if (filling)
		fill();
	run(pid);
	return 0;
}
