/*
 * A small HTTP/1.1 server on the loop: libevent's evhttp behind one handler.
 *
 * Used by the control socket (Unix), the agent's optional TCP listener, and `pullet serve`. Bounds:
 * request body 4 KiB, headers 8 KiB, idle clients are dropped after 30 s, response body whatever
 * the handler gives. Methods: GET, HEAD, POST; all others are answered 405 (501).
 *
 * Threads: the loop's. Ownership: the handler borrows the request until it answers it: exactly one
 * httpd_reply() per request, at once or later.
 */
#ifndef PULLET_HTTPD_H
#define PULLET_HTTPD_H

#include <stdbool.h>
#include <stddef.h>

#include "loop.h"

struct httpd;
struct httpd_request;

enum httpd_method { HTTPD_GET, HTTPD_HEAD, HTTPD_POST };

typedef void (*httpd_handler)(void *arg, struct httpd_request *request);

/* Serves on a Unix socket at path (an old socket there is replaced; mode 0660). NULL with errno
 * set. */
struct httpd *httpd_open_unix(struct loop *l, const char *path, httpd_handler handle, void *arg);
/* Serves on HOST:PORT ([v6]:port too; port 0 = any free one). NULL with errno set. */
struct httpd *httpd_open_tcp(struct loop *l, const char *address, httpd_handler handle, void *arg);
/* The port that is bound (TCP). */
int httpd_port(const struct httpd *h);
/* Stops; the Unix socket is removed. Open requests are dropped. */
void httpd_close(struct httpd *h);

enum httpd_method httpd_method(const struct httpd_request *r);
/* The decoded path, always beginning with '/'; without the query. A path with a NUL or a bad escape
 * never reaches the handler (400). */
const char *httpd_path(const struct httpd_request *r);
/* A query parameter's value, or NULL. */
const char *httpd_query(const struct httpd_request *r, const char *name);
/* A request header's value, or NULL. */
const char *httpd_header(const struct httpd_request *r, const char *name);
/* Peer credentials of a Unix client. 0 or -errno. */
int httpd_peer(const struct httpd_request *r, uid_t *ret_uid, gid_t *ret_gid);
/* Called when the client goes away before the reply: afterwards the request must not be used. */
void httpd_on_gone(struct httpd_request *r, void (*gone)(void *arg), void *arg);

/* Adds a response header. */
void httpd_add_header(struct httpd_request *r, const char *name, const char *value);
/* Takes the request; answers with status, content type (NULL = none) and len bytes (copied). HEAD
 * and 304 send no body, but the length for HEAD. */
void httpd_reply(struct httpd_request *r, int status, const char *content_type, const void *body,
	size_t len);

#endif
