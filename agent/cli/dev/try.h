/*
 * What to try next, as commands that work in another shell as they are printed.
 *
 * Threads: one. Ownership: none kept.
 */
#ifndef PULLET_CLI_TRY_H
#define PULLET_CLI_TRY_H

#include <stdbool.h>
#include <stddef.h>

#include "cli/dev/place.h"
#include "cli/serve/served.h"

/* Single values that are published as this config: no lists and mappings. */
size_t try_count(const struct dev_place *p, const char *config);
/* Prints them. False: nothing can be read yet. */
bool try_print(const struct dev_place *p, const struct served_document *d, const char *served,
	bool example);

#endif
