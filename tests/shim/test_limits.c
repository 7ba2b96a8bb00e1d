/* Under tight limits the outcome is that of glibc. */
#include "tests/shim/victim_row.h"

#define MIB (1024ULL * 1024)

#define SPACE_ROW(name, what, mib)                                                                 \
	VICTIM(name##_##mib, .victim = "fit_limit", .args = {#mib}, .limit = {{what, mib * MIB}})

SPACE_ROW(address_space, RLIMIT_AS, 32)
SPACE_ROW(address_space, RLIMIT_AS, 64)
SPACE_ROW(address_space, RLIMIT_AS, 128)
SPACE_ROW(address_space, RLIMIT_AS, 512)
SPACE_ROW(data, RLIMIT_DATA, 32)
SPACE_ROW(data, RLIMIT_DATA, 64)
SPACE_ROW(data, RLIMIT_DATA, 128)
SPACE_ROW(data, RLIMIT_DATA, 512)

VICTIM(address_space_set_later_64, .victim = "fit_limit", .args = {"64", "self"})
VICTIM(address_space_set_later_256, .victim = "fit_limit", .args = {"256", "self"})
VICTIM(stacks_of_64k, .victim = "small_stacks", .args = {"64"})
VICTIM(stacks_of_16k, .victim = "small_stacks", .args = {"16"})
VICTIM(stack_limit_64k, .victim = "small_stacks", .args = {"32"}, .limit = {{RLIMIT_STACK, 65536}})
VICTIM(all_memory_locked, .victim = "locked_memory")
VICTIM(locked_under_a_limit, .victim = "locked_memory", .args = {"limit"})
VICTIM(mappings_used_up, .victim = "map_limit")
VICTIM(no_new_processes, .victim = "million", .limit = {{RLIMIT_NPROC, 1}}, .user = 65534)
VICTIM(no_locked_memory, .victim = "plain_work", .limit = {{RLIMIT_MEMLOCK, 4096}})
