/*
 * A cursor over bytes, for the parsers of policy only. Each function takes what it names and
 * moves on, or takes nothing and says so; none looks past the end.
 */
#ifndef LIFT_POLICY_SCAN_H
#define LIFT_POLICY_SCAN_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "policy/types.h"

struct lift_scan {
	const char *p;
	const char *end;
};

static inline struct lift_scan lift_scan_of(const char *buf, size_t len)
{
	return (struct lift_scan){.p = buf, .end = buf + len};
}

static inline bool lift_scan_done(const struct lift_scan *s)
{
	return s->p == s->end;
}

static inline size_t lift_scan_left(const struct lift_scan *s)
{
	return (size_t)(s->end - s->p);
}

static inline bool lift_scan_is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static inline bool lift_scan_is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* The value of a digit in bases up to 16; 255 for anything else. */
static inline unsigned lift_scan_digit(char c)
{
	if (c >= '0' && c <= '9')
		return (unsigned)(c - '0');
	if (c >= 'a' && c <= 'f')
		return (unsigned)(c - 'a') + 10;
	if (c >= 'A' && c <= 'F')
		return (unsigned)(c - 'A') + 10;
	return 255;
}

/* Blanks and newlines, any number; true when there was one. */
static inline bool lift_scan_blanks(struct lift_scan *s)
{
	const char *from = s->p;

	while (!lift_scan_done(s) && lift_scan_is_blank(*s->p))
		s->p++;
	return s->p != from;
}

static inline bool lift_scan_byte(struct lift_scan *s, char c)
{
	if (lift_scan_done(s) || *s->p != c)
		return false;
	s->p++;
	return true;
}

static inline bool lift_scan_text(struct lift_scan *s, const char *text)
{
	size_t len = strlen(text);

	if (lift_scan_left(s) < len || memcmp(s->p, text, len) != 0)
		return false;
	s->p += len;
	return true;
}

/* Where @c first is, or NULL. Not memchr(): what policy may ask of libc is a short list. */
static inline const char *lift_scan_find(const char *s, size_t len, char c)
{
	for (size_t i = 0; i < len; i++)
		if (s[i] == c)
			return s + i;
	return NULL;
}

/* Cuts blanks off both ends. */
static inline void lift_scan_trim(struct lift_scan *s)
{
	lift_scan_blanks(s);
	while (s->p < s->end && lift_scan_is_blank(s->end[-1]))
		s->end--;
}

/*
 * A number in base 10 or 16, at least one digit. -EINVAL: no digit, nothing taken; -ERANGE: above
 * @max, nothing taken either, so that the caller can point at it.
 */
static inline int lift_scan_number(struct lift_scan *s, unsigned base, uint64_t max, uint64_t *ret)
{
	const char *p = s->p;
	uint64_t v = 0;

	for (; p < s->end; p++) {
		unsigned d = lift_scan_digit(*p);

		if (d >= base)
			break;
		if (d > max || v > (max - d) / base)
			return -ERANGE;
		v = v * base + d;
	}
	if (p == s->p)
		return -EINVAL;
	s->p = p;
	*ret = v;
	return 0;
}

/*
 * A node list of at least one item: N or N-M, comma separated. A comma that no digit follows is
 * left: it is the caller's separator. On failure the cursor is where the bad item starts.
 */
static inline int lift_scan_nodes(struct lift_scan *s, struct lift_nodeset *ret)
{
	struct lift_nodeset set;

	lift_nodeset_zero(&set);
	for (;;) {
		struct lift_scan item = *s;
		uint64_t from;
		uint64_t to;
		int rc = lift_scan_number(&item, 10, LIFT_MAX_NODES - 1, &from);

		if (rc < 0)
			return rc;
		to = from;
		if (lift_scan_byte(&item, '-')) {
			rc = lift_scan_number(&item, 10, LIFT_MAX_NODES - 1, &to);
			if (rc < 0)
				return rc;
			if (to < from)
				return -EINVAL;
		}
		for (uint64_t n = from; n <= to; n++)
			lift_nodeset_set(&set, (int)n);
		*s = item;
		if (lift_scan_left(s) < 2 || s->p[0] != ',' || !lift_scan_is_digit(s->p[1]))
			break;
		s->p++;
	}
	*ret = set;
	return 0;
}

#endif
