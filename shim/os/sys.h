// SPDX-License-Identifier: MIT
/*
 * One thin function per system call that numalift makes. Each returns the kernel's result or -errno
 * and never touches errno. All are async-signal-safe and may be called at any time in the life of
 * the process. docs/syscalls.md lists when each of them is made.
 */
#ifndef NUMALIFT_SHIM_OS_SYS_H
#define NUMALIFT_SHIM_OS_SYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "policy/types.h"
#include "shim/os/rawsys.h"

/* Memory mapping. Addresses are returned as long, errors as -errno: test with lift_syserr(). */
long lift_sys_mmap(void *addr, size_t len, int prot, int flags, int fd, off_t off);
/*
 * Private memory of our own for reading and writing, far from where the kernel puts the program's:
 * a thread of ours may ask for some at any time, and a program may count on it that nobody maps
 * anything into a hole that it has just made. MAP_NORESERVE may be among the flags.
 */
long lift_sys_mmap_apart(size_t len, int flags);
long lift_sys_munmap(void *addr, size_t len);
long lift_sys_mremap(void *old, size_t old_len, size_t new_len, int flags, void *new_addr);
/*
 * Whether pages from `at` on, which is that of one, are in one mapping of which mremap takes a
 * part. Changes nothing. True as well where it cannot be known (above the stack).
 */
bool lift_sys_within_mapping(uintptr_t at, size_t len);
long lift_sys_mprotect(void *addr, size_t len, int prot);
long lift_sys_madvise(void *addr, size_t len, int advice);

/* Memory policy. `nodes` NULL stands for an empty mask; `mode` carries the MPOL_F_ mode flags. */
long lift_sys_mbind(
	void *addr, size_t len, int mode, const struct lift_nodeset *nodes, unsigned flags);
long lift_sys_set_mempolicy(int mode, const struct lift_nodeset *nodes);
/* addr NULL asks for the calling thread's policy, else for that of the mapping at addr. */
long lift_sys_get_mempolicy(int *ret_mode, struct lift_nodeset *ret_nodes, void *addr);
/*
 * Moves pages of this process (nodes: one for each), or tells where they are (nodes NULL). More
 * than 0: so many pages were not moved, the ones that were not tried among them. ret_status is
 * written only as far as the kernel got.
 */
long lift_sys_move_pages(
	size_t nr, const uintptr_t *pages, const int *nodes, int *ret_status, unsigned flags);
/* Node of the page at addr, or -errno. A page that is not there comes into being by that. */
long lift_sys_page_node(uintptr_t addr);
/* A byte for each page: bit 0 is whether it is there. -ENOMEM: part of it is not mapped. */
long lift_sys_mincore(uintptr_t addr, size_t len, unsigned char *ret);
/* Node of the CPU that this thread runs on, or -errno. */
int lift_sys_cpu_node(void);

/* Files. Reads at most size - 1 bytes, terminates them with 0 and returns the count. Opens
 * O_CLOEXEC. */
long lift_sys_read_file(const char *path, char *buf, size_t size);
long lift_sys_write(int fd, const void *buf, size_t len);
/* A copy of the main thread's descriptor fd, for threads with a table of their own (5.6), or
 * -errno. */
int lift_sys_borrow_fd(int fd);
long lift_sys_close(int fd);
/* True when a short write to fd would neither wait nor meet a closed pipe. */
bool lift_sys_can_write(int fd);
/* File system type (f_type of statfs) that fd lies on, or -errno. */
long lift_sys_fs_type(int fd);
/*
 * Preferred block size of an open regular file (on tmpfs: of the huge page where it uses them),
 * -EINVAL for what is no regular file, or -errno.
 */
long lift_sys_block_size(int fd);

/* True when address space or private memory is limited (RLIMIT_AS, RLIMIT_DATA), or the limits are
 * not known. */
bool lift_sys_limited_memory(void);

/*
 * Futex on a private 32-bit word. Waits while *word == val, for timeout_ms at most; false when that
 * has passed. Wakes at most `count` waiters.
 */
bool lift_sys_futex_wait(_Atomic uint32_t *word, uint32_t val, int timeout_ms);
void lift_sys_futex_wake(_Atomic uint32_t *word, int count);
void lift_sys_yield(void);
/* Here, as the child of a fork asks: it would have to map another part of this library's code. */
static inline pid_t lift_sys_getpid(void)
{
	return (pid_t)lift_syscall(SYS_getpid, 0, 0, 0, 0, 0, 0);
}
pid_t lift_sys_gettid(void);

/* CPU time used so far by this thread, by the process with all of its threads; 0: not known. */
uint64_t lift_sys_thread_cpu_ns(void);
uint64_t lift_sys_process_cpu_ns(void);

/* Blocks every signal for the calling thread; returns the mask that was, for the second one. */
uint64_t lift_sys_block_signals(void);
void lift_sys_restore_signals(uint64_t mask);

/* Device and inode behind fd; false when it is not open. */
bool lift_sys_file_id(int fd, uint64_t *ret_dev, uint64_t *ret_ino);

#endif
