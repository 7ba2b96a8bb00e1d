/*
 * Says in one line what was wrong with an option. Apart from policy/config.c because that decides
 * and this only words it.
 */
#include "policy/config.h"

/* A text under construction that never grows past its buffer. */
struct out {
	char *buf;
	size_t n;
	size_t len;
};

static void put_byte(struct out *o, char c)
{
	if (o->len + 1 < o->n)
		o->buf[o->len++] = c;
}

static void put(struct out *o, const char *text)
{
	for (; *text; text++)
		put_byte(o, *text);
}

static void put_number(struct out *o, size_t v)
{
	char digits[20];
	unsigned nr = 0;

	do {
		digits[nr++] = (char)('0' + v % 10);
		v /= 10;
	} while (v);
	while (nr > 0)
		put_byte(o, digits[--nr]);
}

/* Columns that a quotation takes at most: the line must stay one that a person reads. */
#define QUOTE_MAX 40

static void put_quoted(struct out *o, const char *s, size_t len)
{
	static const char hex[] = "0123456789abcdef";
	size_t columns = 0;

	put_byte(o, '\'');
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)s[i];
		bool plain = c >= ' ' && c <= '~' && c != '\\' && c != '\'';

		columns += plain ? 1 : 4;
		if (columns > QUOTE_MAX) {
			put(o, "...");
			break;
		}
		if (plain) {
			put_byte(o, (char)c);
			continue;
		}
		put(o, "\\x");
		put_byte(o, hex[c >> 4]);
		put_byte(o, hex[c & 15]);
	}
	put_byte(o, '\'');
}

size_t lift_config_error_format(
	const struct lift_config_error *err, const char *value, char *buf, size_t n)
{
	struct out o = {.buf = buf, .n = n};

	if (n == 0)
		return 0;
	if (err->name) {
		put(&o, err->name);
		put(&o, ": ");
		if (value && err->length > 0) {
			put_quoted(&o, value + err->offset, err->length);
			put(&o, " ");
		}
		put(&o, "at position ");
		put_number(&o, err->offset + 1);
		put(&o, ": ");
	}
	put(&o, err->problem);
	put(&o, "; accepted: ");
	put(&o, err->accepted);
	if (err->name && !err->kept) {
		put(&o, "; keeping what was set before");
	} else if (err->name && *err->kept) {
		put(&o, "; using ");
		put(&o, err->kept);
	} else {
		put(&o, "; ignored");
	}
	buf[o.len] = '\0';
	return o.len;
}
