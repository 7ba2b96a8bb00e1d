// SPDX-License-Identifier: MIT
#include "shim/cli/library.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shim/cli/cli.h"
#include "shim/cli/elf_file.h"
#include "shim/cli/text.h"

#define LIBRARY "libnumalift.so"
/* ld.so takes both as separators and knows no way to quote them. */
#define SEPARATORS ": "

/* --- finding -----------------------------------------------------------------------------------
 */

/* Folder of this command; "" when it cannot be found out. */
static void own_folder(char ret[PATH_MAX])
{
	ssize_t n = readlink("/proc/self/exe", ret, PATH_MAX - 1);
	char *slash;

	if (n > 0) {
		ret[n] = '\0';
	} else {
		const char *name = (const char *)getauxval(AT_EXECFN);

		if (!name || !realpath(name, ret))
			ret[0] = '\0';
	}
	slash = strrchr(ret, '/');
	if (slash)
		*slash = '\0';
}

/* Takes the path @tail off the end of @path; false when it does not end so. */
static bool take_off(char *path, const char *tail)
{
	size_t n = strlen(path);
	size_t m = strlen(tail);

	if (m == 0 || n <= m || path[n - m - 1] != '/' || memcmp(path + n - m, tail, m) != 0)
		return false;
	path[n - m - 1] = '\0';
	return true;
}

/* NULL when the file is a library for this architecture, else what it is instead. */
static char *unusable(const char *path)
{
	struct lift_elf elf;
	int rc = lift_elf_read(path, &elf);

	if (rc == -ENOEXEC)
		return lift_text("%s: no shared library", path);
	if (rc)
		return lift_text("%s: %s", path, strerror(-rc));
	return elf.native ? NULL : lift_text("%s: a library for %s", path, elf.machine);
}

/* Appends a place to @tried and says whether the library is there. */
static bool try_at(const char *dir, const char *sub, char ret[PATH_MAX], char *tried, size_t n)
{
	char path[PATH_MAX];
	size_t len = strlen(tried);
	char *why;

	if (snprintf(path, sizeof(path), "%s/%s/" LIBRARY, dir, sub) >= (int)sizeof(path))
		return false;
	why = unusable(path);
	free(why);
	if (!why && realpath(path, ret))
		return true;
	(void)snprintf(tried + len, n - len, "%s%s", len ? ", " : "", path);
	return false;
}

static bool find(char ret[PATH_MAX], char *tried, size_t n)
{
	char folder[PATH_MAX];

	own_folder(folder);
	tried[0] = '\0';
	if (folder[0]) {
		if (take_off(folder, "cli")) {
			if (try_at(folder, ".", ret, tried, n))
				return true;
		} else if (LIFT_LIBDIR[0] != '/' && take_off(folder, LIFT_BINDIR)) {
			/* As installed, wherever that tree was moved to. */
			if (try_at(folder, LIFT_LIBDIR, ret, tried, n))
				return true;
		}
	}
	return try_at(LIFT_LIBDIR[0] == '/' ? "" : LIFT_PREFIX, LIFT_LIBDIR, ret, tried, n);
}

int lift_library_find(const char *asked, char ret[PATH_MAX], char **ret_why)
{
	char tried[3 * PATH_MAX];

	*ret_why = NULL;
	if (asked) {
		*ret_why = unusable(asked);
		if (!*ret_why && !realpath(asked, ret))
			*ret_why = lift_text("%s: %s", asked, strerror(errno));
	} else if (!find(ret, tried, sizeof(tried))) {
		*ret_why = lift_text(LIBRARY " is not where it belongs (%s); say where it is with "
					     "--library=FILE",
			tried);
	}
	if (*ret_why)
		return -ENOENT;
	if (ret[strcspn(ret, SEPARATORS)]) {
		*ret_why = lift_text(
			"%s: LD_PRELOAD cannot hold a path with a colon or a blank; make a "
			"copy of the library elsewhere and name it with --library=FILE",
			ret);
		return -EINVAL;
	}
	return 0;
}

/* --- LD_PRELOAD --------------------------------------------------------------------------------
 */

static bool same_file(const char *a, const char *b)
{
	struct stat sa;
	struct stat sb;

	return stat(a, &sa) == 0 && stat(b, &sb) == 0 && sa.st_dev == sb.st_dev &&
	       sa.st_ino == sb.st_ino;
}

static const char *base_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

void lift_library_preload(const char *old, const char *library, char **ret, char **ret_other)
{
	const char *p = old ? old : "";

	*ret_other = NULL;
	for (;;) {
		size_t len;
		char *entry;

		p += strspn(p, SEPARATORS);
		if (!*p)
			break;
		len = strcspn(p, SEPARATORS);
		entry = lift_text("%.*s", (int)len, p);
		p += len;
		if (strcmp(base_of(entry), base_of(library)) == 0 || same_file(entry, library)) {
			*ret = lift_text("%s", old);
			/* What has no slash or a $ is for ld.so to find: taken to be the same. */
			if (strchr(entry, '/') && !strchr(entry, '$') && !same_file(entry, library))
				*ret_other = entry;
			else
				free(entry);
			return;
		}
		free(entry);
	}
	if (!old || !*old)
		*ret = lift_text("%s", library);
	else
		*ret = lift_text("%s:%s", old, library);
}
