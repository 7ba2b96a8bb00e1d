/* /proc/PID/numa_maps, line by line. */
#include "fuzz.h"

#include "policy/procparse.h"

static bool within(struct lift_text t, struct lift_text line)
{
	return t.len == 0 || (t.s >= line.s && t.s + t.len <= line.s + line.len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct lift_text rest = {.s = (const char *)data, .len = size};
	struct lift_text line;

	while (lift_parse_line(&rest, &line)) {
		struct lift_numa_maps_line m;

		if (lift_parse_numa_maps_line(line.s, line.len, &m) < 0)
			continue;
		MUST(m.policy.len > 0 && within(m.policy, line) && within(m.file, line));
		MUST(m.mode == -1 || ((m.mode & ~LIFT_MPOL_F_MASK) >= 0 &&
					     (m.mode & ~LIFT_MPOL_F_MASK) < LIFT_MPOL_MAX));
		MUST(m.mode != -1 || lift_nodeset_empty(&m.nodes));
		MUST(m.nr_nodes <= LIFT_TOPO_NODES);
		for (unsigned i = 0; i < m.nr_nodes; i++)
			MUST(m.pages[i].node >= 0 && m.pages[i].node < LIFT_MAX_NODES);
		MUST(m.page_bytes % 1024 == 0);
	}
	return 0;
}
