// SPDX-License-Identifier: MIT
#include "shim/os/env.h"

#include <elf.h>
#include <link.h>
#include <string.h>

/* ld.so's note of where the kernel put argc. Set before any library is loaded. */
extern void *__libc_stack_end;

static char **argv_of(long *ret_argc)
{
	long *sp = __libc_stack_end;

	/* Anything but a plausible count means that this is no stack we know. */
	if (!sp || sp[0] < 0 || sp[0] > (1 << 24) || ((char **)(sp + 1))[sp[0]] != NULL)
		return NULL;
	*ret_argc = sp[0];
	return (char **)(sp + 1);
}

static char **envp_of(void)
{
	long argc;
	char **argv = argv_of(&argc);

	return argv ? argv + argc + 1 : NULL;
}

static unsigned long auxv_value(unsigned long type, unsigned long otherwise)
{
	char **envp = envp_of();
	const ElfW(auxv_t) * a;

	if (!envp)
		return otherwise;
	while (*envp)
		envp++;
	for (a = (const ElfW(auxv_t) *)(void *)(envp + 1); a->a_type != AT_NULL; a++) {
		if (a->a_type == type)
			return a->a_un.a_val;
	}
	return otherwise;
}

char *lift_env_get(const char *name)
{
	char **envp = envp_of();
	size_t len = strlen(name);

	for (; envp && *envp; envp++) {
		if (strncmp(*envp, name, len) == 0 && (*envp)[len] == '=')
			return *envp + len + 1;
	}
	return NULL;
}

const char *lift_env_program(void)
{
	const char *path = (const char *)auxv_value(AT_EXECFN, 0);
	const char *slash;
	long argc;
	char **argv = argv_of(&argc);

	if (!path && argv && argc > 0)
		path = argv[0];
	if (!path)
		return "";
	slash = strrchr(path, '/');
	return slash ? slash + 1 : path;
}

bool lift_env_secure(void)
{
	return auxv_value(AT_SECURE, 1) != 0;
}

unsigned long lift_env_page_bytes(void)
{
	return auxv_value(AT_PAGESZ, 0);
}
