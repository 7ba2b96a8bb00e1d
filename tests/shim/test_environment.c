/* What users put into the environment: garbage, nothing, other people's variables, and sense. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "tests/shim/victim_row.h"

VICTIM(environment_moves, .victim = "env_moved")
VICTIM(no_arguments, .victim = "exec_odd", .args = {"bare"})
VICTIM(huge_environment, .victim = "exec_odd", .args = {"huge"})
VICTIM(bare_environment, .victim = "exec_odd", .args = {"only"})
VICTIM(switched_off, .victim = "plain_work", .env = {"NUMALIFT=off"})
VICTIM(switched_off_and_beside, .victim = "beside_preload", .env = {"NUMALIFT=off"},
	.before = "pre_count.so", .after = "pre_mmap.so")
VICTIM(switched_off_contract, .victim = "align_errors", .env = {"NUMALIFT=off"})
VICTIM(not_in_scope, .victim = "plain_work", .env = {"NUMALIFT_SCOPE=some-other-program"})
VICTIM(in_scope, .victim = "plain_work", .env = {"NUMALIFT_SCOPE=plain_work,other*"})
VICTIM(not_inherited, .victim = "spawn_kinds", .env = {"NUMALIFT_INHERIT=no"})
VICTIM(defaults_written_out, .victim = "plain_work",
	.env = {"NUMALIFT_PLACE=slab:local,anon:local,file:interleave"})
VICTIM(all_interleaved, .victim = "plain_work",
	.env = {"NUMALIFT_PLACE=slab:interleave,anon:interleave,file:interleave"})
VICTIM(size_rule, .victim = "plain_work", .env = {"NUMALIFT_PLACE=anon>=32M:interleave"})
VICTIM(bound, .victim = "plain_work", .env = {"NUMALIFT_PLACE=anon:bind=0,slab:preferred=0"})
VICTIM(nodes_that_are_not_there, .victim = "plain_work", .env = {"NUMALIFT_PLACE=anon:bind=5-7"},
	.err_lines = 1)
VICTIM(tiers_and_batch, .victim = "plain_work", .env = {"NUMALIFT_TIERS=0", "NUMALIFT_BATCH=2M"},
	.err_lines = 1)
VICTIM(page_cache, .victim = "plain_work", .env = {"NUMALIFT_PAGECACHE=interleave"}, .err_lines = 1)
VICTIM(allocator_variables, .victim = "plain_work",
	.env = {"MIMALLOC_VERBOSE=0", "MIMALLOC_ARENA_EAGER_COMMIT=x", "MALLOC_CONF=abort:?",
		"MALLOC_ARENA_MAX=-1", "MALLOC_TOP_PAD_=zz", "MIMALLOC_LARGE_OS_PAGES=1"},
	.err_lines = 1)
VICTIM(empty_locale_and_path, .victim = "plain_work", .env = {"LANG=tr_TR.UTF-8", "PATH="})

/* The program runs as ever, and there is at most one line about the variable, which names it. */
static void feed(const char *variable, bool must_tell)
{
	static struct victim_outcome got;
	static char long_value[3001];
	static const char *const values[] = {"?!", " ", "-1", "0x",
		",,;;==::", "99999999999999999999G", "slab:node=-3,anon:", "anon:bind=0-",
		"\xff\xfe%n%s%s", "on off", "1e400", long_value};

	memset(long_value, 'x', sizeof(long_value) - 1);
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		static char pair[3100];
		const char *env[] = {pair, NULL};

		snprintf(pair, sizeof(pair), "%s=%s", variable, values[i]);
		struct victim_order order = {.path = strdup(victim_path("plain_work")),
			.env = env,
			.preload = victim_library()};

		cr_assert(victim_run(&order, &got) == 0);
		cr_assert(got.status == 0 && !strcmp(got.out, "ok\n"),
			"%.60s: status %#x, stdout '%.200s'", pair, (unsigned)got.status, got.out);
		cr_assert(victim_lines(got.err) <= 1, "%.60s: %zu lines on stderr: '%.300s'", pair,
			victim_lines(got.err), got.err);
		cr_assert(!*got.err || strstr(got.err, variable),
			"%.60s: '%.200s' does not name it", pair, got.err);
		cr_assert(i || !must_tell || *got.err, "%.60s: not a word about it", pair);
		free((void *)(size_t)order.path);
	}
}

#define GARBAGE(name, variable, must_tell)                                                         \
	Test(preloaded, garbage_##name)                                                            \
	{                                                                                          \
		feed(variable, must_tell);                                                         \
	}

GARBAGE(switch, "NUMALIFT", true)
GARBAGE(place, "NUMALIFT_PLACE", true)
GARBAGE(tiers, "NUMALIFT_TIERS", true)
GARBAGE(batch, "NUMALIFT_BATCH", true)
GARBAGE(pagecache, "NUMALIFT_PAGECACHE", true)
GARBAGE(scope, "NUMALIFT_SCOPE", false)
GARBAGE(inherit, "NUMALIFT_INHERIT", true)
GARBAGE(log, "NUMALIFT_LOG", true)
GARBAGE(weights, "NUMALIFT_WEIGHTS", true)
GARBAGE(unknown, "NUMALIFT_NO_SUCH_OPTION", false)
