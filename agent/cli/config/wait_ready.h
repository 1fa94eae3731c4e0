/*
 * pullet wait --ready: waits until configs have a published version.
 *
 * Threads: one. Bounds: the time limit of the command; one request at a time.
 */
#ifndef PULLET_CLI_WAIT_READY_H
#define PULLET_CLI_WAIT_READY_H

#include "cli/common/operate.h"

/* Waits for the configs that are named as arguments, or for all that the agent has; also for an
 * agent that does not run yet. Prints how many are ready. Returns the exit code. */
int wait_ready(const struct operate *o);

#endif
