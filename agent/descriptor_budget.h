/*
 * Counts the file descriptors that a configuration needs: at the start, and at a reload.
 *
 * Threads: the loop's. Errors: -EMFILE and a sentence in `why`.
 */
#ifndef PULLET_DESCRIPTOR_BUDGET_H
#define PULLET_DESCRIPTOR_BUDGET_H

#include <stdbool.h>

#include "base/descriptors.h"
#include "settings/diff.h"

/* At the start, before the configuration is read (settings NULL) and after. */
int descriptor_budget_check(const struct settings *settings, bool once, char why[DESCRIPTORS_WHY]);
/* At a reload: what new needs beyond old, and a second push channel if that changes, as the old one
 * ends only when the new one runs. */
int descriptor_budget_check_next(const struct settings *old, const struct settings *new,
	const struct settings_diff *diff, char why[DESCRIPTORS_WHY]);

#endif
