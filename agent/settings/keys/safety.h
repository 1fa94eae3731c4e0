/*
 * The keys of a config that keep a change from hurting: how large it may be, who is asked before
 * and after it, and who is told.
 *
 * Private to agent/settings. Threads: one. Errors: told through the loader, with their places; what
 * is wrong is left out. Ownership: of the config; settings_change_fini() frees it. Bounds:
 * SETTINGS_MAX_ARGV, _RULES, _PATTERNS.
 */
#ifndef PULLET_SETTINGS_CHANGE_H
#define PULLET_SETTINGS_CHANGE_H

#include "settings/walk.h"

/* The rows of a config's keys; the object is the config. */
void settings_set_format(struct loader *l, const struct node *n, const struct key *k, void *object);
void settings_set_guard(struct loader *l, const struct node *n, const struct key *k, void *object);
void settings_set_check(struct loader *l, const struct node *n, const struct key *k, void *object);
void settings_set_reload(struct loader *l, const struct node *n, const struct key *k, void *object);
void settings_set_probe(struct loader *l, const struct node *n, const struct key *k, void *object);

void settings_change_fini(struct settings_config *c);

#endif
