// SPDX-License-Identifier: MIT
/*
 * starter [--pid FILE] [--fixed] [--weighted NODES] PROGRAM [ARG...]
 *     starts a program so that it can be found by the number in FILE, with the same addresses each
 *     time, with its memory over these nodes by the kernel's weights
 */
#include <errno.h>
#include <getopt.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "benchmarks/lab/eat.h"

/* Linux 6.9; the headers of an older one lack it */
enum { WEIGHTED_INTERLEAVE = 6, MAX_NODES = 64 };

static _Noreturn void die(const char *what)
{
	fprintf(stderr, "starter: %s: %s\n", what, strerror(errno));
	exit(125);
}

static void write_pid(const char *path)
{
	FILE *f = fopen(path, "we");

	if (!f || fprintf(f, "%d\n", (int)getpid()) < 0 || fclose(f))
		die(path);
}

static int usage(void)
{
	fputs("Usage: starter [--pid FILE] [--fixed] [--weighted NODE[,NODE...]] PROGRAM "
	      "[ARG...]\n",
		stderr);
	return 125;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"pid", required_argument, NULL, 'p'},
		{"fixed", no_argument, NULL, 'f'},
		{"weighted", required_argument, NULL, 'w'},
		{NULL, 0, NULL, 0},
	};
	uint64_t nodes;
	int c;

	while ((c = getopt_long(argc, argv, "+", options, NULL)) != -1) {
		switch (c) {
		case 'p':
			write_pid(optarg);
			break;
		case 'f':
			if (personality(ADDR_NO_RANDOMIZE) < 0)
				die("--fixed");
			break;
		case 'w':
			if (eat_parse(optarg, &nodes, NULL))
				return usage();
			if (syscall(SYS_set_mempolicy, WEIGHTED_INTERLEAVE, &nodes,
				    MAX_NODES + 1ul))
				die("--weighted");
			break;
		default:
			return usage();
		}
	}
	if (optind == argc)
		return usage();
	execvp(argv[optind], argv + optind);
	die(argv[optind]);
}
