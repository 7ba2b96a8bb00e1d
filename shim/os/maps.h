// SPDX-License-Identifier: MIT
/*
 * Reading /proc/self/maps and smaps mapping by mapping, in pieces that fit a small buffer, without
 * allocation. The list may change between two pieces: a mapping can be missed, or begin before
 * the end of the one before it, when the two have been merged meanwhile. errno is left alone.
 */
#ifndef NUMALIFT_SHIM_OS_MAPS_H
#define NUMALIFT_SHIM_OS_MAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "policy/procparse.h"

/* The buffer is the caller's: 512 bytes at least, 4 KiB are right (what the kernel hands out). */
struct lift_lines {
	int fd;
	bool owned;
	bool cut; /* the rest of an overlong line is to be dropped */
	bool ended;
	uint64_t offset;
	char *buf;
	size_t size;
	size_t from;
	size_t have;
};

/*
 * Opens path, or uses fd, an open descriptor of it, when that is not negative. 0 or -errno.
 */
int lift_lines_open(struct lift_lines *l, const char *path, int fd, char *buf, size_t size);

/* The next line, without its newline, overlong ones cut: valid until the next call. 1; 0 at the
 * end; -errno. */
int lift_lines_next(struct lift_lines *l, struct lift_text *ret);

void lift_lines_close(struct lift_lines *l);

/* A part of one of the ranges asked for that lies within one mapping. Not 0: ends the walk. */
typedef int lift_part_fn(void *arg, struct lift_range part, const struct lift_maps_line *mapping);

/*
 * Calls fn for what is mapped of ranges, ascending and without overlap themselves, in ascending
 * order. 0, what fn returned, or -errno. buf as for lift_lines_open().
 */
int lift_maps_parts(const struct lift_range *ranges, size_t nr, char *buf, size_t size,
	lift_part_fn *fn, void *arg);

#endif
