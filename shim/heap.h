// SPDX-License-Identifier: MIT
/*
 * The heap behind the malloc family: mimalloc for blocks below LIFT_LARGE_MIN, mappings of their
 * own (large.h) above, libc's own allocator where neither can serve (out of address space, inside a
 * signal handler, in the middle of mimalloc). Blocks find their way home by address: a table
 * of granules of 32 MiB says which are mimalloc's. The mmap hook gives mimalloc whole, aligned
 * granules, so that no other mapping ever shares one with it.
 *
 * All functions keep glibc's contracts (errno included) and may be called in every state of the
 * process, from any thread and from signal handlers.
 */
#ifndef NUMALIFT_SHIM_HEAP_H
#define NUMALIFT_SHIM_HEAP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "policy/types.h"
#include "shim/compiler.h"

#define LIFT_GRANULE_SHIFT 25
#define LIFT_GRANULE ((size_t)1 << LIFT_GRANULE_SHIFT)
/* User addresses have 47 bits, on aarch64 48, unless a program asks for more by its hints. */
#if defined(__aarch64__)
#define LIFT_ADDRESS_BITS 48
#else
#define LIFT_ADDRESS_BITS 47
#endif
#define LIFT_GRANULES ((size_t)1 << (LIFT_ADDRESS_BITS - LIFT_GRANULE_SHIFT))

/*
 * From this size on a block is a mapping of its own. mimalloc 2.0 does the same from 16 MiB; a
 * mapping of ours can grow by mremap instead of being copied, and belongs to the anon class.
 */
#define LIFT_LARGE_MIN ((size_t)16 << 20)

/*
 * What a granule is to us. mimalloc asks for addresses that begin at 2 to 6 TiB and go up with
 * every segment. For those below 16 TiB there is a byte each, as a bit would have to be shifted out
 * of its word at every free; the others are in a set that takes longer to ask.
 */
enum lift_granule {
	LIFT_GRANULE_OTHERS,
	LIFT_GRANULE_FREE = 1,  /* mimalloc's, and free may jump into it (lift_thread_may_free) */
	LIFT_GRANULE_ASKED = 2, /* mimalloc's, but somebody stands between it and the kernel */
};
#define LIFT_NEAR_GRANULES (((size_t)16 << 40) >> LIFT_GRANULE_SHIFT)
extern __attribute__((visibility("hidden"))) _Atomic uint8_t lift_heap_near[LIFT_NEAR_GRANULES];

/* enum lift_granule of the memory at p, which need not be anything; OTHERS from 16 TiB on. */
static inline unsigned lift_heap_granule(const void *p)
{
	size_t g = (uintptr_t)p >> LIFT_GRANULE_SHIFT;

	if (unlikely(g >= LIFT_NEAR_GRANULES))
		return LIFT_GRANULE_OTHERS;
	return atomic_load_explicit(&lift_heap_near[g], memory_order_relaxed);
}

/* The same question for memory from 16 TiB on. */
bool lift_heap_owns_far(const void *p);

static inline bool lift_heap_owns(const void *p)
{
	return lift_heap_granule(p) != LIFT_GRANULE_OTHERS || lift_heap_owns_far(p);
}

/* Where requests go from at which large blocks begin; at most LIFT_LARGE_MIN, less when the policy
 * asks. */
extern __attribute__((visibility("hidden"))) size_t lift_heap_large_min;

/*
 * Wakes mimalloc up for this process. From lift_boot(), once. nodes: highest node id + 1; 1 where
 * there is one node. direct: nobody stands between mimalloc and the kernel but us, so the fast path
 * is safe.
 */
void lift_heap_boot(int nodes, bool direct);

/* The ways that are not inlined in interpose_malloc.c. n and align are the caller's, unchecked. */
void *lift_heap_malloc(size_t n);
void *lift_heap_calloc(size_t n);                /* the product, already checked */
void *lift_heap_aligned(size_t align, size_t n); /* align: a power of two above 16 */
void *lift_heap_realloc(void *p, size_t n);      /* p not NULL, n not 0 */
void lift_heap_free(void *p);                    /* any p */
size_t lift_heap_usable(void *p);                /* any p */
bool lift_heap_trim(void);

struct lift_heap_usage {
	size_t mapped; /* bytes of address space that mimalloc holds */
	size_t large;  /* bytes in blocks that are mappings of their own */
	size_t large_blocks;
};
void lift_heap_usage(struct lift_heap_usage *ret);

/*
 * In the child that may not enter the heap any more: mimalloc is not to tidy up when this thread
 * ends, since that can wait for threads that are not there. Its destructor is found by the value it
 * would be given.
 */
void lift_heap_forget_thread(void);

/* Frees what was deferred. On a thread that is inside the heap and may use it. */
void lift_heap_drain(void);

/*
 * mimalloc's own system calls, recognised by the return address of the hook. They return -errno and
 * never touch errno: mimalloc passes results on to callers that must not see it change.
 */
bool lift_heap_is_caller(const void *return_address);
long lift_heap_map(void *hint, size_t len, int prot, int flags, int fd, long off);
long lift_heap_unmap(void *addr, size_t len);
long lift_heap_protect(void *addr, size_t len, int prot);
long lift_heap_advise(void *addr, size_t len, int advice);

/* The program puts itself into a sandbox: only calls that every malloc makes from now on. */
void lift_heap_sandboxed(void);
bool lift_heap_in_sandbox(void);

/* Gives the spare segment's address space back, for a call that needs it more. False: there was
 * none. */
bool lift_heap_drop_spare(void);

/* mlockall has succeeded, with MCL_FUTURE or without; munlockall has. */
void lift_heap_locked(bool future);
void lift_heap_unlocked(void);

#endif
