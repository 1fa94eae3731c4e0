/*
 * The answer to a change: {"ok": true, "name", "generation", "origin", ...}; of a rollback also
 * "overridden" and what comes next, of an override its "adds_key", "near_key", "replaced_keys" or
 * "replaced_items".
 */
#ifndef PULLET_CONTROL_OUTCOME_H
#define PULLET_CONTROL_OUTCOME_H

#include "config/config.h"
#include "config/inspect.h"
#include "httpd/server.h"
#include "lib/buffer.h"

/* Answers with this generation. effect: of an override; ended: members about what the change ended;
 * else NULL. */
void outcome_reply_generation(struct httpd_request *r, int status, struct config *config,
	uint64_t generation, const struct inspect_effect *effect, const struct buffer *ended);
/* The same with the current version's. */
void outcome_reply_current(struct httpd_request *r, int status, struct config *config,
	const struct inspect_effect *effect);

#endif
