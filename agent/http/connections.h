/*
 * Which connection carries which request, so that no document is ever taken for another one.
 *
 * HTTP/1.x has no numbers: what comes on a connection while a request waits *is* its answer, also
 * if the server sent it unasked, late, or behind a 304. So a connection of HTTP/1.x carries one
 * document only, or one answer only. A few documents have a place, a pool of libcurl's with at most
 * one idle connection, which is lent to one transfer at a time and holds nothing else. All other
 * connections of HTTP/1.x are closed behind their answer. Those of HTTP/2, which numbers its
 * streams, are shared as libcurl does it; one on which a stream did not come to its end, such as
 * one that timed out, is used by those that are on it and by nobody else: it may be dead. Until
 * they have all ended, requests to that server get new connections.
 *
 * A place's connection is checked before the next request: if any byte is unread it is closed and
 * replaced, once. It is not kept when an answer without a body speaks of one, and not used within
 * LATE_BODY_MS of any answer without a body, so that late bytes are seen.
 *
 * TLS sessions are kept as well, so that a new connection need not be a new handshake. They end
 * when a file of tls: changes, and after an hour at most; so do connections, but for who is on one.
 * Where documents are far more than places none has one: all connections are new ones, with
 * sessions that go on.
 *
 * Threads: the loop's. Ownership: a use is the transfer's, and must be returned before the
 * connections are freed. Errors: a failure costs a new connection, never a wrong answer.
 * Bounds: CONNECTIONS_PLACES idle connections of HTTP/1.x; sessions for CONNECTIONS_TRUSTS ways to
 * set tls:, 8 each; CONNECTIONS_ORIGINS servers of which it is known that they speak HTTP/2, and as
 * many that are asked by HTTP/1.1 although they do.
 */
#ifndef PULLET_CONNECTIONS_H
#define PULLET_CONNECTIONS_H

#include <curl/curl.h>

#include "crypto/digest.h"
#include "http/framing.h"

#define CONNECTIONS_PLACES 8
#define CONNECTIONS_TRUSTS 8
#define CONNECTIONS_ORIGINS 16
#define CONNECTIONS_IDLE_S 118     /* the longest a connection may be idle and be used again */
#define CONNECTIONS_LIFE_S 300     /* the longest: a name that has moved is looked up again then */
#define CONNECTIONS_SESSION_S 3600 /* the longest a TLS session is resumed */
#define CONNECTIONS_CA_CACHE_S 60  /* for how long libcurl keeps what it read of tls.ca */

struct connections;

/* One transfer's. Zeroed at first; fields are private. */
struct connections_use {
	struct connections *of; /* NULL: nothing is lent */
	CURL *easy;
	struct connections_use *next, **link; /* those that are lent */
	uint64_t serial;
	struct trust *trust; /* NULL: no TLS, or alone */
	struct connections_place *place;
	struct share *share;
	uint64_t origin; /* hash of scheme, host and port */
	bool fresh;      /* a socket was opened for it */
	bool stale;      /* there were unread bytes on the connection */
	bool renewed;
	bool kept;     /* the connection may be used again, by the answer so far */
	bool http2;    /* by the head of the answer */
	bool given_up; /* the place: the server speaks HTTP/2 */
	bool alive;    /* the server spoke until the end */
};

/* The transfer, borrowed for the call. */
struct connections_request {
	const char *document; /* as in http_client_request; NULL = none */
	const char *url;
	const char *ca, *crl, *cert, *key; /* files of tls:; NULL = none */
	bool alone;                        /* a new connection, without a session */
};

/* is_watched (NULL = none) tells whether libcurl has asked to watch a descriptor of that number,
 * and not to stop. NULL = no memory. */
struct connections *connections_new(bool (*is_watched)(void *arg, int fd), void *arg);
/* Call it after every use was returned. */
void connections_free(struct connections *c);
/* Uses no existing connection or session again. */
void connections_forget(struct connections *c);

/* Sets up the handle; it is not added to a multi handle yet. 0, or -EINVAL when libcurl does not
 * take an option. */
int connections_lend(struct connections *c, struct connections_use *use, CURL *easy,
	const struct connections_request *q, uint64_t now_ms);
/* Tells whether the connection may be used again if it speaks HTTP/1.x. */
bool connections_has_place(const struct connections_use *use);
/* The head of the final answer is over: decides whether the connection may be used again. */
void connections_answered(
	struct connections_use *use, const struct framing *framing, uint64_t now_ms);
/* The body is whole: a connection of HTTP/2 may be used again. */
void connections_whole(struct connections_use *use);
/* The connection is not used again, whatever its answer said. */
void connections_spoil(struct connections_use *use);
/* The transfer ended, the handle is not off the multi handle yet. `alive`: the server still spoke.
 */
void connections_ended(struct connections_use *use, bool good, bool alive);
/* The transfer ended since its connection was stale (once): nothing was sent. */
bool connections_is_stale(const struct connections_use *use);
/* After that, the handle off the multi handle: it gets a new connection when it is added again.
 * False: there is no memory. */
bool connections_renew(struct connections_use *use, uint64_t now_ms);
/* After the answer by HTTP/2, the handle off the multi handle: it gets a connection of HTTP/1.1
 * when it is added again, and so do later requests to that server. 0, or -EINVAL. */
int connections_leave_http2(struct connections_use *use);
/* Tells whether requests to this server leave HTTP/2. */
bool connections_left_http2(const struct connections_use *use);
/* Takes the use back, the handle off the multi handle. Accepts a zeroed one. */
void connections_return(struct connections_use *use, uint64_t now_ms);

#endif
