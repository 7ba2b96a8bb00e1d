#include "policy/interleave.h"

#include <errno.h>

/*
 * With bytes and rounds of at most a pebibyte a credit stays within 2^54 and the sum of all within
 * 2^60, whatever is called in whatever order: a debit leaves at least -DEBT_ROUNDS rounds, a take
 * at least -2 * bytes, and what one node is above the sum the others are below it.
 */
#define BYTES_MAX (UINT64_C(1) << 50)
#define ROUND_MAX (UINT64_C(1) << 50)

/* Below this the rounding of shares to bytes would show after some thousand chunks. */
#define ROUND_MIN LIFT_MIB

/* Weights are scaled to this many bits, so that round % total times a weight fits 64 bits. */
#define WEIGHT_BITS 26

/* For products of two credits. */
__extension__ typedef __int128 i128;

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
	if (round_bytes < ROUND_MIN)
		round_bytes = ROUND_MIN;

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
		c.share[i] =
			round_bytes / total * scaled[i] + round_bytes % total * scaled[i] / total;
		if (c.share[i] == 0)
			c.share[i] = 1;
		c.left[i] = (int64_t)c.share[i];
	}
	c.refills = 1;
	*ret = c;
	return 0;
}

static bool eligible_at(
	const struct lift_credits *c, unsigned i, const struct lift_nodeset *eligible)
{
	return !eligible || lift_nodeset_test(eligible, c->node[i]);
}

/*
 * Gives everybody @rounds shares. Who takes part keeps exactly what it is ahead or behind, so a
 * refill never changes the order. Who does not cannot save up: at its next turn it would get
 * everything at once.
 */
static void refill(struct lift_credits *c, const struct lift_nodeset *eligible, int64_t rounds)
{
	for (unsigned i = 0; i < c->nr; i++) {
		int64_t share = (int64_t)c->share[i];

		if (eligible_at(c, i, eligible) || rounds <= (share - c->left[i]) / share)
			c->left[i] += rounds * share;
		else
			c->left[i] = share;
	}
	c->refills += (uint64_t)rounds;
}

int lift_credits_take(struct lift_credits *c, const struct lift_nodeset *eligible, uint64_t bytes)
{
	int64_t share = 0;
	int64_t left = 0;
	int best = -1;
	int64_t b;

	/* Nothing counts as a byte, so that somebody is behind. */
	if (bytes == 0)
		bytes = 1;
	b = (int64_t)(bytes < BYTES_MAX ? bytes : BYTES_MAX);

	for (unsigned i = 0; i < c->nr; i++) {
		if (!eligible_at(c, i, eligible))
			continue;
		share += (int64_t)c->share[i];
		left += c->left[i];
	}
	if (share == 0)
		return -1;
	if (left <= 0) {
		int64_t rounds = -left / share + 1;

		refill(c, eligible, rounds);
		left += rounds * share;
	}

	/*
	 * Ideally each node has its part, share[i] / share, of what is left. Once these bytes are
	 * taken that part is of left - b; a node with more than that has something to catch up on,
	 * and there always is one, as the surpluses sum up to b. Of these, the one whose turn ends
	 * first: with the bytes taken it is at its ideal again when the others have come down to
	 * (left[i] - b) / share[i] as well, so the largest of these.
	 */
	for (unsigned i = 0; i < c->nr; i++) {
		int64_t s = (int64_t)c->share[i];

		if (!eligible_at(c, i, eligible) ||
			(i128)c->left[i] * share <= (i128)s * (left - b))
			continue;
		if (best < 0 || (i128)(c->left[i] - b) * (int64_t)c->share[best] >
					(i128)(c->left[best] - b) * s)
			best = (int)i;
	}
	c->left[best] -= b;
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
