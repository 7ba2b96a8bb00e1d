/*
 * Parsers for what the kernel says in /proc and /sys: a buffer with a length in, plain data out.
 * All are total: any bytes are allowed, nothing past the length is read, nothing needs a
 * terminator, no locale and no errno is involved. Pure; safe anywhere.
 *
 * Unless something else is said each takes its whole input (blanks and a newline at the end are
 * tolerated), returns 0, -EINVAL for what is not of the form or -ERANGE for a number that does
 * not fit, and leaves *ret untouched on failure.
 */
#ifndef LIFT_POLICY_PROCPARSE_H
#define LIFT_POLICY_PROCPARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "policy/types.h"

/* A piece of the caller's buffer; not terminated. */
struct lift_text {
	const char *s;
	size_t len;
};

/*
 * Takes the next line off *rest, without its newline. False when nothing is left. A last line
 * without a newline counts: whoever reads a file in pieces must keep it back himself.
 */
bool lift_parse_line(struct lift_text *rest, struct lift_text *ret_line);

/* True when the @len bytes at @s are exactly the string @word. */
bool lift_text_is(struct lift_text t, const char *word);

/* One decimal number, as in a sysfs file. */
int lift_parse_u64(const char *buf, size_t len, uint64_t *ret);

/* A node list: "0-3,7", or nothing (no nodes: sysfs says so with an empty line). */
int lift_parse_nodelist(const char *buf, size_t len, struct lift_nodeset *ret);

/* A node mask: comma separated groups of up to eight hexadecimal digits, highest first. */
int lift_parse_nodemask(const char *buf, size_t len, struct lift_nodeset *ret);

struct lift_node_meminfo {
	uint64_t total_bytes;
	uint64_t free_bytes;
};

/*
 * /sys/devices/system/node/nodeN/meminfo. Lines it does not know are skipped; -EINVAL when MemTotal
 * or MemFree is missing or malformed.
 */
int lift_parse_node_meminfo(const char *buf, size_t len, struct lift_node_meminfo *ret);

/*
 * nodeN/distance: the distances to all online nodes, in the order of their ids. *ret_nr is how
 * many there are. -ERANGE: more than @max, or one above 255.
 */
int lift_parse_distances(const char *buf, size_t len, uint8_t *ret, unsigned max, unsigned *ret_nr);

/* /proc/PID/status, as far as it is of use. */
struct lift_proc_status {
	bool has_mems_allowed;
	bool has_seccomp;
	bool has_threads;
	bool has_rss;
	struct lift_nodeset mems_allowed; /* from Mems_allowed_list, else from Mems_allowed */
	unsigned seccomp;                 /* 0 off, 1 strict, 2 filter */
	unsigned threads;
	uint64_t rss_bytes; /* VmRSS */
};

/* Lines that are missing or malformed leave their has_ field false. Never fails. */
void lift_parse_status(const char *buf, size_t len, struct lift_proc_status *ret);

/*
 * /proc/PID/statm: the second number, resident pages, and the sixth, data and stack.
 * *ret_data_pages may be NULL: then what follows the second one is not looked at.
 */
int lift_parse_statm(
	const char *buf, size_t len, uint64_t *ret_resident_pages, uint64_t *ret_data_pages);

/* /proc/PID/task/TID/stat, as far as it is of use. */
struct lift_task_stat {
	char state;         /* as in ps(1) */
	unsigned threads;   /* of the process */
	uint64_t cpu_ticks; /* used, user and system */
	uint64_t faults;    /* taken, without those that had to wait for a disk */
	unsigned cpu;       /* that it ran on last */
};

/* The name in it may have blanks, parentheses and newlines. More fields than are known are fine. */
int lift_parse_task_stat(const char *buf, size_t len, struct lift_task_stat *ret);

/* nodeN/cpulist, as a node list: sets a bit for each CPU below @nr_bits, leaves others as they are.
 */
int lift_parse_cpulist(const char *buf, size_t len, uint64_t *bits, unsigned nr_bits);

#define LIFT_MAPS_READ (1u << 0)
#define LIFT_MAPS_WRITE (1u << 1)
#define LIFT_MAPS_EXEC (1u << 2)
#define LIFT_MAPS_SHARED (1u << 3)

struct lift_maps_line {
	struct lift_range range;
	unsigned perms;  /* LIFT_MAPS_* */
	uint64_t offset; /* bytes */
	unsigned dev_major;
	unsigned dev_minor;
	uint64_t inode;        /* 0: no file */
	struct lift_text path; /* as written, in the caller's buffer; may be empty */
};

/* One line of /proc/PID/maps. -EINVAL also for an empty or reversed range. */
int lift_parse_maps_line(const char *buf, size_t len, struct lift_maps_line *ret);

/* One mapping of /proc/PID/smaps, as far as it is of use. */
struct lift_smaps {
	struct lift_range range;
	unsigned perms;             /* LIFT_MAPS_* */
	uint64_t rss_bytes;         /* resident */
	uint64_t referenced_bytes;  /* of these: used since the bits were cleared */
	uint64_t huge_bytes;        /* of these: mapped by huge pages, whatever they are of */
	uint64_t kernel_page_bytes; /* above the base page: hugetlbfs */
	bool locked;                /* mlock() */
	bool special;               /* of a device, or without struct pages: nothing to move */
	bool userfault;             /* registered with a userfaultfd, in any mode */
};

enum lift_smaps_line {
	LIFT_SMAPS_FIRST, /* the line with the range: *vma has been started over */
	LIFT_SMAPS_MORE,  /* a line of the same mapping, known or not */
	LIFT_SMAPS_LAST,  /* VmFlags: the mapping is complete */
};

/*
 * One line of /proc/PID/smaps, added to *vma, which the first line of a mapping starts over.
 * Returns which line it was, or -EINVAL or -ERANGE for a first line or a number that is malformed;
 * *vma is unchanged then. A field that is missing is 0.
 */
int lift_parse_smaps_line(const char *buf, size_t len, struct lift_smaps *vma);

/*
 * The number of the line that begins with the word @name in /proc/vmstat ("name 1") or
 * /proc/PID/sched ("name   :   1"). -ENOENT: there is no such line.
 */
int lift_parse_named_u64(const char *buf, size_t len, const char *name, uint64_t *ret);

struct lift_numa_maps_line {
	uintptr_t start;
	int mode;                  /* LIFT_MPOL_* with flags; -1: not one we know */
	struct lift_nodeset nodes; /* of the policy; empty where it has none */
	struct lift_text policy;   /* as written, in the caller's buffer */
	struct lift_text file;     /* as written (escaped), likewise; empty: none */
	bool heap;
	bool stack;
	bool huge;
	uint64_t anon_pages;
	uint64_t dirty_pages;
	uint64_t mapped_pages;
	uint64_t page_bytes; /* from kernelpagesize_kB; 0: not said */
	unsigned nr_nodes;
	struct lift_node_weight pages[LIFT_TOPO_NODES]; /* N<id>=pages, as written */
};

/*
 * One line of /proc/PID/numa_maps. Fields it does not know are skipped. -ERANGE also for more than
 * LIFT_TOPO_NODES N fields.
 */
int lift_parse_numa_maps_line(const char *buf, size_t len, struct lift_numa_maps_line *ret);

#endif
