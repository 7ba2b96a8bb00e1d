#include "policy/interleave.h"

#include <errno.h>

/*
 * With bytes and rounds below these no sum or product here leaves int64_t: a credit stays within
 * +-(2^60 + 8 * 2^56). Nobody has that much memory; a caller's garbage must not be undefined
 * behaviour.
 */
#define BYTES_MAX (UINT64_C(1) << 60)
#define ROUND_MAX (UINT64_C(1) << 56)

/* Weights are scaled to this many bits, so that round % total times a weight fits 64 bits. */
#define WEIGHT_BITS 26

__extension__ typedef unsigned __int128 u128;

int lift_credits_init(struct lift_credits *ret, const struct lift_node_weight *weights, unsigned nr,
		      uint64_t round_bytes)
{
	uint64_t scaled[LIFT_TOPO_NODES];
	struct lift_credits c;
	struct lift_nodeset seen;
	uint64_t max = 0;
	uint64_t total = 0;
	unsigned shift = 0;

	if (round_bytes == 0)
		return -EINVAL;
	if (round_bytes > ROUND_MAX)
		round_bytes = ROUND_MAX;

	memset(&c, 0, sizeof(c));
	lift_nodeset_zero(&seen);
	for (unsigned i = 0; i < nr; i++) {
		unsigned at;

		if (weights[i].node < 0 || weights[i].node >= LIFT_MAX_NODES ||
		    lift_nodeset_test(&seen, weights[i].node))
			return -EINVAL;
		lift_nodeset_set(&seen, weights[i].node);
		if (weights[i].weight == 0)
			continue;
		if (c.nr == LIFT_TOPO_NODES)
			return -ENOSPC;
		for (at = c.nr++; at > 0 && c.node[at - 1] > weights[i].node; at--) {
			c.node[at] = c.node[at - 1];
			scaled[at] = scaled[at - 1];
		}
		c.node[at] = weights[i].node;
		scaled[at] = weights[i].weight;
		if (max < weights[i].weight)
			max = weights[i].weight;
	}
	if (c.nr == 0)
		return -EINVAL;

	while (max >> shift > UINT64_C(1) << WEIGHT_BITS)
		shift++;
	for (unsigned i = 0; i < c.nr; i++) {
		scaled[i] >>= shift;
		total += scaled[i];
	}
	for (unsigned i = 0; i < c.nr; i++) {
		c.share[i] = round_bytes / total * scaled[i] +
			     round_bytes % total * scaled[i] / total;
		if (c.share[i] == 0)
			c.share[i] = 1;
		c.left[i] = (int64_t)c.share[i];
	}
	c.refills = 1;
	*ret = c;
	return 0;
}

static bool eligible_at(const struct lift_credits *c, unsigned i,
			const struct lift_nodeset *eligible)
{
	return !eligible || lift_nodeset_test(eligible, c->node[i]);
}

/* Rounds until node @i has credit again. */
static uint64_t rounds_owed(const struct lift_credits *c, unsigned i)
{
	return (uint64_t)-c->left[i] / c->share[i] + 1;
}

/*
 * Refills all, as often as it takes until one eligible node has credit. Nodes that are far in
 * debt get the same number of rounds, so what they owe relative to the others stays right. Credit
 * that a node did not use does not pile up: at the next turn it would get everything at once.
 */
static void refill(struct lift_credits *c, const struct lift_nodeset *eligible)
{
	uint64_t rounds = UINT64_MAX;

	for (unsigned i = 0; i < c->nr; i++)
		if (eligible_at(c, i, eligible) && rounds > rounds_owed(c, i))
			rounds = rounds_owed(c, i);
	for (unsigned i = 0; i < c->nr; i++) {
		uint64_t room = c->share[i] - (uint64_t)c->left[i];

		if (rounds > room / c->share[i])
			c->left[i] = (int64_t)c->share[i];
		else
			c->left[i] += (int64_t)(rounds * c->share[i]);
	}
	c->refills += rounds;
}

/* The node with credit that has the largest fraction of its share left; -1 when none has credit. */
static int fullest(const struct lift_credits *c, const struct lift_nodeset *eligible)
{
	int best = -1;

	for (unsigned i = 0; i < c->nr; i++) {
		if (c->left[i] <= 0 || !eligible_at(c, i, eligible))
			continue;
		if (best < 0 || (u128)(uint64_t)c->left[i] * c->share[best] >
				(u128)(uint64_t)c->left[best] * c->share[i])
			best = (int)i;
	}
	return best;
}

int lift_credits_take(struct lift_credits *c, const struct lift_nodeset *eligible, uint64_t bytes)
{
	bool any = false;
	int best;

	for (unsigned i = 0; i < c->nr && !any; i++)
		any = eligible_at(c, i, eligible);
	if (!any)
		return -1;
	best = fullest(c, eligible);
	if (best < 0) {
		refill(c, eligible);
		best = fullest(c, eligible);
	}
	c->left[best] -= (int64_t)(bytes < BYTES_MAX ? bytes : BYTES_MAX);
	return c->node[best];
}

void lift_credits_debit(struct lift_credits *c, int node, uint64_t bytes)
{
	for (unsigned i = 0; i < c->nr; i++) {
		int64_t floor = -(int64_t)(LIFT_CREDITS_DEBT_ROUNDS * c->share[i]);

		if (c->node[i] != node)
			continue;
		/* A chunk larger than the share may have gone below: that debt stays. */
		if (floor > c->left[i])
			floor = c->left[i];
		c->left[i] -= (int64_t)(bytes < BYTES_MAX ? bytes : BYTES_MAX);
		if (c->left[i] < floor)
			c->left[i] = floor;
		return;
	}
}

uint64_t lift_chunk_bytes(uint64_t region_bytes, uint64_t batch_bytes, uint64_t max_chunks)
{
	const uint64_t top = UINT64_C(1) << 63;
	uint64_t chunk = 1;

	if (max_chunks == 0)
		max_chunks = 1;
	if (batch_bytes == 0) {
		batch_bytes = LIFT_HUGE_BYTES;
		if (max_chunks > LIFT_CHUNKS_AUTO)
			max_chunks = LIFT_CHUNKS_AUTO;
	}
	while (chunk < batch_bytes && chunk < top)
		chunk <<= 1;
	/* Rounded up without a sum that could overflow. */
	while (chunk < top && region_bytes / chunk + (region_bytes % chunk != 0) > max_chunks)
		chunk <<= 1;
	return chunk;
}
