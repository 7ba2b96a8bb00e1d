// SPDX-License-Identifier: MIT
#include "shim/large.h"

#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>

#include "shim/bits.h"
#include "shim/compiler.h"
#include "shim/heap.h"
#include "shim/os/rawsys.h"
#include "shim/os/sys.h"
#include "shim/vm.h"

#define PAGE ((size_t)4096)
#define ALIGN_UP(x, a) (((x) + (a)-1) & ~((a)-1))

/*
 * Directly in front of the block. The cookie binds the header to its address, so a copy of it
 * somewhere in the program's data does not pass for one, and it is wiped when the block is freed.
 */
struct header {
	uintptr_t cookie;
	uintptr_t map; /* start of the mapping */
	size_t map_len;
	size_t reserved[5]; /* the caller's bytes start on a cache line */
};
_Static_assert(sizeof(struct header) == 64, "the block that follows is aligned to 64");

static _Atomic size_t total_bytes;
static _Atomic size_t total_blocks;

/*
 * Where the header of a block on a page boundary would be, another allocator's block may have an
 * unmapped page. So the granules in which such blocks of ours began are remembered (and never
 * forgotten: the cookie decides, this only says where it may be looked for).
 */
static struct lift_bits page_aligned;

static uintptr_t cookie_of(const struct header *h)
{
	static const char anchor;

	/* The anchor's address is random where address space is; the constant keeps small ones
	 * apart. */
	return (uintptr_t)h ^ ((uintptr_t)&anchor * 0x9e3779b97f4a7c15u) ^ 0x6c6966744c415247u;
}

static struct header *header_of(const void *p)
{
	return (struct header *)((uintptr_t)p - sizeof(struct header));
}

static void publish(struct header *h, uintptr_t map, size_t map_len)
{
	size_t g = ((uintptr_t)(h + 1)) >> LIFT_GRANULE_SHIFT;

	h->map = map;
	h->map_len = map_len;
	h->cookie = cookie_of(h);
	if (((uintptr_t)(h + 1) & (PAGE - 1)) == 0)
		(void)lift_bits_set(&page_aligned, g);
}

bool lift_large_owns(const void *p)
{
	uintptr_t a = (uintptr_t)p;
	size_t g = a >> LIFT_GRANULE_SHIFT;

	/* Ours start 64 bytes into a page, or on an alignment above 64 that was asked for. */
	if (a < 2 * PAGE || (a & 63) != 0 || g >= LIFT_GRANULES)
		return false;
	if ((a & (PAGE - 1)) == 0 && !lift_bits_test(&page_aligned, g))
		return false;
	return header_of(p)->cookie == cookie_of(header_of(p));
}

void *lift_large_alloc(size_t n, size_t align)
{
	size_t lead = align > sizeof(struct header) ? align : sizeof(struct header);
	size_t len;
	uintptr_t map;
	uintptr_t p;
	uintptr_t first;
	uintptr_t end;
	long ret;

	if (n > PTRDIFF_MAX - lead - 2 * PAGE)
		return NULL;
	len = ALIGN_UP(n + lead + (align > PAGE ? PAGE : 0), PAGE);
	ret = lift_vm_map_block(len);
	if (lift_syserr(ret))
		return NULL;
	map = (uintptr_t)ret;
	p = ALIGN_UP(map + sizeof(struct header), lead);
	if (align > PAGE) {
		/* Give back what the alignment made superfluous on both sides. */
		first = (p - sizeof(struct header)) & ~(PAGE - 1);
		end = ALIGN_UP(p + n, PAGE);
		if (first > map)
			(void)lift_vm_unmap((void *)map, first - map);
		if (end < map + len)
			(void)lift_vm_unmap((void *)end, map + len - end);
		map = first;
		len = end - first;
	}
	publish(header_of((void *)p), map, len);
	atomic_fetch_add_explicit(&total_bytes, len, memory_order_relaxed);
	atomic_fetch_add_explicit(&total_blocks, 1, memory_order_relaxed);
	return (void *)p;
}

size_t lift_large_usable(const void *p)
{
	const struct header *h = header_of(p);

	return h->map + h->map_len - (uintptr_t)p;
}

void lift_large_free(void *p)
{
	struct header *h = header_of(p);
	uintptr_t map = h->map;
	size_t len = h->map_len;

	h->cookie = 0;
	/*
	 * munmap can fail with ENOMEM when it would split a mapping at vm.max_map_count (the block
	 * may have merged with a neighbour). The pages go back all the same.
	 */
	if (lift_vm_unmap((void *)map, len) < 0)
		(void)lift_sys_madvise((void *)map, len, MADV_DONTNEED);
	atomic_fetch_sub_explicit(&total_bytes, len, memory_order_relaxed);
	atomic_fetch_sub_explicit(&total_blocks, 1, memory_order_relaxed);
}

void *lift_large_realloc(void *p, size_t n)
{
	struct header *h = header_of(p);
	uintptr_t map = h->map;
	size_t len = h->map_len;
	size_t lead = (uintptr_t)p - map;
	size_t want;
	long ret;

	if (n > PTRDIFF_MAX - lead - PAGE)
		return NULL;
	want = ALIGN_UP(n + lead, PAGE);
	if (want == len)
		return p;
	ret = lift_vm_remap((void *)map, len, want, MREMAP_MAYMOVE, NULL);
	if (lift_syserr(ret))
		return want < len ? p : NULL;
	p = (void *)((uintptr_t)ret + lead);
	publish(header_of(p), (uintptr_t)ret, want);
	atomic_fetch_add_explicit(&total_bytes, want - len, memory_order_relaxed);
	return p;
}

void lift_large_usage(size_t *ret_bytes, size_t *ret_blocks)
{
	*ret_bytes = atomic_load_explicit(&total_bytes, memory_order_relaxed);
	*ret_blocks = atomic_load_explicit(&total_blocks, memory_order_relaxed);
}
