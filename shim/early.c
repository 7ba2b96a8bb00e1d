// SPDX-License-Identifier: MIT
#include "shim/early.h"

#include <stdatomic.h>
#include <stdint.h>

#include "shim/bootalloc.h"

#define POOL_BYTES (64u << 10)

static _Alignas(64) unsigned char pool[POOL_BYTES];
static struct lift_bump bump = {.size = POOL_BYTES, .base = pool};

void *lift_early_alloc(size_t n, size_t align)
{
	size_t head = align > 16 ? align : 16;
	unsigned char *p;

	if (n > POOL_BYTES || head > POOL_BYTES)
		return NULL;
	p = lift_bump_take(&bump, n + head, head);
	if (!p)
		return NULL;
	p += head;
	((size_t *)(void *)p)[-1] = n;
	return p;
}

bool lift_early_owns(const void *p)
{
	return (uintptr_t)p - (uintptr_t)pool < POOL_BYTES;
}

size_t lift_early_usable(const void *p)
{
	return ((const size_t *)p)[-1];
}
