// SPDX-License-Identifier: MIT
/*
 * Finds the program that a command line names, as execvp(3) would, and looks at what the kernel
 * will run in the end: interpreters of scripts are followed.
 */
#ifndef NUMALIFT_SHIM_CLI_PROGRAM_H
#define NUMALIFT_SHIM_CLI_PROGRAM_H

#include <limits.h>
#include <stdbool.h>

#include "shim/cli/elf_file.h"

/* What makes ld.so ignore a preload. */
enum lift_secure {
	LIFT_SECURE_NO,
	LIFT_SECURE_SETUID,
	LIFT_SECURE_SETGID,
	LIFT_SECURE_CAPABILITIES
};

struct lift_program {
	char path[PATH_MAX];     /* of what was named */
	char runs[PATH_MAX];     /* of what the kernel runs: the same, or a script's interpreter */
	bool script;             /* they differ */
	int trouble;             /* 0, or -errno of reading .runs: .elf is not known then */
	enum lift_secure secure; /* of .runs, for the user who asks */
	unsigned owner;          /* user or group of LIFT_SECURE_SETUID and _SETGID */
	struct lift_elf elf;     /* of .runs */
};

/* Path of @name in @ret. 0; -ENOENT; -EACCES and others: something of that name is there, but not
 * to run. */
int lift_program_find(const char *name, char ret[PATH_MAX]);

/* Fills *ret for the program at @path. */
void lift_program_look(const char *path, struct lift_program *ret);

/* Built for musl, whose dynamic linker cannot load a library made for glibc and ends the program.
 */
bool lift_program_is_musl(const struct lift_program *p);

/* "setuid", "setgid", "file capabilities"; "" for LIFT_SECURE_NO. */
const char *lift_secure_name(enum lift_secure secure);

#endif
