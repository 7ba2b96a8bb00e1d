/* Node lists, masks and distances: what was understood can be written out and is the same again. */
#include "fuzz.h"

#include <stdio.h>

#include "policy/procparse.h"

static void check_list(const char *s, size_t size)
{
	static char text[LIFT_MAX_NODES * 5 + 1];
	struct lift_nodeset first;
	struct lift_nodeset second;
	size_t len = 0;

	if (lift_parse_nodelist(s, size, &first) < 0)
		return;
	lift_nodeset_foreach (node, &first)
		len += (size_t)snprintf(
			text + len, sizeof(text) - len, "%s%d", len ? "," : "", node);
	MUST(lift_parse_nodelist(text, len, &second) == 0);
	MUST(lift_nodeset_equal(&first, &second));
}

static void check_mask(const char *s, size_t size)
{
	char text[LIFT_NODESET_WORDS * 18 + 1];
	struct lift_nodeset first;
	struct lift_nodeset second;
	size_t len = 0;

	if (lift_parse_nodemask(s, size, &first) < 0)
		return;
	for (int i = LIFT_NODESET_WORDS - 1; i >= 0; i--)
		len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%08x,%08x",
			len ? "," : "", (unsigned)(first.bits[i] >> 32), (unsigned)first.bits[i]);
	MUST(lift_parse_nodemask(text, len, &second) == 0);
	MUST(lift_nodeset_equal(&first, &second));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *s = (const char *)data;
	uint8_t distances[8];
	unsigned nr = 0;
	uint64_t v;

	check_list(s, size);
	check_mask(s, size);
	if (lift_parse_distances(s, size, distances, 8, &nr) == 0)
		MUST(nr >= 1 && nr <= 8);
	if (lift_parse_u64(s, size, &v) == 0) {
		char text[32];
		uint64_t again;
		int len = snprintf(text, sizeof(text), "%llu", (unsigned long long)v);

		MUST(lift_parse_u64(text, (size_t)len, &again) == 0 && again == v);
	}
	return 0;
}
