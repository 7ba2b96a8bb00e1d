#include "tests/shim/victim_row.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PATH_BYTES = 4096, ARGS = 20 };

const char *victim_library(void)
{
	const char *library = getenv("NUMALIFT_LIB");

	if (!library || !*library)
		cr_skip_test("NUMALIFT_LIB is not set: there is no library to preload");
	return library;
}

const char *victim_path(const char *name)
{
	static char path[PATH_BYTES];
	const char *folder = getenv("VICTIM_DIR");

	snprintf(path, sizeof(path), "%s/%s", folder ? folder : ".", name);
	return path;
}

const char *victim_tool(const char *name)
{
	static char path[PATH_BYTES];
	const char *list = getenv("PATH");

	while (list && *list) {
		size_t length = strcspn(list, ":");

		snprintf(path, sizeof(path), "%.*s/%s", (int)length, list, name);
		if (access(path, X_OK) == 0)
			return path;
		list += length + (list[length] == ':');
	}
	return NULL;
}

/* "@name" and "VARIABLE=@name" with the path put in; anything else as it is. */
static const char *expanded(const char *text)
{
	const char *equals = strchr(text, '=');
	const char *at = *text == '@' ? text : equals && equals[1] == '@' ? equals + 1 : NULL;
	char *made = NULL;

	if (!at)
		return text;
	if (asprintf(&made, "%.*s%s", (int)(at - text), text, victim_path(at + 1)) < 0)
		abort();
	return made;
}

/* A preload named beside the victims, or by a soname for ld.so to find. */
static void add_preload(char *list, size_t size, const char *name)
{
	const char *path = name;

	if (!name || !*name)
		return;
	if (!strchr(name, '/') && access(victim_path(name), R_OK) == 0)
		path = victim_path(name);
	size_t used = strlen(list);

	snprintf(list + used, size - used, "%s%s", used ? ":" : "", path);
}

static void start(const struct victim_row *row, bool preloaded, struct victim_outcome *ret)
{
	char preload[2 * PATH_BYTES] = "";
	const char *args[ARGS + 1] = {NULL};
	const char *env[9] = {NULL};
	const char *path = row->victim ? victim_path(row->victim) : victim_tool(row->tool);

	if (!path || access(path, X_OK))
		cr_skip_test("%s is not here", row->victim ? row->victim : row->tool);
	struct victim_order order = {
		.path = strdup(path),
		.args = args,
		.env = env,
		.preload = preload,
		.limit = row->limit,
		.nr_limits = sizeof(row->limit) / sizeof(row->limit[0]),
		.user = row->user,
		.seconds = row->seconds,
	};

	for (int i = 0; i < ARGS && row->args[i]; i++) {
		args[i] = expanded(row->args[i]);
		if (row->args[i][0] == '@' && access(args[i], R_OK))
			cr_skip_test("%s is not here", row->args[i] + 1);
	}
	for (int i = 0; i < 8 && row->env[i]; i++)
		env[i] = expanded(row->env[i]);
	add_preload(preload, sizeof(preload), row->before);
	if (preloaded)
		add_preload(preload, sizeof(preload), victim_library());
	add_preload(preload, sizeof(preload), row->after);
	if (row->user && geteuid() != 0)
		cr_skip_test("needs root");
	int refused = victim_run(&order, ret);

	if (refused == -EPERM || (refused == -EACCES && row->user))
		cr_skip_test("its limits or its user cannot be used here");
	cr_assert(refused == 0, "cannot start %s: %s", path, strerror(-refused));
}

/* Results are reported line by line, so that a text may have only one. */
static void one_line(char *text)
{
	for (; *text; text++)
		if (*text == '\n')
			*text = ' ';
}

/* What is wrong with an outcome, as one text; "" when it is right. */
static void judge(const struct victim_row *row, const struct victim_outcome *got,
	const struct victim_outcome *plain, char *text, size_t size)
{
	int want_exit =
		plain && WIFEXITED(plain->status) ? WEXITSTATUS(plain->status) : row->want_exit;
	const char *want_out = plain ? plain->out : row->want_out ? row->want_out : "ok\n";

	*text = '\0';
	if (got->hung)
		snprintf(text, size, "hangs; out '%.300s' err '%.300s'", got->out, got->err);
	else if (WIFSIGNALED(got->status))
		snprintf(text, size, "ended by signal %d (%s); out '%.300s' err '%.300s'",
			WTERMSIG(got->status), strsignal(WTERMSIG(got->status)), got->out,
			got->err);
	else if (WEXITSTATUS(got->status) != want_exit)
		snprintf(text, size, "exit status %d, not %d; out '%.300s' err '%.300s'",
			WEXITSTATUS(got->status), want_exit, got->out, got->err);
	else if (row->out_has ? !strstr(got->out, row->out_has) : strcmp(got->out, want_out) != 0)
		snprintf(text, size, "stdout '%.300s', not '%.300s'", got->out,
			row->out_has ? row->out_has : want_out);
	else if (row->err_has && !strstr(got->err, row->err_has))
		snprintf(text, size, "stderr '%.300s' without '%s'", got->err, row->err_has);
	else if (!row->err_has && !plain && victim_lines(got->err) > row->err_lines)
		snprintf(text, size, "stderr has %zu lines, at most %zu allowed: '%.300s'",
			victim_lines(got->err), row->err_lines, got->err);
	else if (plain && victim_lines(got->err) > victim_lines(plain->err) + row->err_lines)
		snprintf(text, size, "stderr '%.300s', without the library '%.300s'", got->err,
			plain->err);
	else if (got->left_process)
		snprintf(text, size, "a process was left behind");
}

void victim_row_check(const struct victim_row *row, bool preloaded)
{
	static struct victim_outcome got;
	static struct victim_outcome plain;
	char text[1600];

	if (preloaded)
		(void)victim_library();
	start(row, preloaded, &got);
	if (WIFEXITED(got.status) && WEXITSTATUS(got.status) == 77) {
		got.out[strcspn(got.out, "\n")] = '\0';
		cr_skip_test("%s", got.out);
	}
	if (row->cannot && strstr(got.err, row->cannot))
		cr_skip_test("%s: %s", row->tool, row->cannot);
	bool compare = row->as_plain && preloaded;

	if (compare)
		start(row, false, &plain);
	judge(row, &got, compare ? &plain : NULL, text, sizeof(text));
	one_line(text);
	if (row->as_plain && !preloaded) /* it only has to run */
		cr_assert(WIFEXITED(got.status) && !got.hung, "%s", text);
	else if (*text && row->hard && preloaded)
		cr_skip_test("known to be hard (%s): %s", row->hard, text);
	else
		cr_assert(!*text, "%s", text);
}
