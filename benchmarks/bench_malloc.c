// SPDX-License-Identifier: MIT
/*
 * Allocator workloads. One process runs one workload with one number of threads, does a fixed
 * amount of work and prints one line of JSON. Nothing here depends on the clock: with the same
 * arguments the same calls are made in the same order (per thread), so that instructions can be
 * compared as well as time.
 *
 * The total work is split among the threads: more threads do not mean more work.
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <semaphore.h>
#include <spawn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <malloc.h>

enum {
	KIB = 1024,
	MIB = 1024 * 1024,
	PAGE = 4096,
	TABLE = 4096, /* entries of a worker's tables of sizes and of choices */
	MAX_THREADS = 64,
	BATCH = 10000,   /* blocks of a batch-* workload alive at once, over all threads */
	LIVE = 2000,     /* blocks of `mixed` alive at once, over all threads */
	SLOTS = 1000,    /* blocks one larson server owns */
	SERVICE = 10000, /* replacements a larson thread makes before it hands over */
	PARCEL = 128,    /* blocks handed to another thread at a time */
	DEPTH = 8,       /* parcels under way between two threads */
};

extern char **environ;

/* Keeps the compiler from seeing through an allocation, or from dropping it. */
#define OPAQUE(p) __asm__ volatile("" : "+r"(p) : : "memory")

struct parcel {
	void *block[PARCEL];
};

/* A bounded queue of parcels between two threads. */
struct ring {
	struct parcel parcel[DEPTH];
	unsigned head; /* next to fill, owned by the sender */
	unsigned tail; /* next to empty, owned by the receiver */
	sem_t room;
	sem_t ready;
};

struct worker {
	const struct workload *what;
	unsigned index;
	unsigned threads;
	uint64_t ops;  /* this worker's share of the work */
	uint64_t done; /* operations carried out */
	uint64_t bad;  /* blocks that break the contract: contents, alignment */
	uint64_t seed;
	struct ring *rings; /* one per thread */
	uint32_t size[TABLE];
	uint32_t pick[TABLE];
};

struct workload {
	const char *name;
	void (*work)(struct worker *w);
	size_t low, high;    /* range of block sizes */
	uint64_t ops;        /* over all threads, at scale 1 */
	const char *threads; /* thread counts that the driver uses */
	const char *about;
};

/* ---- small helpers ------------------------------------------------------------------------- */

static void die(const char *what)
{
	fprintf(stderr, "bench_malloc: %s: %s\n", what, strerror(errno));
	exit(1);
}

static uint64_t next_random(uint64_t *state)
{
	uint64_t x = *state += 0x9e3779b97f4a7c15u;

	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	return x ^ (x >> 31);
}

static void *checked(void *p)
{
	if (p == NULL)
		die("allocation");
	return p;
}

/* Tables of the benchmark itself stay out of the allocator under test. */
static void *table_new(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		die("mmap");
	return p;
}

static double clock_seconds(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/*
 * Peak resident set in KiB. VmHWM starts afresh with exec; ru_maxrss would also hold the peak of
 * whoever started us.
 */
static long peak_kib(void)
{
	struct rusage usage;
	char line[256];
	long kib = -1;
	FILE *f = fopen("/proc/self/status", "r");

	while (f != NULL && fgets(line, sizeof(line), f) != NULL)
		if (sscanf(line, "VmHWM: %ld kB", &kib) == 1)
			break;
	if (f != NULL)
		fclose(f);
	if (kib >= 0)
		return kib;
	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_maxrss;
}

/* Sizes spread evenly over [low, high]. */
static void fill_even(struct worker *w)
{
	size_t span = w->what->high - w->what->low + 1;

	for (unsigned i = 0; i < TABLE; i++)
		w->size[i] = (uint32_t)(w->what->low + next_random(&w->seed) % span);
}

/* Sizes spread evenly over the powers of two in [low, high]: small ones are the many. */
static void fill_powers(struct worker *w)
{
	unsigned first = 63 - (unsigned)__builtin_clzll(w->what->low);
	unsigned last = 63 - (unsigned)__builtin_clzll(w->what->high);

	for (unsigned i = 0; i < TABLE; i++) {
		uint64_t r = next_random(&w->seed);
		size_t base = (size_t)1 << (first + r % (last - first));

		w->size[i] = (uint32_t)(base + (r >> 32) % base);
	}
}

static void fill_picks(struct worker *w, unsigned limit)
{
	for (unsigned i = 0; i < TABLE; i++)
		w->pick[i] = (uint32_t)(next_random(&w->seed) % limit);
}

static void touch_pages(char *p, size_t size)
{
	for (size_t at = 0; at < size; at += PAGE)
		p[at] = 1;
	p[size - 1] = 1;
}

static void stamp(void *p, size_t size)
{
	if (size >= sizeof(uintptr_t))
		*(uintptr_t *)p = (uintptr_t)p;
}

static void check_stamp(struct worker *w, const void *p, size_t size)
{
	if (size >= sizeof(uintptr_t) && *(const uintptr_t *)p != (uintptr_t)p)
		w->bad++;
}

/* ---- workloads ----------------------------------------------------------------------------- */

/* Allocate a block, write to it, free it at once. */
static void work_pairs(struct worker *w)
{
	fill_even(w);
	for (uint64_t i = 0; i < w->ops; i++) {
		char *p = checked(malloc(w->size[i % TABLE]));

		*p = (char)i;
		OPAQUE(p);
		free(p);
	}
	w->done = w->ops;
}

/* A set of live blocks of mixed sizes; a random one is replaced at each step. */
static void work_mixed(struct worker *w)
{
	unsigned live = LIVE / w->threads;
	char **block = table_new(live * sizeof(*block));

	fill_powers(w);
	fill_picks(w, live);
	for (uint64_t i = 0; i < w->ops; i++) {
		char **slot = &block[w->pick[(i + i / TABLE) % TABLE]];
		size_t size = w->size[i % TABLE];

		free(*slot);
		*slot = checked(malloc(size));
		touch_pages(*slot, size);
	}
	for (unsigned i = 0; i < live; i++)
		free(block[i]);
	munmap(block, live * sizeof(*block));
	w->done = w->ops;
}

enum order { LIFO, FIFO, SHUFFLED };

static void batches(struct worker *w, enum order order)
{
	unsigned count = BATCH / w->threads;
	char **block = table_new(count * sizeof(*block));
	uint32_t *turn = table_new(count * sizeof(*turn));

	fill_even(w);
	for (unsigned i = 0; i < count; i++)
		turn[i] = order == LIFO ? count - 1 - i : i;
	for (unsigned i = count - 1; order == SHUFFLED && i > 0; i--) {
		unsigned j = (unsigned)(next_random(&w->seed) % (i + 1));
		uint32_t kept = turn[i];

		turn[i] = turn[j];
		turn[j] = kept;
	}
	while (w->done < w->ops) {
		for (unsigned i = 0; i < count; i++) {
			block[i] = checked(malloc(w->size[i % TABLE]));
			stamp(block[i], w->size[i % TABLE]);
		}
		for (unsigned i = 0; i < count; i++) {
			char *p = block[turn[i]];

			check_stamp(w, p, w->size[turn[i] % TABLE]);
			free(p);
		}
		w->done += count;
	}
	munmap(turn, count * sizeof(*turn));
	munmap(block, count * sizeof(*block));
}

static void work_batch_lifo(struct worker *w)
{
	batches(w, LIFO);
}

static void work_batch_fifo(struct worker *w)
{
	batches(w, FIFO);
}

static void work_batch_random(struct worker *w)
{
	batches(w, SHUFFLED);
}

static void ring_send(struct ring *ring, struct worker *w, uint64_t from)
{
	struct parcel *parcel;

	while (sem_wait(&ring->room) != 0)
		;
	parcel = &ring->parcel[ring->head++ % DEPTH];
	for (unsigned i = 0; i < PARCEL; i++) {
		size_t size = w->size[(from + i) % TABLE];

		parcel->block[i] = checked(malloc(size));
		stamp(parcel->block[i], size);
	}
	sem_post(&ring->ready);
}

static void ring_receive(struct ring *ring, struct worker *w)
{
	struct parcel *parcel;

	while (sem_wait(&ring->ready) != 0)
		;
	parcel = &ring->parcel[ring->tail++ % DEPTH];
	for (unsigned i = 0; i < PARCEL; i++) {
		check_stamp(w, parcel->block[i], w->what->low);
		free(parcel->block[i]);
	}
	sem_post(&ring->room);
}

/* Even threads allocate, odd ones free what their neighbour allocated. */
static void work_handoff(struct worker *w)
{
	bool sends = w->index % 2 == 0;
	struct ring *ring = &w->rings[w->index / 2];

	fill_even(w);
	for (uint64_t i = 0; i < w->ops * 2; i += PARCEL) {
		if (sends)
			ring_send(ring, w, i);
		else
			ring_receive(ring, w);
		w->done += sends ? PARCEL : 0;
	}
}

/* Every thread allocates for the next one and frees what the one before it sent. */
static void work_exchange(struct worker *w)
{
	fill_even(w);
	for (uint64_t i = 0; i < w->ops; i += PARCEL) {
		ring_send(&w->rings[(w->index + 1) % w->threads], w, i);
		ring_receive(&w->rings[w->index], w);
		w->done += PARCEL;
	}
}

struct server {
	struct worker *w;
	uint64_t first; /* where in the worker's work this thread starts */
	uint64_t count;
	char **slot;
};

static void *larson_serve(void *arg)
{
	struct server *s = arg;
	struct worker *w = s->w;

	for (uint64_t i = s->first; i < s->first + s->count; i++) {
		unsigned at = w->pick[(i + i / TABLE) % TABLE];
		size_t size = w->size[i % TABLE];

		if (s->slot[at] != NULL)
			check_stamp(w, s->slot[at], w->what->low);
		free(s->slot[at]);
		s->slot[at] = checked(malloc(size));
		stamp(s->slot[at], size);
	}
	return NULL;
}

/*
 * A server after Larson and Krishnan: random blocks are replaced, and after a while a new thread
 * takes over the blocks of the old one.
 */
static void work_larson(struct worker *w)
{
	char **slot = table_new(SLOTS * sizeof(*slot));

	fill_even(w);
	fill_picks(w, SLOTS);
	while (w->done < w->ops) {
		struct server s = {w, w->done, SERVICE, slot};
		pthread_t thread;

		errno = pthread_create(&thread, NULL, larson_serve, &s);
		if (errno != 0)
			die("pthread_create");
		pthread_join(thread, NULL);
		w->done += SERVICE;
	}
	for (unsigned i = 0; i < SLOTS; i++)
		free(slot[i]);
	munmap(slot, SLOTS * sizeof(*slot));
}

static void grow(struct worker *w, bool doubling)
{
	while (w->done < w->ops) {
		size_t size = w->what->low;
		char *p = checked(malloc(size));

		memset(p, 1, size);
		while (size < w->what->high) {
			size_t bigger = doubling ? size * 2 : size + size / 10 + 1;

			if (bigger > w->what->high)
				bigger = w->what->high;
			p = checked(realloc(p, bigger));
			if (p[0] != 1 || p[size - 1] != 1)
				w->bad++;
			memset(p + size, 1, bigger - size);
			size = bigger;
		}
		OPAQUE(p);
		free(p);
		w->done++;
	}
}

/* A vector that doubles as it is filled. */
static void work_realloc_double(struct worker *w)
{
	grow(w, true);
}

/* A buffer that grows by a tenth as it is filled. */
static void work_realloc_tenth(struct worker *w)
{
	grow(w, false);
}

static void work_calloc(struct worker *w)
{
	fill_powers(w);
	for (uint64_t i = 0; i < w->ops; i++) {
		size_t size = w->size[i % TABLE];
		char *p = checked(calloc(size / 8, 8));

		size = size / 8 * 8;
		for (size_t at = 0; at < size; at += PAGE)
			if (p[at] != 0)
				w->bad++;
		touch_pages(p, size);
		OPAQUE(p);
		free(p);
	}
	w->done = w->ops;
}

/* Blocks with alignments 16..4096, every eighth of a size equal to its alignment. */
static void work_aligned(struct worker *w)
{
	enum { COUNT = 256 };
	void *block[COUNT] = {NULL};

	fill_powers(w);
	for (uint64_t i = 0; i < w->ops; i++) {
		void **slot = &block[i % COUNT];
		size_t align = (size_t)16 << (i * 7 % 9);
		size_t size = i % 8 == 0 ? align : w->size[i % TABLE];

		free(*slot);
		*slot = NULL;
		if (i % 2 == 0)
			*slot = aligned_alloc(align, size);
		else if (posix_memalign(slot, align, size) != 0)
			*slot = NULL;
		checked(*slot);
		if ((uintptr_t)*slot % align != 0)
			w->bad++;
		*(char *)*slot = 1;
	}
	for (unsigned i = 0; i < COUNT; i++)
		free(block[i]);
	w->done = w->ops;
}

/* Large blocks: allocate, touch every page, free. */
static void work_large(struct worker *w)
{
	fill_powers(w);
	for (uint64_t i = 0; i < w->ops; i++) {
		char *p = checked(malloc(w->size[i % TABLE]));

		touch_pages(p, w->size[i % TABLE]);
		OPAQUE(p);
		free(p);
	}
	w->done = w->ops;
}

static void *short_life(void *arg)
{
	size_t size = *(uint32_t *)arg;
	char *p = checked(malloc(size));

	*p = 1;
	OPAQUE(p);
	free(p);
	return NULL;
}

/* Threads that live for one allocation. */
static void work_threads(struct worker *w)
{
	fill_even(w);
	for (uint64_t i = 0; i < w->ops; i++) {
		pthread_t thread;

		errno = pthread_create(&thread, NULL, short_life, &w->size[i % TABLE]);
		if (errno != 0)
			die("pthread_create");
		pthread_join(thread, NULL);
	}
	w->done = w->ops;
}

static void await_child(struct worker *w, pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			die("waitpid");
	if (status != 0)
		w->bad++;
}

/* Forks from a process with some memory; the child allocates and leaves. */
static void work_fork(struct worker *w)
{
	enum { KEPT = 1000 };
	void *kept[KEPT];

	for (unsigned i = 0; i < KEPT; i++)
		kept[i] = memset(checked(malloc(1000)), 1, 1000);
	for (uint64_t i = 0; i < w->ops; i++) {
		pid_t pid = fork();

		if (pid < 0)
			die("fork");
		if (pid == 0) {
			void *p = malloc(100);

			OPAQUE(p);
			_exit(p == NULL);
		}
		await_child(w, pid);
	}
	for (unsigned i = 0; i < KEPT; i++)
		free(kept[i]);
	w->done = w->ops;
}

/* Starts this program anew, to do nothing: what loading the allocator costs. */
static void work_start(struct worker *w)
{
	char *argv[] = {(char[]){"bench_malloc"}, (char[]){"--nothing"}, NULL};

	for (uint64_t i = 0; i < w->ops; i++) {
		pid_t pid;

		errno = posix_spawn(&pid, "/proc/self/exe", NULL, NULL, argv, environ);
		if (errno != 0)
			die("posix_spawn");
		await_child(w, pid);
	}
	w->done = w->ops;
}

static const struct workload workloads[] = {
	{"pairs-16", work_pairs, 16, 16, 24000000, "1,2,4,8", "allocate and free 16 bytes"},
	{"pairs-64", work_pairs, 64, 64, 24000000, "1,2,4,8", "allocate and free 64 bytes"},
	{"pairs-512", work_pairs, 512, 512, 24000000, "1,2,4,8", "allocate and free 512 bytes"},
	{"pairs-any", work_pairs, 16, 512, 24000000, "1,2,4,8", "allocate and free 16..512 bytes"},
	{"mixed", work_mixed, 8, 64 * KIB, 6000000, "1,2,4,8",
		"replace random blocks of 8 B..64 KiB among 2000"},
	{"batch-lifo", work_batch_lifo, 16, 256, 20000000, "1,2,4,8",
		"allocate 10000 blocks, free the newest first"},
	{"batch-fifo", work_batch_fifo, 16, 256, 20000000, "1,2,4,8",
		"allocate 10000 blocks, free the oldest first"},
	{"batch-random", work_batch_random, 16, 256, 16000000, "1,2,4,8",
		"allocate 10000 blocks, free them in random order"},
	{"handoff", work_handoff, 16, 512, 4000000, "2,4,8",
		"half of the threads allocate, the other half frees"},
	{"exchange", work_exchange, 16, 512, 4000000, "1,2,4,8",
		"each thread frees what another one allocated"},
	{"larson", work_larson, 16, 512, 10000000, "1,2,4,8",
		"replace random blocks; a new thread takes over every 10000"},
	{"realloc-double", work_realloc_double, 16, 64 * MIB, 6, "1,2,4",
		"fill a vector that doubles up to 64 MiB"},
	{"realloc-tenth", work_realloc_tenth, 64, 64 * MIB, 2, "1,2",
		"fill a buffer that grows by a tenth up to 64 MiB"},
	{"realloc-small", work_realloc_double, 16, 4 * KIB, 1000000, "1,2,4,8",
		"fill a vector that doubles up to 4 KiB"},
	{"calloc-large", work_calloc, 64 * KIB, 4 * MIB, 3000, "1,2,4,8",
		"zeroed blocks of 64 KiB..4 MiB, each page written"},
	{"aligned", work_aligned, 16, 8 * KIB, 6000000, "1,2,4,8",
		"aligned blocks, alignment 16..4096"},
	{"large", work_large, MIB, 32 * MIB, 80, "1,2,4,8",
		"blocks of 1..32 MiB, each page written"},
	{"threads", work_threads, 16, 512, 6000, "1,2", "threads that allocate one block and end"},
	{"fork", work_fork, 1, 1, 600, "1", "fork, allocate in the child"},
	{"start", work_start, 1, 1, 300, "1", "start a program that does nothing"},
};

/* ---- single paths, for counting instructions ------------------------------------------------ */

/*
 * Each path is a pair of functions, get_NAME and put_NAME, that call into the allocator N times
 * and nothing else, so that the cost of their calls as callgrind counts them is the cost of the
 * path.
 */
enum { PATH_CALLS = 4000, PATH_LIVE = 8 };

static void *path_block[PATH_CALLS];

/* A function of its own, under its own name. clang has no noipa and makes no clones of such
 * functions. */
#if defined(__GNUC__) && !defined(__clang__)
#define APART __attribute__((noipa))
#else
#define APART __attribute__((noinline))
#endif

#define PATH_BODY(prefix, name, get, put)                                                          \
	static APART void prefix##get_##name(unsigned from, unsigned to)                           \
	{                                                                                          \
		for (unsigned i = from; i < to; i++) {                                             \
			void *p = path_block[i];                                                   \
                                                                                                   \
			get;                                                                       \
			OPAQUE(p);                                                                 \
			path_block[i] = p;                                                         \
		}                                                                                  \
	}                                                                                          \
	static APART void prefix##put_##name(unsigned from, unsigned to)                           \
	{                                                                                          \
		for (unsigned i = from; i < to; i++) {                                             \
			void *p = path_block[i];                                                   \
                                                                                                   \
			OPAQUE(p);                                                                 \
			put;                                                                       \
			path_block[i] = p;                                                         \
		}                                                                                  \
	}
/* Warmed by a copy of the functions, so that first uses of a size do not count. */
#define PATH(name, get, put)                                                                       \
	PATH_BODY(warm_, name, get, put)                                                           \
	PATH_BODY(, name, get, put)

#define RELEASE (free(p), p = NULL)

PATH(malloc_8, p = malloc(8), RELEASE)
PATH(malloc_16, p = malloc(16), RELEASE)
PATH(malloc_64, p = malloc(64), RELEASE)
PATH(malloc_512, p = malloc(512), RELEASE)
PATH(malloc_1000, p = malloc(1000), RELEASE)
PATH(malloc_4k, p = malloc(4 * KIB), RELEASE)
PATH(malloc_32k, p = malloc(32 * KIB), RELEASE)
PATH(malloc_1m, p = malloc(MIB), RELEASE)
PATH(malloc_64m, p = malloc(64 * MIB), RELEASE)
PATH(calloc_64, p = calloc(8, 8), RELEASE)
PATH(realloc_same, p = realloc(p, 64), p = realloc(p, 60))
PATH(realloc_grow, p = malloc(16), p = realloc(p, 200))
PATH(memalign_64, if (posix_memalign(&p, 64, 100) != 0) p = NULL, RELEASE)
PATH(memalign_4k, if (posix_memalign(&p, 4096, 4096) != 0) p = NULL, RELEASE)
PATH(aligned_256, p = aligned_alloc(256, 256), RELEASE)
PATH(usable_size, p = malloc(64), (void)malloc_usable_size(p))
PATH(free_null, p = NULL, RELEASE)

typedef void path_fn(unsigned from, unsigned to);

static const struct path {
	path_fn *warm_get, *warm_put, *get, *put;
	const char *name;
	unsigned live; /* blocks alive at once: large ones cannot be many */
	unsigned calls;
	bool keeps; /* put does not release */
} paths[] = {
#define P(name, live, calls, keeps)                                                                \
	{                                                                                          \
		warm_get_##name, warm_put_##name, get_##name, put_##name, #name, live, calls,      \
			keeps                                                                      \
	}
	P(malloc_8, 1000, PATH_CALLS, false),
	P(malloc_16, 1000, PATH_CALLS, false),
	P(malloc_64, 1000, PATH_CALLS, false),
	P(malloc_512, 1000, PATH_CALLS, false),
	P(malloc_1000, 1000, PATH_CALLS, false),
	P(malloc_4k, 500, PATH_CALLS, false),
	P(malloc_32k, 50, PATH_CALLS, false),
	P(malloc_1m, PATH_LIVE, 400, false),
	P(malloc_64m, 1, 40, false),
	P(calloc_64, 1000, PATH_CALLS, false),
	P(realloc_same, PATH_CALLS, PATH_CALLS, true),
	P(realloc_grow, PATH_CALLS, PATH_CALLS, true),
	P(memalign_64, 1000, PATH_CALLS, false),
	P(memalign_4k, 100, PATH_CALLS, false),
	P(aligned_256, 1000, PATH_CALLS, false),
	P(usable_size, PATH_CALLS, PATH_CALLS, true),
	P(free_null, PATH_CALLS, PATH_CALLS, false),
#undef P
};

static void clear_blocks(void)
{
	for (unsigned i = 0; i < PATH_CALLS; i++) {
		free(path_block[i]);
		path_block[i] = NULL;
	}
}

static void walk_path(const struct path *p, path_fn *get, path_fn *put)
{
	for (unsigned at = 0; at < p->calls; at += p->live) {
		unsigned end = at + p->live < p->calls ? at + p->live : p->calls;

		get(at, end);
		put(at, end);
	}
}

/* Blocks allocated by one thread and freed by another. */
static void *foreign_malloc(void *unused)
{
	(void)unused;
	for (unsigned i = 0; i < PATH_CALLS; i++)
		path_block[i] = checked(malloc(64));
	return NULL;
}

static APART void put_foreign_64(void)
{
	for (unsigned i = 0; i < PATH_CALLS; i++)
		free(path_block[i]);
}

static void walk_foreign(void)
{
	pthread_t thread;

	errno = pthread_create(&thread, NULL, foreign_malloc, NULL);
	if (errno != 0)
		die("pthread_create");
	pthread_join(thread, NULL);
	put_foreign_64();
	memset(path_block, 0, sizeof(path_block));
}

static int walk_paths(void)
{
	for (unsigned i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		const struct path *p = &paths[i];

		walk_path(p, p->warm_get, p->warm_put);
		/* realloc_same is about blocks that are there already. */
		if (p->keeps && p->get != get_realloc_same)
			clear_blocks();
		walk_path(p, p->get, p->put);
		clear_blocks();
		puts(p->name);
	}
	walk_foreign();
	puts("foreign_64");
	return fflush(stdout) == 0 ? 0 : 1;
}

/* ---- running one ---------------------------------------------------------------------------- */

static void *run_worker(void *arg)
{
	struct worker *w = arg;

	w->what->work(w);
	return NULL;
}

static void run_threads(struct worker *workers, unsigned threads)
{
	pthread_t id[MAX_THREADS];

	/* One thread is the main thread: a process that never had a second one. */
	if (threads == 1) {
		run_worker(&workers[0]);
		return;
	}
	for (unsigned i = 0; i < threads; i++) {
		errno = pthread_create(&id[i], NULL, run_worker, &workers[i]);
		if (errno != 0)
			die("pthread_create");
	}
	for (unsigned i = 0; i < threads; i++)
		pthread_join(id[i], NULL);
}

static int run(const struct workload *what, unsigned threads, double scale)
{
	struct worker *workers = table_new(threads * sizeof(*workers));
	struct ring *rings = table_new(threads * sizeof(*rings));
	uint64_t total = (uint64_t)((double)what->ops * scale);
	struct rusage before;
	struct rusage after;
	uint64_t done = 0;
	uint64_t bad = 0;
	double wall;
	double cpu;

	for (unsigned i = 0; i < threads; i++) {
		struct worker *w = &workers[i];

		w->what = what;
		w->index = i;
		w->threads = threads;
		w->ops = total / threads > 0 ? total / threads : 1;
		w->seed = i + 1;
		w->rings = rings;
		sem_init(&rings[i].room, 0, DEPTH);
		sem_init(&rings[i].ready, 0, 0);
	}
	getrusage(RUSAGE_SELF, &before);
	cpu = clock_seconds(CLOCK_PROCESS_CPUTIME_ID);
	wall = clock_seconds(CLOCK_MONOTONIC);
	run_threads(workers, threads);
	wall = clock_seconds(CLOCK_MONOTONIC) - wall;
	cpu = clock_seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu;
	getrusage(RUSAGE_SELF, &after);
	if (what->work == work_fork || what->work == work_start) {
		struct rusage child;

		getrusage(RUSAGE_CHILDREN, &child);
		cpu += (double)(child.ru_utime.tv_sec + child.ru_stime.tv_sec);
		cpu += (double)(child.ru_utime.tv_usec + child.ru_stime.tv_usec) * 1e-6;
		after.ru_minflt += child.ru_minflt;
	}
	for (unsigned i = 0; i < threads; i++) {
		done += workers[i].done;
		bad += workers[i].bad;
	}
	printf("{\"name\": \"%s\", \"threads\": %u, \"ops\": %" PRIu64
	       ", \"seconds\": %.6f, \"cpu_seconds\": %.6f, \"peak_kib\": %ld"
	       ", \"faults\": %ld, \"bad_blocks\": %" PRIu64 "}\n",
		what->name, threads, done, wall, cpu, peak_kib(),
		after.ru_minflt - before.ru_minflt, bad);
	return fflush(stdout) == 0 ? 0 : 1;
}

static int list(void)
{
	for (unsigned i = 0; i < sizeof(workloads) / sizeof(workloads[0]); i++)
		printf("{\"name\": \"%s\", \"threads\": [%s], \"ops\": %" PRIu64
		       ", \"about\": \"%s\"}\n",
			workloads[i].name, workloads[i].threads, workloads[i].ops,
			workloads[i].about);
	return 0;
}

static void usage(FILE *to)
{
	fputs("Usage: bench_malloc [-t THREADS] [-s SCALE] WORKLOAD\n"
	      "       bench_malloc --list | --paths\n"
	      "\n"
	      "Runs one allocator workload and prints one line of JSON.\n"
	      "\n"
	      "  -t THREADS  number of threads, 1..64 (default 1)\n"
	      "  -s SCALE    amount of work, 1 is some tenths of a second (default 1)\n"
	      "  --list      the workloads, one line of JSON each\n"
	      "  --paths     walk single paths and print their names, to be run under callgrind\n",
		to);
}

static int misuse(const char *what, const char *text)
{
	fprintf(stderr, "bench_malloc: %s: %s\n", what, text);
	usage(stderr);
	return 2;
}

int main(int argc, char **argv)
{
	const struct workload *what = NULL;
	unsigned threads = 1;
	double scale = 1;
	int c;

	if (argc == 2 && strcmp(argv[1], "--nothing") == 0)
		return 0;
	if (argc == 2 && strcmp(argv[1], "--list") == 0)
		return list();
	if (argc == 2 && strcmp(argv[1], "--paths") == 0)
		return walk_paths();
	if (argc == 2 && strcmp(argv[1], "--help") == 0) {
		usage(stdout);
		return 0;
	}
	while ((c = getopt(argc, argv, "t:s:")) != -1) {
		char *end = NULL;

		if (c == 't') {
			unsigned long value = strtoul(optarg, &end, 10);

			if (*end != '\0' || value < 1 || value > MAX_THREADS)
				return misuse("not a number of threads from 1 to 64", optarg);
			threads = (unsigned)value;
		} else if (c == 's') {
			scale = strtod(optarg, &end);
			if (*end != '\0' || !(scale > 0) || scale > 1e6)
				return misuse("not a scale above 0", optarg);
		} else {
			usage(stderr);
			return 2;
		}
	}
	if (optind + 1 != argc) {
		usage(stderr);
		return 2;
	}
	for (unsigned i = 0; i < sizeof(workloads) / sizeof(workloads[0]); i++)
		if (strcmp(workloads[i].name, argv[optind]) == 0)
			what = &workloads[i];
	if (what == NULL)
		return misuse("no such workload (see --list)", argv[optind]);
	if (what->work == work_handoff && threads % 2 != 0)
		return misuse("handoff needs an even number of threads, not", argv[optind]);
	return run(what, threads, scale);
}
