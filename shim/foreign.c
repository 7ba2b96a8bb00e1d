// SPDX-License-Identifier: MIT
#include "shim/foreign.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/uio.h>

#include "shim/compiler.h"
#include "shim/heap.h"
#include "shim/object.h"
#include "shim/os/rawsys.h"
#include "shim/os/sys.h"

/*
 * glibc keeps these for allocators that replace malloc. tcmalloc and mimalloc export them, too, and
 * may come before libc in the search order: where another allocator is about, libc is asked by its
 * handle.
 */
extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);
extern void __libc_free(void *);

static size_t (*libc_usable)(void *);

/*
 * Another allocator behind us in the search order; all NULL where libc comes next. It is what the
 * program would have without us, so it serves where we cannot, and only blocks that libc's own code
 * made are libc's.
 */
static struct {
	void *(*malloc)(size_t);
	void *(*calloc)(size_t, size_t);
	void *(*memalign)(size_t, size_t);
	void (*free)(void *);
	void *(*realloc)(void *, size_t);
	size_t (*usable)(void *);
	void (*libc_free)(void *);
} other;

void *lift_next(const char *name)
{
	int saved = errno;
	void *fn = dlsym(RTLD_NEXT, name);

	errno = saved;
	return fn;
}

void *lift_libc_malloc(size_t n)
{
	return unlikely(other.malloc != NULL) ? other.malloc(n) : __libc_malloc(n);
}

void *lift_libc_calloc(size_t n)
{
	return unlikely(other.calloc != NULL) ? other.calloc(1, n) : __libc_calloc(1, n);
}

void *lift_libc_aligned(size_t align, size_t n)
{
	return unlikely(other.memalign != NULL) ? other.memalign(align, n)
						: __libc_memalign(align, n);
}

static uintptr_t brk_start;

/*
 * libc sets its heap up at its first call, and relies on that being before there are threads; in a
 * process where the heap is ours that call might come much later, from two threads at once. mallopt
 * does it without taking memory.
 */
static void set_up_libc(bool libc_is_next)
{
	enum { NO_SUCH_PARAMETER = 0x6c696674 };
	int (*fn)(int, int) = NULL;

	if (libc_is_next)
		fn = (int (*)(int, int))(uintptr_t)lift_next("mallopt");
	if (fn)
		(void)fn(NO_SUCH_PARAMETER, 0);
	else
		__libc_free(__libc_malloc(1));
}

void lift_foreign_init(void)
{
	void *next = lift_next("free");
	bool libc_is_next = !next || lift_object_same((uintptr_t)next, (uintptr_t)&__libc_free);
	int saved = errno;
	void *handle;

	if (!libc_is_next && (handle = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD))) {
		other.malloc = (void *(*)(size_t))(uintptr_t)lift_next("malloc");
		other.calloc = (void *(*)(size_t, size_t))(uintptr_t)lift_next("calloc");
		other.memalign = (void *(*)(size_t, size_t))(uintptr_t)lift_next("memalign");
		other.realloc = (void *(*)(void *, size_t))(uintptr_t)lift_next("realloc");
		other.usable = (size_t(*)(void *))(uintptr_t)lift_next("malloc_usable_size");
		/* What comes next is the other one's; libc's own hides behind it. */
		libc_usable = (size_t(*)(void *))(uintptr_t)dlsym(handle, "malloc_usable_size");
		other.libc_free = (void (*)(void *))(uintptr_t)dlsym(handle, "free");
		brk_start = (uintptr_t)lift_syscall(SYS_brk, 0, 0, 0, 0, 0, 0);
		other.free = (void (*)(void *))(uintptr_t)next;
	}
	set_up_libc(libc_is_next);
	errno = saved;
}

/* glibc's chunk header in front of a block: previous size, then size and three flags. */
#define CHUNK_PREV_IN_USE 1ul
#define CHUNK_MMAPPED 2ul
#define CHUNK_NON_MAIN 4ul
#define ARENA_BYTES ((uintptr_t)64 << 20)

/* A secondary arena starts on a multiple of 64 MiB with a record that knows its own size. */
static bool in_libc_arena(uintptr_t at, size_t size)
{
	uintptr_t info_at = at & ~(ARENA_BYTES - 1);
	size_t info[3];
	struct iovec to = {info, sizeof(info)};
	struct iovec from = {(void *)info_at, sizeof(info)};

	/* Another allocator may have nothing readable there: the kernel can try without harm. */
	if (lift_syscall(SYS_process_vm_readv, lift_sys_getpid(), (long)&to, 1, (long)&from, 1,
		    0) != (long)sizeof(info))
		return false;
	return info[0] != 0 && info[2] <= ARENA_BYTES && (info[2] & 4095) == 0 &&
	       at + size <= info_at + info[2];
}

/*
 * Only asked where a second allocator is about: is p a block of libc's? The header is read, with
 * which every block but one at the start of a page is sure to share its page.
 */
static bool is_libcs(const void *p)
{
	const size_t *chunk = (const size_t *)((uintptr_t)p - 2 * sizeof(size_t));
	uintptr_t at = (uintptr_t)chunk;
	size_t size;

	if (((uintptr_t)p & 15) != 0)
		return false;
	/* The main arena is the brk heap, which is readable throughout. */
	if (at >= brk_start && at < (uintptr_t)lift_syscall(SYS_brk, 0, 0, 0, 0, 0, 0))
		return true;
	if (((uintptr_t)p & 4095) < 16)
		return false;
	size = chunk[1] & ~(size_t)7;
	if (size < 32 || (size & 15) != 0)
		return false;
	if (chunk[1] & CHUNK_MMAPPED)
		return !(chunk[1] & CHUNK_PREV_IN_USE) && chunk[0] < at &&
		       ((at - chunk[0]) & 4095) == 0 && ((chunk[0] + size) & 4095) == 0;
	if (chunk[1] & CHUNK_NON_MAIN)
		return in_libc_arena(at, size);
	return false;
}

static bool is_other(const void *p)
{
	return unlikely(other.free != NULL) && !is_libcs(p);
}

void lift_foreign_free(void *p)
{
	if (is_other(p))
		other.free(p);
	else if (other.libc_free)
		other.libc_free(p);
	else
		__libc_free(p);
}

size_t lift_foreign_usable(void *p)
{
	if (is_other(p))
		return other.usable ? other.usable(p) : 0;
	if (!libc_usable)
		libc_usable = (size_t(*)(void *))(uintptr_t)lift_next("malloc_usable_size");
	return libc_usable ? libc_usable(p) : 0;
}

void *lift_foreign_realloc(void *p, size_t n)
{
	size_t have;
	void *q;

	if (is_other(p) && other.realloc)
		return other.realloc(p, n);
	/* From libc's heap it moves into ours; where we cannot serve, lift_heap_malloc() asks libc.
	 */
	have = lift_foreign_usable(p);
	q = lift_heap_malloc(n);
	if (!q)
		return NULL;
	memcpy(q, p, have < n ? have : n);
	lift_foreign_free(p);
	return q;
}
