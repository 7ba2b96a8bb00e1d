// SPDX-License-Identifier: MIT
/*
 * eater NODE[,NODE...]:MIB    fills these nodes but for so much each, says "full", and stays
 */
#include <stdio.h>
#include <unistd.h>

#include "benchmarks/lab/eat.h"

int main(int argc, char **argv)
{
	unsigned long left;
	uint64_t nodes;

	if (argc != 2 || eat_parse(argv[1], &nodes, &left)) {
		fputs("Usage: eater NODE[,NODE...]:MIB\n", stderr);
		return 2;
	}
	eat_nodes(nodes, left);
	puts("full");
	fflush(stdout);
	for (;;)
		pause();
}
