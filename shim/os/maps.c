// SPDX-License-Identifier: MIT
#include "shim/os/maps.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "shim/os/fd.h"
#include "shim/os/rawsys.h"

int lift_lines_open(struct lift_lines *l, const char *path, int fd, char *buf, size_t size)
{
	*l = (struct lift_lines){.fd = fd, .buf = buf, .size = size};
	if (fd >= 0)
		return 0;
	l->fd = (int)lift_syscall(SYS_openat, AT_FDCWD, (long)path, O_RDONLY | O_CLOEXEC, 0, 0, 0);
	l->owned = l->fd >= 0;
	return l->owned ? 0 : l->fd;
}

void lift_lines_close(struct lift_lines *l)
{
	if (l->owned)
		lift_syscall(SYS_close, l->fd, 0, 0, 0, 0, 0);
	l->owned = false;
}

/* More bytes behind those that are there. */
static int fill(struct lift_lines *l)
{
	long n;

	memmove(l->buf, l->buf + l->from, l->have - l->from);
	l->have -= l->from;
	l->from = 0;
	n = lift_fd_read_at(l->fd, l->buf + l->have, l->size - l->have, l->offset);
	if (n < 0)
		return (int)n;
	l->ended = n == 0;
	l->offset += (uint64_t)n;
	l->have += (size_t)n;
	return 0;
}

int lift_lines_next(struct lift_lines *l, struct lift_text *ret)
{
	for (;;) {
		const char *at = l->buf + l->from;
		size_t left = l->have - l->from;
		const char *newline = left ? memchr(at, '\n', left) : NULL;
		bool drop = l->cut;
		int rc;

		if (newline) {
			l->cut = false;
			l->from += (size_t)(newline - at) + 1;
			if (drop)
				continue;
			*ret = (struct lift_text){.s = at, .len = (size_t)(newline - at)};
			return 1;
		}
		if (left == l->size || (l->ended && left)) {
			l->cut = !l->ended;
			l->from = l->have;
			if (drop)
				continue;
			*ret = (struct lift_text){.s = at, .len = left};
			return 1;
		}
		if (l->ended)
			return 0;
		rc = fill(l);
		if (rc < 0)
			return rc;
	}
}

int lift_maps_parts(const struct lift_range *ranges, size_t nr, char *buf, size_t size,
	lift_part_fn *fn, void *arg)
{
	struct lift_lines l;
	struct lift_text line;
	uintptr_t behind = 0;
	size_t i = 0;
	int rc = lift_lines_open(&l, "/proc/thread-self/maps", -1, buf, size);

	if (rc < 0)
		return rc;
	while (i < nr && (rc = lift_lines_next(&l, &line)) > 0) {
		struct lift_maps_line m;

		rc = 0;
		if (lift_parse_maps_line(line.s, line.len, &m) < 0)
			continue;
		if (m.range.start < behind) /* it grew backwards while we were reading */
			m.range.start = behind;
		behind = m.range.end;
		while (i < nr && ranges[i].end <= m.range.start)
			i++;
		for (size_t k = i; k < nr && ranges[k].start < m.range.end && rc == 0; k++) {
			struct lift_range part = lift_range_and(ranges[k], m.range);

			if (!lift_range_empty(part))
				rc = fn(arg, part, &m);
		}
		if (rc != 0)
			break;
	}
	lift_lines_close(&l);
	return rc;
}
