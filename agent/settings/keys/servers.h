/*
 * The keys under "servers". Private to agent/settings. Threads: one. Errors: reported
 * through the loader.
 */
#ifndef PULLET_SETTINGS_SERVERS_H
#define PULLET_SETTINGS_SERVERS_H

#include "settings/walk.h"

/* The keys of a server, and those below some. */
extern const struct mapping settings_server_keys, settings_tls_keys, settings_auth_keys,
	settings_access_keys, settings_basic_keys;
/* The row "servers" of the file. */
void settings_set_servers(
	struct loader *l, const struct node *n, const struct key *k, void *object);
/* Adds a server without name and urls, all else as by default. NULL when memory is short. */
struct settings_server *settings_server_add(struct loader *l);
void settings_server_free(struct settings_server *s);

#endif
