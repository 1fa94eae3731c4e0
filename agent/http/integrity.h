/*
 * The digests that an HTTP answer gives of its body: Content-Digest and Repr-Digest (RFC 9530), and
 * the Digest before them (RFC 3230), held against the bytes.
 *
 * SHA-256 and SHA-512 are known, the other algorithms are passed over: no accident of theirs proves
 * anything. All that are known must fit. All three headers speak of the bytes as they were sent,
 * with their Content-Encoding; where a server in between coded them and left the header as it was,
 * those that were decoded may fit instead, which proves no less. A known algorithm whose value is
 * no digest of its length does not fit: garbling a digest does not turn it off.
 *
 * Threads: any.
 */
#ifndef PULLET_INTEGRITY_H
#define PULLET_INTEGRITY_H

#include "http/response.h"

#define INTEGRITY_WHY 200

/* Holds the digests of a whole answer against its body. 0: all that are known fit, and
 * ret_note is a sentence when there are only others, else ""; -EINVAL with ret_why, such as
 * "SHA-256 is 37b1..., its Repr-Digest says 0ca5..."; -ENOMEM, said in ret_why as well. */
int integrity_check(const struct http_client_response *r, char ret_why[INTEGRITY_WHY],
	char ret_note[INTEGRITY_WHY]);

#endif
