/*
 * Versions that were left behind, or removed: a config was taken out of the configuration, and what
 * it had stays in the state directory. When the config comes back, what lies at its place may be
 * newer than the last known good: another config, or another program, published there meanwhile.
 *
 * STATE_DIR/NAME/left is an empty file, as old as the moment in which the agent saw that no config
 * has that name. Threads: one. Errors: one that cannot be made is tried again at the next reload or
 * start. Bounds: the directory's own.
 */
#ifndef PULLET_LEFT_H
#define PULLET_LEFT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "files/file.h"
#include "base/sys.h"
#include "version/store.h"

/* Marks what is in the state directory of configs that are not kept; sorts their names. 0, or
 * -errno with a sentence about the last failure. */
int left_mark(const struct sys *sys, const char *state_dir, const char **kept, size_t count,
	char why[FILE_WHY]);
/* What is at this place was changed after the versions were left. */
bool left_is_older(const struct sys *sys, const struct store *store, const char *place);
/* Somebody removed the file of a generation: one call, for what the loop asks often. */
bool left_is_removed(
	const struct sys *sys, const char *state_dir, const char *name, uint64_t generation);
/* The config has them again. */
void left_clear(const struct sys *sys, const struct store *store);

#endif
