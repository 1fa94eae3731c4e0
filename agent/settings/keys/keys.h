/*
 * The keys of the agent's configuration: values and members. Private to agent/settings;
 * pullet.yaml(5) describes them.
 *
 * Threads: one. Errors: reported through the loader, with their places; invalid values are left
 * out.
 */
#ifndef PULLET_SETTINGS_KEYS_H
#define PULLET_SETTINGS_KEYS_H

#include "document/document.h"
#include "settings/loader.h"

/* Settings without configs, all else as by default; settings_free() frees them. NULL = no memory.
 */
struct settings *settings_keys_new(void);
/* Adds one file (its root, and l->file) to l->s. */
void settings_keys_read(struct loader *l, const struct node *root);
/* Sets the defaults that are on the heap, when all files are read. */
void settings_keys_complete(struct loader *l);

#endif
