/*
 * Where a config may not publish: over what the agent itself keeps, reads or makes, and over the
 * file of another config that has another path.
 *
 * Private to agent/settings. Threads: one. Errors: reported through the loader; what only this
 * host can tell is said to its `look`.
 */
#ifndef PULLET_OWN_PLACES_H
#define PULLET_OWN_PLACES_H

#include "settings/loader.h"

/* When all files are read. */
void settings_own_places_resolve(struct loader *l);

#endif
