// SPDX-License-Identifier: MIT
/*
 * Reads a command's options from its table, and prints the help made from the same table, so that
 * the two cannot differ. getopt_long(3) was not taken because it accepts abbreviations, which break
 * when an option is added, and cannot name the word that was probably meant.
 */
#ifndef NUMALIFT_SHIM_CLI_ARGS_H
#define NUMALIFT_SHIM_CLI_ARGS_H

#include <stddef.h>
#include <stdio.h>

#include "shim/cli/cli.h"

struct lift_args {
	const struct lift_command *cmd;
	const struct lift_cli_option *option;
	size_t nr;
	int argc;
	char **argv;
	int at;              /* next word */
	const char *cluster; /* rest of a word like -vx; NULL: none */
	int status;          /* to exit with, after LIFT_ARGS_EXIT */
};

enum {
	LIFT_ARGS_END = -1, /* the words from argv[at] on are no options */
	LIFT_ARGS_EXIT = -2 /* help was given, or a mistake was explained: exit with .status */
};

/* argv[0] is the command's name. */
void lift_args_init(struct lift_args *a, const struct lift_command *cmd, int argc, char **argv);

/*
 * Index of the next option in the table, with its value (NULL when it takes none), or LIFT_ARGS_*.
 * Options end at the first word that is none, or behind `--`.
 */
int lift_args_next(struct lift_args *a, const char **ret_value);

/* Prints how the command is called, for after a message; returns the status to exit with. */
int lift_args_usage(const struct lift_args *a);

/* Complains about the words that are left over, if any, in a command that takes none. */
int lift_args_done(const struct lift_args *a);

void lift_args_help(const struct lift_command *cmd, FILE *out);

/*
 * The one of @words[0..nr) that @word was probably meant to be, or NULL when none is near.
 */
const char *lift_nearest(const char *word, const char *const *words, size_t nr);

#endif
