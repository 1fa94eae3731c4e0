/*
 * A small HTTP/1.1 server on the loop: libevent's evhttp behind one handler.
 *
 * Used by the control socket (Unix), the agent's optional TCP listener, and `pullet serve`.
 * Methods: GET, HEAD, POST; all others are one more, whose connection ends with the answer (to
 * libevent that of CONNECT is a tunnel: it ends as an idle one).
 * Errors before the handler, or for want of room, are {"error": a sentence} in JSON. But invalid
 * HTTP, or more than the bounds below, libevent answers in HTML (400, 413, 417).
 *
 * Bounds: request body 4 KiB, headers 8 KiB, some 32 KiB sent ahead; so many clients at a time
 * (httpd_limit()), then none is accepted until one has gone. A client is dropped that has not sent
 * a whole request after 30 s (after half a second while others wait), also on an idle connection;
 * and one that has not read a whole answer after 30 s and 1 s for each 32 KiB of it, or nothing of
 * it for 5 s while others wait or, without shares, want its bytes. Unread answers
 * have so many bytes altogether (or are one answer); others are 503. On a Unix socket whose places
 * are shared (httpd_share()) a client above a share gets a 503 without the handler, and none waits
 * to be accepted: see clients.h.
 *
 * Threads: the loop's. Ownership: the handler borrows the request until it answers it: exactly one
 * httpd_reply() per request, at once or later.
 */
#ifndef PULLET_HTTPD_H
#define PULLET_HTTPD_H

#include <stdbool.h>
#include <stddef.h>

#include "base/loop.h"
#include "httpd/peer.h"

struct httpd;
struct httpd_request;

enum httpd_method { HTTPD_GET, HTTPD_HEAD, HTTPD_POST, HTTPD_OTHER };

typedef void (*httpd_handler)(void *arg, struct httpd_request *request);

/* Serves on a Unix socket at path (mode 0660; replaces one without a listener). NULL with errno
 * set. */
struct httpd *httpd_open_unix(struct loop *l, const char *path, httpd_handler handle, void *arg);
/* Serves on HOST:PORT ([v6]:port too; port 0 = any free one). NULL with errno set. */
struct httpd *httpd_open_tcp(struct loop *l, const char *address, httpd_handler handle, void *arg);
/* Of a Unix socket: tells whether the file at its path is still its own. */
bool httpd_is_there(const struct httpd *h);
/* Of a Unix socket: recreates it when its file is gone or has no listener. Connected clients stay.
 * 0: it was there; 1: recreated; -errno: it cannot be made, -EADDRINUSE: another file is in its
 * place, where another program may listen. */
int httpd_restore(struct httpd *h);

#define HTTPD_CLIENTS 64
#define HTTPD_QUEUED (64u << 20)

/* Sets other bounds: clients at a time, and bytes of unread answers. */
void httpd_limit(struct httpd *h, size_t clients, size_t queued);
/* Of a Unix socket: shares clients, and bytes of answers, among its users (share.h). denied: called
 * for each connection or answer above a share. */
void httpd_share(struct httpd *h, void (*denied)(void *arg, const struct peer *peer), void *arg);
/* Of a Unix socket: the group whose members operate (peer.h); none at first. Counts from the
 * next request on. */
void httpd_operators(struct httpd *h, gid_t operators);
/* The port that is bound (TCP). */
int httpd_port(const struct httpd *h);
/* Stops; removes the Unix socket, if it is still its own. Drops open requests without calling
 * gone. */
void httpd_close(struct httpd *h);

enum httpd_method httpd_method(const struct httpd_request *r);
/* The decoded path, always beginning with '/'; without the query. What is no escape stays as it is.
 * A path or query with a NUL never reaches the handler (400). */
const char *httpd_path(const struct httpd_request *r);
/* A query parameter's value, or NULL. */
const char *httpd_query(const struct httpd_request *r, const char *name);
/* The name of the parameter number i, from 0 on; NULL: there are not so many. */
const char *httpd_query_name(const struct httpd_request *r, size_t i);
/* A request header's value, or NULL. */
const char *httpd_header(const struct httpd_request *r, const char *name);
/* Tells whether it came over TCP, where clients are unknown. */
bool httpd_is_tcp(const struct httpd_request *r);
/* Identifies the client, with its rights now (peer.h). */
void httpd_peer(const struct httpd_request *r, struct peer *ret_peer);
/* Tells whether the client may see values: an operator on a Unix socket; over TCP none. */
bool httpd_may_see_values(const struct httpd_request *r);
/* Calls gone when the client goes away before the reply (it closes its side, or the half that it
 * writes to): afterwards the request must not be used. Replaces an earlier one; NULL: none. */
void httpd_on_gone(struct httpd_request *r, void (*gone)(void *arg), void *arg);

/* Adds a response header. */
void httpd_add_header(struct httpd_request *r, const char *name, const char *value);
/* Takes the request; answers with status, content type (NULL = none) and len bytes (copied). HEAD
 * and 304 send no body, but the length for HEAD. */
void httpd_reply(struct httpd_request *r, int status, const char *content_type, const void *body,
	size_t len);

#endif
