/* The mapping calls do what the kernel does. */
#include "tests/shim/victim_row.h"

VICTIM(same_results_and_errors, .victim = "map_same")
VICTIM(fixed_and_hinted, .victim = "map_fixed")
VICTIM(remap, .victim = "map_remap")
VICTIM(protection_and_faults, .victim = "map_protect")
VICTIM(shared_memory, .victim = "map_shared")
VICTIM(many_mappings, .victim = "map_many")
VICTIM(reserved_terabytes, .victim = "map_reserve")
VICTIM(own_userfaultfd, .victim = "map_userfault")
VICTIM(advice_on_heap_pages, .victim = "heap_advice")
VICTIM(own_break, .victim = "moved_break")
VICTIM(mapped_files, .victim = "map_files")
VICTIM(kernel_reads_the_heap, .victim = "kernel_io")
