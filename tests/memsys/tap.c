// SPDX-License-Identifier: MIT
#include "tests/memsys/tap.h"

#include <stdarg.h>
#include <stdio.h>

bool tap_needed;

static unsigned tests;
static unsigned failures;

bool check(bool good, const char *form, ...)
{
	va_list ap;

	printf("%s %u - ", good ? "ok" : "not ok", ++tests);
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
		printf("ok %u - %s # SKIP %s\n", ++tests, what, why);
}

int tap_end(void)
{
	printf("1..%u\n", tests);
	return failures != 0;
}
