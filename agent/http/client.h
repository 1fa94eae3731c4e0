/*
 * HTTP transfers, without blocking: libcurl's multi interface on the loop.
 *
 * Safe by construction: http and https only, no redirects followed, no proxy, netrc, cookies or
 * HSTS from the environment, TLS 1.2 at least and verified, size cap in the write callback after
 * decoding, gzip the only coding and decoded to its very end, a head that can be read in one way
 * only (framing.h), total and connect and low-speed limits, connections at most an hour old,
 * CLOEXEC sockets. Connections are kept alive and shared by all transfers of one client. HTTP/2
 * over TLS where the server has it.
 *
 * Threads: the loop's. Ownership: the request is copied by http_client_start(); the response
 * belongs to the client and is lent to done(). libcurl is used in client.c and connections.c
 * only.
 */
#ifndef PULLET_HTTP_CLIENT_H
#define PULLET_HTTP_CLIENT_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/buffer.h"
#include "base/loop.h"

#define HTTP_CLIENT_NO_ADVICE UINT64_MAX
#define HTTP_CLIENT_DIGESTS 512 /* bytes of one of the digest headers */

struct http_client;
struct transfer;

enum http_client_result {
	HTTP_CLIENT_OK,        /* a whole response: see status */
	HTTP_CLIENT_TIMEOUT,   /* a time limit passed: connect, low speed, total */
	HTTP_CLIENT_REFUSED,   /* connection refused */
	HTTP_CLIENT_NETWORK,   /* name not found, unreachable, reset, cut short */
	HTTP_CLIENT_TLS,       /* certificate or handshake */
	HTTP_CLIENT_HOST,      /* a file of tls: cannot be used; nothing was sent */
	HTTP_CLIENT_TOO_LARGE, /* body over max_bytes */
	HTTP_CLIENT_CODING,    /* it came whole, but its gzip body is broken */
	HTTP_CLIENT_PROTOCOL,  /* not HTTP, bad URL, an answer that may mean two things, anything
				* else
				*/
	HTTP_CLIENT_RESULTS
};

struct http_client_response;
typedef void (*http_client_line)(void *arg, const struct http_client_response *line);
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

struct http_client_response {
	enum http_client_result result;
	char message[360];       /* when result is not OK: one sentence, without secrets */
	bool sent;               /* there was a connection, and the request went out on it */
	long status;             /* HTTP status, 0 when none came */
	uint64_t retry_after_ms; /* as the server asks; what cannot be read is 0;
				    HTTP_CLIENT_NO_ADVICE */
	char etag[256];          /* as sent, with quotes and W/; "" = none (or longer than fits) */
	char last_modified[64];
	/* all lines of Content-Digest, Repr-Digest (RFC 9530), Digest (RFC 3230), with commas */
	char content_digest[HTTP_CLIENT_DIGESTS], repr_digest[HTTP_CLIENT_DIGESTS],
		digest[HTTP_CLIENT_DIGESTS];
	char content_type[128];    /* without parameters, lower case */
	char content_encoding[32]; /* as sent; gzip is decoded in body */
	char server_date[64];
	char consul_index[24]; /* X-Consul-Index */
	char filtered[8];      /* X-Consul-Results-Filtered-By-ACLs */
	char content_md5[48];  /* Content-MD5, as sent */
	char config_type[16];  /* Config-Type (Nacos) */
	char retry_after[64];  /* as sent: retry_after_ms says what it means */
	bool framed; /* body had a Content-Length, was chunked, or came by HTTP/2: its end is known
		      */
	struct buffer body;
	/* the body as it was sent, if it was decoded and one of the digests came with it, or if it
	 * is packed */
	struct buffer coded;
	bool packed;      /* body is empty until unpack_body() */
	size_t max_bytes; /* of the request */
	uint64_t duration_ms;
	uint64_t lookup_ms; /* of that: until the server's name was found */
	/* the first of the server's certificates to expire, since 1970; 0 = not known: no TLS, a
	 * connection used before, or no http_client_examine() */
	int64_t certificates_end_ms;
};

/* Messages, also of unpack_body(). */
#define HTTP_CLIENT_SAYS_TOO_LARGE "the body is larger than the limit of %zu bytes"
#define HTTP_CLIENT_SAYS_MALFORMED                                                                 \
	"the answer is malformed: %s%s: mend the server, or the proxy before it"

/* One of the digest headers came: the sent form of the body is needed, too. */
static inline bool http_client_has_digest(const struct http_client_response *r)
{
	return r->content_digest[0] || r->repr_digest[0] || r->digest[0];
}

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
