// SPDX-License-Identifier: MIT
#include "tests/sampler/tap.h"

#include <stdarg.h>
#include <stdio.h>

const char *tap_about;
bool tap_needed;

static unsigned tests;
static unsigned failures;

static const char *about(void)
{
	return tap_about ? tap_about : "";
}

static const char *blank(void)
{
	return tap_about ? " " : "";
}

bool check(bool good, const char *form, ...)
{
	va_list ap;

	printf("%s %u - %s%s", good ? "ok" : "not ok", ++tests, about(), blank());
	va_start(ap, form);
	vprintf(form, ap);
	va_end(ap);
	printf("\n");
	failures += !good;
	return good;
}

void skip(const char *what, const char *why)
{
	if (tap_needed)
		check(false, "%s: %s", what, why);
	else
		printf("ok %u - %s%s%s # SKIP %s\n", ++tests, about(), blank(), what, why);
}

int tap_end(void)
{
	printf("1..%u\n", tests);
	return failures != 0;
}
