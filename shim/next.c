// SPDX-License-Identifier: MIT
#include "shim/next.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "shim/compiler.h"
#include "shim/early.h"
#include "shim/foreign.h"

#define NAME_OF(name) #name,
static const char *const names[LIFT_NEXT_MAX] = {LIFT_NEXT_NAMES(NAME_OF)};

static void *found[LIFT_NEXT_MAX];
static __thread int looking __attribute__((tls_model("initial-exec")));

/* Answers for what dlsym(3) itself may call while it looks up the real ones. */
static void *early_malloc(size_t n)
{
	return lift_early_alloc(n, 16);
}

static void *early_calloc(size_t nmemb, size_t size)
{
	return lift_early_alloc(nmemb * size, 16);
}

static void *early_realloc(void *p, size_t n)
{
	void *q = lift_early_alloc(n, 16);
	size_t have;

	if (q && p && lift_early_owns(p)) {
		have = lift_early_usable(p);
		memcpy(q, p, have < n ? have : n);
	}
	return q;
}

static void early_free(void *p)
{
	(void)p;
}

static void *early(enum lift_next_id id)
{
	switch (id) {
	case LIFT_NEXT_malloc:
		return (void *)(uintptr_t)early_malloc;
	case LIFT_NEXT_calloc:
		return (void *)(uintptr_t)early_calloc;
	case LIFT_NEXT_realloc:
		return (void *)(uintptr_t)early_realloc;
	case LIFT_NEXT_free:
		return (void *)(uintptr_t)early_free;
	default:
		return NULL;
	}
}

void *lift_next_fn(enum lift_next_id id)
{
	void *fn = __atomic_load_n(&found[id], __ATOMIC_RELAXED);

	if (likely(fn != NULL))
		return fn;
	if (looking)
		return early(id);
	looking = 1;
	fn = lift_next(names[id]);
	looking = 0;
	__atomic_store_n(&found[id], fn, __ATOMIC_RELAXED);
	return fn;
}
