/*
 * The metrics of the agent, for Prometheus: GET /metrics.
 *
 * The text exposition format 0.0.4, or OpenMetrics 1.0. Labels are names out of the configuration
 * (config, server, address, endpoint) and words of fixed sets (state, outcome, check, cause), never
 * texts from a server. The metrics are the rows of metrics_table.c; each is in pulletd(8).
 *
 * Threads: the loop's. Errors: -ENOMEM, -EMSGSIZE. Bounds: 15 series of a config, below 64
 * of a server with one address, each at most 400 bytes; beside the text 8 bytes a series. No I/O
 * except /proc.
 */
#ifndef PULLET_METRICS_H
#define PULLET_METRICS_H

#include <stdbool.h>

#include "lib/buffer.h"
#include "control/agent_view.h"

/* Appends all metrics. 0, or the buffer's error: then the output is cut. */
int metrics_write(const struct control_env *env, bool openmetrics, struct buffer *out);

#endif
