/* /proc/PID/maps, line by line as a reader would. */
#include "fuzz.h"

#include "policy/procparse.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct lift_text rest = {.s = (const char *)data, .len = size};
	const char *end = rest.s + size;
	struct lift_text line;
	size_t seen = 0;

	while (lift_parse_line(&rest, &line)) {
		struct lift_maps_line m;

		seen += line.len + 1;
		MUST(line.s + line.len <= end);
		if (lift_parse_maps_line(line.s, line.len, &m) < 0)
			continue;
		MUST(m.range.start < m.range.end);
		MUST((m.perms & ~(LIFT_MAPS_READ | LIFT_MAPS_WRITE | LIFT_MAPS_EXEC |
					LIFT_MAPS_SHARED)) == 0);
		MUST(m.path.s >= line.s && m.path.s + m.path.len == line.s + line.len);
		MUST(m.path.len == 0 || m.path.s[0] != ' ');
	}
	/* Every byte was in some line; the last newline may be missing. */
	MUST(seen == size || seen == size + 1);
	return 0;
}
