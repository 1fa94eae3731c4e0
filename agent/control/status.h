/*
 * What the agent says about itself, as JSON: the status API's answers. No I/O.
 *
 * The audience decides how much of a sentence is shown: to the public only the check that rejected
 * a version, or the cause of a failure.
 *
 * Threads: the loop's. Errors: -ENOMEM, -EMSGSIZE.
 */
#ifndef PULLET_STATUS_H
#define PULLET_STATUS_H

#include "lib/buffer.h"
#include "control/agent_view.h"
#include "text/sentence.h"

/* GET /v1/status: the agent, its configs, its push endpoints.
 *
 * "configuration": {"file", "loaded_ms": wall clock, of the current one; "reloads", "rejections":
 * since the start; "error", "errors": the first error and the number of errors of the last one
 * read, null and 0 when it was valid; "applying": true while a new one waits for writes to finish}.
 *
 * "audience": "public", "reader" or "operator": who the client is taken for. */
int status_agent(const struct control_env *env, enum audience audience, struct buffer *out);
/* GET /v1/configs/NAME: as in the status, and detail.h's members. */
int status_config(struct config *c, enum audience audience, struct buffer *out);
/* The answer to a refresh that waited. */
int status_outcome(struct config *c, enum audience audience, struct buffer *out);
/* True when every config has a published version. Appends a line for each that has none, "NAME:
 * why"; when verbose for all, with a mark in front. At the end "ok", or "not ready" when verbose.
 */
bool status_ready(
	const struct control_env *env, bool verbose, enum audience audience, struct buffer *out);

/* Appends the member name: {"by","reason","until_ms"}, of a pin or a suspension; NULL: nothing. */
void status_decision(const char *name, const struct ledger_pin *pin, struct buffer *out);

#endif
