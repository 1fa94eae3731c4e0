/*
 * The metrics as a table: what each is called and means, and where its value is read. Private to
 * metrics*.c and their test.
 *
 * A value is a field of struct metric_subject, which metric_scope.next() fills with one object
 * after the other: a config, a server. Times are milliseconds (or microseconds) there, and seconds
 * in the output. A value below zero is absent: it has no series.
 */
#ifndef PULLET_METRICS_TABLE_H
#define PULLET_METRICS_TABLE_H

#include "control/agent_view.h"
#include "pull/upstream.h"

#define METRIC_LABELS 2

enum metric_type { METRIC_GAUGE, METRIC_COUNTER, METRIC_INFO, METRIC_HISTOGRAM };
enum metric_unit { METRIC_NUMBER, METRIC_SECONDS, METRIC_MICROSECONDS, METRIC_BYTES };
enum metric_width { METRIC_BOOL, METRIC_32, METRIC_64 };

struct metric {
	const char *name; /* of the samples; ends in the unit, and _total, _info where it must */
	enum metric_type type;
	enum metric_unit unit;
	const char *help; /* one sentence; without \ and " and line breaks */
	size_t offset;    /* of the value, or of the first of them, in a struct metric_subject */
	enum metric_width width;
	size_t when;              /* offset of a bool: no series where it is false; 0 = always */
	const char *label;        /* beside those of the scope; NULL = none */
	const char *const *names; /* its values: one series each, */
	const char *(*name_of)(size_t i); /* where names is NULL */
	size_t values;                    /* their number */
	size_t buckets; /* of a histogram: counts, followed by the sum; 0 = as lib/dispatcher.h has
			   it */
	uint64_t step;  /* of a histogram in microseconds: bucket i is below step << i */
	bool is_set;    /* the value is a number: the series of that number is 1, others 0 */
};

/* One object, and all its values. */
struct metric_subject {
	const struct control_env *env;
	size_t next, address;              /* where next() goes on */
	const char *labels[METRIC_LABELS]; /* values of the scope's labels; borrowed */

	struct {
		bool is; /* true */
		uint64_t configs;
		int64_t started_ms, longest_turn_ms;
	} agent;
	struct control_counts control;
	struct {
		int64_t cpu_ms, resident_bytes, virtual_bytes, open_fds, max_fds;
	} process;
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

struct metric_scope {
	const char *labels[METRIC_LABELS]; /* NULL = no more */
	const struct metric *metrics;
	size_t count;
	/* Fills the subject with the next object; the first one when it is zero but for env. False:
	 * there are no more. */
	bool (*next)(struct metric_subject *s);
};

#define METRIC_SCOPES 8
extern const struct metric_scope metric_scopes[METRIC_SCOPES];

#endif
