// SPDX-License-Identifier: MIT
#include "shim/cli/program.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

/* The kernel's own limit for interpreters of interpreters. */
#define SCRIPT_DEPTH 5
#define BLANKS " \t"

/* --- finding -----------------------------------------------------------------------------------
 */

static int can_run(const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EACCES;
	return faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) < 0 ? -errno : 0;
}

static int put_path(char ret[PATH_MAX], const char *dir, size_t len, const char *name)
{
	int n;

	if (len == 0)
		n = snprintf(ret, PATH_MAX, "%s", name);
	else
		n = snprintf(ret, PATH_MAX, "%.*s/%s", (int)len, dir, name);
	return n < PATH_MAX ? 0 : -ENAMETOOLONG;
}

int lift_program_find(const char *name, char ret[PATH_MAX])
{
	char standard[256] = "/bin:/usr/bin";
	const char *path = getenv("PATH");
	char found[PATH_MAX];
	int rc = -ENOENT;

	if (!*name)
		return -ENOENT;
	if (strchr(name, '/')) {
		int err = put_path(ret, "", 0, name);

		return err ? err : can_run(ret);
	}
	if (!path) {
		(void)confstr(_CS_PATH, standard, sizeof(standard));
		path = standard;
	}
	for (;;) {
		size_t len = strcspn(path, ":");
		int err = put_path(found, path, len, name);

		/* An empty entry is the working folder, where the name alone leads. */
		err = err ? err : can_run(found);
		/* What is there and cannot be run is remembered; a later folder may have better. */
		if (err == 0 || (err != -ENOENT && err != -ENOTDIR && rc == -ENOENT)) {
			memcpy(ret, found, strlen(found) + 1);
			rc = err;
		}
		if (err == 0 || !path[len])
			return rc;
		path += len + 1;
	}
}

/* --- scripts -----------------------------------------------------------------------------------
 */

/* The program in `env [-S] [NAME=VALUE...] PROGRAM`, found by PATH as env(1) does. */
static bool through_env(const char *args, char ret[PATH_MAX])
{
	char word[PATH_MAX];

	for (args += strspn(args, BLANKS); *args; args += strspn(args, BLANKS)) {
		size_t len = strcspn(args, BLANKS);

		if (*args != '-' && !memchr(args, '=', len) && len < sizeof(word)) {
			memcpy(word, args, len);
			word[len] = '\0';
			return lift_program_find(word, ret) == 0;
		}
		args += len;
	}
	return false;
}

/*
 * What runs the file @path, which is no ELF file: the program behind #!, or the shell that
 * execvp(3) hands it to. 0 or -errno.
 */
static int interpreter(const char *path, char ret[PATH_MAX])
{
	char line[512];
	const char *base;
	char *name;
	size_t len;
	ssize_t n;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	n = read(fd, line, sizeof(line) - 1);
	(void)close(fd);
	if (n < 0)
		return -errno;
	line[n] = '\0';
	if (line[0] != '#' || line[1] != '!') {
		/* A shell would refuse what is binary. */
		if (memchr(line, '\0', (size_t)n))
			return -ENOEXEC;
		return put_path(ret, "", 0, "/bin/sh");
	}
	line[strcspn(line, "\n")] = '\0';
	name = line + 2 + strspn(line + 2, BLANKS);
	len = strcspn(name, BLANKS);
	if (len == 0)
		return -ENOEXEC;
	base = name + len;
	while (base > name && base[-1] != '/')
		base--;
	if (name + len - base == 3 && memcmp(base, "env", 3) == 0 && through_env(name + len, ret))
		return 0;
	name[len] = '\0';
	return put_path(ret, "", 0, name);
}

/* --- privileges --------------------------------------------------------------------------------
 */

/*
 * Whether the program starts with privileges that its caller lacks (AT_SECURE). Root gains nothing
 * by setuid root or capabilities, and then the preload works.
 */
static enum lift_secure privileges(const char *path, unsigned *ret_owner)
{
	struct statvfs fs;
	struct stat st;

	if (stat(path, &st) < 0 || prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1)
		return LIFT_SECURE_NO;
	if (statvfs(path, &fs) == 0 && (fs.f_flag & ST_NOSUID))
		return LIFT_SECURE_NO;
	if ((st.st_mode & S_ISUID) && st.st_uid != getuid()) {
		*ret_owner = st.st_uid;
		return LIFT_SECURE_SETUID;
	}
	/* Without the group's execute bit it once meant mandatory locking. */
	if ((st.st_mode & S_ISGID) && (st.st_mode & S_IXGRP) && st.st_gid != getgid()) {
		*ret_owner = st.st_gid;
		return LIFT_SECURE_SETGID;
	}
	if (getuid() != 0 && getxattr(path, "security.capability", NULL, 0) > 0)
		return LIFT_SECURE_CAPABILITIES;
	return LIFT_SECURE_NO;
}

const char *lift_secure_name(enum lift_secure secure)
{
	switch (secure) {
	case LIFT_SECURE_SETUID:
		return "setuid";
	case LIFT_SECURE_SETGID:
		return "setgid";
	case LIFT_SECURE_CAPABILITIES:
		return "file capabilities";
	case LIFT_SECURE_NO:
		break;
	}
	return "";
}

/* --- the whole ---------------------------------------------------------------------------------
 */

void lift_program_look(const char *path, struct lift_program *ret)
{
	char next[PATH_MAX];

	memset(ret, 0, sizeof(*ret));
	ret->trouble = put_path(ret->path, "", 0, path);
	if (ret->trouble)
		return;
	memcpy(ret->runs, ret->path, sizeof(ret->runs));
	for (int depth = 0; depth < SCRIPT_DEPTH; depth++) {
		ret->trouble = lift_elf_read(ret->runs, &ret->elf);
		if (ret->trouble != -ENOEXEC) {
			/* What may only be executed, not read, has these all the same. */
			ret->secure = privileges(ret->runs, &ret->owner);
			return;
		}
		ret->trouble = interpreter(ret->runs, next);
		if (ret->trouble)
			return;
		ret->script = true;
		memcpy(ret->runs, next, sizeof(next));
	}
	ret->trouble = -ELOOP;
}

bool lift_program_is_musl(const struct lift_program *p)
{
	return p->trouble == 0 && strstr(p->elf.interp, "/ld-musl-") != NULL;
}
