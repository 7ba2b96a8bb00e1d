#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include <criterion/criterion.h>

#include "policy/regions.h"

#define NR_RECORDS 16

static struct lift_region records[NR_RECORDS];

static void start(struct lift_regions *r, size_t nr)
{
	memset(records, 0xa5, sizeof(records));
	lift_regions_init(r);
	lift_regions_add_memory(r, records, nr);
	cr_assert(lift_regions_check(r));
}

static struct lift_region_info info(uintptr_t from, uintptr_t to, uint32_t flags, uint32_t vmas)
{
	return (struct lift_region_info){
		.range = {from, to}, .cls = LIFT_CLASS_ANON, .flags = flags, .vmas = vmas};
}

/* flags: LIFT_REGION_USER times a number tells records apart. */
#define KIND(n) ((n)*LIFT_REGION_USER)

static int add(struct lift_regions *r, uintptr_t from, uintptr_t to, uint32_t flags, uint32_t vmas)
{
	struct lift_region_info i = info(from, to, flags, vmas);
	int rc = lift_regions_insert(r, &i);

	cr_assert(lift_regions_check(r), "after insert [%zx,%zx)", from, to);
	return rc;
}

/* "10-20:2 30-40" for what is there; a charge of 0 is left out. */
static void expect_map(const struct lift_regions *r, const char *want)
{
	char got[1000] = "";
	size_t len = 0;

	for (struct lift_region *n = lift_regions_first(r, 0); n; n = lift_regions_next(n)) {
		len += (size_t)snprintf(got + len, sizeof(got) - len, "%s%zu-%zu", len ? " " : "",
			(size_t)n->info.range.start, (size_t)n->info.range.end);
		if (n->info.vmas)
			len += (size_t)snprintf(got + len, sizeof(got) - len, ":%u", n->info.vmas);
	}
	cr_expect_str_eq(got, want, "got %s", got);
}

static int cut(struct lift_regions *r, uintptr_t from, uintptr_t to, uint64_t *freed)
{
	int rc = lift_regions_cut(r, (struct lift_range){from, to}, freed);

	cr_assert(lift_regions_check(r), "after cut [%zx,%zx)", from, to);
	return rc;
}

static int move(
	struct lift_regions *r, struct lift_range from, struct lift_range to, uint64_t *freed)
{
	int rc = lift_regions_move(r, from, to, freed);

	cr_assert(lift_regions_check(r), "after move [%zx,%zx)", from.start, from.end);
	return rc;
}

#define R(a, b) ((struct lift_range){(a), (b)})

Test(regions, empty)
{
	struct lift_regions r;
	uint64_t freed = 9;

	start(&r, 0);
	cr_expect_null(lift_regions_find(&r, 0));
	cr_expect_null(lift_regions_first(&r, 0));
	cr_expect_eq(cut(&r, 0, UINTPTR_MAX, &freed), 0);
	cr_expect_eq(freed, 0);
	cr_expect_eq(add(&r, 10, 20, 0, 0), -ENOMEM);
	lift_regions_clear(&r);
	cr_expect(lift_regions_check(&r));
}

Test(regions, insert_refuses_what_overlaps)
{
	static const struct lift_range bad[] = {
		{10, 20},
		{9, 11},
		{19, 21},
		{0, 100},
		{12, 13},
	};
	struct lift_regions r;

	start(&r, NR_RECORDS);
	cr_assert_eq(add(&r, 10, 20, 0, 0), 0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		cr_expect_eq(add(&r, bad[i].start, bad[i].end, KIND(1), 0), -EEXIST, "%zu", i);
	cr_expect_eq(add(&r, 5, 5, 0, 0), -EINVAL);
	cr_expect_eq(add(&r, 6, 5, 0, 0), -EINVAL);
	expect_map(&r, "10-20");
	cr_expect_eq(add(&r, 0, 10, KIND(1), 0), 0);
	cr_expect_eq(add(&r, 20, UINTPTR_MAX, KIND(1), 0), 0);
	cr_expect_eq(r.bytes, UINTPTR_MAX);
}

Test(regions, alike_neighbours_become_one)
{
	struct lift_regions r;

	start(&r, NR_RECORDS);
	add(&r, 10, 20, 0, 1);
	add(&r, 30, 40, 0, 2);
	add(&r, 20, 30, 0, 4);
	expect_map(&r, "10-40:7");
	cr_expect_eq(r.nr, 1);
	add(&r, 5, 10, 0, 1);
	expect_map(&r, "5-40:8");
	add(&r, 40, 50, KIND(1), 0);
	add(&r, 50, 60, LIFT_REGION_SEPARATE, 0);
	add(&r, 60, 70, LIFT_REGION_SEPARATE, 0);
	expect_map(&r, "5-40:8 40-50 50-60 60-70");
	/* Other class, other kind of decision: another record. */
	for (int i = 0; i < 2; i++) {
		struct lift_region_info other =
			info(70 + (uintptr_t)i * 10, 80 + (uintptr_t)i * 10, 0, 0);

		other.cls = LIFT_CLASS_FILE;
		other.kind = i ? LIFT_PLACE_CHUNKS : LIFT_PLACE_NONE;
		cr_assert_eq(lift_regions_insert(&r, &other), 0);
	}
	expect_map(&r, "5-40:8 40-50 50-60 60-70 70-80 80-90");
	cr_expect(lift_regions_check(&r));
}

Test(regions, charges_saturate)
{
	struct lift_regions r;

	start(&r, NR_RECORDS);
	add(&r, 10, 20, 0, UINT32_MAX);
	add(&r, 20, 30, 0, 1);
	add(&r, 0, 10, 0, 1);
	add(&r, 40, 50, 0, 7);
	add(&r, 30, 40, 0, 0);
	cr_expect_eq(r.vmas, UINT32_MAX);
	cr_expect_eq(r.nr, 1);
}

Test(regions, growing_a_neighbour_needs_no_record)
{
	struct lift_regions r;

	start(&r, 2);
	add(&r, 10, 20, 0, 0);
	add(&r, 40, 50, 0, 0);
	cr_expect_eq(add(&r, 60, 70, 0, 0), -ENOMEM);
	cr_expect_eq(add(&r, 20, 25, 0, 0), 0);
	cr_expect_eq(add(&r, 35, 40, 0, 0), 0);
	cr_expect_eq(add(&r, 25, 35, 0, 0), 0);
	expect_map(&r, "10-50");
	cr_expect_eq(r.nr_free, 1);
}

Test(regions, cut)
{
	static const struct {
		struct lift_range cut;
		const char *want;
		uint64_t freed;
	} rows[] = {
		{{0, 10}, "10-20:10 20-40:20 50-60:5", 0},
		{{40, 50}, "10-20:10 20-40:20 50-60:5", 0},
		{{30, 30}, "10-20:10 20-40:20 50-60:5", 0},
		{{30, 20}, "10-20:10 20-40:20 50-60:5", 0},
		{{10, 20}, "20-40:20 50-60:5", 10},
		{{5, 15}, "15-20:5 20-40:20 50-60:5", 5},
		{{15, 20}, "10-15:5 20-40:20 50-60:5", 5},
		{{25, 30}, "10-20:10 20-25:5 30-40:10 50-60:5", 5},
		{{15, 55}, "10-15:5 55-60:2", 28},
		{{0, 1000}, "", 35},
		{{12, 13}, "10-12:2 13-20:7 20-40:20 50-60:5", 1},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct lift_regions r;
		uint64_t freed = 99;

		start(&r, NR_RECORDS);
		add(&r, 10, 20, KIND(1), 10);
		add(&r, 20, 40, KIND(2), 20);
		add(&r, 50, 60, KIND(1), 5);
		cr_expect_eq(cut(&r, rows[i].cut.start, rows[i].cut.end, &freed), 0);
		expect_map(&r, rows[i].want);
		cr_expect_eq(freed, rows[i].freed, "row %zu: %llu", i, (unsigned long long)freed);
		cr_expect_eq(r.vmas + freed, 35, "row %zu", i);
		cr_expect_eq(lift_regions_cut(&r, rows[i].cut, NULL), 0);
	}
}

Test(regions, cut_without_a_free_record_forgets_the_smaller_side)
{
	struct lift_regions r;
	uint64_t freed;

	start(&r, 1);
	add(&r, 0, 100, 0, 100);
	cr_expect_eq(cut(&r, 20, 30, &freed), -ENOMEM);
	expect_map(&r, "30-100:70");
	cr_expect_eq(freed, 30);
	cr_expect_eq(r.forgotten, 1);
	cr_expect_eq(cut(&r, 90, 95, &freed), -ENOMEM);
	expect_map(&r, "30-90:60");
	cr_expect_eq(freed, 10);
	cr_expect_eq(r.forgotten, 2);
}

Test(regions, charge_of_huge_ranges_is_split_without_overflow)
{
	const uintptr_t top = UINTPTR_MAX;
	struct lift_regions r;
	uint64_t freed;

	start(&r, NR_RECORDS);
	add(&r, 0, top, 0, UINT32_MAX);
	cr_expect_eq(cut(&r, top / 4, top / 2, &freed), 0);
	cr_expect_eq(r.vmas + freed, UINT32_MAX);
	cr_expect(freed > UINT32_MAX / 4 - 9 && freed < UINT32_MAX / 4 + 9);
}

Test(regions, move)
{
	static const struct {
		struct lift_range from;
		struct lift_range to;
		int rc;
		const char *want;
		uint64_t freed;
	} rows[] = {
		/* the whole of one, same size, larger, smaller */
		{{10, 20}, {100, 110}, 0, "20-40:20 50-60:5 100-110:10", 0},
		{{10, 20}, {100, 130}, 0, "20-40:20 50-60:5 100-130:10", 0},
		{{10, 20}, {100, 104}, 0, "20-40:20 50-60:5 100-104:4", 6},
		/* out of the middle */
		{{25, 30}, {100, 105}, 0, "10-20:10 20-25:5 30-40:10 50-60:5 100-105:5", 0},
		/* several at once, with the hole between them; the end grows */
		{{10, 60}, {100, 150}, 0, "100-110:10 110-130:20 140-150:5", 0},
		{{10, 60}, {100, 160}, 0, "100-110:10 110-130:20 140-160:5", 0},
		{{10, 60}, {100, 115}, 0, "100-110:10 110-115:5", 20},
		/* onto something: what was there is gone */
		{{10, 20}, {45, 55}, 0, "20-40:20 45-55:10 55-60:2", 3},
		{{50, 60}, {0, 10}, 0, "0-10:5 10-20:10 20-40:20", 0},
		/* nothing there */
		{{70, 80}, {20, 30}, 0, "10-20:10 30-40:10 50-60:5", 10},
		/* in place */
		{{20, 40}, {20, 30}, 0, "10-20:10 20-30:10 50-60:5", 10},
		{{20, 40}, {20, 45}, 0, "10-20:10 20-45:20 50-60:5", 0},
		{{20, 40}, {20, 55}, 0, "10-20:10 20-55:20 55-60:2", 3},
		{{20, 40}, {20, 40}, 0, "10-20:10 20-40:20 50-60:5", 0},
		{{15, 20}, {15, 18}, 0, "10-18:8 20-40:20 50-60:5", 2},
		{{42, 45}, {42, 47}, 0, "10-20:10 20-40:20 50-60:5", 0},
		/* what the kernel refuses */
		{{10, 20}, {15, 25}, -EINVAL, "10-20:10 20-40:20 50-60:5", 99},
		{{10, 20}, {5, 15}, -EINVAL, "10-20:10 20-40:20 50-60:5", 99},
		{{10, 10}, {5, 15}, -EINVAL, "10-20:10 20-40:20 50-60:5", 99},
		{{10, 20}, {5, 5}, -EINVAL, "10-20:10 20-40:20 50-60:5", 99},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct lift_regions r;
		uint64_t freed = 99;

		start(&r, NR_RECORDS);
		add(&r, 10, 20, KIND(1), 10);
		add(&r, 20, 40, KIND(2), 20);
		add(&r, 50, 60, KIND(3), 5);
		cr_expect_eq(move(&r, rows[i].from, rows[i].to, &freed), rows[i].rc, "row %zu", i);
		expect_map(&r, rows[i].want);
		cr_expect_eq(freed, rows[i].freed, "row %zu: %llu", i, (unsigned long long)freed);
		if (rows[i].rc == 0)
			cr_expect_eq(r.vmas + freed, 35, "row %zu", i);
	}
}

Test(regions, moved_next_to_its_like_becomes_one)
{
	struct lift_regions r;
	uint64_t freed;

	start(&r, NR_RECORDS);
	add(&r, 10, 20, 0, 1);
	add(&r, 30, 40, 0, 1);
	add(&r, 60, 70, 0, 1);
	cr_expect_eq(move(&r, R(60, 70), R(20, 30), &freed), 0);
	expect_map(&r, "10-40:3");
	cr_expect_eq(lift_regions_move(&r, R(30, 40), R(90, 95), NULL), 0);
	add(&r, 50, 60, 0, 0);
	cr_expect_eq(move(&r, R(10, 30), R(10, 50), &freed), 0);
	expect_map(&r, "10-60:2 90-95");
}

Test(regions, move_without_free_records_forgets_and_says_so)
{
	struct lift_regions r;
	uint64_t freed;

	/* The middle moves: one side and the moved part cannot both be kept. */
	start(&r, 1);
	add(&r, 0, 100, 0, 100);
	cr_expect_eq(move(&r, R(40, 50), R(200, 210), &freed), -ENOMEM);
	cr_expect_eq(r.vmas + freed, 100);
	cr_expect_geq(r.forgotten, 1);
	/* What is forgotten was never invented: nothing at the old place. */
	cr_expect_null(lift_regions_find(&r, 45));

	/* Moving onto the middle of another. */
	start(&r, 2);
	add(&r, 0, 100, 0, 100);
	add(&r, 200, 210, 0, 1);
	cr_expect_eq(move(&r, R(200, 210), R(40, 50), &freed), -ENOMEM);
	expect_map(&r, "40-100:51");

	/* In place, onto the middle of another. */
	start(&r, 2);
	add(&r, 0, 10, KIND(1), 0);
	add(&r, 10, 110, 0, 100);
	cr_expect_eq(move(&r, R(0, 10), R(0, 20), &freed), 0);
	expect_map(&r, "0-20 20-110:90");
}

Test(regions, find_first_next)
{
	struct lift_regions r;

	start(&r, NR_RECORDS);
	add(&r, 10, 20, 0, 0);
	add(&r, 30, 40, 0, 0);
	cr_expect_null(lift_regions_find(&r, 9));
	cr_expect_eq(lift_regions_find(&r, 10)->info.range.start, 10);
	cr_expect_eq(lift_regions_find(&r, 19)->info.range.start, 10);
	cr_expect_null(lift_regions_find(&r, 20));
	cr_expect_eq(lift_regions_first(&r, 20)->info.range.start, 30);
	cr_expect_eq(lift_regions_first(&r, 39)->info.range.start, 30);
	cr_expect_null(lift_regions_first(&r, 40));
	cr_expect_null(lift_regions_next(lift_regions_find(&r, 30)));
}

Test(regions, charge_can_be_changed)
{
	struct lift_regions r;

	start(&r, NR_RECORDS);
	add(&r, 10, 20, 0, 5);
	add(&r, 30, 40, 0, 1);
	cr_expect_eq(lift_regions_charge(&r, lift_regions_find(&r, 10), 2), 5);
	cr_expect_eq(r.vmas, 3);
	cr_expect(lift_regions_check(&r));
}

/* The check is itself checked: each thing that can be broken is noticed. */
Test(regions, check_notices)
{
	struct lift_regions r;
	struct lift_region *a;
	struct lift_region *root;

	start(&r, NR_RECORDS);
	for (uintptr_t i = 0; i < 7; i++)
		add(&r, i * 20, i * 20 + 10, 0, 1);
	a = lift_regions_find(&r, 0);
	root = r.root;

#define BROKEN(change, undo)                                                                       \
	do {                                                                                       \
		change;                                                                            \
		cr_expect_not(lift_regions_check(&r), #change);                                    \
		undo;                                                                              \
		cr_assert(lift_regions_check(&r), "after undoing " #change);                       \
	} while (0)

	BROKEN(r.nr++, r.nr--);
	BROKEN(r.nr--, r.nr++);
	BROKEN(r.vmas++, r.vmas--);
	BROKEN(r.bytes++, r.bytes--);
	BROKEN(r.nr_free++, r.nr_free--);
	BROKEN(r.nr_free--, r.nr_free++);
	BROKEN(r.capacity++, r.capacity--);
	BROKEN(root->height++, root->height--);
	BROKEN(a->info.range.end = 25, a->info.range.end = 10);
	BROKEN(a->info.range.end = 0, a->info.range.end = 10);
	BROKEN((a->info.range.end = 20, r.bytes += 10), (a->info.range.end = 10, r.bytes -= 10));
	BROKEN((a->info.range.end = 0, r.bytes -= 10), (a->info.range.end = 10, r.bytes += 10));
	BROKEN(root->parent = a, root->parent = NULL);
	BROKEN(root->left->parent = a, root->left->parent = root);
	BROKEN(root->right->parent = a, root->right->parent = root);
	BROKEN(r.free->right->right = r.free, r.free->right->right = &records[9]);
}

/* In and out in no order, so that every shape of imbalance comes up and is seen right away. */
Test(regions, balance_after_every_step)
{
	enum { NR = 200 };
	static struct lift_region some[NR];
	static bool there[NR];
	struct lift_regions r;
	uint32_t x = 1;

	lift_regions_init(&r);
	lift_regions_add_memory(&r, some, NR);
	for (unsigned step = 0; step < 20000; step++) {
		uint32_t at;

		x = x * 1664525u + 1013904223u;
		at = (x >> 8) % NR;
		if (there[at]) {
			cr_assert_eq(lift_regions_cut(&r, R(at * 2, at * 2 + 1), NULL), 0);
		} else {
			struct lift_region_info i = info(at * 2, at * 2 + 1, 0, 0);

			cr_assert_eq(lift_regions_insert(&r, &i), 0);
		}
		there[at] = !there[at];
		cr_assert(lift_regions_check(&r), "step %u", step);
	}
}

/* A hundred thousand ranges in, looked up and out, in orders that unbalance a plain tree. */
Test(regions, a_hundred_thousand_ranges)
{
	enum { NR = 100000 };
	static struct lift_region many[NR];
	struct lift_regions r;
	uint64_t freed;

	lift_regions_init(&r);
	lift_regions_add_memory(&r, many, NR);
	for (int order = 0; order < 3; order++) {
		for (uint32_t i = 0; i < NR; i++) {
			/* ascending, descending, scattered (an odd multiplier visits all) */
			uint32_t at = order == 0   ? i
				      : order == 1 ? NR - 1 - i
						   : (uint32_t)(i * UINT64_C(77773) % NR);
			struct lift_region_info x = info(at * 2, at * 2 + 1, 0, 1);

			cr_assert_eq(lift_regions_insert(&r, &x), 0);
		}
		cr_assert(lift_regions_check(&r));
		cr_assert_eq(r.nr, NR);
		cr_assert_eq(r.nr_free, 0);
		/* 1.44 log2(n): what an AVL tree promises. */
		cr_assert_leq(r.root->height, 24);
		for (uint32_t i = 0; i < NR; i++) {
			uint32_t at = order == 0   ? i
				      : order == 1 ? (uint32_t)(i * UINT64_C(77773) % NR)
						   : NR - 1 - i;

			cr_assert_eq(lift_regions_find(&r, at * 2)->info.range.start, at * 2);
			cr_assert_eq(lift_regions_cut(&r, R(at * 2, at * 2 + 1), &freed), 0);
			cr_assert_eq(freed, 1);
			if (i % 10000 == 0)
				cr_assert(lift_regions_check(&r));
		}
		cr_assert_eq(r.nr, 0);
		cr_assert(lift_regions_check(&r));
	}
	/* All at once. */
	for (uint32_t i = 0; i < NR; i++) {
		struct lift_region_info x = info(i * 2, i * 2 + 1, 0, 1);

		cr_assert_eq(lift_regions_insert(&r, &x), 0);
	}
	lift_regions_clear(&r);
	cr_assert(lift_regions_check(&r));
	cr_assert_eq(r.nr_free, NR);
}
