/* Any option (first byte), any value (the rest). */
#include "fuzz.h"

#include "policy/config.h"

static void check_place(const struct lift_place *place)
{
	MUST(place->nr >= LIFT_CLASS_MAX && place->nr <= LIFT_PLACE_RULES_MAX);
	for (unsigned i = 0; i < place->nr; i++) {
		const struct lift_place_rule *a = &place->rule[i];
		bool takes_nodes = a->how == LIFT_HOW_BIND || a->how == LIFT_HOW_PREFERRED;

		MUST(a->cls < LIFT_CLASS_MAX && a->how < LIFT_HOW_MAX);
		if (takes_nodes && a->nodes.kind == LIFT_NODES_LIST)
			MUST(!lift_nodeset_empty(&a->nodes.set));
		else
			MUST(lift_nodeset_empty(&a->nodes.set));
		for (unsigned j = 0; j < i; j++)
			MUST(place->rule[j].cls != a->cls ||
				place->rule[j].min_bytes != a->min_bytes);
	}
}

static void check_config(const struct lift_config *cfg)
{
	struct lift_nodeset seen;

	check_place(&cfg->place);
	for (int cls = 0; cls < LIFT_CLASS_MAX; cls++)
		MUST(lift_config_rule(cfg, (enum lift_class)cls, 0));
	MUST(cfg->log < LIFT_LOG_MAX);
	MUST((cfg->batch_bytes & (cfg->batch_bytes - 1)) == 0);
	MUST(cfg->scope.len <= LIFT_SCOPE_BYTES);
	MUST(cfg->tiers.nr <= LIFT_TIERS_MAX);
	lift_nodeset_zero(&seen);
	for (unsigned i = 0; i < cfg->tiers.nr; i++) {
		struct lift_nodeset both;

		MUST(!lift_nodeset_empty(&cfg->tiers.tier[i]));
		lift_nodeset_and(&both, &seen, &cfg->tiers.tier[i]);
		MUST(lift_nodeset_empty(&both));
		lift_nodeset_or(&seen, &seen, &cfg->tiers.tier[i]);
	}
	MUST(cfg->weights.nr <= LIFT_TOPO_NODES);
	for (unsigned i = 0; i < cfg->weights.nr; i++)
		MUST(cfg->weights.item[i].weight >= 1 &&
			cfg->weights.item[i].weight <= LIFT_WEIGHT_MAX);
	(void)lift_config_in_scope(cfg, "memcached");
	(void)lift_config_in_scope(cfg, "");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *value = (const char *)data + 1;
	const struct lift_option *option;
	struct lift_config_error err;
	struct lift_config cfg;
	struct lift_config was;
	char line[LIFT_CONFIG_ERROR_BYTES];
	char wide[4 * LIFT_CONFIG_ERROR_BYTES];
	size_t nr = 0;
	size_t len;

	if (size < 1)
		return 0;
	while (lift_config_option(nr))
		nr++;
	option = lift_config_option(data[0] % nr);
	lift_config_init(&cfg);
	was = cfg;
	if (lift_config_set(&cfg, option->name, value, size - 1, &err) == 0) {
		check_config(&cfg);
		return 0;
	}
	MUST(memcmp(&cfg, &was, sizeof(cfg)) == 0);
	MUST(err.offset <= size - 1 && err.length <= size - 1 - err.offset);
	len = lift_config_error_format(&err, value, line, sizeof(line));
	MUST(len == strlen(line));
	MUST(len == lift_config_error_format(&err, value, wide, sizeof(wide)));
	for (size_t i = 0; i < len; i++)
		MUST(line[i] >= ' ' && line[i] <= '~');
	return 0;
}
