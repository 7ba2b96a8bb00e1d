// SPDX-License-Identifier: MIT
#include "shim/cli/text.h"

#include <err.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "shim/cli/cli.h"

const char *lift_text_nodes(const struct lift_nodeset *set, char ret[LIFT_TEXT_NODES])
{
	int last;
	int n = 0;

	if (lift_nodeset_empty(set))
		return memcpy(ret, "none", sizeof("none"));
	for (int first = lift_nodeset_first(set); first >= 0;
		first = lift_nodeset_next(set, last)) {
		for (last = first; lift_nodeset_test(set, last + 1); last++)
			;
		n += snprintf(ret + n, LIFT_TEXT_NODES - (size_t)n,
			last > first ? "%s%d-%d" : "%s%d", n ? "," : "", first, last);
	}
	return ret;
}

const char *lift_text_bytes(uint64_t bytes, char ret[LIFT_TEXT_BYTES])
{
	static const char *const unit[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
	double v = (double)bytes;
	unsigned u = 0;

	for (; v >= 1024 && u < 6; u++)
		v /= 1024;
	/* Round figures without a fraction, others with one digit of it. */
	if (u == 0 || v >= 100 || v == (double)(uint64_t)v)
		(void)snprintf(ret, LIFT_TEXT_BYTES, "%.0f %s", v, unit[u]);
	else
		(void)snprintf(ret, LIFT_TEXT_BYTES, "%.1f %s", v, unit[u]);
	return ret;
}

const char *lift_text_errno(int error)
{
	const char *name = strerrorname_np(error < 0 ? -error : error);

	return name ? name : "an unknown error";
}

char *lift_text(const char *fmt, ...)
{
	char *text;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vasprintf(&text, fmt, ap);
	va_end(ap);
	if (n < 0)
		err(LIFT_EXIT_FAILED, "numalift");
	return text;
}

/* --- table -------------------------------------------------------------------------------------
 */

void lift_table_init(struct lift_table *t, unsigned columns, const char *align)
{
	*t = (struct lift_table){
		.columns = columns < LIFT_TABLE_COLUMNS ? columns : LIFT_TABLE_COLUMNS,
		.align = align,
	};
}

void lift_table_add(struct lift_table *t, char *text)
{
	if (t->nr == t->room) {
		t->room = t->room ? t->room * 2 : 64;
		t->cell = reallocarray(t->cell, t->room, sizeof(*t->cell));
		if (!t->cell)
			err(LIFT_EXIT_FAILED, "numalift");
	}
	t->cell[t->nr++] = text;
}

void lift_table_print(const struct lift_table *t, FILE *out)
{
	size_t width[LIFT_TABLE_COLUMNS] = {0};

	for (size_t i = 0; i < t->nr; i++) {
		size_t n = strlen(t->cell[i]);

		if (n > width[i % t->columns])
			width[i % t->columns] = n;
	}
	for (size_t i = 0; i < t->nr; i++) {
		unsigned column = (unsigned)(i % t->columns);
		bool last = column + 1 == t->columns;
		int w = (int)width[column];

		if (t->align[column] == '>')
			(void)fprintf(out, "%*s", w, t->cell[i]);
		else
			(void)fprintf(out, "%-*s", last ? 0 : w, t->cell[i]);
		(void)fputs(last ? "\n" : "  ", out);
	}
}

void lift_table_fini(struct lift_table *t)
{
	for (size_t i = 0; i < t->nr; i++)
		free(t->cell[i]);
	free(t->cell);
}
