/* Programs that reserve terabytes of addresses and commit pieces of them, as run-time systems do.
 */
#include <sys/mman.h>

#include "victim.h"

enum { PIECES = 600 };

int main(void)
{
	const size_t size = (size_t)2 << 40;
	const int none = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
	char *range = mmap(NULL, size, PROT_NONE, none, -1, 0);

	if (range == MAP_FAILED)
		SKIP("2 TiB of addresses cannot be reserved, errno %d", errno);
	long before = status_kb("VmRSS:");

	for (int round = 0; round < 3; round++) {
		for (size_t i = 0; i < PIECES; i++) {
			char *piece = range + i * (size / PIECES / MIB * MIB);

			if (i % 2)
				CHECK(!mprotect(piece, 64 * KIB, PROT_READ | PROT_WRITE));
			else
				CHECK(mmap(piece, 64 * KIB, PROT_READ | PROT_WRITE,
					      none | MAP_FIXED, -1, 0) == piece);
			CHECK(piece[0] == 0);
			memset(piece, (int)i, 64 * KIB);
		}
		exercise_heap((unsigned)round, 1000);
		for (size_t i = 0; i < PIECES; i++) {
			char *piece = range + i * (size / PIECES / MIB * MIB);

			CHECK(piece[64 * KIB - 1] == (char)i);
			CHECK(!madvise(piece, 64 * KIB, MADV_DONTNEED) && piece[5] == 0);
			if (i % 2)
				CHECK(!mprotect(piece, 64 * KIB, PROT_NONE));
			else
				CHECK(mmap(piece, 64 * KIB, PROT_NONE, none | MAP_FIXED, -1, 0) ==
					piece);
		}
	}
	if (status_kb("VmRSS:") > before + 60000)
		FAIL("%ld kB resident after everything was given back", status_kb("VmRSS:"));
	CHECK(!munmap(range, size / 2) && !munmap(range + size / 2, size / 2));
	char *again = mmap(range + GIB, 64 * MIB, PROT_READ | PROT_WRITE, none, -1, 0);

	CHECK(again == range + GIB); /* the space is free, so a hint into it holds */
	return pass();
}
