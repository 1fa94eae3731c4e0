/*
 * The keys of a config, and the rules between them. Private to agent/settings. Threads: one.
 * Errors: reported through the loader.
 */
#ifndef PULLET_SETTINGS_CONFIG_H
#define PULLET_SETTINGS_CONFIG_H

#include "settings/walk.h"

extern const struct mapping settings_config_keys;
/* The row "configs" of the file. */
void settings_set_configs(
	struct loader *l, const struct node *n, const struct key *k, void *object);
void settings_config_free(struct settings_config *c);

#endif
