/*
 * Takes back the snapshots that no config publishes any more: of a config that was removed, or says
 * `snapshot: false` now. NAME.snap is removed, with the temporary files that a killed agent left of
 * it, and its control page says so (lib/FORMAT.md) and wakes readers that wait. A reader that has
 * the image open keeps its values, and is told at its next refresh (lib/pullet.h).
 *
 * Only files of the agent's own user with a control page are touched: an image that somebody put
 * there is not ours. Threads: one. Errors: what cannot be removed stays, and is tried again with
 * the next reload or start. Bounds: the directory's own.
 */
#ifndef PULLET_WITHDRAW_H
#define PULLET_WITHDRAW_H

#include <stddef.h>

#include "files/file.h"
#include "base/sys.h"

/* kept: the names of configs with a snapshot; sorted in place. How many were withdrawn, or -errno
 * with a sentence about the last that could not be. */
int withdraw_snapshots(const struct sys *sys, const char *runtime_dir, const char **kept,
	size_t count, char why[FILE_WHY]);

#endif
