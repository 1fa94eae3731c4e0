/*
 * Where things are when nobody says so: for root the host's places (/etc, /var/lib, /run); for any
 * other user those of the XDG base directories, unless the host's place is that user's to write in,
 * as the service's and a container's are.
 *
 * XDG_CONFIG_HOME, XDG_STATE_HOME and XDG_RUNTIME_DIR count where they are absolute; without the
 * first two ~/.config and ~/.local/state do, without the last (or where this user may not write in
 * it, as after su) /run/user/UID and at last pullet-run beside the state. A program with more
 * rights than its caller (AT_SECURE) has the host's places.
 *
 * Threads: one, as the environment. Ownership: the caller's buffers. Errors: a path that is too
 * long is the host's.
 */
#ifndef PULLET_SETTINGS_PLACES_H
#define PULLET_SETTINGS_PLACES_H

#include <stdbool.h>

#define PLACES_PATH 4096

/* The agent's configuration: $PULLET_CONFIG; else this user's, if it is there, or the host's cannot
 * be read. Each returns path. */
const char *places_configuration(char path[PLACES_PATH]);
const char *places_state_dir(char path[PLACES_PATH]);
const char *places_runtime_dir(char path[PLACES_PATH]);
/* Where this user's own agent has its runtime directory, without a look at the host's. False: root,
 * who has none. */
bool places_own_runtime_dir(char path[PLACES_PATH]);
/* Makes the directories above this one, 0700, if it is one of this user's own places; what cannot
 * be made is said by who opens it. */
void places_make_above(const char *path);

#endif
