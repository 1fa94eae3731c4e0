/* Why a version is not published. Surprising: the ledger holds these names, so they never change.
 */
#include "config/rejection.h"

#include <stdio.h>
#include <string.h>

const char *rejection_name(enum rejection_reason reason)
{
	static const char *const names[REJECTION_REASONS] = {
		[REJECTED_BY_PROBE] = "probe",
		[REJECTED_BY_OPERATOR] = "operator",
		[REJECTED_BY_PIN] = "pin",
		[REJECTED_BY_ROLLOUT] = "rollout",
		[REJECTED_BY_UNKNOWN] = "unknown",
	};

	return names[reason] ? names[reason] : verify_check_name((enum verify_check)reason);
}

enum rejection_reason rejection_parse(const char *name)
{
	int i = 0;

	while (i < REJECTED_BY_UNKNOWN &&
		strcmp(name, rejection_name((enum rejection_reason)i)) != 0)
		i++;
	return (enum rejection_reason)i;
}

bool rejection_is_held(enum rejection_reason reason)
{
	return reason == REJECTED_BY_PIN || reason == REJECTED_BY_ROLLOUT ||
	       reason == REJECTED_BY_OPERATOR;
}

bool rejection_is_rollback(enum rejection_reason reason)
{
	return reason == REJECTED_BY_PROBE || reason == REJECTED_BY_OPERATOR;
}

const char *rejection_text(enum rejection_reason reason, char text[REJECTION_TEXT])
{
	snprintf(text, REJECTION_TEXT, "rejected by the %s: keeping the current version",
		rejection_name(reason));
	return text;
}
