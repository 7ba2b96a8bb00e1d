/* Files that are read whole: a node's meminfo, and a process's status. */
#include "fuzz.h"

#include "policy/procparse.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct lift_node_meminfo info = {.total_bytes = 1, .free_bytes = 1};
	struct lift_proc_status st;

	if (lift_parse_node_meminfo((const char *)data, size, &info) == 0)
		MUST(info.total_bytes % 1024 == 0 && info.free_bytes % 1024 == 0);
	else
		MUST(info.total_bytes == 1 && info.free_bytes == 1);

	lift_parse_status((const char *)data, size, &st);
	MUST(!st.has_rss || st.rss_bytes % 1024 == 0);
	return 0;
}
