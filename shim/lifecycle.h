// SPDX-License-Identifier: MIT
/*
 * How far the library is awake, and what it was told to be. Calls arrive before any constructor has
 * run, so the first one to come boots it (lift_boot), with raw system calls and nothing of libc
 * that needs to be initialised. The constructor later does the rest: messages, fork handlers, the
 * environment of children. There is no destructor: the heap lives as long as the process.
 */
#ifndef NUMALIFT_SHIM_LIFECYCLE_H
#define NUMALIFT_SHIM_LIFECYCLE_H

#include <stdbool.h>
#include <stddef.h>

#include "policy/config.h"

enum lift_mode {
	LIFT_MODE_BOOT,   /* nobody has called yet, or the first caller is booting right now */
	LIFT_MODE_ACTIVE, /* the heap is ours, memory is placed */
	/*
	 * Every call goes to the next library in line, as if we were not there: switched off, out
	 * of scope, secure execution, a sanitizer that needs the allocator for itself, or another
	 * library that stands between us and mimalloc.
	 */
	LIFT_MODE_ASIDE,
};

extern __attribute__((visibility("hidden"))) int lift_mode_now; /* enum lift_mode, set once */

/*
 * Async-signal-safe and idempotent; errno is kept. Afterwards the mode is final, except while ld.so
 * relocates the program: then nothing happens, and the mode stays LIFT_MODE_BOOT.
 */
void lift_boot(void);

static inline int lift_mode(void)
{
	int m = __atomic_load_n(&lift_mode_now, __ATOMIC_ACQUIRE);

	if (__builtin_expect(m == LIFT_MODE_BOOT, 0)) {
		lift_boot();
		m = __atomic_load_n(&lift_mode_now, __ATOMIC_ACQUIRE);
	}
	return m;
}

static inline bool lift_aside(void)
{
	return __builtin_expect(lift_mode() == LIFT_MODE_ASIDE, 0);
}

/* Valid after boot; never changes. */
const struct lift_config *lift_config_now(void);

/* True when the user set the variable `name` to something valid. Valid after boot. */
bool lift_config_given(const char *name);

#endif
