/*
 * What the agent counts and measures, for Prometheus: GET /metrics.
 *
 * The text exposition format 0.0.4, or OpenMetrics 1.0. Labels are names out of the configuration
 * (config, server, address, endpoint) and words of fixed sets (state, outcome, check, cause), never
 * anything that a server said. The metrics are the rows of metrics_table.c; each is in pulletd(8).
 *
 * Threads: the loop's. Errors: -ENOMEM, -EMSGSIZE. Bounds: below 100 series of a config, below 64
 * of a server with one address, each at most 400 bytes; beside the text 8 bytes a series. No I/O
 * but what the kernel tells of this process in /proc.
 */
#ifndef PULLET_METRICS_H
#define PULLET_METRICS_H

#include <stdbool.h>

#include "lib/buffer.h"
#include "control/agent_view.h"

/* Appends all metrics as they are now. 0, or the buffer's error: what was appended is cut then. */
int metrics_write(const struct control_env *env, bool openmetrics, struct buffer *out);

#endif
