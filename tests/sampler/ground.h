// SPDX-License-Identifier: MIT
/*
 * Memory that is used in a way known in advance: mappings of each kind, a pattern of reads, writes
 * and system calls that write into them, and the comparison with what a sampler says. A unit is
 * what can be told apart: a page, a huge page, or a region of several pages.
 */
#ifndef NUMALIFT_TESTS_SAMPLER_GROUND_H
#define NUMALIFT_TESTS_SAMPLER_GROUND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "policy/types.h"
#include "shim/sampler.h"

#define PAGE ((size_t)4096)

enum ground_kind {
	GROUND_SMALL,  /* private anonymous, 4 KiB pages */
	GROUND_HUGE,   /* private anonymous, huge pages where there are some */
	GROUND_SHARED, /* shared anonymous */
	GROUND_MEMFD,
	GROUND_BREAK, /* the heap that brk moves; one at a time */
	GROUND_MAX
};

#define USED_READ 1
#define USED_WRITTEN 2
#define USED_SYSCALL 4

struct ground {
	enum ground_kind kind;
	const char *name;
	char *base; /* aligned to 2 MiB */
	size_t len;
	size_t unit;         /* bytes */
	unsigned char *used; /* per unit: USED_* since the last start */
	unsigned char *told; /* per unit: reported */
	size_t outside;      /* bytes reported that are not in it, or not resident */
	void *map;
	size_t map_len;
};

struct score {
	size_t units;
	size_t used; /* that the sampler should see */
	size_t told;
	size_t right;
};

/* Maps it and writes every page. */
void ground_make(struct ground *g, enum ground_kind kind, size_t len);
void ground_drop(struct ground *g);
struct lift_range ground_range(const struct ground *g);
/* Units of that many bytes from now on. */
void ground_units(struct ground *g, size_t bytes);

/*
 * Regions of that many bytes become mappings of their own, by a policy that is said in two ways;
 * samplers take it for the program's. False: not possible.
 */
bool ground_apart(struct ground *g, size_t bytes);

/* Forgets what was used and told. */
void ground_start(struct ground *g);
void ground_read(struct ground *g, size_t page);
void ground_write(struct ground *g, size_t page);
void ground_call(struct ground *g, size_t page);
/* About a third of all units, one page in each; other ones with another seed. */
void ground_use(struct ground *g, unsigned seed);

/* A lift_sample_fn over one ground: marks what is told; what is outside of it is counted. */
void ground_hear(void *arg, const struct lift_sample *s);

/* Reads count only with LIFT_SAMPLER_READS; huge units do not with LIFT_SAMPLER_SMALL. */
struct score ground_score(const struct ground *g, unsigned traits);
bool score_exact(const struct score *s);

/* Kilobytes in huge pages, of all of it. */
size_t ground_huge_kb(const struct ground *g);
/* Mappings that it consists of. */
size_t ground_mappings(const struct ground *g);

/* Memory with this policy was bound by placement (placed.c). */
extern int placed_mode;

_Noreturn void die(const char *what);

#endif
