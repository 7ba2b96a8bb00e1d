// SPDX-License-Identifier: MIT
/*
 * One-line messages on stderr: no allocation, no stdio, one write(2) each, errno untouched. Lines
 * that are said before the process has reached its constructors are kept and written then, so that
 * a program that never gets there (or a traced loader) sees nothing of us.
 *
 * Thread-safe. Async-signal-safe except that two lines may interleave in the early buffer.
 */
#ifndef NUMALIFT_SHIM_LOG_H
#define NUMALIFT_SHIM_LOG_H

#include <stdbool.h>

#include "policy/config.h" /* enum lift_log_level */

void lift_log_level_set(int level);
bool lift_log_enabled(int level);

/* Format: %s (NULL is "(null)"), %d, %u, %lu, %lx, %zu, %p, %%; nothing else. Cut at 500 bytes. */
__attribute__((format(printf, 2, 3))) void lift_log(int level, const char *fmt, ...);

/*
 * The calling thread has a table of descriptors of its own: what it says goes to the stderr of the
 * program's main thread all the same.
 */
void lift_log_elsewhere(void);

/* From the constructor: writes what was kept, and from now on writes at once. */
void lift_log_open(void);

/*
 * Warnings that answer the question "what was given up, and what brings it back" come from here:
 * only the first of a process is written (the design's promise of one line at most), the others go
 * to level info.
 */
__attribute__((format(printf, 1, 2))) void lift_log_given_up(const char *fmt, ...);

#endif
