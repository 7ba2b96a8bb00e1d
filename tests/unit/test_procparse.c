#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include <criterion/criterion.h>

#include "policy/procparse.h"
#include "tests/fake/fake_machine.h"

#define SIZE(a) (sizeof(a) / sizeof((a)[0]))

/* Copies to the end of an allocation, so that a tool that watches bounds sees a read past it. */
static const char *tight(const char *text, size_t len)
{
	static char *copy;

	free(copy);
	copy = malloc(len ? len : 1);
	memcpy(copy, text, len);
	return copy;
}

Test(procparse, lines)
{
	struct lift_text rest = {.s = "a\n\nbc\nd", .len = 7};
	struct lift_text line;

	cr_assert(lift_parse_line(&rest, &line) && lift_text_is(line, "a"));
	cr_assert(lift_parse_line(&rest, &line) && lift_text_is(line, ""));
	cr_assert(lift_parse_line(&rest, &line) && lift_text_is(line, "bc"));
	cr_assert(lift_parse_line(&rest, &line) && lift_text_is(line, "d"));
	cr_assert_not(lift_parse_line(&rest, &line));
	cr_expect_not(lift_text_is(line, "dd"));
	cr_expect_not(lift_text_is(line, "e"));
}

Test(procparse, numbers)
{
	static const struct {
		const char *text;
		int rc;
		uint64_t value;
	} rows[] = {
		{"0\n", 0, 0},
		{"65530", 0, 65530},
		{" 7 \n", 0, 7},
		{"18446744073709551615", 0, UINT64_MAX},
		{"18446744073709551616", -ERANGE, 0},
		{"99999999999999999999", -ERANGE, 0},
		{"", -EINVAL, 0},
		{"\n", -EINVAL, 0},
		{"-1", -EINVAL, 0},
		{"+1", -EINVAL, 0},
		{"1 2", -EINVAL, 0},
		{"0x10", -EINVAL, 0},
		{"12a", -EINVAL, 0},
	};

	for (size_t i = 0; i < SIZE(rows); i++) {
		uint64_t v = 4711;

		cr_expect_eq(lift_parse_u64(tight(rows[i].text, strlen(rows[i].text)),
				     strlen(rows[i].text), &v),
			rows[i].rc, "'%s'", rows[i].text);
		cr_expect_eq(v, rows[i].rc ? 4711 : rows[i].value, "'%s'", rows[i].text);
	}
}

/* The members of both texts have to be alike; NULL: refused. */
Test(procparse, nodelists)
{
	static const struct {
		const char *text;
		int rc;
		int members[8]; /* ended by -1 */
	} rows[] = {
		{"0\n", 0, {0, -1}},
		{"", 0, {-1}},
		{"\n", 0, {-1}},
		{"0-3,7\n", 0, {0, 1, 2, 3, 7, -1}},
		{" 5-5 ", 0, {5, -1}},
		{"63-65,1023", 0, {63, 64, 65, 1023, -1}},
		{"7,0,7", 0, {0, 7, -1}},
		{"007", 0, {7, -1}},
		{"1024", -ERANGE, {-1}},
		{"0-1024", -ERANGE, {-1}},
		{"18446744073709551616", -ERANGE, {-1}},
		{"3-1", -EINVAL, {-1}},
		{"0,", -EINVAL, {-1}},
		{",0", -EINVAL, {-1}},
		{"0,,1", -EINVAL, {-1}},
		{"0-", -EINVAL, {-1}},
		{"-1", -EINVAL, {-1}},
		{"0, 1", -EINVAL, {-1}},
		{"0-1-2", -EINVAL, {-1}},
		{"all", -EINVAL, {-1}},
	};

	for (size_t i = 0; i < SIZE(rows); i++) {
		size_t len = strlen(rows[i].text);
		struct lift_nodeset want;
		struct lift_nodeset got;

		lift_nodeset_zero(&want);
		memset(&got, 0x5a, sizeof(got));
		if (rows[i].rc < 0)
			want = got;
		for (size_t j = 0; rows[i].members[j] >= 0; j++)
			lift_nodeset_set(&want, rows[i].members[j]);
		cr_expect_eq(lift_parse_nodelist(tight(rows[i].text, len), len, &got), rows[i].rc,
			"'%s'", rows[i].text);
		cr_expect(lift_nodeset_equal(&got, &want), "'%s'", rows[i].text);
	}
}

Test(procparse, nodemasks)
{
	static const struct {
		const char *text;
		int rc;
		const char *list;
	} rows[] = {
		{"3\n", 0, "0-1"},
		{"00000000,00000003\n", 0, "0-1"},
		{"00000001,80000000,00000000", 0, "63-64"},
		{"ff", 0, "0-7"},
		{"FF", 0, "0-7"},
		{"Aa", 0, "1,3,5,7"},
		{"0", 0, ""},
		{"1,0", 0, "32"},
		{"", -EINVAL, NULL},
		{",", -EINVAL, NULL},
		{"1,", -EINVAL, NULL},
		{",1", -EINVAL, NULL},
		{"1,,1", -EINVAL, NULL},
		{"000000001", -EINVAL, NULL},
		{"0x3", -EINVAL, NULL},
		{"g", -EINVAL, NULL},
		{"1 1", -EINVAL, NULL},
	};
	char many[40 * 9 + 1];

	for (size_t i = 0; i < SIZE(rows); i++) {
		size_t len = strlen(rows[i].text);
		struct lift_nodeset got;
		struct lift_nodeset want;

		memset(&got, 0x5a, sizeof(got));
		want = rows[i].list ? fake_nodes(rows[i].list) : got;
		cr_expect_eq(lift_parse_nodemask(tight(rows[i].text, len), len, &got), rows[i].rc,
			"'%s'", rows[i].text);
		cr_expect(lift_nodeset_equal(&got, &want), "'%s'", rows[i].text);
	}

	/* More groups than there can be nodes are fine while they are zero. */
	for (size_t groups = 31; groups <= 40; groups++) {
		struct lift_nodeset got;

		for (size_t g = 0; g < groups; g++)
			memcpy(many + g * 9, "00000000,", 9);
		cr_expect_eq(lift_parse_nodemask(many, groups * 9 - 1, &got), 0);
		cr_expect(lift_nodeset_empty(&got));
		many[0] = '8';
		cr_expect_eq(lift_parse_nodemask(many, groups * 9 - 1, &got),
			groups > 32 ? -ERANGE : 0, "%zu groups", groups);
		if (groups == 32)
			cr_expect_eq(lift_nodeset_first(&got), 1023);
	}
}

Test(procparse, node_meminfo)
{
	static const struct {
		const char *text;
		int rc;
		uint64_t total;
		uint64_t free;
	} rows[] = {
		{"Node 0 MemTotal:       16318344 kB\nNode 0 MemFree:         9215312 kB\n"
		 "Node 0 MemUsed:         7103032 kB\nNode 0 HugePages_Total:     0\n",
			0, 16318344ull << 10, 9215312ull << 10},
		{"\nNode 1023 MemFree: 1 kB\nrubbish\nNode 1023 MemTotal: 2 kB", 0, 2048, 1024},
		{"Node 0 MemTotal: 0 kB\nNode 0 MemFree: 0 kB\n", 0, 0, 0},
		{"", -EINVAL, 0, 0},
		{"Node 0 MemTotal: 1 kB\n", -EINVAL, 0, 0},
		{"Node 0 MemFree: 1 kB\n", -EINVAL, 0, 0},
		{"MemTotal: 1 kB\nMemFree: 1 kB\n", -EINVAL, 0, 0},
		{"Node x MemTotal: 1 kB\nNode 0 MemFree: 1 kB\n", -EINVAL, 0, 0},
		{"Node 0MemTotal: 1 kB\nNode 0 MemFree: 1 kB\n", -EINVAL, 0, 0},
		{"Node 0 MemTotal: kB\nNode 0 MemFree: 1 kB\n", -EINVAL, 0, 0},
		{"Node 0 MemTotal: 1\nNode 0 MemFree: 1 kB\n", -EINVAL, 0, 0},
		{"Node 0 MemTotal: 1 kBytes\nNode 0 MemFree: 1 kB\n", -EINVAL, 0, 0},
		{"Node 0 MemTotal: 18014398509481984 kB\nNode 0 MemFree: 1 kB\n", -ERANGE, 0, 0},
		{"Node 0 MemTotal: 1 kB\nNode 0 MemFree: 99999999999999999999 kB\n", -ERANGE, 0, 0},
	};

	for (size_t i = 0; i < SIZE(rows); i++) {
		size_t len = strlen(rows[i].text);
		struct lift_node_meminfo info = {.total_bytes = 1, .free_bytes = 2};

		cr_expect_eq(lift_parse_node_meminfo(tight(rows[i].text, len), len, &info),
			rows[i].rc, "row %zu", i);
		cr_expect_eq(info.total_bytes, rows[i].rc ? 1 : rows[i].total, "row %zu", i);
		cr_expect_eq(info.free_bytes, rows[i].rc ? 2 : rows[i].free, "row %zu", i);
	}
}

Test(procparse, statm)
{
	static const struct {
		const char *text;
		int rc;
		uint64_t pages;
	} rows[] = {
		{"1037 247 183 5 0 112 0\n", 0, 247},
		{"0 0", 0, 0},
		{"1 18446744073709551615 ", 0, UINT64_MAX},
		{"", -EINVAL, 0},
		{"1037", -EINVAL, 0},
		{"1037 ", -EINVAL, 0},
		{"1037 x", -EINVAL, 0},
		{"1037 2x", -EINVAL, 0},
		{"1037 -2", -EINVAL, 0},
		{" 1037 2", -EINVAL, 0},
		{"1037 18446744073709551616", -ERANGE, 0},
		{"18446744073709551616 1", -ERANGE, 0},
	};

	for (size_t i = 0; i < SIZE(rows); i++) {
		size_t len = strlen(rows[i].text);
		uint64_t pages = 77;

		cr_expect_eq(lift_parse_statm(tight(rows[i].text, len), len, &pages, NULL),
			rows[i].rc, "row %zu", i);
		cr_expect_eq(pages, rows[i].rc ? 77 : rows[i].pages, "row %zu", i);
	}
}

Test(procparse, statm_data)
{
	uint64_t pages = 77;
	uint64_t data = 78;

	cr_expect_eq(lift_parse_statm("9 8 7 6 5 4 3\n", 14, &pages, &data), 0);
	cr_expect_eq(pages, 8);
	cr_expect_eq(data, 4);
	cr_expect_eq(lift_parse_statm("9 1 7 6 5", 9, &pages, &data), -EINVAL);
	cr_expect_eq(lift_parse_statm("9 1 7 6 5 4x", 12, &pages, &data), -EINVAL);
	cr_expect_eq(pages, 8);
	cr_expect_eq(data, 4);
}

#define STAT_MIDDLE " S 1 77 77 0 -1 4194560 93 0 0 0 "
#define STAT_TAIL                                                                                  \
	" 0 0 20 0 1 0 4021 2322432 235 18446744073709551615 1 1 0 0 0 0 0 4 65536 1 0 0 17 "

Test(procparse, task_stat)
{
	static const struct {
		const char *text;
		int rc;
		uint64_t ticks;
		unsigned cpu;
	} rows[] = {
		{"77 (sleep)" STAT_MIDDLE "12 30" STAT_TAIL "5 0 0 0 0 0 0\n", 0, 42, 5},
		{"77 (a b) c) (d)" STAT_MIDDLE "1 2" STAT_TAIL "0", 0, 3, 0},
		{"77 (x) R 1 2)" STAT_MIDDLE "0 0" STAT_TAIL "4095 1", 0, 0, 4095},
		{"77 (\n)" STAT_MIDDLE "9223372036854775807 9223372036854775807" STAT_TAIL "1\n", 0,
			UINT64_MAX - 1, 1},
		{"77 ()" STAT_MIDDLE "7 0" STAT_TAIL "1", 0, 7, 1},
		{"", -EINVAL, 0, 0},
		{")", -EINVAL, 0, 0},
		{"77 sleep S 1 77", -EINVAL, 0, 0},
		{"77 (sleep)", -EINVAL, 0, 0},
		{"77 (sleep)" STAT_MIDDLE "12 30", -EINVAL, 0, 0},
		{"77 (sleep)" STAT_MIDDLE "12 30" STAT_TAIL, -EINVAL, 0, 0},
		{"77 (sleep)" STAT_MIDDLE "12 30" STAT_TAIL "5x", -EINVAL, 0, 0},
		{"77 (sleep)" STAT_MIDDLE "12 30" STAT_TAIL "-5", -EINVAL, 0, 0},
		{"77 (sleep)" STAT_MIDDLE "x 30" STAT_TAIL "5", -EINVAL, 0, 0},
		{"77 (sleep) S 1 77 77 0 -1 0 x 0 0 0 12 30" STAT_TAIL "5", -EINVAL, 0, 0},
		{"77 (sleep)" STAT_MIDDLE "12x 30" STAT_TAIL "5", -EINVAL, 0, 0},
		{"77 (sleep)" STAT_MIDDLE "12 9223372036854775808" STAT_TAIL "5", -ERANGE, 0, 0},
		{"77 (sleep)" STAT_MIDDLE "12 30" STAT_TAIL "4294967296", -ERANGE, 0, 0},
	};

	for (size_t i = 0; i < SIZE(rows); i++) {
		size_t len = strlen(rows[i].text);
		struct lift_task_stat st = {.cpu_ticks = 4711, .cpu = 4712};

		cr_expect_eq(lift_parse_task_stat(tight(rows[i].text, len), len, &st), rows[i].rc,
			"row %zu", i);
		cr_expect_eq(st.cpu_ticks, rows[i].rc ? 4711 : rows[i].ticks, "row %zu", i);
		cr_expect_eq(st.cpu, rows[i].rc ? 4712 : rows[i].cpu, "row %zu", i);
		if (rows[i].rc == 0) {
			cr_expect_eq(st.faults, 93, "row %zu", i);
			cr_expect_eq(st.threads, 1, "row %zu", i);
			cr_expect_eq(st.state, 'S', "row %zu", i);
		}
	}
}

Test(procparse, cpulist)
{
	static const struct {
		const char *text;
		int rc;
		uint64_t bits[2];
	} rows[] = {
		{"", 0, {0, 0}},
		{"\n", 0, {0, 0}},
		{"0\n", 0, {1, 0}},
		{"0-3,64", 0, {0xf, 1}},
		{"62-65,99", 0, {UINT64_C(3) << 62, 3 | UINT64_C(1) << 35}},
		{"98-4294967295", 0, {0, UINT64_C(3) << 34}},
		{"100,4000", 0, {0, 0}},
		{"0,", -EINVAL, {0, 0}},
		{"0 1", -EINVAL, {0, 0}},
		{"3-1", -EINVAL, {0, 0}},
		{"1-", -EINVAL, {0, 0}},
		{"x", -EINVAL, {0, 0}},
		{"1,4294967296", -ERANGE, {0, 0}},
	};

	for (size_t i = 0; i < SIZE(rows); i++) {
		size_t len = strlen(rows[i].text);
		uint64_t bits[2] = {0, UINT64_C(1) << 50};

		cr_expect_eq(lift_parse_cpulist(tight(rows[i].text, len), len, bits, 100),
			rows[i].rc, "'%s'", rows[i].text);
		cr_expect_eq(bits[0], rows[i].bits[0], "'%s'", rows[i].text);
		cr_expect_eq(bits[1], rows[i].bits[1] | UINT64_C(1) << 50, "'%s'", rows[i].text);
	}
}

Test(procparse, distances)
{
	static const struct {
		const char *text;
		int rc;
		unsigned nr;
		uint8_t d[4];
	} rows[] = {
		{"10 20 255\n", 0, 3, {10, 20, 255}},
		{"10", 0, 1, {10}},
		{"  10\t 17 28 31 ", 0, 4, {10, 17, 28, 31}},
		{"", -EINVAL, 0, {0}},
		{"10 x", -EINVAL, 0, {0}},
		{"10,20", -EINVAL, 0, {0}},
		{"10 256", -ERANGE, 0, {0}},
		{"1 2 3 4 5", -ERANGE, 0, {0}},
	};

	for (size_t i = 0; i < SIZE(rows); i++) {
		size_t len = strlen(rows[i].text);
		uint8_t d[4] = {1, 1, 1, 1};
		unsigned nr = 77;

		cr_expect_eq(lift_parse_distances(tight(rows[i].text, len), len, d, 4, &nr),
			rows[i].rc, "row %zu", i);
		cr_expect_eq(nr, rows[i].rc ? 77 : rows[i].nr, "row %zu: %u", i, nr);
		for (unsigned j = 0; j < 4; j++)
			cr_expect_eq(d[j], j < rows[i].nr ? rows[i].d[j] : 1, "row %zu", i);
	}
}

Test(procparse, status)
{
	static const char text[] = "Name:\tseccomp: 9\n"
				   "VmRSS:\t    1234 kB\n"
				   "Threads:\t12\n"
				   "Seccomp:\t2\n"
				   "Mems_allowed:\t00000000,0000000f\n"
				   "Mems_allowed_list:\t0-1\n";
	struct lift_nodeset want = fake_nodes("0-1");
	struct lift_proc_status st;

	lift_parse_status(tight(text, sizeof(text) - 1), sizeof(text) - 1, &st);
	cr_expect(st.has_rss && st.rss_bytes == 1234 * 1024);
	cr_expect(st.has_threads && st.threads == 12);
	cr_expect(st.has_seccomp && st.seccomp == 2);
	cr_expect(st.has_mems_allowed && lift_nodeset_equal(&st.mems_allowed, &want));
}

Test(procparse, status_in_part)
{
	static const struct {
		const char *text;
		const char *mems; /* NULL: none */
		bool threads;
	} rows[] = {
		{"", NULL, false},
		{"Mems_allowed:\t3\n", "0-1", false},
		{"Mems_allowed_list:\t2\nMems_allowed:\t3\n", "2", false},
		{"Mems_allowed:\t3\nMems_allowed_list:\tx\n", "0-1", false},
		{"Mems_allowed_list:\t\n", NULL, false},
		{"Mems_allowed_list:\t\nMems_allowed:\t2\n", "1", false},
		{"Mems_allowed:\tx\n", NULL, false},
		{"Threads:\t1", NULL, true},
		{"Threads:\t4294967296\n", NULL, false},
		{"Threads:\t1 2\n", NULL, false},
		{"Threads:\n", NULL, false},
		{"threads:\t1\n", NULL, false},
		{" Threads:\t1\n", NULL, false},
	};

	for (size_t i = 0; i < SIZE(rows); i++) {
		size_t len = strlen(rows[i].text);
		struct lift_proc_status st;

		memset(&st, 0xff, sizeof(st));
		lift_parse_status(tight(rows[i].text, len), len, &st);
		cr_expect_eq(st.has_mems_allowed, rows[i].mems != NULL, "row %zu", i);
		cr_expect_eq(st.has_threads, rows[i].threads, "row %zu", i);
		cr_expect_not(st.has_rss);
		cr_expect_not(st.has_seccomp);
		if (rows[i].mems) {
			struct lift_nodeset want = fake_nodes(rows[i].mems);

			cr_expect(lift_nodeset_equal(&st.mems_allowed, &want), "row %zu", i);
		}
	}
}

Test(procparse, maps_lines)
{
	static const struct {
		const char *text;
		struct lift_maps_line m;
		const char *path;
	} rows[] = {
		{"55d0c5a00000-55d0c5a02000 r--p 00000000 fe:01 1234567                    "
		 "/usr/bin/cat\n",
			{.range = {0x55d0c5a00000, 0x55d0c5a02000},
				.perms = LIFT_MAPS_READ,
				.dev_major = 0xfe,
				.dev_minor = 1,
				.inode = 1234567},
			"/usr/bin/cat"},
		{"7f0000000000-7f0000001000 rw-p 00000000 00:00 0 ",
			{.range = {0x7f0000000000, 0x7f0000001000},
				.perms = LIFT_MAPS_READ | LIFT_MAPS_WRITE},
			""},
		{"7f0000000000-7f0000001000 ---p 00000000 00:00 0",
			{.range = {0x7f0000000000, 0x7f0000001000}}, ""},
		{"1000-2000 rwxs 1000 1f:ff 9 /dev/shm/a b (deleted) ",
			{.range = {0x1000, 0x2000},
				.offset = 0x1000,
				.dev_major = 0x1f,
				.dev_minor = 0xff,
				.inode = 9,
				.perms = LIFT_MAPS_READ | LIFT_MAPS_WRITE | LIFT_MAPS_EXEC |
					 LIFT_MAPS_SHARED},
			"/dev/shm/a b (deleted) "},
		{"ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  "
		 "[vsyscall]",
			{.range = {0xffffffffff600000, 0xffffffffff601000},
				.perms = LIFT_MAPS_EXEC},
			"[vsyscall]"},
	};

	for (size_t i = 0; i < SIZE(rows); i++) {
		size_t len = strlen(rows[i].text);
		struct lift_maps_line m;

		cr_assert_eq(
			lift_parse_maps_line(tight(rows[i].text, len), len, &m), 0, "row %zu", i);
		cr_expect_eq(m.range.start, rows[i].m.range.start, "row %zu", i);
		cr_expect_eq(m.range.end, rows[i].m.range.end, "row %zu", i);
		cr_expect_eq(m.perms, rows[i].m.perms, "row %zu", i);
		cr_expect_eq(m.offset, rows[i].m.offset, "row %zu", i);
		cr_expect_eq(m.dev_major, rows[i].m.dev_major, "row %zu", i);
		cr_expect_eq(m.dev_minor, rows[i].m.dev_minor, "row %zu", i);
		cr_expect_eq(m.inode, rows[i].m.inode, "row %zu", i);
		cr_expect(lift_text_is(m.path, rows[i].path), "row %zu", i);
	}
}

Test(procparse, maps_lines_refused)
{
	static const struct {
		const char *text;
		int rc;
	} rows[] = {
		{"", -EINVAL},
		{"\n", -EINVAL},
		{"1000", -EINVAL},
		{"1000 2000 rw-p 0 0:0 0", -EINVAL},
		{"1000-", -EINVAL},
		{"1000-2000", -EINVAL},
		{"2000-1000 rw-p 0 0:0 0", -EINVAL},
		{"1000-1000 rw-p 0 0:0 0", -EINVAL},
		{"1000-2000 xw-p 0 0:0 0", -EINVAL},
		{"1000-2000 rx-p 0 0:0 0", -EINVAL},
		{"1000-2000 rwwp 0 0:0 0", -EINVAL},
		{"1000-2000 rw-x 0 0:0 0", -EINVAL},
		{"1000-2000 rw-p", -EINVAL},
		{"1000-2000 rw-pp 0 0:0 0", -EINVAL},
		{"1000-2000 rw-p x 0:0 0", -EINVAL},
		{"1000-2000 rw-p 0", -EINVAL},
		{"1000-2000 rw-p 0 x:0 0", -EINVAL},
		{"1000-2000 rw-p 0 0 0", -EINVAL},
		{"1000-2000 rw-p 0 0: 0", -EINVAL},
		{"1000-2000 rw-p 0 0:0", -EINVAL},
		{"1000-2000 rw-p 0 0:0 x", -EINVAL},
		{"1000-2000 rw-p 0 0:0 0x", -EINVAL},
		{"11111111111111111-22222222222222222 rw-p 0 0:0 0", -ERANGE},
		{"1000-22222222222222222 rw-p 0 0:0 0", -ERANGE},
		{"1000-2000 rw-p 11111111111111111 0:0 0", -ERANGE},
		{"1000-2000 rw-p 0 111111111:0 0", -ERANGE},
		{"1000-2000 rw-p 0 0:111111111 0", -ERANGE},
		{"1000-2000 rw-p 0 0:0 99999999999999999999", -ERANGE},
	};

	for (size_t i = 0; i < SIZE(rows); i++) {
		size_t len = strlen(rows[i].text);
		struct lift_maps_line m = {.inode = 4711};

		cr_expect_eq(lift_parse_maps_line(tight(rows[i].text, len), len, &m), rows[i].rc,
			"'%s'", rows[i].text);
		cr_expect_eq(m.inode, 4711);
	}
}

Test(procparse, numa_maps_policies)
{
	static const struct {
		const char *policy;
		int mode;
		const char *nodes;
	} rows[] = {
		{"default", LIFT_MPOL_DEFAULT, ""},
		{"local", LIFT_MPOL_LOCAL, ""},
		{"prefer:1", LIFT_MPOL_PREFERRED, "1"},
		{"bind:0-1,3", LIFT_MPOL_BIND, "0-1,3"},
		{"interleave:0-1", LIFT_MPOL_INTERLEAVE, "0-1"},
		{"prefer (many):0-1", LIFT_MPOL_PREFERRED_MANY, "0-1"},
		{"weighted interleave:0,2", LIFT_MPOL_WEIGHTED_INTERLEAVE, "0,2"},
		{"bind=static:0", LIFT_MPOL_BIND | LIFT_MPOL_F_STATIC_NODES, "0"},
		{"bind=relative:0", LIFT_MPOL_BIND | LIFT_MPOL_F_RELATIVE_NODES, "0"},
		{"prefer (many)=balancing:0", LIFT_MPOL_PREFERRED_MANY | LIFT_MPOL_F_NUMA_BALANCING,
			"0"},
		{"bind=static|balancing:0",
			LIFT_MPOL_BIND | LIFT_MPOL_F_STATIC_NODES | LIFT_MPOL_F_NUMA_BALANCING,
			"0"},
		{"bind", LIFT_MPOL_BIND, ""},
		{"gather:0", -1, ""},
		{"bind=odd:0", -1, ""},
		{"bind=:0", -1, ""},
		{"bind:", -1, ""},
		{"bind:x", -1, ""},
		{"bind:0,", -1, ""},
		{"bind:1024", -1, ""},
		{":0", -1, ""},
	};

	for (size_t i = 0; i < SIZE(rows); i++) {
		struct lift_nodeset want = fake_nodes(rows[i].nodes);
		struct lift_numa_maps_line m;
		char line[200];

		snprintf(line, sizeof(line), "7f00 %s anon=3 N0=3\n", rows[i].policy);
		cr_assert_eq(
			lift_parse_numa_maps_line(tight(line, strlen(line)), strlen(line), &m), 0);
		cr_expect_eq(m.mode, rows[i].mode, "'%s': %d", rows[i].policy, m.mode);
		cr_expect(lift_nodeset_equal(&m.nodes, &want), "'%s'", rows[i].policy);
		cr_expect(lift_text_is(m.policy, rows[i].policy), "'%s'", rows[i].policy);
		cr_expect_eq(m.anon_pages, 3);
		cr_expect_eq(m.nr_nodes, 1);
	}
}

/* The two policies of two words, and words that only begin like them. */
Test(procparse, numa_maps_policies_are_not_glued)
{
	static const struct {
		const char *line;
		const char *policy;
		bool heap;
	} rows[] = {
		{"7f00 prefer heap", "prefer", true},
		{"7f00 weighted heap", "weighted", true},
		{"7f00 bind:0 (many):1 heap", "bind:0", true},
		{"7f00 bind:0 interleave:1 heap", "bind:0", true},
		{"7f00 prefer", "prefer", false},
		{"7f00 prefer (many)", "prefer (many)", false},
		{"7f00 weighted  interleave", "weighted", false},
	};

	for (size_t i = 0; i < SIZE(rows); i++) {
		struct lift_numa_maps_line m;
		size_t len = strlen(rows[i].line);

		cr_assert_eq(lift_parse_numa_maps_line(tight(rows[i].line, len), len, &m), 0);
		cr_expect(lift_text_is(m.policy, rows[i].policy), "'%s'", rows[i].line);
		cr_expect_eq(m.heap, rows[i].heap, "'%s'", rows[i].line);
	}
}

Test(procparse, numa_maps_fields)
{
	static const char text[] =
		"7f3a5c000000 prefer (many):0-1 file=/dev/shm/a\\040b huge anon=10 dirty=9 "
		"mapped=8 "
		"mapmax=3 swapcache=1 active=0 writeback=2 NOTE=1 N N0=6 N1023=4 stack heap "
		"kernelpagesize_kB=2048\n";
	struct lift_numa_maps_line m;

	cr_assert_eq(
		lift_parse_numa_maps_line(tight(text, sizeof(text) - 1), sizeof(text) - 1, &m), 0);
	cr_expect_eq(m.start, 0x7f3a5c000000);
	cr_expect(lift_text_is(m.file, "/dev/shm/a\\040b"));
	cr_expect(m.heap && m.stack && m.huge);
	cr_expect_eq(m.anon_pages, 10);
	cr_expect_eq(m.dirty_pages, 9);
	cr_expect_eq(m.mapped_pages, 8);
	cr_expect_eq(m.page_bytes, 2 * LIFT_MIB);
	cr_assert_eq(m.nr_nodes, 2);
	cr_expect_eq(m.pages[0].node, 0);
	cr_expect_eq(m.pages[0].weight, 6);
	cr_expect_eq(m.pages[1].node, 1023);
	cr_expect_eq(m.pages[1].weight, 4);

	cr_assert_eq(lift_parse_numa_maps_line("0 default", 9, &m), 0);
	cr_expect(!m.heap && !m.stack && !m.huge && m.nr_nodes == 0 && m.file.len == 0);
}

Test(procparse, numa_maps_refused)
{
	static const struct {
		const char *text;
		int rc;
	} rows[] = {
		{"", -EINVAL},
		{"x default", -EINVAL},
		{"7f00", -EINVAL},
		{"7f00 ", -EINVAL},
		{"7f00  default", -EINVAL},
		{"7f00 default anon=", -EINVAL},
		{"7f00 default anon=1x", -EINVAL},
		{"7f00 default dirty=x", -EINVAL},
		{"7f00 default mapped=-1", -EINVAL},
		{"7f00 default N0", -EINVAL},
		{"7f00 default N0=", -EINVAL},
		{"7f00 default N0=1,", -EINVAL},
		{"7f00 default kernelpagesize_kB=x", -EINVAL},
		{"11111111111111111 default", -ERANGE},
		{"7f00 default N1024=1", -ERANGE},
		{"7f00 default N0=99999999999999999999", -ERANGE},
		{"7f00 default kernelpagesize_kB=18014398509481984", -ERANGE},
	};
	char many[1000];
	int len;

	for (size_t i = 0; i < SIZE(rows); i++) {
		struct lift_numa_maps_line m = {.anon_pages = 4711};
		size_t n = strlen(rows[i].text);

		cr_expect_eq(lift_parse_numa_maps_line(tight(rows[i].text, n), n, &m), rows[i].rc,
			"'%s'", rows[i].text);
		cr_expect_eq(m.anon_pages, 4711, "'%s'", rows[i].text);
	}

	len = snprintf(many, sizeof(many), "7f00 default");
	for (int i = 0; i <= LIFT_TOPO_NODES; i++) {
		struct lift_numa_maps_line m;

		len += snprintf(many + len, sizeof(many) - (size_t)len, " N%d=1", i);
		cr_expect_eq(lift_parse_numa_maps_line(many, (size_t)len, &m),
			i < LIFT_TOPO_NODES ? 0 : -ERANGE, "%d", i);
	}
}

Test(procparse, smaps)
{
	static const struct {
		const char *text;
		int rc;
	} lines[] = {
		{"560459e28000-560459e2d000 r-xp 00002000 fe:00 247134    /usr/bin/cat",
			LIFT_SMAPS_FIRST},
		{"Size:                 20 kB", LIFT_SMAPS_MORE},
		{"KernelPageSize:        4 kB", LIFT_SMAPS_MORE},
		{"Rss:                  16 kB", LIFT_SMAPS_MORE},
		{"Pss:                   8 kB", LIFT_SMAPS_MORE},
		{"Referenced:           12 kB", LIFT_SMAPS_MORE},
		{"AnonHugePages:         0 kB", LIFT_SMAPS_MORE},
		{"FilePmdMapped:         4 kB", LIFT_SMAPS_MORE},
		{"ShmemPmdMapped:        1 kB", LIFT_SMAPS_MORE},
		{"THPeligible:           0", LIFT_SMAPS_MORE},
		{"ProtectionKey:         0", LIFT_SMAPS_MORE},
		{"Something new", LIFT_SMAPS_MORE},
		{"VmFlags: rd mr mw me lo ur", LIFT_SMAPS_LAST},
	};
	struct lift_smaps vma;
	static const char *const bad[] = {
		"",
		" ",
		"560459e28000",
		"Rss: 16",
		"Rss: kB",
		"Referenced: -1 kB",
		"AnonHugePages:\t1 MB",
	};

	memset(&vma, 0xff, sizeof(vma));
	for (size_t i = 0; i < SIZE(lines); i++) {
		size_t n = strlen(lines[i].text);

		cr_expect_eq(lift_parse_smaps_line(tight(lines[i].text, n), n, &vma), lines[i].rc,
			"'%s'", lines[i].text);
	}
	cr_expect_eq(vma.range.start, 0x560459e28000);
	cr_expect_eq(vma.range.end, 0x560459e2d000);
	cr_expect_eq(vma.perms, LIFT_MAPS_READ | LIFT_MAPS_EXEC);
	cr_expect_eq(vma.kernel_page_bytes, 4096);
	cr_expect_eq(vma.rss_bytes, 16 * 1024);
	cr_expect_eq(vma.referenced_bytes, 12 * 1024);
	cr_expect_eq(vma.huge_bytes, 5 * 1024);
	cr_expect(vma.locked && vma.userfault && !vma.special);

	for (size_t i = 0; i < SIZE(bad); i++) {
		size_t n = strlen(bad[i]);

		cr_expect_eq(
			lift_parse_smaps_line(tight(bad[i], n), n, &vma), -EINVAL, "'%s'", bad[i]);
		cr_expect_eq(vma.rss_bytes, 16 * 1024, "'%s'", bad[i]);
	}
	cr_expect_eq(lift_parse_smaps_line("Rss: 18014398509481984 kB", 25, &vma), -ERANGE);

	/* the next mapping starts from nothing */
	cr_assert_eq(lift_parse_smaps_line("1000-2000 rw-s 0 0:0 0", 22, &vma), LIFT_SMAPS_FIRST);
	cr_expect_eq(vma.perms, LIFT_MAPS_READ | LIFT_MAPS_WRITE | LIFT_MAPS_SHARED);
	cr_expect(vma.rss_bytes == 0 && vma.referenced_bytes == 0 && !vma.locked);
	cr_expect_eq(lift_parse_smaps_line("VmFlags: rd pf", 14, &vma), LIFT_SMAPS_LAST);
	cr_expect(vma.special && !vma.userfault);
	cr_expect_eq(lift_parse_smaps_line("VmFlags:", 8, &vma), LIFT_SMAPS_LAST);
	cr_expect_eq(lift_parse_smaps_line("VmFlags: x", 10, &vma), LIFT_SMAPS_LAST);
}

Test(procparse, named)
{
	static const char text[] = "numa_hint_faults_local 3\nnuma_hint_faults 5\nnuma_hint\n"
				   "total_numa_faults      :      7\nbad 1x\nhuge "
				   "18446744073709551616\n";
	size_t n = sizeof(text) - 1;
	uint64_t v = 1;

	cr_assert_eq(lift_parse_named_u64(tight(text, n), n, "numa_hint_faults", &v), 0);
	cr_expect_eq(v, 5);
	cr_assert_eq(lift_parse_named_u64(text, n, "numa_hint_faults_local", &v), 0);
	cr_expect_eq(v, 3);
	cr_assert_eq(lift_parse_named_u64(text, n, "total_numa_faults", &v), 0);
	cr_expect_eq(v, 7);
	cr_expect_eq(lift_parse_named_u64(text, n, "numa_hint", &v), -ENOENT);
	cr_expect_eq(lift_parse_named_u64(text, n, "numa_hint_faults_l", &v), -ENOENT);
	cr_expect_eq(lift_parse_named_u64(text, 0, "numa_hint", &v), -ENOENT);
	cr_expect_eq(lift_parse_named_u64(text, n, "bad", &v), -EINVAL);
	cr_expect_eq(lift_parse_named_u64(text, n, "huge", &v), -ERANGE);
	cr_expect_eq(v, 7);
}
