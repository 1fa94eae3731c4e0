/*
 * The hosts of a rollout, counted by wave and by what they do with its version, by their receipts.
 * Without I/O.
 *
 * Threads: any. Ownership: rows are borrowed, and pointed to. Errors: -ENOMEM.
 */
#ifndef PULLET_CLI_TALLY_H
#define PULLET_CLI_TALLY_H

#include "cli/rollout/plan.h"

enum tally_stand {
	TALLY_RUNS,      /* the version is published, or was before the wave came */
	TALLY_REJECTED,  /* a check rejected it, or a probe rolled it back */
	TALLY_HELD,      /* the rollout holds it back */
	TALLY_UNDECIDED, /* another version is current, or this one is being applied */
	TALLY_TROUBLED,  /* silent, failing, stale, or without any version */
	TALLY_EXCUSED,   /* an operator pinned it, suspended it, or rolled back */
	TALLY_STANDS
};

#define TALLY_NAMED 5 /* hosts of a stand are named */

struct tally_wave { /* the hosts that a wave adds */
	size_t hosts, stands[TALLY_STANDS];
};

struct tally {
	struct tally_wave waves[ROLLOUT_MAX_WAVES]; /* as many as the plan has; 1 without a plan */
	struct tally_wave begun;                    /* the sum of those that have begun */
	struct tally_wave outside;                  /* in no wave, or with other labels */
	/* the first hosts of those that have begun */
	const struct roster_row *named[TALLY_STANDS][TALLY_NAMED];
};

const char *tally_stand_name(enum tally_stand stand);
/* What a host does with a version; "" = it is not known yet. */
enum tally_stand tally_stand_of(const struct roster_row *row, const char *version);
/* Counts the rows of one config. wall_ms: for a document with times. 0 or -ENOMEM. */
int tally_count(const struct plan *p, const char *config, const struct roster_row *rows,
	size_t count, int64_t wall_ms, struct tally *ret);
/* True when a host runs a version, rejects it or holds it back. */
bool tally_knows(const struct roster_row *rows, size_t count, const char *version);
/* The least percentage, of PLAN_WHOLE, at which the rollout reaches a host that has a receipt; 0:
 * no host has one. The plan's waves do not matter. 0 or -ENOMEM. */
int tally_least(const struct plan *p, const char *config, const struct roster_row *rows,
	size_t count, uint32_t *ret_percent);
/* The digest of a version's bytes by the receipts. NULL: none has it. "": receipts disagree (hosts
 * compose different documents of it), or a host runs these bytes as another version. */
const char *tally_digest(const struct roster_row *rows, size_t count, const char *version);
/* The version that hosts hold for the rollout, but for those that it has as aborted: 1 and *ret; 0:
 * none does; 2: they hold several. */
int tally_held_version(
	const struct plan *p, const struct roster_row *rows, size_t count, const char **ret);

#endif
