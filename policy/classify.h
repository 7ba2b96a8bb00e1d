/*
 * What memory is for: facts about a request in, class out. Pure; safe anywhere.
 */
#ifndef LIFT_POLICY_CLASSIFY_H
#define LIFT_POLICY_CLASSIFY_H

#include <stdint.h>

#include "policy/types.h"

/* How memory was asked for. */
enum lift_origin {
	LIFT_ORIGIN_HEAP,              /* malloc family */
	LIFT_ORIGIN_MMAP_ANON_PRIVATE, /* MAP_HUGETLB too */
	LIFT_ORIGIN_MMAP_ANON_SHARED,
	LIFT_ORIGIN_SYSV_SHM,          /* SHM_HUGETLB too */
	LIFT_ORIGIN_MMAP_TMPFS_SHARED, /* memfd_create, shm_open, any file on tmpfs */
	LIFT_ORIGIN_MMAP_HUGETLB_FILE, /* a file on hugetlbfs, memfd with MFD_HUGETLB */
	LIFT_ORIGIN_MMAP_FILE_SHARED,
	LIFT_ORIGIN_MMAP_FILE_PRIVATE,
	LIFT_ORIGIN_MAX
};

struct lift_request {
	enum lift_origin origin;
	uint64_t bytes;
};

/*
 * From this size on a malloc is "large": memory of its own rather than a place among others. The
 * huge page is the limit because below it no block can have a placement that its neighbours lack.
 */
#define LIFT_LARGE_BYTES LIFT_HUGE_BYTES

/*
 *   malloc family                        slab below LIFT_LARGE_BYTES, anon from there on
 *   private or shared anonymous, SysV    anon
 *   any file, tmpfs and hugetlbfs too    file
 *
 * Shared memory is told apart as in "Configurable fair allocation zone policy" (2013): the kernel
 * backs all of it by shmem, but SysV and shared anonymous memory is used like private memory by a
 * few processes, and tmpfs like a file. An origin outside the enum is anon, the class that
 * changes least.
 */
enum lift_class lift_classify(const struct lift_request *req);

#endif
