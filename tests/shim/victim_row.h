/*
 * A row is one test: a program, how it is run, and what must come of it. VICTIM() makes two
 * Criterion tests of a row: `plain` without the library, which proves that the program itself is
 * right, and `preloaded` with it, which must come out the same.
 *
 * The library is named by NUMALIFT_LIB, the folder of the victims by VICTIM_DIR.
 */
#ifndef LIFT_TESTS_SHIM_VICTIM_ROW_H
#define LIFT_TESTS_SHIM_VICTIM_ROW_H

#include <criterion/criterion.h>

#include "tests/shim/victim_run.h"

struct victim_row {
	const char *victim; /* name of a victim; or use .tool */
	const char *tool; /* a program found by PATH; an argument "@name" becomes a victim's path */
	const char *args[20];
	const char *env[8]; /* "@name" after "=" becomes the path of a file beside the victims */
	const char *before; /* another preload, by name beside the victims or as a soname, before
			       ours */
	const char *after;  /* the same, after ours */
	struct victim_limit limit[3];
	unsigned user;        /* runs as this user; needs root */
	int want_exit;        /* exit status */
	const char *want_out; /* exactly; NULL: "ok\n" */
	const char *out_has;  /* a part is enough; for tools */
	const char *err_has;  /* must be on stderr, which may then have any number of lines */
	const char *cannot;   /* on stderr: the tool itself cannot do it here, which is a skip */
	size_t err_lines;     /* lines allowed on stderr */
	bool as_plain;        /* status and stdout as without the library, whatever they are */
	unsigned seconds;     /* 0: 60; only to end what hangs */
	const char *hard;     /* why it may fail with the library; a failure is then a skip */
};

/* Runs @row and fails the current test, or skips it, by what came of it. */
void victim_row_check(const struct victim_row *row, bool preloaded);

/* The path of the library; skips the current test when there is none. */
const char *victim_library(void);

/* The path of a file in the folder of the victims. Static memory: copied before the next call. */
const char *victim_path(const char *name);

/* The path of a program by PATH, NULL when there is none. Static memory. */
const char *victim_tool(const char *name);

#define VICTIM(name, ...)                                                                          \
	static const struct victim_row row_##name = {__VA_ARGS__};                                 \
	Test(plain, name)                                                                          \
	{                                                                                          \
		victim_row_check(&row_##name, false);                                              \
	}                                                                                          \
	Test(preloaded, name)                                                                      \
	{                                                                                          \
		victim_row_check(&row_##name, true);                                               \
	}

/* For what has no meaning, or no safe outcome, without the library. */
#define VICTIM_PRELOADED(name, ...)                                                                \
	static const struct victim_row row_##name = {__VA_ARGS__};                                 \
	Test(preloaded, name)                                                                      \
	{                                                                                          \
		victim_row_check(&row_##name, true);                                               \
	}

#endif
