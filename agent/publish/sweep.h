/*
 * Removes temporary files that a killed agent left beside published files. Reads each directory
 * once for all configs with a file in it: a thousand may share one.
 *
 * A sweep lives during the start of all configs, in one turn of the loop, before anything is
 * published.
 *
 * Threads: one. Ownership: sweep_free(). Errors: files that cannot be read or removed stay. Bounds:
 * those of the directories.
 */
#ifndef PULLET_SWEEP_H
#define PULLET_SWEEP_H

#include "base/sys.h"

struct sweep;

/* NULL when there is no memory: sweep_clean() does without. */
struct sweep *sweep_new(const struct sys *sys);
void sweep_free(struct sweep *s);
/* Removes those of dir/name. s NULL: reads the directory for this name alone. */
void sweep_clean(struct sweep *s, const struct sys *sys, int dir, const char *name);

#endif
