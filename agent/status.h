/*
 * What the agent says about itself, as JSON: the status API's answers. No I/O.
 *
 * Threads: the loop's. Errors: -ENOMEM, -EMSGSIZE.
 */
#ifndef PULLET_STATUS_H
#define PULLET_STATUS_H

#include "../lib/buffer.h"
#include "control.h"

/* GET /v1/status: the agent, its configs, its push endpoints. */
int status_agent(const struct control_env *env, struct buffer *out);
/* GET /v1/configs/NAME. */
int status_config(struct config *c, struct buffer *out);
/* The answer to a refresh that waited. */
int status_outcome(struct config *c, struct buffer *out);
/* True when every config has a published version; otherwise one line per config that has none. */
bool status_ready(const struct control_env *env, struct buffer *out);

#endif
