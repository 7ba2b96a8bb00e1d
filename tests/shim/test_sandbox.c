/* Sandboxes, before the start and after; nothing may be called that glibc does not call. */
#include "tests/shim/victim_row.h"

VICTIM(killed_by_unknown_calls, .victim = "sandbox", .args = {"heap"})
VICTIM(killed_large_blocks, .victim = "sandbox", .args = {"large"})
VICTIM(killed_threads, .victim = "sandbox", .args = {"threads"})
VICTIM(killed_forks, .victim = "sandbox", .args = {"fork"})
VICTIM(strict_mode, .victim = "sandbox_strict")
VICTIM(numa_calls_not_permitted, .victim = "denied_calls", .args = {"1"}, .err_lines = 1)
VICTIM(numa_calls_unknown, .victim = "denied_calls", .args = {"38"}, .err_lines = 1)
VICTIM(numa_calls_kill, .victim = "denied_calls", .args = {"kill"})
VICTIM(empty_root, .victim = "drop_rights", .args = {"root"})
VICTIM(other_user, .victim = "drop_rights", .args = {"user"})
VICTIM(landlock, .victim = "drop_rights", .args = {"files"})
VICTIM(no_dumps, .victim = "drop_rights", .args = {"dumps"})
VICTIM(no_new_code, .victim = "drop_rights", .args = {"mdwe"})
VICTIM(no_proc_no_sys, .victim = "no_proc", .err_lines = 1)
VICTIM(ordinary_user, .victim = "plain_work", .user = 65534)
