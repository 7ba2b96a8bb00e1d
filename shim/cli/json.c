// SPDX-License-Identifier: MIT
#include "shim/cli/json.h"

#include <inttypes.h>

void lift_json_init(struct lift_json *j, FILE *out)
{
	*j = (struct lift_json){.out = out};
}

/* Length of the UTF-8 sequence at @s, 0 when it is none. Reads no further than the terminator. */
static unsigned utf8(const unsigned char *s)
{
	unsigned n = *s < 0x80   ? 1
		     : *s < 0xc2 ? 0
		     : *s < 0xe0 ? 2
		     : *s < 0xf0 ? 3
		     : *s < 0xf5 ? 4
				 : 0;

	for (unsigned i = 1; i < n; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	/* Overlong, a surrogate, or beyond the last character. */
	if ((*s == 0xe0 && s[1] < 0xa0) || (*s == 0xed && s[1] > 0x9f) ||
		(*s == 0xf0 && s[1] < 0x90) || (*s == 0xf4 && s[1] > 0x8f))
		return 0;
	return n;
}

static void put_string(struct lift_json *j, const char *text)
{
	const unsigned char *s = (const unsigned char *)text;

	(void)fputc('"', j->out);
	while (*s) {
		unsigned n = utf8(s);

		if (n == 0) {
			(void)fputs("\\ufffd", j->out);
			s++;
		} else if (*s == '"' || *s == '\\') {
			(void)fprintf(j->out, "\\%c", *s++);
		} else if (*s < ' ') {
			(void)fprintf(j->out, "\\u%04x", *s++);
		} else {
			(void)fwrite(s, 1, n, j->out);
			s += n;
		}
	}
	(void)fputc('"', j->out);
}

/* What comes in front of a value. */
static void item(struct lift_json *j, const char *key)
{
	if (j->depth == 0)
		return;
	if (j->begun[j->depth])
		(void)fputc(',', j->out);
	if (!j->flat)
		(void)fprintf(j->out, "\n%*s", (int)(2 * j->depth), "");
	else if (j->begun[j->depth])
		(void)fputc(' ', j->out);
	j->begun[j->depth] = true;
	if (key) {
		put_string(j, key);
		(void)fputs(": ", j->out);
	}
}

static void begin(struct lift_json *j, const char *key, char open, char close)
{
	item(j, key);
	(void)fputc(open, j->out);
	j->depth++;
	j->begun[j->depth] = false;
	j->close[j->depth] = close;
}

void lift_json_object(struct lift_json *j, const char *key)
{
	begin(j, key, '{', '}');
}

void lift_json_array(struct lift_json *j, const char *key)
{
	begin(j, key, '[', ']');
}

void lift_json_end(struct lift_json *j)
{
	char close = j->close[j->depth];
	bool empty = !j->begun[j->depth];

	j->depth--;
	if (!empty && !j->flat)
		(void)fprintf(j->out, "\n%*s", (int)(2 * j->depth), "");
	(void)fputc(close, j->out);
	if (j->depth == 0)
		(void)fputc('\n', j->out);
}

void lift_json_string(struct lift_json *j, const char *key, const char *value)
{
	item(j, key);
	if (value)
		put_string(j, value);
	else
		(void)fputs("null", j->out);
}

void lift_json_number(struct lift_json *j, const char *key, int64_t value)
{
	item(j, key);
	(void)fprintf(j->out, "%" PRId64, value);
}

void lift_json_unsigned(struct lift_json *j, const char *key, uint64_t value)
{
	item(j, key);
	(void)fprintf(j->out, "%" PRIu64, value);
}

void lift_json_bool(struct lift_json *j, const char *key, bool value)
{
	item(j, key);
	(void)fputs(value ? "true" : "false", j->out);
}

void lift_json_known(struct lift_json *j, const char *key, uint64_t value)
{
	item(j, key);
	if (value)
		(void)fprintf(j->out, "%" PRIu64, value);
	else
		(void)fputs("null", j->out);
}
