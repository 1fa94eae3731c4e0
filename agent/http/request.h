/*
 * What is asked for, as http_client_start() takes it.
 *
 * Ownership: all of it is borrowed, for the call only.
 */
#ifndef PULLET_HTTP_REQUEST_H
#define PULLET_HTTP_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "http/response.h"

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

#endif
