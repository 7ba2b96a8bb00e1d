// SPDX-License-Identifier: MIT
#include "shim/bootalloc.h"

#include <stdint.h>
#include <sys/mman.h>

#include "shim/os/rawsys.h"
#include "shim/os/sys.h"

#define FIRST_BYTES (8u << 10)
#define CHUNK_BYTES ((size_t)256 << 10)

static _Alignas(64) unsigned char first_bytes[FIRST_BYTES];
static struct lift_bump first = {.size = FIRST_BYTES, .base = first_bytes};
static _Atomic(struct lift_bump *) current = &first;

void *lift_bump_take(struct lift_bump *b, size_t size, size_t align)
{
	size_t used = atomic_load_explicit(&b->used, memory_order_relaxed);
	size_t start;

	do {
		start = (((uintptr_t)b->base + used + align - 1) & ~(align - 1)) -
			(uintptr_t)b->base;
		if (start > b->size || size > b->size - start)
			return NULL;
	} while (!atomic_compare_exchange_weak_explicit(
		&b->used, &used, start + size, memory_order_relaxed, memory_order_relaxed));
	return b->base + start;
}

void *lift_bootalloc(size_t size, size_t align)
{
	struct lift_bump *b;
	struct lift_bump *fresh;
	size_t want;
	void *p;
	long map;

	if (size == 0 || size > (1u << 30) || align > (1u << 20))
		return NULL;
	if (align < 16)
		align = 16;
	for (;;) {
		b = atomic_load_explicit(&current, memory_order_acquire);
		p = lift_bump_take(b, size, align);
		if (p)
			return p;
		want = (size + align + sizeof(*fresh) + 4095) & ~(size_t)4095;
		if (want < CHUNK_BYTES)
			want = CHUNK_BYTES;
		map = lift_sys_mmap(NULL, want, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (lift_syserr(map))
			return NULL;
		fresh = (struct lift_bump *)map;
		fresh->base = (unsigned char *)(fresh + 1);
		fresh->size = want - sizeof(*fresh);
		if (!atomic_compare_exchange_strong_explicit(
			    &current, &b, fresh, memory_order_release, memory_order_relaxed))
			(void)lift_sys_munmap((void *)map, want);
	}
}
