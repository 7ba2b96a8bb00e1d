// SPDX-License-Identifier: MIT
/*
 * numalift run: the strict front door. What the library would warn about is refused here, before
 * the program starts; then the environment is set and the program takes this process over, so that
 * its parent sees its exit status, its signals and its process id as if numalift had not been
 * there.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shim/cli/args.h"
#include "shim/cli/cli.h"
#include "shim/cli/library.h"
#include "shim/cli/program.h"
#include "shim/cli/settings.h"

enum {
	OPT_LIBRARY,
	OPT_VERBOSE,
	OPT_SETTINGS /* the first of them */
};

static size_t options(const struct lift_cli_option **ret)
{
	static struct lift_cli_option table[OPT_SETTINGS + LIFT_SETTINGS_MAX] = {
		[OPT_LIBRARY] =
			{
				.name = "library",
				.arg = "FILE",
				.help = "The libnumalift.so to use, instead of the one that "
					"belongs to this command.",
			},
		[OPT_VERBOSE] =
			{
				.name = "verbose",
				.letter = 'v',
				.help = "Print what is set in the environment, and what is "
					"started.",
			},
	};

	*ret = table;
	return OPT_SETTINGS + lift_settings_options(table + OPT_SETTINGS);
}

static void set(const char *name, const char *value, bool verbose)
{
	if (setenv(name, value, 1) < 0) {
		lift_cli_say("%s: %s", name, strerror(errno));
		exit(LIFT_EXIT_FAILED);
	}
	if (verbose)
		lift_cli_say("%s=%s", name, value);
}

/* What cannot work is said, and the program started all the same: it was asked for. */
static void warn_about(const struct lift_program *p)
{
	const char *what = NULL;

	if (p->secure == LIFT_SECURE_SETUID)
		what = "is setuid, for which LD_PRELOAD is ignored";
	else if (p->secure == LIFT_SECURE_SETGID)
		what = "is setgid, for which LD_PRELOAD is ignored";
	else if (p->secure == LIFT_SECURE_CAPABILITIES)
		what = "has file capabilities, for which LD_PRELOAD is ignored";
	else if (p->trouble)
		return;
	else if (!p->elf.native)
		what = "is for another architecture than the library";
	else if (p->elf.static_linked)
		what = "is statically linked";
	else if (lift_program_is_musl(p))
		what = "is built for musl, which cannot load the library (LD_PRELOAD is left as it "
		       "was)";
	if (what)
		lift_cli_say("%s %s: its memory is not placed ('numalift check -- %s' tells more)",
			p->runs, what, p->path);
}

static int cannot_start(const char *name, int rc, bool found)
{
	if (rc == -ENOENT && !found) {
		lift_cli_say("%s: no such program", name);
		return LIFT_EXIT_NOT_FOUND;
	}
	if (rc == -ENOENT)
		lift_cli_say("%s: what is to run it (named in its first line or header) is missing",
			name);
	else
		lift_cli_say("%s: cannot be run: %s", name, strerror(-rc));
	return LIFT_EXIT_NOT_EXECUTABLE;
}

static int start(char **argv, const char *const *given, const char *asked_library, bool verbose)
{
	struct lift_program program;
	const struct lift_option *o;
	char library[PATH_MAX];
	char path[PATH_MAX];
	char *preload;
	char *other;
	char *why;
	int rc;

	if (lift_library_find(asked_library, library, &why)) {
		lift_cli_say("%s", why);
		free(why);
		return LIFT_EXIT_FAILED;
	}
	rc = lift_program_find(argv[0], path);
	if (rc)
		return cannot_start(argv[0], rc, false);
	lift_program_look(path, &program);
	warn_about(&program);

	if (!lift_program_is_musl(&program)) {
		lift_library_preload(getenv("LD_PRELOAD"), library, &preload, &other);
		if (other)
			lift_cli_say("LD_PRELOAD has %s already, which is used instead of %s",
				other, library);
		set("LD_PRELOAD", preload, verbose);
		free(preload);
		free(other);
	}
	for (size_t i = 0; i < LIFT_SETTINGS_MAX && (o = lift_config_option(i)); i++)
		if (given[i])
			set(o->name, given[i], verbose);
	if (verbose)
		lift_cli_say("starting %s", path);
	(void)execvp(argv[0], argv);
	return cannot_start(argv[0], -errno, true);
}

static int run(const struct lift_command *self, int argc, char **argv)
{
	const char *given[LIFT_SETTINGS_MAX] = {NULL};
	const char *library = NULL;
	struct lift_config config;
	struct lift_args args;
	bool verbose = false;
	const char *value;
	int i;

	lift_args_init(&args, self, argc, argv);
	while ((i = lift_args_next(&args, &value)) >= 0) {
		if (i == OPT_LIBRARY)
			library = value;
		else if (i == OPT_VERBOSE)
			verbose = true;
		else
			given[i - OPT_SETTINGS] = value;
	}
	if (i == LIFT_ARGS_EXIT)
		return args.status;
	if (args.at >= argc) {
		lift_cli_say("run: no program is named");
		return lift_args_usage(&args);
	}
	lift_settings_strangers();
	if (lift_settings_read(&config, given, lift_settings_say, NULL)) {
		lift_cli_say("%s was not started", argv[args.at]);
		return LIFT_EXIT_USAGE;
	}
	return start(argv + args.at, given, library, verbose);
}

const struct lift_command lift_cmd_run = {
	.name = "run",
	.usage = "[OPTION]... [--] PROGRAM [ARGUMENT]...",
	.summary = "Start a program whose memory is placed.",
	.text = "Starts PROGRAM with libnumalift.so added to LD_PRELOAD. Each option but the first "
		"two\n"
		"sets one variable of the environment, --place=VALUE for example NUMALIFT_PLACE; "
		"what is\n"
		"there already stays otherwise. A value that is not understood, in an option or in "
		"the\n"
		"environment, is refused with status 2 before anything is started.\n\n"
		"The exit status is that of PROGRAM; 125: numalift failed; 126: PROGRAM cannot be "
		"run;\n"
		"127: there is no such program.\n",
	.options = options,
	.run = run,
};
