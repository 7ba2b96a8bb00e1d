// SPDX-License-Identifier: MIT
#include "shim/vm.h"

#include <stdatomic.h>
#include <sys/mman.h>

#include "shim/compiler.h"
#include "shim/os/rawsys.h"
#include "shim/os/sys.h"
#include "shim/place.h"
#include "shim/registry.h"

static inline bool placing(void)
{
	return unlikely(atomic_load_explicit(&lift_placing, memory_order_relaxed));
}

long lift_vm_mmap(void *addr, size_t len, int prot, int flags, int fd, off_t off)
{
	long ret = lift_sys_mmap(addr, len, prot, flags, fd, off);

	if (placing() && !lift_syserr(ret))
		lift_place_mapped((uintptr_t)ret, len, prot, flags, fd);
	return ret;
}

long lift_vm_unmap(void *addr, size_t len)
{
	/* Before the call: afterwards the range may be another thread's new mapping already. */
	if (placing())
		lift_place_unmapped((uintptr_t)addr, len);
	return lift_sys_munmap(addr, len);
}

long lift_vm_remap(void *old, size_t old_len, size_t new_len, int flags, void *new_addr)
{
	/* Both ranges change hands at once, so the registry's lock is held across the call. */
	bool tracked = placing() && lift_registry_enter();
	long ret = lift_sys_mremap(old, old_len, new_len, flags, new_addr);

	if (!tracked)
		return ret;
	if (!lift_syserr(ret))
		lift_place_remapped((uintptr_t)old, old_len, (uintptr_t)ret, new_len,
			(flags & MREMAP_DONTUNMAP) != 0);
	lift_registry_leave();
	return ret;
}

long lift_vm_map_block(size_t len)
{
	long ret = lift_sys_mmap(NULL, len, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (placing() && !lift_syserr(ret))
		lift_place_block((uintptr_t)ret, len);
	return ret;
}

void lift_vm_heap_mapped(uintptr_t start, size_t len)
{
	if (placing())
		lift_place_heap(start, len);
}

void lift_vm_heap_unmapped(uintptr_t start, size_t len)
{
	if (placing())
		lift_place_unmapped(start, len);
}
