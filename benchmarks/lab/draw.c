// SPDX-License-Identifier: MIT
#include "benchmarks/lab/draw.h"

#include <math.h>
#include <stdlib.h>

void draw_shuffle(uint32_t *order, unsigned long n, uint64_t *state)
{
	for (unsigned long i = n; i > 1; i--) {
		unsigned long j = draw_below(draw(state), i);
		uint32_t t = order[i - 1];

		order[i - 1] = order[j];
		order[j] = t;
	}
}

bool draw_lots_init(struct draw_lots *lots, unsigned long n, double exponent)
{
	double *p = calloc(n, sizeof(*p));
	uint32_t *small = calloc(n, sizeof(*small));
	uint32_t *large = calloc(n, sizeof(*large));
	unsigned long nr_small = 0;
	unsigned long nr_large = 0;
	double sum = 0;
	bool done = false;

	*lots = (struct draw_lots){.n = n};
	lots->alias = calloc(n, sizeof(*lots->alias));
	lots->keep = calloc(n, sizeof(*lots->keep));
	if (!p || !small || !large || !lots->alias || !lots->keep)
		goto out;
	for (unsigned long i = 0; i < n; i++)
		sum += p[i] = pow((double)(i + 1), -exponent);
	for (unsigned long i = 0; i < n; i++) {
		p[i] *= (double)n / sum;
		lots->alias[i] = (uint32_t)i;
		lots->keep[i] = UINT32_MAX;
		if (p[i] < 1)
			small[nr_small++] = (uint32_t)i;
		else
			large[nr_large++] = (uint32_t)i;
	}
	while (nr_small && nr_large) {
		uint32_t s = small[--nr_small];
		uint32_t l = large[nr_large - 1];

		lots->keep[s] = (uint32_t)(p[s] * UINT32_MAX);
		lots->alias[s] = l;
		p[l] -= 1 - p[s];
		if (p[l] < 1) {
			nr_large--;
			small[nr_small++] = l;
		}
	}
	done = true;
out:
	free(large);
	free(small);
	free(p);
	if (!done)
		draw_lots_fini(lots);
	return done;
}

void draw_lots_fini(struct draw_lots *lots)
{
	free(lots->keep);
	free(lots->alias);
	*lots = (struct draw_lots){0};
}
