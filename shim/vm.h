// SPDX-License-Identifier: MIT
/*
 * The one way to the kernel for mapping calls, the program's and ours: each does the system call
 * first, exactly as asked, and then, where there is something to place, lets place.h look at the
 * result. What the placement does or fails to do never changes the result.
 *
 * All return the kernel's result or -errno (lift_syserr()), keep errno, and may be called from any
 * thread and from signal handlers.
 */
#ifndef NUMALIFT_SHIM_VM_H
#define NUMALIFT_SHIM_VM_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

long lift_vm_mmap(void *addr, size_t len, int prot, int flags, int fd, off_t off);
long lift_vm_unmap(void *addr, size_t len);
long lift_vm_protect(void *addr, size_t len, int prot);
long lift_vm_advise(void *addr, size_t len, int advice);
long lift_vm_remap(void *old, size_t old_len, size_t new_len, int flags, void *new_addr);

/* A mapping for a large block of the heap: read-write, private, anonymous. */
long lift_vm_map_block(size_t len);

/* mimalloc was given [start, start + len), or gave it back. */
void lift_vm_heap_mapped(uintptr_t start, size_t len);
void lift_vm_heap_unmapped(uintptr_t start, size_t len);

#endif
