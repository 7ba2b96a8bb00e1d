#include "policy/cpushare.h"

/* Weights stay far below this, so that sums and products of them do not overflow. */
#define MOST_NS (UINT64_C(1) << 46)

static uint64_t sum_of(const struct lift_cpushare *s)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < s->nr; i++)
		sum += s->ns[i];
	return sum;
}

void lift_cpushare_add(struct lift_cpushare *s, int node, uint64_t ns)
{
	unsigned i = 0;

	while (i < s->nr && s->node[i] != node)
		i++;
	if (i == LIFT_TOPO_NODES || ns == 0)
		return;
	if (i == s->nr) {
		s->node[i] = node;
		s->ns[i] = 0;
		s->nr++;
	}
	s->ns[i] = ns > MOST_NS - s->ns[i] ? MOST_NS : s->ns[i] + ns;
}

void lift_cpushare_age(struct lift_cpushare *s, uint64_t elapsed_ns)
{
	uint64_t halvings = elapsed_ns / LIFT_CPUSHARE_HALF_NS;
	/* Between two halvings a straight line, in steps that do not overflow. */
	uint64_t part = elapsed_ns % LIFT_CPUSHARE_HALF_NS * 1024 / LIFT_CPUSHARE_HALF_NS;

	for (unsigned i = 0; i < s->nr; i++) {
		s->ns[i] = halvings < 64 ? s->ns[i] >> halvings : 0;
		s->ns[i] -= s->ns[i] * part / 2048;
	}
}

uint32_t lift_cpushare_of(const struct lift_cpushare *s, int node)
{
	uint64_t sum = sum_of(s);

	for (unsigned i = 0; sum > 0 && i < s->nr; i++)
		if (s->node[i] == node)
			return (uint32_t)(s->ns[i] * 4096 / sum);
	return 0;
}

int lift_cpushare_home(const struct lift_cpushare *s)
{
	uint64_t sum = sum_of(s);

	for (unsigned i = 0; sum >= LIFT_CPUSHARE_MIN_NS && i < s->nr; i++)
		if (s->ns[i] * 3 >= sum * 2)
			return s->node[i];
	return -1;
}
