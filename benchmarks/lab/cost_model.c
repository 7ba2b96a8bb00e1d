// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What a phase of a program would cost on a machine whose nodes differ, counted in an emulated one:
 * a plugin for QEMU. Time in a guest under software emulation says nothing about memory. But which
 * instructions run, and which memory they touch, is real there, so that time can be modelled:
 *
 *   ns of a CPU = its instructions x CPI + its cache misses x latency of the node that is missed to
 *
 * Each CPU has a last-level cache of its own, indexed by physical address; a miss belongs to the
 * node that has the address. All that the guest's kernel does counts too: faults, copying of pages,
 * the work of helper threads. Not counted: walks of page tables (the emulator does them out of
 * sight), writing back, bandwidth, misses that overlap, one CPU taking a line from another's cache.
 *
 * Only phases are counted, which the program marks (marker.h). Outside of them nothing but marks is
 * looked for, so that the guest boots about as fast as without the plugin: at both ends of a phase
 * all translated code is thrown away, and translated anew with or without calls to here.
 *
 * benchmarks/lab/README.md has the arguments and the figures that come out.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- the part of QEMU's interface that is used, as its documentation has it --------------------
 */

#define EXPORT __attribute__((visibility("default")))

/* 1 for QEMU up to 8.2, 4 from 9.2 on: it loads a plugin only when this fits. */
#ifndef PLUGIN_API
#define PLUGIN_API 1
#endif

struct qemu_plugin_tb;
struct qemu_plugin_insn;
struct qemu_plugin_hwaddr;

struct machine_info {
	const char *target;
	struct {
		int min;
		int current;
	} version;
	bool whole_system;
	struct {
		int cpus;
		int max_cpus;
	} system;
};

enum { REGISTERS_NONE = 0 };
enum { READS_AND_WRITES = 3 };

void qemu_plugin_register_vcpu_tb_trans_cb(
	uint64_t id, void (*fn)(uint64_t id, struct qemu_plugin_tb *tb));
void qemu_plugin_register_vcpu_tb_exec_cb(
	struct qemu_plugin_tb *tb, void (*fn)(unsigned cpu, void *data), int registers, void *data);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *insn,
	void (*fn)(unsigned cpu, void *data), int registers, void *data);
void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *insn,
	void (*fn)(unsigned cpu, uint32_t info, uint64_t vaddr, void *data), int registers,
	int which, void *data);
void qemu_plugin_register_flush_cb(uint64_t id, void (*fn)(uint64_t id));
void qemu_plugin_register_atexit_cb(uint64_t id, void (*fn)(uint64_t id, void *data), void *data);
void qemu_plugin_reset(uint64_t id, void (*fn)(uint64_t id));
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t index);
uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *tb);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *insn);
#if PLUGIN_API >= 3
size_t qemu_plugin_insn_data(const struct qemu_plugin_insn *insn, void *to, size_t len);
#else
const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *insn);
#endif
bool qemu_plugin_mem_is_store(uint32_t info);
struct qemu_plugin_hwaddr *qemu_plugin_get_hwaddr(uint32_t info, uint64_t vaddr);
bool qemu_plugin_hwaddr_is_io(const struct qemu_plugin_hwaddr *at);
uint64_t qemu_plugin_hwaddr_phys_addr(const struct qemu_plugin_hwaddr *at);

/* Not of the interface: see forget_callbacks(). */
__attribute__((weak)) void *qemu_get_cpu(int index);
__attribute__((weak)) void qemu_plugin_disable_mem_helpers(void *cpu);

EXPORT int qemu_plugin_install(uint64_t id, const struct machine_info *info, int argc, char **argv);
EXPORT extern int qemu_plugin_version;
EXPORT int qemu_plugin_version = PLUGIN_API;

/* --- the machine ------------------------------------------------------------------------------ */

#define LINE_SHIFT 6
#define PAGE_SHIFT 12
#define MIB_SHIFT 20
#define MAX_MIB (64u << 10) /* of physical addresses */
#define MAX_WAYS 64u
#define MAX_CPUS 64
#define MAX_NODES 64
#define OTHER MAX_NODES /* neither node's memory: firmware, devices */
#define EMPTY UINT64_MAX

enum mode { USER, KERNEL, MODE_MAX };
enum kind { READ, WRITE, KIND_MAX };

struct counts {
	uint64_t instructions[MODE_MAX];
	uint64_t waiting; /* the kernel's, in loops that wait for another CPU */
	uint64_t accesses[MODE_MAX][KIND_MAX];
	uint64_t misses[MODE_MAX][MAX_NODES + 1][KIND_MAX];
};

/* Each thread of the emulator changes its own only, and nobody anything while they are stopped. */
struct cpu {
	uint64_t *lines; /* [set][way], the most recently used way first */
	struct {
		uint64_t line; /* by virtual address */
		uint64_t set;
	} last[2]; /* that were accessed, the last one first */
	struct counts now;
	uint64_t at_pause; /* the kernel's instructions at its last PAUSE */
	char apart[128];
};

struct phase {
	struct phase *next;
	char *name;
	unsigned times;
	bool open;
	struct counts sum[MAX_CPUS];
};

static uint64_t plugin_id;
static FILE *out;
static FILE *frames_out;
static uint32_t *frames; /* misses to each page of memory, by all CPUs; NULL when nobody asks */
static unsigned char node_of[MAX_MIB]; /* by MiB; OTHER where nothing was said */
static uint64_t described;             /* nodes that a range names */
static int node_of_cpu[MAX_CPUS];
static double latency_ns[MAX_NODES][MAX_NODES + 1];
static double cpi_ns = 0.33;
static unsigned cache_kib = 1024;
static unsigned ways = 8;

static int nr_cpus;
static uint64_t set_mask;
static struct cpu *cpus;
static struct phase *phases;

/* --- counting --------------------------------------------------------------------------------- */

static bool counting; /* changes only while all CPUs are stopped */

static inline bool cached(struct cpu *c, uint64_t line)
{
	uint64_t *set = c->lines + (line & set_mask) * ways;
	uint64_t moved = set[0];

	if (moved == line)
		return true;
	set[0] = line;
	for (unsigned i = 1; i < ways; i++) {
		uint64_t old = set[i];

		set[i] = moved;
		if (old == line)
			return true;
		moved = old;
	}
	return false;
}

static inline void remember(struct cpu *c, uint64_t line, uint64_t set)
{
	c->last[1] = c->last[0];
	c->last[0].line = line;
	c->last[0].set = set;
}

/*
 * Words of the last two lines, as when memory is copied: they are the most recently used ones of
 * their sets, and to find out where they are would take most of the time. Nothing else was accessed
 * since, so it is still the same memory.
 */
static inline bool just_used(struct cpu *c, uint64_t line)
{
	if (c->last[0].line == line)
		return true;
	if (c->last[1].line != line || c->last[1].set == c->last[0].set)
		return false;
	remember(c, line, c->last[1].set);
	return true;
}

static void on_memory(unsigned index, uint32_t info, uint64_t vaddr, void *data)
{
	struct cpu *c = &cpus[index];
	enum mode mode = (enum mode)(uintptr_t)data;
	enum kind kind = qemu_plugin_mem_is_store(info) ? WRITE : READ;
	struct qemu_plugin_hwaddr *at;
	uint64_t address;

	c->now.accesses[mode][kind]++;
	if (just_used(c, vaddr >> LINE_SHIFT))
		return;
	at = qemu_plugin_get_hwaddr(info, vaddr);
	if (!at || qemu_plugin_hwaddr_is_io(at))
		return;
	address = qemu_plugin_hwaddr_phys_addr(at);
	remember(c, vaddr >> LINE_SHIFT, address >> LINE_SHIFT & set_mask);
	if (!cached(c, address >> LINE_SHIFT)) {
		uint64_t mib = address >> MIB_SHIFT;

		c->now.misses[mode][mib < MAX_MIB ? node_of[mib] : OTHER][kind]++;
		if (frames && mib < MAX_MIB)
			__atomic_fetch_add(&frames[address >> PAGE_SHIFT], 1, __ATOMIC_RELAXED);
	}
}

/* A block that an exception leaves in the middle counts in full. */
static void on_block(unsigned index, void *data)
{
	uintptr_t packed = (uintptr_t)data;

	cpus[index].now.instructions[packed & 1] += packed >> 1;
}

/*
 * A block with a PAUSE. How long one CPU waits for another depends here on how busy the machine is
 * on which the emulator runs, which may not run the other just then. So what the kernel executes
 * from one PAUSE to the next is no work, if it is short.
 */
static void on_waiting(unsigned index, void *data)
{
	enum { SHORT = 200 };
	struct cpu *c = &cpus[index];
	uint64_t since = c->now.instructions[KERNEL] - c->at_pause;

	if (since < SHORT) {
		c->now.instructions[KERNEL] -= since;
		c->now.waiting += since;
	}
	c->now.waiting += (uintptr_t)data;
	c->at_pause = c->now.instructions[KERNEL];
}

/* --- phases ----------------------------------------------------------------------------------- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char name[256]; /* as given by marks, under the lock */
static unsigned name_bits;
static struct phase *to_open;
static bool to_close;
static struct phase *current;

static void restart(uint64_t id);

static struct phase *find_phase(void)
{
	struct phase **at = &phases;

	name[name_bits / 8] = '\0';
	while (*at && strcmp((*at)->name, name))
		at = &(*at)->next;
	if (!*at) {
		*at = calloc(1, sizeof(**at));
		if (*at)
			(*at)->name = strdup(name);
		if (!*at || !(*at)->name) {
			fprintf(stderr, "cost_model: no memory for another phase\n");
			exit(1);
		}
	}
	name_bits = 0;
	memset(name, 0, sizeof(name));
	return *at;
}

static void on_mark(unsigned index, void *data)
{
	uintptr_t op = (uintptr_t)data;

	(void)index;
	pthread_mutex_lock(&lock);
	if (op < 2) {
		if (name_bits < 8 * (sizeof(name) - 1)) {
			name[name_bits / 8] = (char)(name[name_bits / 8] | (op << name_bits % 8));
			name_bits++;
		}
	} else if (op == 2) {
		struct phase *p = find_phase();

		if (current || to_open)
			fprintf(stderr, "cost_model: phase '%s' begins within '%s': not counted\n",
				p->name, (current ? current : to_open)->name);
		else
			to_open = p;
	} else if (current || to_open) {
		to_close = true;
	} else {
		fprintf(stderr, "cost_model: a phase ends that did not begin\n");
	}
	/* Asynchronous: this CPU goes on to the end of its block, others about as far. */
	if (to_open || to_close)
		qemu_plugin_reset(plugin_id, restart);
	pthread_mutex_unlock(&lock);
}

static void add(struct counts *to, const struct counts *from)
{
	const uint64_t *f = (const uint64_t *)from;
	uint64_t *t = (uint64_t *)to;

	for (size_t i = 0; i < sizeof(*to) / sizeof(*t); i++)
		t[i] += f[i];
}

static void print_modes(const char *what, uint64_t user, uint64_t kernel)
{
	fprintf(out, ", \"%s\": {\"user\": %llu, \"kernel\": %llu}", what, (unsigned long long)user,
		(unsigned long long)kernel);
}

static double ns_of(const struct counts *c, int cpu, enum mode mode)
{
	double ns = (double)c->instructions[mode] * cpi_ns;

	for (int node = 0; node < MAX_NODES; node++)
		ns += (double)(c->misses[mode][node][READ] + c->misses[mode][node][WRITE]) *
		      latency_ns[node_of_cpu[cpu]][node];
	return ns;
}

static void print_cpu(const struct counts *c, int cpu)
{
	const char *comma = "";

	fprintf(out, "{\"cpu\": %d, \"node\": %d", cpu, node_of_cpu[cpu]);
	fprintf(out, ", \"waiting\": %llu", (unsigned long long)c->waiting);
	print_modes("instructions", c->instructions[USER], c->instructions[KERNEL]);
	print_modes("reads", c->accesses[USER][READ], c->accesses[KERNEL][READ]);
	print_modes("writes", c->accesses[USER][WRITE], c->accesses[KERNEL][WRITE]);
	fprintf(out, ", \"misses\": {");
	for (int node = 0; node <= MAX_NODES; node++) {
		if (node == OTHER)
			fprintf(out, "%s\"other\": {", comma);
		else if (described >> node & 1)
			fprintf(out, "%s\"%d\": {", comma, node);
		else
			continue;
		fprintf(out,
			"\"user_reads\": %llu, \"user_writes\": %llu, "
			"\"kernel_reads\": %llu, \"kernel_writes\": %llu}",
			(unsigned long long)c->misses[USER][node][READ],
			(unsigned long long)c->misses[USER][node][WRITE],
			(unsigned long long)c->misses[KERNEL][node][READ],
			(unsigned long long)c->misses[KERNEL][node][WRITE]);
		comma = ", ";
	}
	fprintf(out, "}, \"ns\": {\"user\": %.0f, \"kernel\": %.0f}}", ns_of(c, cpu, USER),
		ns_of(c, cpu, KERNEL));
}

static void print_name(const char *text)
{
	for (; *text; text++)
		if (*text == '"' || *text == '\\' || (unsigned char)*text < ' ')
			fprintf(out, "\\u%04x", (unsigned char)*text);
		else
			fputc(*text, out);
}

/* All again each time, so that what is in the file is whole whenever the guest ends. */
static void print_phases(void)
{
	rewind(out);
	for (const struct phase *p = phases; p; p = p->next) {
		if (p->times == 0)
			continue;
		fprintf(out, "{\"phase\": \"");
		print_name(p->name);
		fprintf(out, "\", \"times\": %u, \"open\": %s, \"cpus\": [", p->times,
			p->open ? "true" : "false");
		for (int i = 0; i < nr_cpus; i++) {
			fputs(i ? ", " : "", out);
			print_cpu(&p->sum[i], i);
		}
		fprintf(out, "]}\n");
	}
	fflush(out);
	if (ftruncate(fileno(out), ftell(out)))
		fprintf(stderr, "cost_model: the file of results may end in old lines\n");
}

/* Most of it was never touched, and is no memory either. */
static void print_frames(void)
{
	for (uint64_t i = 0; i < (uint64_t)MAX_MIB << (MIB_SHIFT - PAGE_SHIFT); i++)
		if (frames[i])
			fprintf(frames_out, "%llx %u\n", (unsigned long long)i, frames[i]);
	if (fclose(frames_out))
		fprintf(stderr, "cost_model: the counts of pages are not whole\n");
}

static void end_phase(void)
{
	for (int i = 0; i < nr_cpus; i++)
		add(&current->sum[i], &cpus[i].now);
	current = NULL;
	counting = false;
}

static void begin_phase(struct phase *p)
{
	p->times++;
	p->open = true;
	for (int i = 0; i < nr_cpus; i++) {
		memset(&cpus[i].now, 0, sizeof(cpus[i].now));
		cpus[i].at_pause = 0;
		for (uint64_t k = 0; k < (set_mask + 1) * ways; k++)
			cpus[i].lines[k] = EMPTY;
		cpus[i].last[0].line = cpus[i].last[1].line = EMPTY;
	}
	current = p;
	counting = true;
}

/* --- what QEMU calls -------------------------------------------------------------------------- */

static bool code_is(const struct qemu_plugin_insn *insn, void *ret_code, size_t size)
{
	if (qemu_plugin_insn_size(insn) != size)
		return false;
#if PLUGIN_API >= 3
	return qemu_plugin_insn_data(insn, ret_code, size) == size;
#else
	memcpy(ret_code, qemu_plugin_insn_data(insn), size);
	return true;
#endif
}

/* -1, or which mark this is */
static int mark_of(const struct qemu_plugin_insn *insn)
{
	static const unsigned char before[] = {0x0f, 0x1f, 0x80};
	static const unsigned char after[] = {0x4e, 0x4c, 0x4d};
	unsigned char code[7];

	if (!code_is(insn, code, sizeof(code)) || memcmp(code, before, sizeof(before)) ||
		memcmp(code + 4, after, sizeof(after)) || code[3] > 3)
		return -1;
	return code[3];
}

/* Waits for another CPU: there is a PAUSE in the loop. */
static bool waits(const struct qemu_plugin_tb *tb)
{
	static const unsigned char pause[] = {0xf3, 0x90};
	unsigned char code[sizeof(pause)];

	for (size_t i = 0; i < qemu_plugin_tb_n_insns(tb); i++)
		if (code_is(qemu_plugin_tb_get_insn(tb, i), code, sizeof(code)) &&
			memcmp(code, pause, sizeof(code)) == 0)
			return true;
	return false;
}

static void on_translation(uint64_t id, struct qemu_plugin_tb *tb)
{
	/* The upper half of the addresses is the kernel's. */
	uintptr_t mode = qemu_plugin_tb_vaddr(tb) >> 63 ? KERNEL : USER;
	size_t n = qemu_plugin_tb_n_insns(tb);

	(void)id;
	if (counting && mode == KERNEL && waits(tb))
		qemu_plugin_register_vcpu_tb_exec_cb(tb, on_waiting, REGISTERS_NONE, (void *)n);
	else if (counting)
		qemu_plugin_register_vcpu_tb_exec_cb(
			tb, on_block, REGISTERS_NONE, (void *)(n << 1 | mode));
	for (size_t i = 0; i < n; i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
		int mark = mode == USER ? mark_of(insn) : -1;

		if (mark >= 0)
			qemu_plugin_register_vcpu_insn_exec_cb(
				insn, on_mark, REGISTERS_NONE, (void *)(intptr_t)mark);
		else if (counting)
			qemu_plugin_register_vcpu_mem_cb(
				insn, on_memory, REGISTERS_NONE, READS_AND_WRITES, (void *)mode);
	}
}

static void on_end(uint64_t id, void *data)
{
	(void)id;
	(void)data;
	if (current)
		end_phase(); /* and its object says that it is open */
	print_phases();
	if (frames)
		print_frames();
}

/*
 * QEMU 7.2 may still point from a CPU to the callbacks of an instruction that accessed memory
 * through a helper, when these are freed with the translated code, and calls them at the next
 * interrupt. All CPUs are stopped here. Later versions do this themselves, and do not export the
 * functions.
 */
static void forget_callbacks(uint64_t id)
{
	(void)id;
	if (qemu_get_cpu && qemu_plugin_disable_mem_helpers)
		for (int i = 0; i < nr_cpus; i++)
			if (qemu_get_cpu(i))
				qemu_plugin_disable_mem_helpers(qemu_get_cpu(i));
}

static void watch(uint64_t id)
{
	qemu_plugin_register_flush_cb(id, forget_callbacks);
	qemu_plugin_register_vcpu_tb_trans_cb(id, on_translation);
	qemu_plugin_register_atexit_cb(id, on_end, NULL);
}

/* Called when all CPUs are stopped and no translated code is left. */
static void restart(uint64_t id)
{
	struct phase *p = current;

	if (to_open)
		begin_phase(p = to_open);
	if (to_close) {
		end_phase();
		p->open = false;
		print_phases();
	}
	to_open = NULL;
	to_close = false;
	watch(id);
}

/* --- arguments -------------------------------------------------------------------------------- */

static int complain(const char *argument, const char *expected)
{
	fprintf(stderr, "cost_model: '%s': expected %s\n", argument, expected);
	return -1;
}

/* "A:B:C" into n numbers */
static bool numbers(const char *text, int n, uint64_t *ret)
{
	for (int i = 0; i < n; i++) {
		char *end;

		if (*text < '0' || *text > '9')
			return false;
		ret[i] = strtoull(text, &end, 0);
		if (*end != (i + 1 < n ? ':' : '\0'))
			return false;
		text = end + 1;
	}
	return true;
}

static int parse_range(const char *argument, const char *value)
{
	const char *expected =
		"range=START:LENGTH:NODE, whole MiB below 64 GiB, no two overlapping";
	uint64_t v[3];
	uint64_t mib = 1ull << MIB_SHIFT;

	if (!numbers(value, 3, v) || v[0] % mib || v[1] % mib || v[2] >= MAX_NODES ||
		v[0] / mib > MAX_MIB || v[1] / mib > MAX_MIB - v[0] / mib)
		return complain(argument, expected);
	for (uint64_t i = v[0] / mib; i < (v[0] + v[1]) / mib; i++) {
		if (node_of[i] != OTHER)
			return complain(argument, expected);
		node_of[i] = (unsigned char)v[2];
	}
	described |= 1ull << v[2];
	return 0;
}

static int parse(const char *argument)
{
	const char *value = strchr(argument, '=');
	size_t key = value ? (size_t)(value++ - argument) : 0;
	uint64_t v[3];
	char *end;

#define IS(text) (key == strlen(text) && strncmp(argument, text, key) == 0)
	if (IS("out")) {
		if (out)
			return complain(argument, "one file only");
		out = fopen(value, "we");
		if (!out)
			return complain(argument, "a file that can be written");
		return 0;
	}
	if (IS("frames")) {
		if (frames)
			return complain(argument, "one file only");
		frames_out = fopen(value, "we");
		if (!frames_out)
			return complain(argument, "a file that can be written");
		frames = calloc((size_t)MAX_MIB << (MIB_SHIFT - PAGE_SHIFT), sizeof(*frames));
		return frames ? 0 : complain(argument, "memory for the counts");
	}
	if (IS("range"))
		return parse_range(argument, value);
	if (IS("cpu")) {
		if (!numbers(value, 2, v) || v[0] >= MAX_CPUS || v[1] >= MAX_NODES)
			return complain(argument, "cpu=CPU:NODE");
		node_of_cpu[v[0]] = (int)v[1];
		return 0;
	}
	if (IS("latency")) {
		if (!numbers(value, 3, v) || v[0] >= MAX_NODES || v[1] >= MAX_NODES)
			return complain(argument, "latency=FROM:TO:NS, nodes and nanoseconds");
		latency_ns[v[0]][v[1]] = (double)v[2];
		return 0;
	}
	if (IS("cpi")) {
		cpi_ns = strtod(value, &end);
		if (end == value || *end || !(cpi_ns >= 0 && cpi_ns <= 1000))
			return complain(argument, "cpi=NS, of an instruction that misses nothing");
		return 0;
	}
	if (IS("cache")) {
		if (!numbers(value, 1, v) || v[0] < 1 || v[0] > 1u << 20)
			return complain(argument, "cache=KIB");
		cache_kib = (unsigned)v[0];
		return 0;
	}
	if (IS("ways")) {
		if (!numbers(value, 1, v) || v[0] < 1 || v[0] > MAX_WAYS)
			return complain(argument, "ways=N, up to 64");
		ways = (unsigned)v[0];
		return 0;
	}
#undef IS
	return complain(argument, "out=, frames=, range=, cpu=, latency=, cpi=, cache= or ways=");
}

static int missing(const char *what)
{
	fprintf(stderr, "cost_model: missing: %s\n", what);
	return -1;
}

static int check(const struct machine_info *info)
{
	uint64_t sets = ((uint64_t)cache_kib << 10 >> LINE_SHIFT) / ways;

	if (!out)
		return missing("out=FILE");
	if (!described)
		return missing("range=START:LENGTH:NODE for each node's memory");
	if (!info->whole_system || info->system.max_cpus < 1 || info->system.max_cpus > MAX_CPUS)
		return complain(info->target, "a whole system with at most 64 CPUs");
	if (strcmp(info->target, "x86_64"))
		return complain(info->target, "x86_64");
	if (sets == 0 || (sets & (sets - 1)) ||
		sets * ways << LINE_SHIFT != (uint64_t)cache_kib << 10)
		return complain("cache=, ways=", "a power of two of sets, lines of 64 bytes");
	set_mask = sets - 1;
	nr_cpus = info->system.max_cpus;
	for (int i = 0; i < nr_cpus; i++) {
		int from = node_of_cpu[i];

		if (from < 0) {
			fprintf(stderr, "cost_model: CPU %d: expected cpu=%d:NODE\n", i, i);
			return -1;
		}
		for (int to = 0; to < MAX_NODES; to++)
			if ((described >> to & 1) && !(latency_ns[from][to] > 0)) {
				fprintf(stderr, "cost_model: expected latency=%d:%d:NS\n", from,
					to);
				return -1;
			}
	}
	return 0;
}

int qemu_plugin_install(uint64_t id, const struct machine_info *info, int argc, char **argv)
{
	plugin_id = id;
	memset(node_of, OTHER, sizeof(node_of));
	memset(node_of_cpu, -1, sizeof(node_of_cpu));
	for (int i = 0; i < argc; i++)
		if (parse(argv[i]))
			return -1;
	if (check(info))
		return -1;
	cpus = calloc(MAX_CPUS, sizeof(*cpus));
	for (int i = 0; cpus && i < nr_cpus; i++) {
		cpus[i].lines = aligned_alloc(64, (set_mask + 1) * ways * sizeof(uint64_t));
		if (!cpus[i].lines)
			cpus = NULL;
	}
	if (!cpus)
		return missing("memory");
	watch(id);
	return 0;
}
