/* Descriptors belong to the program. */
#include "tests/shim/victim_row.h"

VICTIM(numbers, .victim = "fd_numbers")
VICTIM(limit_4_from_the_start, .victim = "fd_limit", .limit = {{RLIMIT_NOFILE, 4}})
VICTIM(limit_5_from_the_start, .victim = "fd_limit", .limit = {{RLIMIT_NOFILE, 5}})
VICTIM(limit_10_from_the_start, .victim = "fd_limit", .limit = {{RLIMIT_NOFILE, 10}})
VICTIM(limit_3_later, .victim = "fd_limit", .args = {"3"})
VICTIM(limit_64, .victim = "plain_work", .limit = {{RLIMIT_NOFILE, 64}})
VICTIM(no_file_may_grow, .victim = "plain_work", .limit = {{RLIMIT_FSIZE, 1}})
VICTIM(started_without, .victim = "fd_closed", .args = {"none"})
VICTIM(complaint_into_a_broken_pipe, .victim = "fd_closed", .args = {"broken"})
VICTIM(complaint_into_a_full_pipe, .victim = "fd_closed", .args = {"full"}, .seconds = 15)
