/* What tells of threads and CPUs: a thread's stat, a process's statm, a node's list of CPUs. */
#include "fuzz.h"

#include "policy/procparse.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *buf = (const char *)data;
	struct lift_task_stat st = {.cpu_ticks = 1, .faults = 4, .cpu = 2};
	uint64_t pages = 3;
	uint64_t bits[3] = {0, 0, 0};

	if (lift_parse_task_stat(buf, size, &st) != 0)
		MUST(st.cpu_ticks == 1 && st.faults == 4 && st.cpu == 2);
	if (lift_parse_statm(buf, size, &pages, NULL) != 0)
		MUST(pages == 3);
	if (lift_parse_cpulist(buf, size, bits, 100) != 0)
		MUST(bits[0] == 0 && bits[1] == 0);
	MUST(bits[1] >> 36 == 0 && bits[2] == 0);
	return 0;
}
