#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include <criterion/criterion.h>

#include "policy/interleave.h"
#include "tests/fake/fake_machine.h"

#define CHUNK LIFT_HUGE_BYTES

/* Node ids 0, 1, ... with these weights; 0 ends the list. */
static unsigned weights_of(const uint64_t *w, struct lift_node_weight *ret)
{
	unsigned nr = 0;

	for (; w[nr]; nr++)
		ret[nr] = (struct lift_node_weight){.node = (int)nr, .weight = w[nr]};
	return nr;
}

static void start(struct lift_credits *c, const uint64_t *w, uint64_t round)
{
	struct lift_node_weight weights[LIFT_TOPO_NODES];

	cr_assert_eq(lift_credits_init(c, weights, weights_of(w, weights), round), 0);
}

/* How far the worst node is from its share of @total, in bytes. */
static uint64_t worst(const uint64_t *w, const uint64_t *got, uint64_t total)
{
	uint64_t sum = 0;
	uint64_t max = 0;

	for (unsigned i = 0; w[i]; i++)
		sum += w[i];
	for (unsigned i = 0; w[i]; i++) {
		uint64_t want = (uint64_t)((long double)total * w[i] / sum);
		uint64_t off = got[i] > want ? got[i] - want : want - got[i];

		if (off > max)
			max = off;
	}
	return max;
}

/* Each row ends at its first 0. */
static const uint64_t ratios[][9] = {
	{3, 2},
	{1, 1, 2},
	{7, 3},
	{1, 1},
	{1},
	{1, 255},
	{5, 1, 1, 1, 1, 1, 1, 1},
	{16 * LIFT_GIB, 11 * LIFT_GIB},
	{1540ull << 30, 3 << 20},
	{30, 17, 1, 1, 1, 1, 2, 2},
};

#define NR_RATIOS (sizeof(ratios) / sizeof(ratios[0]))

/* From a round smaller than a chunk to one far larger than the test. */
static const uint64_t rounds[] = {4096, CHUNK, 10 * CHUNK, 1000 * CHUNK};

#define NR_ROUNDS (sizeof(rounds) / sizeof(rounds[0]))

Test(interleave, one_region_is_in_proportion_within_a_chunk)
{
	for (size_t r = 0; r < NR_RATIOS; r++) {
		for (size_t k = 0; k < NR_ROUNDS; k++) {
			uint64_t got[LIFT_TOPO_NODES] = {0};
			struct lift_credits c;

			start(&c, ratios[r], rounds[k]);
			for (unsigned i = 1; i <= 128; i++) {
				int node = lift_credits_take(&c, NULL, CHUNK);

				cr_assert(node >= 0 && node < 9);
				got[node] += CHUNK;
				cr_expect_leq(worst(ratios[r], got, (uint64_t)i * CHUNK), CHUNK,
					"ratio %zu, round %zu, after %u", r, k, i);
			}
		}
	}
}

Test(interleave, hundred_and_twenty_eight_chunks_are_within_two_percent)
{
	for (size_t r = 0; r < 3; r++) {
		uint64_t got[LIFT_TOPO_NODES] = {0};
		struct lift_credits c;

		start(&c, ratios[r], 16 * CHUNK);
		for (unsigned i = 0; i < 128; i++)
			got[lift_credits_take(&c, NULL, CHUNK)] += CHUNK;
		cr_expect_leq(worst(ratios[r], got, 128 * CHUNK) * 50, 128 * CHUNK, "ratio %zu", r);
	}
}

Test(interleave, order_is_spread_and_repeatable)
{
	static const struct {
		uint64_t w[4];
		const char *order;
	} rows[] = {
		{{3, 2}, "0100101001"},
		{{1, 1, 2}, "20122012"},
		{{1, 1}, "010101"},
		{{7, 3}, "00100100010010010001"},
		{{4, 1, 1}, "001002001002"},
	};

	for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
		struct lift_credits c;

		start(&c, rows[r].w, (rows[r].w[0] + rows[r].w[1] + rows[r].w[2]) * CHUNK);
		for (size_t i = 0; rows[r].order[i]; i++)
			cr_expect_eq(lift_credits_take(&c, NULL, CHUNK), rows[r].order[i] - '0',
				"row %zu, chunk %zu", r, i);
	}
}

Test(interleave, many_small_regions_of_any_size_are_in_proportion_together)
{
	for (size_t r = 0; r < NR_RATIOS; r++) {
		uint64_t got[LIFT_TOPO_NODES] = {0};
		uint64_t total = 0;
		struct lift_credits c;
		uint32_t x = 1;

		start(&c, ratios[r], 16 * CHUNK);
		for (unsigned i = 0; i < 2000; i++) {
			uint64_t bytes;

			x = x * 1664525u + 1013904223u;
			bytes = 4096ull * (1 + (x >> 16) % 512);
			got[lift_credits_take(&c, NULL, bytes)] += bytes;
			total += bytes;
		}
		cr_expect_leq(worst(ratios[r], got, total), 2 * CHUNK, "ratio %zu", r);
	}
}

Test(interleave, local_allocations_are_made_up_for)
{
	for (size_t r = 0; r < 3; r++) {
		uint64_t got[LIFT_TOPO_NODES] = {0};
		uint64_t total = 0;
		struct lift_credits c;

		/* A fifth of everything goes to node 0 whatever we do, which is less than its
		 * share. */
		start(&c, ratios[r], 16 * CHUNK);
		for (unsigned i = 0; i < 128; i++) {
			int node = 0;

			if (i % 5 == 0)
				lift_credits_debit(&c, 0, CHUNK);
			else
				node = lift_credits_take(&c, NULL, CHUNK);
			got[node] += CHUNK;
			total += CHUNK;
		}
		cr_expect_leq(worst(ratios[r], got, total) * 50, total, "ratio %zu", r);
	}
}

Test(interleave, debt_of_local_allocations_is_forgotten_after_some_rounds)
{
	static const uint64_t w[] = {1, 1, 0};
	struct lift_credits c;
	unsigned before = 0;

	start(&c, w, 2 * CHUNK);
	lift_credits_debit(&c, 0, 1000 * CHUNK);
	lift_credits_debit(&c, 0, UINT64_MAX);
	while (lift_credits_take(&c, NULL, CHUNK) != 0)
		before++;
	cr_assert_geq(before, LIFT_CREDITS_DEBT_ROUNDS);
	cr_assert_leq(before, LIFT_CREDITS_DEBT_ROUNDS + 1);
}

Test(interleave, debit_keeps_what_a_large_chunk_owes)
{
	static const uint64_t w[] = {1, 1, 0};
	struct lift_credits c;
	int64_t owed;

	start(&c, w, 2 * CHUNK);
	cr_assert_eq(lift_credits_take(&c, NULL, 100 * CHUNK), 0);
	owed = c.left[0];
	lift_credits_debit(&c, 0, CHUNK);
	cr_assert_eq(c.left[0], owed);
	lift_credits_debit(&c, 7, CHUNK);
	cr_assert_eq(c.left[1], (int64_t)CHUNK);
}

Test(interleave, only_eligible_nodes_are_taken)
{
	static const uint64_t w[] = {1, 1, 2, 0};
	struct lift_nodeset some = fake_nodes("1-2,9");
	struct lift_nodeset other = fake_nodes("9");
	uint64_t got[3] = {0};
	struct lift_credits c;

	start(&c, w, 4 * CHUNK);
	for (unsigned i = 0; i < 30; i++)
		got[lift_credits_take(&c, &some, CHUNK)]++;
	cr_expect_eq(got[0], 0);
	cr_expect_eq(got[1], 10);
	cr_expect_eq(got[2], 20);
	cr_expect_eq(lift_credits_take(&c, &other, CHUNK), -1);
	/* What node 0 did not use has not piled up: at most a round, and then its share. */
	cr_expect_leq(c.left[0], (int64_t)c.share[0]);
	cr_expect_eq(lift_credits_take(&c, NULL, CHUNK), 0);
}

Test(interleave, refills_are_counted_and_common)
{
	static const uint64_t w[] = {1, 1, 0};
	struct lift_credits c;

	start(&c, w, 4 * CHUNK);
	cr_expect_eq(c.refills, 1);
	for (unsigned i = 0; i < 4; i++)
		lift_credits_take(&c, NULL, CHUNK);
	cr_expect_eq(c.refills, 1);
	lift_credits_take(&c, NULL, CHUNK);
	cr_expect_eq(c.refills, 2);
	cr_expect_eq(c.left[1], 2 * (int64_t)CHUNK);
}

Test(interleave, a_share_survives_any_number)
{
	static const struct lift_node_weight huge[] = {
		{.node = 5, .weight = UINT64_MAX},
		{.node = 3, .weight = UINT64_MAX},
		{.node = 4, .weight = 1},
		{.node = 9, .weight = 0},
	};
	struct lift_credits c;

	cr_assert_eq(lift_credits_init(&c, huge, 4, UINT64_MAX), 0);
	cr_assert_eq(c.nr, 3);
	cr_expect_eq(c.node[0], 3);
	cr_expect_eq(c.node[1], 4);
	cr_expect_eq(c.node[2], 5);
	cr_expect_eq(c.share[0], c.share[2]);
	cr_expect_geq(c.share[1], 1);
	for (unsigned i = 0; i < 1000; i++) {
		lift_credits_debit(&c, 3 + (int)(i % 3), UINT64_MAX);
		cr_assert_geq(lift_credits_take(&c, NULL, UINT64_MAX), 3);
		for (unsigned n = 0; n < 3; n++)
			cr_assert(c.left[n] < INT64_C(1) << 54 && c.left[n] > -(INT64_C(1) << 54));
	}
	cr_assert_geq(lift_credits_take(&c, NULL, 0), 3);
}

Test(interleave, init_refuses)
{
	struct lift_node_weight w[LIFT_TOPO_NODES + 1];
	struct lift_credits was;
	struct lift_credits c;

	for (int i = 0; i <= LIFT_TOPO_NODES; i++)
		w[i] = (struct lift_node_weight){.node = i, .weight = 1};
	memset(&c, 0x5a, sizeof(c));
	was = c;
	cr_expect_eq(lift_credits_init(&c, w, 0, CHUNK), -EINVAL);
	cr_expect_eq(lift_credits_init(&c, w, 2, 0), -EINVAL);
	cr_expect_eq(lift_credits_init(&c, w, LIFT_TOPO_NODES + 1, CHUNK), -ENOSPC);
	w[1].weight = 0;
	cr_expect_eq(lift_credits_init(&c, w + 1, 1, CHUNK), -EINVAL);
	w[1].node = 0;
	cr_expect_eq(lift_credits_init(&c, w, 2, CHUNK), -EINVAL);
	w[1].node = LIFT_MAX_NODES;
	cr_expect_eq(lift_credits_init(&c, w, 2, CHUNK), -EINVAL);
	w[1].node = -1;
	cr_expect_eq(lift_credits_init(&c, w, 2, CHUNK), -EINVAL);
	cr_expect_eq(memcmp(&c, &was, sizeof(c)), 0);
}

Test(interleave, chunk_size)
{
	static const struct {
		uint64_t region;
		uint64_t batch;
		uint64_t max;
		uint64_t chunk;
	} rows[] = {
		{0, 2 * LIFT_MIB, 256, 2 * LIFT_MIB},
		{1, 2 * LIFT_MIB, 256, 2 * LIFT_MIB},
		{512 * LIFT_MIB, 2 * LIFT_MIB, 256, 2 * LIFT_MIB},
		{512 * LIFT_MIB + 1, 2 * LIFT_MIB, 256, 4 * LIFT_MIB},
		{1024 * LIFT_GIB, 2 * LIFT_MIB, 256, 4 * LIFT_GIB},
		{LIFT_GIB, 4096, 256, 4 * LIFT_MIB},
		{LIFT_GIB, 8 * LIFT_GIB, 256, 8 * LIFT_GIB},
		{128 * LIFT_MIB, 0, 256, 2 * LIFT_MIB},
		{LIFT_GIB, 0, 256, 16 * LIFT_MIB},
		{LIFT_GIB, 0, 8, 128 * LIFT_MIB},
		{LIFT_GIB, 3 * LIFT_MIB, 1024, 4 * LIFT_MIB},
		{LIFT_GIB, 2 * LIFT_MIB, 0, LIFT_GIB},
		{UINT64_MAX, 1, 1, UINT64_C(1) << 63},
		{UINT64_MAX, UINT64_MAX, 1, UINT64_C(1) << 63},
		{UINT64_MAX, 2 * LIFT_MIB, UINT64_MAX, 2 * LIFT_MIB},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		cr_expect_eq(lift_chunk_bytes(rows[i].region, rows[i].batch, rows[i].max),
			rows[i].chunk, "row %zu", i);
}
