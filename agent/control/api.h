/*
 * The control API: what `pullet status` and scripts ask the agent, over HTTP on the Unix socket
 * and, read-only, on the optional TCP listener.
 *
 *   GET  /, /v1/status, /v1/changes, /v1/configs/NAME, /v1/configs/NAME/history, /metrics,
 *        /livez, /healthz, /readyz[?verbose]
 *
 * Who asks must call the host by a name of its own (httpd/host_header.h). No browser is to keep,
 * frame or pass on an answer, or may change anything: a page of somebody else's may be open in it.
 *
 * On the Unix socket only, because they show values, which may be secrets (though never those that
 * the config's mask names):
 *
 *   GET  /v1/configs/NAME/diff[?from=N&to=N], .../explain?key=K
 *
 * On the Unix socket only, for root, the agent's user and its group:
 *
 *   POST /v1/configs/NAME/refresh[?force=1&forget_rev=1&wait=1&timeout_ms=N]
 *        .../rollback[?generation=N&reason=TEXT&wait=0&timeout_ms=N]
 *        .../pin[?for_ms=N&reason=TEXT], .../unpin
 *        .../override?key=K&value=YAML&for_ms=N[&reason=TEXT&wait=0&timeout_ms=N]
 *        .../override?key=K&remove=1[&wait=0&timeout_ms=N]
 *
 * A rollback and an override are answered when they stand or are refused, unless wait=0; a refresh
 * only with wait=1; all after timeout_ms (60 s) at the latest. Errors are {"error": sentence}: 400
 * the question is not good, 403 not here or not you, 404 no such config, generation, key or
 * override, 409 it cannot be done as things stand, or was refused, 503 too many wait, 504
 * timeout_ms has passed: it goes on. Otherwise {"ok":true,"name","generation",...}; the members are
 * in config/inspect.h, status.h and api.c. `reason` and the client's uid are logged and kept with
 * what was decided.
 *
 * Threads: the loop's. Ownership: everything in struct control_env is borrowed. Bound:
 * CONTROL_MAX_WAITING clients wait at a time, in shares of their users (httpd/share.h), as
 * connections and answers of the Unix socket are.
 */
#ifndef PULLET_CONTROL_H
#define PULLET_CONTROL_H

#include "control/agent_view.h"

#define CONTROL_MAX_WAITING 64

struct control;

/* Serves on RUNTIME_DIR/control.sock and settings->listen. env is borrowed until control_stop(): it
 * may change between two calls of the loop, what it names too. 0, or -errno with a sentence in why.
 */
int control_start(const struct control_env *env, struct control **ret_control, char why[FILE_WHY]);
void control_stop(struct control *c);
/* Serves read-only on this TCP address instead (NULL = on none): nothing happens when it is the one
 * already. 0, or -errno with a sentence, and then it serves where it did. */
int control_listen(struct control *c, const char *address, char why[FILE_WHY]);
/* From now on this group operates (httpd/peer.h). */
void control_operators(struct control *c, gid_t operators);
/* Is the control socket where it was made? To be asked now and then, where inotify does not tell.
 */
void control_check(struct control *c);
/* A config is about to be freed, because it is not configured any more (gone), or otherwise:
 * whoever waits for it is told so, and nothing is kept of it. */
void control_forget(struct control *c, const struct config *config, bool gone);

#endif
