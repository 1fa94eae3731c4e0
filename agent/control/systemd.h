/*
 * What systemd is told of the agent, by the protocol of sd_notify(3): READY=1 once every config has
 * something published, a STATUS= text, RELOADING=1, STOPPING=1, and the watchdog.
 *
 * The watchdog is fed by a timer of the loop, and only while no config is stuck (config_stuck());
 * when it is not fed the log says why, once.
 *
 * Threads: the loop's. Errors: a message that systemd does not take is lost, but READY=1, which is
 * sent again. Bounds: a status text of SYSTEMD_MAX_STATUS bytes, one a second, the last one always
 * told; a message a second while READY=1 is awaited, none while nothing changes and there is no
 * watchdog.
 */
#ifndef PULLET_SYSTEMD_H
#define PULLET_SYSTEMD_H

#include "control/agent_view.h"

#define SYSTEMD_MAX_STATUS 256

struct systemd;

/* Reads NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID, and tells nothing of READY=1 yet. NULL:
 * systemd did not start us (there is no NOTIFY_SOCKET), or memory is short; all functions below
 * take NULL and do nothing. env is borrowed, and is looked at again in every call. */
struct systemd *systemd_start(const struct control_env *env);
/* A run of some config has ended, or what it has published has changed. */
void systemd_run_ended(struct systemd *s);
/* The configuration is being read again. */
void systemd_reloading(struct systemd *s);
/* It was, and was taken or refused. Configs that are new and have nothing yet do not take READY=1
 * back; the status text tells of them. */
void systemd_reloaded(struct systemd *s);
/* The agent is about to end. Frees. */
void systemd_stop(struct systemd *s);

#endif
