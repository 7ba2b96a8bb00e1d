#include <criterion/criterion.h>

#include "policy/types.h"

Test(nodeset, starts_empty)
{
	struct lift_nodeset s;

	memset(&s, 0xff, sizeof(s));
	lift_nodeset_zero(&s);
	cr_assert(lift_nodeset_empty(&s));
	cr_assert_eq(lift_nodeset_count(&s), 0);
	cr_assert_eq(lift_nodeset_first(&s), -1);
	cr_assert_eq(lift_nodeset_next(&s, 5), -1);
}

Test(nodeset, members_at_every_word_boundary)
{
	static const int ids[] = {0, 1, 63, 64, 65, 127, 128, 512, 1022, 1023};
	const size_t nr = sizeof(ids) / sizeof(ids[0]);
	struct lift_nodeset s;
	size_t i = 0;

	lift_nodeset_zero(&s);
	for (i = 0; i < nr; i++)
		lift_nodeset_set(&s, ids[i]);
	cr_assert_eq(lift_nodeset_count(&s), nr);
	i = 0;
	lift_nodeset_foreach (node, &s) {
		cr_assert_lt(i, nr);
		cr_expect_eq(node, ids[i], "member %zu is %d", i, node);
		i++;
	}
	cr_assert_eq(i, nr);
	for (i = 0; i < nr; i++) {
		cr_expect(lift_nodeset_test(&s, ids[i]));
		lift_nodeset_clear(&s, ids[i]);
		cr_expect_not(lift_nodeset_test(&s, ids[i]));
	}
	cr_assert(lift_nodeset_empty(&s));
}

Test(nodeset, ids_that_cannot_be_are_never_members)
{
	static const int ids[] = {-1, INT_MIN, LIFT_MAX_NODES, INT_MAX};
	struct lift_nodeset full;
	struct lift_nodeset s;

	lift_nodeset_zero(&s);
	memset(&full, 0xff, sizeof(full));
	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
		lift_nodeset_set(&s, ids[i]);
		cr_expect(lift_nodeset_empty(&s));
		cr_expect_not(lift_nodeset_test(&full, ids[i]));
		lift_nodeset_clear(&full, ids[i]);
	}
	cr_assert_eq(lift_nodeset_count(&full), LIFT_MAX_NODES);
	cr_assert_eq(lift_nodeset_next(&full, LIFT_MAX_NODES - 1), -1);
	cr_assert_eq(lift_nodeset_next(&full, INT_MAX), -1);
	cr_assert_eq(lift_nodeset_next(&full, INT_MIN), 0);
}

Test(nodeset, set_operations)
{
	struct lift_nodeset a;
	struct lift_nodeset b;
	struct lift_nodeset r;

	lift_nodeset_zero(&a);
	lift_nodeset_zero(&b);
	lift_nodeset_set(&a, 1);
	lift_nodeset_set(&a, 700);
	lift_nodeset_set(&b, 700);
	lift_nodeset_set(&b, 2);

	lift_nodeset_and(&r, &a, &b);
	cr_expect_eq(lift_nodeset_count(&r), 1);
	cr_expect(lift_nodeset_test(&r, 700));
	cr_expect(lift_nodeset_within(&r, &a));
	cr_expect_not(lift_nodeset_within(&a, &r));
	lift_nodeset_or(&r, &a, &b);
	cr_expect_eq(lift_nodeset_count(&r), 3);
	lift_nodeset_andnot(&r, &a, &b);
	cr_expect_eq(lift_nodeset_count(&r), 1);
	cr_expect(lift_nodeset_test(&r, 1));

	cr_expect_not(lift_nodeset_equal(&a, &b));
	lift_nodeset_or(&b, &b, &a);
	lift_nodeset_clear(&b, 2);
	cr_expect(lift_nodeset_equal(&a, &b));
	lift_nodeset_zero(&r);
	cr_expect(lift_nodeset_within(&r, &r));
}

Test(range, empty_and_overlap)
{
	static const struct {
		struct lift_range a;
		struct lift_range b;
		bool overlaps;
	} rows[] = {
		{{10, 20}, {20, 30}, false},
		{{10, 20}, {19, 30}, true},
		{{10, 20}, {0, 10}, false},
		{{10, 20}, {0, 11}, true},
		{{10, 20}, {12, 13}, true},
		{{10, 20}, {15, 15}, false},
		{{20, 10}, {0, 100}, false},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		cr_expect_eq(lift_range_overlaps(rows[i].a, rows[i].b), rows[i].overlaps, "%zu", i);
		cr_expect_eq(lift_range_overlaps(rows[i].b, rows[i].a), rows[i].overlaps, "%zu", i);
	}
	cr_expect_eq(lift_range_bytes((struct lift_range){10, 20}), 10);
	cr_expect_eq(lift_range_bytes((struct lift_range){20, 10}), 0);
}
