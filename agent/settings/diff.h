/*
 * What new settings change in old ones, and how what is as it was keeps its place in memory, for
 * those that borrow it.
 *
 * A config is changed when what is written about it is, or about a server that it uses, or the text
 * of its schema; so is a server that is written otherwise. Servers that no name names are known by
 * their origin.
 *
 * Threads: one. Errors: -ENOMEM.
 */
#ifndef PULLET_SETTINGS_DIFF_H
#define PULLET_SETTINGS_DIFF_H

#include "settings/settings.h"

#define SETTINGS_NONE SIZE_MAX

/* Of the configs, or of the servers. */
struct settings_match {
	size_t *before; /* of each new one: the index of the old one with that name, or NONE */
	bool *same;     /* of each new one: that one is as this one */
	bool *kept;     /* of each old one: it is the same as a new one */
	size_t added, removed, changed, unchanged;
};

struct settings_diff {
	struct settings_match configs, servers;
	bool push;   /* the endpoints differ */
	bool labels; /* or what the host is called */
	bool report; /* where it is written, and what, but for how the configs are */
	bool listen, operators;
	const char *fixed; /* a key that cannot change while the agent runs, and did; NULL = none */
};

int settings_diff(
	const struct settings *old, const struct settings *new, struct settings_diff *ret_diff);
/* Gives what is the same in both the address that it has in old, but for what it says of servers:
 * that is as in new. */
void settings_adopt(struct settings *old, struct settings *new, const struct settings_diff *diff);
void settings_diff_fini(struct settings_diff *diff);

#endif
