/*
 * Why a version that a server has is not published.
 *
 * The reasons are the checks, and what happens after or beside them. A version is rejected by a
 * check, rolled back by its probe or by an operator, or held (by a pin, a rollout, a rollback of an
 * operator): held versions are no failure.
 */
#ifndef PULLET_REJECTION_H
#define PULLET_REJECTION_H

#include <stdbool.h>

#include "verify/verify.h"

enum rejection_reason {
	/* the first CHECK_COUNT are enum verify_check: */
	REJECTED_BY_DIGEST = CHECK_DIGEST,
	REJECTED_BY_SIGNATURE = CHECK_SIGNATURE,
	REJECTED_BY_GUARD = CHECK_GUARD,
	REJECTED_BY_PROBE = CHECK_COUNT,
	REJECTED_BY_OPERATOR,
	REJECTED_BY_PIN,
	REJECTED_BY_ROLLOUT,
	REJECTED_BY_UNKNOWN, /* a word in the ledger that this version of the agent does not know */
	REJECTION_REASONS
};

/* As in the ledger, the status and the log. */
const char *rejection_name(enum rejection_reason reason);
enum rejection_reason rejection_parse(const char *name);
/* By a decision, which is no failure. */
bool rejection_is_held(enum rejection_reason reason);
/* It was current, and was replaced by an older one. */
bool rejection_is_rollback(enum rejection_reason reason);

/* The line of the log. */
#define REJECTION_TEXT 64
const char *rejection_text(enum rejection_reason reason, char text[REJECTION_TEXT]);

#endif
