/*
 * A config over its fleet: how many hosts run which version, and which of them need attention.
 *
 * Threads: any. Ownership: rows, and what they point to, are borrowed by the sum. Errors: -ENOMEM.
 */
#ifndef PULLET_ROSTER_SUM_H
#define PULLET_ROSTER_SUM_H

#include "fleet/roster.h"

struct roster_group {                     /* hosts that run the same */
	const struct receipt_config *one; /* of them */
	const char *version;              /* "" = none */
	const char *digest;               /* "" and version "": nothing is published */
	size_t hosts;
	size_t states[RECEIPT_STATES];
	bool wanted;
};

struct roster_sum { /* of one config */
	const char *config;
	const struct roster_row *rows;
	size_t count; /* hosts with this config */
	size_t silent;
	size_t stopped;     /* of these, hosts whose agent was told to stop */
	size_t rejected;    /* hosts that rejected, or rolled back, what their server has */
	size_t held;        /* hosts that hold it back: the rollout's, or an operator's rollback */
	size_t on_it;       /* hosts that run the wanted version */
	const char *wanted; /* the given version (or digest), or the newest; NULL = unknown */
	struct roster_group *groups; /* most hosts first */
	size_t group_count;
};

/*
 * Sums up the first config in rows (count is at least 1): as many rows as ret->count says.
 *
 * version: the wanted one, as for receipt_runs(); NULL: the newest, which is the one that a host
 * pulled last. Hosts that reject their server's version may have rolled back, and do not count.
 * Wrong when clocks differ by more than the time between two versions.
 */
int roster_sum(const struct roster_row *rows, size_t count, const char *version,
	struct roster_sum *ret_sum);
void roster_sum_fini(struct roster_sum *s);
/* Does this host not run the wanted version, or does it need attention? */
bool roster_behind(const struct roster_sum *s, const struct roster_row *row);

#endif
