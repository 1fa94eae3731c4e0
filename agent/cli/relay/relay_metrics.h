/*
 * The metrics of a relay, for Prometheus: each is in pullet(1). Labels are names of the command
 * line (endpoint, source) and words of fixed sets (state, cause), never texts from a server.
 *
 * Threads: the loop's. Errors: -ENOMEM, -EMSGSIZE. Bounds: 28 series, 12 of an upstream, 5 of a
 * source. No I/O except /proc.
 */
#ifndef PULLET_CLI_RELAY_METRICS_H
#define PULLET_CLI_RELAY_METRICS_H

#include <stdbool.h>

#include "cli/relay/view.h"
#include "lib/buffer.h"

/* Appends all metrics. 0, or the buffer's error: then the output is cut. */
int relay_metrics_write(const struct relay_view *view, bool openmetrics, struct buffer *out);

/* Tells whether changes can come: an upstream is connected, or a source is watched. Appends a line
 * for each of them, with its state, where the relay is not ready, or verbose. */
bool relay_metrics_ready(const struct relay_view *view, bool verbose, struct buffer *out);

#endif
