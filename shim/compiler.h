// SPDX-License-Identifier: MIT
/* Compiler words used all over the shim. */
#ifndef NUMALIFT_SHIM_COMPILER_H
#define NUMALIFT_SHIM_COMPILER_H

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

/* A symbol that the host program may bind to. Everything else is hidden, and shim.map repeats it. */
#define LIFT_EXPORT __attribute__((visibility("default")))

#define LIFT_COLD __attribute__((cold, noinline))

#endif
