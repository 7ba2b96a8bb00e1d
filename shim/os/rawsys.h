// SPDX-License-Identifier: MIT
/*
 * System calls that leave errno alone: they return the result, or -errno, as the kernel does. The
 * host program's errno must not change when a call of ours succeeds or is nobody's business, and
 * libc's wrappers write it; some of them are also interposed by this very library. Signal-safe,
 * fork-safe.
 */
#ifndef NUMALIFT_SHIM_OS_RAWSYS_H
#define NUMALIFT_SHIM_OS_RAWSYS_H

#include <stdbool.h>
#include <sys/syscall.h>

#if defined(__x86_64__)
static inline long lift_syscall(long nr, long a, long b, long c, long d, long e, long f)
{
	long ret;
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;

	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return ret;
}
#elif defined(__aarch64__)
static inline long lift_syscall(long nr, long a, long b, long c, long d, long e, long f)
{
	register long x8 __asm__("x8") = nr;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;
	register long x4 __asm__("x4") = e;
	register long x5 __asm__("x5") = f;

	__asm__ volatile("svc 0"
			 : "+r"(x0)
			 : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
			 : "memory");
	return x0;
}
#else
#error "numalift knows the system call convention of x86-64 and aarch64"
#endif

/* The kernel returns -4095..-1 for errors; everything else, high addresses included, is a result.
 */
static inline bool lift_syserr(long ret)
{
	return (unsigned long)ret > -4096UL;
}

#endif
