/*
 * An answer as it comes, a line of its head and a piece of its body at a time; what it is not
 * trusted with is seen here.
 *
 * A head that can be read in two ways is an error (framing), a body ends where its length or its
 * chunks say (chunks), gzip is decoded to its very end (gunzip); max_bytes are of the decoded body.
 *
 * Threads: any, one at a time. Ownership: the bodies of the response are this one's until
 * reception_fini(). Errors: the functions that take bytes return false; fault, too_large, broken
 * say why.
 */
#ifndef PULLET_RECEPTION_H
#define PULLET_RECEPTION_H

#include <stdbool.h>
#include <stddef.h>

#include "http/chunks.h"
#include "http/framing.h"
#include "http/response.h"

struct reception { /* begins zero but for these, which are as in struct http_client_request */
	size_t max_bytes;
	bool may_be_packed, must_end;
	http_client_line line; /* NULL: the body is kept whole */
	void *arg;

	struct http_client_response response;
	struct framing framing;
	const char *fault; /* why the answer is invalid; a constant, or why[] */
	bool too_large;
	bool broken;  /* the gzip body */
	bool endless; /* the answer has no end that is known, where it must have one */
	bool more;    /* bytes came behind the body */
	bool in_line; /* line() is being called, */
	bool stopped; /* which may set this: it wants no more */

	/* private */
	unsigned named; /* rows of headers[] that were received */
	char why[FRAMING_WHY];
	struct chunks chunks;
	struct gunzip *gunzip; /* NULL: the body comes as it is */
	size_t coded_bytes;    /* received, before gunzip */
	size_t wire_bytes;     /* of the body, as they came */
	bool garbled;          /* the body of an error, which cannot be decoded: left empty */
};

void reception_init(struct reception *in);
void reception_fini(struct reception *in);
/* Takes a whole line of a head, with its end. */
bool reception_take_header(struct reception *in, const char *data, size_t len);
bool reception_take_body(struct reception *in, const char *data, size_t len);
/* Tells whether the body has all its bytes, as far as that is known before the transfer ends. */
bool reception_is_whole(const struct reception *in);
/* The transfer has ended well: checks that the body was whole. */
void reception_end(struct reception *in);
/* The same answer will come again, over HTTP/1.1. */
void reception_restart(struct reception *in);

#endif
