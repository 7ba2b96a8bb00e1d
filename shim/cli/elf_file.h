// SPDX-License-Identifier: MIT
/*
 * What an executable says about itself, as far as it matters to a preload. Reads a file that
 * anybody may have written: every offset in it is checked.
 */
#ifndef NUMALIFT_SHIM_CLI_ELF_FILE_H
#define NUMALIFT_SHIM_CLI_ELF_FILE_H

#include <stdbool.h>
#include <stddef.h>

#define LIFT_ELF_NEEDED_MAX 64
#define LIFT_ELF_NAME_BYTES 96

struct lift_elf {
	bool native;        /* of this process's architecture; the rest is not read of others */
	bool static_linked; /* no program interpreter, so nothing looks at LD_PRELOAD */
	bool own_malloc;    /* defines malloc where the dynamic linker finds it, before a preload */
	bool own_mmap;
	char machine[24];   /* "x86-64", "i386", ... */
	char interp[256];   /* the program interpreter; empty: none */
	char sanitizer[24]; /* "AddressSanitizer", ...; empty: none */
	unsigned nr_needed;
	char needed[LIFT_ELF_NEEDED_MAX][LIFT_ELF_NAME_BYTES]; /* libraries linked with */
};

/* 0; -ENOEXEC: no ELF file, or a damaged one; -errno of opening and reading. *ret is whole on 0
 * only. */
int lift_elf_read(const char *path, struct lift_elf *ret);

/* The first needed library whose name begins with @prefix, or NULL. */
const char *lift_elf_needs(const struct lift_elf *elf, const char *prefix);

#endif
