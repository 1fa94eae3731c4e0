/*
 * The agent's receipts: what it runs, written to etcd under a lease that is renewed at a third of
 * its life.
 *
 * Best effort: it has a login of its own and no queue, and no pull ever waits for it; the end
 * of the agent waits for one request, for as long as the caller wants. Changes are written within
 * REPORT_FIRST_MS, then at most every REPORT_REST_MS, the latest state, so many changes are one
 * write. Each delay is jittered. A failure is retried at each address, then after a growing,
 * jittered delay up to REPORT_RETRY_MAX_MS. An address in backoff is not used: a lease that expires
 * meanwhile is lost, and the fleet sees the host as gone until it has another one. Everything is
 * written again when the lease is lost, or when keys were changed by others (etcd was restored from
 * a backup, or another agent has the same name); the keys are checked once in a lease's life.
 *
 * Nothing is deleted when the agent ends: a restart leaves no gap, and otherwise the lease expires.
 * An agent that stops on a signal notes that in the "known" value: one request, not retried.
 *
 * Threads: the loop's. Ownership: settings are borrowed. Errors: in the status, and logged at a
 * change, then at most once a minute for the same cause. Bounds: one request at a time; receipt.h.
 */
#ifndef PULLET_REPORT_H
#define PULLET_REPORT_H

#include "pull/backoff.h"
#include "base/loop.h"
#include "fleet/receipt_pages.h"
#include "settings/settings.h"
#include "http/client.h"

#define REPORT_FIRST_MS 1000u
#define REPORT_REST_MS 5000u
#define REPORT_LOOK_MS 2000u /* between updates of a config that is being applied */
#define REPORT_RETRY_MS 1000u
#define REPORT_RETRY_MAX_MS 60000u
#define REPORT_TIMEOUT_MS 10000u

struct report;

struct report_env {
	const struct sys *sys;
	struct loop *loop;
	struct http_client *transport;
	struct backoffs *backoffs;
	const char *ca_file;             /* NULL = the system's */
	const struct settings *settings; /* with report.from */
	const char *host;                /* name of this host */
	receipt_look *look;
	void *arg;
};

enum report_state {
	REPORT_STARTING, /* nothing is written yet */
	REPORT_OK,
	REPORT_FAILING, /* the written receipt is outdated or gone */
	REPORT_OFF      /* this host has no valid name */
};

struct report_status {
	enum report_state state;
	const char *key; /* in etcd; of the first page */
	const char *
		error; /* "" = none; in OK: the key was changed by another writer, and the remedy */
	int64_t sent_ms; /* wall clock: last written; 0 = never */
	uint64_t sent, failed, leases;
};

/* NULL: out of memory. */
struct report *report_start(const struct report_env *env);
/* Cancels what is under way. Accepts NULL. */
void report_stop(struct report *r);
/* Says that this host's agent stops, unless what it runs was not written or the server fails; the
 * report writes nothing else any more. True: said() will be called when that has ended. */
bool report_leave(struct report *r, void (*said)(void *arg), void *arg);
/* This config may have changed. */
void report_changed(struct report *r, size_t config);
void report_status(const struct report *r, struct report_status *ret_status);

#endif
