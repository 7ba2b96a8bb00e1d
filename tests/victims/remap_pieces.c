/*
 * mremap of memory that is one mapping for the program, though a part of it is older than the rest:
 * in all forms, while another thread maps and unmaps wherever there is room, with hardly a mapping
 * more to be had (limit), and without any address space more (space).
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>

#include "victim.h"

enum { PART = 2 * 1024 * 1024, OLD = 96 * 1024 * 1024, PAGE = 4096 };

static char *old_start;
static char *old_end; /* what is behind is new each time */
static _Atomic int over;

static void mark(char *p, size_t len, unsigned seed)
{
	for (size_t i = 0; i < len; i += PAGE)
		*(unsigned *)(p + i) = seed + (unsigned)(i / PAGE);
}

static void expect_marks(const char *p, size_t len, unsigned seed, const char *what)
{
	for (size_t i = 0; i < len; i += PAGE)
		if (*(const unsigned *)(p + i) != seed + (unsigned)(i / PAGE))
			FAIL("%s: page %zu of %zu is %u instead of %u", what, i / PAGE, len / PAGE,
				*(const unsigned *)(p + i), seed + (unsigned)(i / PAGE));
}

/* Of the sizes that are moved, so that its mappings fit into the holes that this leaves. */
static void *map_and_unmap(void *arg)
{
	unsigned state = (unsigned)(uintptr_t)arg;

	while (!atomic_load(&over)) {
		size_t len = (size_t)PART << rnd(&state) % 2;
		char *p =
			mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (p == MAP_FAILED)
			continue; /* the main thread sets a limit now and then */
		*(unsigned *)p = *(unsigned *)(p + len - PAGE) = state;
		for (unsigned i = 0; i < 100; i++)
			sched_yield();
		if (*(unsigned *)p != state || *(unsigned *)(p + len - PAGE) != state)
			FAIL("memory of another thread was overwritten");
		munmap(p, len);
	}
	return NULL;
}

static char *new_room(size_t len)
{
	char *p = mmap(NULL, len, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	CHECK(p != MAP_FAILED);
	return p;
}

/* Another thread may be there, but not for long. */
static void map_at(char *at, size_t len, int prot)
{
	while (mmap(at, len, prot, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) != at)
		CHECK(errno == EEXIST);
}

/* Half of it old, half of it new. */
static char *next_piece(unsigned seed, int taken_behind)
{
	map_at(old_end, PART, PROT_READ | PROT_WRITE);
	if (taken_behind)
		map_at(old_end + PART, PART, PROT_NONE);
	old_end -= PART;
	CHECK(old_end > old_start);
	mark(old_end, 2 * PART, seed);
	return old_end;
}

static void done_with(char *p, size_t len, int taken_behind)
{
	CHECK(!munmap(p, len));
	if (taken_behind)
		CHECK(!munmap(old_end + 2 * PART, PART));
}

static char *to_fixed(char *p, size_t len, size_t new_len, int flags, const char *what)
{
	char *to = new_room(new_len);
	char *is = mremap(p, len, new_len, MREMAP_MAYMOVE | MREMAP_FIXED | flags, to);

	if (is != to)
		FAIL("%s: errno %d", what, errno);
	return to;
}

static void no_room_to_grow(char *p, unsigned seed)
{
	struct rlimit was;
	struct rlimit none;
	char *to = new_room(16 * MIB);

	CHECK(!getrlimit(RLIMIT_DATA, &was));
	none = (struct rlimit){1, was.rlim_max};
	CHECK(!setrlimit(RLIMIT_DATA, &none));
	CHECK(mremap(p, 2 * PART, 16 * MIB, MREMAP_MAYMOVE | MREMAP_FIXED, to) == MAP_FAILED);
	CHECK(errno == ENOMEM);
	CHECK(mremap(p, 2 * PART, 16 * MIB, MREMAP_MAYMOVE) == MAP_FAILED && errno == ENOMEM);
	CHECK(!setrlimit(RLIMIT_DATA, &was));
	(void)munmap(to, 16 * MIB);
	expect_marks(p, 2 * PART, seed, "refused growth");
}

static void one_round(unsigned seed)
{
	char *p = next_piece(seed, 1);
	char *to = to_fixed(p, 2 * PART, 2 * PART, 0, "same size");

	expect_marks(to, 2 * PART, seed, "same size");
	done_with(to, 2 * PART, 1);

	p = next_piece(++seed, 1);
	to = to_fixed(p, 2 * PART, 2 * PART - PART / 2, 0, "smaller");
	expect_marks(to, 2 * PART - PART / 2, seed, "smaller");
	done_with(to, 2 * PART - PART / 2, 1);

	p = next_piece(++seed, 1);
	to = to_fixed(p, 2 * PART, 3 * PART, 0, "larger");
	expect_marks(to, 2 * PART, seed, "larger");
	CHECK(to[2 * PART] == 0 && to[3 * PART - 1] == 0);
	to[3 * PART - 1] = 1;
	done_with(to, 3 * PART, 1);

	p = next_piece(++seed, 1);
	to = mremap(p, 2 * PART, 4 * PART, MREMAP_MAYMOVE);
	CHECK(to != MAP_FAILED && to != p);
	expect_marks(to, 2 * PART, seed, "grown elsewhere");
	to[4 * PART - 1] = 1;
	done_with(to, 4 * PART, 1);

	p = next_piece(++seed, 0);
	to = mremap(p, 2 * PART, 2 * PART + PAGE, 0);
	if (to == MAP_FAILED && errno != ENOMEM) /* another thread may be there */
		FAIL("in place: errno %d", errno);
	expect_marks(p, 2 * PART, seed, "grown in place");
	done_with(p, 2 * PART + (to == p ? PAGE : 0), 0);

	p = next_piece(++seed, 1);
	to = to_fixed(p, 2 * PART, 2 * PART, MREMAP_DONTUNMAP, "left mapped");
	expect_marks(to, 2 * PART, seed, "left mapped");
	CHECK(p[0] == 0 && p[PART] == 0 && p[2 * PART - 1] == 0);
	CHECK(!munmap(p, 2 * PART));
	done_with(to, 2 * PART, 1);

	p = next_piece(++seed, 1);
	no_room_to_grow(p, seed);
	done_with(p, 2 * PART, 1);
}

static void forms(void)
{
	enum { THREADS = 2, ROUNDS = 5 };
	pthread_t thread[THREADS];

	for (uintptr_t i = 0; i < THREADS; i++)
		CHECK(!pthread_create(&thread[i], NULL, map_and_unmap, (void *)(i + 7)));
	for (unsigned round = 0; round < ROUNDS; round++)
		one_round(10000 * round);
	atomic_store(&over, 1);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
}

/* Every second page is made a mapping, from the *nr-th on, until the kernel refuses. */
static void fill_up(char *pages, size_t most, size_t *nr)
{
	while (*nr < most && mprotect(pages + 2 * *nr * PAGE, PAGE, PROT_READ) == 0)
		++*nr;
	if (*nr == most)
		SKIP("more mappings than are worth making");
}

static void give_up(char *pages, size_t many, size_t *nr)
{
	for (size_t i = 0; i<many && * nr> 0; i++) {
		--*nr;
		CHECK(!mprotect(pages + 2 * *nr * PAGE, PAGE, PROT_NONE));
	}
}

static void limit(void)
{
	enum { MOST = 100000, FOR_THE_NEXT = 100, LEFT = 12 };
	char *pages = new_room((size_t)2 * MOST * PAGE);
	unsigned moved = 0;
	size_t nr = 0;

	for (unsigned left = 0; left < LEFT; left++) {
		unsigned seed = 10000 * left;
		char *p = next_piece(seed, 1);
		char *to = new_room(2 * PART);
		char *is;

		fill_up(pages, MOST, &nr);
		give_up(pages, left, &nr);
		is = mremap(p, 2 * PART, 2 * PART, MREMAP_MAYMOVE | MREMAP_FIXED, to);
		if (is != to && (is != MAP_FAILED || errno != ENOMEM))
			FAIL("with %u left: errno %d", left, errno);
		give_up(pages, FOR_THE_NEXT, &nr);
		expect_marks(is == to ? to : p, 2 * PART, seed, is == to ? "moved" : "refused");
		moved += is == to;
		done_with(is == to ? to : p, 2 * PART, 1);
	}
	if (moved == 0)
		FAIL("never moved");
}

/* What moves takes no address space. Nobody else is there to map something at the target. */
static void without_address_space(void)
{
	struct rlimit was;
	struct rlimit none;
	char *p = next_piece(77, 1);
	char *to = new_room(2 * PART);
	char *is;

	munmap(to, 2 * PART);
	CHECK(!getrlimit(RLIMIT_AS, &was));
	none = (struct rlimit){1, was.rlim_max};
	CHECK(!setrlimit(RLIMIT_AS, &none));
	is = mremap(p, 2 * PART, 2 * PART, MREMAP_MAYMOVE | MREMAP_FIXED, to);
	CHECK(!setrlimit(RLIMIT_AS, &was));
	if (is != to)
		FAIL("without address space: errno %d", errno);
	expect_marks(to, 2 * PART, 77, "without address space");
}

/* Whether what is mapped behind it stays a mapping of its own. */
static int old_is_watched(void)
{
	char line[300];
	char end[40];
	FILE *maps = fopen("/proc/self/maps", "re");
	int found = 0;

	CHECK(maps);
	snprintf(end, sizeof(end), "-%lx ", (unsigned long)(uintptr_t)old_end);
	while (fgets(line, sizeof(line), maps))
		found |= strstr(line, end) != NULL;
	fclose(maps);
	return found;
}

static void wait_for_a_watcher(void)
{
	enum { TENTHS = 80 };

	map_at(old_end, PART, PROT_READ | PROT_WRITE);
	for (int i = 0; i < TENTHS && !old_is_watched(); i++) {
		munmap(old_end, PART);
		usleep(100000);
		map_at(old_end, PART, PROT_READ | PROT_WRITE);
	}
	munmap(old_end, PART);
}

int main(int argc, char **argv)
{
	enum { LEAST_S = 2, MORE = 64 * 1024 * 1024 };
	struct timespec used = {0, 0};
	char *room = new_room(OLD + 64 * MIB);
	char *more = mmap(NULL, MORE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(more != MAP_FAILED);
	old_start = room + 32 * MIB;
	old_end = old_start + OLD;
	CHECK(!munmap(old_start, OLD + 32 * MIB));
	map_at(old_start, OLD, PROT_READ | PROT_WRITE);
	/* Large and busy enough for a background thread, if there is one. */
	while (used.tv_sec < LEAST_S) {
		mark(old_start, OLD, 1);
		mark(more, MORE, 1);
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
	}
	if (getenv("LD_PRELOAD"))
		wait_for_a_watcher();
	if (argc > 1 && !strcmp(argv[1], "limit"))
		limit();
	else if (argc > 1 && !strcmp(argv[1], "space"))
		without_address_space();
	else
		forms();
	return pass();
}
