// SPDX-License-Identifier: MIT
/*
 * The sampler wp+refs: two at once, for kernels that have WP_ASYNC and no RWP. wp knows exactly
 * which pages were written. refs knows of a region how many of its pages were used at all; what is
 * more than were written was read. So a page that was written is told as used, and of the others
 * of its region the part that was read, as a sum.
 *
 * Neither disturbs the other: protecting pages leaves their referenced bits alone, the fault of a
 * first write sets them as any write does, and clear_refs leaves the marks of userfaultfd. Huge
 * pages are never protected, so for them there are the sums only.
 *
 * Written pages are protected first and their bits cleared after that: a write in between is then
 * seen as written and not used, which does no harm; the other way round it would look like a read.
 */
#include <errno.h>

#include "shim/sample_refs.h"
#include "shim/sample_uffd.h"
#include "shim/sampler.h"

static int wp_refs_probe(void)
{
	int rc = lift_sampler_wp.probe();

	return rc < 0 ? rc : lift_sampler_refs.probe();
}

static int wp_refs_open(void)
{
	int rc = lift_sampler_wp.open();

	return rc < 0 ? rc : lift_sampler_refs.open();
}

static int64_t wp_refs_watch(const struct lift_range *ranges, size_t nr)
{
	int64_t bytes = lift_sampler_wp.watch(ranges, nr);
	int64_t rc = bytes < 0 ? bytes : lift_sampler_refs.watch(ranges, nr);

	return rc < 0 ? rc : bytes;
}

static int wp_refs_arm(const struct lift_range *ranges, size_t nr)
{
	int rc = lift_sampler_wp.arm(ranges, nr);

	return rc < 0 ? rc : lift_sampler_refs.arm(ranges, nr);
}

#define ALL 4096u

struct telling {
	const struct lift_range *ranges;
	size_t nr;
	lift_sample_fn *fn;
	void *arg;
	bool idle_too;
	int rc;
	uint64_t bytes[LIFT_WP_HUGE + 1]; /* of the region, of each kind */
	uint32_t rest;                    /* the part of what was not written that was read */
	uint32_t next_part;               /* of what is not told yet, likewise */
	struct lift_sample next;          /* not told yet: it may go on */
};

static void count(void *arg, struct lift_range pages, enum lift_wp_kind kind)
{
	struct telling *t = arg;

	t->bytes[kind] += lift_range_bytes(pages);
}

static void tell_now(struct telling *t)
{
	struct lift_sample s = t->next;

	s.resident_bytes = lift_range_bytes(s.range);
	s.accessed_bytes = s.resident_bytes / ALL * t->next_part;
	if (s.resident_bytes > 0 && (s.accessed_bytes || t->idle_too))
		t->fn(t->arg, &s);
	t->next.range = (struct lift_range){0};
}

static void tell(void *arg, struct lift_range pages, enum lift_wp_kind kind)
{
	struct telling *t = arg;
	uint32_t part = kind == LIFT_WP_WRITTEN ? ALL : t->rest;
	bool huge = kind == LIFT_WP_HUGE;

	if (t->next.range.end != pages.start || t->next_part != part || t->next.huge != huge) {
		tell_now(t);
		t->next = (struct lift_sample){.range.start = pages.start, .huge = huge};
		t->next_part = part;
	}
	t->next.range.end = pages.end;
}

/* What was asked for of one region. */
static void scan(struct telling *t, struct lift_range region, lift_wp_fn *fn)
{
	for (size_t k = 0; k < t->nr && t->ranges[k].start < region.end && t->rc == 0; k++) {
		struct lift_range part = lift_range_and(t->ranges[k], region);

		if (!lift_range_empty(part))
			t->rc = lift_wp_scan(part, fn, t);
	}
}

static uint64_t nr_faults;

static void region(void *arg, const struct lift_sample *s, bool mixed)
{
	struct telling *t = arg;
	uint64_t written;
	uint64_t read;
	uint64_t rest;

	while (t->nr > 0 && t->ranges->end <= s->range.start) {
		t->ranges++;
		t->nr--;
	}
	if (t->rc < 0)
		return;
	for (size_t i = 0; i < sizeof(t->bytes) / sizeof(t->bytes[0]); i++)
		t->bytes[i] = 0;
	scan(t, s->range, count);
	written = t->bytes[LIFT_WP_WRITTEN];
	nr_faults += written / 4096;
	read = s->accessed_bytes > written ? s->accessed_bytes - written : 0;
	rest = s->resident_bytes > written ? s->resident_bytes - written : 0;
	(void)mixed;
	t->rest = rest == 0 ? 0 : read < rest ? (uint32_t)(read * ALL / rest) : ALL;
	/* Stray accesses. */
	if (t->rest < ALL / 32)
		t->rest = 0;
	if (written > 0 || t->rest > 0 || t->idle_too)
		scan(t, s->range, tell);
}

static int wp_refs_collect(
	const struct lift_range *ranges, size_t nr, unsigned how, lift_sample_fn *fn, void *arg)
{
	struct telling t = {
		.ranges = ranges,
		.nr = nr,
		.fn = fn,
		.arg = arg,
		.idle_too = (how & LIFT_COLLECT_IDLE) != 0,
	};
	/* Is what was noted still there? */
	int rc = lift_wp_scan((struct lift_range){0}, count, &t);

	if (rc == 0)
		rc = lift_refs_collect(ranges, nr, region, &t);
	tell_now(&t);
	return rc < 0 ? rc : t.rc;
}

static uint64_t wp_refs_faults(void)
{
	uint64_t nr = nr_faults;

	nr_faults = 0;
	return nr;
}

static void wp_refs_release(const struct lift_range *ranges, size_t nr)
{
	lift_sampler_wp.release(ranges, nr);
}

static void wp_refs_disarm(const struct lift_range *ranges, size_t nr)
{
	lift_sampler_wp.disarm(ranges, nr);
	lift_sampler_refs.disarm(ranges, nr);
}

static void wp_refs_close(void)
{
	lift_sampler_wp.close();
	lift_sampler_refs.close();
}

static void wp_refs_forked(void)
{
	lift_sampler_wp.forked();
	lift_sampler_refs.forked();
}

const struct lift_sampler lift_sampler_wp_refs = {
	.name = "wp+refs",
	.traits = LIFT_SAMPLER_PAGES | LIFT_SAMPLER_READS | LIFT_SAMPLER_WHOLE,
	.probe = wp_refs_probe,
	.open = wp_refs_open,
	.watch = wp_refs_watch,
	.arm = wp_refs_arm,
	.collect = wp_refs_collect,
	.release = wp_refs_release,
	.disarm = wp_refs_disarm,
	.close = wp_refs_close,
	.faults = wp_refs_faults,
	.forked = wp_refs_forked,
};
