// SPDX-License-Identifier: MIT
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "shim/cli/check.h"
#include "shim/cli/elf_file.h"
#include "shim/cli/library.h"
#include "shim/cli/probe.h"
#include "shim/cli/program.h"
#include "shim/cli/text.h"

#define OK LIFT_VERDICT_OK
#define LIMITED LIFT_VERDICT_LIMITED
#define OFF LIFT_VERDICT_OFF

/* The oldest whose faults are known and mended. */
#define MIMALLOC_OLDEST 209

static void check_mimalloc(struct lift_check *c, const char *library)
{
	struct lift_probe_mimalloc mi;
	const char *name = NULL;
	struct lift_elf elf;
	int rc;

	if (lift_elf_read(library, &elf) == 0)
		name = lift_elf_needs(&elf, "libmimalloc");
	if (!name) {
		lift_report_add(&c->report, "mimalloc", OK, NULL, "part of the library");
		return;
	}
	rc = lift_probe_mimalloc(name, &mi);
	if (rc || !mi.version)
		lift_report_add(&c->report, "mimalloc", OFF, "apt install libmimalloc-dev",
			"cannot be loaded: %s",
			rc > 0 ? sigabbrev_np(rc)
			: rc   ? lift_text_errno(rc)
			       : mi.text);
	else
		lift_report_add(&c->report, "mimalloc", mi.version < MIMALLOC_OLDEST ? LIMITED : OK,
			mi.version < MIMALLOC_OLDEST ? "mimalloc 2.0.9 or newer" : NULL,
			"%d.%d.%d, %s", mi.version / 100, mi.version / 10 % 10, mi.version % 10,
			mi.text);
}

/* The first line of what a run said, apart from complaints about settings, which are told
 * elsewhere. */
static const char *first_line(char *said)
{
	char *line;

	for (line = strtok(said, "\n"); line; line = strtok(NULL, "\n"))
		if (strncmp(line, "numalift: NUMALIFT", 18) != 0)
			return line;
	return NULL;
}

static void check_preload(struct lift_check *c, const char *library)
{
	struct lift_probe_preload run = {0};
	char path[PATH_MAX];
	const char *line;
	char *preload;
	char *other;
	int rc;

	lift_library_preload(getenv("LD_PRELOAD"), library, &preload, &other);
	rc = lift_program_find("true", path);
	if (rc == 0)
		rc = lift_probe_preload(path, preload, &run);
	line = first_line(run.said);
	if (rc)
		lift_report_add(&c->report, "preload", LIMITED, NULL,
			"true(1) cannot be started to try it (%s)", lift_text_errno(rc));
	else if (line && strstr(line, "cannot be preloaded"))
		lift_report_add(&c->report, "preload", OFF,
			"the file and those it needs must be readable, and their file system not "
			"noexec",
			"%s", line);
	else if (!WIFEXITED(run.status) || WEXITSTATUS(run.status) != 0)
		lift_report_add(&c->report, "preload", OFF, NULL, "%s %s with it%s%s", path,
			WIFSIGNALED(run.status) ? "is killed" : "fails", line ? ": " : "",
			line ? line : "");
	else if (line)
		lift_report_add(&c->report, "preload", LIMITED, NULL,
			"%s runs with it and says: %s", path, line);
	else
		lift_report_add(&c->report, "preload", OK, NULL, "%s runs with it", path);
	if (other)
		lift_report_add(&c->report, "preload-list", LIMITED,
			"take one of the two out of LD_PRELOAD",
			"LD_PRELOAD has another library of that name, which comes first: %s",
			other);
	free(preload);
	free(other);
}

void lift_check_library(struct lift_check *c, const char *asked)
{
	char path[PATH_MAX];
	char *why;

	if (lift_library_find(asked, path, &why)) {
		lift_report_add(&c->report, "library", OFF, NULL, "%s", why);
		free(why);
		return;
	}
	lift_report_add(&c->report, "library", OK, NULL, "%s", path);
	check_mimalloc(c, path);
	check_preload(c, path);
}
