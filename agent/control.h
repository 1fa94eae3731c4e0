/*
 * The control API: what `pullet status` and scripts ask the agent, over HTTP on the Unix socket
 * and, read-only, on the optional TCP listener.
 *
 *   GET  /v1/status, /v1/configs/NAME, /livez, /readyz
 *   POST /v1/configs/NAME/refresh[?wait=1&timeout_ms=N]    Unix socket only; root, the agent's user
 * or its group
 *
 * Threads: the loop's. Ownership: everything in struct control_env is borrowed. Bound:
 * CONTROL_MAX_WAITING clients wait for runs at a time.
 */
#ifndef PULLET_CONTROL_H
#define PULLET_CONTROL_H

#include "config.h"
#include "loop.h"
#include "push.h"
#include "settings.h"

#define CONTROL_MAX_WAITING 64

struct control;

struct control_env {
	struct loop *loop;
	const struct settings *settings;
	struct config *const *configs; /* settings->config_count of them, in that order */
	struct server *const *servers; /* settings->server_count of them */
	struct push *const *push;      /* *push is NULL without a push channel */
	int64_t started_ms;            /* wall clock */
};

/* Serves on RUNTIME_DIR/control.sock and settings->listen. 0, or -errno with a sentence in why. */
int control_start(const struct control_env *env, struct control **ret_control, char why[FILE_WHY]);
void control_stop(struct control *c);

#endif
