/*
 * The verdict on any answer of a configuration server: the kind's own, or that of a status, which
 * is the same for all. No I/O, no timers.
 */
#ifndef PULLET_ANSWER_H
#define PULLET_ANSWER_H

#include "pull/kinds/kind.h"

/* Checks the response to a request for `place`; never KIND_USUAL. KIND_NEW: *ret is filled;
 * KIND_SAME only if it was asked for conditionally, or the kind found it so; else ret->why is a
 * sentence and ret->cause its cause. */
enum kind_verdict answer_check(const struct kind_place *place,
	const struct http_client_response *response, bool conditional, struct kind_answer *ret);

#endif
