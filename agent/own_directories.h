/*
 * The agent's own directories: of the state and of what is there at run time.
 *
 * Threads: the loop's, before it runs. Errors: -errno, which was logged.
 */
#ifndef PULLET_OWN_DIRECTORIES_H
#define PULLET_OWN_DIRECTORIES_H

#include "settings/settings.h"

/* Makes both where they are missing, and claims the state directory for this process: 0, and the
 * descriptor that holds the claim until it is closed; -EBUSY: another agent has it. Says what is
 * unusual about them. */
int own_directories_take(const struct settings *s, int *ret_lock);

#endif
