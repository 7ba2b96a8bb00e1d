// SPDX-License-Identifier: MIT
/*
 * What the kernel handed to the process at its start: arguments, environment and auxiliary vector,
 * read where it left them on the main thread's stack. libc's environ is of no use here: it is not
 * set when the first calls arrive, and the program may move it about (setenv) while other threads
 * run. Read-only, no allocation, callable at any time; the strings live as long as the process, but
 * a program that rewrites its title writes over them: read them at the start.
 */
#ifndef NUMALIFT_SHIM_OS_ENV_H
#define NUMALIFT_SHIM_OS_ENV_H

#include <stdbool.h>
#include <stddef.h>

/* Value of NAME in the original environment, or NULL. Writable in place (it may only get shorter).
 */
char *lift_env_get(const char *name);

/* Last component of the path that was executed; "" when unknown. */
const char *lift_env_program(void);

/* Bytes of a page (AT_PAGESZ); 0 when unknown. */
unsigned long lift_env_page_bytes(void);

/* True for setuid, setgid and file capability programs (AT_SECURE): the environment is not to be
 * trusted. */
bool lift_env_secure(void);

#endif
