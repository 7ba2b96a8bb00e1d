// SPDX-License-Identifier: MIT
/*
 * What the programs of this folder share: asking the kernel where pages are, and staying on a node.
 * None of it knows numalift: the driver (run_guest.py) compares what is printed with what the
 * policy asks for.
 */
#ifndef NUMALIFT_TESTS_NUMA_WHERE_H
#define NUMALIFT_TESTS_NUMA_WHERE_H

#include <sched.h>
#include <stddef.h>

#define WHERE_NODES 64
#define WHERE_PAGE 4096ul
#define WHERE_POLICIES 8

struct where {
	unsigned long on[WHERE_NODES]; /* pages */
	unsigned long absent;          /* pages the kernel knows no node of */
	unsigned long vmas;
	unsigned long huge_kb; /* in huge pages */
	unsigned nr_policies;  /* distinct ones, as numa_maps writes them */
	char policy[WHERE_POLICIES][48];
};

/* Reads a byte of every page in [start, start + len) and adds where it is to *w. Ends the program
 * on failure. */
void where_pages(struct where *w, const void *start, size_t len);

/* Adds what smaps and numa_maps say of [start, start + len). */
void where_maps(struct where *w, const void *start, size_t len);

/* One line: name, NODE=PAGES..., then vmas= huge= policy=, if where_maps() was called. */
void where_print(const char *name, const struct where *w);

/* Both, and the line. */
void where_report(const char *name, const void *start, size_t len);

/* The numa_maps lines within [start, start + len), each after "map NAME". */
void where_print_maps(const char *name, const void *start, size_t len);

/* Writes a byte to every page. p may be NULL or MAP_FAILED: the program ends, saying what for. */
char *where_touch(void *p, size_t len, const char *what);

/* Moves the pages that are there to this node; the program ends if that is refused. */
void where_move(void *start, size_t len, int node);

/* The first CPU of this node. 0, or -1 when it has none. */
int where_cpu(int node, cpu_set_t *ret);

/* The calling thread runs on the first CPU of this node from now on. 0, or -1 when it has none. */
int where_pin(int node);

_Noreturn void where_die(const char *what);

#endif
