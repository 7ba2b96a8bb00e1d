// SPDX-License-Identifier: MIT
/*
 * The samplers rwp and wp: userfaultfd in an asynchronous mode to note first accesses, PAGEMAP_SCAN
 * to read them. Everything is the same for both but how pages are armed and what is asked for:
 *
 *         armed by                        reported
 *   rwp   UFFDIO_RWPROTECT, all pages     present and accessed
 *   wp    PAGEMAP_SCAN, present ones      present and written, in watched mappings, not huge
 *
 * A page that comes into being after arming was touched, and has no mark: it counts as used, which
 * is right. So does one that was moved, in a mapping that lost its registration (mremap): it is
 * reported once too often.
 *
 * Not all that the ioctls accept is ours. A registration protects from the program's own descriptor
 * in one direction only: registering fails (EBUSY) where another descriptor is registered, but
 * arming would go through. So watch() registers, again and again, which costs nothing where it is
 * ours already, and what it could not get is on a list of pieces that the other functions leave
 * out.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "shim/os/fd.h"
#include "shim/os/maps.h"
#include "shim/os/pagemap.h"
#include "shim/os/rawsys.h"
#include "shim/os/sys.h"
#include "shim/os/uffd.h"
#include "shim/registry.h"
#include "shim/sample_uffd.h"
#include "shim/sampler.h"

#define PAGE ((uintptr_t)4096)

/*
 * The kernel holds the lock of the address space during one call; a program that maps memory waits
 * for it. Some 10,000 pages are done in a few milliseconds.
 */
#define ARM_STEP ((uintptr_t)32 << 20)
#define SCAN_STEP ((uintptr_t)128 << 20)

#define NR_REGIONS 1024
#define NR_APART 256

struct tracker {
	enum lift_uffd_kind kind;
	struct lift_pagemap_ask used; /* but for the range */
	struct lift_pagemap_ask idle;
	struct lift_fd uffd;
	struct lift_fd pagemap;
	struct lift_range hull;            /* of all that was ever watched */
	struct lift_range apart[NR_APART]; /* ascending: what is not ours to arm */
	size_t nr_apart;
};

static struct tracker rwp = {
	.kind = LIFT_UFFD_RWP,
	.used =
		{
			.all = LIFT_PAGE_PRESENT | LIFT_PAGE_ACCESSED,
			.none = LIFT_PAGE_ZERO,
			.tell = LIFT_PAGE_ACCESSED | LIFT_PAGE_HUGE,
		},
	.idle =
		{
			.all = LIFT_PAGE_PRESENT,
			.none = LIFT_PAGE_ZERO,
			.tell = LIFT_PAGE_ACCESSED | LIFT_PAGE_HUGE,
		},
};

static struct tracker wp = {
	.kind = LIFT_UFFD_WP,
	.used =
		{
			.all = LIFT_PAGE_PRESENT | LIFT_PAGE_WRITTEN | LIFT_PAGE_WP_WATCHED,
			.none = LIFT_PAGE_ZERO | LIFT_PAGE_HUGE,
			.tell = LIFT_PAGE_WRITTEN,
		},
};

/* The worker's only: the functions that use them are called by nobody else. */
static struct lift_page_region regions[NR_REGIONS];
static char lines[4096];

/* --- pieces that are not ours --- */

/* The first piece that ends above addr. */
static size_t apart_from(const struct tracker *t, uintptr_t addr)
{
	size_t i = 0;

	while (i < t->nr_apart && t->apart[i].end <= addr)
		i++;
	return i;
}

static void apart_drop(struct tracker *t, size_t from, size_t to)
{
	memmove(t->apart + from, t->apart + to, (t->nr_apart - to) * sizeof(*t->apart));
	t->nr_apart -= to - from;
}

static void apart_add(struct tracker *t, struct lift_range r)
{
	size_t at;
	size_t end;

	if (t->nr_apart == NR_APART) {
		/* Too many: the two that are nearest to one another become one, and what lies
		 * between them is not sampled either. */
		size_t best = 0;

		for (size_t i = 1; i + 1 < t->nr_apart; i++)
			if (t->apart[i + 1].start - t->apart[i].end <
				t->apart[best + 1].start - t->apart[best].end)
				best = i;
		t->apart[best].end = t->apart[best + 1].end;
		apart_drop(t, best + 1, best + 2);
	}
	/* Those that touch it become part of it. */
	at = apart_from(t, r.start ? r.start - 1 : 0);
	for (end = at; end < t->nr_apart && t->apart[end].start <= r.end; end++) {
		if (t->apart[end].start < r.start)
			r.start = t->apart[end].start;
		if (t->apart[end].end > r.end)
			r.end = t->apart[end].end;
	}
	if (end > at) {
		apart_drop(t, at + 1, end);
	} else {
		memmove(t->apart + at + 1, t->apart + at, (t->nr_apart - at) * sizeof(*t->apart));
		t->nr_apart++;
	}
	t->apart[at] = r;
}

/* What lies in r is tried again. */
static void apart_cut(struct tracker *t, struct lift_range r)
{
	size_t at = apart_from(t, r.start);
	size_t end;

	if (at < t->nr_apart && t->apart[at].start < r.start) {
		if (t->apart[at].end > r.end) {
			if (t->nr_apart == NR_APART)
				return; /* no room for two: all of it stays on the list */
			memmove(t->apart + at + 1, t->apart + at,
				(t->nr_apart - at) * sizeof(*t->apart));
			t->nr_apart++;
			t->apart[at + 1].start = r.end;
		}
		t->apart[at++].end = r.start;
	}
	for (end = at; end < t->nr_apart && t->apart[end].end <= r.end; end++)
		;
	apart_drop(t, at, end);
	if (at < t->nr_apart && t->apart[at].start < r.end)
		t->apart[at].start = r.end;
}

/* The first stretch of *r that is ours goes to *ret and is taken off *r. False: there is none. */
static bool next_own(const struct tracker *t, struct lift_range *r, struct lift_range *ret)
{
	size_t i = apart_from(t, r->start);

	while (i < t->nr_apart && t->apart[i].start <= r->start && !lift_range_empty(*r))
		r->start = t->apart[i++].end;
	if (lift_range_empty(*r))
		return false;
	*ret = *r;
	if (i < t->nr_apart && t->apart[i].start < ret->end)
		ret->end = t->apart[i].start;
	r->start = ret->end;
	return true;
}

/* --- descriptors --- */

static int tracker_open(struct tracker *t)
{
	int rc = 0;

	if (lift_fd_get(&t->uffd) < 0)
		rc = lift_uffd_open(&t->uffd, t->kind);
	if (rc == 0 && lift_fd_get(&t->pagemap) < 0)
		rc = lift_pagemap_open(&t->pagemap);
	return rc;
}

/* --- watching and arming --- */

/* Both change where mappings end: not while a call of mremap counts on it (vm.c). */

static int enter(const struct tracker *t, int uffd, struct lift_range r)
{
	bool locked = lift_registry_enter();
	int rc = lift_uffd_register(uffd, t->kind, r);

	if (locked)
		lift_registry_leave();
	return rc;
}

static void leave(int uffd, struct lift_range r)
{
	bool locked = lift_registry_enter();

	(void)lift_uffd_unregister(uffd, r);
	if (locked)
		lift_registry_leave();
}

/* One stretch without pieces that are not ours. *ret_done: how far it got. */
static int arm_stretch(
	struct tracker *t, int uffd, int pagemap, struct lift_range r, uintptr_t *ret_done)
{
	while (!lift_range_empty(r)) {
		struct lift_range step = r;
		int rc;

		if (lift_range_bytes(step) > ARM_STEP)
			step.end = (step.start + ARM_STEP) & ~(ARM_STEP - 1);
		rc = t->kind == LIFT_UFFD_RWP ? lift_uffd_arm(uffd, step)
					      : lift_pagemap_protect(pagemap, step);
		if (rc < 0) {
			*ret_done = step.start;
			return rc;
		}
		r.start = step.end;
	}
	return 0;
}

struct slow_way {
	struct tracker *t;
	int uffd;
	int pagemap;
	uintptr_t from;
	bool arm;
	int64_t bytes;
};

static int slow_part(void *arg, struct lift_range part, const struct lift_maps_line *mapping)
{
	struct slow_way *w = arg;
	struct lift_range piece;
	uintptr_t done;

	(void)mapping;
	if (part.start < w->from)
		part.start = w->from;
	while (!lift_range_empty(part) && next_own(w->t, &part, &piece)) {
		if (enter(w->t, w->uffd, piece) < 0 ||
			(w->arm && arm_stretch(w->t, w->uffd, w->pagemap, piece, &done) < 0))
			apart_add(w->t, piece);
		else
			w->bytes += (int64_t)lift_range_bytes(piece);
	}
	return 0;
}

/*
 * The slow way, mapping by mapping: from address `from` on in ranges. Registers each mapping's part
 * of them, arms it if asked to, and lists what it does not get. Bytes that are ours, or -errno.
 */
static int64_t by_mapping(struct tracker *t, int uffd, int pagemap, const struct lift_range *ranges,
	size_t nr, uintptr_t from, bool arm)
{
	struct slow_way w = {.t = t, .uffd = uffd, .pagemap = pagemap, .from = from, .arm = arm};
	int rc = lift_maps_parts(ranges, nr, lines, sizeof(lines), slow_part, &w);

	return rc < 0 ? rc : w.bytes;
}

static int64_t tracker_watch(struct tracker *t, const struct lift_range *ranges, size_t nr)
{
	int64_t bytes = 0;
	int64_t rest;
	int uffd;
	int rc = tracker_open(t);

	if (rc < 0)
		return rc;
	uffd = lift_fd_get(&t->uffd);
	for (size_t i = 0; i < nr; i++)
		apart_cut(t, ranges[i]);
	if (nr > 0) {
		if (lift_range_empty(t->hull) || t->hull.start > ranges[0].start)
			t->hull.start = ranges[0].start;
		if (t->hull.end < ranges[nr - 1].end)
			t->hull.end = ranges[nr - 1].end;
	}
	for (size_t i = 0; i < nr; i++) {
		struct lift_range r = ranges[i];
		struct lift_range piece;

		while (next_own(t, &r, &piece)) {
			if (enter(t, uffd, piece) == 0) {
				bytes += (int64_t)lift_range_bytes(piece);
				continue;
			}
			rest = by_mapping(t, uffd, -1, ranges + i, nr - i, piece.start, false);
			return rest < 0 ? rest : bytes + rest;
		}
	}
	return bytes;
}

static int tracker_arm(struct tracker *t, const struct lift_range *ranges, size_t nr)
{
	int rc = tracker_open(t);
	int uffd;
	int pagemap;

	if (rc < 0)
		return rc;
	uffd = lift_fd_get(&t->uffd);
	pagemap = lift_fd_get(&t->pagemap);
	for (size_t i = 0; i < nr; i++) {
		struct lift_range r = ranges[i];
		struct lift_range piece;
		uintptr_t done;

		while (next_own(t, &r, &piece)) {
			int64_t rest;

			rc = arm_stretch(t, uffd, pagemap, piece, &done);
			if (rc == 0)
				continue;
			if (rc != -ENOENT && rc != -EPERM)
				return rc;
			/* Not registered since it was mapped. */
			rest = by_mapping(t, uffd, pagemap, ranges + i, nr - i, done, true);
			return rest < 0 ? (int)rest : 0;
		}
	}
	return 0;
}

/* --- collecting --- */

struct teller {
	lift_sample_fn *fn;
	void *arg;
	struct lift_sample next; /* not told yet: it may go on */
};

static void tell_now(struct teller *to)
{
	if (!lift_range_empty(to->next.range)) {
		to->next.resident_bytes = lift_range_bytes(to->next.range);
		if (to->next.accessed_bytes)
			to->next.accessed_bytes = to->next.resident_bytes;
		to->fn(to->arg, &to->next);
	}
	to->next.range = (struct lift_range){0};
}

static void tell_sample(void *arg, const struct lift_page_region *r)
{
	const uint64_t used = LIFT_PAGE_ACCESSED | LIFT_PAGE_WRITTEN;
	struct teller *to = arg;
	bool was_used = (r->is & used) != 0;
	bool huge = (r->is & LIFT_PAGE_HUGE) != 0;

	if (lift_range_empty(to->next.range) || to->next.range.end != r->start ||
		(to->next.accessed_bytes != 0) != was_used || to->next.huge != huge) {
		tell_now(to);
		to->next.range.start = (uintptr_t)r->start;
		to->next.accessed_bytes = was_used;
		to->next.huge = huge;
	}
	to->next.range.end = (uintptr_t)r->end;
}

typedef void page_region_fn(void *arg, const struct lift_page_region *r);

static int collect_stretch(int pagemap, const struct lift_pagemap_ask *what, struct lift_range r,
	page_region_fn *fn, void *arg)
{
	while (!lift_range_empty(r)) {
		struct lift_pagemap_ask ask = *what;
		uintptr_t end = r.end;
		long n;

		ask.range = r;
		if (lift_range_bytes(r) > SCAN_STEP)
			ask.range.end = (r.start + SCAN_STEP) & ~(SCAN_STEP - 1);
		n = lift_pagemap_scan(pagemap, &ask, regions, NR_REGIONS, &end);
		if (n < 0)
			return (int)n;
		for (long i = 0; i < n; i++)
			fn(arg, &regions[i]);
		if (end <= r.start) /* it would never end */
			return -EIO;
		r.start = end;
	}
	return 0;
}

/* With the descriptor went the marks: every page would look used. */
static int tracker_pagemap(struct tracker *t)
{
	int rc = 0;

	if (lift_fd_get(&t->uffd) < 0)
		return -ESTALE;
	if (lift_fd_get(&t->pagemap) < 0)
		rc = lift_pagemap_open(&t->pagemap);
	return rc < 0 ? rc : lift_fd_get(&t->pagemap);
}

static int tracker_collect(struct tracker *t, const struct lift_range *ranges, size_t nr,
	const struct lift_pagemap_ask *what, lift_sample_fn *fn, void *arg)
{
	struct teller to = {.fn = fn, .arg = arg};
	int pagemap = tracker_pagemap(t);
	int rc = pagemap < 0 ? pagemap : 0;

	for (size_t i = 0; i < nr && rc == 0; i++) {
		struct lift_range r = ranges[i];
		struct lift_range piece;

		while (rc == 0 && next_own(t, &r, &piece))
			rc = collect_stretch(pagemap, what, piece, tell_sample, &to);
	}
	tell_now(&to);
	return rc;
}

struct wp_teller {
	lift_wp_fn *fn;
	void *arg;
};

static void tell_kind(void *arg, const struct lift_page_region *r)
{
	const struct wp_teller *to = arg;
	struct lift_range pages = {(uintptr_t)r->start, (uintptr_t)r->end};

	to->fn(to->arg, pages,
		(r->is & LIFT_PAGE_HUGE) || !(r->is & LIFT_PAGE_WP_WATCHED) ? LIFT_WP_HUGE
		: r->is & LIFT_PAGE_WRITTEN                                 ? LIFT_WP_WRITTEN
									    : LIFT_WP_KEPT);
}

int lift_wp_scan(struct lift_range range, lift_wp_fn *fn, void *arg)
{
	static const struct lift_pagemap_ask all = {
		.all = LIFT_PAGE_PRESENT,
		.none = LIFT_PAGE_ZERO,
		.tell = LIFT_PAGE_WRITTEN | LIFT_PAGE_WP_WATCHED | LIFT_PAGE_HUGE,
	};
	struct wp_teller to = {.fn = fn, .arg = arg};
	struct lift_range piece;
	int pagemap = tracker_pagemap(&wp);
	int rc = pagemap < 0 ? pagemap : 0;

	while (rc == 0 && next_own(&wp, &range, &piece))
		rc = collect_stretch(pagemap, &all, piece, tell_kind, &to);
	return rc;
}

/* --- ending it --- */

static int release_part(void *arg, struct lift_range part, const struct lift_maps_line *mapping)
{
	const struct slow_way *w = arg;

	(void)mapping;
	if (enter(w->t, w->uffd, part) == 0)
		leave(w->uffd, part);
	return 0;
}

/*
 * Whose a registration is cannot be asked, and some kernels unregister everybody's: what we can
 * register (again) is ours. Uses the stack for its buffer: any thread may be here.
 */
static void release(struct tracker *t, int uffd, struct lift_range r)
{
	struct slow_way w = {.t = t, .uffd = uffd};
	char buf[4096];

	if (enter(t, uffd, r) == 0)
		leave(uffd, r);
	else
		(void)lift_maps_parts(&r, 1, buf, sizeof(buf), release_part, &w);
}

/* What fails stays armed, which costs a fault and does no harm. */
static void tracker_release(struct tracker *t, const struct lift_range *ranges, size_t nr)
{
	int uffd = lift_fd_get(&t->uffd);

	for (size_t i = 0; uffd >= 0 && i < nr; i++) {
		struct lift_range r = ranges[i];
		struct lift_range piece;

		while (next_own(t, &r, &piece))
			(void)lift_uffd_release(uffd, t->kind, piece);
	}
}

static void tracker_disarm(struct tracker *t, const struct lift_range *ranges, size_t nr)
{
	int uffd = lift_fd_get(&t->uffd);

	for (size_t i = 0; uffd >= 0 && i < nr; i++)
		if (!lift_range_empty(ranges[i]))
			release(t, uffd, ranges[i]);
}

static void forget(struct tracker *t)
{
	lift_fd_close(&t->uffd);
	lift_fd_close(&t->pagemap);
	t->hull = (struct lift_range){0};
	t->nr_apart = 0;
}

/*
 * The last close of a userfaultfd would disarm everything; but a child that a program started
 * without telling anybody (a raw fork or clone) may hold it open for as long as it likes.
 */
static void tracker_close(struct tracker *t)
{
	if (!lift_range_empty(t->hull))
		tracker_disarm(t, &t->hull, 1);
	forget(t);
}

/* --- probing --- */

static void count_pages(void *arg, const struct lift_sample *s)
{
	size_t *counts = arg;

	counts[s->accessed_bytes != 0] += lift_range_bytes(s->range) / PAGE;
}

/* A whole round on pages of our own: of four pages, one is touched, and that one has to be seen. */
static int tracker_probe(const struct tracker *like)
{
	enum { PAGES = 4 };
	/* Not the tracker in use: its descriptor and its list are no concern of a probe. */
	static struct tracker t;
	size_t counts[2] = {0, 0};
	struct lift_range r;
	long at = lift_sys_mmap_apart(PAGES * PAGE, 0);
	volatile char *p;
	int64_t watched;
	int rc;

	if (lift_syserr(at))
		return (int)at;
	t = (struct tracker){.kind = like->kind, .used = like->used, .idle = like->idle};
	r = (struct lift_range){.start = (uintptr_t)at, .end = (uintptr_t)at + PAGES * PAGE};
	p = (volatile char *)at;
	for (size_t i = 0; i < PAGES; i++)
		p[i * PAGE] = 1;
	watched = tracker_watch(&t, &r, 1);
	rc = watched < 0 ? (int)watched : watched == 0 ? -EINVAL : tracker_arm(&t, &r, 1);
	if (rc == 0) {
		p[PAGE] = 2;
		rc = tracker_collect(&t, &r, 1, &t.used, count_pages, counts);
	}
	if (rc == 0 && counts[1] != 1)
		rc = -EINVAL;
	tracker_close(&t);
	lift_sys_munmap((void *)at, PAGES * PAGE);
	/* What an ioctl that does not exist returns says less than -EINVAL. */
	return rc == -ENOTTY ? -EINVAL : rc;
}

/* --- the two tables --- */

static int rwp_probe(void)
{
	return tracker_probe(&rwp);
}

static int rwp_open(void)
{
	return tracker_open(&rwp);
}

static int64_t rwp_watch(const struct lift_range *ranges, size_t nr)
{
	return tracker_watch(&rwp, ranges, nr);
}

static int rwp_arm(const struct lift_range *ranges, size_t nr)
{
	return tracker_arm(&rwp, ranges, nr);
}

static int rwp_collect(
	const struct lift_range *ranges, size_t nr, unsigned how, lift_sample_fn *fn, void *arg)
{
	return tracker_collect(
		&rwp, ranges, nr, how & LIFT_COLLECT_IDLE ? &rwp.idle : &rwp.used, fn, arg);
}

static void rwp_release(const struct lift_range *ranges, size_t nr)
{
	tracker_release(&rwp, ranges, nr);
}

static void rwp_disarm(const struct lift_range *ranges, size_t nr)
{
	tracker_disarm(&rwp, ranges, nr);
}

static void rwp_close(void)
{
	tracker_close(&rwp);
}

static void rwp_forked(void)
{
	forget(&rwp);
}

const struct lift_sampler lift_sampler_rwp = {
	.name = "rwp",
	.traits = LIFT_SAMPLER_PAGES | LIFT_SAMPLER_READS | LIFT_SAMPLER_FAULTS,
	.probe = rwp_probe,
	.open = rwp_open,
	.watch = rwp_watch,
	.arm = rwp_arm,
	.collect = rwp_collect,
	.release = rwp_release,
	.disarm = rwp_disarm,
	.close = rwp_close,
	.forked = rwp_forked,
};

static int wp_probe(void)
{
	return tracker_probe(&wp);
}

static int wp_open(void)
{
	return tracker_open(&wp);
}

static int64_t wp_watch(const struct lift_range *ranges, size_t nr)
{
	return tracker_watch(&wp, ranges, nr);
}

static int wp_arm(const struct lift_range *ranges, size_t nr)
{
	return tracker_arm(&wp, ranges, nr);
}

static int wp_collect(
	const struct lift_range *ranges, size_t nr, unsigned how, lift_sample_fn *fn, void *arg)
{
	(void)how; /* what was not written may have been read: nothing is idle */
	return tracker_collect(&wp, ranges, nr, &wp.used, fn, arg);
}

static void wp_release(const struct lift_range *ranges, size_t nr)
{
	tracker_release(&wp, ranges, nr);
}

static void wp_disarm(const struct lift_range *ranges, size_t nr)
{
	tracker_disarm(&wp, ranges, nr);
}

static void wp_close(void)
{
	tracker_close(&wp);
}

static void wp_forked(void)
{
	forget(&wp);
}

const struct lift_sampler lift_sampler_wp = {
	.name = "wp",
	.traits = LIFT_SAMPLER_PAGES | LIFT_SAMPLER_SMALL,
	.probe = wp_probe,
	.open = wp_open,
	.watch = wp_watch,
	.arm = wp_arm,
	.collect = wp_collect,
	.release = wp_release,
	.disarm = wp_disarm,
	.close = wp_close,
	.forked = wp_forked,
};
