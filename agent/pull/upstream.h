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

#define SERVER_AWAY_MS 600000u

struct server;

/* One pull after the other of one config. */
struct server_task {
	/* A slot is free: begin a transfer from server_url(), which server_ended() ends; or return
	 * false, and the slot goes to another. */
	bool (*begin)(void *arg);
	/* The pull waited in vain. */
	void (*lost)(void *arg, const char *why);
	void *arg;
	uint64_t interval_ms; /* no rest that the server did not ask for is longer; 0 = any is */
	uint64_t latest_ms;   /* until then, and no longer, such rests keep it waiting; 0 = never */

	/* private */
	struct server *server;
	struct loop_timer patience; /* latest_ms */
	struct dispatcher_item item;
	uint64_t started_ms;
	size_t address, tries;
	size_t first; /* the address that is taken before others until away_ms */
	uint64_t away_ms;
	bool waiting, again; /* again: at another address */
};

struct server_address_status {
	const char *url;
	const char *error;                     /* why it rests; "" when it does not */
	uint64_t rests_ms;                     /* for so long from now; 0 = it does not */
	unsigned in_a_row;                     /* failures since the last success */
	uint64_t congestion, network, advised; /* failures */
};

struct server_status {
	const char *name; /* NULL = made for an origin */
	size_t address_count;
	unsigned in_flight;
	size_t pending;
	uint64_t held_ms; /* nothing is handed out for so long; 0 = no hold */
	const struct dispatcher_counters *counters;
};

/* NULL when there is no memory. */
struct server *server_new(
	struct loop *l, struct backoffs *backoffs, const struct settings_server *settings);
void server_free(struct server *s);
const struct settings_server *server_settings(const struct server *s);
/* What its exchanges share. */
struct session *server_session(struct server *s);

/* One task more, or one fewer, is lined up here at times: the line has room for all of them. 0 or
 * -ENOMEM. */
int server_join(struct server *s);
void server_leave(struct server *s);

/* Lines the task up; if it waits already, newer work overrides it. Lost when it has not begun by
 * expires_ms. May call begin() before it returns. */
void server_submit(struct server *s, struct server_task *t, uint64_t expires_ms);
/* Takes the task out of the line, if it is there. */
void server_withdraw(struct server *s, struct server_task *t);
/* The address that the task's last transfer went to shows less than there is: the next ones, for
 * SERVER_AWAY_MS, go to the one behind it, as long as that does not rest. */
void server_avoid(struct server *s, struct server_task *t);
/* The backoff of the address that the task's transfer goes to. */
struct backoff *server_backoff(const struct server *s, const struct server_task *t);
/* The address the task's transfer goes to; between two of them, the one it would go to now. */
const char *server_url(const struct server *s, const struct server_task *t);
/* Ends what begin() began: a response, NULL = it ran into its time limit. True when it failed and
 * another address is ready; as often as there are addresses since server_submit(). */
bool server_ended(
	struct server *s, struct server_task *t, const struct transport_response *response);
/* Ends what begin() began, which says nothing about the server: it is not wanted any more. */
void server_dropped(struct server *s);
/* Ends what begin() began: nothing was sent, for its address backs off by now. True as for
 * server_ended(). */
bool server_deferred(struct server *s, struct server_task *t);
/* The same task again, at the front of the line; after server_ended(). */
void server_retry(struct server *s, struct server_task *t);
/* Somebody wants a pull now: ends the rests, but for those a server asked for, and those of
 * addresses that kept a pull waiting until its time limit. */
void server_lift(struct server *s);

/* The index of the address this url (of an earlier pull) begins with, followed by path; -1 = none.
 */
int server_find(const struct server *s, const char *url, const char *path);
void server_status(const struct server *s, struct server_status *ret_status);
void server_address_status(
	const struct server *s, size_t address, struct server_address_status *ret_status);

#endif
