/*
 * The control API: what `pullet status` and scripts ask the agent, over HTTP on the Unix socket
 * and, read-only, on the optional TCP listener.
 *
 *   GET  /, /v1/status, /v1/changes, /v1/configs/NAME, /v1/configs/NAME/history, /metrics,
 *        /livez, /healthz, /readyz[?verbose]
 *
 * Requests must name the host by a name of its own (httpd/host_header.h). Browsers must not cache,
 * frame or leak answers, and cannot change anything: a foreign page may be open in them.
 *
 * On the Unix socket only, because they show values, which may be secrets (though never those that
 * the config's mask names):
 *
 *   GET  /v1/configs/NAME/diff[?from=N&to=N], .../explain[?key=K]
 *
 * On the Unix socket only, for root, the agent's user and its group:
 *
 *   POST /v1/configs/NAME/refresh[?force=1&forget_rev=1&wait=1&timeout_ms=N]
 *        .../rollback[?generation=N&reason=TEXT&wait=0&timeout_ms=N]
 *        .../pin[?for_ms=N&reason=TEXT], .../unpin
 *        .../override?key=K&value=YAML&for_ms=N[&reason=TEXT&wait=0&timeout_ms=N]
 *        .../override?key=K&remove=1[&wait=0&timeout_ms=N]
 *
 * A rollback and an override are answered when they are published or rejected, unless wait=0; a
 * refresh only with wait=1; all after timeout_ms (60 s) at the latest. Errors are {"error":
 * sentence}: 400 invalid request, 403 not on this listener or not allowed, 404 no such config,
 * generation, key or override, 409 not possible in the current state, or rejected, 503 too many
 * clients wait, 504 timeout_ms has passed, the request continues. Otherwise
 * {"ok":true,"name","generation",...}; the members are in config/inspect.h, status.h and outcome.h.
 * `reason` and the client's uid are logged and kept with the decision.
 *
 * Threads: the loop's. Ownership: everything in struct control_env is borrowed. Bound:
 * WAITING_MAX clients wait at a time (waiting.h), in shares of their users (httpd/share.h), like
 * connections and answers of the Unix socket.
 */
#ifndef PULLET_CONTROL_H
#define PULLET_CONTROL_H

#include "control/agent_view.h"

struct control;

/* Serves on RUNTIME_DIR/control.sock and settings->listen. env is borrowed until control_stop(): it
 * may change between two calls of the loop. 0, or -errno with a sentence in why.
 */
int control_start(const struct control_env *env, struct control **ret_control, char why[FILE_WHY]);
void control_stop(struct control *c);
/* Serves read-only on this TCP address instead (NULL = none). 0, or -errno with a sentence: then
 * nothing has changed. */
int control_listen(struct control *c, const char *address, char why[FILE_WHY]);
/* From now on this group operates (httpd/peer.h). */
void control_operators(struct control *c, gid_t operators);
/* Checks whether the control socket still exists. Called now and then, where inotify is missing. */
void control_check(struct control *c);
/* Forgets a config that is about to be freed, and answers the clients that wait for it. gone: it
 * was removed from the configuration. */
void control_forget(struct control *c, const struct config *config, bool gone);

#endif
