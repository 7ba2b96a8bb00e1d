// SPDX-License-Identifier: MIT
#include "shim/cli/settings.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shim/cli/args.h"

#define PREFIX "NUMALIFT_"
#define NAME_BYTES 32

/* Option names are made once and kept: the options point at them. */
static char names[LIFT_SETTINGS_MAX][NAME_BYTES];

static void option_name(char ret[NAME_BYTES], const char *variable)
{
	size_t skip = strlen(PREFIX);
	size_t n = 0;

	if (strncmp(variable, PREFIX, skip) == 0)
		variable += skip;
	for (; variable[n] && n + 1 < NAME_BYTES; n++) {
		char c = variable[n];

		ret[n] = c == '_' ? '-' : c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
	}
	ret[n] = '\0';
}

size_t lift_settings_options(struct lift_cli_option ret[LIFT_SETTINGS_MAX])
{
	const struct lift_option *o;
	size_t nr = 0;

	for (; nr < LIFT_SETTINGS_MAX && (o = lift_config_option(nr)); nr++) {
		option_name(names[nr], o->name);
		ret[nr] = (struct lift_cli_option){
			.name = names[nr],
			.arg = "VALUE",
			.help = o->help,
			.accepted = o->accepted,
			.standard = o->default_text,
		};
	}
	return nr;
}

unsigned lift_settings_read(struct lift_config *ret, const char *const *given,
	void (*complain)(void *arg, const char *line), void *arg)
{
	char line[LIFT_CONFIG_ERROR_BYTES];
	struct lift_config_error err;
	const struct lift_option *o;
	const char *value;
	unsigned refused = 0;

	lift_config_init(ret);
	for (size_t i = 0; (o = lift_config_option(i)); i++) {
		value = given && given[i] ? given[i] : getenv(o->name);
		if (!value || lift_config_set(ret, o->name, value, strlen(value), &err) == 0)
			continue;
		refused++;
		lift_config_error_format(&err, value, line, sizeof(line));
		if (complain)
			complain(arg, line);
	}
	return refused;
}

void lift_settings_say(void *arg, const char *line)
{
	(void)arg;
	lift_cli_say("%s", line);
}

void lift_settings_strangers(void)
{
	const char *words[LIFT_SETTINGS_MAX];
	const size_t skip = strlen(PREFIX);
	const struct lift_option *o;
	char name[NAME_BYTES];
	const char *meant;
	size_t nr = 0;

	/* The prefix is right in any case, so only what follows is compared. */
	for (size_t i = 0; nr < LIFT_SETTINGS_MAX && (o = lift_config_option(i)); i++)
		if (strncmp(o->name, PREFIX, skip) == 0)
			words[nr++] = o->name + skip;
	for (char **e = environ; *e; e++) {
		size_t len = strcspn(*e, "=");

		if (strncmp(*e, PREFIX, skip) != 0 || len >= sizeof(name))
			continue;
		memcpy(name, *e, len);
		name[len] = '\0';
		if (lift_config_find(name) >= 0)
			continue;
		meant = lift_nearest(name + skip, words, nr);
		if (meant)
			lift_cli_say("%s in the environment is no setting; did you mean " PREFIX
				     "%s?",
				name, meant);
	}
}
