/*
 * The keys of a config that make a change safe: its bounds, checks before it, reload and probe
 * after.
 *
 * Private to agent/settings. Threads: one. Errors: reported through the loader, with their places;
 * invalid values are left out. Ownership: of the config; settings_safety_fini() frees it. Bounds:
 * SETTINGS_MAX_ARGV, _RULES, _PATTERNS.
 */
#ifndef PULLET_SETTINGS_SAFETY_H
#define PULLET_SETTINGS_SAFETY_H

#include "settings/walk.h"

/* The rows of a config's keys, and the keys below some; the object is the config. */
extern const struct mapping settings_guard_keys, settings_probe_keys, settings_reload_keys;
void settings_set_check(struct loader *l, const struct node *n, const struct key *k, void *object);
void settings_set_reload(struct loader *l, const struct node *n, const struct key *k, void *object);
void settings_set_probe(struct loader *l, const struct node *n, const struct key *k, void *object);

/* Frees what no row of a config names: commands and rules. */
void settings_safety_fini(struct settings_config *c);

#endif
