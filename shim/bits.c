// SPDX-License-Identifier: MIT
#include "shim/bits.h"

#include "shim/bootalloc.h"

/* For when there is no memory: a block that is not known as ours would be freed as libc's. */
enum { EMERGENCY_PAGES = 4 };
static _Atomic uint64_t emergency[EMERGENCY_PAGES][LIFT_BITS_WORDS];
static _Atomic unsigned emergency_used;

static _Atomic uint64_t *new_page(void)
{
	_Atomic uint64_t *page = lift_bootalloc(LIFT_BITS_WORDS * sizeof(*page), 64);
	unsigned nr;

	if (page)
		return page;
	nr = atomic_fetch_add_explicit(&emergency_used, 1, memory_order_relaxed);
	return nr < EMERGENCY_PAGES ? emergency[nr] : NULL;
}

bool lift_bits_set(struct lift_bits *b, size_t granule)
{
	_Atomic(_Atomic uint64_t *) *at;
	_Atomic uint64_t *page;

	if (granule >= LIFT_GRANULES)
		return false;
	at = &b->page[granule / 64 / LIFT_BITS_WORDS];
	page = atomic_load_explicit(at, memory_order_acquire);
	if (!page) {
		_Atomic uint64_t *none = NULL;

		page = new_page();
		if (!page)
			return false;
		/* Somebody else's, if two were as early; then this one is lost. */
		if (!atomic_compare_exchange_strong_explicit(
			    at, &none, page, memory_order_acq_rel, memory_order_acquire))
			page = none;
	}
	atomic_fetch_or_explicit(&page[granule / 64 % LIFT_BITS_WORDS], UINT64_C(1) << granule % 64,
		memory_order_relaxed);
	return true;
}

void lift_bits_clear(struct lift_bits *b, size_t granule)
{
	_Atomic uint64_t *page;

	if (!lift_bits_test(b, granule))
		return;
	page = atomic_load_explicit(&b->page[granule / 64 / LIFT_BITS_WORDS], memory_order_acquire);
	atomic_fetch_and_explicit(&page[granule / 64 % LIFT_BITS_WORDS],
		~(UINT64_C(1) << granule % 64), memory_order_relaxed);
}
