// SPDX-License-Identifier: MIT
/*
 * Memory whose pages are known: a mapping that borders on nothing, put on a node page by page, with
 * contents that can be checked. What the kernel has made of it is read from /proc, by another way
 * than the functions that are tested.
 */
#ifndef NUMALIFT_TESTS_MEMSYS_AREA_H
#define NUMALIFT_TESTS_MEMSYS_AREA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PAGE ((size_t)4096)
#define HUGE_PAGES ((size_t)512)

struct area {
	char *base; /* aligned to 2 MiB */
	size_t pages;
	char *map;
	size_t map_len;
};

enum area_kind { AREA_SMALL, AREA_HUGE, AREA_SHARED };

/* Nothing of it is touched. */
void area_make(struct area *a, size_t pages, enum area_kind kind);
void area_drop(struct area *a);

char *area_page(const struct area *a, size_t page);
/* Writes pages [from, to) from a thread policy that prefers the node; -1: from what there is. */
void area_write(const struct area *a, size_t from, size_t to, int node);
/* Whether they still hold what area_write() wrote. */
bool area_intact(const struct area *a, size_t from, size_t to);

/* Of the mappings that it consists of now. Pages of 4 KiB on a node, whatever they are mapped by.
 */
size_t area_on(const struct area *a, int node);
size_t area_mappings(const struct area *a);
size_t area_huge_kb(const struct area *a);
/* True when all of it has the policy that is written like this in numa_maps. */
bool area_policy_is(const struct area *a, const char *policy);
/* Pages that mincore calls present. */
size_t area_present(const struct area *a);

_Noreturn void die(const char *what);

#endif
