// SPDX-License-Identifier: MIT
/*
 * Would hot pages be lifted here, by which sampler, and how are they moved? It asks as the worker
 * does (shim/promoter.c), in children.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "shim/cli/check.h"
#include "shim/cli/probe.h"
#include "shim/cli/text.h"
#include "shim/os/topo_sysfs.h"

#define OK LIFT_VERDICT_OK
#define LIMITED LIFT_VERDICT_LIMITED
#define OFF LIFT_VERDICT_OFF

/* Of a child that tried: what stopped it. */
static const char *why(int rc, int err)
{
	return rc > 0 ? sigabbrev_np(rc) : lift_text_errno(rc ? rc : err);
}

/* --- whether ------------------------------------------------------------------------------------
 */

/* A policy that the program is started with is left in charge, but for one that only binds. */
static bool policy_rules(int mode)
{
	int base = mode < 0 ? LIFT_MPOL_DEFAULT : mode & ~LIFT_MPOL_F_MASK;

	return base != LIFT_MPOL_DEFAULT && base != LIFT_MPOL_LOCAL && base != LIFT_MPOL_BIND;
}

static bool given(const struct lift_check *c, const char *name)
{
	return c->config.given >> lift_config_find(name) & 1;
}

static void check_wanted(struct lift_check *c)
{
	bool track = c->config.promote == LIFT_PROMOTE_TRACK;
	struct lift_nodeset allowed;
	unsigned seccomp = 0;

	(void)lift_os_mems_allowed(&allowed, &seccomp);
	if (!c->config.enabled)
		lift_report_add(&c->report, "promotion", OFF, NULL, "NUMALIFT switches it off");
	else if (c->config.promote == LIFT_PROMOTE_OFF)
		lift_report_add(&c->report, "promotion", OFF,
			"unset NUMALIFT_PROMOTE, or set it to on",
			"NUMALIFT_PROMOTE switches it off");
	else if (seccomp && !given(c, "NUMALIFT_PROMOTE"))
		lift_report_add(&c->report, "promotion", OFF,
			"set NUMALIFT_PROMOTE and NUMALIFT_PLACE, if only to their defaults",
			"a filter is active, and nothing is watched or moved under one unless "
			"asked for by name");
	else if (track)
		lift_report_add(&c->report, "promotion", LIMITED, "NUMALIFT_PROMOTE=on",
			"use is tracked, and nothing is moved: NUMALIFT_PROMOTE=track");
	else if (lift_nodeset_count(&c->usable) < 2)
		lift_report_add(&c->report, "promotion", OFF, NULL,
			"nothing is promoted, and there is no thread: there is one node");
	else if (c->policies_refused || (seccomp && !given(c, "NUMALIFT_PLACE")))
		lift_report_add(&c->report, "promotion", OFF, NULL,
			"nothing is promoted where nothing is placed");
	else if (c->nr_tiers < 2)
		lift_report_add(&c->report, "promotion", OK, NULL,
			"there is nothing to promote: the nodes are equally fast");
	else if (policy_rules(c->own_mode))
		lift_report_add(&c->report, "promotion", LIMITED,
			"start without numactl or the like",
			"use is tracked, and nothing is moved: a memory policy is set already");
	else
		lift_report_add(&c->report, "promotion", OK, NULL,
			"begins in a program that has used the CPU for 1 s and has 128 MiB "
			"resident; at most %g %% of one CPU",
			(double)c->config.budget_ppm / 10000);
}

/* --- how pages are watched ----------------------------------------------------------------------
 */

static const char *what_it_sees(enum lift_sampler_choice choice)
{
	switch (choice) {
	case LIFT_SAMPLER_RWP:
		return "every page that is used";
	case LIFT_SAMPLER_WP_REFS:
		return "pages that are written one by one, reads by region";
	case LIFT_SAMPLER_WP:
		return "pages that are written, and no reads";
	case LIFT_SAMPLER_REFS:
		return "regions of 2 to 32 MiB, and no single pages";
	case LIFT_SAMPLER_DIRTY:
		return "pages that are written, and no reads; not for collectors of garbage";
	case LIFT_SAMPLER_DAMON:
		return "regions that the kernel chooses; it is tried when a program starts";
	case LIFT_SAMPLER_KERNEL:
		return "the kernel samples and moves, numalift counts";
	default:
		return "?";
	}
}

/* What `auto` takes, and in *ret_lacks (NULL: none) the better ones with what they lack. */
static enum lift_sampler_choice best(char **ret_lacks, bool *ret_forbidden)
{
	static const enum lift_sampler_choice order[] = {
		LIFT_SAMPLER_RWP, LIFT_SAMPLER_WP_REFS, LIFT_SAMPLER_REFS};
	uint64_t mode = lift_os_number("/proc/sys/kernel/numa_balancing", 0);
	char *lacks = NULL;

	*ret_forbidden = false;
	*ret_lacks = NULL;
	/* The bit for tiers; the other one is for nodes with CPUs. */
	if (mode & 2)
		return LIFT_SAMPLER_KERNEL;
	for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
		int err;
		int rc = lift_probe_sampler(order[i], &err);

		if (rc == 0 && err == 0)
			return order[i];
		if (rc > 0 || err == -EPERM || err == -EACCES)
			*ret_forbidden = true;
		*ret_lacks = lift_text("%s; %s is not available (%s)", lacks ? lacks : "",
			lift_sampler_choice_name(order[i]), why(rc, err));
		free(lacks);
		lacks = *ret_lacks;
	}
	return LIFT_SAMPLER_AUTO;
}

static void check_sampler(struct lift_check *c)
{
	enum lift_sampler_choice asked = c->config.sampler;
	enum lift_sampler_choice auto_is;
	char *named = NULL;
	bool forbidden;
	char *lacks;

	if (asked != LIFT_SAMPLER_AUTO) {
		int err;
		int rc = lift_probe_sampler(asked, &err);

		if (rc == 0 && err == 0) {
			lift_report_add(&c->report, "sampler", OK, NULL, "%s, as asked: %s",
				lift_sampler_choice_name(asked), what_it_sees(asked));
			return;
		}
		named = lift_text("; NUMALIFT_SAMPLER=%s does not work here (%s)",
			lift_sampler_choice_name(asked), why(rc, err));
	}
	auto_is = best(&lacks, &forbidden);
	if (auto_is == LIFT_SAMPLER_AUTO)
		lift_report_add(&c->report, "sampler", OFF,
			forbidden ? "mount -t proc proc /proc, or a sandbox that permits "
				    "userfaultfd"
				  : "mount -t proc proc /proc",
			"none: it cannot be seen which memory is used%s%s", lacks ? lacks : "",
			named ? named : "");
	else
		lift_report_add(&c->report, "sampler", named || lacks ? LIMITED : OK,
			!lacks      ? NULL
			: forbidden ? "a sandbox that permits userfaultfd"
				    : "Linux 7.2 or newer, where rwp sees every page",
			"%s: %s%s%s", lift_sampler_choice_name(auto_is), what_it_sees(auto_is),
			lacks ? lacks : "", named ? named : "");
	free(named);
	free(lacks);
}

static void add_probe(struct lift_check *c, const char *name, int rc, int err, const char *fine)
{
	if (rc > 0)
		lift_report_add(&c->report, name, LIMITED, "a sandbox that permits it",
			"ends the process that tries (%s)", sigabbrev_np(rc));
	else if (rc || err)
		lift_report_add(
			&c->report, name, LIMITED, NULL, "not available (%s)", why(rc, err));
	else
		lift_report_add(&c->report, name, OK, NULL, "%s", fine);
}

static void check_watching(struct lift_check *c)
{
	/* The newer of these bits are not in bookworm's headers. */
	enum { UFFD_WP_ASYNC = 1 << 15, UFFD_RWP_ASYNC = 1 << 18 };
	struct lift_probe_uffd uffd;
	char *fine;
	int err;
	int rc;

	rc = lift_probe_uffd(&uffd);
	fine = lift_text("available without privileges%s%s",
		uffd.features & UFFD_WP_ASYNC ? ", write-protect async" : "",
		uffd.features & UFFD_RWP_ASYNC ? ", read-write-protect async" : "");
	add_probe(c, "userfaultfd", rc, uffd.err, fine);
	free(fine);
	rc = lift_probe_pagemap_scan(&err);
	add_probe(c, "pagemap-scan", rc, err, "available");
}

/* --- how they are moved -------------------------------------------------------------------------
 */

static void check_moving(struct lift_check *c)
{
	static const char remedy[] = "in a container: the capability CAP_SYS_NICE, or a seccomp "
				     "profile that permits move_pages";
	int err;
	int rc = lift_probe_move_pages(&err);
	int policy_err;
	int policy_rc;

	if (rc == 0 && err == 0) {
		lift_report_add(
			&c->report, "move-pages", OK, NULL, "a process can move its own pages");
		return;
	}
	policy_rc = lift_probe_move_by_policy(&policy_err);
	if (rc > 0)
		lift_report_add(&c->report, "move-pages", LIMITED, remedy,
			"ends the process that tries (%s): NUMALIFT_PROMOTE=off is safe",
			sigabbrev_np(rc));
	else if (policy_rc == 0 && policy_err == 0)
		lift_report_add(&c->report, "move-pages", LIMITED, remedy,
			"refused (%s); mbind moves pages instead, which costs more",
			lift_text_errno(rc ? rc : err));
	else
		lift_report_add(&c->report, "move-pages", LIMITED, remedy,
			"refused (%s), and by mbind too (%s): use is tracked, and nothing is moved",
			lift_text_errno(rc ? rc : err), why(policy_rc, policy_err));
}

void lift_check_promotion(struct lift_check *c)
{
	check_wanted(c);
	check_sampler(c);
	check_moving(c);
	check_watching(c);
}
