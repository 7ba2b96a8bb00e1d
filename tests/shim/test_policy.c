/* The program's own memory policies. What numalift places is tested on machines with several nodes.
 */
#include "tests/shim/victim_row.h"

VICTIM(by_system_call, .victim = "policy_calls")
VICTIM(by_libnuma, .victim = "policy_libnuma")
VICTIM(by_libnuma_interleaved, .victim = "policy_libnuma",
	.env = {"NUMALIFT_PLACE=slab:interleave,anon:interleave,file:local"})
VICTIM(given_by_numactl, .tool = "numactl", .args = {"--membind=0", "@plain_work"})
VICTIM(interleaved_by_numactl, .tool = "numactl", .args = {"--interleave=all", "@plain_work"})
