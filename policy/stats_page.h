/*
 * The page: a file of fixed size in which a process leaves its figures (policy/stats.h) for others
 * to read at any time. It is written and read by system calls and never mapped, so that nobody who
 * cuts it off can do harm.
 *
 *     head      who, and where everything is; ends with sequence and checksum
 *     values    one u64 for each figure
 *     nodes     max_nodes of them
 *     sampler   text, padded with zeros, as are the next
 *     reason
 *     names     one text for each figure, in the order of the values
 *
 * The sequence is odd while the page is being written. Readers take a page only if it was even and
 * the same before and after, and the checksum fits. All numbers are the machine's own way round.
 *
 * Readers must not trust a page: everything here is checked, any bytes are allowed.
 */
#ifndef LIFT_POLICY_STATS_PAGE_H
#define LIFT_POLICY_STATS_PAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "policy/stats.h"

#define LIFT_STATS_VERSION 1
#define LIFT_STATS_PAGE_BYTES 8192
#define LIFT_STATS_PAGE_MAX 65536 /* a later version's, still taken */

/* Whose page it is. */
struct lift_stats_owner {
	uint32_t pid;
	uint32_t uid;
	uint64_t start_time; /* field 22 of /proc/PID/stat; 0: not known */
	uint64_t pid_ns;     /* inode of the namespace that the pid is of; 0: not known */
	char program[LIFT_STATS_PROGRAM];
};

enum lift_page_error {
	LIFT_PAGE_OK,
	LIFT_PAGE_EMPTY,    /* nothing written yet */
	LIFT_PAGE_FOREIGN,  /* no page at all */
	LIFT_PAGE_VERSION,  /* one of another version */
	LIFT_PAGE_SIZE,     /* longer or shorter than it says */
	LIFT_PAGE_BUSY,     /* being written right now */
	LIFT_PAGE_LAYOUT,   /* a part of it is outside of it */
	LIFT_PAGE_CHECKSUM, /* damaged, or read while it was being written */
	LIFT_PAGE_ERROR_MAX
};

struct lift_stats_view {
	uint32_t version;
	uint64_t total_bytes; /* as it says */
	uint64_t sequence;
	struct lift_stats_owner owner;
	struct lift_stats stats;
	bool has[LIFT_STATS_NR]; /* the writer knows this figure */
};

/* A page of @owner with nothing but zeros for figures; its sequence is 0. */
void lift_stats_page_init(
	uint8_t page[LIFT_STATS_PAGE_BYTES], const struct lift_stats_owner *owner);

/* Puts the figures in, and the checksum. Leaves the sequence alone. */
void lift_stats_page_fill(uint8_t page[LIFT_STATS_PAGE_BYTES], const struct lift_stats *s);

/* Where in the file the sequence is, and the same in memory. */
size_t lift_stats_page_sequence_at(void);
void lift_stats_page_set_sequence(uint8_t page[LIFT_STATS_PAGE_BYTES], uint64_t sequence);

/*
 * Takes a page of @n bytes apart. *ret is filled as far as it was understood: version from VERSION
 * on, total_bytes and owner from SIZE on, everything if OK. Texts in it are terminated, but may
 * contain anything else.
 */
enum lift_page_error lift_stats_page_read(
	const uint8_t *page, size_t n, struct lift_stats_view *ret);

/* As far as the owner, whatever the version: its place never changes. */
enum lift_page_error lift_stats_page_owner(
	const uint8_t *page, size_t n, struct lift_stats_owner *ret);

/*
 * State and start time out of /proc/PID/stat. The program's name in there may contain anything.
 * 0 or -EINVAL.
 */
int lift_stats_start_time(const char *buf, size_t n, char *ret_state, uint64_t *ret_start);

#endif
