/*
 * The key "report": where the agent writes its receipts.
 *
 * Private to agent/settings. Threads: one. Errors: reported through the loader.
 */
#ifndef PULLET_SETTINGS_REPORT_H
#define PULLET_SETTINGS_REPORT_H

#include "settings/walk.h"

extern const struct mapping settings_report_keys;

void settings_set_report(struct loader *l, const struct node *n, const struct key *k, void *object);
/* When all files are read: finds the server. */
void settings_report_resolve(struct loader *l);
void settings_report_fini(struct settings_report *r);

#endif
