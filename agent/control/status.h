/*
 * What the agent says about itself, as JSON: the status API's answers. No I/O.
 *
 * The audience decides what of a sentence is shown: to the public only which check refused, or of
 * what kind a failure was.
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
 * "configuration" is how it was read (SIGHUP): {"file", "loaded_ms": wall clock, of what runs;
 * "reloads", "refused": since the start; "error": the first sentence of the last one that was
 * refused, null when the last one was good; "errors": how many it had, 0; "applying": true while a
 * disk is waited for before a new one counts}. */
int status_agent(const struct control_env *env, enum audience audience, struct buffer *out);
/* GET /v1/configs/NAME. */
int status_config(struct config *c, enum audience audience, struct buffer *out);
/* The answer to a refresh that waited. */
int status_outcome(struct config *c, enum audience audience, struct buffer *out);
/* True when every config has a published version. One line for each that has none: "NAME: why"; of
 * all, with a mark in front, when verbose; at the end "ok", or "not ready" when verbose. */
bool status_ready(
	const struct control_env *env, bool verbose, enum audience audience, struct buffer *out);

#endif
