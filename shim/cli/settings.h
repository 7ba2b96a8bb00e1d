// SPDX-License-Identifier: MIT
/*
 * The settings of policy/config as options of the command and as variables of the environment. A
 * new row of the table there is an option here without another line.
 */
#ifndef NUMALIFT_SHIM_CLI_SETTINGS_H
#define NUMALIFT_SHIM_CLI_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>

#include "policy/config.h"
#include "shim/cli/cli.h"

/* As many as lift_config.given has bits. */
#define LIFT_SETTINGS_MAX 64

/*
 * Fills @ret with an option for each setting, in the table's order: NUMALIFT_PLACE is --place,
 * NUMALIFT itself is --numalift. Returns how many.
 */
size_t lift_settings_options(struct lift_cli_option ret[LIFT_SETTINGS_MAX]);

/*
 * Sets up *ret as the library would from its environment, where @given[i] (may be NULL, as may all
 * of
 * @given) stands in for the variable of row i. What is refused is told to @complain (may be NULL),
 * one line each, in the words of the library. Returns how many were refused.
 */
unsigned lift_settings_read(struct lift_config *ret, const char *const *given,
	void (*complain)(void *arg, const char *line), void *arg);

/* For @complain: on stderr. */
void lift_settings_say(void *arg, const char *line);

/* Says which variables look like a setting but for a slip of the pen: the library ignores those. */
void lift_settings_strangers(void);

#endif
