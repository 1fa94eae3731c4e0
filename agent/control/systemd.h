/*
 * Notifications to systemd by the protocol of sd_notify(3): READY=1, a STATUS= text, RELOADING=1,
 * STOPPING=1, and watchdog keepalives. Ready is: the control socket listens and the last known
 * good, where there is one, is published; it never waits for a server (/readyz says more).
 *
 * A timer of the loop sends keepalives, and only while no config is stuck (config_stuck()). When
 * they are withheld the log says why, once.
 *
 * Threads: the loop's. Errors: a message that systemd does not take is lost, except READY=1, which
 * is sent again. Bounds: a status text of SYSTEMD_MAX_STATUS bytes, one a second, the last one
 * always sent; none while nothing changes and there is no watchdog.
 */
#ifndef PULLET_SYSTEMD_H
#define PULLET_SYSTEMD_H

#include "control/agent_view.h"

#define SYSTEMD_MAX_STATUS 256

struct systemd;

/* Reads NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID; sends READY=1 in the next turn of the loop.
 * NULL: not started by systemd (no NOTIFY_SOCKET), or out of memory; all functions below accept
 * NULL. env is borrowed, and read again in every call. */
struct systemd *systemd_start(const struct control_env *env);
/* A run of the config at this place of env->configs has ended. Costs the same whatever their
 * number: looks at that one and at a few others in turn. */
void systemd_run_ended(struct systemd *s, size_t place);
/* The configuration is being read again. */
void systemd_reloading(struct systemd *s);
/* It was applied or rejected: READY=1. The status text names new configs without a version. */
void systemd_reloaded(struct systemd *s);
/* The agent ends. Frees s. */
void systemd_stop(struct systemd *s);

#endif
