/*
 * One configuration server as this host sees it: who pulls from it when, and from which address.
 *
 * A dispatcher queues the pulls of all its configs and hands out slots while fewer than
 * max_in_flight run; each address has a backoff. A pull goes to the first address, in an order that
 * differs from host to host, that is not in backoff; while all are, none goes out. A backoff that
 * the server did not ask for is at most as long as the longest interval of the waiting configs, and
 * ends when one of them has waited for as long as it may.
 *
 * Threads: the loop's. Ownership: settings are borrowed; tasks, zeroed but for their public fields,
 * are embedded in the configs and must be withdrawn or ended before they go. Bounds: as many
 * waiting tasks as have joined, max_in_flight transfers.
 */
#ifndef PULLET_PULL_UPSTREAM_H
#define PULLET_PULL_UPSTREAM_H

#include "lib/dispatcher.h"
#include "pull/backoff.h"
#include "pull/exchange.h"
#include "pull/outage.h"
#include "base/loop.h"
#include "settings/settings.h"
#include "http/client.h"

#define UPSTREAM_AWAY_MS 600000u

struct upstream;

/* One pull after the other of one config. */
struct upstream_task {
	/* A slot is free: begins a transfer from upstream_url(), which upstream_ended() ends; or
	 * returns false, and the slot goes to another. */
	bool (*slot_ready)(void *arg);
	/* The pull expired in the queue. */
	void (*slot_lost)(void *arg, const char *why);
	void *arg;
	uint64_t interval_ms; /* bounds each backoff that the server did not ask for; 0 = none */
	uint64_t latest_ms;   /* such backoffs keep it waiting until then; 0 = for ever */

	struct upstream *server; /* that it is queued at; NULL = it never was */

	/* private */
	struct loop_timer patience;    /* latest_ms */
	uint64_t since_ms, expires_ms; /* of its place in the queue */
	uint64_t started_ms;
	uint64_t away_ms;
	unsigned char address, tries;
	unsigned char first; /* the address that is taken before others until away_ms */
	bool waiting, again; /* again: at another address */
};

struct upstream_address_status {
	const char *url;
	const char *error;                     /* why it is in backoff; "" when it is not */
	uint64_t backoff_ms;                   /* from now; 0 = it is not */
	unsigned in_a_row;                     /* failures since the last success */
	uint64_t congestion, network, advised; /* failures */
};

struct upstream_status {
	const char *name; /* NULL = made for an origin */
	size_t address_count;
	unsigned in_flight;
	size_t pending;
	uint64_t backoff_ms; /* until the first address is ready; 0 = one is */
	const struct dispatcher_counters *counters;
};

/* NULL when there is no memory. */
struct upstream *upstream_new(
	struct loop *l, struct backoffs *backoffs, const struct settings_server *settings);
void upstream_free(struct upstream *s);
const struct settings_server *upstream_settings(const struct upstream *s);
struct exchange_session *upstream_session(struct upstream *s);

/* Of the configs that fail for this server's sake. */
struct outage *upstream_outage(struct upstream *s);
/* The address of the task's last transfer failed by itself, not for one document. */
bool upstream_fails(const struct upstream *s, const struct upstream_task *t);

/* Makes room in the queue for one task more, or one fewer. 0 or -ENOMEM. */
int upstream_join(struct upstream *s);
void upstream_leave(struct upstream *s);

/* Queues the task; if it waits already, newer work overrides it. It is lost when it has not begun
 * by expires_ms. May call slot_ready() before it returns. */
void upstream_submit(struct upstream *s, struct upstream_task *t, uint64_t expires_ms);
/* Takes the task out of the queue, if it is there. */
void upstream_withdraw(struct upstream *s, struct upstream_task *t);
/* The address of the task's last transfer shows an older version than another: for UPSTREAM_AWAY_MS
 * the next transfers go to the address behind it, unless that is in backoff. */
void upstream_avoid(struct upstream *s, struct upstream_task *t);
/* The backoff of the address that the task's transfer goes to. */
struct backoff *upstream_backoff(const struct upstream *s, const struct upstream_task *t);
/* The address the task's transfer goes to; between two of them, the one it would go to now. */
const char *upstream_url(const struct upstream *s, const struct upstream_task *t);
/* Ends a transfer that slot_ready() began: a response, NULL = its time limit passed. True when it
 * failed and another address is ready; as often as there are addresses since upstream_submit(). */
bool upstream_ended(
	struct upstream *s, struct upstream_task *t, const struct http_client_response *response);
/* Ends a transfer that was cancelled: nothing counts for the backoff. */
void upstream_dropped(struct upstream *s);
/* Ends a transfer that was not sent, for its address is in backoff by now. True as for
 * upstream_ended(). */
bool upstream_deferred(struct upstream *s, struct upstream_task *t);
/* Queues the same task again, at the front; after upstream_ended(). */
void upstream_retry(struct upstream *s, struct upstream_task *t);
/* For a pull that is requested now: ends the backoffs, but for those a server asked for, and those
 * of addresses that kept a pull waiting until its time limit. */
void upstream_lift(struct upstream *s);

/* The index of the address whose url, followed by path, is this url of an earlier pull; -1 = none.
 */
int upstream_find(const struct upstream *s, const char *url, const char *path);
void upstream_status(const struct upstream *s, struct upstream_status *ret_status);
void upstream_address_status(
	const struct upstream *s, size_t address, struct upstream_address_status *ret_status);

#endif
