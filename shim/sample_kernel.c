// SPDX-License-Identifier: MIT
/*
 * The sampler kernel: where kernel.numa_balancing is on the kernel samples and moves by itself, and
 * all there is to do is to read what it counted. Also the list of all samplers.
 */
#include <errno.h>
#include <string.h>

#include "policy/procparse.h"
#include "shim/os/sys.h"
#include "shim/os/tasks.h"
#include "shim/os/topo_sysfs.h"
#include "shim/sampler.h"

/* A file has to be read for each thread. */
#define MOST_TASKS 256

/* vmstat has some 200 lines. */
static char text[16384];
static char list[2048];

static int kernel_probe(void)
{
	uint64_t mode = lift_os_number("/proc/sys/kernel/numa_balancing", UINT64_MAX);

	return mode == UINT64_MAX ? -ENOENT : mode == 0 ? -EOPNOTSUPP : 0;
}

static int kernel_open(void)
{
	return 0;
}

static int64_t kernel_watch(const struct lift_range *ranges, size_t nr)
{
	(void)ranges;
	(void)nr;
	return 0;
}

static int kernel_arm(const struct lift_range *ranges, size_t nr)
{
	(void)ranges;
	(void)nr;
	return 0;
}

static int kernel_collect(
	const struct lift_range *ranges, size_t nr, unsigned how, lift_sample_fn *fn, void *arg)
{
	(void)ranges;
	(void)nr;
	(void)how;
	(void)fn;
	(void)arg;
	return 0;
}

static void kernel_disarm(const struct lift_range *ranges, size_t nr)
{
	(void)ranges;
	(void)nr;
}

static void kernel_close(void)
{
}

const struct lift_sampler lift_sampler_kernel = {
	.name = "kernel",
	.traits = LIFT_SAMPLER_COUNTS,
	.probe = kernel_probe,
	.open = kernel_open,
	.watch = kernel_watch,
	.arm = kernel_arm,
	.collect = kernel_collect,
	.disarm = kernel_disarm,
	.close = kernel_close,
	.forked = kernel_close,
};

static uint64_t named(const char *buf, size_t len, const char *name)
{
	uint64_t v = 0;

	return lift_parse_named_u64(buf, len, name, &v) == 0 ? v : 0;
}

int lift_sampler_kernel_counts(struct lift_kernel_counts *ret)
{
	long n = lift_sys_read_file("/proc/vmstat", text, sizeof(text));
	struct lift_kernel_counts c;
	struct lift_tasks tasks;
	unsigned left = MOST_TASKS;

	if (n < 0)
		return (int)n;
	c = (struct lift_kernel_counts){
		.numa_pte_updates = named(text, (size_t)n, "numa_pte_updates"),
		.numa_hint_faults = named(text, (size_t)n, "numa_hint_faults"),
		.numa_hint_faults_local = named(text, (size_t)n, "numa_hint_faults_local"),
		.numa_pages_migrated = named(text, (size_t)n, "numa_pages_migrated"),
		.pgpromote_success = named(text, (size_t)n, "pgpromote_success"),
		.pgpromote_candidate = named(text, (size_t)n, "pgpromote_candidate"),
		.pgdemote = named(text, (size_t)n, "pgdemote_kswapd") +
			    named(text, (size_t)n, "pgdemote_direct") +
			    named(text, (size_t)n, "pgdemote_khugepaged") +
			    named(text, (size_t)n, "pgdemote_proactive"),
	};
	if (lift_tasks_open(&tasks, list, sizeof(list)) == 0) {
		while (left-- > 0 && lift_tasks_next(&tasks) > 0) {
			n = lift_tasks_read(&tasks, "sched", text, sizeof(text));
			if (n < 0)
				continue;
			c.self_pages_migrated += named(text, (size_t)n, "numa_pages_migrated");
			c.self_faults += named(text, (size_t)n, "total_numa_faults");
		}
		lift_tasks_close(&tasks);
	}
	*ret = c;
	return 0;
}

const struct lift_sampler *lift_sampler_find(const char *name)
{
	static const struct lift_sampler *const all[] = {
		&lift_sampler_rwp,
		&lift_sampler_wp,
		&lift_sampler_wp_refs,
		&lift_sampler_dirty,
		&lift_sampler_refs,
		&lift_sampler_damon,
		&lift_sampler_kernel,
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (strcmp(all[i]->name, name) == 0)
			return all[i];
	return NULL;
}
