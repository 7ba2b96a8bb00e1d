/* Blocks that come from elsewhere, and other libraries that replace the same calls. */
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
