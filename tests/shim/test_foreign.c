/* Blocks that come from elsewhere, and other libraries that replace the same calls. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/shim/victim_row.h"

VICTIM(plugin_with_libc_heap, .victim = "foreign_deepbind", .args = {"take"})
VICTIM(plugin_frees_our_blocks, .victim = "foreign_deepbind", .args = {"give"},
	.hard = "libc's own free sees a block it did not make")
VICTIM(plugin_with_own_libc, .victim = "foreign_dlmopen")
VICTIM(program_linked_with_jemalloc, .victim = "foreign_jemalloc")
VICTIM(program_linked_with_tcmalloc, .victim = "foreign_tcmalloc")
VICTIM(program_with_own_malloc, .victim = "own_malloc")

VICTIM(program_with_own_mmap, .victim = "own_mmap", .err_lines = 1)
VICTIM(blocks_by_libc_names, .victim = "foreign_libc")

VICTIM(counter_before, .victim = "beside_preload", .args = {"count", "50000"},
	.before = "pre_count.so")
VICTIM(counter_after, .victim = "beside_preload", .args = {"count"}, .after = "pre_count.so")
VICTIM(mmap_watcher_before, .victim = "beside_preload", .args = {"mmap", "500"},
	.before = "pre_mmap.so")
VICTIM(mmap_watcher_after, .victim = "beside_preload", .args = {"mmap"}, .after = "pre_mmap.so")
VICTIM(both_before, .victim = "beside_preload", .before = "pre_count.so", .after = "pre_mmap.so")
VICTIM(watcher_and_early_library, .victim = "early_start", .before = "pre_mmap.so",
	.after = "pre_count.so")
VICTIM(counter_and_alignment, .victim = "align_asked", .before = "pre_count.so")
VICTIM(jemalloc_preloaded_after, .victim = "plain_work", .after = "libjemalloc.so.2")
VICTIM(tcmalloc_preloaded_after, .victim = "plain_work", .after = "libtcmalloc_minimal.so.4")
VICTIM(mimalloc_preloaded_after, .victim = "libc_blocks", .after = "libmimalloc.so.2")
VICTIM(jemalloc_preloaded_before, .victim = "plain_work", .before = "libjemalloc.so.2",
	.err_lines = 1)
VICTIM(tcmalloc_preloaded_before, .victim = "plain_work", .before = "libtcmalloc_minimal.so.4",
	.err_lines = 1)
VICTIM(mimalloc_preloaded_before, .victim = "plain_work", .before = "libmimalloc.so.2",
	.err_lines = 1)
VICTIM(libnuma_preloaded_after, .victim = "plain_work", .after = "libnuma.so.1")
VICTIM(libnuma_preloaded_before, .victim = "plain_work", .before = "libnuma.so.1")
VICTIM(malloc_debug_after, .victim = "plain_work", .after = "libc_malloc_debug.so.0",
	.env = {"MALLOC_CHECK_=3"})
VICTIM(malloc_debug_before, .victim = "plain_work", .before = "libc_malloc_debug.so.0",
	.env = {"MALLOC_CHECK_=3"}, .err_lines = 1)

/* Installed twice and preloaded from both places: two copies of the library in one process. */
Test(preloaded, two_copies)
{
	static char path[] = "/tmp/victim-copy-XXXXXX";
	static char command[9000];
	int fd = mkstemp(path);

	cr_assert(fd >= 0);
	close(fd);
	snprintf(command, sizeof(command), "cp '%s' '%s'", victim_library(), path);
	cr_assert(system(command) == 0, "cannot copy the library");
	struct victim_outcome *got = calloc(1, sizeof(*got));
	const char *const victims[] = {"plain_work", "align_asked", "beside_preload", "fork_storm"};

	cr_assert(got);
	snprintf(command, sizeof(command), "%s:%s", victim_library(), path);
	for (size_t i = 0; i < sizeof(victims) / sizeof(victims[0]); i++) {
		struct victim_order order = {
			.path = strdup(victim_path(victims[i])), .preload = command};

		if (victim_run(&order, got) || got->status || strcmp(got->out, "ok\n") != 0 ||
			victim_lines(got->err) > 1) {
			unlink(path);
			cr_assert(0, "%s: status %#x, stdout '%.200s', stderr '%.200s'", victims[i],
				(unsigned)got->status, got->out, got->err);
		}
		free((void *)(size_t)order.path);
	}
	unlink(path);
	free(got);
}

/* Loaded by dlopen it would replace an allocator in use: it has to refuse, or do no harm. */
Test(preloaded, loaded_late)
{
	struct victim_row row = {.victim = "late_load", .args = {victim_library()}, .err_lines = 1};

	victim_row_check(&row, false);
	victim_row_check(&row, true);
}
