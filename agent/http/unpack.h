/*
 * Decodes the gzip body of an answer that was left as it came (may_be_packed of a request): what
 * takes milliseconds, where it holds nobody.
 *
 * Threads: any, one at a time for each response. Bounds: max_bytes of the response.
 */
#ifndef PULLET_UNPACK_H
#define PULLET_UNPACK_H

#include "http/response.h"

/* Does nothing where the body is not packed, or did not come whole. Else the body, result and
 * message become what they would be if it had been decoded as it came. */
void unpack_body(struct http_client_response *r);

#endif
