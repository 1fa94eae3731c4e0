/*
 * Every metric, a row each. Surprising: the help is what pulletd(8) is compared with by make
 * check-man, so a row without its paragraph there does not pass.
 */
#include "control/metrics_table.h"

#include <string.h>

#include "control/state_names.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

#define AT(member) offsetof(struct metric_subject, member)
#define FIELD(member) METRIC_FIELD(struct metric_subject, member)
#define GAUGE METRIC_GAUGE
#define COUNTER METRIC_COUNTER
#define HISTOGRAM METRIC_HISTOGRAM
#define NUMBER METRIC_NUMBER
#define SECONDS METRIC_SECONDS
#define MICROSECONDS METRIC_MICROSECONDS
#define BYTES METRIC_BYTES

/* ---- the values of labels ---- */

static const char *const outcomes[SUPERVISOR_OUTCOMES] = {
	"success", "timeout", "not_started", "failed"};
static const char *const losses[] = {"expired", "withdrawn", "overridden"};
static const char *const failures[] = {"congestion", "network"};
static const char *const versions[] = {PULLET_VERSION};

static const char *check_name(size_t i)
{
	return verify_check_name((enum verify_check)i);
}

#define STATES(table, count) .label = "state", .names = table, .values = count, .is_set = true
#define OUTCOMES .label = "outcome", .names = outcomes, .values = SUPERVISOR_OUTCOMES
#define CHECKS .label = "check", .name_of = check_name, .values = CHECK_COUNT
#define LOSSES .label = "cause", .names = losses, .values = 3
_Static_assert(offsetof(struct dispatcher_counters, overridden) ==
		       offsetof(struct dispatcher_counters, expired) + 2 * sizeof(uint64_t),
	"the losses are adjacent");
#define FAILURES .label = "cause", .names = failures, .values = 2
_Static_assert(offsetof(struct upstream_address_status, network) ==
		       offsetof(struct upstream_address_status, congestion) + sizeof(uint64_t),
	"the failures are adjacent");
#define PUSH_STATES STATES(state_names_push, 4)
#define REPORT_STATES STATES(state_names_report, 4)

/* ---- the agent ---- */

static const struct metric agent_metrics[] = {
	{"pullet_build_info", METRIC_INFO, NUMBER, "The version of the agent.", FIELD(agent.is),
		.label = "version", .names = versions, .values = 1},
	{"pullet_configs", GAUGE, NUMBER, "Configs of the agent.", FIELD(agent.configs)},
	{"pullet_control_busy_total", COUNTER, NUMBER,
		"Connections and requests of users above a share of the control socket.",
		FIELD(control.busy)},
	{"pullet_control_denied_total", COUNTER, NUMBER,
		"Requests to the control API that were denied: the user is not allowed.",
		FIELD(control.denied)},
	{"pullet_loop_longest_turn_seconds", GAUGE, SECONDS,
		"Processor time of the longest turn of the event loop since the start: all configs "
		"wait for as long.",
		FIELD(agent.longest_turn_ms)},
	{"process_start_time_seconds", GAUGE, SECONDS, "When the agent started, since 1970.",
		FIELD(agent.started_ms)},
	{"process_cpu_seconds_total", COUNTER, SECONDS,
		"Processor time of the agent, without its children.", FIELD(process.cpu_ms)},
	{"process_resident_memory_bytes", GAUGE, BYTES, "Resident memory of the agent.",
		FIELD(process.resident_bytes)},
	{"process_virtual_memory_bytes", GAUGE, BYTES, "Address space of the agent.",
		FIELD(process.virtual_bytes)},
	{"process_open_fds", GAUGE, NUMBER, "Open descriptors.", FIELD(process.open_fds)},
	{"process_max_fds", GAUGE, NUMBER, "Maximum of open descriptors.", FIELD(process.max_fds)},
};

static bool next_agent(void *subject)
{
	struct metric_subject *s = subject;

	if (s->next++)
		return false;
	s->agent.is = true;
	s->agent.configs = s->env->settings->config_count;
	s->agent.started_ms = s->env->started_ms;
	s->control = *s->env->counts;
	s->agent.longest_turn_ms = (int64_t)(loop_longest_us(s->env->loop) / 1000);
	usage_read(loop_sys(s->env->loop), &s->process);
	return true;
}

/* ---- its configuration ---- */

static const struct metric configuration_metrics[] = {
	{"pullet_configuration_loaded_timestamp_seconds", GAUGE, SECONDS,
		"When the current configuration was read, since 1970.",
		FIELD(configuration.loaded_ms)},
	{"pullet_configuration_reloads_total", COUNTER, NUMBER, "Configurations applied by SIGHUP.",
		FIELD(configuration.reloads)},
	{"pullet_configuration_rejections_total", COUNTER, NUMBER,
		"Configurations rejected: the one before stays in force.",
		FIELD(configuration.rejections)},
	{"pullet_configuration_errors", GAUGE, NUMBER,
		"Errors of the last configuration read; 0 when it is in force.",
		FIELD(configuration.errors)},
	{"pullet_configuration_applying", GAUGE, NUMBER,
		"1 while a new configuration waits for writes to finish.",
		FIELD(configuration.applying)},
};

static bool next_configuration(void *subject)
{
	struct metric_subject *s = subject;

	if (!s->env->configuration || s->next++)
		return false;
	s->configuration = *s->env->configuration;
	return true;
}

/* ---- all configs together, also those that are gone ---- */

static const struct metric total_metrics[] = {
	{"pullet_runs_total", COUNTER, NUMBER,
		"Runs that have ended, by outcome: success, timeout, not_started (before a "
		"request: a secret that is gone, no memory), failed.",
		FIELD(totals.runs[0]), OUTCOMES},
	{"pullet_rejections_total", COUNTER, NUMBER, "Versions rejected, by check.",
		FIELD(totals.rejections[0]), CHECKS},
	{"pullet_pushes_total", COUNTER, NUMBER,
		"Push messages for configs, without repeated ones.", FIELD(totals.pushes)},
	{"pullet_watch_changes_total", COUNTER, NUMBER, "Changes reported by watches.",
		FIELD(totals.watch_changes)},
	{"pullet_reload_runs_total", COUNTER, NUMBER, "Reloads started.",
		FIELD(totals.reload_runs)},
	{"pullet_reload_failures_total", COUNTER, NUMBER, "Reloads that failed.",
		FIELD(totals.reload_failures)},
	{"pullet_probe_failures_total", COUNTER, NUMBER,
		"Versions that failed their probe, and were rolled back.",
		FIELD(totals.probe_failures)},
	{"pullet_push_latency_seconds", HISTOGRAM, MICROSECONDS,
		"Time from the arrival of a push message to the publication of what it announced, "
		"with the spread that it asked for.",
		FIELD(latency.counts[0]), .buckets = CONFIG_LATENCY_BUCKETS,
		.step = CONFIG_LATENCY_US, .when = AT(has_push)},
};

static bool next_totals(void *subject)
{
	struct metric_subject *s = subject;

	if (s->next++)
		return false;
	if (s->env->gone)
		s->totals = *s->env->gone;
	s->has_push = *s->env->push;
	if (s->env->latency)
		s->latency = *s->env->latency;
	for (size_t i = 0; i < s->env->settings->config_count; i++)
		config_add_totals(s->env->configs[i], &s->totals);
	return true;
}

/* ---- a config ---- */

/* At most 15 series, whatever it has: a fleet has hosts x configs of them. Here is what an alert
 * asks of one config, and needs at zero, too; what else is known of one is in the status, and what
 * is counted by cause is in the totals. States and causes are numbers, whose meaning the help
 * says and nothing may change; 0 is the first. */
static const struct metric config_metrics[] = {
	{"pullet_config_ready", GAUGE, NUMBER, "1 when a version is published.",
		FIELD(derived.ready)},
	{"pullet_config_stale", GAUGE, NUMBER,
		"1 when the server has not confirmed the current version for too long, or its "
		"signature has expired.",
		FIELD(derived.stale)},
	{"pullet_config_failure", GAUGE, NUMBER,
		"Why the last run failed: 0 it succeeded, 1 other, 2 not found, 3 empty, "
		"4 forbidden, 5 unreachable, 6 timeout, 7 overloaded, 8 older, 9 bad answer, "
		"10 this host.",
		FIELD(derived.failure)},
	{"pullet_config_rejection", GAUGE, NUMBER,
		"Why the version that the server has is not published: 0 it is, 1 rejected by a "
		"check, 2 rolled back by a probe, 3 held by a pin, a rollout or an operator's "
		"rollback.",
		FIELD(derived.rejection)},
	{"pullet_config_generation", GAUGE, NUMBER,
		"Number of the current version; 0 when nothing is published.",
		FIELD(derived.generation)},
	{"pullet_config_confirmed_timestamp_seconds", GAUGE, SECONDS,
		"When the server last confirmed the current version, since 1970; after a start, "
		"until it does, when that was pulled.",
		FIELD(derived.confirmed_ms)},
	{"pullet_config_runs_total", COUNTER, NUMBER, "Runs that have ended.", FIELD(derived.runs)},
	{"pullet_config_run_failures_total", COUNTER, NUMBER, "Runs that did not succeed.",
		FIELD(derived.run_failures)},
	{"pullet_config_restored_total", COUNTER, NUMBER,
		"Times that published files were changed by others, and restored.",
		FIELD(config.restored), .when = AT(derived.heals)},
	{"pullet_config_drifted", GAUGE, NUMBER,
		"1 when published files were changed by others, and are not restored.",
		FIELD(config.drifted), .when = AT(derived.only_reports)},
	{"pullet_config_operator_decisions", GAUGE, NUMBER,
		"Decisions of operators in force: a pin, a suspension, each override.",
		FIELD(derived.decisions)},
	{"pullet_config_signature_end_timestamp_seconds", GAUGE, SECONDS,
		"When the signature of the current version expires, since 1970.",
		FIELD(derived.signature_ms)},
	{"pullet_config_watch_state", GAUGE, NUMBER,
		"The worst state among the watched documents: 0 off, 1 connecting, 2 watching, "
		"3 failing.",
		FIELD(config.watch), .when = AT(derived.watched)},
	{"pullet_config_reload_notified_generation", GAUGE, NUMBER,
		"The version that the application was last notified of; 0 for none.",
		FIELD(config.notify.reload.notified), .when = AT(config.notify.has_reload)},
	{"pullet_config_reload_failures_in_a_row", GAUGE, NUMBER,
		"Failed reloads since the last success.", FIELD(config.notify.reload.in_a_row),
		.when = AT(config.notify.has_reload)},
	{"pullet_config_probe_state", GAUGE, NUMBER,
		"The state of the probe: 0 none, 1 waiting, 2 running, 3 passed, 4 failed.",
		FIELD(config.notify.probe), .when = AT(config.notify.has_probe)},
};

static int64_t time_or_absent(int64_t ms, int64_t none)
{
	return ms == none ? -1 : ms;
}

/* The numbers in the help of pullet_config_rejection. */
static unsigned find_rejection(const struct config_status *c)
{
	return !c->rejected ? 0 : c->held ? 3 : c->rejected_by == REJECTED_BY_PROBE ? 2 : 1;
}

static int64_t confirmed_ms(const struct config_status *c)
{
	if (c->confirmed_ms)
		return c->confirmed_ms;
	return c->version->generation ? c->version->pulled_ms : -1;
}

static uint64_t count_runs(const struct supervisor *s)
{
	uint64_t runs = 0;

	for (int i = 0; i < SUPERVISOR_OUTCOMES; i++)
		runs += s->count[i];
	return runs;
}

static bool next_config(void *subject)
{
	struct metric_subject *s = subject;
	struct config_status *c = &s->config;

	if (s->next == s->env->settings->config_count)
		return false;
	config_status(s->env->configs[s->next++], c);
	s->labels[0] = c->settings->name;
	s->derived.generation = c->version->generation;
	s->derived.ready = s->derived.generation != 0;
	s->derived.stale = strcmp(c->state, "stale") == 0;
	/* KIND_CAUSE_NONE: a check, a program */
	s->derived.failure = c->last_error[0] ? (unsigned)c->cause + 1 : 0;
	s->derived.rejection = find_rejection(c);
	s->derived.confirmed_ms = confirmed_ms(c);
	s->derived.runs = count_runs(c->supervisor);
	s->derived.run_failures = s->derived.runs - c->supervisor->count[SUPERVISOR_SUCCESS];
	s->derived.heals = c->settings->drift == SETTINGS_HEAL;
	s->derived.only_reports = !s->derived.heals;
	s->derived.decisions = !!c->pin + !!c->suspension + c->override_count;
	s->derived.signature_ms = time_or_absent(c->expires_ms, INT64_MAX);
	s->derived.watched = c->watched > 0;
	return true;
}

/* ---- a server, and its addresses ---- */

static const struct metric server_metrics[] = {
	{"pullet_server_in_flight", GAUGE, NUMBER, "Pulls under way.", FIELD(server.in_flight)},
	{"pullet_server_pending", GAUGE, NUMBER, "Queued pulls.", FIELD(server.pending)},
	{"pullet_server_backoff_seconds", GAUGE, SECONDS,
		"Remaining backoff of the server; 0 for none.", FIELD(server.backoff_ms)},
	{"pullet_server_pulls_accepted_total", COUNTER, NUMBER, "Pulls queued.",
		FIELD(dispatcher.accepted)},
	{"pullet_server_pulls_retried_total", COUNTER, NUMBER,
		"Pulls that failed at one address, and were queued again for another.",
		FIELD(dispatcher.retried)},
	{"pullet_server_pulls_lost_total", COUNTER, NUMBER,
		"Pulls that left the queue without being sent: expired (waited too long), "
		"withdrawn, overridden (by a newer one of the same document).",
		FIELD(dispatcher.expired), LOSSES},
	{"pullet_server_pulls_dispatched_total", COUNTER, NUMBER, "Pulls taken from the queue.",
		FIELD(dispatcher.taken)},
	{"pullet_server_batch_pulls", HISTOGRAM, NUMBER, "Pulls taken from the queue together.",
		FIELD(dispatcher.batch_size.counts[0]), .buckets = DISPATCHER_BUCKETS},
	{"pullet_server_dispatch_delay_seconds", HISTOGRAM, SECONDS,
		"Time in the queue, of each pull taken from it.",
		FIELD(dispatcher.latency_ms.counts[0]), .buckets = DISPATCHER_BUCKETS},
};

static const struct metric address_metrics[] = {
	{"pullet_address_backoff_seconds", GAUGE, SECONDS,
		"Remaining backoff of the address; 0 for none.", FIELD(at.backoff_ms)},
	{"pullet_address_failures_in_a_row", GAUGE, NUMBER, "Failures since the last success.",
		FIELD(at.in_a_row)},
	{"pullet_address_failures_total", COUNTER, NUMBER,
		"Failures that count for its backoff: congestion (429, 503), network (no "
		"connection, cut, TLS, other 5xx; no answer in time, where there is another "
		"address).",
		FIELD(at.congestion), FAILURES},
	{"pullet_address_retry_after_total", COUNTER, NUMBER,
		"Failures in which the server said when to retry.", FIELD(at.advised)},
};

static void load_server(struct metric_subject *s)
{
	const struct upstream *server = s->env->servers[s->next];

	upstream_status(server, &s->server);
	s->dispatcher = *s->server.counters;
	/* a server made for a url has no name */
	s->labels[0] = s->server.name ? s->server.name : upstream_settings(server)->urls[0];
}

static bool next_server(void *subject)
{
	struct metric_subject *s = subject;

	if (s->next == s->env->settings->server_count)
		return false;
	load_server(s);
	s->next++;
	return true;
}

static bool next_address(void *subject)
{
	struct metric_subject *s = subject;

	if (s->next == s->env->settings->server_count)
		return false;
	if (s->address == 0)
		load_server(s);
	upstream_address_status(s->env->servers[s->next], s->address, &s->at);
	s->labels[1] = s->at.url;
	if (++s->address == s->server.address_count) {
		s->address = 0;
		s->next++;
	}
	return true;
}

/* ---- the push channel ---- */

static const struct metric push_metrics[] = {
	{"pullet_push_state", GAUGE, NUMBER, "1 for the state of the endpoint.", FIELD(push.state),
		PUSH_STATES},
	{"pullet_push_messages_total", COUNTER, NUMBER, "Update messages received.",
		FIELD(push.messages)},
	{"pullet_push_heartbeats_total", COUNTER, NUMBER, "Heartbeats received.",
		FIELD(push.heartbeats)},
	{"pullet_push_bad_messages_total", COUNTER, NUMBER,
		"Invalid messages of which only the topic was used.", FIELD(push.bad)},
	{"pullet_push_gaps_total", COUNTER, NUMBER,
		"Times that messages of a topic were lost: its configs were pulled.",
		FIELD(push.gaps)},
	{"pullet_push_epochs_total", COUNTER, NUMBER,
		"Times that another publisher took over: everything was pulled.",
		FIELD(push.epochs)},
	{"pullet_push_connects_total", COUNTER, NUMBER, "Connections made.", FIELD(push.connects)},
	{"pullet_push_rebuilds_total", COUNTER, NUMBER, "Times that a silent socket was recreated.",
		FIELD(push.rebuilds)},
	{"pullet_push_handshake_failures_total", COUNTER, NUMBER, "Failed handshakes.",
		FIELD(push.refused)},
	{"pullet_push_cuts_total", COUNTER, NUMBER,
		"Connections cut because the publisher sent more than is buffered for it.",
		FIELD(push.cuts)},
	{"pullet_push_last_message_age_seconds", GAUGE, SECONDS,
		"Time since the last message or heartbeat.", FIELD(push_age_ms)},
};

static bool next_push(void *subject)
{
	struct metric_subject *s = subject;
	const struct subscriber *p = *s->env->push;
	uint64_t now_ms = loop_now_ms(s->env->loop), last_ms;

	if (!p || s->next == subscriber_endpoint_count(p))
		return false;
	subscriber_get_status(p, s->next++, &s->push);
	last_ms = s->push.last_message_ms;
	s->push_age_ms = last_ms && now_ms >= last_ms ? (int64_t)(now_ms - last_ms) : -1;
	s->labels[0] = s->push.endpoint;
	return true;
}

/* ---- the receipts ---- */

static const struct metric report_metrics[] = {
	{"pullet_report_state", GAUGE, NUMBER, "1 for the state of the agent's receipts.",
		FIELD(report.state), REPORT_STATES},
	{"pullet_report_sent_total", COUNTER, NUMBER, "Receipts written.", FIELD(report.sent)},
	{"pullet_report_failures_total", COUNTER, NUMBER, "Failed attempts.", FIELD(report.failed)},
	{"pullet_report_leases_total", COUNTER, NUMBER, "Leases taken.", FIELD(report.leases)},
	{"pullet_report_sent_timestamp_seconds", GAUGE, SECONDS,
		"When receipts were last written, since 1970.", FIELD(report.sent_ms)},
};

static bool next_report(void *subject)
{
	struct metric_subject *s = subject;

	if (!*s->env->report || s->next++)
		return false;
	report_status(*s->env->report, &s->report);
	s->report.sent_ms = time_or_absent(s->report.sent_ms, 0);
	return true;
}

/* ---- all of them ---- */

#define METRICS(table) table, COUNT(table)

const struct metric_scope metric_scopes[METRIC_SCOPES] = {
	{{NULL}, METRICS(agent_metrics), next_agent},
	{{NULL}, METRICS(configuration_metrics), next_configuration},
	{{NULL}, METRICS(total_metrics), next_totals},
	{{"config"}, METRICS(config_metrics), next_config},
	{{"server"}, METRICS(server_metrics), next_server},
	{{"server", "address"}, METRICS(address_metrics), next_address},
	{{"endpoint"}, METRICS(push_metrics), next_push},
	{{NULL}, METRICS(report_metrics), next_report},
};
