/*
 * `pullet relay --listen`: its metrics and probes over HTTP, read only, for anybody who reaches the
 * address: counters and the names on the command line, never a value or a key.
 *
 * /metrics: relay_metrics.h. /livez, /healthz: 200 while the event loop turns, whatever is wrong
 * elsewhere: a restart brings no upstream back. /readyz: 200 when changes can come, else 503.
 *
 * Threads: the loop's. Errors: -errno. Bounds: those of httpd/server.h; an answer is at most 8 MiB.
 */
#ifndef PULLET_CLI_RELAY_MONITOR_H
#define PULLET_CLI_RELAY_MONITOR_H

#include "cli/relay/view.h"

struct monitor;

/* Serves at HOST:PORT. names: what clients may call this host, beside its addresses and its own
 * name (httpd/host_header.h); ends with NULL. The view and the names are borrowed. 0 or -errno. */
int monitor_open(const struct relay_view *view, const char *address, char *const *names,
	struct monitor **ret_monitor);
/* The port that is bound. */
int monitor_port(const struct monitor *m);
/* Accepts NULL. */
void monitor_close(struct monitor *m);

#endif
