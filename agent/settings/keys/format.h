/*
 * The key `format` of a config: a name, a program, or a template with its partials, which is read
 * and compiled here, once.
 *
 * Threads: the loader's. Errors: reported to the loader. Ownership: of the config;
 * settings_format_fini() frees it. Bounds: those of mustache.h.
 */
#ifndef PULLET_SETTINGS_FORMAT_H
#define PULLET_SETTINGS_FORMAT_H

#include "settings/settings.h"
#include "settings/walk.h"

void settings_set_format(struct loader *l, const struct node *n, const struct key *k, void *object);
void settings_format_fini(struct settings_config *c);

#endif
