/*
 * Decodes the gzip body of an answer that was left as it came (may_be_packed of a request): what
 * takes milliseconds, where it holds nobody.
 *
 * Threads: any, one at a time for each response. Bounds: max_bytes of the response.
 */
#ifndef PULLET_UNPACK_H
#define PULLET_UNPACK_H

#include "http/client.h"

/* Does nothing where the body is not packed. Else the body, result and message become what they
 * would be if it had been decoded as it came. */
void unpack_body(struct http_client_response *r);
/* One of the digest headers came: the sent form of the body is needed, too. */
bool unpack_has_digest(const struct http_client_response *r);
/* The sentences about a bad body, into r->message. */
void unpack_say_too_large(struct http_client_response *r, size_t max_bytes);
void unpack_say_malformed(struct http_client_response *r, const char *why);

#endif
