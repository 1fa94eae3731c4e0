/*
 * Rejected versions. Surprising: their bytes are kept, because the next pull may bring only those
 * parts that changed since.
 */
#include "config/rejection.h"

#include <stdio.h>
#include <stdlib.h>
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

struct rejection *rejection_new(struct candidate *candidate, enum rejection_reason reason,
	const char *rules, const char *why)
{
	struct rejection *r = calloc(1, sizeof(*r));

	if (!r || !(r->why = strdup(why))) {
		free(r);
		return NULL;
	}
	r->version = candidate->version;
	candidate->version = (struct version){.generation = 0};
	r->body = candidate->body;
	buffer_init(&candidate->body, 0);
	/* never 0: a request is conditional on a version that has a generation */
	r->version.generation = UINT64_MAX;
	r->reason = reason;
	snprintf(r->rules, sizeof(r->rules), "%s", rules);
	return r;
}

void rejection_free(struct rejection *r)
{
	if (!r)
		return;
	version_fini(&r->version);
	buffer_fini(&r->body);
	free(r->why);
	free(r);
}
