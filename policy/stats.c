#include "policy/stats.h"

#include <string.h>

const struct lift_stats_row lift_stats_table[LIFT_STATS_NR] = {
#define ROW(name, kind, unit, section, meaning)                                                    \
	{                                                                                          \
		#name,                                                                             \
		LIFT_STATS_##kind,                                                                 \
		LIFT_STATS_UNIT_##unit,                                                            \
		LIFT_STATS_##section,                                                              \
		meaning,                                                                           \
		offsetof(struct lift_stats, name),                                                 \
	},
	LIFT_STATS_FIGURES(ROW)
#undef ROW
};

const char *lift_stats_state_name(uint64_t state)
{
	static const char *const names[] = {"waiting", "tracking", "promoting", "settled", "off"};

	return state < LIFT_STATS_STATE_MAX ? names[state] : "?";
}

const char *lift_stats_mode_name(uint64_t mode)
{
	static const char *const names[] = {"on", "track"};

	return mode < LIFT_STATS_MODE_MAX ? names[mode] : "?";
}

uint64_t lift_stats_get(const struct lift_stats *s, enum lift_stats_figure figure)
{
	uint64_t value;

	memcpy(&value, (const char *)s + lift_stats_table[figure].at, sizeof(value));
	return value;
}
