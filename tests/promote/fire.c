// SPDX-License-Identifier: MIT
/*
 * Memory that is checked while it is moved: every word follows from its piece, page and generation,
 * so whatever is lost, doubled or mixed up shows. Meanwhile everything is done to it that a program
 * can do to memory, and another third of it is hot every few seconds.
 *
 *   fire SECONDS SLOW [MOVES MOST [goes]]
 *
 * SLOW is the node that counts as slow. With MOVES it goes on until so many pages have been seen to
 * go up and so many down, for MOST seconds at most. Prints one line of figures each; exit status 1
 * when a word was wrong. Knows nothing of numalift: whether pages move is seen by asking the kernel
 * where they are. "goes": the slow node may go meanwhile, so nothing is bound to it.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/mempolicy.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/numa/where.h"

#ifndef MADV_COLD
#define MADV_COLD 20
#endif
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

#define PAGE 4096ul
#define WORDS (PAGE / 8)
#define MAX_PAGES 512u
#define THREADS 3
#define OWN 20    /* pieces of each thread, which it does things to */
#define CALM 72   /* pieces that are only read and written, to see them move */
#define SHARED 6  /* seen by children, too */
#define BOUND 6   /* where the program has put them */
#define BLOCKS 96 /* of malloc, each thread */

struct piece {
	char *at;
	unsigned id;
	unsigned pages;
	bool apart;              /* not like other mappings, with which it will not merge */
	unsigned gen[MAX_PAGES]; /* 0: never written, so zero */
};

static struct piece own[THREADS][OWN];
static struct piece calm[CALM];
static struct piece shared[SHARED];
static struct piece bound[BOUND];
static int stays[BOUND][MAX_PAGES]; /* where these have to be; below 0: not said */
/* Taken for writing nothing is under way. */
static pthread_rwlock_t no_fork = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;
/* Taken for writing there is a hole that is to be filled again: nobody else may map anything there.
 */
static pthread_rwlock_t no_hole = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;
static _Atomic bool over;
static _Atomic unsigned wrong;
static _Atomic unsigned long ops;
static _Atomic unsigned long checked;
static _Atomic unsigned refused; /* calls that would have worked on one mapping */
static unsigned slow;
static time_t began;

static time_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec;
}

static uint64_t draw(uint64_t *s)
{
	*s ^= *s << 13;
	*s ^= *s >> 7;
	*s ^= *s << 17;
	return *s;
}

static unsigned below(uint64_t *s, unsigned n)
{
	return (unsigned)((draw(s) >> 33) % n);
}

static uint64_t value(const struct piece *p, unsigned page, unsigned word)
{
	uint64_t x = ((uint64_t)p->id << 40 ^ (uint64_t)page << 24 ^ p->gen[page]) + 1;

	return p->gen[page] ? (x * 0x9e3779b97f4a7c15u ^ word) * 0xbf58476d1ce4e5b9u : 0;
}

static void complain(
	const struct piece *p, unsigned page, unsigned word, uint64_t have, const char *when)
{
	if (atomic_fetch_add(&wrong, 1) < 5)
		fprintf(stderr, "wrong: piece %u page %u word %u (%p): %016llx for %016llx, %s\n",
			p->id, page, word, (void *)(p->at + page * PAGE), (unsigned long long)have,
			(unsigned long long)value(p, page, word), when);
}

/* Every step-th word. */
static void check_page(const struct piece *p, unsigned page, unsigned step, const char *when)
{
	const volatile uint64_t *w = (const volatile uint64_t *)(p->at + page * PAGE);

	for (unsigned i = page % step; i < WORDS; i += step) {
		uint64_t have = w[i];

		if (have != value(p, page, i)) {
			complain(p, page, i, have, when);
			return;
		}
	}
	atomic_fetch_add_explicit(&checked, 1, memory_order_relaxed);
}

static void check(const struct piece *p, unsigned step, const char *when)
{
	for (unsigned i = 0; i < p->pages; i++)
		check_page(p, i, step, when);
}

static void fill_buffer(const struct piece *p, unsigned page, uint64_t *to)
{
	for (unsigned i = 0; i < WORDS; i++)
		to[i] = value(p, page, i);
}

static void write_page(struct piece *p, unsigned page)
{
	p->gen[page]++;
	fill_buffer(p, page, (uint64_t *)(p->at + page * PAGE));
}

static void write_all(struct piece *p)
{
	for (unsigned i = 0; i < p->pages; i++)
		write_page(p, i);
}

static char *map(size_t pages, int prot)
{
	char *p = mmap(NULL, pages * PAGE, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		where_die("mmap");
	return p;
}

static void make(struct piece *p, unsigned pages)
{
	p->pages = pages;
	p->apart = false;
	p->at = map(pages, PROT_READ | PROT_WRITE);
	memset(p->gen, 0, sizeof(p->gen));
	write_all(p);
}

/* --- faults that are wanted --- */

static __thread char *window;
static __thread size_t window_bytes;
static __thread volatile unsigned faults;

static void on_fault(int sig, siginfo_t *info, void *context)
{
	char *at = info->si_addr;

	(void)sig;
	(void)context;
	if (!window || at < window || at >= window + window_bytes) {
		char text[64];
		int n = snprintf(text, sizeof(text), "stray fault at %p, code %d\n", (void *)at,
			info->si_code);

		(void)!write(2, text, (size_t)n);
		_exit(3);
	}
	faults++;
	if (mprotect(window, window_bytes, PROT_READ | PROT_WRITE))
		_exit(4);
}

static void closed_window(struct piece *p, unsigned first, unsigned nr, int prot)
{
	window = p->at + first * PAGE;
	window_bytes = nr * PAGE;
	faults = 0;
	if (mprotect(window, window_bytes, prot))
		where_die("mprotect");
	usleep(1000);
	if (prot != PROT_NONE) {
		for (unsigned i = first; i < first + nr; i++)
			check_page(p, i, 61, "read-only");
		if (faults)
			complain(p, first, 0, 0, "a fault for reading");
	}
	write_page(p, first + nr / 2);
	if (faults != 1)
		complain(p, first, 0, faults, "not one fault");
	window = NULL;
	for (unsigned i = first; i < first + nr; i++)
		check_page(p, i, 61, "after a window");
}

/* --- what is done to memory --- */

/* A part goes away and comes back. */
static void there_and_back(struct piece *p, uint64_t *s)
{
	unsigned nr = 1 + below(s, p->pages / 2);
	char *from = p->at + below(s, p->pages / 2) * PAGE;
	char *to = map(nr, PROT_NONE);
	char *there;

	pthread_rwlock_unlock(&no_hole);
	pthread_rwlock_wrlock(&no_hole);
	there = mremap(from, nr * PAGE, nr * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, to);
	if (there == MAP_FAILED) {
		atomic_fetch_add(&refused, 1);
	} else {
		(void)*(volatile char *)there;
		if (mremap(there, nr * PAGE, nr * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, from) !=
			from)
			where_die("mremap back");
	}
	pthread_rwlock_unlock(&no_hole);
	pthread_rwlock_rdlock(&no_hole);
}

static void remap(struct piece *p, uint64_t *s)
{
	unsigned pages = 16 + below(s, 240);
	unsigned was = p->pages;
	char *to;

	switch (below(s, 4)) {
	case 0: /* grows or shrinks, and may move */
		to = mremap(p->at, was * PAGE, pages * PAGE, MREMAP_MAYMOVE);
		break;
	case 1: /* to a place of its own, which is gone when this fails */
		to = mremap(p->at, was * PAGE, pages * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED,
			map(pages, PROT_NONE));
		break;
	case 2:
		there_and_back(p, s);
		return;
	default: { /* what was two calls of mmap becomes one of mremap */
		unsigned more = 1 + below(s, 32);
		char *end;

		if (p->apart || was + more > MAX_PAGES)
			return;
		end = mmap(p->at + was * PAGE, more * PAGE, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
		if (end == MAP_FAILED)
			return;
		p->pages = was + more;
		memset(p->gen + was, 0, more * sizeof(p->gen[0]));
		for (unsigned i = was; i < p->pages; i++)
			write_page(p, i);
		was = pages = p->pages;
		to = mremap(p->at, was * PAGE, was * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED,
			map(was, PROT_NONE));
		break;
	}
	}
	if (to == MAP_FAILED) {
		if (errno != EFAULT)
			where_die("mremap");
		atomic_fetch_add(&refused, 1);
		return;
	}
	p->apart = p->apart || to != p->at;
	p->at = to;
	p->pages = pages;
	for (unsigned i = was; i < pages; i++) {
		p->gen[i] = 0;
		if (i % 3)
			write_page(p, i);
	}
}

static void advise(struct piece *p, uint64_t *s)
{
	static const int harmless[] = {
		MADV_HUGEPAGE, MADV_NOHUGEPAGE, MADV_COLD, MADV_POPULATE_WRITE};
	unsigned first = below(s, p->pages);
	unsigned nr = 1 + below(s, p->pages - first);
	char *at = p->at + first * PAGE;

	switch (below(s, 3)) {
	case 0:
		/* All of it: otherwise it would be several mappings. */
		(void)madvise(p->at, p->pages * PAGE, harmless[below(s, 4)]);
		p->apart = true;
		break;
	case 1:
		if (madvise(at, nr * PAGE, MADV_DONTNEED))
			where_die("MADV_DONTNEED");
		memset(p->gen + first, 0, nr * sizeof(p->gen[0]));
		for (unsigned i = first; i < first + nr; i++) {
			check_page(p, i, 61, "discarded");
			if (i % 4)
				write_page(p, i);
		}
		break;
	default: /* as it was, or zero, until it is written to */
		if (madvise(at, nr * PAGE, MADV_FREE))
			where_die("MADV_FREE");
		for (unsigned i = first; i < first + nr; i++) {
			uint64_t have = *(volatile uint64_t *)(p->at + i * PAGE);

			if (have && have != value(p, i, 0))
				complain(p, i, 0, have, "freed");
			write_page(p, i);
		}
	}
}

/* The kernel reads and writes it. */
static void through_kernel(struct piece *p, uint64_t *s)
{
	unsigned page = below(s, p->pages);
	char *at = p->at + page * PAGE;
	uint64_t copy[WORDS];
	int fd[2];
	ssize_t n = -1;

	switch (below(s, 4)) {
	case 0: /* read */
		if (pipe2(fd, O_CLOEXEC))
			return;
		p->gen[page]++;
		fill_buffer(p, page, copy);
		if (write(fd[1], copy, PAGE) == (ssize_t)PAGE)
			n = read(fd[0], at, PAGE);
		break;
	case 1: { /* recvmsg, sendmsg */
		struct iovec iov = {copy, PAGE};
		struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};

		if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fd))
			return;
		p->gen[page]++;
		fill_buffer(p, page, copy);
		if (sendmsg(fd[0], &msg, 0) == (ssize_t)PAGE) {
			iov.iov_base = at;
			n = recvmsg(fd[1], &msg, 0);
		}
		break;
	}
	case 2: { /* the page itself lies in the pipe */
		struct iovec iov = {at, PAGE};

		if (pipe2(fd, O_CLOEXEC))
			return;
		if (vmsplice(fd[1], &iov, 1, 0) == (ssize_t)PAGE) {
			usleep(2000);
			n = read(fd[0], copy, PAGE);
		}
		for (unsigned i = 0; n == (ssize_t)PAGE && i < WORDS; i++)
			if (copy[i] != value(p, page, i)) {
				complain(p, page, i, copy[i], "vmsplice");
				break;
			}
		break;
	}
	default: /* a file, past the page cache where that is possible */
		fd[0] = open("/tmp", O_TMPFILE | O_RDWR | O_DIRECT | O_CLOEXEC, 0600);
		if (fd[0] < 0)
			fd[0] = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
		if (fd[0] < 0)
			return;
		fd[1] = -1;
		if (pwrite(fd[0], at, PAGE, 0) == (ssize_t)PAGE) {
			memset(at, 0, PAGE);
			n = pread(fd[0], at, PAGE, 0);
		}
	}
	close(fd[0]);
	if (fd[1] >= 0)
		close(fd[1]);
	if (n != (ssize_t)PAGE)
		where_die("moving data through the kernel");
	check_page(p, page, 1, "through the kernel");
}

static void one_operation(struct piece *p, uint64_t *s)
{
	unsigned first;
	unsigned nr;

	check(p, 127, "before");
	switch (below(s, 8)) {
	case 0:
		munmap(p->at, p->pages * PAGE);
		make(p, 16 + below(s, 240));
		break;
	case 1:
	case 2:
		remap(p, s);
		break;
	case 3:
		advise(p, s);
		break;
	case 4:
		first = below(s, p->pages - 8);
		closed_window(p, first, 1 + below(s, 8), below(s, 2) ? PROT_NONE : PROT_READ);
		break;
	case 5:
		first = below(s, p->pages / 2);
		nr = 1 + below(s, 4);
		(void)mlock(p->at + first * PAGE, nr * PAGE);
		usleep(1000);
		check_page(p, first, 7, "locked");
		(void)munlock(p->at + first * PAGE, nr * PAGE);
		break;
	case 6:
		through_kernel(p, s);
		break;
	default:
		write_page(p, below(s, p->pages));
	}
	check(p, 127, "after");
	atomic_fetch_add_explicit(&ops, 1, memory_order_relaxed);
}

/* --- malloc --- */

struct block {
	unsigned char *at;
	size_t len;
	unsigned char with;
};

static void churn(struct block *b, uint64_t *s)
{
	size_t len = 1 + (draw(s) >> 20) % ((size_t)1 << (4 + below(s, 15)));

	if (b->at)
		for (size_t i = 0; i < b->len; i += 97)
			if (b->at[i] != (unsigned char)(b->with + i / 97)) {
				if (atomic_fetch_add(&wrong, 1) < 5)
					fprintf(stderr, "wrong: block %p of %zu at %zu\n",
						(void *)b->at, b->len, i);
				break;
			}
	if (below(s, 4) == 0) {
		free(b->at);
		b->at = NULL;
	}
	b->at = realloc(b->at, len);
	if (!b->at)
		where_die("realloc");
	b->len = len;
	b->with = (unsigned char)draw(s);
	for (size_t i = 0; i < len; i += 97)
		b->at[i] = (unsigned char)(b->with + i / 97);
}

/* --- the threads --- */

/* Each third for 3 s, then for 6, 12, ...: on a slow machine it takes long to find out. */
static bool hot(unsigned id)
{
	unsigned passed = (unsigned)(now() - began);
	unsigned each = 3;

	for (; passed >= 3 * each; each *= 2)
		passed -= 3 * each;
	return (id * 2654435761u >> 16) % 3 == passed / each;
}

static void *work(void *arg)
{
	static struct block blocks[THREADS][BLOCKS];
	unsigned self = (unsigned)(uintptr_t)arg;
	uint64_t s = 0x1234567 * (self + 1);

	while (!atomic_load(&over)) {
		pthread_rwlock_rdlock(&no_fork);
		for (unsigned i = self; i < CALM; i += THREADS) {
			if (!hot(calm[i].id))
				continue;
			check(&calm[i], 251, "calm");
			write_page(&calm[i], below(&s, calm[i].pages));
		}
		for (unsigned i = 0; i < BOUND; i++)
			if (i % THREADS == self)
				check(&bound[i], 251, "bound");
		check(&shared[self], 251, "shared");
		pthread_rwlock_rdlock(&no_hole);
		for (unsigned i = 0; i < 3; i++)
			one_operation(&own[self][below(&s, OWN)], &s);
		for (unsigned i = 0; i < 10; i++)
			churn(&blocks[self][below(&s, BLOCKS)], &s);
		pthread_rwlock_unlock(&no_hole);
		pthread_rwlock_unlock(&no_fork);
	}
	return NULL;
}

/* --- children --- */

static void check_everything(unsigned step, const char *when)
{
	for (unsigned t = 0; t < THREADS; t++)
		for (unsigned i = 0; i < OWN; i++)
			check(&own[t][i], step, when);
	for (unsigned i = 0; i < CALM; i++)
		check(&calm[i], step, when);
	for (unsigned i = 0; i < SHARED; i++)
		check(&shared[i], step, when);
	for (unsigned i = 0; i < BOUND; i++)
		check(&bound[i], step, when);
}

static _Noreturn void child(unsigned how)
{
	struct piece large;

	atomic_store(&wrong, 0);
	if (how % 3 == 1) {
		execl("/proc/self/exe", "fire", "child", NULL);
		_exit(9);
	}
	check_everything(127, "in a child");
	for (unsigned i = 0; i < CALM; i += 5)
		write_all(&calm[i]);
	if (how % 3 == 2)
		for (unsigned n = 0; n < 16; n++) {
			large.id = 5000 + n;
			make(&large, MAX_PAGES);
			check(&large, 127, "of a child");
			if (n % 4 == 0)
				usleep(300000);
		}
	check_everything(251, "in a child, later");
	_exit(atomic_load(&wrong) ? 1 : 0);
}

static unsigned reap(bool wait)
{
	unsigned bad = 0;
	int status;

	while (waitpid(-1, &status, wait ? 0 : WNOHANG) > 0)
		if (status != 0) {
			fprintf(stderr, "a child ended with status %#x\n", (unsigned)status);
			bad++;
		}
	return bad;
}

/* --- where it is --- */

static signed char seen[CALM][MAX_PAGES];

static void nodes_of(const struct piece *p, int *status)
{
	void *at[MAX_PAGES];

	for (unsigned i = 0; i < p->pages; i++)
		at[i] = p->at + i * PAGE;
	if (syscall(SYS_move_pages, 0, (unsigned long)p->pages, at, NULL, status, 0))
		where_die("move_pages");
}

/* Where nothing is slow there is nothing to promote. */
static void begin_slow(struct piece *p)
{
	void *at[MAX_PAGES];
	int to[MAX_PAGES];
	int status[MAX_PAGES];

	for (unsigned i = 0; i < p->pages; i++) {
		at[i] = p->at + i * PAGE;
		to[i] = (int)slow;
	}
	if (syscall(SYS_move_pages, 0, (unsigned long)p->pages, at, to, status, MPOL_MF_MOVE))
		where_die("move_pages");
}

static void look(unsigned long *up, unsigned long *down, unsigned long *astray)
{
	int status[MAX_PAGES];

	for (unsigned i = 0; i < CALM; i++) {
		nodes_of(&calm[i], status);
		for (unsigned k = 0; k < calm[i].pages; k++) {
			signed char is = status[k] < 0 ? -1 : status[k] == (int)slow;

			if (is < 0)
				continue;
			*up += seen[i][k] == 1 && is == 0;
			*down += seen[i][k] == 0 && is == 1;
			seen[i][k] = is;
		}
	}
	for (unsigned i = 0; i < BOUND; i++) {
		nodes_of(&bound[i], status);
		for (unsigned k = 0; k < bound[i].pages; k++)
			*astray += stays[i][k] >= 0 && status[k] != stays[i][k];
	}
}

/* What a child shares the kernel leaves where it is; but from now on that is for good. */
static void bind_to(unsigned i, int node)
{
	unsigned long mask = 1ul << node;
	struct piece *p = &bound[i];

	if (syscall(SYS_mbind, p->at, p->pages * PAGE, MPOL_BIND, &mask, 64ul, MPOL_MF_MOVE))
		where_die("mbind");
	nodes_of(p, stays[i]);
}

static void make_shared(void)
{
	for (unsigned i = 0; i < SHARED; i++) {
		struct piece *p = &shared[i];
		size_t len = 200 * PAGE;
		int id;

		p->id = 3000 + i;
		p->pages = 200;
		if (i % 3 == 0) {
			p->at = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
				-1, 0);
		} else if (i % 3 == 1) {
			int fd = memfd_create("fire", MFD_CLOEXEC);

			if (fd < 0 || ftruncate(fd, (off_t)len))
				where_die("memfd");
			p->at = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
			close(fd);
		} else {
			id = shmget(IPC_PRIVATE, len, IPC_CREAT | 0600);
			p->at = id < 0 ? MAP_FAILED : shmat(id, NULL, 0);
			if (id >= 0)
				shmctl(id, IPC_RMID, NULL);
		}
		if (p->at == MAP_FAILED)
			where_die("shared memory");
		write_all(p);
	}
}

/* --- the program's own userfaultfd --- */

static int uffd = -1;

static void *serve(void *arg)
{
	const struct piece *p = arg;
	uint64_t page[WORDS];
	struct uffd_msg msg;

	while (read(uffd, &msg, sizeof(msg)) == sizeof(msg)) {
		uintptr_t at = (uintptr_t)msg.arg.pagefault.address & ~(PAGE - 1);
		struct uffdio_copy copy = {.dst = at, .src = (uintptr_t)page, .len = PAGE};

		fill_buffer(p, (unsigned)((at - (uintptr_t)p->at) / PAGE), page);
		if (ioctl(uffd, UFFDIO_COPY, &copy) && errno != EEXIST)
			where_die("UFFDIO_COPY");
	}
	return NULL;
}

/* Over memory that was in use until then. Returns what went wrong, or NULL. */
static const char *own_userfaultfd(struct piece *p)
{
	struct uffdio_api api = {.api = UFFD_API};
	struct uffdio_register reg = {
		.range = {(uintptr_t)p->at, p->pages * PAGE}, .mode = UFFDIO_REGISTER_MODE_MISSING};
	pthread_t server;

	uffd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY);
	if (uffd < 0 || ioctl(uffd, UFFDIO_API, &api))
		return "cannot be opened";
	if (madvise(p->at, p->pages * PAGE, MADV_DONTNEED) || ioctl(uffd, UFFDIO_REGISTER, &reg))
		return "cannot register";
	for (unsigned i = 0; i < p->pages; i++)
		p->gen[i]++;
	if (pthread_create(&server, NULL, serve, p))
		where_die("pthread_create");
	check(p, 1, "by userfaultfd");
	return NULL;
}

int main(int argc, char **argv)
{
	struct sigaction sa = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
	unsigned long up = 0;
	unsigned long down = 0;
	unsigned long astray = 0;
	unsigned long late = 0;
	unsigned children = 0;
	unsigned bad = 0;
	const char *trouble;
	int bound_to;
	pthread_t thread[THREADS];
	struct piece last = {.id = 4900};
	unsigned long moves;
	long seconds;
	long second;
	long most;

	if (argc == 2 && strcmp(argv[1], "child") == 0) {
		make(&last, 200);
		check(&last, 1, "after exec");
		return atomic_load(&wrong) ? 1 : 0;
	}
	if (argc != 3 && argc != 5 && !(argc == 6 && strcmp(argv[5], "goes") == 0))
		return 2;
	seconds = atol(argv[1]);
	moves = argc > 3 ? strtoul(argv[3], NULL, 10) : 0;
	most = argc > 3 ? atol(argv[4]) : seconds;
	slow = (unsigned)atoi(argv[2]);
	bound_to = argc > 5 ? 0 : (int)slow;
	sigaction(SIGSEGV, &sa, NULL);
	memset(seen, -1, sizeof(seen));
	memset(stays, -1, sizeof(stays));
	for (unsigned i = 0; i < CALM; i++) {
		calm[i].id = 2000 + i;
		make(&calm[i], 256);
		begin_slow(&calm[i]);
	}
	for (unsigned t = 0; t < THREADS; t++)
		for (unsigned i = 0; i < OWN; i++) {
			own[t][i].id = 1000 * t / 10 + i;
			make(&own[t][i], 128 + 2 * i);
		}
	make_shared();
	for (unsigned i = 0; i < BOUND; i++) {
		bound[i].id = 4000 + i;
		make(&bound[i], 128);
		if (i < BOUND - 2)
			bind_to(i, i % 2 ? 0 : bound_to);
	}
	make(&last, 64);
	began = now();
	for (uintptr_t t = 0; t < THREADS; t++)
		if (pthread_create(&thread[t], NULL, work, (void *)t))
			where_die("pthread_create");
	for (second = 0; second < seconds || ((up < moves || down < moves) && second < most);
		second++) {
		unsigned long before = astray;

		sleep(1);
		pthread_rwlock_wrlock(&no_fork);
		if (second % 4 == 1) {
			pid_t pid = fork();

			if (pid == 0)
				child(children);
			children += pid > 0;
		}
		if (second == seconds / 3)
			(void)close_range(3, ~0u, 0);
		pthread_rwlock_unlock(&no_fork);
		look(&up, &down, &astray);
		if (second > seconds / 2)
			late += astray - before;
		/* Not from the beginning: it has been watched until then. */
		if (second == seconds / 2)
			for (unsigned i = BOUND - 2; i < BOUND; i++)
				bind_to(i, bound_to);
		bad += reap(false);
	}
	trouble = own_userfaultfd(&last);
	if (trouble)
		fprintf(stderr, "userfaultfd %s: %s\n", trouble, strerror(errno));
	sleep(1);
	atomic_store(&over, true);
	for (unsigned t = 0; t < THREADS; t++)
		pthread_join(thread[t], NULL);
	bad += reap(true);
	check_everything(1, "at the end");
	check(&last, 1, "at the end");
	printf("wrong %u\nchildren %u\nbad-children %u\nops %lu\nchecked %lu\nrefused %u\n",
		atomic_load(&wrong), children, bad, atomic_load(&ops), atomic_load(&checked),
		atomic_load(&refused));
	printf("seconds %ld\n", second);
	printf("up %lu\ndown %lu\nastray %lu\nastray-late %lu\nuserfaultfd %s\n", up, down, astray,
		late, trouble ? "failed" : "works");
	return atomic_load(&wrong) || bad || trouble ? 1 : 0;
}
