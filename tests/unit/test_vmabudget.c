#include <errno.h>

#include <criterion/criterion.h>

#include "policy/vmabudget.h"

Test(vmabudget, takes_a_quarter)
{
	static const struct {
		uint64_t max_map_count;
		uint64_t left;
	} rows[] = {
		{65530, 16375},
		{0, 0},
		{99, 0},
		{100, 25},
		{UINT64_MAX, UINT64_MAX / 100 * 25},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct lift_vmabudget b;

		lift_vmabudget_init(&b, rows[i].max_map_count);
		cr_expect_eq(lift_vmabudget_left(&b), rows[i].left, "row %zu", i);
	}
}

Test(vmabudget, all_or_none)
{
	struct lift_vmabudget b;

	lift_vmabudget_init(&b, 400);
	cr_assert_eq(lift_vmabudget_take(&b, 101), -ENOSPC);
	cr_assert_eq(lift_vmabudget_left(&b), 100);
	cr_assert_eq(lift_vmabudget_take(&b, 60), 0);
	cr_assert_eq(lift_vmabudget_take(&b, 41), -ENOSPC);
	cr_assert_eq(lift_vmabudget_take(&b, UINT64_MAX), -ENOSPC);
	cr_assert_eq(lift_vmabudget_take(&b, 40), 0);
	cr_assert_eq(lift_vmabudget_take(&b, 0), 0);
	cr_assert_eq(lift_vmabudget_take(&b, 1), -ENOSPC);
	lift_vmabudget_give(&b, 10);
	cr_assert_eq(lift_vmabudget_left(&b), 10);
	lift_vmabudget_give(&b, 1000);
	cr_assert_eq(lift_vmabudget_left(&b), 100);
}

Test(vmabudget, a_lower_limit_grants_nothing_until_enough_is_given_back)
{
	struct lift_vmabudget b;

	lift_vmabudget_init(&b, 400);
	cr_assert_eq(lift_vmabudget_take(&b, 80), 0);
	lift_vmabudget_resize(&b, 200);
	cr_assert_eq(lift_vmabudget_left(&b), 0);
	cr_assert_eq(lift_vmabudget_take(&b, 1), -ENOSPC);
	lift_vmabudget_give(&b, 31);
	cr_assert_eq(lift_vmabudget_left(&b), 1);
	lift_vmabudget_resize(&b, 400);
	cr_assert_eq(lift_vmabudget_left(&b), 51);
}
