/*
 * Every metric, a row each. Surprising: the help is what pulletd(8) is compared with by a test, so
 * a row without its paragraph there does not pass.
 */
#include "control/metrics_table.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "control/state_names.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

#define AT(member) offsetof(struct metric_subject, member)
#define FIELD(member)                                                                              \
	.offset = AT(member), .width = _Generic(((struct metric_subject *)NULL)->member, bool      \
						: METRIC_BOOL, unsigned                            \
						: METRIC_32, default                               \
						: METRIC_64)
#define GAUGE METRIC_GAUGE
#define COUNTER METRIC_COUNTER
#define HISTOGRAM METRIC_HISTOGRAM
#define NUMBER METRIC_NUMBER
#define SECONDS METRIC_SECONDS
#define BYTES METRIC_BYTES

/* ---- the values of labels ---- */

static const char *const outcomes[SUPERVISOR_OUTCOMES] = {
	"success", "timeout", "rejected", "failed"};
static const char *const losses[] = {"expired", "withdrawn", "overridden"};
static const char *const failures[] = {"congestion", "network"};
static const char *const versions[] = {PULLET_VERSION};
enum rejection_cause { REJECTION_CHECK, REJECTION_PROBE, REJECTION_HELD, REJECTIONS };
static const char *const rejections[REJECTIONS] = {"rejected", "rolled back", "held"};

static const char *check_name(size_t i)
{
	return verify_check_name((enum verify_check)i);
}

/* A run also fails for causes of this host: a check, the disk. */
static const char *cause_name(size_t i)
{
	return i == KIND_CAUSE_NONE ? "other" : kind_cause_name((enum kind_cause)i);
}

#define STATES(table, count) .label = "state", .names = table, .values = count, .is_set = true
#define CONFIG_STATES STATES(state_names_config, 4)
#define OUTCOMES .label = "outcome", .names = outcomes, .values = SUPERVISOR_OUTCOMES
#define CHECKS .label = "check", .name_of = check_name, .values = CHECK_COUNT
#define CAUSES .label = "cause", .name_of = cause_name, .values = KIND_CAUSES, .is_set = true
#define REJECTED .label = "cause", .names = rejections, .values = REJECTIONS, .is_set = true
#define WATCH_STATES .when = AT(derived.watched), STATES(state_names_watch, 4)
#define RELOAD_STATES .when = AT(config.notify.has_reload), STATES(state_names_reload, 4)
#define PROBE_STATES .when = AT(config.notify.has_probe), STATES(state_names_probe, 5)
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

/* Reads /proc/self/stat: the fields of proc(5). */
static void read_process_stat(struct metric_subject *s)
{
	enum { UTIME = 14, STIME = 15, VSIZE = 23, RSS = 24, FIELDS = 25 };
	const struct sys *sys = loop_sys(s->env->loop);
	int fd = sys->openat(AT_FDCWD, "/proc/self/stat", O_RDONLY | O_CLOEXEC, 0);
	long long fields[FIELDS] = {0}, hz = sysconf(_SC_CLK_TCK);
	char text[1024], *at;
	ssize_t n = fd >= 0 ? sys->read(fd, text, sizeof(text) - 1) : -1;

	s->process.cpu_ms = s->process.resident_bytes = s->process.virtual_bytes = -1;
	if (fd >= 0)
		sys->close(fd);
	if (n <= 0 || hz <= 0)
		return;
	text[n] = '\0';
	at = strrchr(text, ')'); /* the end of the name, field 2; field 3 is a letter */
	if (!at || strlen(at) < 4)
		return;
	at += 3;
	for (size_t i = 4; i < FIELDS; i++)
		fields[i] = strtoll(at, &at, 10);
	s->process.cpu_ms = (fields[UTIME] + fields[STIME]) * 1000 / hz;
	s->process.virtual_bytes = fields[VSIZE];
	s->process.resident_bytes = fields[RSS] * sysconf(_SC_PAGESIZE);
}

static void count_open_descriptors(struct metric_subject *s)
{
	DIR *d = opendir("/proc/self/fd");
	struct rlimit limit;

	s->process.open_fds = d ? -3 : -1; /* without ., .. and the directory itself */
	while (d && readdir(d))
		s->process.open_fds++;
	if (d)
		closedir(d);
	s->process.max_fds = getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur <= INT64_MAX
				     ? (int64_t)limit.rlim_cur
				     : -1;
}

static bool next_agent(struct metric_subject *s)
{
	if (s->next++)
		return false;
	s->agent.is = true;
	s->agent.configs = s->env->settings->config_count;
	s->agent.started_ms = s->env->started_ms;
	s->control = *s->env->counts;
	s->agent.longest_turn_ms = (int64_t)(loop_longest_us(s->env->loop) / 1000);
	read_process_stat(s);
	count_open_descriptors(s);
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

static bool next_configuration(struct metric_subject *s)
{
	if (!s->env->configuration || s->next++)
		return false;
	s->configuration = *s->env->configuration;
	return true;
}

/* ---- a config ---- */

#define WATCHES .when = AT(derived.watched)
#define RELOADS .when = AT(config.notify.has_reload)
#define PROBES .when = AT(config.notify.has_probe)

static const struct metric config_metrics[] = {
	{"pullet_config_state", GAUGE, NUMBER,
		"1 for the state: waiting (nothing is published), ok, failing (the last run "
		"failed), stale (not confirmed for too long, or its signature has expired).",
		FIELD(derived.state), CONFIG_STATES},
	{"pullet_config_ready", GAUGE, NUMBER, "1 when a version is published.",
		FIELD(derived.ready)},
	{"pullet_config_stale", GAUGE, NUMBER, "1 when the state is stale.", FIELD(derived.stale)},
	{"pullet_config_failing", GAUGE, NUMBER,
		"1 for the cause of the last failure; all are 0 when the last run succeeded.",
		FIELD(derived.cause), CAUSES},
	{"pullet_config_generation", GAUGE, NUMBER,
		"Number of the current version; 0 when nothing is published.",
		FIELD(derived.generation)},
	{"pullet_config_age_seconds", GAUGE, SECONDS,
		"Time since the server last confirmed the current version.", FIELD(config.age_ms)},
	{"pullet_config_published_timestamp_seconds", GAUGE, SECONDS,
		"When the current version was pulled and published, since 1970.",
		FIELD(derived.published_ms)},
	{"pullet_config_confirmed_timestamp_seconds", GAUGE, SECONDS,
		"When the server last confirmed the current version, since 1970.",
		FIELD(derived.confirmed_ms)},
	{"pullet_config_last_error_timestamp_seconds", GAUGE, SECONDS,
		"When a run last failed, since 1970.", FIELD(derived.error_ms)},
	{"pullet_config_running", GAUGE, NUMBER, "1 during a run.", FIELD(config.running)},
	{"pullet_config_waiting", GAUGE, NUMBER,
		"1 when a pull is due and its server is busy or in backoff.",
		FIELD(config.waiting)},
	{"pullet_config_next_pull_seconds", GAUGE, SECONDS,
		"Time until the next pull; absent during one.", FIELD(config.next_pull_in_ms)},
	{"pullet_config_interval_seconds", GAUGE, SECONDS, "The configured interval.",
		FIELD(derived.interval_ms)},
	{"pullet_config_delay_seconds", GAUGE, SECONDS,
		"From one run to the next: the interval, longer after timeouts.",
		FIELD(derived.delay_ms)},
	{"pullet_config_runs_total", COUNTER, NUMBER, "Runs that have ended, by outcome.",
		FIELD(supervisor.count[0]), OUTCOMES},
	{"pullet_config_rejections_total", COUNTER, NUMBER, "Versions rejected, by check.",
		FIELD(config.rejections_by[0]), CHECKS},
	{"pullet_config_rejected", GAUGE, NUMBER,
		"1 when the server has a version that is not published: rejected by a check, "
		"rolled back by a probe, held by a pin, a rollout or an operator's rollback.",
		FIELD(derived.rejection), REJECTED},
	{"pullet_config_restored_total", COUNTER, NUMBER,
		"Times that published files were changed by others, and restored.",
		FIELD(config.restored)},
	{"pullet_config_drifted", GAUGE, NUMBER,
		"1 when published files were changed by others, and are not restored.",
		FIELD(config.drifted)},
	{"pullet_config_pushes_total", COUNTER, NUMBER, "Push messages for this config.",
		FIELD(config.pushes)},
	{"pullet_config_watch_state", GAUGE, NUMBER,
		"1 for the worst state among the watched documents.", FIELD(config.watch),
		WATCH_STATES},
	{"pullet_config_watch_documents", GAUGE, NUMBER, "Watched documents.",
		FIELD(config.watched), WATCHES},
	{"pullet_config_watch_changes_total", COUNTER, NUMBER, "Changes reported by watches.",
		FIELD(config.watch_changes), WATCHES},
	{"pullet_config_pinned", GAUGE, NUMBER, "1 when an operator pinned the current version.",
		FIELD(derived.pinned)},
	{"pullet_config_pin_end_timestamp_seconds", GAUGE, SECONDS,
		"When the pin expires, since 1970.", FIELD(derived.pin_ms)},
	{"pullet_config_suspended", GAUGE, NUMBER, "1 when an operator suspended its pulls.",
		FIELD(derived.suspended)},
	{"pullet_config_suspension_end_timestamp_seconds", GAUGE, SECONDS,
		"When the suspension expires, since 1970.", FIELD(derived.suspension_ms)},
	{"pullet_config_overrides", GAUGE, NUMBER, "Overrides by operators.",
		FIELD(config.override_count)},
	{"pullet_config_override_end_timestamp_seconds", GAUGE, SECONDS,
		"When the first override expires, since 1970.", FIELD(derived.override_ms)},
	{"pullet_config_signature_end_timestamp_seconds", GAUGE, SECONDS,
		"When the signature of the current version expires, since 1970.",
		FIELD(derived.signature_ms)},
	{"pullet_config_reload_state", GAUGE, NUMBER,
		"1 for the state of the reload: idle (the application is up to date), waiting, "
		"running, failed (it is retried).",
		FIELD(config.notify.reload.state), RELOAD_STATES},
	{"pullet_config_reload_pending_generation", GAUGE, NUMBER,
		"The version that the application is still to be notified of; 0 for none.",
		FIELD(config.notify.reload.pending), RELOADS},
	{"pullet_config_reload_notified_generation", GAUGE, NUMBER,
		"The version that the application was last notified of; 0 for none.",
		FIELD(config.notify.reload.notified), RELOADS},
	{"pullet_config_reload_next_seconds", GAUGE, SECONDS,
		"Time until the next reload; 0 when none is due.",
		FIELD(config.notify.reload.next_ms), RELOADS},
	{"pullet_config_reload_runs_total", COUNTER, NUMBER, "Reloads started.",
		FIELD(config.notify.reload.runs), RELOADS},
	{"pullet_config_reload_failures_total", COUNTER, NUMBER, "Reloads that failed.",
		FIELD(config.notify.reload.failed), RELOADS},
	{"pullet_config_reload_failures_in_a_row", GAUGE, NUMBER,
		"Failed reloads since the last success.", FIELD(config.notify.reload.in_a_row),
		RELOADS},
	{"pullet_config_probe_state", GAUGE, NUMBER, "1 for the state of the probe.",
		FIELD(config.notify.probe), PROBE_STATES},
	{"pullet_config_probe_generation", GAUGE, NUMBER,
		"The version probed now or last; 0 for none.",
		FIELD(config.notify.probe_generation), PROBES},
	{"pullet_config_probe_failures_total", COUNTER, NUMBER,
		"Versions that failed their probe, and were rolled back.",
		FIELD(config.notify.probes_failed), PROBES},
};

static int64_t time_or_absent(int64_t ms, int64_t none)
{
	return ms == none ? -1 : ms;
}

static unsigned find_state(const char *name)
{
	unsigned i = 0;

	while (strcmp(state_names_config[i], name) != 0)
		i++;
	return i;
}

static unsigned find_rejection(const struct config_status *c)
{
	return !c->rejected                          ? REJECTIONS
	       : c->held                             ? REJECTION_HELD
	       : c->rejected_by == REJECTED_BY_PROBE ? REJECTION_PROBE
						     : REJECTION_CHECK;
}

/* The end of the first override; -1 = none ends. */
static int64_t first_override_end(const struct config_status *c)
{
	int64_t first_ms = LEDGER_FOREVER;

	for (size_t i = 0; i < c->override_count; i++)
		if (c->overrides[i].until_ms < first_ms)
			first_ms = c->overrides[i].until_ms;
	return time_or_absent(first_ms, LEDGER_FOREVER);
}

static bool next_config(struct metric_subject *s)
{
	struct config_status *c = &s->config;

	if (s->next == s->env->settings->config_count)
		return false;
	config_status(s->env->configs[s->next++], c);
	s->labels[0] = c->settings->name;
	s->supervisor = *c->supervisor;
	s->derived.state = find_state(c->state);
	s->derived.ready = c->version->generation != 0;
	s->derived.generation = c->version->generation;
	s->derived.stale = strcmp(c->state, "stale") == 0;
	s->derived.cause = c->last_error[0] ? (unsigned)c->cause : KIND_CAUSES;
	s->derived.rejection = find_rejection(c);
	s->derived.watched = c->watched > 0;
	s->derived.published_ms = time_or_absent(c->published_ms, 0);
	s->derived.confirmed_ms = time_or_absent(c->confirmed_ms, 0);
	s->derived.error_ms = time_or_absent(c->last_error_ms, 0);
	s->derived.interval_ms = c->settings->interval_ms;
	s->derived.delay_ms = supervisor_delay(c->supervisor);
	s->derived.pinned = c->pin;
	s->derived.pin_ms = c->pin ? time_or_absent(c->pin->until_ms, LEDGER_FOREVER) : -1;
	s->derived.suspended = c->suspension;
	s->derived.suspension_ms =
		c->suspension ? time_or_absent(c->suspension->until_ms, LEDGER_FOREVER) : -1;
	s->derived.override_ms = first_override_end(c);
	s->derived.signature_ms = time_or_absent(c->expires_ms, INT64_MAX);
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
		FIELD(dispatcher.batch_size.counts[0])},
	{"pullet_server_dispatch_delay_seconds", HISTOGRAM, SECONDS,
		"Time in the queue, of each pull taken from it.",
		FIELD(dispatcher.latency_ms.counts[0])},
};

static const struct metric address_metrics[] = {
	{"pullet_address_backoff_seconds", GAUGE, SECONDS,
		"Remaining backoff of the address; 0 for none.", FIELD(at.backoff_ms)},
	{"pullet_address_failures_in_a_row", GAUGE, NUMBER, "Failures since the last success.",
		FIELD(at.in_a_row)},
	{"pullet_address_failures_total", COUNTER, NUMBER,
		"Failures of the address: congestion (429, 503), network (all others).",
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

static bool next_server(struct metric_subject *s)
{
	if (s->next == s->env->settings->server_count)
		return false;
	load_server(s);
	s->next++;
	return true;
}

static bool next_address(struct metric_subject *s)
{
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
		"Times that messages were lost: everything was pulled.", FIELD(push.gaps)},
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

static bool next_push(struct metric_subject *s)
{
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

static bool next_report(struct metric_subject *s)
{
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
	{{"config"}, METRICS(config_metrics), next_config},
	{{"server"}, METRICS(server_metrics), next_server},
	{{"server", "address"}, METRICS(address_metrics), next_address},
	{{"endpoint"}, METRICS(push_metrics), next_push},
	{{NULL}, METRICS(report_metrics), next_report},
};
