// SPDX-License-Identifier: MIT
#include "shim/cli/args.h"

#include <stdbool.h>
#include <string.h>

#define WORDS_MAX 128
#define LONGEST 32

/* --- the word that was meant -------------------------------------------------------------------
 */

/* Edits (insert, delete, replace, swap neighbours) from one word to the other; both below LONGEST.
 */
static unsigned edits(const char *a, size_t na, const char *b, size_t nb)
{
	unsigned d[LONGEST + 1][LONGEST + 1];

	for (size_t i = 0; i <= na; i++)
		d[i][0] = (unsigned)i;
	for (size_t j = 0; j <= nb; j++)
		d[0][j] = (unsigned)j;
	for (size_t i = 1; i <= na; i++) {
		for (size_t j = 1; j <= nb; j++) {
			unsigned best = d[i - 1][j - 1] + (a[i - 1] != b[j - 1]);

			if (d[i - 1][j] + 1 < best)
				best = d[i - 1][j] + 1;
			if (d[i][j - 1] + 1 < best)
				best = d[i][j - 1] + 1;
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
				d[i - 2][j - 2] + 1 < best)
				best = d[i - 2][j - 2] + 1;
			d[i][j] = best;
		}
	}
	return d[na][nb];
}

const char *lift_nearest(const char *word, const char *const *words, size_t nr)
{
	size_t len = strlen(word);
	const char *best = NULL;
	unsigned best_edits = LONGEST;

	if (len == 0 || len > LONGEST)
		return NULL;
	for (size_t i = 0; i < nr; i++) {
		size_t n = strlen(words[i]);
		unsigned e;

		if (n > LONGEST)
			continue;
		/* Who writes the beginning of a word has made no mistake but one. */
		e = len > 1 && strncmp(word, words[i], len) == 0 ? 1
								 : edits(word, len, words[i], n);
		if (e < best_edits) {
			best_edits = e;
			best = words[i];
		}
	}
	return best_edits <= (len + 2) / 3 ? best : NULL;
}

/* --- reading -----------------------------------------------------------------------------------
 */

void lift_args_init(struct lift_args *a, const struct lift_command *cmd, int argc, char **argv)
{
	*a = (struct lift_args){.cmd = cmd, .argc = argc, .argv = argv, .at = 1};
	a->nr = cmd->options(&a->option);
}

static int leave(struct lift_args *a, int status)
{
	a->status = status;
	return LIFT_ARGS_EXIT;
}

int lift_args_usage(const struct lift_args *a)
{
	(void)fprintf(stderr, "Usage: numalift %s %s\nTry 'numalift %s --help'.\n", a->cmd->name,
		a->cmd->usage, a->cmd->name);
	return LIFT_EXIT_USAGE;
}

static int usage_error(struct lift_args *a)
{
	return leave(a, lift_args_usage(a));
}

static int help(struct lift_args *a)
{
	lift_args_help(a->cmd, stdout);
	return leave(a, lift_cli_finish(LIFT_EXIT_OK));
}

static int unknown(struct lift_args *a, const char *name, size_t len)
{
	const char *words[WORDS_MAX] = {"help"};
	char text[LONGEST + 1];
	const char *meant = NULL;
	size_t nr = 1;

	for (size_t i = 0; i < a->nr && nr < WORDS_MAX; i++)
		words[nr++] = a->option[i].name;
	if (len <= LONGEST) {
		memcpy(text, name, len);
		text[len] = '\0';
		meant = lift_nearest(text, words, nr);
	}
	if (meant)
		lift_cli_say("%s: there is no option --%.*s; did you mean --%s?", a->cmd->name,
			(int)len, name, meant);
	else
		lift_cli_say("%s: there is no option --%.*s", a->cmd->name, (int)len, name);
	return usage_error(a);
}

static int missing(struct lift_args *a, const struct lift_cli_option *o)
{
	lift_cli_say("%s: --%s needs a value: --%s=%s", a->cmd->name, o->name, o->name, o->arg);
	return usage_error(a);
}

static int next_long(struct lift_args *a, const char *word, const char **ret_value)
{
	const char *equal = strchr(word, '=');
	size_t len = equal ? (size_t)(equal - word) : strlen(word);

	if (len == 4 && memcmp(word, "help", 4) == 0 && !equal)
		return help(a);
	for (size_t i = 0; i < a->nr; i++) {
		const struct lift_cli_option *o = &a->option[i];

		if (strlen(o->name) != len || memcmp(o->name, word, len) != 0)
			continue;
		if (!o->arg) {
			if (!equal)
				return (int)i;
			lift_cli_say("%s: --%s takes no value", a->cmd->name, o->name);
			return usage_error(a);
		}
		if (equal)
			*ret_value = equal + 1;
		else if (a->at < a->argc)
			*ret_value = a->argv[a->at++];
		else
			return missing(a, o);
		return (int)i;
	}
	return unknown(a, word, len);
}

static int next_letter(struct lift_args *a, const char **ret_value)
{
	char letter = *a->cluster++;
	const char *rest = a->cluster;

	if (!*a->cluster)
		a->cluster = NULL;
	if (letter == 'h')
		return help(a);
	for (size_t i = 0; i < a->nr; i++) {
		const struct lift_cli_option *o = &a->option[i];

		if (o->letter != letter)
			continue;
		if (!o->arg)
			return (int)i;
		a->cluster = NULL;
		if (*rest)
			*ret_value = rest;
		else if (a->at < a->argc)
			*ret_value = a->argv[a->at++];
		else
			return missing(a, o);
		return (int)i;
	}
	lift_cli_say("%s: there is no option -%c", a->cmd->name, letter);
	return usage_error(a);
}

int lift_args_next(struct lift_args *a, const char **ret_value)
{
	const char *word;

	*ret_value = NULL;
	if (a->cluster)
		return next_letter(a, ret_value);
	if (a->at >= a->argc)
		return LIFT_ARGS_END;
	word = a->argv[a->at];
	if (word[0] != '-' || !word[1])
		return LIFT_ARGS_END;
	a->at++;
	if (word[1] != '-') {
		a->cluster = word + 1;
		return next_letter(a, ret_value);
	}
	if (!word[2])
		return LIFT_ARGS_END;
	return next_long(a, word + 2, ret_value);
}

int lift_args_done(const struct lift_args *a)
{
	if (a->at >= a->argc)
		return LIFT_EXIT_OK;
	lift_cli_say("%s: '%s' is one word too many", a->cmd->name, a->argv[a->at]);
	return lift_args_usage(a);
}

/* --- help --------------------------------------------------------------------------------------
 */

static void help_option(const struct lift_cli_option *o, FILE *out)
{
	(void)fputs("  ", out);
	if (o->letter)
		(void)fprintf(out, "-%c, ", o->letter);
	(void)fprintf(out, "--%s", o->name);
	if (o->arg)
		(void)fprintf(out, "=%s", o->arg);
	(void)fprintf(out, "\n        %s\n", o->help);
	if (o->accepted)
		(void)fprintf(out, "        Accepted: %s\n", o->accepted);
	if (o->standard && *o->standard)
		(void)fprintf(out, "        Default: %s\n", o->standard);
}

void lift_args_help(const struct lift_command *cmd, FILE *out)
{
	static const struct lift_cli_option help_itself = {
		.name = "help",
		.letter = 'h',
		.help = "Print this and exit.",
	};
	const struct lift_cli_option *option;
	size_t nr = cmd->options(&option);

	(void)fprintf(
		out, "Usage: numalift %s %s\n\n%s\nOptions:\n", cmd->name, cmd->usage, cmd->text);
	for (size_t i = 0; i < nr; i++)
		help_option(&option[i], out);
	help_option(&help_itself, out);
}
