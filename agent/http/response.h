/*
 * The answer to an HTTP request, or why there is none.
 */
#ifndef PULLET_RESPONSE_H
#define PULLET_RESPONSE_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/buffer.h"

#define HTTP_CLIENT_NO_ADVICE UINT64_MAX
#define HTTP_CLIENT_DIGESTS 512 /* bytes of one of the digest headers */

enum http_client_result {
	HTTP_CLIENT_OK,      /* a whole response: see status */
	HTTP_CLIENT_TIMEOUT, /* a time limit passed: connect, low speed, total */
	HTTP_CLIENT_REFUSED, /* connection refused */
	HTTP_CLIENT_NETWORK, /* name not found, unreachable, reset, cut short */
	HTTP_CLIENT_TLS,     /* certificate or handshake */
	HTTP_CLIENT_HOST, /* a file of tls: cannot be used, or there is no socket; nothing was sent
			   */
	HTTP_CLIENT_TOO_LARGE, /* body over max_bytes */
	HTTP_CLIENT_CODING,    /* it came whole, but its gzip body is broken */
	HTTP_CLIENT_PROTOCOL,  /* not HTTP, bad URL, an answer that may mean two things, anything
				* else
				*/
	HTTP_CLIENT_RESULTS
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
	char location[256];    /* of a redirect, as sent; never followed */
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

typedef void (*http_client_line)(void *arg, const struct http_client_response *line);

#endif
