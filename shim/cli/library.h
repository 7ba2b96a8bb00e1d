// SPDX-License-Identifier: MIT
/*
 * Where libnumalift.so is, and how it gets into LD_PRELOAD.
 */
#ifndef NUMALIFT_SHIM_CLI_LIBRARY_H
#define NUMALIFT_SHIM_CLI_LIBRARY_H

#include <limits.h>

/*
 * Absolute path of the library in @ret: @asked when it is not NULL, else where it lies relative to
 * this command, in a build tree or as installed. 0; otherwise -errno, and *ret_why (for free(3))
 * says in a sentence what is wrong and what helps.
 */
int lift_library_find(const char *asked, char ret[PATH_MAX], char **ret_why);

/*
 * LD_PRELOAD with @library at its end, unless it is there already, in *ret (for free(3); never
 * NULL).
 * @old may be NULL. When @old has another file of the same name that one would come first and the
 * second would be a stranger to it: *ret is as @old then, and *ret_other (for free(3)) is its path,
 * otherwise NULL.
 */
void lift_library_preload(const char *old, const char *library, char **ret, char **ret_other);

#endif
