/*
 * HTTP transfers, without blocking: libcurl's multi interface on the loop.
 *
 * Safe by construction: http and https only, no redirects followed, no proxy, netrc, cookies or
 * HSTS from the environment, TLS 1.2 at least and verified, size cap in the write callback after
 * decoding, gzip the only coding and decoded to its very end, a head that can be read in one way
 * only (framing.h), total and connect and low-speed limits, connections at most five minutes old
 * when they were idle, CLOEXEC sockets. Connections are kept alive and shared by all transfers of
 * one client. HTTP/2 over TLS where the server has it.
 *
 * Threads: the loop's. Ownership: the request is copied by http_client_start(); the response
 * belongs to the client and is lent to done(). libcurl is used in this room only.
 */
#ifndef PULLET_HTTP_CLIENT_H
#define PULLET_HTTP_CLIENT_H

#include <stdint.h>

#include "base/loop.h"
#include "http/request.h"
#include "http/response.h"

struct http_client;
struct transfer;

/* May take the bodies out of the response. */
typedef void (*http_client_done)(void *arg, struct http_client_response *response);

struct http_client *http_client_new(struct loop *l);
/* Cancels what runs (without calling done) and frees. Not from inside done(). */
void http_client_free(struct http_client *t);
/* Starts a transfer. done(arg, response) is called once, later, from the loop (never from inside
 * http_client_start), unless cancelled before. 0 and *ret_transfer, or -errno. */
int http_client_start(struct http_client *t, const struct http_client_request *request,
	http_client_done done, void *arg, struct transfer **ret_transfer);
/* Takes the transfer, ends it at once; done() is not called. Never blocks, not even in the middle
 * of a name look-up. */
void http_client_cancel(struct transfer *transfer);
/* What a transfer waits for, and where to look. */
const char *http_client_waits_for(const struct transfer *transfer);
/* Uses no idle connection again: they may be dead (the machine slept). */
void http_client_forget(struct http_client *t);
/* From now on responses have certificates_end_ms. */
void http_client_examine(struct http_client *t);
/* Library versions, for --version. */
const char *http_client_version(void);

#endif
