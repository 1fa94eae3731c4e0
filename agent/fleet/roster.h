/*
 * A fleet as its receipts tell it: who is there, who runs what, who is behind, refuses or is
 * silent. Filled with keys and values of etcd; without I/O.
 *
 * A receipt counts only when it fits: its key is the host's that its value names, it lies under a
 * lease that is no other host's, it names no time to come, and what is "known" of the host knows
 * its configs. What does not fit is a ghost: kept by name, and never part of a row. A host that is
 * known stays one that is silent then, so that nobody can take it out of the count.
 *
 * Threads: one. Ownership: rows and sums point into the roster and are good until it is changed.
 * Errors: -ENOMEM; -EFBIG: it has grown beyond its bound. Bounds: ROSTER_MAX_BYTES unless told
 * otherwise; a host has SETTINGS_MAX_CONFIGS configs.
 */
#ifndef PULLET_ROSTER_H
#define PULLET_ROSTER_H

#include <stdbool.h>
#include <stddef.h>

#include "fleet/ghosts.h"
#include "fleet/receipt.h"

#define ROSTER_MAX_BYTES ((size_t)256 << 20)
#define ROSTER_SLACK_MS 600000 /* by which the clock of a host may be ahead */

struct roster;

/* A value as etcd has it. */
struct roster_value {
	const char *data;
	size_t len;
	uint64_t lease; /* 0 = none */
};

/* prefix is borrowed. NULL when there is no memory. */
struct roster *roster_new(const char *prefix, size_t max_bytes);
void roster_free(struct roster *r);
/* A key and its value; NULL = it is gone. What is no receipt becomes a ghost, in place of what was
 * there. 0; -EFBIG: that was too much, and nothing more is to be put; -ENOMEM. */
int roster_put(struct roster *r, const char *key, size_t key_len, const struct roster_value *value);
/* Decides which receipts fit, at this time of the wall clock. After changes, before anything below;
 * 0, -ENOMEM. */
int roster_settle(struct roster *r, int64_t now_ms);
/* What fits nothing: the key, after the prefix where it has that. */
void roster_visit_ghosts(const struct roster *r,
	void (*visit)(void *arg, const char *key, enum ghost kind), void *arg);

/* One config of one host. */
struct roster_row {
	const char *host;
	const struct receipt *receipt;     /* labels and so on; never NULL */
	const struct receipt_config *runs; /* its name is the config's */
	bool silent;                       /* known, and no live receipt tells of it */
};

struct roster_label {
	const char *name, *value;
};

struct roster_filter {
	const char *config; /* NULL = all */
	const struct roster_label *labels;
	size_t label_count; /* a host must have all of them */
};

/* By config, then by host. 0 and an array for free(), or -ENOMEM. */
int roster_rows(const struct roster *r, const struct roster_filter *filter,
	struct roster_row **ret_rows, size_t *ret_count);

struct roster_group {                     /* hosts that run the same */
	const struct receipt_config *one; /* of them */
	const char *version;              /* "" = it has no name */
	const char *digest;               /* "" and version "": nothing stands there */
	size_t hosts;
	size_t states[RECEIPT_STATES];
	bool wanted;
};

struct roster_sum { /* of one config */
	const char *config;
	const struct roster_row *rows;
	size_t count; /* hosts that have it, or are known to */
	size_t silent;
	size_t on_it;       /* hosts that run what is wanted */
	const char *wanted; /* the version (or digest) asked for, or the newest; NULL = not known */
	struct roster_group *groups; /* most hosts first */
	size_t group_count;
};

/*
 * Sums up the first config in rows (count is at least 1): as many rows as ret->count says.
 *
 * version: what is wanted, as receipt_runs() takes it; NULL: the newest, which is the one that a
 * host had from its server last. Hosts that refuse what their server has may have gone back, and
 * are not asked. Clocks that differ by more than it took to publish two versions make it the wrong
 * one.
 */
int roster_sum(const struct roster_row *rows, size_t count, const char *version,
	struct roster_sum *ret_sum);
void roster_sum_fini(struct roster_sum *s);
/* Does this host not run what is wanted, or is it in a state that somebody must look at? */
bool roster_behind(const struct roster_sum *s, const struct roster_row *row);

/* Is there a receipt of this host that fits? */
bool roster_alive(const struct roster *r, const char *host);
size_t roster_hosts(const struct roster *r);

#endif
