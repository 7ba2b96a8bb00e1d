#include <criterion/criterion.h>

#include "policy/classify.h"

Test(classify, every_origin)
{
	static const struct {
		enum lift_origin origin;
		uint64_t bytes;
		enum lift_class cls;
	} rows[] = {
		{LIFT_ORIGIN_HEAP, 0, LIFT_CLASS_SLAB},
		{LIFT_ORIGIN_HEAP, LIFT_LARGE_BYTES - 1, LIFT_CLASS_SLAB},
		{LIFT_ORIGIN_HEAP, LIFT_LARGE_BYTES, LIFT_CLASS_ANON},
		{LIFT_ORIGIN_HEAP, UINT64_MAX, LIFT_CLASS_ANON},
		{LIFT_ORIGIN_MMAP_ANON_PRIVATE, 4096, LIFT_CLASS_ANON},
		{LIFT_ORIGIN_MMAP_ANON_SHARED, 4096, LIFT_CLASS_ANON},
		{LIFT_ORIGIN_SYSV_SHM, 4096, LIFT_CLASS_ANON},
		{LIFT_ORIGIN_MMAP_TMPFS_SHARED, 4096, LIFT_CLASS_FILE},
		{LIFT_ORIGIN_MMAP_HUGETLB_FILE, 4096, LIFT_CLASS_FILE},
		{LIFT_ORIGIN_MMAP_FILE_SHARED, 4096, LIFT_CLASS_FILE},
		{LIFT_ORIGIN_MMAP_FILE_PRIVATE, 4096, LIFT_CLASS_FILE},
		{LIFT_ORIGIN_MAX, 4096, LIFT_CLASS_ANON},
		{(enum lift_origin)99, 4096, LIFT_CLASS_ANON},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct lift_request req = {.origin = rows[i].origin, .bytes = rows[i].bytes};

		cr_expect_eq(lift_classify(&req), rows[i].cls, "row %zu", i);
	}
}

Test(classify, names)
{
	cr_expect_str_eq(lift_class_name(LIFT_CLASS_SLAB), "slab");
	cr_expect_str_eq(lift_class_name(LIFT_CLASS_ANON), "anon");
	cr_expect_str_eq(lift_class_name(LIFT_CLASS_FILE), "file");
	cr_expect_str_eq(lift_class_name(LIFT_CLASS_MAX), "?");
	cr_expect_str_eq(lift_class_name((enum lift_class)77), "?");
}
