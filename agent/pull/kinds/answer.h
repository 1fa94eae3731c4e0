/*
 * What any answer of a configuration server comes to: the kind's own judgement, and the meaning of
 * the statuses that are the same for all. No I/O, no timers.
 */
#ifndef PULLET_SOURCE_H
#define PULLET_SOURCE_H

#include "pull/kinds/kind.h"

/* Checks the response to a request for `place`; never KIND_USUAL. KIND_NEW: *ret is filled;
 * KIND_SAME only if it was asked for conditionally, or the kind found it so; else why is a sentence
 * and *ret_cause its cause. */
enum kind_verdict answer_judge(const struct kind_place *place,
	const struct http_client_response *response, bool conditional, struct kind_answer *ret,
	enum kind_cause *ret_cause, char why[FILE_WHY]);

#endif
