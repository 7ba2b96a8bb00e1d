/*
 * The grammar of NUMALIFT_PLACE: what was understood, written out in full, is understood as the
 * same.
 */
#include "fuzz.h"

#include <stdio.h>

#include "policy/config.h"

static size_t write_nodes(const struct lift_nodes *nodes, char *buf, size_t n)
{
	char sep = '=';
	size_t len = 0;

	if (nodes->kind != LIFT_NODES_LIST)
		return (size_t)snprintf(
			buf, n, "=%s", nodes->kind == LIFT_NODES_ALL ? "all" : "fast");
	lift_nodeset_foreach (node, &nodes->set) {
		len += (size_t)snprintf(buf + len, n - len, "%c%d", sep, node);
		sep = ',';
	}
	return len;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* Every rule may name every node. */
	static char text[LIFT_PLACE_RULES_MAX * (LIFT_MAX_NODES * 5 + 100)];
	struct lift_config first;
	struct lift_config second;
	size_t len = 0;

	lift_config_init(&first);
	lift_config_init(&second);
	if (lift_config_set(&first, "NUMALIFT_PLACE", (const char *)data, size, NULL) < 0)
		return 0;
	for (unsigned i = 0; i < first.place.nr; i++) {
		const struct lift_place_rule *rule = &first.place.rule[i];

		len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%s>=%llu:%s",
			i ? "," : "", lift_class_name(rule->cls),
			(unsigned long long)rule->min_bytes, lift_how_name(rule->how));
		if (rule->how == LIFT_HOW_BIND || rule->how == LIFT_HOW_PREFERRED)
			len += write_nodes(&rule->nodes, text + len, sizeof(text) - len);
	}
	MUST(len < sizeof(text));
	MUST(lift_config_set(&second, "NUMALIFT_PLACE", text, len, NULL) == 0);
	MUST(memcmp(&first.place, &second.place, sizeof(first.place)) == 0);
	return 0;
}
