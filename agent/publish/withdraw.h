/*
 * Withdraws snapshots without a config: it was removed, or says `snapshot: false` now. Removes
 * NAME.snap and its temporary files, and marks its control page (lib/FORMAT.md), which wakes
 * waiting readers. A reader that has the image open keeps its values and learns it at its next
 * refresh (lib/pullet.h).
 *
 * Touches only files of the agent's own user with a control page. Threads: one. Errors: a file that
 * cannot be removed is tried again at the next reload or start. Bounds: the directory's own.
 */
#ifndef PULLET_WITHDRAW_H
#define PULLET_WITHDRAW_H

#include <stddef.h>

#include "files/file.h"
#include "base/sys.h"

/* kept: the names of configs with a snapshot; sorted in place. Returns how many were withdrawn, or
 * -errno with a sentence about the last failure. */
int withdraw_snapshots(const struct sys *sys, const char *runtime_dir, const char **kept,
	size_t count, char why[FILE_WHY]);

#endif
