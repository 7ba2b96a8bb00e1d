// SPDX-License-Identifier: MIT
/*
 * A bit for each granule of the address space (heap.h), of which few are ever set: a table of
 * pages, each made when a bit of it is first set. Address space may be limited, and half a MiB for
 * each such map would be missed. Nothing is given back. Any thread, async-signal-safe.
 */
#ifndef NUMALIFT_SHIM_BITS_H
#define NUMALIFT_SHIM_BITS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shim/heap.h"

#define LIFT_BITS_WORDS 512 /* of a page: 32768 granules, 1 TiB */
#define LIFT_BITS_PAGES (LIFT_GRANULES / 64 / LIFT_BITS_WORDS)

struct lift_bits {
	_Atomic(_Atomic uint64_t *) page[LIFT_BITS_PAGES];
};

static inline bool lift_bits_test(struct lift_bits *b, size_t granule)
{
	_Atomic uint64_t *page;

	if (granule >= LIFT_GRANULES)
		return false;
	page = atomic_load_explicit(&b->page[granule / 64 / LIFT_BITS_WORDS], memory_order_acquire);
	return page &&
	       (atomic_load_explicit(&page[granule / 64 % LIFT_BITS_WORDS], memory_order_relaxed) >>
			       granule % 64 &
		       1);
}

/* False when there is no memory for it, or no such granule. */
bool lift_bits_set(struct lift_bits *b, size_t granule);
void lift_bits_clear(struct lift_bits *b, size_t granule);

#endif
