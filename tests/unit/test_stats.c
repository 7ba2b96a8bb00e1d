#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include "policy/stats_page.h"

/* Where the head says things are: offsets in it, and what follows. */
#define VERSION_AT 8
#define HEAD_BYTES_AT 12
#define TOTAL_AT 16
#define PROGRAM_AT 48
#define LAYOUT_AT 112
#define SEQUENCE_AT 160
#define CHECKSUM_AT 168
#define BODY_AT 176

static const struct lift_stats_owner owner = {
	.pid = 4711,
	.uid = 1000,
	.start_time = 123456789,
	.pid_ns = 4026531836,
	.program = "memcached",
};

static uint8_t page[LIFT_STATS_PAGE_BYTES];
static struct lift_stats_view view;

static void set(struct lift_stats *s, unsigned figure, uint64_t value)
{
	memcpy((char *)s + lift_stats_table[figure].at, &value, sizeof(value));
}

/* No figure is like another. */
static struct lift_stats *sample(void)
{
	static struct lift_stats s;

	memset(&s, 0, sizeof(s));
	for (unsigned i = 0; i < LIFT_STATS_NR; i++)
		set(&s, i, UINT64_MAX - i * UINT64_C(0x123456789));
	strcpy(s.sampler, "rwp");
	strcpy(s.reason, "because");
	s.nr_nodes = LIFT_SLOTS;
	for (unsigned i = 0; i < LIFT_SLOTS; i++)
		s.node[i] = (struct lift_stats_node){
			.node = (int32_t)(i * 3),
			.fast = i % 2,
			.usable = i % 3 == 0,
			.pages_here = i * UINT64_C(1000000000000),
			.free_bytes = UINT64_MAX - i,
		};
	return &s;
}

static void start(void)
{
	lift_stats_page_init(page, &owner);
	lift_stats_page_fill(page, sample());
}

/* Copied to the end of an allocation, so that a tool that watches bounds sees a read past it. */
static enum lift_page_error read_tight(const uint8_t *from, size_t n)
{
	uint8_t *copy = malloc(n ? n : 1);
	enum lift_page_error error;

	cr_assert(copy);
	memcpy(copy, from, n);
	error = lift_stats_page_read(copy, n, &view);
	free(copy);
	return error;
}

static void seal(uint8_t *p, size_t n)
{
	uint64_t sum = UINT64_C(0xcbf29ce484222325);

	for (size_t i = 0; i < n; i += 8) {
		uint64_t word;

		if (i == SEQUENCE_AT || i == CHECKSUM_AT)
			continue;
		memcpy(&word, p + i, 8);
		sum = (sum ^ word) * UINT64_C(0x100000001b3);
		sum ^= sum >> 29;
	}
	memcpy(p + CHECKSUM_AT, &sum, 8);
}

static void put32(size_t at, uint32_t value)
{
	memcpy(page + at, &value, sizeof(value));
}

Test(stats, table_names_every_field_once)
{
	struct lift_stats s;

	memset(&s, 0, sizeof(s));
	for (unsigned i = 0; i < LIFT_STATS_NR; i++) {
		const struct lift_stats_row *row = &lift_stats_table[i];

		set(&s, i, i + 1);
		cr_expect_eq(lift_stats_get(&s, (enum lift_stats_figure)i), i + 1);
		cr_expect(row->section < LIFT_STATS_SECTION_MAX && *row->meaning, "%s", row->name);
		for (unsigned k = 0; k < i; k++)
			cr_expect_str_neq(row->name, lift_stats_table[k].name);
	}
	cr_expect_eq(s.state, LIFT_STATS_state + 1);
	cr_expect_eq(s.pgpromote_success, LIFT_STATS_pgpromote_success + 1);
	cr_expect_eq(s.kernel_numa_hint_faults, LIFT_STATS_NR);
}

Test(stats, units_are_what_names_say)
{
	for (unsigned i = 0; i < LIFT_STATS_NR; i++) {
		const struct lift_stats_row *row = &lift_stats_table[i];
		size_t len = strlen(row->name);

		if (len > 3 && strcmp(row->name + len - 3, "_ns") == 0)
			cr_expect_eq(row->unit, LIFT_STATS_UNIT_NS, "%s", row->name);
		if (len > 6 && strcmp(row->name + len - 6, "_bytes") == 0)
			cr_expect_eq(row->unit, LIFT_STATS_UNIT_BYTES, "%s", row->name);
		if (len > 6 && strcmp(row->name + len - 6, "_pages") == 0)
			cr_expect_eq(row->unit, LIFT_STATS_UNIT_PAGES, "%s", row->name);
	}
}

Test(stats, words)
{
	cr_expect_str_eq(lift_stats_state_name(LIFT_STATS_WAITING), "waiting");
	cr_expect_str_eq(lift_stats_state_name(LIFT_STATS_OFF), "off");
	cr_expect_str_eq(lift_stats_state_name(LIFT_STATS_STATE_MAX), "?");
	cr_expect_str_eq(lift_stats_state_name(UINT64_MAX), "?");
	cr_expect_str_eq(lift_stats_mode_name(LIFT_STATS_MODE_TRACK), "track");
	cr_expect_str_eq(lift_stats_mode_name(7), "?");
}

Test(stats, page_round_trip, .init = start)
{
	cr_assert_eq(read_tight(page, sizeof(page)), LIFT_PAGE_OK);
	cr_expect_eq(view.version, LIFT_STATS_VERSION);
	cr_expect_eq(view.total_bytes, LIFT_STATS_PAGE_BYTES);
	cr_expect_eq(memcmp(&view.owner, &owner, sizeof(owner)), 0);
	cr_expect_eq(memcmp(&view.stats, sample(), sizeof(view.stats)), 0);
	for (unsigned i = 0; i < LIFT_STATS_NR; i++)
		cr_expect(view.has[i]);
}

Test(stats, page_that_was_only_begun)
{
	lift_stats_page_init(page, &owner);
	cr_assert_eq(read_tight(page, sizeof(page)), LIFT_PAGE_OK);
	cr_expect_eq(view.stats.state, LIFT_STATS_WAITING);
	cr_expect_eq(view.stats.nr_nodes, 0);
	cr_expect_eq(view.sequence, 0);
}

Test(stats, texts_that_are_too_long)
{
	struct lift_stats_owner who = owner;
	struct lift_stats *s = sample();

	memset(who.program, 'p', sizeof(who.program));
	memset(s->sampler, 's', sizeof(s->sampler));
	memset(s->reason, 'r', sizeof(s->reason));
	s->nr_nodes = 1000;
	lift_stats_page_init(page, &who);
	lift_stats_page_fill(page, s);
	cr_assert_eq(read_tight(page, sizeof(page)), LIFT_PAGE_OK);
	cr_expect_eq(strlen(view.owner.program), LIFT_STATS_PROGRAM - 1);
	cr_expect_eq(strlen(view.stats.sampler), LIFT_STATS_SAMPLER - 1);
	cr_expect_eq(strlen(view.stats.reason), LIFT_STATS_REASON - 1);
	cr_expect_eq(view.stats.nr_nodes, LIFT_SLOTS);
}

Test(stats, every_length, .init = start)
{
	cr_expect_eq(read_tight(page, 0), LIFT_PAGE_EMPTY);
	for (size_t n = 1; n < sizeof(page); n++) {
		cr_assert_eq(read_tight(page, n), LIFT_PAGE_SIZE, "%zu", n);
		cr_assert_eq(view.total_bytes, n < LAYOUT_AT ? 0 : LIFT_STATS_PAGE_BYTES, "%zu", n);
	}
}

Test(stats, every_byte, .init = start)
{
	for (size_t i = 0; i < sizeof(page); i++) {
		enum lift_page_error error;

		page[i] ^= 0x11;
		error = read_tight(page, sizeof(page));
		/* The sequence says nothing about what is in the page. */
		if (i > SEQUENCE_AT && i < CHECKSUM_AT)
			cr_assert_eq(error, LIFT_PAGE_OK, "%zu", i);
		else
			cr_assert_neq(error, LIFT_PAGE_OK, "%zu", i);
		page[i] ^= 0x11;
	}
}

Test(stats, sequence, .init = start)
{
	cr_assert_eq(lift_stats_page_sequence_at(), SEQUENCE_AT);
	for (uint64_t n = 0; n < 6; n++) {
		lift_stats_page_set_sequence(page, n);
		cr_expect_eq(read_tight(page, sizeof(page)), n % 2 ? LIFT_PAGE_BUSY : LIFT_PAGE_OK);
		cr_expect_eq(view.sequence, n);
	}
}

Test(stats, what_is_no_page, .init = start)
{
	static const uint8_t zeros[LIFT_STATS_PAGE_BYTES];

	cr_expect_eq(read_tight(zeros, sizeof(zeros)), LIFT_PAGE_EMPTY);
	cr_expect_eq(read_tight((const uint8_t *)"x", 1), LIFT_PAGE_FOREIGN);
	cr_expect_eq(read_tight((const uint8_t *)"liftstax", 8), LIFT_PAGE_FOREIGN);
	put32(VERSION_AT, 2);
	cr_expect_eq(read_tight(page, sizeof(page)), LIFT_PAGE_VERSION);
	cr_expect_eq(view.version, 2);
	/* Whose it is can be told of any version. */
	cr_expect_eq(lift_stats_page_owner(page, sizeof(page), &view.owner), LIFT_PAGE_OK);
	cr_expect_eq(view.owner.pid, owner.pid);
}

Test(stats, places_outside, .init = start)
{
	static const uint32_t values[] = {
		LIFT_STATS_PAGE_BYTES + 8, UINT32_MAX, 0x80000000, 0x7fffffff};

	for (size_t at = HEAD_BYTES_AT; at < SEQUENCE_AT; at += at == HEAD_BYTES_AT ? 100 : 4) {
		for (unsigned i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
			uint32_t was;

			memcpy(&was, page + at, 4);
			put32(at, values[i]);
			seal(page, sizeof(page));
			cr_expect_eq(
				read_tight(page, sizeof(page)), LIFT_PAGE_LAYOUT, "at %zu", at);
			put32(at, was);
		}
	}
	seal(page, sizeof(page));
	cr_expect_eq(read_tight(page, sizeof(page)), LIFT_PAGE_OK);
}

/* A newer writer: its head is longer, its nodes are, and it has figures that nobody knows. */
Test(stats, a_later_table, .init = start)
{
	static uint8_t later[LIFT_STATS_PAGE_BYTES];
	static const char names[3][32] = {"novelty", "pgdemote", "state"};
	static const uint64_t values[3] = {7, 42, LIFT_STATS_SETTLED};
	static const uint32_t layout[12] = {/* figures */ 3, 256, 512, 32, /* nodes */ 1024, 1032,
		32, 2, /* sampler */ 1100, 2, /* reason */ 1100, 0};
	uint64_t nr_nodes = 2;
	int32_t node = 5;

	memcpy(later, page, BODY_AT);
	memcpy(later + LAYOUT_AT, layout, sizeof(layout));
	*(uint32_t *)(void *)(later + HEAD_BYTES_AT) = 256;
	memcpy(later + 256, values, sizeof(values));
	memcpy(later + 512, names, sizeof(names));
	memcpy(later + 1024, &nr_nodes, 8);
	memcpy(later + 1032 + 32, &node, 4);
	memcpy(later + 1100, "wp", 2);
	seal(later, sizeof(later));
	cr_assert_eq(read_tight(later, sizeof(later)), LIFT_PAGE_OK);
	cr_expect_eq(view.stats.pgdemote, 42);
	cr_expect_eq(view.stats.state, LIFT_STATS_SETTLED);
	cr_expect(view.has[LIFT_STATS_pgdemote] && view.has[LIFT_STATS_state]);
	cr_expect_not(view.has[LIFT_STATS_mode]);
	cr_expect_eq(view.stats.nr_nodes, 2);
	cr_expect_eq(view.stats.node[1].node, 5);
	cr_expect_str_eq(view.stats.sampler, "wp");
	cr_expect_str_eq(view.stats.reason, "");
}

Test(stats, start_time)
{
	static const struct {
		const char *text;
		int rc;
		char state;
		uint64_t start;
	} t[] = {
		{"7 (cat) R 1 7 7 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 99 5 6", 0, 'R', 99},
		{"7 (a) S 1) Z 1 7 7 0 -1 4194304 1 2 3 4 5 6 7 8 20 -5 1 0 99", 0, 'Z', 99},
		{"7 () S 1 7 7 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 18446744073709551615\n", 0,
			'S', UINT64_MAX},
		{"7 () S 1 7 7 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 18446744073709551616", -EINVAL,
			0, 0},
		{"7 (cat) R 1 7 7 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0", -EINVAL, 0, 0},
		{"7 (cat) R 1 x 7 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 99", -EINVAL, 0, 0},
		{"7 (cat)", -EINVAL, 0, 0},
		{"7 (cat) ", -EINVAL, 0, 0},
		{")", -EINVAL, 0, 0},
		{"7 cat R 1", -EINVAL, 0, 0},
		{"", -EINVAL, 0, 0},
	};

	for (unsigned i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		uint64_t begun = 0;
		char state = 0;

		cr_expect_eq(lift_stats_start_time(t[i].text, strlen(t[i].text), &state, &begun),
			t[i].rc, "%s", t[i].text);
		cr_expect(state == t[i].state && begun == t[i].start, "%s", t[i].text);
	}
}
