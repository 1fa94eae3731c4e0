/*
 * The documents that a config is made of, and the server that each comes from.
 *
 * A config with a plain url gets a server for the origin of that url, so that all configs of an
 * origin share its connections and its backoff. Private to agent/settings. Threads: one. Errors:
 * reported through the loader. Bounds: SETTINGS_MAX_LAYERS.
 */
#ifndef PULLET_SETTINGS_LAYERS_H
#define PULLET_SETTINGS_LAYERS_H

#include "settings/walk.h"

extern const struct mapping settings_from_keys;
/* The row "from" of a config. */
void settings_set_from(struct loader *l, const struct node *n, const struct key *k, void *object);
/* The rows bootstrap and rollout: one document, {server, path}. */
void settings_set_aside(struct loader *l, const struct node *n, const struct key *k, void *object);
/* Finds a server by its name, when all files are read; false, with an error at that place, when
 * there is none. */
bool settings_find_server(
	struct loader *l, const char *name, struct place place, unsigned *ret_server);
/* When the config n is read: checks from, url, file and dir together. */
void settings_layers_check(struct loader *l, const struct node *n);
/* When all files are read: gives each layer its server, its path and its type. */
void settings_layers_resolve(struct loader *l);
void settings_layers_fini(struct settings_config *c);

#endif
