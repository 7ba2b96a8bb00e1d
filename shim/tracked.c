// SPDX-License-Identifier: MIT
#include "shim/tracked.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "policy/procparse.h"
#include "shim/os/maps.h"
#include "shim/os/rawsys.h"
#include "shim/os/sys.h"
#include "shim/place.h"

struct list {
	struct lift_range *range;
	size_t nr;
};

static struct list now;    /* as of the last read */
static struct list before; /* as of the one before that */
static struct list fixed;  /* what placement knows to be somebody's own choice */
static size_t max_ranges;  /* of each list */
static char lines[4096];

int lift_tracked_open(size_t max, struct lift_range *ret)
{
	static struct lift_range memory;
	size_t bytes = (3 * max * sizeof(struct lift_range) + 4095) & ~(size_t)4095;
	long at;

	*ret = memory;
	if (max_ranges)
		return 0;
	at = lift_sys_mmap_apart(bytes, MAP_NORESERVE);
	if (lift_syserr(at))
		return (int)at;
	(void)lift_sys_madvise((void *)at, bytes, MADV_NOHUGEPAGE);
	now.range = (struct lift_range *)at;
	before.range = now.range + max;
	fixed.range = before.range + max;
	memory = (struct lift_range){(uintptr_t)at, (uintptr_t)at + bytes};
	max_ranges = max;
	*ret = memory;
	return 0;
}

static bool starts_with(const struct lift_text *t, const char *s)
{
	size_t len = strlen(s);

	return t->len >= len && memcmp(t->s, s, len) == 0;
}

/* By what it is called; a name can also be the program's own file of that name, which has a disk
 * behind it and is refused when it comes to sampling. */
static bool movable(const struct lift_text *path, unsigned perms, uint64_t inode)
{
	if (!(perms & (LIFT_MAPS_READ | LIFT_MAPS_WRITE)))
		return false;
	if (perms & LIFT_MAPS_SHARED)
		return starts_with(path, "/dev/zero") || starts_with(path, "/memfd:") ||
		       starts_with(path, "/dev/shm/") || starts_with(path, "/SYSV") ||
		       starts_with(path, "[anon_shmem:");
	return inode == 0 &&
	       (path->len == 0 || starts_with(path, "[heap]") || starts_with(path, "[anon:"));
}

static void append(struct list *l, struct lift_range r)
{
	if (lift_range_empty(r))
		return;
	if (l->nr && l->range[l->nr - 1].end == r.start)
		l->range[l->nr - 1].end = r.end;
	else if (l->nr < max_ranges)
		l->range[l->nr++] = r;
}

/* Of two ascending lists what lies in a and not in b, piece by piece. */
struct walk {
	const struct lift_range *b;
	size_t nr;
	size_t at;
};

static void without(struct lift_range r, struct walk *w,
	void (*fn)(void *arg, struct lift_range piece), void *arg)
{
	while (w->at < w->nr && w->b[w->at].end <= r.start)
		w->at++;
	for (size_t i = w->at; i < w->nr && w->b[i].start < r.end; i++) {
		if (w->b[i].start > r.start)
			fn(arg, (struct lift_range){r.start, w->b[i].start});
		if (w->b[i].end >= r.end)
			return;
		if (w->b[i].end > r.start)
			r.start = w->b[i].end;
	}
	if (!lift_range_empty(r))
		fn(arg, r);
}

static void keep(void *arg, struct lift_range r)
{
	append(arg, r);
}

struct out {
	struct list *to;
	struct walk own;
	struct walk fixed;
};

static void not_fixed(void *arg, struct lift_range r)
{
	struct out *o = arg;

	without(r, &o->fixed, keep, o->to);
}

/* maps, or smaps where something is locked, which only that one tells. */
static int read_mappings(struct out *o, bool whole)
{
	struct lift_smaps vma = {0};
	struct lift_lines l;
	struct lift_text line;
	bool wanted = false;
	uintptr_t behind = 0;
	int rc = lift_lines_open(&l, whole ? "/proc/thread-self/smaps" : "/proc/self/maps", -1,
		lines, sizeof(lines));

	if (rc < 0)
		return rc;
	while ((rc = lift_lines_next(&l, &line)) > 0) {
		struct lift_maps_line m;
		struct lift_range r;
		enum lift_smaps_line kind = LIFT_SMAPS_FIRST;

		if (whole)
			kind = lift_parse_smaps_line(line.s, line.len, &vma);
		if (kind == LIFT_SMAPS_FIRST) {
			wanted = lift_parse_maps_line(line.s, line.len, &m) == 0 &&
				 movable(&m.path, m.perms, m.inode);
			if (!wanted || whole)
				continue;
			r = m.range;
		} else if (kind != LIFT_SMAPS_LAST || !wanted || vma.locked || vma.special ||
			   vma.kernel_page_bytes > 4096) {
			continue;
		} else {
			r = vma.range;
		}
		/* Mappings that were merged meanwhile begin before what was told already. */
		if (r.start < behind)
			r.start = behind;
		if (lift_range_empty(r))
			continue;
		behind = r.end;
		without(r, &o->own, not_fixed, o);
	}
	lift_lines_close(&l);
	return rc;
}

static bool something_locked(void)
{
	char buf[4096];
	uint64_t kib = 0;
	long n = lift_sys_read_file("/proc/thread-self/status", buf, sizeof(buf));

	return n > 0 && lift_parse_named_u64(buf, (size_t)n, "VmLck", &kib) == 0 && kib > 0;
}

int lift_tracked_read(const struct lift_range *own, size_t nr_own, struct lift_tracked *ret)
{
	struct list fresh = before;
	struct out o = {.own = {.b = own, .nr = nr_own}};
	int rc;

	fixed.nr = lift_place_fixed(fixed.range, max_ranges);
	fresh.nr = 0;
	o.to = &fresh;
	o.fixed = (struct walk){.b = fixed.range, .nr = fixed.nr};
	rc = read_mappings(&o, something_locked());
	if (rc < 0)
		return rc;
	before = now;
	now = fresh;
	*ret = (struct lift_tracked){.range = now.range, .nr = now.nr};
	for (size_t i = 0; i < now.nr; i++)
		ret->bytes += lift_range_bytes(now.range[i]);
	return 0;
}

void lift_tracked_changes(void (*gone)(void *arg, struct lift_range r),
	void (*come)(void *arg, struct lift_range r), void *arg)
{
	struct walk w = {.b = now.range, .nr = now.nr};

	for (size_t i = 0; i < before.nr; i++)
		without(before.range[i], &w, gone, arg);
	w = (struct walk){.b = before.range, .nr = before.nr};
	for (size_t i = 0; i < now.nr; i++)
		without(now.range[i], &w, come, arg);
}

bool lift_tracked_next(uintptr_t from, uintptr_t end, struct lift_range *ret)
{
	size_t low = 0;
	size_t high = now.nr;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (now.range[mid].end <= from)
			low = mid + 1;
		else
			high = mid;
	}
	if (from >= end || low == now.nr || now.range[low].start >= end)
		return false;
	*ret = now.range[low];
	if (ret->start < from)
		ret->start = from;
	if (ret->end > end)
		ret->end = end;
	return true;
}

void lift_tracked_forked(void)
{
	now.nr = 0;
	before.nr = 0;
}
