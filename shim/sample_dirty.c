// SPDX-License-Identifier: MIT
/*
 * The sampler dirty: soft-dirty bits, for kernels without WP_ASYNC. Writing 4 to clear_refs clears
 * them and write-protects every page of the process; pagemap has them, one word per page. Exact for
 * writes to 4 KiB pages that were there when armed.
 *
 * Garbage collectors (bdwgc is one) find out with these very bits what they have to look at again,
 * and lose objects when somebody else clears them. Nothing can tell whether the program does so:
 * this one is used only when asked for by name.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>

#include "shim/os/fd.h"
#include "shim/os/maps.h"
#include "shim/os/pagemap.h"
#include "shim/os/rawsys.h"
#include "shim/os/sys.h"
#include "shim/sampler.h"

#define PAGE ((uintptr_t)4096)
#define HUGE_PAGES ((size_t)512)

static struct lift_fd clear_refs;
static struct lift_fd pagemap;
static uint64_t words[HUGE_PAGES];
static char lines[4096];

static int dirty_open(void)
{
	int rc = 0;

	if (lift_fd_get(&clear_refs) < 0)
		rc = lift_fd_open(&clear_refs, "/proc/thread-self/clear_refs", O_WRONLY);
	if (rc == 0 && lift_fd_get(&pagemap) < 0)
		rc = lift_pagemap_open(&pagemap);
	return rc;
}

static void dirty_close(void)
{
	lift_fd_close(&clear_refs);
	lift_fd_close(&pagemap);
}

static int64_t dirty_watch(const struct lift_range *ranges, size_t nr)
{
	int rc = dirty_open();

	return rc < 0 ? rc : (int64_t)lift_ranges_bytes(ranges, nr);
}

static int dirty_arm(const struct lift_range *ranges, size_t nr)
{
	int rc = dirty_open();
	long n;

	(void)ranges;
	(void)nr;
	if (rc < 0)
		return rc;
	n = lift_sys_write(lift_fd_get(&clear_refs), "4", 1);
	return n < 0 ? (int)n : 0;
}

struct teller {
	lift_sample_fn *fn;
	void *arg;
	struct lift_range run;
};

static void tell_run(struct teller *to)
{
	struct lift_sample s = {
		.range = to->run,
		.accessed_bytes = lift_range_bytes(to->run),
		.resident_bytes = lift_range_bytes(to->run),
	};

	if (!lift_range_empty(to->run))
		to->fn(to->arg, &s);
	to->run = (struct lift_range){0};
}

/* Within one mapping, chunk by chunk, so that what is huge can be left out. */
static int tell_part(struct lift_range part, struct teller *to)
{
	int fd = lift_fd_get(&pagemap);

	while (!lift_range_empty(part)) {
		uintptr_t end = (part.start / (HUGE_PAGES * PAGE) + 1) * (HUGE_PAGES * PAGE);
		long n;

		if (end > part.end)
			end = part.end;
		n = lift_pagemap_read(fd, part.start, words, (end - part.start) / PAGE);
		if (n <= 0)
			return n < 0 ? (int)n : 0;
		for (long i = 0; i < n; i++) {
			const uint64_t both = LIFT_PAGEMAP_PRESENT | LIFT_PAGEMAP_SOFT_DIRTY;
			uintptr_t at = part.start + (uintptr_t)i * PAGE;

			if ((words[i] & both) != both)
				continue;
			if (to->run.end != at) {
				tell_run(to);
				to->run.start = at;
			}
			to->run.end = at + PAGE;
		}
		part.start += (uintptr_t)n * PAGE;
	}
	return 0;
}

/*
 * smaps instead of maps: a mapping with huge pages is left out as a whole, because which of its
 * pages are huge cannot be asked on kernels that need this sampler.
 */
static int dirty_collect(
	const struct lift_range *ranges, size_t nr, unsigned how, lift_sample_fn *fn, void *arg)
{
	struct teller to = {.fn = fn, .arg = arg};
	struct lift_smaps vma = {0};
	struct lift_lines l;
	struct lift_text line;
	uintptr_t behind = 0;
	size_t i = 0;
	int rc;

	(void)how;
	if (lift_fd_get(&pagemap) < 0) {
		rc = lift_pagemap_open(&pagemap);
		if (rc < 0)
			return rc;
	}
	rc = lift_lines_open(&l, "/proc/thread-self/smaps", -1, lines, sizeof(lines));
	if (rc < 0)
		return rc;
	while (i < nr && (rc = lift_lines_next(&l, &line)) > 0) {
		if (lift_parse_smaps_line(line.s, line.len, &vma) != LIFT_SMAPS_LAST)
			continue;
		if (vma.range.start < behind) /* it grew backwards while we were reading */
			vma.range.start = behind;
		if (lift_range_empty(vma.range))
			continue;
		behind = vma.range.end;
		while (i < nr && ranges[i].end <= vma.range.start)
			i++;
		for (size_t k = i; k < nr && ranges[k].start < vma.range.end; k++) {
			if (vma.rss_bytes == 0 || vma.huge_bytes)
				break;
			rc = tell_part(lift_range_and(ranges[k], vma.range), &to);
			if (rc < 0)
				goto out_close;
		}
	}
out_close:
	tell_run(&to);
	lift_lines_close(&l);
	return rc < 0 ? rc : 0;
}

static void dirty_disarm(const struct lift_range *ranges, size_t nr)
{
	(void)ranges;
	(void)nr;
}

/*
 * A page just written is soft-dirty where the kernel keeps the bit: nothing needs to be cleared
 * to see that, and clearing is what must not be done for a probe.
 */
static int dirty_probe(void)
{
	struct lift_fd map = {0};
	struct lift_fd clear = {0};
	uint64_t word = 0;
	long at = lift_sys_mmap_apart(PAGE, 0);
	long n;
	int rc;

	if (lift_syserr(at))
		return (int)at;
	*(volatile char *)at = 1;
	rc = lift_fd_open(&clear, "/proc/thread-self/clear_refs", O_WRONLY);
	if (rc == 0)
		rc = lift_pagemap_open(&map);
	if (rc == 0) {
		n = lift_pagemap_read(lift_fd_get(&map), (uintptr_t)at, &word, 1);
		rc = n < 0 ? (int)n : n == 1 && word & LIFT_PAGEMAP_SOFT_DIRTY ? 0 : -EINVAL;
	}
	lift_fd_close(&map);
	lift_fd_close(&clear);
	lift_sys_munmap((void *)at, PAGE);
	return rc;
}

const struct lift_sampler lift_sampler_dirty = {
	.name = "dirty",
	.traits = LIFT_SAMPLER_PAGES | LIFT_SAMPLER_SMALL | LIFT_SAMPLER_WHOLE | LIFT_SAMPLER_ASKED,
	.probe = dirty_probe,
	.open = dirty_open,
	.watch = dirty_watch,
	.arm = dirty_arm,
	.collect = dirty_collect,
	.disarm = dirty_disarm,
	.close = dirty_close,
	.forked = dirty_close,
};
