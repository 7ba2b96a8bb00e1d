// SPDX-License-Identifier: MIT
/*
 * The command `numalift`: finds the subcommand and hands over.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/cli/args.h"
#include "shim/cli/cli.h"

static const struct lift_command *const commands[] = {
	&lift_cmd_run,
	&lift_cmd_topology,
	&lift_cmd_check,
	&lift_cmd_stat,
};

#define NR_COMMANDS (sizeof(commands) / sizeof(commands[0]))

void lift_cli_say(const char *fmt, ...)
{
	va_list ap;

	/* In the order in which things were said, where both streams go to one file. */
	(void)fflush(stdout);
	(void)fputs("numalift: ", stderr);
	va_start(ap, fmt);
	(void)vfprintf(stderr, fmt, ap);
	va_end(ap);
	(void)fputc('\n', stderr);
}

int lift_cli_finish(int status)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return status;
	lift_cli_say("standard output: %s", strerror(errno));
	exit(LIFT_EXIT_FAILED);
}

static void usage(FILE *out)
{
	(void)fputs("Usage: numalift COMMAND [OPTION]...\n"
		    "       numalift --help | --version\n\n"
		    "Places the memory of unmodified programs on NUMA nodes by what it is for.\n\n"
		    "Commands:\n",
		out);
	for (size_t i = 0; i < NR_COMMANDS; i++)
		(void)fprintf(out, "  %-10s%s\n", commands[i]->name, commands[i]->summary);
	(void)fputs(
		"\n'numalift COMMAND --help' tells more about each; numalift(1) and libnumalift(7) "
		"are the\n"
		"manual.\n",
		out);
}

static int unknown(const char *word)
{
	const char *words[NR_COMMANDS + 2] = {"--help", "--version"};
	const char *meant;

	for (size_t i = 0; i < NR_COMMANDS; i++)
		words[2 + i] = commands[i]->name;
	meant = lift_nearest(word, words, NR_COMMANDS + 2);
	if (meant)
		lift_cli_say("there is no command '%s'; did you mean '%s'?", word, meant);
	else
		lift_cli_say("there is no command '%s'", word);
	usage(stderr);
	return LIFT_EXIT_USAGE;
}

int main(int argc, char **argv)
{
	if (argc < 2) {
		usage(stderr);
		return LIFT_EXIT_USAGE;
	}
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
		usage(stdout);
		return lift_cli_finish(LIFT_EXIT_OK);
	}
	if (strcmp(argv[1], "--version") == 0) {
		(void)puts("numalift " LIFT_VERSION);
		return lift_cli_finish(LIFT_EXIT_OK);
	}
	for (size_t i = 0; i < NR_COMMANDS; i++)
		if (strcmp(argv[1], commands[i]->name) == 0)
			return commands[i]->run(commands[i], argc - 1, argv + 1);
	return unknown(argv[1]);
}
