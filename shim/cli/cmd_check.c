// SPDX-License-Identifier: MIT
/*
 * numalift check: what would work here, what would not, and what would bring it back. It asks by
 * trying wherever it can, as the library does, and changes nothing.
 */
#include <stdbool.h>

#include "shim/cli/args.h"
#include "shim/cli/check.h"
#include "shim/cli/cli.h"

enum { OPT_JSON, OPT_LIBRARY };

static const struct lift_cli_option table[] = {
	[OPT_JSON] = {.name = "json", .help = "Print JSON."},
	[OPT_LIBRARY] =
		{
			.name = "library",
			.arg = "FILE",
			.help = "The libnumalift.so to check, instead of the one that belongs to "
				"this command.",
		},
};

static size_t options(const struct lift_cli_option **ret)
{
	*ret = table;
	return sizeof(table) / sizeof(table[0]);
}

static int check(const char *program, const char *library, bool json)
{
	static struct lift_check c; /* large, and zero */
	int status;

	c.report.group = "Settings";
	lift_check_settings(&c);
	c.report.group = "Machine";
	lift_check_machine(&c);
	c.report.group = "Placement";
	lift_check_placement(&c);
	c.report.group = "Promotion";
	lift_check_promotion(&c);
	c.report.group = "Library";
	lift_check_library(&c, library);
	if (program) {
		c.report.group = "Program";
		lift_check_program(&c, program);
	}

	if (json)
		lift_report_json(&c.report, stdout);
	else
		lift_report_print(&c.report, stdout);
	status = lift_report_verdict(&c.report) == LIFT_VERDICT_OFF ? LIFT_EXIT_OFF : LIFT_EXIT_OK;
	lift_report_fini(&c.report);
	return lift_cli_finish(status);
}

static int run(const struct lift_command *self, int argc, char **argv)
{
	const char *library = NULL;
	const char *program = NULL;
	struct lift_args args;
	bool json = false;
	const char *value;
	int i;

	lift_args_init(&args, self, argc, argv);
	while ((i = lift_args_next(&args, &value)) >= 0) {
		if (i == OPT_JSON)
			json = true;
		else
			library = value;
	}
	if (i == LIFT_ARGS_EXIT)
		return args.status;
	if (args.at < argc)
		program = argv[args.at++];
	/* Its arguments may stay on the line: `run` was replaced by `check`. */
	return check(program, library, json);
}

const struct lift_command lift_cmd_check = {
	.name = "check",
	.usage = "[OPTION]... [[--] PROGRAM [ARGUMENT]...]",
	.summary = "Tell what works here, and what would bring the rest back.",
	.text = "Tells what the library can do here: kernel, nodes, permissions, limits, the "
		"library\n"
		"itself, and with PROGRAM (which is not started) whether it can be served. Each "
		"line has\n"
		"a verdict: ok, limited or off; an arrow points at what would bring it back.\n\n"
		"The exit status is 1 when something is off, else 0.\n",
	.options = options,
	.run = run,
};
