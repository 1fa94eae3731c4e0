/*
 * Fingerprints of what the agent's configuration says, for the diff of a reload: formatting,
 * comments and the order of keys and files do not count, everything else does.
 *
 * Private to agent/settings. Threads: one. Errors: short memory is remembered in the loader.
 */
#ifndef PULLET_SETTINGS_FINGERPRINT_H
#define PULLET_SETTINGS_FINGERPRINT_H

#include "settings/walk.h"

/* Prints a value and its key, as written. */
void settings_print_node(struct loader *l, const struct node *n, struct settings_print *ret_print);
/* When all files are read and all servers found: adds what counts but is written elsewhere: the
 * servers of a config, the ids of its owner, the text of its schema and template; the key file of
 * the push channel. A server without a name is no more than its url, and has none. */
void settings_print_resolve(struct loader *l);

#endif
