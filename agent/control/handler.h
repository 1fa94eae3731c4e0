/*
 * What the handlers of the API have: the server's state, and what more than one of them does.
 *
 * A handler gets a request whose sender has the right to it, whose parameters are known ones, and
 * the config that its path names (NULL = none), and answers it, at once or later.
 */
#ifndef PULLET_CONTROL_HANDLER_H
#define PULLET_CONTROL_HANDLER_H

#include "base/log.h"
#include "control/answers.h"
#include "control/agent_view.h"
#include "control/waiting.h"

struct control {
	const struct control_env *env; /* may change between two calls */
	struct control_socket *socket;
	struct changes *changes;
	struct answers answers;
	struct waiting_room room;
	struct log_limit denied; /* by user */
	struct log_limit busy;   /* by user */
};

/* Counts and logs that a user exceeds the share of the control socket. */
void handler_share_refused(void *control, const struct peer *peer);
/* Begins a slow answer, or answers with an error. */
void handler_begin_answer(
	struct control *c, struct httpd_request *r, struct config *config, struct answer *a);

#endif
