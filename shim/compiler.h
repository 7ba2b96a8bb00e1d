// SPDX-License-Identifier: MIT
/* Compiler words used all over the shim. */
#ifndef NUMALIFT_SHIM_COMPILER_H
#define NUMALIFT_SHIM_COMPILER_H

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

/* A symbol that the host program may bind to. Everything else is hidden, and shim.map repeats it.
 */
#define LIFT_EXPORT __attribute__((visibility("default")))

/*
 * Do a name as the whole process sees it and a definition of ours lead to the same function? clang
 * knows that two names are two functions and would answer by itself, hence the barrier.
 */
#define LIFT_SAME_FUNCTION(public_name, own_name)                                                  \
	({                                                                                         \
		void *own_ = (void *)(unsigned long)&own_name;                                     \
		__asm__("" : "+r"(own_));                                                          \
		(void *)(unsigned long)&public_name == own_;                                       \
	})

/*
 * For data that is written around a fork. It lies together, as each page of it is copied once in
 * the parent and once more in the child. The linker gathers a section of a name of its own.
 */
#define LIFT_FORKED __attribute__((section("lift_forked")))

#define LIFT_COLD __attribute__((cold, noinline))

#endif
