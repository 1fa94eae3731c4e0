/*
 * The keys under "servers", and which server each config belongs to.
 *
 * A config with a plain url belongs to a server that is made for the origin of that url, so that
 * all configs of an origin share its connections and its holds. Private to settings*.c. Threads:
 * one. Errors: told through the loader.
 */
#ifndef PULLET_SETTINGS_SERVERS_H
#define PULLET_SETTINGS_SERVERS_H

#include "settings_walk.h"

/* The rows "servers" of the file and "from" of a config. */
void settings_set_servers(
	struct loader *l, const struct node *n, const struct key *k, void *object);
void settings_set_from(struct loader *l, const struct node *n, const struct key *k, void *object);
/* When all files are read: gives each config its server and path. */
void settings_servers_resolve(struct loader *l);
void settings_server_fini(struct settings_server *s);

#endif
