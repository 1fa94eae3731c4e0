/*
 * One configuration server as this host sees it: who pulls from it when, and from which address.
 *
 * A dispatcher lines up the pulls of all its configs and hands them out while fewer than
 * max_in_flight run; each address has a backoff, and rests while that lasts. A pull goes to the
 * first address, in an order that differs from host to host, that does not rest; while all rest,
 * nothing is handed out until the first one has rested. A rest that the server did not ask for is
 * at most as long as the longest interval of those who wait, and ends when one of them has waited
 * for as long as it may.
 *
 * Threads: the loop's. Ownership: settings are borrowed; tasks, zeroed but for their public fields,
 * are embedded in the configs and must be withdrawn or ended before they go. Bounds: as many
 * waiting tasks as have joined, max_in_flight transfers.
 */
#ifndef PULLET_SERVER_H
#define PULLET_SERVER_H

#include "lib/dispatcher.h"
#include "pull/backoff.h"
#include "pull/exchange.h"
#include "base/loop.h"
#include "settings/settings.h"
#include "http/client.h"

#define UPSTREAM_AWAY_MS 600000u

struct upstream;

/* One pull after the other of one config. */
struct upstream_task {
	/* A slot is free: begin a transfer from upstream_url(), which upstream_ended() ends; or
	 * return false, and the slot goes to another. */
	bool (*begin)(void *arg);
	/* The pull waited in vain. */
	void (*lost)(void *arg, const char *why);
	void *arg;
	uint64_t interval_ms; /* no rest that the server did not ask for is longer; 0 = any is */
	uint64_t latest_ms;   /* until then, and no longer, such rests keep it waiting; 0 = never */

	/* private */
	struct upstream *server;
	struct loop_timer patience; /* latest_ms */
	struct dispatcher_item item;
	uint64_t started_ms;
	size_t address, tries;
	size_t first; /* the address that is taken before others until away_ms */
	uint64_t away_ms;
	bool waiting, again; /* again: at another address */
};

struct upstream_address_status {
	const char *url;
	const char *error;                     /* why it rests; "" when it does not */
	uint64_t backoff_ms;                   /* for so long from now; 0 = it does not */
	unsigned in_a_row;                     /* failures since the last success */
	uint64_t congestion, network, advised; /* failures */
};

struct upstream_status {
	const char *name; /* NULL = made for an origin */
	size_t address_count;
	unsigned in_flight;
	size_t pending;
	uint64_t backoff_ms; /* nothing is handed out for so long; 0 = no hold */
	const struct dispatcher_counters *counters;
};

/* NULL when there is no memory. */
struct upstream *upstream_new(
	struct loop *l, struct backoffs *backoffs, const struct settings_server *settings);
void upstream_free(struct upstream *s);
const struct settings_server *upstream_settings(const struct upstream *s);
/* What its exchanges share. */
struct session *upstream_session(struct upstream *s);

/* One task more, or one fewer, is lined up here at times: the line has room for all of them. 0 or
 * -ENOMEM. */
int upstream_join(struct upstream *s);
void upstream_leave(struct upstream *s);

/* Lines the task up; if it waits already, newer work overrides it. Lost when it has not begun by
 * expires_ms. May call begin() before it returns. */
void upstream_submit(struct upstream *s, struct upstream_task *t, uint64_t expires_ms);
/* Takes the task out of the line, if it is there. */
void upstream_withdraw(struct upstream *s, struct upstream_task *t);
/* The address that the task's last transfer went to shows less than there is: the next ones, for
 * UPSTREAM_AWAY_MS, go to the one behind it, as long as that does not rest. */
void upstream_avoid(struct upstream *s, struct upstream_task *t);
/* The backoff of the address that the task's transfer goes to. */
struct backoff *upstream_backoff(const struct upstream *s, const struct upstream_task *t);
/* The address the task's transfer goes to; between two of them, the one it would go to now. */
const char *upstream_url(const struct upstream *s, const struct upstream_task *t);
/* Ends what begin() began: a response, NULL = it ran into its time limit. True when it failed and
 * another address is ready; as often as there are addresses since upstream_submit(). */
bool upstream_ended(
	struct upstream *s, struct upstream_task *t, const struct http_client_response *response);
/* Ends what begin() began, which says nothing about the server: it is not wanted any more. */
void upstream_dropped(struct upstream *s);
/* Ends what begin() began: nothing was sent, for its address backs off by now. True as for
 * upstream_ended(). */
bool upstream_deferred(struct upstream *s, struct upstream_task *t);
/* The same task again, at the front of the line; after upstream_ended(). */
void upstream_retry(struct upstream *s, struct upstream_task *t);
/* Somebody wants a pull now: ends the rests, but for those a server asked for, and those of
 * addresses that kept a pull waiting until its time limit. */
void upstream_lift(struct upstream *s);

/* The index of the address this url (of an earlier pull) begins with, followed by path; -1 = none.
 */
int upstream_find(const struct upstream *s, const char *url, const char *path);
void upstream_status(const struct upstream *s, struct upstream_status *ret_status);
void upstream_address_status(
	const struct upstream *s, size_t address, struct upstream_address_status *ret_status);

#endif
