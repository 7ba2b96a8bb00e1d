/* Before main, after main, and at the ends of threads. */
#include "tests/shim/victim_row.h"

VICTIM(before_every_constructor, .victim = "early_start")
VICTIM(before_every_constructor_bound_now, .victim = "early_start", .env = {"LD_BIND_NOW=1"})
VICTIM(in_an_ifunc_resolver, .victim = "early_ifunc")
VICTIM(audited, .victim = "early_start", .env = {"LD_AUDIT=@audit.so"})
VICTIM(audited_threads, .victim = "thread_exit", .env = {"LD_AUDIT=@audit.so"})
VICTIM(audited_plugin, .victim = "dlopen_loop", .env = {"LD_AUDIT=@audit.so"})
VICTIM(plugins_come_and_go, .victim = "dlopen_loop")
VICTIM(little_static_tls, .victim = "dlopen_loop",
	.env = {"GLIBC_TUNABLES=glibc.rtld.optional_static_tls=0"})
VICTIM(thread_destructors, .victim = "thread_exit")
VICTIM(stacks_of_the_program, .victim = "fibers")
VICTIM(cancellation_waits, .victim = "thread_cancel")
VICTIM(exit_handlers, .victim = "late_exit", .args = {"exit"})
VICTIM(quick_exit_handlers, .victim = "late_exit", .args = {"quick"})
VICTIM(exit_without_handlers, .victim = "late_exit", .args = {"_exit"})
VICTIM(main_thread_ends_first, .victim = "late_exit", .args = {"main-thread"})
VICTIM(signal_handler_allocates, .victim = "signal_heap", .args = {"handler"})
VICTIM(signal_storm, .victim = "signal_heap", .args = {"storm"})
VICTIM(signal_handler_jumps, .victim = "signal_heap", .args = {"jump"})
VICTIM(signal_stack, .victim = "signal_heap", .args = {"stack"})
VICTIM_PRELOADED(signal_handler_interrupts_malloc, .victim = "signal_heap", .args = {"busy"},
	.seconds = 20, .hard = "not allowed by any standard, and a deadlock under glibc")
