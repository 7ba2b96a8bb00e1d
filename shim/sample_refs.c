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
 *
 * Sums are of regions that are mappings of their own (apart.h), and where that cannot be, of
 * mappings. What was found in collect() moves their borders at once, while it is known that the
 * mappings are still there.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

#include "shim/apart.h"
#include "shim/os/fd.h"
#include "shim/os/maps.h"
#include "shim/os/rawsys.h"
#include "shim/os/sys.h"
#include "shim/sample_refs.h"
#include "shim/sampler.h"

#ifndef MADV_COLD
#define MADV_COLD 20
#endif

#define PAGE ((size_t)4096)
#define SCRATCH_PAGES 64
#define AGE_STEP ((uintptr_t)64 << 20)

#define CLEAR_REFS "/proc/thread-self/clear_refs"
#define SMAPS "/proc/thread-self/smaps"

/* A mark of regions: their bits were cleared when last armed. */
#define ARMED LIFT_SPLIT_MARK_2

/* Elsewhere a flush of many pages may be one of many single pages. */
#if defined(__x86_64__)
#define FLUSHES_ALL true
#else
#define FLUSHES_ALL false
#endif

static struct lift_fd clear_refs;
static struct lift_fd smaps; /* kept open for programs that change their root */
static char *scratch;
static bool adapt_due; /* armed, and not collected since */
static char lines[4096];

static int scratch_map(void)
{
	long at;

	if (scratch)
		return 0;
	at = lift_sys_mmap_apart(SCRATCH_PAGES * PAGE, 0);
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
	lift_apart_close();
	refs_forked();
	if (scratch)
		lift_sys_munmap(scratch, SCRATCH_PAGES * PAGE);
	scratch = NULL;
}

static int64_t refs_watch(const struct lift_range *ranges, size_t nr)
{
	int rc = refs_open();

	if (rc < 0)
		return rc;
	/* Without memory for regions there are sums all the same. */
	(void)lift_apart_watch(ranges, nr);
	return (int64_t)lift_ranges_bytes(ranges, nr);
}

/* --- arming --- */

/* In steps, so that nobody waits long for the lock of the address space. */
static void age(struct lift_range r)
{
	while (!lift_range_empty(r)) {
		uintptr_t end = (r.start & ~(AGE_STEP - 1)) + AGE_STEP;

		if (end > r.end)
			end = r.end;
		/* Refused for what is locked or of a device. */
		(void)lift_sys_madvise((void *)r.start, end - r.start, MADV_COLD);
		r.start = end;
	}
}

static void mark_armed(bool yes)
{
	struct lift_split *split = lift_apart_split();

	for (size_t i = 0; i < split->nr; i++) {
		if (yes)
			split->region[i].flags |= ARMED;
		else
			split->region[i].flags &= (uint8_t)~ARMED;
	}
}

/*
 * All of a mapping or region, however little of it was asked for: its sum has to be of the same
 * time, and a huge page that is aged in part is split.
 */
static int age_part(void *arg, struct lift_range part, const struct lift_maps_line *mapping)
{
	uintptr_t *done = arg;
	struct lift_split *split = lift_apart_split();
	struct lift_range r = mapping->range;
	size_t i = lift_split_find(split, part.start);

	for (; i < split->nr && split->region[i].start < part.end; i++) {
		split->region[i].flags |= ARMED;
		if (split->region[i].start < r.start)
			r.start = split->region[i].start;
		if (split->region[i].end > r.end)
			r.end = split->region[i].end;
	}
	if (r.start < *done)
		r.start = *done;
	age(r);
	if (r.end > *done)
		*done = r.end;
	return 0;
}

static uint64_t resident_bytes(void)
{
	char text[128];
	long n = lift_sys_read_file("/proc/thread-self/statm", text, sizeof(text));
	uint64_t pages = 0;
	const char *second = n > 0 ? strchr(text, ' ') : NULL;
	const char *end = second ? strchr(second + 1, ' ') : NULL;

	if (!end || lift_parse_u64(second + 1, (size_t)(end - second - 1), &pages) < 0)
		return 0;
	return pages * PAGE;
}

/*
 * MADV_COLD takes up to eight times as long for a page as clear_refs does, and only a lock for
 * reading: it is used for regions that are less than an eighth of what is resident. False: for more
 * than that, or memory of which no region is known.
 */
static bool arm_small_part(const struct lift_range *ranges, size_t nr)
{
	struct lift_split *split = lift_apart_split();
	uint64_t most = split->nr ? resident_bytes() / 8 : 0;
	uint64_t bytes = 0;

	mark_armed(false);
	for (size_t k = 0; k < nr; k++) {
		uintptr_t at = ranges[k].start;
		size_t i = lift_split_find(split, at);

		for (; at < ranges[k].end && i < split->nr && split->region[i].start <= at; i++) {
			struct lift_split_region *r = &split->region[i];

			if (!(r->flags & ARMED))
				bytes += r->end - r->start;
			r->flags |= ARMED;
			at = r->end;
		}
		if (at < ranges[k].end || bytes >= most)
			return false;
	}
	for (size_t i = 0; i < split->nr; i++)
		if (split->region[i].flags & ARMED)
			age((struct lift_range){split->region[i].start, split->region[i].end});
	return true;
}

static int refs_arm(const struct lift_range *ranges, size_t nr)
{
	uintptr_t done = 0;
	int rc = refs_open();
	int fd;

	if (rc < 0)
		return rc;
	fd = lift_fd_get(&clear_refs);
	adapt_due = true;
	if (fd >= 0 && arm_small_part(ranges, nr))
		return 0;
	if (fd >= 0 && lift_sys_write(fd, "1", 1) == 1) {
		flush_tlbs();
		mark_armed(true);
		return 0;
	}
	mark_armed(false);
	rc = lift_maps_parts(ranges, nr, lines, sizeof(lines), age_part, &done);
	return rc < 0 ? rc : 0;
}

/* --- collecting --- */

struct teller {
	const struct lift_range *ranges;
	size_t nr;
	lift_refs_fn *fn;
	void *arg;
};

static void tell(struct teller *to, const struct lift_sample *s, bool mixed)
{
	while (to->nr > 0 && to->ranges->end <= s->range.start) {
		to->ranges++;
		to->nr--;
	}
	if (to->nr > 0 && s->resident_bytes > 0 && lift_range_overlaps(*to->ranges, s->range))
		to->fn(to->arg, s, mixed);
}

/* A region as its mappings are read, and how far they reach without a gap. */
struct summing {
	size_t at;
	struct lift_sample sum;
	uint64_t huge_bytes;
	uintptr_t reached;
	bool good; /* the mappings seen so far are its own, and of its kind */
};

static void begin_region(struct summing *g, size_t at)
{
	const struct lift_split *split = lift_apart_split();

	*g = (struct summing){.at = at};
	if (at < split->nr) {
		g->reached = split->region[at].start;
		g->sum.range.start = g->reached;
		g->good = true;
	}
}

static void end_region(struct summing *g, struct teller *to)
{
	struct lift_split *split = lift_apart_split();
	struct lift_split_region *r = &split->region[g->at];
	struct lift_sample *s = &g->sum;
	bool whole = g->good && g->reached == r->end;
	bool mixed = false;

	s->range.end = g->reached; /* what comes behind it may be told of otherwise */
	s->huge = g->huge_bytes > 0 && g->huge_bytes == s->resident_bytes;
	/* If not as it was, nothing is done about it until the next watch(). */
	r->flags &= (uint8_t)~LIFT_APART_SEEN;
	if (whole)
		r->flags |= LIFT_APART_SEEN;
	if (whole && (r->flags & ARMED)) {
		mixed = lift_split_mixed(split, g->at, s->accessed_bytes, s->resident_bytes);
		if (adapt_due)
			lift_split_sampled(split, g->at, s->accessed_bytes, s->resident_bytes);
	}
	tell(to, s, mixed);
	begin_region(g, g->at + 1);
}

static void add_mapping(struct summing *g, const struct lift_smaps *vma, struct teller *to)
{
	struct lift_split *split = lift_apart_split();
	struct lift_sample own = {
		.range = vma->range,
		.accessed_bytes = vma->referenced_bytes,
		.resident_bytes = vma->rss_bytes,
		.huge = vma->huge_bytes == vma->rss_bytes,
	};

	while (g->at < split->nr && split->region[g->at].end <= vma->range.start)
		end_region(g, to);
	if (g->at < split->nr && split->region[g->at].start <= vma->range.start &&
		vma->range.end <= split->region[g->at].end) {
		g->sum.accessed_bytes += vma->referenced_bytes;
		g->sum.resident_bytes += vma->rss_bytes;
		g->huge_bytes += vma->huge_bytes;
		g->good &= vma->range.start == g->reached && !(vma->perms & LIFT_MAPS_SHARED);
		g->reached = vma->range.end;
		if (g->reached == split->region[g->at].end)
			end_region(g, to);
		return;
	}
	/* Borders are missing: the mapping is told of as what it is, and they are made again. */
	if (g->at < split->nr && split->region[g->at].start < vma->range.start)
		end_region(g, to);
	while (g->at < split->nr && split->region[g->at].start < vma->range.end) {
		struct lift_split_region *r = &split->region[g->at];

		begin_region(g, r->end > vma->range.end ? g->at : g->at + 1);
		g->good &= r->end <= vma->range.end;
		r->flags &= (uint8_t) ~(LIFT_SPLIT_DONE | LIFT_APART_SEEN);
		if (!(vma->perms & LIFT_MAPS_SHARED) && r->end <= vma->range.end)
			r->flags |= LIFT_APART_SEEN;
		split->moved = true;
		if (r->end > vma->range.end) {
			g->reached = vma->range.end;
			g->sum.range.start = g->reached;
			break;
		}
	}
	tell(to, &own, false);
}

int lift_refs_collect(const struct lift_range *ranges, size_t nr, lift_refs_fn *fn, void *arg)
{
	struct teller to = {.ranges = ranges, .nr = nr, .fn = fn, .arg = arg};
	const struct lift_split *split = lift_apart_split();
	struct lift_smaps vma = {0};
	struct summing g;
	struct lift_lines l;
	struct lift_text line;
	uintptr_t behind = 0;
	int rc = lift_lines_open(&l, SMAPS, lift_fd_get(&smaps), lines, sizeof(lines));

	if (rc < 0)
		return rc;
	begin_region(&g, 0);
	/* All regions the first time, whatever is asked for: borders move by what is seen now. */
	while (((to.nr > 0 && behind < ranges[nr - 1].end) || (adapt_due && g.at < split->nr)) &&
		(rc = lift_lines_next(&l, &line)) > 0) {
		/* What begins before the end of the last one has changed while we were reading, and
		 * has been told about in part. */
		if (lift_parse_smaps_line(line.s, line.len, &vma) != LIFT_SMAPS_LAST ||
			vma.range.start < behind)
			continue;
		behind = vma.range.end;
		add_mapping(&g, &vma, &to);
	}
	if (rc >= 0 && g.at < split->nr && g.reached > split->region[g.at].start)
		end_region(&g, &to);
	lift_lines_close(&l);
	if (rc < 0)
		return rc;
	if (adapt_due)
		lift_apart_adapt();
	adapt_due = false;
	return 0;
}

struct listener {
	lift_sample_fn *fn;
	void *arg;
	bool idle_too;
};

static void pass_on(void *arg, const struct lift_sample *s, bool mixed)
{
	const struct listener *to = arg;

	(void)mixed;
	if (s->accessed_bytes > 0 || to->idle_too)
		to->fn(to->arg, s);
}

static int refs_collect(
	const struct lift_range *ranges, size_t nr, unsigned how, lift_sample_fn *fn, void *arg)
{
	struct listener to = {.fn = fn, .arg = arg, .idle_too = (how & LIFT_COLLECT_IDLE) != 0};

	return lift_refs_collect(ranges, nr, pass_on, &to);
}

static void refs_disarm(const struct lift_range *ranges, size_t nr)
{
	lift_apart_join(ranges, nr);
}

/* --- probing --- */

/* Writing to clear_refs would be felt by the whole process; that it can be opened is enough. */
static int refs_probe(void)
{
	struct lift_fd fd;
	struct lift_smaps vma = {0};
	struct lift_lines l;
	struct lift_text line;
	bool seen = false;
	long at = lift_sys_mmap_apart(PAGE, 0);
	int rc;

	if (lift_syserr(at))
		return (int)at;
	*(volatile char *)at = 1;
	rc = lift_lines_open(&l, SMAPS, -1, lines, sizeof(lines));
	if (rc == 0) {
		while (!seen && (rc = lift_lines_next(&l, &line)) > 0)
			seen = lift_parse_smaps_line(line.s, line.len, &vma) == LIFT_SMAPS_LAST &&
			       vma.range.start <= (uintptr_t)at && vma.range.end > (uintptr_t)at &&
			       vma.rss_bytes > 0;
		lift_lines_close(&l);
		rc = rc < 0 ? rc : seen ? 0 : -EINVAL;
	}
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
