/*
 * A running relay as its monitor sees it: where the counters are.
 *
 * Types only. All is borrowed, and read in the loop's thread.
 */
#ifndef PULLET_CLI_RELAY_VIEW_H
#define PULLET_CLI_RELAY_VIEW_H

#include <stddef.h>
#include <stdint.h>

#include "base/loop.h"
#include "cli/relay/options.h"
#include "pull/watch.h"
#include "push/publisher.h"
#include "relay/listener.h"
#include "relay/relay.h"

struct relay_view_source { /* what is below a prefix, or a directory */
	char *label;       /* valid UTF-8, without control characters; NULL = no monitor */
	const struct watch_item *item; /* NULL = a directory, which needs no connection */
	uint64_t changes;              /* or doubts, that it reported */
};

struct relay_view {
	struct loop *loop;
	const struct relay *relay;
	const struct publisher *publisher;
	const struct listener *upstreams; /* NULL = none */
	size_t upstream_count;
	const struct relay_view_source *sources[2 * RELAY_SETUP_MAX];
	size_t source_count;
	uint64_t invalid_names; /* changes of names that no topic can have */
	int64_t started_ms;     /* wall clock */
};

#endif
