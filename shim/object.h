// SPDX-License-Identifier: MIT
/*
 * Which loaded object an address lies in, by the program headers: dladdr(3) would search its
 * symbols for a name that nobody wants. Takes the loader's lock; not for signal handlers.
 */
#ifndef NUMALIFT_SHIM_OBJECT_H
#define NUMALIFT_SHIM_OBJECT_H

#include <stdbool.h>
#include <stdint.h>

#include "policy/types.h"

/* From the first to the last loaded byte of the object. False when there is none. */
bool lift_object_range(uintptr_t addr, struct lift_range *ret);

/* Are both addresses in one object? */
bool lift_object_same(uintptr_t a, uintptr_t b);

#endif
