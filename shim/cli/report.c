// SPDX-License-Identifier: MIT
#include "shim/cli/report.h"

#include <assert.h>
#include <err.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "shim/cli/cli.h"
#include "shim/cli/json.h"

#define VERDICT_COLUMNS 7

static const char *verdict_name(enum lift_verdict verdict)
{
	static const char *const names[] = {"ok", "limited", "off"};

	return names[verdict];
}

void lift_report_add(struct lift_report *r, const char *name, enum lift_verdict verdict,
	const char *remedy, const char *fmt, ...)
{
	struct lift_report_line *line;
	va_list ap;

	assert(r->nr < LIFT_REPORT_MAX);
	if (r->nr == LIFT_REPORT_MAX)
		return;
	line = &r->line[r->nr++];
	*line = (struct lift_report_line){
		.group = r->group,
		.name = name,
		.verdict = verdict,
		.remedy = remedy,
	};
	va_start(ap, fmt);
	if (vasprintf(&line->finding, fmt, ap) < 0)
		err(LIFT_EXIT_FAILED, "numalift");
	va_end(ap);
}

enum lift_verdict lift_report_verdict(const struct lift_report *r)
{
	enum lift_verdict worst = LIFT_VERDICT_OK;

	for (unsigned i = 0; i < r->nr; i++)
		if (r->line[i].verdict > worst)
			worst = r->line[i].verdict;
	return worst;
}

/* Columns to keep within; 0: a file or a pipe, where one finding is better one line. */
static size_t columns_of(FILE *out)
{
	struct winsize w;

	if (!isatty(fileno(out)) || ioctl(fileno(out), TIOCGWINSZ, &w) < 0 || w.ws_col < 60)
		return 0;
	return w.ws_col;
}

/* Prints @text behind @indent columns, which are there already, in lines of @columns. */
static void put_wrapped(FILE *out, const char *text, size_t indent, size_t columns)
{
	while (columns && strlen(text) > columns - indent) {
		size_t n = columns - indent;

		while (n > 0 && text[n] != ' ')
			n--;
		if (n == 0)
			break; /* one word that is longer than a line */
		(void)fprintf(out, "%.*s\n%*s", (int)n, text, (int)indent, "");
		text += n + 1;
	}
	(void)fprintf(out, "%s\n", text);
}

void lift_report_print(const struct lift_report *r, FILE *out)
{
	size_t columns = columns_of(out);
	const char *group = "";
	size_t width = 0;
	size_t indent;

	for (unsigned i = 0; i < r->nr; i++)
		if (strlen(r->line[i].name) > width)
			width = strlen(r->line[i].name);
	indent = 2 + width + 2 + VERDICT_COLUMNS + 2;
	for (unsigned i = 0; i < r->nr; i++) {
		const struct lift_report_line *line = &r->line[i];

		if (strcmp(group, line->group) != 0)
			(void)fprintf(out, "%s%s\n", *group ? "\n" : "", line->group);
		group = line->group;
		(void)fprintf(out, "  %-*s  %-*s  ", (int)width, line->name, VERDICT_COLUMNS,
			verdict_name(line->verdict));
		put_wrapped(out, line->finding, indent, columns);
		if (!line->remedy)
			continue;
		(void)fprintf(out, "%*s-> ", (int)indent, "");
		put_wrapped(out, line->remedy, indent + 3, columns);
	}
}

void lift_report_json(const struct lift_report *r, FILE *out)
{
	struct lift_json j;

	lift_json_init(&j, out);
	lift_json_object(&j, NULL);
	lift_json_string(&j, "version", LIFT_VERSION);
	lift_json_string(&j, "verdict", verdict_name(lift_report_verdict(r)));
	lift_json_array(&j, "checks");
	for (unsigned i = 0; i < r->nr; i++) {
		const struct lift_report_line *line = &r->line[i];

		lift_json_object(&j, NULL);
		lift_json_string(&j, "group", line->group);
		lift_json_string(&j, "name", line->name);
		lift_json_string(&j, "verdict", verdict_name(line->verdict));
		lift_json_string(&j, "finding", line->finding);
		lift_json_string(&j, "remedy", line->remedy);
		lift_json_end(&j);
	}
	lift_json_end(&j);
	lift_json_end(&j);
}

void lift_report_fini(struct lift_report *r)
{
	for (unsigned i = 0; i < r->nr; i++)
		free(r->line[i].finding);
	r->nr = 0;
}
