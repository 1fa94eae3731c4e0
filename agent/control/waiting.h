/*
 * Clients that wait for a run, a change or a version: each stays open until that has ended, or its
 * time has passed. If the client disconnects before, only the waiting ends.
 *
 * Threads: the loop's. Bound: WAITING_MAX, in shares of their users (httpd/share.h).
 */
#ifndef PULLET_CONTROL_WAITING_H
#define PULLET_CONTROL_WAITING_H

#include "config/config.h"
#include "config/inspect.h"
#include "httpd/peer.h"
#include "httpd/server.h"

#define WAITING_MAX 64

struct waiting {
	struct waiting_room *room;
	struct httpd_request *request; /* NULL = free */
	struct peer peer;
	struct config *config;
	struct config_waiter waiter;
	struct loop_timer limit;
	uint64_t limit_ms;
	struct inspect_effect effect; /* of an override */
};

struct waiting_room { /* its owner sets all but the places */
	struct loop *loop;
	void (*refused)(void *arg, const struct peer *peer); /* its user's share is used up */
	void *arg;
	struct waiting places[WAITING_MAX];
};

/* Keeps the client waiting, for its timeout_ms at the most; the caller registers the waiter with
 * config_wait*(), which calls ended; after that time passed is called, both with the waiting. NULL,
 * and answered: not possible. */
struct waiting *waiting_begin(struct waiting_room *room, struct httpd_request *r,
	struct config *config, void (*ended)(void *arg, struct config *c),
	void (*passed)(void *arg));
/* Its request is still to be answered. */
void waiting_end(struct waiting *w);
/* For `passed`: answers that what was asked for goes on. */
void waiting_timed_out(void *waiting);
/* Answers all that wait for a config that is about to be freed. gone: it was removed. */
void waiting_forget(struct waiting_room *room, const struct config *config, bool gone);
void waiting_stop(struct waiting_room *room);

#endif
