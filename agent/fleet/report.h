/*
 * The agent's receipts: what it runs, written to etcd under a lease that is renewed at a third of
 * its life.
 *
 * Best effort: it has a login of its own and stands in no line, and neither a pull nor the end of
 * the agent ever waits for it. What changed is written within REPORT_FIRST_MS, and then at most
 * every REPORT_REST_MS, the latest state; so many changes are one write. Every host takes a random
 * part of each delay. What fails is tried at each address, then again after a growing, jittered
 * delay up to REPORT_RETRY_MAX_MS. An address that backs off, for whatever request, is not asked: a
 * lease that runs out meanwhile is lost, and the fleet sees the host as gone until another is had.
 * A lease that is lost, and keys that are not as they were written (etcd was restored from a
 * backup, or another agent has the same name), lead to everything being written again; the keys are
 * looked at once in a lease's life.
 *
 * Nothing is rolled back when the agent ends: one that starts again leaves no gap, and the lease
 * tells of one that does not.
 *
 * Threads: the loop's. Ownership: settings are borrowed. Errors: in the status, and logged at a
 * change, then at most once a minute for the same cause. Bounds: one request at a time; receipt.h.
 */
#ifndef PULLET_REPORT_H
#define PULLET_REPORT_H

#include "pull/backoff.h"
#include "base/loop.h"
#include "fleet/receipt.h"
#include "settings/settings.h"
#include "http/client.h"

#define REPORT_FIRST_MS 1000u
#define REPORT_REST_MS 5000u
#define REPORT_LOOK_MS 2000u /* between two looks at a config that is being applied */
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
	const char *host;                /* what this host is called */
	/* How the config with that index in the settings is now; since_ms is not asked for. May
	 * point to texts. */
	void (*look)(
		void *arg, size_t config, struct receipt_config *ret, struct receipt_texts *texts);
	void *arg;
};

enum report_state {
	REPORT_STARTING, /* nothing was written yet */
	REPORT_OK,
	REPORT_FAILING, /* what is written is older than what is run, or is gone */
	REPORT_OFF      /* there is no name for this host */
};

struct report_status {
	enum report_state state;
	const char *key;   /* in etcd; of the first page */
	const char *error; /* "" = none; in OK: the key was changed by another writer */
	int64_t sent_ms;   /* wall clock: last written; 0 = never */
	uint64_t sent, failed, leases;
};

/* NULL when there is no memory. */
struct report *report_start(const struct report_env *env);
/* Ends what is under way; NULL is fine. */
void report_stop(struct report *r);
/* Something about this config may have changed. */
void report_changed(struct report *r, size_t config);
void report_status(const struct report *r, struct report_status *ret_status);

#endif
