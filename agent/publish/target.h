/*
 * The published text file of one config: where it lies, whether it is current, its replacement.
 *
 * Threads: one at a time (the loop's, or the worker's while it publishes). Ownership: the config is
 * borrowed. Errors: -errno with a sentence in why.
 */
#ifndef PULLET_TARGET_H
#define PULLET_TARGET_H

#include "files/file.h"
#include "publish/sweep.h"
#include "settings/settings.h"

struct target;

/* Prepares the target of a config: checks the directory (exists, ours to write, not writable by
 * others, not NFS), removes stale temporary files (sweep: that of the start, or NULL). Does not
 * touch the file. Makes the directory (0755) if only its last part is missing. 0 or -errno. */
int target_open(const struct sys *sys, const struct settings_config *config, struct sweep *sweep,
	struct target **ret_target, char why[FILE_WHY]);
void target_close(struct target *t);
/* True when the file is there and is what was last published (device, inode, size, mtime, mode),
 * or, before the first publication of this process, has exactly these bytes, mode and owner. */
bool target_is_current(struct target *t, const void *text, size_t len);
/* Whatever the file shows now, it is not current. */
void target_forget(struct target *t);
/* True when the directory lay in memory when it was opened last. */
bool target_in_memory(const struct target *t);

/* To replace it: opens and checks its directory, which is made where somebody removed it, the
 * descriptor or -errno; then replaces the file in it, 0, FILE_NOT_DURABLE or -errno. */
int target_open_dir(struct target *t, char why[FILE_WHY]);
int target_replace(struct target *t, int dir, const void *text, size_t len, char why[FILE_WHY]);
/* Brings the name of a file that was FILE_NOT_DURABLE to the disk. 0 or -errno. */
int target_sync(struct target *t);

#endif
