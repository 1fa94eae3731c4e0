/*
 * How many file descriptors the agent needs for its configuration: at the start, and for another
 * one while it runs.
 *
 * Threads: the loop's. Errors: -EMFILE and a sentence in `why`.
 */
#ifndef PULLET_ROOM_H
#define PULLET_ROOM_H

#include <stdbool.h>

#include "base/descriptors.h"
#include "settings/diff.h"

/* Before the configuration is read (settings NULL), and after. */
int descriptor_budget_check(const struct settings *settings, bool once, char why[DESCRIPTORS_WHY]);
/* For new ones, while the old run: what they need more; and a second push channel, for the old one
 * ends when the new one runs. */
int descriptor_budget_check_next(const struct settings *old, const struct settings *new,
	const struct settings_diff *diff, char why[DESCRIPTORS_WHY]);

#endif
