/* The background thread of promotion, which is asked for by name here: there is one node. */
#include "tests/shim/victim_row.h"

#define TRACK "NUMALIFT_PROMOTE=track"

VICTIM(user_of_all_threads, .victim = "background", .args = {"user"}, .env = {TRACK})
VICTIM(effective_user, .victim = "background", .args = {"effective"}, .env = {TRACK})
VICTIM(child_without_fork_handlers, .victim = "background", .args = {"fork"}, .env = {TRACK})
VICTIM(child_of_vfork_changes_its_user, .victim = "background", .args = {"vfork"}, .env = {TRACK})
VICTIM(user_namespace, .victim = "background", .args = {"unshare"}, .env = {TRACK})
VICTIM(memory_is_used_later, .victim = "background", .args = {"first"}, .env = {TRACK})
VICTIM(real_time_program, .victim = "background", .args = {"urgent"}, .env = {TRACK})
VICTIM(all_descriptors_closed, .victim = "background", .args = {"descriptors"}, .env = {TRACK})
VICTIM(older_and_newer_memory_moves, .victim = "background", .args = {"remap"}, .env = {TRACK})
VICTIM(only_writes_watched, .victim = "background", .args = {"remap"},
	.env = {TRACK, "NUMALIFT_SAMPLER=wp"}, .err_lines = 1)

VICTIM(mremap_in_all_forms, .victim = "remap_pieces", .env = {TRACK})
VICTIM(mremap_at_the_limit, .victim = "remap_pieces", .args = {"limit"}, .env = {TRACK},
	.seconds = 120)
VICTIM(mremap_without_address_space, .victim = "remap_pieces", .args = {"space"}, .env = {TRACK})
VICTIM(capabilities_of_all_threads, .victim = "background", .args = {"capset"}, .env = {TRACK})
VICTIM(bounding_set, .victim = "background", .args = {"bounding"}, .env = {TRACK})
VICTIM(user_by_system_call, .victim = "background", .args = {"raw"}, .env = {TRACK})
VICTIM(last_thread_leaves, .victim = "background", .args = {"last"}, .env = {TRACK}, .seconds = 20)

VICTIM(no_more_threads, .victim = "background", .args = {"alone"}, .env = {TRACK},
	.limit = {{RLIMIT_NPROC, 1}}, .user = 65534)
VICTIM(debugger_attached, .victim = "background", .args = {"attached"}, .env = {TRACK})

VICTIM(unshare_late_in_life, .victim = "unshare_late", .env = {TRACK})
VICTIM(daemons, .victim = "daemonize", .env = {TRACK})
VICTIM(forks_of_threads, .victim = "fork_threads", .env = {TRACK})
VICTIM(rights_given_up, .victim = "drop_rights", .args = {"user"}, .env = {TRACK})
VICTIM(root_changed, .victim = "drop_rights", .args = {"root"}, .env = {TRACK})
VICTIM(no_files, .victim = "drop_rights", .args = {"files"}, .env = {TRACK})
VICTIM(no_proc, .victim = "no_proc", .env = {TRACK})
VICTIM(locked, .victim = "locked_memory", .env = {TRACK})
VICTIM(own_userfaultfd, .victim = "map_userfault", .env = {TRACK})
VICTIM(many_mappings, .victim = "map_limit", .env = {TRACK})
VICTIM(descriptor_numbers, .victim = "fd_numbers", .env = {TRACK})
