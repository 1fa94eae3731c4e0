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
 * belongs to the client and is lent to done(). libcurl is used in client.c and connections.c
 * only.
 */
#ifndef PULLET_HTTP_CLIENT_H
#define PULLET_HTTP_CLIENT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/loop.h"
#include "http/response.h"

struct http_client;
struct transfer;

/* May take the bodies out of the response. */
typedef void (*http_client_done)(void *arg, struct http_client_response *response);

struct http_client_tls { /* PEM files, borrowed; NULL = none */
	const char *ca;  /* certificate authorities; NULL = the system's */
	const char *crl; /* certificates that were revoked, of every authority in the chain */
	const char *cert, *key; /* the client's; key NULL = in the same file */
	bool only_1_3;          /* else 1.2 at least */
};

struct http_client_request {
	const char *url;
	const char *unix_socket; /* connect to this socket instead, or NULL */
	const char *method;      /* NULL = GET; POST and PUT send the body */
	const char *body;        /* copied; NULL = empty */
	size_t body_len;
	const char *const *headers;  /* "Name: value", NULL-terminated; or NULL */
	const char *user, *password; /* basic authentication; NULL = none */
	struct http_client_tls tls;
	size_t max_bytes;   /* of the decoded body */
	bool may_be_packed; /* a large gzip body of a 200 is left to unpack_body(), on any thread */
	uint64_t timeout_ms; /* total */
	uint64_t connect_timeout_ms;
	/* NULL, or what is asked for, in 64 characters that differ for each document, server and
	 * login: over HTTP/1.x connections are used again for the same one only, and for NULL never
	 */
	const char *document;
	bool alone; /* on a connection of its own, over HTTP/2 as well */
	/* A 200 by HTTP/2 with neither a length nor gzip is asked for again over HTTP/1.1, whose
	 * chunks have an end: libcurl 7.88 takes a stream that was reset for a whole one. */
	bool must_end;
	/* NULL, or gets each line of a 200 (without its end) as it comes, as the body of a response
	 * that is lent for the call: an answer without an end. Nothing is kept then, max_bytes is
	 * that of a line, idle_ms takes the place of timeout_ms; a last line without its end is
	 * not handed out. May cancel the transfer, and must call nothing else of its client. */
	http_client_line line;
	uint64_t idle_ms; /* with line alone: silence for so long is a timeout */
};

struct http_client *http_client_new(struct loop *l);
/* Cancels what runs (without calling done) and frees. */
void http_client_free(struct http_client *t);
/* Starts a transfer. done(arg, response) is called once, later, from the loop (never from inside
 * http_client_start), unless cancelled before. 0 and *ret_transfer, or -errno. */
int http_client_start(struct http_client *t, const struct http_client_request *request,
	http_client_done done, void *arg, struct transfer **ret_transfer);
/* Takes the transfer, ends it at once; done() is not called. Never blocks, not even in the middle
 * of a name look-up. */
void http_client_cancel(struct transfer *transfer);
/* Uses no idle connection again: they may be dead (the machine slept). */
void http_client_forget(struct http_client *t);
/* From now on responses have certificates_end_ms. */
void http_client_examine(struct http_client *t);
/* Library versions, for --version. */
const char *http_client_version(void);

#endif
