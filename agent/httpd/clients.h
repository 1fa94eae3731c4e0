/*
 * The connections of an evhttp: how many there are at a time, and how long each may take.
 *
 * evhttp knows no bound for clients, nor one for how long a request or an answer may take
 * altogether, nor one for what a client sends ahead. So each connection is in a list here from the
 * turn of the loop on in which it was accepted, and is in one of three phases: READING, a request
 * is awaited or comes in; THINKING, the handler has it; WRITING, the answer goes out. A client
 * that is too slow in the first or the last is dropped (the numbers are in server.h).
 *
 * With clients_share(), users of a Unix socket have shares (share.h) in the connections and in the
 * bytes of answers that are not read. A new connection above a share gets the place of one
 * of that share which has been idle for CROWDED_MS. If there is none, the connection is busy: its
 * request, which the handler never sees, is answered 503, and it ends within CROWDED_MS even if
 * nothing is sent or read. Busy connections are few, an eighth, in shares too; the others end at
 * once, with the same answer as far as the socket takes it. So nobody but root, and the agent's own
 * user, holds the last places, or keeps others waiting to be accepted.
 *
 * Threads: the loop's. Ownership: a client is freed here, when its connection ends; until then its
 * evhttp_connection is good. Bounds: clients_limit(); CLIENTS_INPUT bytes and one read of each
 * client that are not processed yet. Wake-ups: none while nobody is connected, nor for those
 * that are THINKING.
 */
#ifndef PULLET_CLIENTS_H
#define PULLET_CLIENTS_H

#include "base/loop.h"
#include "httpd/share.h"

struct evconnlistener;
struct evhttp;
struct evhttp_connection;
struct evhttp_request;

#define CLIENTS_INPUT 32768 /* more than the largest request, and what one read brings */

struct clients;
struct client;

/* Takes on all connections that http accepts from now on; clients_limit() comes next. NULL with
 * errno set. */
struct clients *clients_new(struct loop *l, struct evhttp *http);
/* After evhttp_free(), which ends the connections. Accepts NULL. */
void clients_free(struct clients *s);
/* Limits connections, and bytes of answers that are not read. */
void clients_limit(struct clients *s, size_t max, size_t max_queued);
/* Called for each connection or answer that is denied: must not touch the clients. */
typedef void (*clients_denied)(void *arg, const struct peer *peer);
/* From now on users have shares. operators (peer.h) is borrowed, and may change. */
void clients_share(struct clients *s, const gid_t *operators, clients_denied denied, void *arg);
/* Makes http accept from this listener, and from no other any more. */
void clients_accept(struct clients *s, struct evconnlistener *listener);
/* Finds the client of a request. NULL: there was no memory for one. */
struct client *clients_find(const struct clients *s, struct evhttp_request *request);
/* Returns NULL, or one sentence why the handler does not get its request. */
const char *clients_busy(const struct client *c);
/* Makes room for an answer of len bytes to it, and tells whether there is. False is counted as
 * denied. */
bool clients_may_write(const struct client *c, size_t len);
/* The handler has its request; gone is called when the connection ends before clients_writes(), for
 * any reason. */
void clients_thinks(struct client *c, void (*gone)(void *arg), void *arg);
/* evhttp has its answer, of len bytes beside the headers. */
void clients_writes(struct client *c, size_t len);
/* The answer is sent: the next request may come. */
void clients_reads(struct client *c);
/* Ends the connection; gone is called. */
void clients_drop(struct client *c);
int clients_fd(const struct client *c);

#endif
