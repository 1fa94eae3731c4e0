/*
 * Whether an agent keeps the snapshot that a command reads.
 *
 * Threads: one. Ownership: none kept. Errors: what cannot be read is no copy.
 */
#ifndef PULLET_CLI_KEPT_H
#define PULLET_CLI_KEPT_H

#include <stdbool.h>

#include "lib/pullet.h"

/* Is there a control page beside it? */
bool kept_by_agent(const struct pullet *p);
/* A copy of an agent's snapshot, without a page: notes how old it is. False, and no word: an agent
 * keeps it, or none ever did (`pullet build`, pullet_write()). */
bool kept_note_copy(const char *command, const struct pullet *p);

#endif
