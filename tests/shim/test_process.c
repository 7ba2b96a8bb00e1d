/* Forks, execs, daemons, and what else there may be of a process. */
#include "tests/shim/victim_row.h"

VICTIM(fork_beside_allocating_threads, .victim = "fork_storm")
VICTIM(fork_while_blocks_come_back, .victim = "fork_owner")
VICTIM(threads_fork_together, .victim = "fork_threads")
VICTIM(five_generations, .victim = "fork_nested")
VICTIM(fork_without_handlers, .victim = "fork_raw")
VICTIM(spawn_system_popen, .victim = "spawn_kinds")
VICTIM(exec_chain, .victim = "exec_chain")
VICTIM(daemons, .victim = "daemonize")
VICTIM(nothing_in_the_background, .victim = "quiet_process")
VICTIM(unshare_late_in_life, .victim = "unshare_late")

/* In a chroot the kernel refuses the one, and the tool the other. */
VICTIM(user_namespace, .tool = "unshare", .args = {"-Ur", "@plain_work"},
	.cannot = "Operation not permitted")
VICTIM(user_namespace_id, .tool = "unshare", .args = {"-Ur", "id", "-u"}, .as_plain = true)
VICTIM(pid_namespace, .tool = "unshare", .args = {"-mpf", "--mount-proc", "@plain_work"},
	.cannot = "root filesystem propagation")
VICTIM(one_cpu, .tool = "taskset", .args = {"-c", "0", "@plain_work"})
VICTIM(no_address_randomization, .tool = "setarch", .args = {"-R", "@plain_work"})
VICTIM(legacy_address_layout, .tool = "setarch", .args = {"-L", "@plain_work"})
