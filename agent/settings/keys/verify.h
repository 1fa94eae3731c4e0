/*
 * The keys that may sign the documents of a config, and the purpose that a signature must name.
 *
 * Private to agent/settings, but for settings_signature_demand() (settings/settings.h). Threads:
 * one. Errors: reported through the loader. Bounds: SETTINGS_MAX_PATTERNS keys a
 * config.
 */
#ifndef PULLET_SETTINGS_VERIFY_H
#define PULLET_SETTINGS_VERIFY_H

#include "settings/walk.h"

/* The row of a config's key, and the keys below it; the object is the config. */
extern const struct mapping settings_verify_keys;
void settings_set_verify(struct loader *l, const struct node *n, const struct key *k, void *object);
/* When all files are read: finds shared keys, whose signatures must name the path. */
void settings_verify_resolve(struct loader *l);

#endif
