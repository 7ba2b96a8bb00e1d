// SPDX-License-Identifier: MIT
/*
 * A load for a machine with fast and slow nodes: fills memory, reads it pass by pass, and says
 * after each pass how much of what it read lies on fast nodes, as lines of JSON.
 *
 * What is read follows from the options and the seed alone. So every pass does the same work
 * wherever the pages are, and the data can be checked, as each word follows from its place. How
 * often each page is read, and where it lies, is found out by another process, the teller, which
 * runs the generator without the reads: all that this one does is what is measured.
 *
 * tierload --help lists the options.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "benchmarks/lab/draw.h"
#include "benchmarks/lab/eat.h"
#include "benchmarks/lab/pass.h"
#include "benchmarks/lab/place.h"

#define PAGE 4096ul
#define LINE 64ul
#define MIB (1ul << 20)
#define KIB (1ul << 10)
#define MAX_NODES PASS_MAX_NODES
#define MAX_THREADS 64

struct options {
	unsigned long size_mib;
	unsigned long hot_mib; /* 0: no hot set */
	unsigned long run_kib;
	unsigned long share;    /* percent of the reads that go to the hot set */
	unsigned long writes;   /* percent of the accesses */
	double zipf;            /* exponent over the hot runs; 0: all alike */
	unsigned long scan_kib; /* so much is walked line by line, and not one word read; 0: no */
	bool walk;              /* all memory is, from one pass to the next */
	bool update;            /* what is written is read before */
	unsigned long accesses; /* of a pass, all threads together */
	unsigned long move;     /* the hot set moves every so many passes; 0: never */
	unsigned long threads;
	bool pin;
	bool heap;               /* aligned_alloc instead of mmap */
	unsigned long block_kib; /* of one allocation; 0: all in one */
	int huge;                /* 1 and 0: asked for and against; -1: nothing said */
	uint64_t seed;
	uint64_t fast;              /* bit per node */
	unsigned long capacity_mib; /* of the fast nodes, for the best placement; 0: not asked */
	uint64_t eat;               /* nodes that are full while the memory is filled */
	unsigned long eat_left;     /* MiB left free on each */
	pid_t eater; /* the same by another process, which is ended when the memory is filled */
	bool place;  /* the pages that will be hottest begin on the fast nodes */
};

static struct options o = {
	.size_mib = 192,
	.hot_mib = 40,
	.run_kib = 32,
	.share = 95,
	.accesses = 400000,
	.threads = 1,
	.huge = -1,
	.seed = 1,
	.fast = 1,
};
static struct pass passes = {.program = "tierload", .passes = 10};

static char **blocks;
static size_t block_bytes;
static unsigned long nr_pages;

/* The hot set of one epoch, that is until it moves. */
struct epoch {
	uint32_t *slot; /* hot runs, in runs from the start */
	unsigned long runs;
	struct draw_lots lots; /* for the Zipf distribution */
};

static struct epoch *epochs;

/* Of the teller: */
static pid_t reader_pid;
static uint32_t *count;    /* accesses of a pass to each page, */
static uint64_t *of_epoch; /* of all passes since the hot set last moved, */
static uint64_t *of_all;   /* and of all passes so far */
static uint64_t best_moving;
static signed char *last_node;

static _Noreturn void die(const char *what)
{
	fprintf(stderr, "tierload: %s: %s\n", what, strerror(errno));
	exit(2);
}

static void *need(void *p, const char *what)
{
	if (!p || p == MAP_FAILED)
		die(what);
	return p;
}

/* --- what is read ----------------------------------------------------------------------------- */

struct generator {
	uint64_t state;
	uint64_t share; /* of 2^32 */
	const struct epoch *epoch;
	uint64_t line; /* that comes next of what is walked, */
	uint64_t left; /* and how many are left of it */
};

static inline uint32_t draw_run(struct generator *g)
{
	const struct epoch *e = g->epoch;
	uint64_t random = draw(&g->state);

	return e->slot[o.zipf > 0 ? draw_lot(&e->lots, random) : draw_below(random, e->runs)];
}

/* A word, or so many lines from one on that has as many after it in the same run. */
static inline uint64_t draw_place(struct generator *g, uint64_t random, uint64_t unit, uint64_t len)
{
	uint64_t run = o.run_kib * KIB / unit;

	if ((uint32_t)random >= g->share)
		return draw_below(random, o.size_mib * MIB / unit - len + 1);
	return draw_run(g) * run + draw_below(random, run - len + 1);
}

/* The word that is accessed next, in words from the start. */
static inline uint64_t next_word(struct generator *g)
{
	uint64_t random = draw(&g->state);

	if (o.walk)
		return g->line++ % (o.size_mib * MIB / LINE) * (LINE / 8);
	if (!o.scan_kib)
		return draw_place(g, random, 8, 1);
	if (g->left == 0) {
		g->left = o.scan_kib * KIB / LINE;
		g->line = draw_place(g, random, LINE, g->left);
	}
	g->left--;
	return g->line++ * (LINE / 8);
}

static unsigned long epoch_of(unsigned long pass)
{
	return o.move ? pass / o.move : 0;
}

static unsigned long accesses_of(unsigned long thread)
{
	return o.accesses / o.threads + (thread < o.accesses % o.threads);
}

static struct generator generator(unsigned long pass, unsigned long thread)
{
	struct generator g = {.epoch = &epochs[epoch_of(pass)]};

	/* never 0, from which the generator would not come away */
	g.state = draw_mix(o.seed ^ draw_mix(pass * MAX_THREADS + thread + 1)) | 1;
	g.share = o.hot_mib ? (o.share << 32) / 100 : 0;
	g.line = pass * o.accesses;
	for (unsigned long t = 0; t < thread && o.walk; t++)
		g.line += accesses_of(t);
	return g;
}

static void build_epochs(void)
{
	unsigned long n = epoch_of(passes.passes - 1) + 1;
	unsigned long slots = o.size_mib * MIB / (o.run_kib * KIB);

	epochs = need(calloc(n, sizeof(*epochs)), "memory for hot sets");
	for (unsigned long k = 0; k < n && o.hot_mib; k++) {
		struct epoch *e = &epochs[k];
		uint64_t state = draw_mix(o.seed ^ draw_mix(~k)) | 1;
		uint32_t *all = need(calloc(slots, sizeof(*all)), "memory for hot sets");

		for (unsigned long i = 0; i < slots; i++)
			all[i] = (uint32_t)i;
		e->runs = o.hot_mib * MIB / (o.run_kib * KIB);
		for (unsigned long i = 0; i < e->runs; i++) {
			unsigned long j = i + draw_below(draw(&state), slots - i);
			uint32_t t = all[i];

			all[i] = all[j];
			all[j] = t;
		}
		e->slot = all;
		if (o.zipf > 0 && !draw_lots_init(&e->lots, e->runs, o.zipf))
			die("memory for the distribution");
	}
}

static void count_pass(unsigned long pass)
{
	memset(count, 0, nr_pages * sizeof(*count));
	for (unsigned long t = 0; t < o.threads; t++) {
		struct generator g = generator(pass, t);

		for (unsigned long i = accesses_of(t); i > 0; i--)
			count[next_word(&g) / (PAGE / 8)]++;
	}
}

/* --- the memory ------------------------------------------------------------------------------- */

static inline uint64_t *word_at(uint64_t word)
{
	uint64_t at = word * 8;

	return (uint64_t *)(blocks[at / block_bytes] + at % block_bytes);
}

static inline uint64_t value_of(uint64_t word)
{
	return (word + o.seed) * 0x9e3779b97f4a7c15u;
}

static unsigned long nr_blocks(void)
{
	return o.size_mib * MIB / block_bytes;
}

static void allocate(void)
{
	for (unsigned long i = 0; i < nr_blocks(); i++) {
		blocks[i] = need(o.heap ? aligned_alloc(PAGE, block_bytes)
					: mmap(NULL, block_bytes, PROT_READ | PROT_WRITE,
						  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
			"memory");
		if (o.huge >= 0 &&
			madvise(blocks[i], block_bytes, o.huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE))
			die("--huge");
	}
}

/* The part of a thread: who reads it touches it first. */
static void fill(unsigned long thread)
{
	uint64_t part = (o.size_mib * MIB / 8 + o.threads - 1) / o.threads;
	uint64_t end = (thread + 1) * part;

	for (uint64_t w = thread * part; w < end && w < o.size_mib * MIB / 8; w++)
		*word_at(w) = value_of(w);
}

/* --- other processes -------------------------------------------------------------------------- */

struct helper {
	pid_t pid;
	int to; /* pipes */
	int from;
};

static bool get(int fd, void *what, size_t bytes)
{
	for (char *at = what; bytes > 0;) {
		ssize_t n = read(fd, at, bytes);

		if (n == 0 || (n < 0 && errno != EINTR))
			return false;
		at += n > 0 ? n : 0;
		bytes -= n > 0 ? (size_t)n : 0;
	}
	return true;
}

static bool put(int fd, const void *what, size_t bytes)
{
	for (const char *at = what; bytes > 0;) {
		ssize_t n = write(fd, at, bytes);

		if (n < 0 && errno != EINTR)
			return false;
		at += n > 0 ? n : 0;
		bytes -= n > 0 ? (size_t)n : 0;
	}
	return true;
}

/* It ends with this process, if it does not by itself. */
static struct helper start_helper(void (*run)(int in, int out))
{
	struct helper h;
	int down[2];
	int up[2];

	if (pipe(down) || pipe(up))
		die("pipe");
	h = (struct helper){.to = down[1], .from = up[0], .pid = fork()};
	if (h.pid < 0)
		die("fork");
	if (h.pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(h.to);
		close(h.from);
		run(down[0], up[1]);
	}
	close(down[0]);
	close(up[1]);
	return h;
}

static void await(const struct helper *h, const char *otherwise)
{
	char byte;

	if (get(h->from, &byte, 1))
		return;
	fprintf(stderr, "tierload: %s\n", otherwise);
	exit(2);
}

static _Noreturn void eat(int in, int out)
{
	(void)in;
	eat_nodes(o.eat, o.eat_left);
	if (!put(out, "", 1))
		die("pipe");
	for (;;)
		pause();
}

/* Another process, so that its memory is free again in one go. */
static pid_t start_eater(void)
{
	struct helper h = start_helper(eat);

	await(&h, "--eat: the nodes could not be filled");
	close(h.to);
	close(h.from);
	return h.pid;
}

/* --- the passes ------------------------------------------------------------------------------- */

static pthread_barrier_t barrier;
static unsigned long current_pass;
static _Atomic bool wrong;

static void complain(uint64_t word, uint64_t have)
{
	if (atomic_exchange_explicit(&wrong, true, memory_order_relaxed))
		return;
	fprintf(stderr, "tierload: wrong data at byte %llu: %016llx instead of %016llx\n",
		(unsigned long long)word * 8, (unsigned long long)have,
		(unsigned long long)value_of(word));
}

static void read_pass(unsigned long thread)
{
	struct generator g = generator(current_pass, thread);
	uint64_t writes = (o.writes << 32) / 100;

	for (unsigned long i = accesses_of(thread); i > 0; i--) {
		uint64_t word = next_word(&g);
		volatile uint64_t *at = word_at(word);
		uint64_t have;

		/* other bits than those that chose the word */
		bool write = writes && (uint32_t)(g.state >> 7) < writes;

		if (write && !o.update) {
			*at = value_of(word);
			continue;
		}
		have = *at;
		if (__builtin_expect(have != value_of(word), 0))
			complain(word, have);
		if (write)
			*at = have;
	}
}

static void *reader(void *arg)
{
	unsigned long thread = (unsigned long)(uintptr_t)arg;

	if (o.pin)
		pass_pin(thread);
	pthread_barrier_wait(&barrier);
	fill(thread);
	pthread_barrier_wait(&barrier);
	for (unsigned long pass = 0; pass < passes.passes; pass++) {
		pthread_barrier_wait(&barrier);
		read_pass(thread);
		pthread_barrier_wait(&barrier);
	}
	return NULL;
}

/* --- where the pages are ---------------------------------------------------------------------- */

/*
 * Asks, and touches nothing: on some kernels a page that NUMA balancing has marked is said to be
 * nowhere until it is touched, and touching it would make the kernel believe it hot. Such a page
 * counts as being where it was last seen.
 */
static unsigned long ask_nodes(unsigned long *on)
{
	enum { BATCH = 512 };
	unsigned long unknown = 0;

	memset(on, 0, MAX_NODES * sizeof(*on));
	for (unsigned long page = 0; page < nr_pages; page += BATCH) {
		unsigned long n = nr_pages - page < BATCH ? nr_pages - page : BATCH;
		void *at[BATCH];
		int status[BATCH];

		for (unsigned long i = 0; i < n; i++)
			at[i] = word_at((page + i) * (PAGE / 8));
		if (syscall(SYS_move_pages, reader_pid, n, at, NULL, status, 0))
			die("move_pages");
		for (unsigned long i = 0; i < n; i++) {
			if (status[i] >= 0 && status[i] < MAX_NODES)
				last_node[page + i] = (signed char)status[i];
			else
				unknown++;
			if (last_node[page + i] >= 0)
				on[last_node[page + i]]++;
		}
	}
	return unknown;
}

static bool is_fast(unsigned long page)
{
	return last_node[page] >= 0 && (o.fast >> last_node[page] & 1);
}

static void print_nodes(const unsigned long *on, unsigned long unknown)
{
	pass_print_nodes(on);
	printf(", \"unknown\": %lu", unknown);
	pass_print_migrated();
}

static int by_count(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a;
	uint64_t y = *(const uint64_t *)b;

	return x < y ? 1 : x > y ? -1 : 0;
}

/* How many of these accesses the hottest pages get that fit the fast nodes. Sorts them. */
static uint64_t best(uint64_t *sum)
{
	unsigned long room = o.capacity_mib * MIB / PAGE;
	uint64_t fast = 0;

	qsort(sum, nr_pages, sizeof(*sum), by_count);
	for (unsigned long i = 0; i < nr_pages && i < room; i++)
		fast += sum[i];
	return fast;
}

static void end_epoch(void)
{
	best_moving += best(of_epoch);
	memset(of_epoch, 0, nr_pages * sizeof(*of_epoch));
}

static unsigned long report(unsigned long pass, double ms)
{
	unsigned long on[MAX_NODES];
	unsigned long unknown = ask_nodes(on);
	unsigned long fast = 0;
	unsigned long touched = 0;
	unsigned long touched_fast = 0;

	count_pass(pass);
	for (unsigned long i = 0; i < nr_pages; i++) {
		if (!count[i])
			continue;
		of_epoch[i] += count[i];
		of_all[i] += count[i];
		touched++;
		if (is_fast(i)) {
			touched_fast++;
			fast += count[i];
		}
	}
	printf("{\"pass\": %lu, \"accesses\": %lu, \"share\": %.6f, \"pages_touched\": %lu, "
	       "\"pages_share\": %.6f, \"ms\": %.3f, ",
		pass + 1, o.accesses, (double)fast / (double)o.accesses, touched,
		(double)touched_fast / (double)touched, ms);
	print_nodes(on, unknown);
	printf("}\n");
	fflush(stdout);
	if (pass + 1 == passes.passes || epoch_of(pass + 1) != epoch_of(pass))
		end_epoch();
	return fast;
}

/* The slow node that has most of them; 0 when none has any. */
static uint64_t slow_node(const unsigned long *on)
{
	unsigned long most = 0;
	uint64_t node = 0;

	for (int i = 0; i < MAX_NODES; i++)
		if (!(o.fast >> i & 1) && on[i] > most) {
			most = on[i];
			node = 1ull << i;
		}
	return node;
}

/* As the best placement that never changes would have them. Their places are known, and fresh
 * after. */
static unsigned long place(const unsigned long *on)
{
	uint64_t *order = need(calloc(nr_pages, sizeof(*order)), "memory for the best placement");
	void **at = need(calloc(nr_pages, sizeof(*at)), "memory for the best placement");
	unsigned long room = o.capacity_mib * MIB / PAGE;
	unsigned long away = 0;
	long placed;

	for (unsigned long pass = 0; pass < passes.passes; pass++) {
		count_pass(pass);
		for (unsigned long i = 0; i < nr_pages; i++)
			order[i] += count[i];
	}
	for (unsigned long i = 0; i < nr_pages; i++)
		order[i] = order[i] << 32 | i;
	qsort(order, nr_pages, sizeof(*order), by_count);
	for (unsigned long i = room; i < nr_pages; i++)
		if (is_fast((uint32_t)order[i]))
			at[away++] = word_at((uint32_t)order[i] * (PAGE / 8));
	placed = slow_node(on) ? place_pages(reader_pid, at, away, slow_node(on)) : 0;
	room = room < nr_pages ? room : nr_pages;
	for (unsigned long i = 0; i < room; i++)
		at[i] = word_at((uint32_t)order[i] * (PAGE / 8));
	if (placed >= 0)
		placed = place_pages(reader_pid, at, room, o.fast);
	if (placed < 0) {
		errno = (int)-placed;
		die("--place");
	}
	free(at);
	free(order);
	return (unsigned long)placed;
}

static void report_end(uint64_t fast)
{
	double all = (double)o.accesses * (double)passes.passes;

	printf("{\"end\": true, \"passes\": %lu, \"accesses\": %lu, \"share\": %.6f", passes.passes,
		o.accesses * passes.passes, (double)fast / all);
	if (o.capacity_mib) {
		printf(", \"capacity_pages\": %lu, \"best_static\": %.6f, \"best_moving\": %.6f",
			o.capacity_mib * MIB / PAGE, (double)best(of_all) / all,
			(double)best_moving / all);
	}
	printf("}\n");
	fflush(stdout); /* now: libmemtier takes the buffer away before it is flushed at exit */
}

/* --- the teller ------------------------------------------------------------------------------- */

static struct helper teller;

struct ended {
	unsigned long pass;
	double ms;
};

static void report_begin(void)
{
	unsigned long on[MAX_NODES];
	unsigned long unknown = ask_nodes(on);

	printf("{\"begin\": true, \"pages\": %lu, ", nr_pages);
	if (o.place) {
		printf("\"placed\": %lu, ", place(on));
		unknown = ask_nodes(on);
	}
	print_nodes(on, unknown);
	printf("}\n");
	fflush(stdout);
}

/* Until the reader is gone. */
static _Noreturn void tell(int in, int out)
{
	struct ended ended;
	uint64_t fast = 0;

	count = need(calloc(nr_pages, sizeof(*count)), "memory for counts");
	of_epoch = need(calloc(nr_pages, sizeof(*of_epoch)), "memory for counts");
	of_all = need(calloc(nr_pages, sizeof(*of_all)), "memory for counts");
	last_node = need(malloc(nr_pages), "memory for places");
	memset(last_node, -1, nr_pages);
	if (!get(in, blocks, nr_blocks() * sizeof(*blocks)))
		exit(2);
	report_begin();
	while (put(out, "", 1) && get(in, &ended, sizeof(ended)))
		fast += report(ended.pass, ended.ms);
	report_end(fast);
	exit(0);
}

/* Until it has said what is to be said of this. */
static void tell_teller(const void *what, size_t bytes)
{
	if (!put(teller.to, what, bytes))
		die("pipe");
	await(&teller, "nobody tells where pages are any more");
}

static void end_teller(void)
{
	int status;

	close(teller.to);
	if (waitpid(teller.pid, &status, 0) != teller.pid || status != 0)
		exit(2);
}

/* --- options ---------------------------------------------------------------------------------- */

static int usage(FILE *to, int status)
{
	fputs("Usage: tierload [OPTION...]\n"
	      "\n"
	      "Fills memory, reads it in passes, and prints after each pass how much of it lies "
	      "on\n"
	      "fast nodes: a line of JSON each, one before the first pass, one at the end.\n"
	      "\n"
	      "  --size MIB         memory (192)\n"
	      "  --hot MIB          hot set, in runs scattered over all of it (40); 0: none\n"
	      "  --run KIB          length of a hot run (32); 4: single pages\n"
	      "  --share PERCENT    of the accesses, or walks, that go to the hot set (95); the\n"
	      "                     others go anywhere\n"
	      "  --zipf EXPONENT    hot runs are unequally hot (0: equally)\n"
	      "  --scan KIB         so much is walked line by line, within a run, and then the\n"
	      "                     same elsewhere (0: single words)\n"
	      "  --walk             all memory is walked instead, on from where the pass before "
	      "ended\n"
	      "  --move PASSES      another hot set every so many passes (0: never)\n"
	      "  --writes PERCENT   of the accesses that write (0)\n"
	      "  --update           what is written is read before\n"
	      "  --passes N         (10)\n"
	      "  --accesses N       per pass, all threads together (400000)\n"
	      "  --period MS        a pass begins so long after the one before (0: at once)\n"
	      "  --threads N        (1)\n"
	      "  --pin              a CPU for each thread\n"
	      "  --alloc mmap|malloc  (mmap)\n"
	      "  --block KIB        in blocks of this size (0: one block)\n"
	      "  --huge yes|no      asks for huge pages, or against them (nothing)\n"
	      "  --seed N           (1)\n"
	      "  --fast NODES       which nodes are fast: 0,1 (0)\n"
	      "  --capacity MIB     room on the fast nodes: prints what the best placement gives\n"
	      "  --place            moves the pages that will be hottest there before the passes\n"
	      "  --eat NODES:MIB    while memory is filled, these nodes are full but for so much,\n"
	      "                     or for what the kernel keeps for itself, if that is more\n"
	      "  --eater PID        the same by another process, which is then ended\n"
	      "  --mark[=FROM]      marks passes and the pauses between them for the cost\n"
	      "                     model; from this one on, or all\n"
	      "\n"
	      "Exit status: 1 when data was wrong, 2 for everything else.\n",
		to);
	return status;
}

static _Noreturn void bad(const char *option, const char *value, const char *expected)
{
	fprintf(stderr, "tierload: --%s '%s': expected %s\n", option, value, expected);
	exit(2);
}

static bool choice(const char *option, const char *text, const char *yes, const char *no)
{
	char expected[32];

	if (strcmp(text, yes) && strcmp(text, no)) {
		snprintf(expected, sizeof(expected), "%s or %s", yes, no);
		bad(option, text, expected);
	}
	return strcmp(text, yes) == 0;
}

static const struct option LONG[] = {
	{"size", required_argument, NULL, 's'},
	{"hot", required_argument, NULL, 'h'},
	{"run", required_argument, NULL, 'r'},
	{"share", required_argument, NULL, 'p'},
	{"zipf", required_argument, NULL, 'z'},
	{"scan", required_argument, NULL, 'S'},
	{"walk", no_argument, NULL, 'W'},
	{"update", no_argument, NULL, 'U'},
	{"move", required_argument, NULL, 'm'},
	{"writes", required_argument, NULL, 'w'},
	{"accesses", required_argument, NULL, 'a'},
	{"threads", required_argument, NULL, 't'},
	{"pin", no_argument, NULL, 'c'},
	{"alloc", required_argument, NULL, 'A'},
	{"block", required_argument, NULL, 'b'},
	{"huge", required_argument, NULL, 'H'},
	{"seed", required_argument, NULL, 'R'},
	{"fast", required_argument, NULL, 'f'},
	{"capacity", required_argument, NULL, 'C'},
	{"place", no_argument, NULL, 'L'},
	{"eat", required_argument, NULL, 'e'},
	{"eater", required_argument, NULL, 'E'},
	PASS_OPTIONS,
	{"help", no_argument, NULL, '?'},
	{NULL, 0, NULL, 0},
};

static void set(const char *name, int what, const char *value)
{
	char *end;

	if (pass_option(&passes, what, name, value, 1))
		return;
	switch (what) {
	case 's':
		o.size_mib = pass_number(&passes, name, value, 1, 1ul << 20);
		break;
	case 'h':
		o.hot_mib = pass_number(&passes, name, value, 0, 1ul << 20);
		break;
	case 'r':
		o.run_kib = pass_number(&passes, name, value, 4, 1ul << 20);
		break;
	case 'p':
		o.share = pass_number(&passes, name, value, 0, 100);
		break;
	case 'z':
		o.zipf = strtod(value, &end);
		if (end == value || *end || !(o.zipf >= 0 && o.zipf <= 4))
			bad(name, value, "a number from 0 to 4");
		break;
	case 'S':
		o.scan_kib = pass_number(&passes, name, value, 0, 1ul << 20);
		break;
	case 'W':
		o.walk = true;
		break;
	case 'U':
		o.update = true;
		break;
	case 'm':
		o.move = pass_number(&passes, name, value, 0, 1000000);
		break;
	case 'w':
		o.writes = pass_number(&passes, name, value, 0, 100);
		break;
	case 'a':
		o.accesses = pass_number(&passes, name, value, 1, UINT32_MAX);
		break;
	case 't':
		o.threads = pass_number(&passes, name, value, 1, MAX_THREADS);
		break;
	case 'c':
		o.pin = true;
		break;
	case 'A':
		o.heap = choice(name, value, "malloc", "mmap");
		break;
	case 'b':
		o.block_kib = pass_number(&passes, name, value, 0, 1ul << 20);
		break;
	case 'H':
		o.huge = choice(name, value, "yes", "no");
		break;
	case 'R':
		o.seed = pass_number(&passes, name, value, 0, UINT32_MAX);
		break;
	case 'f':
		if (eat_parse(value, &o.fast, NULL))
			bad(name, value, "NODE[,NODE...]");
		break;
	case 'C':
		o.capacity_mib = pass_number(&passes, name, value, 0, 1ul << 20);
		break;
	case 'L':
		o.place = true;
		break;
	case 'e':
		if (eat_parse(value, &o.eat, &o.eat_left))
			bad(name, value, "NODE[,NODE...]:MIB");
		break;
	case 'E':
		o.eater = (pid_t)pass_number(&passes, name, value, 1, INT32_MAX);
		break;
	}
}

static int parse(int argc, char **argv)
{
	char text[32];
	int index;
	int c;

	while ((c = getopt_long(argc, argv, "", LONG, &index)) != -1) {
		if (c == '?') {
			/* asked for, or getopt has said what is wrong */
			if (strcmp(argv[optind - 1], "--help") == 0)
				exit(usage(stdout, 0));
			return usage(stderr, 2);
		}
		set(LONG[index].name, c, optarg);
	}
	if (optind < argc)
		return usage(stderr, 2);
	snprintf(text, sizeof(text), "%lu", o.hot_mib);
	if (o.hot_mib > o.size_mib)
		bad("hot", text, "no more than --size");
	snprintf(text, sizeof(text), "%lu", o.run_kib);
	if (o.run_kib % 4 || o.size_mib * KIB % o.run_kib ||
		(o.hot_mib && o.hot_mib * KIB < o.run_kib))
		bad("run", text, "whole pages, a part of --size, and not more than --hot");
	snprintf(text, sizeof(text), "%lu", o.scan_kib);
	if (o.scan_kib > o.run_kib)
		bad("scan", text, "no more than --run");
	snprintf(text, sizeof(text), "%lu", o.block_kib);
	if (o.block_kib && (o.block_kib % 4 || o.size_mib * KIB % o.block_kib))
		bad("block", text, "whole pages, and a part of --size");
	if (o.place && !o.capacity_mib)
		bad("place", "", "--capacity, too");
	return 0;
}

int main(int argc, char **argv)
{
	pthread_t threads[MAX_THREADS];

	if (parse(argc, argv))
		return 2;
	nr_pages = o.size_mib * MIB / PAGE;
	block_bytes = o.block_kib ? o.block_kib * KIB : o.size_mib * MIB;
	blocks = need(calloc(nr_blocks(), sizeof(*blocks)), "memory");
	build_epochs();
	reader_pid = getpid();
	/* That the teller is gone is said where it is told something. */
	signal(SIGPIPE, SIG_IGN);
	/* Before there is memory: pages that two processes have cannot be moved. */
	teller = start_helper(tell);
	if (o.eat)
		o.eater = start_eater();
	allocate();
	pthread_barrier_init(&barrier, NULL, (unsigned)o.threads + 1);
	for (unsigned long t = 0; t < o.threads; t++)
		if ((errno = pthread_create(&threads[t], NULL, reader, (void *)(uintptr_t)t)))
			die("pthread_create");
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	if (o.eater && eat_end(o.eater))
		die("--eater");
	tell_teller(blocks, nr_blocks() * sizeof(*blocks));
	while (pass_next(&passes)) {
		struct ended ended;

		current_pass = passes.number - 1;
		pass_begin(&passes);
		pthread_barrier_wait(&barrier);
		pthread_barrier_wait(&barrier);
		pass_end(&passes);
		ended = (struct ended){current_pass, passes.ms};
		tell_teller(&ended, sizeof(ended));
		pass_rest(&passes);
	}
	for (unsigned long t = 0; t < o.threads; t++)
		pthread_join(threads[t], NULL);
	end_teller();
	return wrong ? 1 : 0;
}
