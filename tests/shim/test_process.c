/* Forks, execs, daemons, and what else there may be of a process. */
#include "tests/shim/victim_row.h"

VICTIM(fork_beside_allocating_threads, .victim = "fork_storm")
VICTIM(threads_fork_together, .victim = "fork_threads")
VICTIM(five_generations, .victim = "fork_nested")
VICTIM(fork_without_handlers, .victim = "fork_raw")
VICTIM(spawn_system_popen, .victim = "spawn_kinds")
VICTIM(exec_chain, .victim = "exec_chain")
VICTIM(daemons, .victim = "daemonize")
VICTIM(nothing_in_the_background, .victim = "quiet_process")
VICTIM(unshare_late_in_life, .victim = "unshare_late")
