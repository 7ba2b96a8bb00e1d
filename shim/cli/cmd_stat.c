// SPDX-License-Identifier: MIT
/*
 * numalift stat: what the library does in a running program, by the page that it keeps
 * (policy/stats_page.h). Reads only; the program does not notice.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "policy/procparse.h"
#include "shim/cli/args.h"
#include "shim/cli/cli.h"
#include "shim/cli/json.h"
#include "shim/cli/stats_reader.h"
#include "shim/cli/text.h"

enum { OPT_JSON, OPT_INTERVAL, OPT_COUNT, OPT_FILE };

static const struct lift_cli_option table[] = {
	[OPT_JSON] = {.name = "json", .help = "Print JSON."},
	[OPT_INTERVAL] =
		{
			.name = "interval",
			.letter = 'i',
			.arg = "SECONDS",
			.help = "Print a line every so many seconds, of what changed meanwhile.",
			.accepted = "0.01 to 86400",
		},
	[OPT_COUNT] =
		{
			.name = "count",
			.letter = 'n',
			.arg = "N",
			.help = "End after N lines.",
			.accepted = "1 to 1000000000",
		},
	[OPT_FILE] =
		{
			.name = "file",
			.arg = "FILE",
			.help = "Read this page instead of looking for one.",
		},
};

static size_t options(const struct lift_cli_option **ret)
{
	*ret = table;
	return sizeof(table) / sizeof(table[0]);
}

struct wish {
	bool json;
	double interval; /* 0: once */
	uint64_t count;  /* 0: until the program ends */
	const char *file;
	const char *who;
};

#define HEAD_EVERY 20
#define DASH "-"

/* --- values -------------------------------------------------------------------------------------
 */

static char *text_bytes(uint64_t v)
{
	char buf[LIFT_TEXT_BYTES];

	return lift_text("%s", lift_text_bytes(v, buf));
}

static char *text_pages(uint64_t v)
{
	return v > UINT64_MAX / LIFT_PAGE_BYTES ? lift_text("%" PRIu64 " pages", v)
						: text_bytes(v * LIFT_PAGE_BYTES);
}

static char *text_ns(uint64_t ns)
{
	uint64_t s = ns / 1000000000;

	if (ns < 1000)
		return lift_text("%" PRIu64 " ns", ns);
	if (ns < 1000000)
		return lift_text("%.1f us", (double)ns / 1e3);
	if (ns < 1000000000)
		return lift_text("%.1f ms", (double)ns / 1e6);
	if (s < 120)
		return lift_text("%.1f s", (double)ns / 1e9);
	if (s < 7200)
		return lift_text("%" PRIu64 " min %" PRIu64 " s", s / 60, s % 60);
	return lift_text("%" PRIu64 " h %" PRIu64 " min", s / 3600, s % 3600 / 60);
}

static char *text_value(enum lift_stats_unit unit, uint64_t v)
{
	switch (unit) {
	case LIFT_STATS_UNIT_STATE:
		return lift_text("%s", lift_stats_state_name(v));
	case LIFT_STATS_UNIT_MODE:
		return lift_text("%s", lift_stats_mode_name(v));
	case LIFT_STATS_UNIT_PAGES:
		return text_pages(v);
	case LIFT_STATS_UNIT_BYTES:
		return v == UINT64_MAX ? lift_text("no limit") : text_bytes(v);
	case LIFT_STATS_UNIT_NS:
		return text_ns(v);
	case LIFT_STATS_UNIT_PPM:
		return lift_text("%.1f %%", (double)v / 1e4);
	case LIFT_STATS_UNIT_SHARE:
		return lift_text("%.1f %%", (double)v / 40.96);
	case LIFT_STATS_UNIT_RATE:
		return lift_text("%.3f /s", (double)v / 1e3);
	case LIFT_STATS_UNIT_COUNT:
		break;
	}
	return lift_text("%" PRIu64, v);
}

/* A figure as a cell; what the writer does not know is a dash. */
static char *text_figure(const struct lift_stats_view *v, enum lift_stats_figure i)
{
	return v->has[i] ? text_value(lift_stats_table[i].unit, lift_stats_get(&v->stats, i))
			 : lift_text(DASH);
}

/* CPU time of both, ours and what it costs the program, over all time; "-": not known. */
static char *text_cpu(uint64_t ns, uint64_t of_ns)
{
	return of_ns ? lift_text("%.2f %%", 100.0 * (double)ns / (double)of_ns) : lift_text(DASH);
}

static uint64_t cpu_ns(const struct lift_stats *s)
{
	return s->worker_cpu_ns + s->fault_est_ns;
}

static uint64_t failed_pages(const struct lift_stats *s)
{
	return s->move_busy + s->move_nomem + s->move_absent + s->move_shared;
}

/* --- for people ---------------------------------------------------------------------------------
 */

static const char *life_text(enum lift_stats_life life)
{
	switch (life) {
	case LIFT_STATS_ENDED:
		return "has ended; this is the last that it said";
	case LIFT_STATS_ELSEWHERE:
		return "of another container: whether it still runs is not known here";
	case LIFT_STATS_RUNNING:
		break;
	}
	return "running";
}

static void print_head(const struct lift_stats_page *p)
{
	const struct lift_stats *s = &p->view.stats;
	char *age = text_ns((uint64_t)(p->age * 1e9));

	(void)printf(
		"%s (pid %u), %s\n", p->view.owner.program, p->view.owner.pid, life_text(p->life));
	(void)printf("  page     %s, written %s ago\n", p->path, age);
	(void)printf("  sampler  %s\n", *s->sampler ? s->sampler : "none");
	if (*s->reason)
		(void)printf("  reason   %s\n", s->reason);
	free(age);
}

static bool shown(const struct lift_stats_page *p, enum lift_stats_section section)
{
	const struct lift_stats *s = &p->view.stats;

	/* Of the whole machine, and read by one sampler only. */
	return section != LIFT_STATS_KERNEL || strcmp(s->sampler, "kernel") == 0 ||
	       s->kernel_pgpromote_success || s->kernel_pgdemote || s->kernel_numa_pages_migrated ||
	       s->kernel_numa_hint_faults;
}

static void print_nodes(const struct lift_stats *s)
{
	static const char *const head[] = {"  node", "tier", "tracked", "free", "usable"};
	struct lift_table t;

	if (s->nr_nodes == 0)
		return;
	lift_table_init(&t, 5, "><>><");
	for (unsigned i = 0; i < 5; i++)
		lift_table_add(&t, lift_text("%s", head[i]));
	for (unsigned i = 0; i < s->nr_nodes; i++) {
		const struct lift_stats_node *n = &s->node[i];

		lift_table_add(&t, lift_text("%d", n->node));
		lift_table_add(&t, lift_text(n->fast ? "fast" : "slow"));
		lift_table_add(&t, text_pages(n->pages_here));
		lift_table_add(&t, text_bytes(n->free_bytes));
		lift_table_add(&t, lift_text(n->usable ? "yes" : "no"));
	}
	(void)putchar('\n');
	lift_table_print(&t, stdout);
	lift_table_fini(&t);
}

static void print_human(const struct lift_stats_page *p)
{
	static const char *const title[LIFT_STATS_SECTION_MAX] = {
		[LIFT_STATS_NOW] = "What it does",
		[LIFT_STATS_MEMORY] = "Where memory lies",
		[LIFT_STATS_SAMPLES] = "Pages sampled",
		[LIFT_STATS_MOVES] = "Pages moved",
		[LIFT_STATS_WINDOW] = "Pages moved in advance",
		[LIFT_STATS_COST] = "What it costs",
		[LIFT_STATS_KERNEL] = "What the kernel did, on the whole machine",
	};
	const struct lift_stats *s = &p->view.stats;
	struct lift_table t[LIFT_STATS_SECTION_MAX];
	size_t value_width = 0;
	size_t name_width = 0;

	for (unsigned i = 0; i < LIFT_STATS_SECTION_MAX; i++)
		lift_table_init(&t[i], 3, "<><");
	lift_table_add(&t[LIFT_STATS_COST], lift_text("cpu share"));
	lift_table_add(&t[LIFT_STATS_COST], text_cpu(cpu_ns(s), s->uptime_ns));
	lift_table_add(&t[LIFT_STATS_COST], lift_text("of one CPU, since the start"));
	for (unsigned i = 0; i < LIFT_STATS_NR; i++) {
		const struct lift_stats_row *row = &lift_stats_table[i];
		struct lift_table *to = &t[row->section];

		lift_table_add(to, lift_text("%s", row->name));
		lift_table_add(to, text_figure(&p->view, i));
		lift_table_add(to, lift_text("%s", row->meaning));
	}
	/* All sections alike, so that they read as one. */
	for (unsigned k = 0; k < LIFT_STATS_SECTION_MAX; k++) {
		if (!shown(p, k))
			continue;
		for (size_t i = 0; i < t[k].nr; i += 3) {
			if (strlen(t[k].cell[i]) > name_width)
				name_width = strlen(t[k].cell[i]);
			if (strlen(t[k].cell[i + 1]) > value_width)
				value_width = strlen(t[k].cell[i + 1]);
		}
	}
	print_head(p);
	for (unsigned k = 0; k < LIFT_STATS_SECTION_MAX; k++) {
		if (shown(p, k)) {
			(void)printf("\n%s\n", title[k]);
			for (size_t i = 0; i < t[k].nr; i += 3)
				(void)printf("  %-*s  %*s  %s\n", (int)name_width, t[k].cell[i],
					(int)value_width, t[k].cell[i + 1], t[k].cell[i + 2]);
			if (k == LIFT_STATS_MEMORY)
				print_nodes(s);
		}
		lift_table_fini(&t[k]);
	}
}

/* One line each. */
static void print_list(const struct lift_stats_pages *pages, FILE *out)
{
	static const char *const head[] = {"PID", "PROGRAM", "STATE", "SAMPLER", "TRACKED", "FAST",
		"SHARE", "MOVED UP", "CPU"};
	enum { COLUMNS = sizeof(head) / sizeof(head[0]) };
	struct lift_table t;

	lift_table_init(&t, COLUMNS, "><<<>>>>>");
	for (unsigned i = 0; i < COLUMNS; i++)
		lift_table_add(&t, lift_text("%s", head[i]));
	for (size_t i = 0; i < pages->nr; i++) {
		const struct lift_stats_view *v = &pages->page[i].view;

		if (pages->page[i].problem)
			continue;
		lift_table_add(&t, lift_text("%u", v->owner.pid));
		lift_table_add(&t, lift_text("%s", v->owner.program));
		lift_table_add(&t, pages->page[i].life == LIFT_STATS_ENDED
					   ? lift_text("ended")
					   : text_figure(v, LIFT_STATS_state));
		lift_table_add(&t, lift_text("%s", *v->stats.sampler ? v->stats.sampler : DASH));
		lift_table_add(&t, text_figure(v, LIFT_STATS_tracked_bytes));
		lift_table_add(&t, text_figure(v, LIFT_STATS_fast_bytes));
		lift_table_add(&t, text_figure(v, LIFT_STATS_fast_share));
		lift_table_add(&t, text_figure(v, LIFT_STATS_pgpromote_success));
		lift_table_add(&t, text_cpu(cpu_ns(&v->stats), v->stats.uptime_ns));
	}
	lift_table_print(&t, out);
	lift_table_fini(&t);
}

/* --- for machines -------------------------------------------------------------------------------
 */

static void json_page(struct lift_json *j, const char *key, const struct lift_stats_page *p)
{
	const struct lift_stats *s = &p->view.stats;

	lift_json_object(j, key);
	lift_json_string(j, "version", LIFT_VERSION);
	lift_json_string(j, "page", p->path);
	lift_json_number(j, "page_version", p->view.version);
	lift_json_number(j, "age_ms", (int64_t)(p->age * 1e3));
	lift_json_number(j, "pid", p->view.owner.pid);
	lift_json_number(j, "uid", p->uid);
	lift_json_string(j, "program", p->view.owner.program);
	if (p->life == LIFT_STATS_ELSEWHERE)
		lift_json_string(j, "running", NULL);
	else
		lift_json_bool(j, "running", p->life == LIFT_STATS_RUNNING);
	lift_json_string(j, "sampler", *s->sampler ? s->sampler : NULL);
	lift_json_string(j, "reason", *s->reason ? s->reason : NULL);
	for (unsigned i = 0; i < LIFT_STATS_NR; i++) {
		const struct lift_stats_row *row = &lift_stats_table[i];
		uint64_t value = lift_stats_get(s, i);

		if (!p->view.has[i])
			lift_json_string(j, row->name, NULL);
		else if (row->unit == LIFT_STATS_UNIT_STATE)
			lift_json_string(j, row->name, lift_stats_state_name(value));
		else if (row->unit == LIFT_STATS_UNIT_MODE)
			lift_json_string(j, row->name, lift_stats_mode_name(value));
		else if (row->unit == LIFT_STATS_UNIT_BYTES && value == UINT64_MAX)
			lift_json_string(j, row->name, NULL);
		else
			lift_json_unsigned(j, row->name, value);
	}
	lift_json_array(j, "nodes");
	for (unsigned i = 0; i < s->nr_nodes; i++) {
		lift_json_object(j, NULL);
		lift_json_number(j, "id", s->node[i].node);
		lift_json_bool(j, "fast", s->node[i].fast);
		lift_json_bool(j, "usable", s->node[i].usable);
		lift_json_unsigned(j, "pages_here", s->node[i].pages_here);
		lift_json_unsigned(j, "free_bytes", s->node[i].free_bytes);
		lift_json_end(j);
	}
	lift_json_end(j);
	lift_json_end(j);
}

static void print_json(const struct lift_stats_page *p, bool flat)
{
	struct lift_json j;

	lift_json_init(&j, stdout);
	j.flat = flat;
	json_page(&j, NULL, p);
}

/* --- again and again ----------------------------------------------------------------------------
 */

static const struct column {
	const char *head;
	int width; /* negative: to the left */
} columns[] = {
	{"STATE", -9},
	{"FAST", 8},
	{"SLOW", 8},
	{"SHARE", 7},
	{"PASSES", 6},
	{"PROMOTED", 8},
	{"DEMOTED", 8},
	{"BOUNCED", 8},
	{"FAILED", 8},
	{"AHEAD", 8},
	{"HIT", 8},
	{"WRONG", 8},
	{"CPU", 7},
};

#define NR_COLUMNS (sizeof(columns) / sizeof(columns[0]))

static void print_heads(void)
{
	for (size_t i = 0; i < NR_COLUMNS; i++)
		(void)printf("%s%*s", i ? " " : "", columns[i].width, columns[i].head);
	(void)putchar('\n');
}

/* Counters never go back; where one did, the process began anew (exec). */
static uint64_t since(uint64_t then, uint64_t now)
{
	return now >= then ? now - then : now;
}

static void print_change(const struct lift_stats_page *was, const struct lift_stats_page *is)
{
	const struct lift_stats *a = &was->view.stats;
	const struct lift_stats *b = &is->view.stats;
	char *cell[NR_COLUMNS] = {
		text_figure(&is->view, LIFT_STATS_state),
		text_figure(&is->view, LIFT_STATS_fast_bytes),
		text_figure(&is->view, LIFT_STATS_slow_bytes),
		text_figure(&is->view, LIFT_STATS_fast_share),
		lift_text("%" PRIu64, since(a->passes, b->passes)),
		text_pages(since(a->pgpromote_success, b->pgpromote_success)),
		text_pages(since(a->pgdemote, b->pgdemote)),
		text_pages(since(a->bounced, b->bounced)),
		text_pages(since(failed_pages(a), failed_pages(b))),
		text_pages(since(a->predicted, b->predicted)),
		text_pages(since(a->predicted_hit, b->predicted_hit)),
		text_pages(since(a->predicted_wrong, b->predicted_wrong)),
		text_cpu(since(cpu_ns(a), cpu_ns(b)), since(a->uptime_ns, b->uptime_ns)),
	};

	for (size_t i = 0; i < NR_COLUMNS; i++) {
		(void)printf("%s%*s", i ? " " : "", columns[i].width, cell[i]);
		free(cell[i]);
	}
	(void)putchar('\n');
}

static void wait_until(struct timespec *next, double seconds)
{
	next->tv_sec += (time_t)seconds;
	next->tv_nsec += (long)((seconds - (double)(time_t)seconds) * 1e9);
	if (next->tv_nsec >= 1000000000) {
		next->tv_nsec -= 1000000000;
		next->tv_sec++;
	}
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, next, NULL) == EINTR)
		;
}

static int watch(const struct wish *w, struct lift_stats_page *first)
{
	struct lift_stats_page was = *first; /* its path stays with @first */
	struct lift_stats_page is = {0};
	struct timespec next;
	int status = LIFT_EXIT_OK;

	(void)clock_gettime(CLOCK_MONOTONIC, &next);
	if (!w->json)
		(void)printf("%s (pid %u)\n", first->view.owner.program, first->view.owner.pid);
	for (uint64_t i = 0; w->count == 0 || i < w->count; i++) {
		if (!w->json && i % HEAD_EVERY == 0)
			print_heads();
		(void)lift_cli_finish(LIFT_EXIT_OK);
		wait_until(&next, w->interval);
		if (!lift_stats_page_load(&is, first->path) || is.life == LIFT_STATS_ENDED ||
			is.view.owner.pid != was.view.owner.pid) {
			if (is.problem && access(first->path, F_OK) == 0)
				lift_cli_say("%s %s", is.path, is.problem);
			else
				lift_cli_say("%s (pid %u) has ended", was.view.owner.program,
					was.view.owner.pid);
			status = LIFT_EXIT_OFF;
			break;
		}
		if (w->json)
			print_json(&is, true);
		else
			print_change(&was, &is);
		was.view = is.view;
	}
	lift_stats_page_fini(&is);
	return lift_cli_finish(status);
}

/* --- the command --------------------------------------------------------------------------------
 */

static int show(const struct wish *w, struct lift_stats_page *p)
{
	if (p->problem) {
		lift_cli_say("%s %s", p->path, p->problem);
		return LIFT_EXIT_OFF;
	}
	if (w->interval > 0 && p->life != LIFT_STATS_ENDED)
		return watch(w, p);
	if (w->json)
		print_json(p, w->interval > 0);
	else
		print_human(p);
	if (p->life == LIFT_STATS_ENDED)
		lift_cli_say("%s (pid %u) has ended and left %s behind", p->view.owner.program,
			p->view.owner.pid, p->path);
	return lift_cli_finish(p->life == LIFT_STATS_ENDED ? LIFT_EXIT_OFF : LIFT_EXIT_OK);
}

static int list(const struct wish *w, const struct lift_stats_pages *pages)
{
	size_t readable = 0;

	for (size_t i = 0; i < pages->nr; i++) {
		if (pages->page[i].problem)
			lift_cli_say("%s %s", pages->page[i].path, pages->page[i].problem);
		else
			readable++;
	}
	if (w->json) {
		struct lift_json j;

		lift_json_init(&j, stdout);
		lift_json_object(&j, NULL);
		lift_json_array(&j, "pages");
		for (size_t i = 0; i < pages->nr; i++)
			if (!pages->page[i].problem)
				json_page(&j, NULL, &pages->page[i]);
		lift_json_end(&j);
		lift_json_end(&j);
	} else if (readable) {
		print_list(pages, stdout);
	} else if (pages->nr == 0) {
		lift_cli_say("no program with a statistics page was found; one has it when it was "
			     "started with numalift, has run for a while, and the machine has slow "
			     "nodes");
	}
	return lift_cli_finish(readable ? LIFT_EXIT_OK : LIFT_EXIT_OFF);
}

static bool matches(const struct lift_stats_page *p, const char *who, uint64_t pid)
{
	return pid ? p->pid == pid : !p->problem && strcmp(p->view.owner.program, who) == 0;
}

/* Leaves only those that are meant: the running ones, if there are any, else all of that name. */
static void narrow(struct lift_stats_pages *pages, const char *who, uint64_t pid)
{
	bool running = false;
	size_t nr = 0;

	for (size_t i = 0; i < pages->nr; i++)
		if (matches(&pages->page[i], who, pid) && !pages->page[i].problem &&
			pages->page[i].life != LIFT_STATS_ENDED)
			running = true;
	for (size_t i = 0; i < pages->nr; i++) {
		struct lift_stats_page *p = &pages->page[i];

		if (matches(p, who, pid) &&
			(!running || (!p->problem && p->life != LIFT_STATS_ENDED)))
			pages->page[nr++] = *p;
		else
			lift_stats_page_fini(p);
	}
	pages->nr = nr;
}

static int not_found(const char *who, uint64_t pid)
{
	if (pid)
		lift_cli_say("no statistics page of pid %s was found: it does not run, it was not "
			     "started with numalift, or NUMALIFT_STATS puts its page elsewhere "
			     "(--file)",
			who);
	else
		lift_cli_say("no statistics page of a program '%s' was found; 'numalift stat' "
			     "lists those that are there",
			who);
	return LIFT_EXIT_OFF;
}

static int find(const struct wish *w)
{
	struct lift_stats_pages pages;
	uint64_t pid = 0;
	int status;

	if (w->who && (lift_parse_u64(w->who, strlen(w->who), &pid) < 0 || pid > INT32_MAX))
		pid = 0;
	lift_stats_pages_find(&pages, (uint32_t)pid);
	if (w->who)
		narrow(&pages, w->who, pid);
	if (!w->who) {
		status = list(w, &pages);
	} else if (pages.nr == 0) {
		status = not_found(w->who, pid);
	} else if (pages.nr == 1) {
		status = show(w, &pages.page[0]);
	} else {
		lift_cli_say("%zu programs are called '%s': say which by its pid%s", pages.nr,
			w->who, pid ? ", or by --file" : "");
		if (pid)
			for (size_t i = 0; i < pages.nr; i++)
				(void)fprintf(stderr, "  %s\n", pages.page[i].path);
		else
			print_list(&pages, stderr);
		status = LIFT_EXIT_USAGE;
	}
	lift_stats_pages_fini(&pages);
	return status;
}

static int read_interval(struct wish *w, const char *value)
{
	char *end;

	w->interval = strtod(value, &end);
	if (end != value && !*end && w->interval >= 0.01 && w->interval <= 86400)
		return 0;
	lift_cli_say("stat: '%s' is no interval; seconds from 0.01 to 86400 are accepted", value);
	return -1;
}

static int read_count(struct wish *w, const char *value)
{
	if (lift_parse_u64(value, strlen(value), &w->count) == 0 && w->count > 0 &&
		w->count <= 1000000000)
		return 0;
	lift_cli_say("stat: '%s' is no count; 1 to 1000000000 is accepted", value);
	return -1;
}

static int run(const struct lift_command *self, int argc, char **argv)
{
	struct lift_args args;
	struct wish w = {0};
	const char *value;
	int i;

	lift_args_init(&args, self, argc, argv);
	while ((i = lift_args_next(&args, &value)) >= 0) {
		if (i == OPT_JSON)
			w.json = true;
		else if (i == OPT_FILE)
			w.file = value;
		else if (i == OPT_INTERVAL ? read_interval(&w, value) : read_count(&w, value))
			return lift_args_usage(&args);
	}
	if (i == LIFT_ARGS_EXIT)
		return args.status;
	if (args.at < argc && !w.file)
		w.who = args.argv[args.at++];
	i = lift_args_done(&args);
	if (i)
		return i;
	if (w.count && w.interval <= 0) {
		lift_cli_say("stat: --count is for lines, which --interval asks for");
		return lift_args_usage(&args);
	}
	if (w.interval > 0 && !w.who && !w.file) {
		lift_cli_say("stat: --interval is for one program: say which, by pid or by name");
		return lift_args_usage(&args);
	}
	if (w.file) {
		struct lift_stats_page p = {0};

		(void)lift_stats_page_load(&p, w.file);
		i = show(&w, &p);
		lift_stats_page_fini(&p);
		return i;
	}
	return find(&w);
}

const struct lift_command lift_cmd_stat = {
	.name = "stat",
	.usage = "[OPTION]... [PID|NAME]",
	.summary = "Show what the library does in a running program.",
	.text = "Shows what promotion does in a program that was started with the library: where "
		"its\n"
		"memory lies, what was moved and what that cost. Without PID or NAME all programs "
		"of this\n"
		"user are listed; root sees everybody's. The program does not notice.\n\n"
		"The exit status is 1 when there is nothing to read or the program has ended, 2 "
		"when\n"
		"several programs have that name, else 0.\n",
	.options = options,
	.run = run,
};
