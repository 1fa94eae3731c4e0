/*
 * The newest generation that readers of a config without a snapshot were shown: NAME.shown in the
 * runtime directory, a line with its number. A state directory that is older than it shows nothing
 * older before the server has answered. With a snapshot the control page says so (image.h).
 *
 * Only where that directory lies in memory: a mark is of this boot, and costs no disk. It is
 * replaced as a whole, after the files; a crash in between leaves an older one, which holds nothing
 * back. Threads: one a config at a time. Errors: a mark that cannot be written or read is none.
 * Bounds: 20 bytes.
 */
#ifndef PULLET_SHOWN_H
#define PULLET_SHOWN_H

#include <stdint.h>

#include "base/sys.h"
#include "publish/sweep.h"

/* Replaces the mark, unless it says so already. */
void shown_mark(
	const struct sys *sys, const char *runtime_dir, const char *name, uint64_t generation);
/* 0 = none. Removes temporary files (sweep: that of the start; NULL: leaves them). */
uint64_t shown_read(
	const struct sys *sys, const char *runtime_dir, const char *name, struct sweep *sweep);

#endif
