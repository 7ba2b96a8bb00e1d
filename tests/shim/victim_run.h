/*
 * Runs one program out of process and says what came of it: its exit status, what it wrote, and
 * whether it left processes behind. Used from Criterion tests only; each Criterion test is a
 * process of its own, so that changing this process's attributes (child subreaper) is harmless.
 */
#ifndef LIFT_TESTS_SHIM_VICTIM_RUN_H
#define LIFT_TESTS_SHIM_VICTIM_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/resource.h>

#define VICTIM_TEXT_BYTES 65536

struct victim_limit {
	int what;     /* RLIMIT_AS ... */
	rlim_t value; /* both soft and hard; 0: no limit is set */
};

struct victim_order {
	const char *path;                 /* of the program */
	const char *const *args;          /* NULL-terminated, without the name */
	const char *const *env;           /* NULL-terminated, added to a small fixed environment */
	const char *preload;              /* LD_PRELOAD; NULL or "": not set */
	const struct victim_limit *limit; /* nr_limits of them */
	size_t nr_limits;
	unsigned user;    /* becomes this user and group before exec; 0: stays */
	unsigned seconds; /* it is killed when it hangs for longer */
};

struct victim_outcome {
	bool hung;                   /* was killed after .seconds */
	bool left_process;           /* something it started was still running at its end */
	int status;                  /* as from waitpid */
	char out[VICTIM_TEXT_BYTES]; /* terminated; cut when longer */
	char err[VICTIM_TEXT_BYTES];
};

/* 0, or -errno when the program could not be started at all (-ENOENT: there is no such program). */
int victim_run(const struct victim_order *order, struct victim_outcome *ret);

/* The number of lines in a text; a last line without a newline counts. */
size_t victim_lines(const char *text);

#endif
