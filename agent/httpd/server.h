/*
 * A small HTTP/1.1 server on the loop: libevent's evhttp behind one handler.
 *
 * Used by the control socket (Unix), the agent's optional TCP listener, and `pullet serve`.
 * Methods: GET, HEAD, POST; all others are one more, whose connection ends with the answer.
 * What is refused here, before the handler sees it or for want of room, is {"error": a sentence}
 * in JSON. But what is no HTTP, or beyond the bounds below, libevent answers in HTML (400, 413,
 * 417).
 *
 * Bounds: request body 4 KiB, headers 8 KiB, some 32 KiB sent ahead; so many clients at a time
 * (httpd_limit()), then nobody is let in until one has gone. Dropped is who has not sent a whole
 * request after 30 s (after half a second while others wait to be let in), a connection that is
 * kept alive and idle too; and who has not read a whole answer after 30 s and 1 s for each 32 KiB
 * of it. Answers that nobody has read yet have so many bytes altogether (or are one answer); others
 * are 503. On a Unix socket whose places are shared (httpd_share()) whoever is above a share is
 * answered 503 without the handler, and nobody waits to be let in: see clients.h.
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

/* Serves on a Unix socket at path (one that nobody listens on is replaced; mode 0660). NULL with
 * errno set. */
struct httpd *httpd_open_unix(struct loop *l, const char *path, httpd_handler handle, void *arg);
/* Serves on HOST:PORT ([v6]:port too; port 0 = any free one). NULL with errno set. */
struct httpd *httpd_open_tcp(struct loop *l, const char *address, httpd_handler handle, void *arg);
/* Of a Unix socket: whether the file at its path is the one that it made. */
bool httpd_is_there(const struct httpd *h);
/* Of a Unix socket: makes it again when its file is not there any more, or nobody's. Who is
 * connected stays so. 0: it is there; 1: it is there again; -errno: it cannot be made, -EADDRINUSE:
 * in its place is a file of somebody else, who may listen there. */
int httpd_restore(struct httpd *h);

#define HTTPD_CLIENTS 64
#define HTTPD_QUEUED (64u << 20)

/* Other bounds than these: clients at a time, and bytes of answers that are not read yet. */
void httpd_limit(struct httpd *h, size_t clients, size_t queued);
/* Of a Unix socket: shares clients, and bytes of answers, among its users (share.h). refused: of
 * each connection or answer that is refused for that. */
void httpd_share(struct httpd *h, void (*refused)(void *arg, const struct peer *peer), void *arg);
/* Of a Unix socket: the group whose members operate (peer.h); before, nobody's. Counts from the
 * next request on. */
void httpd_operators(struct httpd *h, gid_t operators);
/* The port that is bound (TCP). */
int httpd_port(const struct httpd *h);
/* Stops; the Unix socket is removed, if it is still this one's. Open requests are dropped, and
 * nobody is told. */
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
/* True when it came over TCP: from anybody. */
bool httpd_is_tcp(const struct httpd_request *r);
/* Who asks, and what that user may do now (peer.h). */
void httpd_peer(const struct httpd_request *r, struct peer *ret_peer);
/* May who asks see values? An operator on a Unix socket may; over TCP nobody. */
bool httpd_may_see_values(const struct httpd_request *r);
/* Called when the client goes away before the reply (it closes its side, or the half of it that it
 * writes to): afterwards the request must not be used. In place of an earlier one; NULL: nobody is
 * called any more. */
void httpd_on_gone(struct httpd_request *r, void (*gone)(void *arg), void *arg);

/* Adds a response header. */
void httpd_add_header(struct httpd_request *r, const char *name, const char *value);
/* Takes the request; answers with status, content type (NULL = none) and len bytes (copied). HEAD
 * and 304 send no body, but the length for HEAD. */
void httpd_reply(struct httpd_request *r, int status, const char *content_type, const void *body,
	size_t len);

#endif
