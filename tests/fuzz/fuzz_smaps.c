/* /proc/PID/smaps, line by line, and the files of named numbers. */
#include <errno.h>

#include "fuzz.h"

#include "policy/procparse.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct lift_text rest = {.s = (const char *)data, .len = size};
	struct lift_smaps vma = {0};
	struct lift_text line;
	uint64_t v;

	while (lift_parse_line(&rest, &line)) {
		int rc = lift_parse_smaps_line(line.s, line.len, &vma);

		MUST(rc == LIFT_SMAPS_FIRST || rc == LIFT_SMAPS_MORE || rc == LIFT_SMAPS_LAST ||
			rc == -EINVAL || rc == -ERANGE);
		if (rc == LIFT_SMAPS_FIRST)
			MUST(vma.range.start < vma.range.end && vma.rss_bytes == 0);
		MUST(vma.rss_bytes % 1024 == 0 && vma.referenced_bytes % 1024 == 0 &&
			vma.huge_bytes % 1024 == 0);
	}
	if (lift_parse_named_u64((const char *)data, size, "numa_pages_migrated", &v) == 0)
		MUST(size > sizeof("numa_pages_migrated"));
	return 0;
}
