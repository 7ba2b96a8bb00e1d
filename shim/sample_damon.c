// SPDX-License-Identifier: MIT
/*
 * The sampler damon: the kernel's own monitor of the address space of this process, through sysfs.
 * It samples all the time, in regions that it chooses itself, and needs no arming: what is reported
 * is the last aggregation interval. Root only, and never by itself.
 *
 * There is one set of kdamonds for the machine. We take it only while it is empty, or left behind
 * by a process that is gone, and leave it empty. DAMON_STAT (on by default in some kernels) and
 * other users of the kernel's interface keep everybody else out: -EBUSY, and not ours to change.
 *
 * When the process dies its kdamond ends by itself, since its only target is gone; what is left is
 * an idle entry in sysfs, which the next one to come takes over.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "policy/procparse.h"
#include "shim/os/rawsys.h"
#include "shim/os/sys.h"
#include "shim/sampler.h"

#define ADMIN "/sys/kernel/mm/damon/admin/kdamonds/"
#define CONTEXT "0/contexts/0/"
#define SCHEME CONTEXT "schemes/0/"
#define MOST_REGIONS 1000
#define MAX_64 "18446744073709551615"
#define MAX_32 "4294967295"

static bool claimed; /* the entry is ours */
static bool running;

/* --- files --- */

struct path {
	char s[160];
	size_t len;
};

static void add(struct path *p, const char *s)
{
	size_t n = strlen(s);

	if (n > sizeof(p->s) - 1 - p->len)
		n = sizeof(p->s) - 1 - p->len;
	memcpy(p->s + p->len, s, n);
	p->len += n;
	p->s[p->len] = '\0';
}

static void add_number(struct path *p, uint64_t v)
{
	char digits[21];
	size_t at = sizeof(digits) - 1;

	digits[at] = '\0';
	do
		digits[--at] = (char)('0' + v % 10);
	while (v /= 10);
	add(p, digits + at);
}

static int put(const char *name, const char *value)
{
	struct path p = {.len = 0};
	long fd;
	long n;

	add(&p, ADMIN);
	add(&p, name);
	fd = lift_syscall(SYS_openat, AT_FDCWD, (long)p.s, O_WRONLY | O_CLOEXEC, 0, 0, 0);
	if (fd < 0)
		return (int)fd;
	n = lift_sys_write((int)fd, value, strlen(value));
	lift_syscall(SYS_close, fd, 0, 0, 0, 0, 0);
	return n < 0 ? (int)n : 0;
}

static int get(const char *path, uint64_t *ret)
{
	char text[32];
	long n = lift_sys_read_file(path, text, sizeof(text));

	return n < 0 ? (int)n : lift_parse_u64(text, (size_t)n, ret);
}

/* --- taking it --- */

/* An entry whose only process is gone, and that is off. */
static bool is_left_behind(void)
{
	struct path p = {.len = 0};
	uint64_t pid = 0;
	char text[64];
	long n = lift_sys_read_file(ADMIN "0/state", text, sizeof(text));

	if (n < 0 || strncmp(text, "off", 3) != 0 ||
		get(ADMIN CONTEXT "targets/0/pid_target", &pid) < 0 || pid == 0)
		return false;
	add(&p, "/proc/");
	add_number(&p, pid);
	add(&p, "/statm");
	return lift_sys_read_file(p.s, text, sizeof(text)) == -ENOENT;
}

static int claim(void)
{
	uint64_t nr = 0;
	int rc;

	if (claimed)
		return 0;
	rc = get(ADMIN "nr_kdamonds", &nr);
	if (rc < 0)
		return rc;
	if (nr > 1 || (nr == 1 && !is_left_behind()))
		return -EBUSY;
	/* Also of one that is there: everything in it is as at first then. */
	rc = put("nr_kdamonds", "1");
	claimed = rc == 0;
	return rc;
}

static void stop(void)
{
	if (running)
		(void)put("0/state", "off");
	if (claimed)
		(void)put("nr_kdamonds", "0");
	running = false;
	claimed = false;
}

static int start(void)
{
	/* Every 5 ms one page of each region; all regions are told about, used or not. */
	static const char *const settings[][2] = {
		{"0/contexts/nr_contexts", "1"},
		{CONTEXT "operations", "vaddr"},
		{CONTEXT "monitoring_attrs/intervals/sample_us", "5000"},
		{CONTEXT "monitoring_attrs/intervals/aggr_us", "100000"},
		{CONTEXT "monitoring_attrs/intervals/update_us", "1000000"},
		{CONTEXT "monitoring_attrs/nr_regions/min", "10"},
		{CONTEXT "monitoring_attrs/nr_regions/max", "1000"},
		{CONTEXT "targets/nr_targets", "1"},
		{CONTEXT "targets/0/pid_target", NULL},
		{CONTEXT "schemes/nr_schemes", "1"},
		{SCHEME "action", "stat"},
		{SCHEME "access_pattern/sz/max", MAX_64},
		{SCHEME "access_pattern/nr_accesses/max", MAX_32},
		{SCHEME "access_pattern/age/max", MAX_32},
		{"0/state", "on"},
	};
	struct path pid = {.len = 0};
	int rc;

	if (running)
		return 0;
	rc = claim();
	add_number(&pid, (uint64_t)lift_sys_getpid());
	for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]) && rc == 0; i++)
		rc = put(settings[i][0], settings[i][1] ? settings[i][1] : pid.s);
	running = rc == 0;
	/* An entry that is there must not lack what is needed: a kernel before 6.2. */
	if (running && put("0/state", "update_schemes_tried_regions") < 0)
		rc = -EINVAL;
	if (rc < 0)
		stop();
	return rc;
}

static int damon_probe(void)
{
	bool before = claimed;
	int rc = start();

	if (!before)
		stop();
	return rc;
}

static int damon_open(void)
{
	return start();
}

static int64_t damon_watch(const struct lift_range *ranges, size_t nr)
{
	int rc = start();

	return rc < 0 ? rc : (int64_t)lift_ranges_bytes(ranges, nr);
}

static int damon_arm(const struct lift_range *ranges, size_t nr)
{
	(void)ranges;
	(void)nr;
	return start();
}

/* Region number i; 1, 0: there is none, or -errno. */
static int read_region(unsigned i, struct lift_range *ret, uint64_t *ret_accesses)
{
	struct path p = {.len = 0};
	uint64_t v[3];
	int rc = 0;
	size_t len;

	add(&p, ADMIN SCHEME "tried_regions/");
	add_number(&p, i);
	len = p.len;
	for (unsigned k = 0; k < 3 && rc == 0; k++) {
		static const char *const names[] = {"/start", "/end", "/nr_accesses"};

		p.len = len;
		add(&p, names[k]);
		rc = get(p.s, &v[k]);
	}
	if (rc < 0)
		return rc == -ENOENT ? 0 : rc;
	*ret = (struct lift_range){(uintptr_t)v[0], (uintptr_t)v[1]};
	*ret_accesses = v[2];
	return 1;
}

/* What of a region is resident is not known to it: all of it counts. */
static int damon_collect(
	const struct lift_range *ranges, size_t nr, unsigned how, lift_sample_fn *fn, void *arg)
{
	size_t at = 0;
	int rc = running ? put("0/state", "update_schemes_tried_regions") : -ESTALE;

	for (unsigned i = 0; rc == 0 && i <= MOST_REGIONS; i++) {
		struct lift_sample s = {.huge = false};
		uint64_t accesses = 0;
		int found = read_region(i, &s.range, &accesses);

		if (found <= 0)
			return found;
		while (at < nr && ranges[at].end <= s.range.start)
			at++;
		if (at == nr)
			return 0;
		s.resident_bytes = lift_range_bytes(s.range);
		s.accessed_bytes = accesses ? s.resident_bytes : 0;
		if (lift_range_overlaps(ranges[at], s.range) &&
			(accesses || (how & LIFT_COLLECT_IDLE)))
			fn(arg, &s);
	}
	/* Somebody else switched it off, or took it away. */
	return rc == -EINVAL || rc == -ENOENT ? -ESTALE : rc;
}

static void damon_disarm(const struct lift_range *ranges, size_t nr)
{
	(void)ranges;
	(void)nr;
}

static void damon_close(void)
{
	stop();
}

/* The parent's goes on. */
static void damon_forked(void)
{
	claimed = false;
	running = false;
}

const struct lift_sampler lift_sampler_damon = {
	.name = "damon",
	.traits = LIFT_SAMPLER_READS | LIFT_SAMPLER_WHOLE | LIFT_SAMPLER_ASKED,
	.probe = damon_probe,
	.open = damon_open,
	.watch = damon_watch,
	.arm = damon_arm,
	.collect = damon_collect,
	.disarm = damon_disarm,
	.close = damon_close,
	.forked = damon_forked,
};
