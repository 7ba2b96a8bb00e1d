/*
 * mmap, mmap64, munmap, mprotect, mremap, madvise and brk behave as the system calls do: the same
 * result, the same errno, for good arguments and for bad ones.
 */
#include <sys/mman.h>
#include <sys/syscall.h>

#include "victim.h"

static int file;

struct outcome {
	int error;
	int aligned;
};

static struct outcome of(void *result, size_t length)
{
	struct outcome out = {.error = result == MAP_FAILED ? errno : 0};

	if (!out.error && length)
		syscall(SYS_munmap, result, length);
	return out;
}

static void compare(size_t length, int prot, int flags, int fd, off_t offset)
{
	errno = 0;
	struct outcome raw =
		of((void *)syscall(SYS_mmap, NULL, length, prot, flags, fd, offset), length);

	errno = 0;
	struct outcome one = of(mmap(NULL, length, prot, flags, fd, offset), length);

	errno = 0;
	struct outcome two = of(mmap64(NULL, length, prot, flags, fd, offset), length);

	if (raw.error != one.error || raw.error != two.error)
		FAIL("mmap(%#zx, %#x, %#x, %d, %#lx): errno %d and %d, the kernel says %d", length,
			(unsigned)prot, (unsigned)flags, fd, (unsigned long)offset, one.error,
			two.error, raw.error);
}

static void all_mappings(void)
{
	/* 900 MiB fit into the space of MAP_32BIT, whose start is random by up to 32 of 1024 MiB */
	static const size_t length[] = {0, 1, 4096, 5000, 2 * MIB, 900 * MIB, (size_t)1 << 47,
		SIZE_MAX - 4095, SIZE_MAX, (size_t)PTRDIFF_MAX + 1};
	static const int flags[] = {MAP_PRIVATE | MAP_ANONYMOUS, MAP_SHARED | MAP_ANONYMOUS,
		MAP_PRIVATE, MAP_SHARED, 0, MAP_ANONYMOUS, MAP_PRIVATE | MAP_SHARED,
		MAP_SHARED_VALIDATE, MAP_SHARED_VALIDATE | MAP_ANONYMOUS | (1 << 24),
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK | MAP_GROWSDOWN, MAP_PRIVATE | MAP_SYNC,
		MAP_SHARED_VALIDATE | MAP_SYNC, MAP_PRIVATE | MAP_FIXED | MAP_ANONYMOUS};
	static const int prot[] = {PROT_NONE, PROT_READ, PROT_READ | PROT_WRITE,
		PROT_READ | PROT_WRITE | PROT_EXEC, 0x80};
	static const off_t offset[] = {0, 4096, 1, -4096, INT64_MAX & ~4095L};

	for (size_t l = 0; l < sizeof(length) / sizeof(length[0]); l++)
		for (size_t f = 0; f < sizeof(flags) / sizeof(flags[0]) - 1; f++)
			for (size_t p = 0; p < sizeof(prot) / sizeof(prot[0]); p++)
				for (size_t o = 0; o < sizeof(offset) / sizeof(offset[0]); o++) {
					compare(length[l], prot[p], flags[f], file, offset[o]);
					if (o == 0) {
						compare(length[l], prot[p], flags[f], -1, 0);
						compare(length[l], prot[p], flags[f], 9999, 0);
						compare(length[l], prot[p], flags[f], 0, 0);
					}
				}
}

#define SAME(call, raw)                                                                            \
	do {                                                                                       \
		errno = 0;                                                                         \
		long got_ = (long)(call);                                                          \
		int error_ = errno;                                                                \
		errno = 0;                                                                         \
		long want_ = (long)(raw);                                                          \
		if (got_ != want_ || error_ != errno)                                              \
			FAIL("%s: %ld with errno %d, the kernel: %ld with %d", #call, got_,        \
				error_, want_, errno);                                             \
	} while (0)

int main(void)
{
	char *page = mmap(NULL, 16384, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *gap = page + 8192;

	file = memfd_create("map", 0);
	CHECK(page != MAP_FAILED && file >= 0 && !ftruncate(file, 4 * 1024 * 1024));
	CHECK(!munmap(gap, 4096));
	all_mappings();
	SAME(munmap(page + 1, 4096), syscall(SYS_munmap, page + 1, 4096));
	SAME(munmap(page, 0), syscall(SYS_munmap, page, 0));
	SAME(munmap(NULL, SIZE_MAX), syscall(SYS_munmap, NULL, SIZE_MAX));
	SAME(munmap(gap, 4096), syscall(SYS_munmap, gap, 4096));
	SAME(munmap((void *)-4096L, 4096), syscall(SYS_munmap, (void *)-4096L, 4096));
	SAME(mprotect(page + 1, 4096, 1), syscall(SYS_mprotect, page + 1, 4096, 1));
	SAME(mprotect(gap, 4096, PROT_READ), syscall(SYS_mprotect, gap, 4096, PROT_READ));
	SAME(mprotect(page, 4096, 0x7000), syscall(SYS_mprotect, page, 4096, 0x7000));
	SAME(mremap(page + 1, 4096, 8192, 1), syscall(SYS_mremap, page + 1, 4096, 8192, 1));
	SAME(mremap(gap, 4096, 8192, MREMAP_MAYMOVE), syscall(SYS_mremap, gap, 4096, 8192, 1));
	SAME(mremap(page, 4096, 0, 0), syscall(SYS_mremap, page, 4096, 0, 0));
	SAME(mremap(page, 4096, 8192, 0x80), syscall(SYS_mremap, page, 4096, 8192, 0x80));
	SAME(mremap(page, 4096, 4096, MREMAP_FIXED, page),
		syscall(SYS_mremap, page, 4096, 4096, MREMAP_FIXED, page));
	SAME(mremap(page, 8192, 8192, MREMAP_FIXED | MREMAP_MAYMOVE, page + 4096),
		syscall(SYS_mremap, page, 8192, 8192, 3, page + 4096));
	SAME(mremap(page, 4096, (size_t)1 << 48, MREMAP_MAYMOVE),
		syscall(SYS_mremap, page, 4096, (size_t)1 << 48, 1));
	for (int advice = -1; advice < 110; advice++)
		if (advice != MADV_HWPOISON && advice != 101 /* SOFT_OFFLINE */) {
			SAME(madvise(gap, 4096, advice), syscall(SYS_madvise, gap, 4096, advice));
			SAME(madvise(page + 3, 4096, advice),
				syscall(SYS_madvise, page + 3, 4096, advice));
			SAME(madvise(page, 4096, advice), syscall(SYS_madvise, page, 4096, advice));
		}
	return pass();
}
