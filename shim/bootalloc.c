// SPDX-License-Identifier: MIT
#include "shim/bootalloc.h"

#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>

#include "shim/compiler.h"
#include "shim/os/rawsys.h"
#include "shim/os/sys.h"

#define POOL_BYTES (32u << 10)
#define CHUNK_BYTES (256u << 10)

/*
 * A chunk that is bumped through. The offset lives in the chunk, so a thread that lost the race for the
 * current chunk can never hand out memory of another one.
 */
struct chunk {
	_Atomic size_t used;
	size_t size;
	unsigned char *base;
};

static _Alignas(64) unsigned char pool[POOL_BYTES];
static struct chunk first = {.size = POOL_BYTES, .base = pool};
static _Atomic(struct chunk *) current = &first;

static void *take(struct chunk *c, size_t size, size_t align)
{
	size_t used = atomic_load_explicit(&c->used, memory_order_relaxed);
	size_t start;

	do {
		start = (((uintptr_t)c->base + used + align - 1) & ~(align - 1)) - (uintptr_t)c->base;
		if (start > c->size || size > c->size - start)
			return NULL;
	} while (!atomic_compare_exchange_weak_explicit(
		&c->used, &used, start + size, memory_order_relaxed, memory_order_relaxed));
	return c->base + start;
}

void *lift_bootalloc_static(size_t size, size_t align)
{
	if (size == 0 || size > POOL_BYTES)
		return NULL;
	return take(&first, size, align < 16 ? 16 : align);
}

void *lift_bootalloc(size_t size, size_t align)
{
	struct chunk *c;
	struct chunk *fresh;
	size_t want;
	void *p;
	long map;

	if (size == 0 || size > (1u << 30) || align > (1u << 20))
		return NULL;
	if (align < 16)
		align = 16;
	for (;;) {
		c = atomic_load_explicit(&current, memory_order_acquire);
		p = take(c, size, align);
		if (p)
			return p;
		want = size + align + sizeof(*fresh) + 64;
		want = want < CHUNK_BYTES ? CHUNK_BYTES : (want + 4095) & ~(size_t)4095;
		map = lift_sys_mmap(NULL, want, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (lift_syserr(map))
			return NULL;
		fresh = (struct chunk *)map;
		fresh->base = (unsigned char *)(fresh + 1);
		fresh->size = want - sizeof(*fresh);
		if (!atomic_compare_exchange_strong_explicit(&current, &c, fresh,
			    memory_order_release, memory_order_relaxed))
			(void)lift_sys_munmap((void *)map, want);
	}
}

bool lift_bootalloc_owns(const void *p)
{
	return (uintptr_t)p - (uintptr_t)pool < POOL_BYTES;
}

size_t lift_bootalloc_room(const void *p)
{
	return (size_t)((uintptr_t)pool + POOL_BYTES - (uintptr_t)p);
}
