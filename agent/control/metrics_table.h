/*
 * The metrics as a table (text/exposition.h). Private to metrics*.c and their test.
 */
#ifndef PULLET_METRICS_TABLE_H
#define PULLET_METRICS_TABLE_H

#include "control/agent_view.h"
#include "base/usage.h"
#include "pull/upstream.h"
#include "text/exposition.h"

/* One object, as a config or a server, and all its values. */
struct metric_subject {
	const struct control_env *env;
	size_t next, address; /* where next() goes on; a subject begins zero but for env */
	const char *labels[METRIC_LABELS]; /* values of the scope's labels; borrowed */

	struct {
		bool is; /* true */
		uint64_t configs;
		int64_t started_ms, longest_turn_ms;
	} agent;
	struct control_counts control;
	struct usage process;
	struct configuration_status configuration;
	struct config_totals totals;
	struct config_latency latency;
	bool has_push;
	struct config_status config;
	struct {
		bool ready, stale, heals, only_reports, watched;
		unsigned failure, rejection;
		uint64_t generation, runs, run_failures, decisions;
		int64_t confirmed_ms, signature_ms;
	} derived; /* of the config */
	struct upstream_status server;
	struct dispatcher_counters dispatcher;
	struct upstream_address_status at;
	struct subscriber_status push;
	int64_t push_age_ms;
	struct report_status report;
};

#define METRIC_SCOPES 8
extern const struct metric_scope metric_scopes[METRIC_SCOPES];

#endif
