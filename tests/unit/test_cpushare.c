#include <criterion/criterion.h>
#include <string.h>

#include "policy/cpushare.h"

#define MS UINT64_C(1000000)

Test(cpushare, nothing_known)
{
	struct lift_cpushare s = {0};

	cr_expect_eq(lift_cpushare_home(&s), -1);
	cr_expect_eq(lift_cpushare_of(&s, 0), 0);
	lift_cpushare_age(&s, UINT64_MAX);
	lift_cpushare_add(&s, 3, 0);
	cr_expect_eq(s.nr, 0);
	lift_cpushare_add(&s, 3, 99 * MS);
	cr_expect_eq(lift_cpushare_home(&s), -1, "too little");
	cr_expect_eq(lift_cpushare_of(&s, 3), 4096);
	lift_cpushare_add(&s, 3, MS);
	cr_expect_eq(lift_cpushare_home(&s), 3);
}

Test(cpushare, two_thirds)
{
	static const struct {
		uint64_t a;
		uint64_t b;
		uint64_t c;
		int home;
		uint32_t share_a;
	} rows[] = {
		{1000, 0, 0, 7, 4096},
		{1000, 500, 0, 7, 2730},
		{1000, 501, 0, -1, 2728},
		{500, 1000, 0, 2, 1365},
		{400, 300, 300, -1, 1638},
		{100, 100, 800, 0, 409},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct lift_cpushare s = {0};

		lift_cpushare_add(&s, 7, rows[i].a * MS);
		lift_cpushare_add(&s, 2, rows[i].b * MS);
		lift_cpushare_add(&s, 0, rows[i].c * MS);
		cr_expect_eq(lift_cpushare_home(&s), rows[i].home, "row %zu", i);
		cr_expect_eq(lift_cpushare_of(&s, 7), rows[i].share_a, "row %zu: %u", i,
			lift_cpushare_of(&s, 7));
	}
}

/* A process that goes elsewhere is at home there after some seconds. */
Test(cpushare, moves)
{
	struct lift_cpushare s = {0};
	unsigned seconds = 0;

	for (unsigned i = 0; i < 100; i++) {
		lift_cpushare_age(&s, 1000 * MS);
		lift_cpushare_add(&s, 0, 1000 * MS);
	}
	cr_expect_eq(lift_cpushare_home(&s), 0);
	while (lift_cpushare_home(&s) != 1 && seconds < 100) {
		lift_cpushare_age(&s, 1000 * MS);
		lift_cpushare_add(&s, 1, 1000 * MS);
		seconds++;
	}
	cr_expect(seconds >= 5 && seconds <= 9, "%u", seconds);
}

Test(cpushare, age)
{
	struct lift_cpushare s = {0};

	lift_cpushare_add(&s, 0, 1024 * MS);
	lift_cpushare_age(&s, LIFT_CPUSHARE_HALF_NS / 2);
	cr_expect_eq(s.ns[0], 768 * MS);
	lift_cpushare_age(&s, 3 * LIFT_CPUSHARE_HALF_NS);
	cr_expect_eq(s.ns[0], 96 * MS);
	lift_cpushare_age(&s, UINT64_MAX);
	cr_expect_eq(s.ns[0], 0);
}

Test(cpushare, limits)
{
	struct lift_cpushare s = {0};

	for (int i = 0; i < LIFT_TOPO_NODES + 10; i++)
		lift_cpushare_add(&s, i, UINT64_MAX);
	cr_expect_eq(s.nr, LIFT_TOPO_NODES);
	cr_expect_eq(lift_cpushare_of(&s, 0), 64);
	cr_expect_eq(lift_cpushare_of(&s, LIFT_TOPO_NODES), 0);
	for (int i = 0; i < 10; i++)
		lift_cpushare_add(&s, 5, UINT64_MAX);
	cr_expect_eq(lift_cpushare_of(&s, 5), 64);
	lift_cpushare_age(&s, LIFT_CPUSHARE_HALF_NS - 1);
	cr_expect_eq(lift_cpushare_of(&s, 5), 64);
}
