// SPDX-License-Identifier: MIT
/*
 * What the sampler wp+refs needs of wp beside its table: what became of every page, also of those
 * that wp itself does not report.
 */
#ifndef NUMALIFT_SHIM_SAMPLE_UFFD_H
#define NUMALIFT_SHIM_SAMPLE_UFFD_H

#include "policy/types.h"

enum lift_wp_kind {
	LIFT_WP_WRITTEN,
	LIFT_WP_KEPT, /* not written since it was armed */
	LIFT_WP_HUGE, /* mapped huge, or not watched: cannot be told */
};

/* Pages that are resident, ascending. */
typedef void lift_wp_fn(void *arg, struct lift_range pages, enum lift_wp_kind kind);

/* What the program has registered itself is left out. As collect(): 0, -ESTALE or -errno. */
int lift_wp_scan(struct lift_range range, lift_wp_fn *fn, void *arg);

#endif
