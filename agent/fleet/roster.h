/*
 * A fleet by its receipts: its hosts, the versions they run, which are behind, reject or are
 * silent. Filled with keys and values of etcd; without I/O.
 *
 * A receipt counts only when it is valid: its key names the host that its value names, it is under
 * a lease of that host alone, it has no time in the future, and its configs are in the host's
 * "known" value. Others are ghosts: kept by name, and never part of a row. A known host is silent
 * then, so that nobody can remove it from the count.
 *
 * Threads: one. Ownership: rows and sums point into the roster and are valid until it is changed.
 * Errors: -ENOMEM; -EFBIG: beyond its bound. Bounds: max_bytes, usually ROSTER_MAX_BYTES; a host
 * has SETTINGS_MAX_CONFIGS configs.
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

/* A value in etcd. */
struct roster_value {
	const char *data;
	size_t len;
	uint64_t lease; /* 0 = none */
};

/* prefix is borrowed. NULL: out of memory. */
struct roster *roster_new(const char *prefix, size_t max_bytes);
void roster_free(struct roster *r);
/* Puts a key and its value; NULL = deleted. An invalid value replaces the old one as a ghost. 0;
 * -EFBIG: beyond the bound, put nothing more; -ENOMEM. */
int roster_put(struct roster *r, const char *key, size_t key_len, const struct roster_value *value);
/* Decides which receipts count at this wall clock time. Required after changes, before any call
 * below; 0, -ENOMEM. */
int roster_settle(struct roster *r, int64_t now_ms);
/* Visits the ghosts: the key, without the prefix if it has it. */
void roster_visit_ghosts(const struct roster *r,
	void (*visit)(void *arg, const char *key, enum ghost kind), void *arg);

/* One config of one host. */
struct roster_row {
	const char *host;
	const struct receipt *receipt;     /* labels and so on; never NULL */
	const struct receipt_config *runs; /* its name is the config's */
	bool silent;                       /* known, and in no valid receipt */
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

#endif
