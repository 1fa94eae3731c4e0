/*
 * A fleet as its receipts tell it: who is there, who runs what, who is behind, refuses or is
 * silent. Filled with keys and values of etcd; without I/O.
 *
 * Threads: one. Ownership: rows and sums point into the roster and are good until it is changed.
 * Errors: -ENOMEM; -EINVAL: a key or value that is none of an agent's. Bounds: what is put in.
 */
#ifndef PULLET_ROSTER_H
#define PULLET_ROSTER_H

#include <stdbool.h>
#include <stddef.h>

#include "receipt.h"

struct roster;

/* prefix is borrowed. NULL when there is no memory. */
struct roster *roster_new(const char *prefix);
void roster_free(struct roster *r);
/* A key below the prefix and its value; NULL = it is gone. 0; -EINVAL: it is no receipt (what was
 * there is gone); -EPROTONOSUPPORT: of a newer agent; -ENOMEM. */
int roster_put(struct roster *r, const char *key, size_t key_len, const char *value, size_t len);

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

struct roster_wish {
	const char *config; /* NULL = all */
	const struct roster_label *labels;
	size_t label_count; /* a host must have all of them */
};

/* By config, then by host. 0 and an array for free(), or -ENOMEM. */
int roster_rows(const struct roster *r, const struct roster_wish *wish,
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

/* Is there a live receipt of this host? */
bool roster_alive(const struct roster *r, const char *host);
size_t roster_hosts(const struct roster *r);

#endif
