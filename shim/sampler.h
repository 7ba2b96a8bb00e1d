// SPDX-License-Identifier: MIT
/*
 * Samplers: what finds out which memory of this process is used. Each is one table of functions
 * over the process as a whole, so the state is the file's own and there are no handles.
 *
 *   rwp     userfaultfd RWP_ASYNC + PAGEMAP_SCAN    every page, reads and writes
 *   wp      userfaultfd WP_ASYNC + PAGEMAP_SCAN     pages that were written, 4 KiB ones only
 *   dirty   soft-dirty bits                         the same, where WP_ASYNC is missing
 *   refs    referenced bits, summed up per mapping  reads and writes, by regions of 2 to 32 MiB
 *   wp+refs both                                    writes by page, reads by region
 *   damon   the kernel's monitor of accesses        reads and writes, by regions of its own
 *   kernel  NUMA balancing                          counters only
 *
 * A round is: watch() what is of interest, arm() it, let the program run, collect(), and again.
 *
 * Threads: all functions but forked() are called by one thread, the worker, which is the only one
 * that knows which sampler is in use. Nothing here is for signal handlers. errno is left alone and
 * nothing is allocated but from bootalloc; memory that a sampler takes it keeps for its next use.
 *
 * Ranges: whole pages, ascending, without overlap. They may contain holes and mappings that cannot
 * be sampled: those are passed over. What the program unmaps or maps anew meanwhile is never an
 * error; it is seen again from the next watch() on.
 *
 * Descriptors: O_CLOEXEC, above those that a program is likely to count on. A program that closes
 * what it does not know closes them too. Before every use they are compared with what was opened;
 * one that is gone, or is somebody else's by now, is never used again but opened anew.
 *
 * Fork: the child has inherited descriptors that act on its parent. forked() has to run in it,
 * before anything else here. The parent and its sampling go on undisturbed.
 */
#ifndef NUMALIFT_SHIM_SAMPLER_H
#define NUMALIFT_SHIM_SAMPLER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "policy/types.h"

/*
 * Samples are of pages: accessed_bytes is all of the range or 0, but where only a sum is known of
 * it. Without it all are sums.
 */
#define LIFT_SAMPLER_PAGES (1u << 0)
/* Reads are seen. Without it, memory that is not reported may be in use all the same. */
#define LIFT_SAMPLER_READS (1u << 1)
/* arm() does more than it was asked for: it affects the whole process. */
#define LIFT_SAMPLER_WHOLE (1u << 2)
/* Pages that are mapped huge are left alone and not reported. */
#define LIFT_SAMPLER_SMALL (1u << 3)
/* Only counters (lift_sampler_kernel_counts()): there are no samples. */
#define LIFT_SAMPLER_COUNTS (1u << 4)
/*
 * The program itself may depend on the bits that are cleared (garbage collectors do on soft-dirty
 * bits, and lose objects): to be used only when asked for by name. Some kernels also set them when
 * they move a page: what was moved has to be armed again before it is believed. damon: there is one
 * for the whole machine.
 */
#define LIFT_SAMPLER_ASKED (1u << 5)
/* The first access to each page that is armed is a fault of the thread. */
#define LIFT_SAMPLER_FAULTS (1u << 6)

struct lift_sample {
	struct lift_range range;
	uint64_t accessed_bytes; /* used since the range was last armed */
	uint64_t resident_bytes;
	bool huge; /* mapped by huge pages: each is one unit, used as a whole or not at all */
};

/* Called from within collect(), ascending. It must not call the sampler. */
typedef void lift_sample_fn(void *arg, const struct lift_sample *sample);

/* For collect(): report what is resident and was not used, too. Only with LIFT_SAMPLER_READS. */
#define LIFT_COLLECT_IDLE (1u << 0)

struct lift_sampler {
	const char *name;
	unsigned traits; /* LIFT_SAMPLER_* */

	/*
	 * Would it work here? Tries it on pages of its own and leaves nothing behind. 0, or the
	 * error of what failed: -ENOSYS, -EPERM, -EINVAL (the kernel has not got it), -EACCES
	 * (/proc files of a process that changed its user), -ENOENT (no /proc), -EMFILE, -ENOMEM.
	 */
	int (*probe)(void);

	/*
	 * Opens what it needs. To be called before the program gives up privileges: a process that
	 * changed its user cannot open some of the files any more. 0 (also when it is open), or as
	 * probe().
	 */
	int (*open)(void);

	/*
	 * Makes ranges ready for arm(): once per round is right, over whole mappings, since a range
	 * that ends within one splits it. Bytes of the ranges that will be sampled, holes between
	 * mappings included, or -errno.
	 * What the program has registered with a userfaultfd of its own is left alone, and stays
	 * out of arm() and collect() until a later watch() finds it free.
	 *
	 * refs: divides mappings into regions, within the registry's budget (apart.h).
	 *
	 * rwp and wp: what is watched does not merge with what is not. mremap() over such a bound
	 * fails (EFAULT), and so does the program's own UFFDIO_REGISTER of it (EBUSY): disarm() the
	 * range and let the program try again.
	 */
	int64_t (*watch)(const struct lift_range *ranges, size_t nr);

	/*
	 * Forgets what was used in these ranges, which lie in ranges watched. Not watched since
	 * they were mapped: done on the way. Ranges should not cut huge pages: they would be split.
	 * 0, or -errno when nothing could be armed at all.
	 *
	 * rwp and wp: small pages that are armed and not used are not made huge ones meanwhile
	 * (khugepaged, MADV_COLLAPSE); memory that is not there yet may become huge as ever. One
	 * call of the kernel, with a flush of the TLBs, for each range: many single pages cost more
	 * than what lies around them.
	 * refs and wp+refs: all ranges of a pass in one call, please. It is one for the whole
	 * process, during which it cannot map memory, and takes as long as the process is large;
	 * but regions that are less than an eighth of what is resident are armed by themselves.
	 */
	int (*arm)(const struct lift_range *ranges, size_t nr);

	/*
	 * Reports what was used since arm(), as far as it is resident. Does not re-arm: what is not
	 * armed again is reported again. PAGES: ranges that touch and agree come as one, never
	 * reaching outside the ranges asked for. Else: one sample for each region, or mapping where
	 * there are no regions, that overlaps them, with the sums and the bounds of all of it.
	 * refs and wp+refs: each call reads the sums of all mappings, so here, too, all ranges of a
	 * pass in one. The first one after arm() moves the borders of regions. wp+refs does not
	 * report what it cannot know. 0 or -errno; what was reported before an
	 * error is valid. -ESTALE: the program closed the descriptor, and with it went what was
	 * noted: watch() and arm() again.
	 */
	int (*collect)(const struct lift_range *ranges, size_t nr, unsigned how, lift_sample_fn *fn,
		void *arg);

	/*
	 * Armed pages of these ranges that were not used are let go: they cost the program no fault
	 * any more. They lie in ranges watched, and are reported as used until they are armed
	 * again. NULL: arming costs the program nothing.
	 */
	void (*release)(const struct lift_range *ranges, size_t nr);

	/*
	 * Ends the sampling of these ranges, e.g. because the program is about to register them
	 * itself or to mremap() over their bounds: refs makes one mapping of them again. Any thread
	 * may call this one, without the registry's lock, but not at the same time as open() or
	 * close().
	 */
	void (*disarm)(const struct lift_range *ranges, size_t nr);

	/*
	 * Ends it for the process and closes what was opened. Harmless when it is not open. refs:
	 * memory that grew while it was divided, and all in a child of fork, may stay several
	 * mappings, though none has a policy.
	 */
	void (*close)(void);

	/*
	 * First accesses that were a fault, in the samples collected since the last call. NULL:
	 * all that were reported were one.
	 */
	uint64_t (*faults)(void);

	/* In the child of a fork: closes what is the parent's. Async-signal-safe. */
	void (*forked)(void);
};

extern const struct lift_sampler lift_sampler_rwp;
extern const struct lift_sampler lift_sampler_wp;
extern const struct lift_sampler lift_sampler_wp_refs;
extern const struct lift_sampler lift_sampler_dirty;
extern const struct lift_sampler lift_sampler_refs;
extern const struct lift_sampler lift_sampler_damon;
extern const struct lift_sampler lift_sampler_kernel;

/* By name; NULL: there is none. */
const struct lift_sampler *lift_sampler_find(const char *name);

/*
 * What the kernel counted: for the whole machine since it started, and, in self_..., for the
 * threads that this process has now (the first 256 of them; those that ended took theirs along).
 */
struct lift_kernel_counts {
	uint64_t numa_pte_updates;
	uint64_t numa_hint_faults;
	uint64_t numa_hint_faults_local;
	uint64_t numa_pages_migrated;
	uint64_t pgpromote_success;
	uint64_t pgpromote_candidate;
	uint64_t pgdemote; /* by kswapd, direct reclaim, khugepaged and request together */
	uint64_t self_pages_migrated;
	uint64_t self_faults;
};

/* What the kernel does not have is 0. -errno when /proc/vmstat cannot be read. */
int lift_sampler_kernel_counts(struct lift_kernel_counts *ret);

#endif
