// SPDX-License-Identifier: MIT
#include "shim/os/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>

#include "shim/os/rawsys.h"

/* The kernel reads maxnode - 1 bits: one more than there are (get_mempolicy(2), BUGS). */
#define MASK_BITS (LIFT_MAX_NODES + 1L)

#define CALL(nr, a, b, c, d, e, f)                                                                 \
	lift_syscall(nr, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))

long lift_sys_mmap(void *addr, size_t len, int prot, int flags, int fd, off_t off)
{
	return CALL(SYS_mmap, addr, len, prot, flags, fd, off);
}

long lift_sys_mmap_apart(size_t len, int flags)
{
	/*
	 * Between 40 and 56 TiB, beyond mimalloc's hints, at a place as random as the library's;
	 * each a GiB further than the one before. Where it is taken, or there is no such address,
	 * the kernel chooses.
	 */
	static _Atomic uintptr_t nr;
	uintptr_t random = ((uintptr_t)&nr >> 12) * UINT64_C(0x9e3779b97f4a7c15) >> 50;
	uintptr_t gib = (random + atomic_fetch_add_explicit(&nr, 1, memory_order_relaxed)) % 16384;
	uintptr_t hint = ((uintptr_t)40 << 40) + (gib << 30);

	return lift_sys_mmap((void *)hint, len, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
}

long lift_sys_munmap(void *addr, size_t len)
{
	return CALL(SYS_munmap, addr, len, 0, 0, 0, 0);
}

long lift_sys_mremap(void *old, size_t old_len, size_t new_len, int flags, void *new_addr)
{
	return CALL(SYS_mremap, old, old_len, new_len, flags, new_addr, 0);
}

/* ld.so's note of where the main thread's stack begins: mapped as long as the process lives. */
extern void *__libc_stack_end;

bool lift_sys_within_mapping(uintptr_t at, size_t len)
{
	uintptr_t top = (uintptr_t)__libc_stack_end;
	long ret;

	if (at >= top || len >= top - at)
		return true;
	/* Growth into the stack is refused at any rate; over the end of a mapping otherwise. */
	ret = lift_sys_mremap((void *)at, len, top - at, 0, NULL);
	if (!lift_syserr(ret))
		(void)lift_sys_mremap((void *)at, top - at, len, 0, NULL);
	return ret != -EFAULT;
}

long lift_sys_mprotect(void *addr, size_t len, int prot)
{
	return CALL(SYS_mprotect, addr, len, prot, 0, 0, 0);
}

long lift_sys_madvise(void *addr, size_t len, int advice)
{
	return CALL(SYS_madvise, addr, len, advice, 0, 0, 0);
}

long lift_sys_mbind(
	void *addr, size_t len, int mode, const struct lift_nodeset *nodes, unsigned flags)
{
	return CALL(SYS_mbind, addr, len, mode, nodes ? nodes->bits : NULL, nodes ? MASK_BITS : 0,
		flags);
}

long lift_sys_set_mempolicy(int mode, const struct lift_nodeset *nodes)
{
	return CALL(SYS_set_mempolicy, mode, nodes ? nodes->bits : NULL, nodes ? MASK_BITS : 0, 0,
		0, 0);
}

long lift_sys_get_mempolicy(int *ret_mode, struct lift_nodeset *ret_nodes, void *addr)
{
	enum { F_ADDR = 2 };

	return CALL(SYS_get_mempolicy, ret_mode, ret_nodes ? ret_nodes->bits : NULL,
		ret_nodes ? MASK_BITS : 0, addr, addr ? F_ADDR : 0, 0);
}

long lift_sys_move_pages(
	size_t nr, const uintptr_t *pages, const int *nodes, int *ret_status, unsigned flags)
{
	return CALL(SYS_move_pages, 0, nr, pages, nodes, ret_status, flags);
}

long lift_sys_page_node(uintptr_t addr)
{
	enum { F_NODE = 1, F_ADDR = 2 };
	int node;
	long ret = CALL(SYS_get_mempolicy, &node, NULL, 0, addr, F_NODE | F_ADDR, 0);

	return ret < 0 ? ret : node;
}

long lift_sys_mincore(uintptr_t addr, size_t len, unsigned char *ret)
{
	return CALL(SYS_mincore, addr, len, ret, 0, 0, 0);
}

int lift_sys_cpu_node(void)
{
	unsigned cpu;
	unsigned node = 0;
	long ret = CALL(SYS_getcpu, &cpu, &node, 0, 0, 0, 0);

	return ret < 0 ? (int)ret : (int)node;
}

long lift_sys_read_file(const char *path, char *buf, size_t size)
{
	long fd = CALL(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0, 0, 0);
	size_t have = 0;
	long n = 0;

	if (fd < 0)
		return fd;
	/* /proc and /sys may hand out a file in pieces. */
	while (have + 1 < size) {
		n = CALL(SYS_read, fd, buf + have, size - 1 - have, 0, 0, 0);
		if (n == -EINTR)
			continue;
		if (n <= 0)
			break;
		have += (size_t)n;
	}
	CALL(SYS_close, fd, 0, 0, 0, 0, 0);
	if (n < 0)
		return n;
	buf[have] = '\0';
	return (long)have;
}

long lift_sys_write(int fd, const void *buf, size_t len)
{
	return CALL(SYS_write, fd, buf, len, 0, 0, 0);
}

long lift_sys_close(int fd)
{
	return CALL(SYS_close, fd, 0, 0, 0, 0, 0);
}

int lift_sys_borrow_fd(int fd)
{
	long self = CALL(SYS_pidfd_open, lift_sys_getpid(), 0, 0, 0, 0, 0);
	long ret;

	if (self < 0)
		return (int)self;
	ret = CALL(SYS_pidfd_getfd, self, fd, 0, 0, 0, 0);
	(void)lift_sys_close((int)self);
	return (int)ret;
}

bool lift_sys_can_write(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLOUT};
	struct timespec now = {0, 0};

	return CALL(SYS_ppoll, &p, 1, &now, NULL, 0, 0) == 1 && p.revents == POLLOUT;
}

long lift_sys_fs_type(int fd)
{
	struct statfs st;
	long ret = CALL(SYS_fstatfs, fd, &st, 0, 0, 0, 0);

	return ret < 0 ? ret : (long)st.f_type;
}

bool lift_sys_limited_memory(void)
{
	struct rlimit as;
	struct rlimit data;

	return CALL(SYS_prlimit64, 0, RLIMIT_AS, NULL, &as, 0, 0) != 0 ||
	       CALL(SYS_prlimit64, 0, RLIMIT_DATA, NULL, &data, 0, 0) != 0 ||
	       as.rlim_cur != RLIM_INFINITY || data.rlim_cur != RLIM_INFINITY;
}

long lift_sys_block_size(int fd)
{
	struct stat st;
	long ret = CALL(SYS_fstat, fd, &st, 0, 0, 0, 0);

	return ret < 0 ? ret : S_ISREG(st.st_mode) ? (long)st.st_blksize : -EINVAL;
}

bool lift_sys_file_id(int fd, uint64_t *ret_dev, uint64_t *ret_ino)
{
	struct stat st;

	if (CALL(SYS_fstat, fd, &st, 0, 0, 0, 0) < 0)
		return false;
	*ret_dev = st.st_dev;
	*ret_ino = st.st_ino;
	return true;
}

uint64_t lift_sys_block_signals(void)
{
	uint64_t all = UINT64_MAX;
	uint64_t was = 0;

	CALL(SYS_rt_sigprocmask, SIG_SETMASK, &all, &was, sizeof(all), 0, 0);
	return was;
}

void lift_sys_restore_signals(uint64_t mask)
{
	CALL(SYS_rt_sigprocmask, SIG_SETMASK, &mask, NULL, sizeof(mask), 0, 0);
}

bool lift_sys_futex_wait(_Atomic uint32_t *word, uint32_t val, int timeout_ms)
{
	struct timespec ts = {timeout_ms / 1000, timeout_ms % 1000 * 1000000L};

	return CALL(SYS_futex, word, FUTEX_WAIT_PRIVATE, val, &ts, NULL, 0) != -ETIMEDOUT;
}

void lift_sys_futex_wake(_Atomic uint32_t *word, int count)
{
	CALL(SYS_futex, word, FUTEX_WAKE_PRIVATE, count, NULL, NULL, 0);
}

void lift_sys_yield(void)
{
	CALL(SYS_sched_yield, 0, 0, 0, 0, 0, 0);
}

pid_t lift_sys_gettid(void)
{
	return (pid_t)CALL(SYS_gettid, 0, 0, 0, 0, 0, 0);
}

static uint64_t clock_ns(clockid_t id)
{
	struct timespec ts;

	if (CALL(SYS_clock_gettime, id, &ts, 0, 0, 0, 0) != 0)
		return 0;
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

uint64_t lift_sys_thread_cpu_ns(void)
{
	return clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

uint64_t lift_sys_process_cpu_ns(void)
{
	return clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}
