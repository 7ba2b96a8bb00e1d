// SPDX-License-Identifier: MIT
/*
 * Passing a call on while numalift stands aside: LIFT_NEXT(name, result, (types), (args)) calls the
 * next definition of `name` in the search order, as if this library were not there. dlsym(3), which
 * finds it, may itself allocate; such calls are answered from static storage.
 */
#ifndef NUMALIFT_SHIM_NEXT_H
#define NUMALIFT_SHIM_NEXT_H

#include <stdint.h>

/* Everything that is interposed and can be passed on. */
/* clang-format off */
#define LIFT_NEXT_NAMES(X)                                                                         \
	X(malloc) X(calloc) X(realloc) X(free) X(posix_memalign) X(memalign) X(aligned_alloc)      \
	X(valloc) X(pvalloc) X(malloc_usable_size) X(malloc_trim) X(mallopt) X(mallinfo2)          \
	X(mmap) X(munmap) X(mremap) X(madvise) X(mprotect) X(mlockall) X(munlockall)               \
	X(shmat) X(shmdt) X(mbind) X(set_mempolicy) X(prctl) X(unshare) X(setns) X(chroot)                   \
	X(setuid) X(seteuid) X(setreuid) X(setresuid) X(setgid) X(setegid) X(setregid)             \
	X(setresgid) X(setgroups) X(initgroups) X(capset)                                                    \
	X(_Znwm) X(_Znam) X(_ZnwmRKSt9nothrow_t) X(_ZnamRKSt9nothrow_t)                            \
	X(_ZnwmSt11align_val_t) X(_ZnamSt11align_val_t)                                            \
	X(_ZnwmSt11align_val_tRKSt9nothrow_t) X(_ZnamSt11align_val_tRKSt9nothrow_t)                \
	X(_ZdlPv) X(_ZdaPv) X(_ZdlPvm) X(_ZdaPvm) X(_ZdlPvRKSt9nothrow_t) X(_ZdaPvRKSt9nothrow_t)  \
	X(_ZdlPvSt11align_val_t) X(_ZdaPvSt11align_val_t)                                          \
	X(_ZdlPvmSt11align_val_t) X(_ZdaPvmSt11align_val_t)                                        \
	X(_ZdlPvSt11align_val_tRKSt9nothrow_t) X(_ZdaPvSt11align_val_tRKSt9nothrow_t)
/* clang-format on */

#define LIFT_NEXT_ENUM(name) LIFT_NEXT_##name,
enum lift_next_id { LIFT_NEXT_NAMES(LIFT_NEXT_ENUM) LIFT_NEXT_MAX };
#undef LIFT_NEXT_ENUM

/* NULL when nobody else defines it (operator new in a program without libstdc++). */
void *lift_next_fn(enum lift_next_id id);

#define LIFT_NEXT(name, result, types, args)                                                       \
	(((result(*) types)(uintptr_t)lift_next_fn(LIFT_NEXT_##name))args)

#endif
