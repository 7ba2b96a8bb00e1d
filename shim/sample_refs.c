// SPDX-License-Identifier: MIT
/*
 * The sampler refs: the processor's referenced bits. Writing 1 to clear_refs clears those of all
 * pages, smaps has the sum of each mapping. Both are old, and need no privilege and no feature.
 *
 * Clearing does not flush the TLBs: what stays in one is used without its bit being set, and looks
 * cold, most of all what is used most. Changing the protection of a populated stretch of our own
 * flushes them on all processors that run this process: on x86 the kernel flushes everything once
 * more than 33 pages change.
 *
 * clear_refs may not be opened by a process that changed its user (it is root's then, and a child
 * of fork has to open its own). MADV_COLD does it as well, for the ranges named and with a flush of
 * its own, and asks nobody; but it also moves the pages towards reclaim.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>

#include "shim/os/fd.h"
#include "shim/os/maps.h"
#include "shim/os/rawsys.h"
#include "shim/os/sys.h"
#include "shim/sampler.h"

#ifndef MADV_COLD
#define MADV_COLD 20
#endif

#define PAGE ((size_t)4096)
#define SCRATCH_PAGES 64

#define CLEAR_REFS "/proc/self/clear_refs"
#define SMAPS "/proc/self/smaps"

/* Elsewhere a flush of many pages may be one of many single pages. */
#if defined(__x86_64__)
#define FLUSHES_ALL true
#else
#define FLUSHES_ALL false
#endif

static struct lift_fd clear_refs;
static struct lift_fd smaps; /* kept open for programs that change their root */
static char *scratch;
static char lines[4096];

static int scratch_map(void)
{
	long at;

	if (scratch)
		return 0;
	at = lift_sys_mmap(NULL, SCRATCH_PAGES * PAGE, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (lift_syserr(at))
		return (int)at;
	/* A huge page, if the mapping became part of a larger one, would be a single page. */
	(void)lift_sys_madvise((void *)at, SCRATCH_PAGES * PAGE, MADV_NOHUGEPAGE);
	scratch = (char *)at;
	return 0;
}

static void flush_tlbs(void)
{
	/* They have to be there, and may have been swapped out since. */
	for (size_t i = 0; i < SCRATCH_PAGES; i++)
		((volatile char *)scratch)[i * PAGE] = 1;
	/* Not to read-only: the way back may leave them so, and the next time nothing changes. */
	(void)lift_sys_mprotect(scratch, SCRATCH_PAGES * PAGE, PROT_NONE);
	(void)lift_sys_mprotect(scratch, SCRATCH_PAGES * PAGE, PROT_READ | PROT_WRITE);
}

static int refs_open(void)
{
	int rc;

	if (lift_fd_get(&smaps) < 0) {
		rc = lift_fd_open(&smaps, SMAPS, O_RDONLY);
		if (rc < 0)
			return rc;
	}
	/* Without it there is MADV_COLD. */
	if (FLUSHES_ALL && lift_fd_get(&clear_refs) < 0 && scratch_map() == 0)
		(void)lift_fd_open(&clear_refs, CLEAR_REFS, O_WRONLY);
	return 0;
}

static void refs_forked(void)
{
	lift_fd_close(&clear_refs);
	lift_fd_close(&smaps);
}

static void refs_close(void)
{
	refs_forked();
	if (scratch)
		lift_sys_munmap(scratch, SCRATCH_PAGES * PAGE);
	scratch = NULL;
}

static int64_t refs_watch(const struct lift_range *ranges, size_t nr)
{
	int rc = refs_open();

	return rc < 0 ? rc : (int64_t)lift_ranges_bytes(ranges, nr);
}

static int age_part(void *arg, struct lift_range part, const struct lift_maps_line *mapping)
{
	(void)arg;
	(void)mapping;
	(void)lift_sys_madvise((void *)part.start, lift_range_bytes(part), MADV_COLD);
	return 0;
}

static int refs_arm(const struct lift_range *ranges, size_t nr)
{
	int rc = refs_open();
	int fd;

	if (rc < 0)
		return rc;
	fd = lift_fd_get(&clear_refs);
	if (fd >= 0 && lift_sys_write(fd, "1", 1) == 1) {
		flush_tlbs();
		return 0;
	}
	for (size_t i = 0; i < nr; i++) {
		rc = (int)lift_sys_madvise(
			(void *)ranges[i].start, lift_range_bytes(ranges[i]), MADV_COLD);
		if (rc < 0 && rc != -ENOMEM) /* which says that there were holes */
			/*
			 * A mapping that cannot be aged (locked, of a device) ends it: on with what
			 * is behind that one, and where that is only maps can tell.
			 */
			return lift_maps_parts(
				ranges + i, nr - i, lines, sizeof(lines), age_part, NULL);
	}
	return 0;
}

static int refs_collect(
	const struct lift_range *ranges, size_t nr, unsigned how, lift_sample_fn *fn, void *arg)
{
	struct lift_smaps vma = {0};
	struct lift_lines l;
	struct lift_text line;
	uintptr_t behind = 0;
	size_t i = 0;
	int rc = lift_lines_open(&l, SMAPS, lift_fd_get(&smaps), lines, sizeof(lines));

	if (rc < 0)
		return rc;
	while (i < nr && (rc = lift_lines_next(&l, &line)) > 0) {
		struct lift_sample s;

		/* What begins before the end of the last one has changed while we were reading, and
		 * has been told about in part. */
		if (lift_parse_smaps_line(line.s, line.len, &vma) != LIFT_SMAPS_LAST ||
			vma.range.start < behind)
			continue;
		behind = vma.range.end;
		while (i < nr && ranges[i].end <= vma.range.start)
			i++;
		if (i == nr || !lift_range_overlaps(ranges[i], vma.range) || vma.rss_bytes == 0 ||
			(vma.referenced_bytes == 0 && !(how & LIFT_COLLECT_IDLE)))
			continue;
		s = (struct lift_sample){
			.range = vma.range,
			.accessed_bytes = vma.referenced_bytes,
			.resident_bytes = vma.rss_bytes,
			.huge = vma.huge_bytes == vma.rss_bytes,
		};
		fn(arg, &s);
	}
	lift_lines_close(&l);
	return rc < 0 ? rc : 0;
}

static void refs_disarm(const struct lift_range *ranges, size_t nr)
{
	(void)ranges;
	(void)nr;
}

static void note_own(void *arg, const struct lift_sample *s)
{
	uint64_t *bytes = arg;

	*bytes += s->resident_bytes;
}

/* Writing to clear_refs would be felt by the whole process; that it can be opened is enough. */
static int refs_probe(void)
{
	struct lift_range own;
	struct lift_fd fd;
	uint64_t bytes = 0;
	long at = lift_sys_mmap(
		NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int rc;

	if (lift_syserr(at))
		return (int)at;
	*(volatile char *)at = 1;
	own = (struct lift_range){.start = (uintptr_t)at, .end = (uintptr_t)at + PAGE};
	rc = refs_collect(&own, 1, LIFT_COLLECT_IDLE, note_own, &bytes);
	if (rc == 0 && bytes == 0)
		rc = -EINVAL;
	if (rc == 0) {
		rc = FLUSHES_ALL ? lift_fd_open(&fd, CLEAR_REFS, O_WRONLY) : -EINVAL;
		if (rc == 0)
			lift_fd_close(&fd);
		else
			rc = (int)lift_sys_madvise((void *)at, PAGE, MADV_COLD);
	}
	lift_sys_munmap((void *)at, PAGE);
	return rc;
}

const struct lift_sampler lift_sampler_refs = {
	.name = "refs",
	.traits = LIFT_SAMPLER_READS | LIFT_SAMPLER_WHOLE,
	.probe = refs_probe,
	.open = refs_open,
	.watch = refs_watch,
	.arm = refs_arm,
	.collect = refs_collect,
	.disarm = refs_disarm,
	.close = refs_close,
	.forked = refs_forked,
};

/*
 * MPOL_F_STATIC_NODES only says what becomes of the nodes when the cpuset changes: the kernel
 * compares it, so mappings that differ in it stay apart, and allocates just the same. Where the
 * policy has such a flag already, PREFERRED with one node can be said as PREFERRED_MANY. No policy
 * and local are the same as long as the thread that allocates has none.
 */
static int other_form(int mode, const struct lift_nodeset *nodes)
{
	int flags = mode & LIFT_MPOL_F_MASK;
	int plain = mode & ~LIFT_MPOL_F_MASK;

	if (plain == LIFT_MPOL_DEFAULT)
		return flags ? -EINVAL : LIFT_MPOL_LOCAL;
	if (plain == LIFT_MPOL_LOCAL)
		return flags ? -EINVAL : LIFT_MPOL_DEFAULT;
	if (!nodes || lift_nodeset_empty(nodes))
		return -EINVAL;
	if (!(flags & (LIFT_MPOL_F_STATIC_NODES | LIFT_MPOL_F_RELATIVE_NODES)))
		return mode | LIFT_MPOL_F_STATIC_NODES;
	if (lift_nodeset_count(nodes) != 1)
		return -EINVAL;
	if (plain == LIFT_MPOL_PREFERRED)
		return LIFT_MPOL_PREFERRED_MANY | flags;
	if (plain == LIFT_MPOL_PREFERRED_MANY)
		return LIFT_MPOL_PREFERRED | flags;
	return -EINVAL;
}

int lift_refs_separate(
	struct lift_range range, size_t bytes, int mode, const struct lift_nodeset *nodes)
{
	int forms[2] = {mode, other_form(mode, nodes)};
	size_t step = bytes ? bytes : lift_range_bytes(range);

	if (lift_range_empty(range) || step % PAGE != 0)
		return -EINVAL;
	if (bytes && forms[1] < 0)
		return forms[1];
	/*
	 * Which form a region gets follows from its address, so that doing it again, or for a part,
	 * changes nothing.
	 */
	while (!lift_range_empty(range)) {
		uintptr_t end = bytes ? range.start - range.start % step + step : range.end;
		int form = forms[bytes ? range.start / step % 2 : 0];
		bool none = (form & ~LIFT_MPOL_F_MASK) == LIFT_MPOL_DEFAULT ||
			    (form & ~LIFT_MPOL_F_MASK) == LIFT_MPOL_LOCAL;
		long rc;

		if (end > range.end)
			end = range.end;
		rc = lift_sys_mbind((void *)range.start, (size_t)(end - range.start), form,
			none ? NULL : nodes, 0);
		if (rc < 0)
			return (int)rc;
		range.start = end;
	}
	return 0;
}
