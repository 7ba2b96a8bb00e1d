// SPDX-License-Identifier: MIT
/*
 * Passes of a program that is not ours: runs a command again and again, each run marked for the
 * cost model, and says after each where the pages of a server are that it talks to. The command
 * does a fixed amount of work, so passes can be compared. Figures that it prints are picked out of
 * its output.
 *
 * passes --help lists the options.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "benchmarks/lab/pass.h"

enum { MAX_FIGURES = 16, MAX_PIDS = 16, MAX_WORDS = 128, OUTPUT = 1 << 20 };

static struct pass pass = {.program = "passes", .passes = 1};
static char *figures[MAX_FIGURES]; /* NAME=TEXT */
static int nr_figures;
static long pids[MAX_PIDS];
static int nr_pids;
static unsigned long accesses;
static char output[OUTPUT + 1];

static _Noreturn void die(const char *what)
{
	fprintf(stderr, "passes: %s: %s\n", what, strerror(errno));
	exit(2);
}

/* Each %p is the number of the pass. */
static char *filled_in(const char *word)
{
	size_t size = strlen(word) + 1;
	char *ret = NULL;
	FILE *to;

	to = open_memstream(&ret, &size);
	if (!to)
		die("memory");
	for (const char *at = word; *at; at++)
		if (at[0] == '%' && at[1] == 'p') {
			fprintf(to, "%lu", pass.number);
			at++;
		} else {
			fputc(*at, to);
		}
	if (fclose(to))
		die("memory");
	return ret;
}

/* All that it prints; what is beyond the buffer is lost, but not waited for. */
static void collect(int fd)
{
	static char rest[4096];
	size_t len = 0;
	ssize_t n;

	for (;;) {
		n = len < OUTPUT ? read(fd, output + len, OUTPUT - len)
				 : read(fd, rest, sizeof(rest));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		if (len < OUTPUT)
			len += (size_t)n;
	}
	output[len] = '\0';
}

static void run(char **words)
{
	int out[2];
	int status;
	pid_t child;

	if (pipe2(out, O_CLOEXEC))
		die("pipe");
	pass_begin(&pass);
	child = fork();
	if (child < 0)
		die("fork");
	if (child == 0) {
		dup2(out[1], 1);
		dup2(out[1], 2);
		execvp(words[0], words);
		die(words[0]);
	}
	close(out[1]);
	collect(out[0]);
	close(out[0]);
	if (waitpid(child, &status, 0) < 0)
		die("wait");
	pass_end(&pass);
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
		fprintf(stderr, "%s\npasses: pass %lu: '%s' %s %d\n", output, pass.number, words[0],
			WIFEXITED(status) ? "ends with status" : "is ended by signal",
			WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
		exit(1);
	}
}

/* The number that stands after the text. */
static double figure_of(const char *figure)
{
	const char *text = strchr(figure, '=') + 1;
	const char *at = strstr(output, text);
	char *end;
	double n;

	if (at) {
		at += strlen(text);
		n = strtod(at, &end);
	}
	if (!at || end == at) {
		fprintf(stderr, "%s\npasses: pass %lu: no number after '%s'\n", output, pass.number,
			text);
		exit(1);
	}
	return n;
}

static void print_nodes(void)
{
	unsigned long on[PASS_MAX_NODES] = {0};

	for (int i = 0; i < nr_pids; i++)
		if (!pass_add_nodes(pids[i], on))
			die("pages of the server");
	printf(", ");
	pass_print_nodes(on);
}

static int usage(FILE *to, int status)
{
	fputs("Usage: passes [OPTION...] -- COMMAND [WORD...]\n"
	      "\n"
	      "Runs a command in passes, and prints a line of JSON after each. In its words %p is\n"
	      "the number of the pass.\n"
	      "\n"
	      "  --passes N          (1)\n"
	      "  --period MS         a pass begins so long after the one before (0: at once)\n"
	      "  --pid N             also says where the anonymous pages of this process are;\n"
	      "                      several are added up\n"
	      "  --accesses N        what a pass does, as it is to be printed (0)\n"
	      "  --figure NAME=TEXT  prints the number that follows the text in what the command\n"
	      "                      printed\n"
	      "  --mark[=FROM]       marks passes and the pauses between them for the cost\n"
	      "                      model; from this one on, or all\n"
	      "\n"
	      "Exit status: 1 when the command failed or a figure is missing, 2 for all else.\n",
		to);
	return status;
}

static const struct option LONG[] = {
	{"pid", required_argument, NULL, 'p'},
	{"accesses", required_argument, NULL, 'a'},
	{"figure", required_argument, NULL, 'f'},
	PASS_OPTIONS,
	{"help", no_argument, NULL, 'h'},
	{NULL, 0, NULL, 0},
};

static bool parse(int argc, char **argv)
{
	int index;
	int c;

	while ((c = getopt_long(argc, argv, "+", LONG, &index)) != -1) {
		const char *name = c == '?' ? "" : LONG[index].name;

		if (pass_option(&pass, c, name, optarg, 1))
			continue;

		switch (c) {
		case 'p':
			if (nr_pids == MAX_PIDS)
				return false;
			pids[nr_pids++] = (long)pass_number(&pass, name, optarg, 1, INT32_MAX);
			break;
		case 'a':
			accesses = pass_number(&pass, name, optarg, 0, UINT32_MAX);
			break;
		case 'f':
			if (nr_figures == MAX_FIGURES || !strchr(optarg, '='))
				return false;
			figures[nr_figures++] = optarg;
			break;
		case 'h':
			exit(usage(stdout, 0));
		default:
			return false;
		}
	}
	return optind < argc && argc - optind < MAX_WORDS;
}

int main(int argc, char **argv)
{
	if (!parse(argc, argv))
		return usage(stderr, 2);
	printf("{\"begin\": true");
	print_nodes();
	printf("}\n");
	fflush(stdout);
	while (pass_next(&pass)) {
		char *words[MAX_WORDS] = {NULL};
		double found[MAX_FIGURES];

		for (int i = optind; i < argc; i++)
			words[i - optind] = filled_in(argv[i]);
		run(words);
		for (int i = 0; i < nr_figures; i++)
			found[i] = figure_of(figures[i]);
		printf("{\"pass\": %lu, \"accesses\": %lu, \"ms\": %.3f", pass.number, accesses,
			pass.ms);
		for (int i = 0; i < nr_figures; i++)
			printf(", \"%.*s\": %.10g", (int)strcspn(figures[i], "="), figures[i],
				found[i]);
		print_nodes();
		printf("}\n");
		fflush(stdout);
		pass_rest(&pass);
		for (int i = 0; words[i]; i++)
			free(words[i]);
	}
	return 0;
}
