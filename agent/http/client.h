/*
 * HTTP transfers, without blocking: libcurl's multi interface on the loop.
 *
 * Safe by construction: http and https only, no redirects followed, no proxy, netrc, cookies or
 * HSTS from the environment, TLS 1.2 at least and verified, size cap in the write callback after
 * decoding, gzip the only coding and decoded to its very end, a head that can be read in one way
 * only (framing.h), total and connect and low-speed limits, connections at most an hour old,
 * CLOEXEC sockets. Connections are kept alive and shared by all transfers of one transport. HTTP/2
 * over TLS where the server has it.
 *
 * Threads: the loop's. Ownership: the request is copied by transport_start(); the response belongs
 * to the transport and is lent to done(). libcurl is used in client.c and
 * connections.c only.
 */
#ifndef PULLET_TRANSPORT_H
#define PULLET_TRANSPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/buffer.h"
#include "base/loop.h"

#define TRANSPORT_NO_ADVICE UINT64_MAX
#define TRANSPORT_DIGESTS 512 /* bytes of one of the digest headers */

struct transport;
struct transfer;

enum transport_result {
	TRANSPORT_OK,        /* a response came in whole: look at status */
	TRANSPORT_TIMEOUT,   /* a time limit passed: connect, low speed, total */
	TRANSPORT_REFUSED,   /* connection refused */
	TRANSPORT_NETWORK,   /* name not found, unreachable, reset, cut short */
	TRANSPORT_TLS,       /* certificate or handshake */
	TRANSPORT_HOST,      /* a file of tls: cannot be used; the server was asked nothing */
	TRANSPORT_TOO_LARGE, /* body over max_bytes */
	TRANSPORT_CODING,    /* it came whole, but its gzip body is broken */
	TRANSPORT_PROTOCOL,  /* not HTTP, bad URL, an answer that may mean two things, anything else
			      */
	TRANSPORT_RESULTS
};

struct transport_response;
typedef void (*transport_line)(void *arg, const struct transport_response *line);
/* May take the bodies out of the response. */
typedef void (*transport_done)(void *arg, struct transport_response *response);

struct transport_tls {   /* PEM files, borrowed; NULL = none */
	const char *ca;  /* certificate authorities; NULL = the system's */
	const char *crl; /* certificates that were revoked, of every authority in the chain */
	const char *cert, *key; /* the client's; key NULL = in the same file */
	bool only_1_3;          /* else 1.2 at least */
};

struct transport_request {
	const char *url;
	const char *unix_socket; /* connect to this socket instead, or NULL */
	const char *method;      /* NULL = GET; POST and PUT send the body */
	const char *body;        /* copied; NULL = empty */
	size_t body_len;
	const char *const *headers;  /* "Name: value", NULL-terminated; or NULL */
	const char *user, *password; /* basic authentication; NULL = none */
	struct transport_tls tls;
	size_t max_bytes;    /* of the decoded body */
	uint64_t timeout_ms; /* total */
	uint64_t connect_timeout_ms;
	/* NULL, or what is asked for, in 64 characters that differ for each document, server and
	 * login: over HTTP/1.x connections are used again for the same one only, and for NULL never
	 */
	const char *document;
	bool alone; /* on a connection of its own, over HTTP/2 as well */
	/* NULL, or gets each line of a 200 (without its end) as it comes, as the body of a response
	 * that is lent for the call: an answer without an end. Nothing is kept then, max_bytes is
	 * that of a line, idle_ms takes the place of timeout_ms; a last line without its end is
	 * not handed out. May cancel the transfer, and must call nothing else of its transport. */
	transport_line line;
	/* nothing came for so long: a timeout, up to 5 s later (libcurl looks at an average); in
	 * whole seconds; 0 = half of timeout_ms */
	uint64_t idle_ms;
};

struct transport_response {
	enum transport_result result;
	char message[360];       /* when result is not OK: one sentence, without secrets */
	bool sent;               /* a connection stood and the request went out on it */
	long status;             /* HTTP status, 0 when none came */
	uint64_t retry_after_ms; /* as the server asks; what cannot be read is 0;
				    TRANSPORT_NO_ADVICE */
	char etag[256];          /* as sent, with quotes and W/; "" = none (or longer than fits) */
	char last_modified[64];
	/* all lines of Content-Digest, Repr-Digest (RFC 9530), Digest (RFC 3230), with commas */
	char content_digest[TRANSPORT_DIGESTS], repr_digest[TRANSPORT_DIGESTS],
		digest[TRANSPORT_DIGESTS];
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
	/* the body as it was sent, if it was decoded and one of the digests came with it */
	struct buffer coded;
	uint64_t duration_ms;
	uint64_t lookup_ms; /* of that: until the server's name was found */
	/* the first of the server's certificates to expire, since 1970; 0 = not known: no TLS, a
	 * connection that stood before, or no transport_examine() */
	int64_t certificates_end_ms;
};

struct transport *transport_new(struct loop *l);
/* Cancels what runs (without calling done) and frees. */
void transport_free(struct transport *t);
/* Starts a transfer. done(arg, response) is called once, later, from the loop (never from inside
 * transport_start), unless cancelled before. 0 and *ret_transfer, or -errno. */
int transport_start(struct transport *t, const struct transport_request *request,
	transport_done done, void *arg, struct transfer **ret_transfer);
/* Takes the transfer, ends it at once; done() is not called. Never blocks, not even in the middle
 * of a name look-up. */
void transport_cancel(struct transfer *transfer);
/* Connections that are kept alive may be dead (the machine slept): use none of them again. */
void transport_forget(struct transport *t);
/* From now on answers tell of the server's certificates too. */
void transport_examine(struct transport *t);
/* Library versions, for --version. */
const char *transport_version(void);

#endif
