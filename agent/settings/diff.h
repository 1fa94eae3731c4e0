/*
 * What new settings change in old ones. Unchanged configs and servers keep their address, for their
 * borrowers.
 *
 * A config has changed when its own text has, or that of a server it uses, or its schema; a server,
 * when its text has. Servers without a name are known by their origin.
 *
 * Threads: one. Errors: -ENOMEM.
 */
#ifndef PULLET_SETTINGS_DIFF_H
#define PULLET_SETTINGS_DIFF_H

#include "settings/settings.h"

#define SETTINGS_NONE SIZE_MAX

/* Pairs of old and new configs, or servers. */
struct settings_match {
	size_t *before; /* of each new one: the index of the old one with that name, or NONE */
	bool *same;     /* of each new one: it equals that old one */
	bool *kept;     /* of each old one: it equals a new one */
	bool *stays;    /* of each old one: a new one has its name */
	size_t added, removed, changed, unchanged;
};

struct settings_diff {
	struct settings_match configs, servers;
	bool push;   /* the endpoints differ */
	bool labels; /* or the name of the host */
	bool report; /* where receipts go and what they say, except on each config */
	bool listen, operators, watch_config;
	const char *fixed; /* a key that cannot change while the agent runs, and did; NULL = none */
};

int settings_diff(
	const struct settings *old, const struct settings *new, struct settings_diff *ret_diff);
/* Moves what is the same in both from old to new, so that it keeps its address; its indexes of
 * servers become those of new. */
void settings_adopt(struct settings *old, struct settings *new, const struct settings_diff *diff);
void settings_diff_fini(struct settings_diff *diff);

#endif
