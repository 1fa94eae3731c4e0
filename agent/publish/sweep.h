/*
 * Removes the temporary files that a killed agent left beside what it published. Each directory is
 * read once for all who have a file in it: a thousand configs may share one.
 *
 * A sweep lives as long as nobody publishes what is not open yet: the start of all configs, in one
 * turn of the loop.
 *
 * Threads: one. Ownership: sweep_free(). Errors: what cannot be read or removed stays. Bounds: none
 * but the directories' own.
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
