// SPDX-License-Identifier: MIT
/*
 * What the commands of `numalift` share: the table they are found in, the exit statuses, and the
 * way to speak to people. One thread; everything here may allocate, print and exit.
 */
#ifndef NUMALIFT_SHIM_CLI_CLI_H
#define NUMALIFT_SHIM_CLI_CLI_H

#include <stddef.h>

/* As env(1) and timeout(1) have them, so that a wrapper in between goes unnoticed. */
enum lift_exit {
	LIFT_EXIT_OK = 0,
	LIFT_EXIT_OFF = 1,      /* something does not work here */
	LIFT_EXIT_USAGE = 2,    /* the command line or a setting is not understood */
	LIFT_EXIT_FAILED = 125, /* numalift itself could not do it */
	LIFT_EXIT_NOT_EXECUTABLE = 126,
	LIFT_EXIT_NOT_FOUND = 127
};

/* One option of a command. All strings live as long as the process. */
struct lift_cli_option {
	const char *name;     /* without the dashes */
	char letter;          /* 0: none */
	const char *arg;      /* what its value is called in the help; NULL: it takes none */
	const char *help;     /* one line */
	const char *accepted; /* what can be written, one line; may be NULL */
	const char *standard; /* what holds without it; may be NULL or empty */
};

struct lift_command {
	const char *name;
	const char *usage;   /* what follows the name */
	const char *summary; /* one line, for the list of commands */
	const char *text;    /* the same at more length; lines end with a newline */
	/* The options, apart from --help, which all have. */
	size_t (*options)(const struct lift_cli_option **ret);
	int (*run)(const struct lift_command *self, int argc, char **argv);
};

extern const struct lift_command lift_cmd_run;
extern const struct lift_command lift_cmd_topology;
extern const struct lift_command lift_cmd_check;
extern const struct lift_command lift_cmd_stat;

/* One line on stderr, with the library's own prefix. */
void lift_cli_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/*
 * Ends the process with a message when stdout could not be written in full (a full disk, a closed
 * pipe): a table that is cut off must not pass for a whole one. Otherwise returns @status.
 */
int lift_cli_finish(int status);

#endif
