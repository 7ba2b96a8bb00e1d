// SPDX-License-Identifier: MIT
/*
 * Finds the statistics pages of running programs and reads them. A page is another process's doing
 * and may be anything: whoever owns it, whatever is in it, nothing here waits for it, writes to it
 * or believes it.
 */
#ifndef NUMALIFT_SHIM_CLI_STATS_READER_H
#define NUMALIFT_SHIM_CLI_STATS_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "policy/stats_page.h"

enum lift_stats_life {
	LIFT_STATS_RUNNING,
	LIFT_STATS_ENDED,
	LIFT_STATS_ELSEWHERE /* its pid is of another namespace: nobody knows */
};

struct lift_stats_page {
	char *path;
	char *problem; /* why it cannot be read, one line without the path; NULL: it was */
	uint32_t uid;  /* owner of the file */
	uint32_t pid;  /* by the file's name, else by what is in it; 0: neither says */
	enum lift_stats_life life;
	double age; /* seconds since it was last written */
	struct lift_stats_view view;
};

struct lift_stats_pages {
	uint32_t asked;
	size_t nr;
	size_t room;
	struct lift_stats_page *page;
};

/* Reads @path anew into *ret, whatever was in it; true if it could be read. */
bool lift_stats_page_load(struct lift_stats_page *ret, const char *path);
void lift_stats_page_fini(struct lift_stats_page *p);

/*
 * All pages of this user (root: of everybody) in the folders where they are by default and where
 * NUMALIFT_STATS says, by pid. Others' are passed over, but for @asked, a pid (0: none), so that it
 * can be said why that is refused.
 */
void lift_stats_pages_find(struct lift_stats_pages *ret, uint32_t asked);
void lift_stats_pages_fini(struct lift_stats_pages *p);

#endif
