/*
 * The statistics page as another process left it. The checksum is put right first, since nothing
 * would get past it otherwise.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"

#include "policy/stats_page.h"

#define SEQUENCE_AT 160
#define BODY_AT 176

static void seal(uint8_t *p, size_t n)
{
	uint64_t sum = UINT64_C(0xcbf29ce484222325);

	for (size_t i = 0; i + 8 <= n; i += 8) {
		uint64_t word;

		if (i == SEQUENCE_AT || i == SEQUENCE_AT + 8)
			continue;
		memcpy(&word, p + i, 8);
		sum = (sum ^ word) * UINT64_C(0x100000001b3);
		sum ^= sum >> 29;
	}
	memcpy(p + SEQUENCE_AT + 8, &sum, 8);
}

static void check(const uint8_t *page, size_t n)
{
	static struct lift_stats_view v;
	enum lift_page_error error = lift_stats_page_read(page, n, &v);

	MUST(error < LIFT_PAGE_ERROR_MAX);
	MUST(memchr(v.owner.program, 0, sizeof(v.owner.program)));
	MUST(memchr(v.stats.sampler, 0, sizeof(v.stats.sampler)));
	MUST(memchr(v.stats.reason, 0, sizeof(v.stats.reason)));
	MUST(v.stats.nr_nodes <= LIFT_SLOTS);
	if (error == LIFT_PAGE_OK)
		MUST(v.version == LIFT_STATS_VERSION && v.total_bytes == n && v.sequence % 2 == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *copy;
	uint64_t start;
	char state;
	int rc;

	check(data, size);
	if (size >= BODY_AT) {
		copy = malloc(size);
		MUST(copy);
		memcpy(copy, data, size);
		seal(copy, size);
		check(copy, size);
		free(copy);
	}
	rc = lift_stats_start_time((const char *)data, size, &state, &start);
	MUST(rc == 0 || rc == -EINVAL);
	return 0;
}
