// SPDX-License-Identifier: MIT
/*
 * Tries what may end the process that tries it: a seccomp filter kills as easily as it refuses.
 */
#ifndef NUMALIFT_SHIM_CLI_PROBE_H
#define NUMALIFT_SHIM_CLI_PROBE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "policy/config.h"
#include "policy/placement.h"

/*
 * Runs @fn on @data in a child; what it writes into the @size bytes of @data is there afterwards.
 * 0; the number of the signal that ended the child; -errno when there was no child.
 */
int lift_probe(void (*fn)(void *data), void *data, size_t size);

/* lift_os_probe_policies(), as above: 0, a signal, or -errno of the kernel. */
int lift_probe_policies(struct lift_machine_view *view, int node);

struct lift_probe_uffd {
	int err;                     /* 0 or -errno */
	unsigned long long features; /* as the kernel lists them */
};

int lift_probe_uffd(struct lift_probe_uffd *ret);

/* *ret_err: 0 or -errno of the ioctl PAGEMAP_SCAN on a page of its own. */
int lift_probe_pagemap_scan(int *ret_err);

/* *ret_err: 0 or -errno of asking where an own page is and moving it to where it is. */
int lift_probe_move_pages(int *ret_err);

/* The same by a memory policy, as the library does where move_pages(2) is refused. */
int lift_probe_move_by_policy(int *ret_err);

/*
 * *ret_err: 0 or -errno of what the sampler needs, tried as the library does on pages of the
 * child's own. damon is not tried: 0.
 */
int lift_probe_sampler(enum lift_sampler_choice choice, int *ret_err);

struct lift_probe_mimalloc {
	int version;         /* mi_version(); 0: cannot be loaded */
	char text[PATH_MAX]; /* its path, or why it cannot be loaded */
};

/* Loads the library called @name as the dynamic linker finds it. */
int lift_probe_mimalloc(const char *name, struct lift_probe_mimalloc *ret);

struct lift_probe_preload {
	int status;      /* as waitpid(2) has it */
	char said[2048]; /* what came on stderr */
};

/* Runs the program at @path with the given LD_PRELOAD. 0 or -errno. */
int lift_probe_preload(const char *path, const char *preload, struct lift_probe_preload *ret);

#endif
