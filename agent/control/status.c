/*
 * The status as JSON. Surprising: an error of the buffer sticks (a full one rejects all that
 * follows), so only the last call's result is checked.
 */
#include "control/status.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "config/inspect.h"
#include "control/detail.h"
#include "control/state_names.h"
#include "text/escape.h"
#include "text/json_writer.h"
#include "text/sentence.h"

static void write_number_or_null(struct buffer *b, const char *name, int64_t n, int64_t null)
{
	if (n == null)
		json_writer_text(b, name, NULL);
	else
		json_writer_number(b, name, (unsigned long long)n);
}

static const char *document_type(const struct config_status *s)
{
	static const char *const names[] = {"auto", "yaml", "json", "bytes"};

	return s->version->generation ? s->version->parts[0].type : names[s->settings->type];
}

static const char *etag_of(const struct config_status *s)
{
	return s->version->part_count ? sentence_or_null(s->version->parts[0].etag) : NULL;
}

/* Shown to the public instead of a sentence. */
static const char elsewhere[] = "see the control socket for the reason";

static void write_error(
	struct buffer *out, const char *name, const char *sentence, enum audience audience)
{
	if (sentence && audience == AUDIENCE_PUBLIC)
		sentence = elsewhere;
	sentence_member(out, name, sentence, audience);
}

/* Only the cause of the last failure, or the check that rejected a version. NULL = none. */
static const char *public_error(const struct config_status *s, char text[64])
{
	static const char *const causes[KIND_CAUSES] = {
		[KIND_CAUSE_NOT_FOUND] = "there is no such document",
		[KIND_CAUSE_EMPTY] = "the document is empty",
		[KIND_CAUSE_FORBIDDEN] = "the server forbids it",
		[KIND_CAUSE_UNREACHABLE] = "the server is unreachable",
		[KIND_CAUSE_TIMEOUT] = "the server did not answer in time",
		[KIND_CAUSE_OVERLOADED] = "the server is overloaded",
		[KIND_CAUSE_OLDER] = "the server has an older version",
		[KIND_CAUSE_ANSWER] = "the server's answer is invalid",
		[KIND_CAUSE_HOST] = "a problem of this host",
	};

	if (!s->last_error[0])
		return NULL;
	if (causes[s->cause])
		return causes[s->cause];
	if (!s->rejected_is_error)
		return elsewhere;
	snprintf(text, 64, "rejected by the %s", rejection_name(s->rejected_by));
	return text;
}

static void write_last_error(
	struct buffer *out, const char *name, const struct config_status *s, enum audience audience)
{
	char text[64];

	if (audience == AUDIENCE_PUBLIC)
		json_writer_text(out, name, public_error(s, text));
	else
		sentence_member(out, name, sentence_or_null(s->last_error), audience);
}

/* Rejections by check, and the server's version if it is not published. */
static void write_rejections(
	struct config *c, const struct config_status *s, enum audience audience, struct buffer *out)
{
	json_writer_begin_object(out, "rejections_by");
	for (int i = 0; i < CHECK_COUNT; i++)
		if (s->rejections_by[i])
			json_writer_number(
				out, verify_check_name((enum verify_check)i), s->rejections_by[i]);
	json_writer_end_object(out);
	if (!s->rejected)
		return;
	json_writer_begin_object(out, "rejected");
	json_writer_text(out, "by", rejection_name(s->rejected_by));
	json_writer_text(out, "version",
		s->rejected->part_count ? sentence_or_null(s->rejected->parts[0].etag) : NULL);
	json_writer_text(out, "sha256", s->rejected->sha256);
	write_error(out, "why", s->rejected_why, audience);
	json_writer_boolean(out, "is_last_error", s->rejected_is_error);
	if (rejection_is_rollback(s->rejected_by))
		explain_forward(c, out);
	json_writer_end_object(out);
}

static void write_until(struct buffer *out, int64_t until_ms)
{
	write_number_or_null(out, "until_ms", until_ms, LEDGER_FOREVER);
}

void status_decision(const char *name, const struct ledger_pin *pin, struct buffer *out)
{
	if (!pin)
		return;
	json_writer_begin_object(out, name);
	json_writer_text(out, "by", pin->by);
	json_writer_text(out, "reason", pin->reason);
	write_until(out, pin->until_ms);
	json_writer_end_object(out);
}

/* Decisions of operators. The values of overrides are not shown: they may be secrets. */
static void write_operator_decisions(const struct config_status *s, struct buffer *out)
{
	if (s->expires_ms != INT64_MAX)
		json_writer_number(out, "expires_ms", (unsigned long long)s->expires_ms);
	status_decision("pin", s->pin, out);
	status_decision("suspension", s->suspension, out);
	json_writer_begin_array(out, "overrides");
	for (size_t i = 0; i < s->override_count; i++) {
		json_writer_begin_object(out, NULL);
		json_writer_text(out, "key", s->overrides[i].key);
		json_writer_text(out, "by", s->overrides[i].by);
		json_writer_text(out, "reason", s->overrides[i].reason);
		write_until(out, s->overrides[i].until_ms);
		json_writer_end_object(out);
	}
	json_writer_end_array(out);
}

/* Reload and probe. */
static void write_notify(const struct notify_status *a, enum audience audience, struct buffer *out)
{
	if (a->has_reload) {
		json_writer_begin_object(out, "reload");
		json_writer_text(out, "state", state_names_reload[a->reload.state]);
		json_writer_number(out, "pending", a->reload.pending);
		json_writer_number(out, "notified", a->reload.notified);
		json_writer_number(out, "next_ms", a->reload.next_ms);
		json_writer_number(out, "runs", a->reload.runs);
		json_writer_number(out, "failed", a->reload.failed);
		json_writer_number(out, "failed_in_a_row", a->reload.in_a_row);
		write_error(out, "error", sentence_or_null(a->reload.why), audience);
		json_writer_end_object(out);
	}
	if (a->has_probe) {
		json_writer_begin_object(out, "probe");
		json_writer_text(out, "state", state_names_probe[a->probe]);
		json_writer_number(out, "generation", a->probe_generation);
		json_writer_number(out, "failed", a->probes_failed);
		write_error(out, "error", sentence_or_null(a->probe_why), audience);
		json_writer_end_object(out);
	}
}

static void write_watch(const struct config_status *s, enum audience audience, struct buffer *out)
{
	json_writer_begin_object(out, "watch");
	json_writer_text(out, "state", state_names_watch[s->watch]);
	json_writer_number(out, "documents", s->watched);
	json_writer_number(out, "changes", s->watch_changes);
	write_error(out, "error", sentence_or_null(s->watch_error), audience);
	json_writer_end_object(out);
}

static int write_config(struct config *c, bool whole, enum audience audience, struct buffer *out)
{
	char url[CONFIG_URL], failed_url[CONFIG_URL], snapshot[CONFIG_PATH];
	struct upstream_status server;
	struct config_status s;

	config_status(c, &s);
	config_url(c, url);
	config_failed_url(c, failed_url);
	config_snapshot_path(c, snapshot);
	json_writer_begin_object(out, NULL);
	json_writer_text(out, "name", s.settings->name);
	json_writer_text(out, "state", s.state);
	json_writer_text(out, "url", url);
	upstream_status(s.server, &server);
	json_writer_text(out, "server", server.name);
	json_writer_text(out, "file", s.settings->file);
	json_writer_text(out, "snapshot", sentence_or_null(snapshot));
	json_writer_text(out, "type", document_type(&s));
	json_writer_text(out, "topic", s.settings->topic);
	json_writer_number(out, "generation", s.version->generation);
	json_writer_text(out, "version", etag_of(&s));
	json_writer_text(out, "sha256", sentence_or_null(s.version->sha256));
	write_number_or_null(out, "published_ms", s.published_ms, 0);
	write_number_or_null(out, "confirmed_ms", s.confirmed_ms, 0);
	write_number_or_null(out, "age_ms", s.age_ms, -1);
	json_writer_boolean(out, "running", s.running);
	json_writer_boolean(out, "deferred", s.waiting);
	json_writer_number(out, "backoff_ms", s.waiting ? server.backoff_ms : 0);
	json_writer_number(out, "interval_ms", s.settings->interval_ms);
	json_writer_number(out, "delay_ms", supervisor_delay(s.supervisor));
	write_number_or_null(out, "next_pull_in_ms", s.next_pull_in_ms, -1);
	write_last_error(out, "last_error", &s, audience);
	json_writer_text(out, "cause", sentence_or_null(kind_cause_name(s.cause)));
	json_writer_text(
		out, "last_error_url", s.last_error[0] ? sentence_or_null(failed_url) : NULL);
	write_number_or_null(out, "last_error_ms", s.last_error_ms, 0);
	write_number_or_null(out, "failing_since_ms", s.failing_since_ms, 0);
	json_writer_begin_object(out, "runs");
	json_writer_number(out, "success", s.supervisor->count[SUPERVISOR_SUCCESS]);
	json_writer_number(out, "timeouts", s.supervisor->count[SUPERVISOR_TIMEOUT]);
	json_writer_number(out, "not_started", s.supervisor->count[SUPERVISOR_REJECTED]);
	json_writer_number(out, "failed", s.supervisor->count[SUPERVISOR_FAILED]);
	json_writer_end_object(out);
	json_writer_number(out, "rejections", s.rejections);
	write_rejections(c, &s, audience, out);
	explain_news(c, audience, out);
	json_writer_number(out, "restored", s.restored);
	json_writer_boolean(out, "drifted", s.drifted);
	json_writer_number(out, "pushes", s.pushes);
	if (s.watched)
		write_watch(&s, audience, out);
	write_operator_decisions(&s, out);
	if (s.has_notify)
		write_notify(&s.notify, audience, out);
	if (whole)
		detail_write(&s, audience, out);
	return json_writer_end_object(out);
}

int status_config(struct config *c, enum audience audience, struct buffer *out)
{
	return write_config(c, true, audience, out);
}

int status_outcome(struct config *c, enum audience audience, struct buffer *out)
{
	static const char *const outcomes[] = {"none", "published", "unchanged", "held", "failed"};
	char url[CONFIG_URL];
	struct config_status s;

	config_status(c, &s);
	json_writer_begin_object(out, NULL);
	json_writer_text(out, "name", s.settings->name);
	json_writer_text(out, "outcome", outcomes[s.outcome]);
	json_writer_number(out, "generation", s.version->generation);
	json_writer_text(out, "version", etag_of(&s));
	if (s.outcome == CONFIG_HELD && s.rejected)
		json_writer_text(out, "held_by", rejection_name(s.rejected_by));
	else if (s.outcome == CONFIG_FAILED && s.rejected_is_error)
		json_writer_text(out, "rejected_by", rejection_name(s.rejected_by));
	write_error(out, "error",
		s.outcome == CONFIG_HELD && s.held ? s.rejected_why
						   : sentence_or_null(s.last_error),
		audience);
	config_failed_url(c, url);
	if (s.outcome == CONFIG_FAILED && url[0])
		json_writer_text(out, "url", url);
	return json_writer_end_object(out);
}

static void push_endpoint(const struct subscriber *p, size_t i, uint64_t now_ms, struct buffer *out)
{
	struct subscriber_status s;

	subscriber_get_status(p, i, &s);
	json_writer_begin_object(out, NULL);
	json_writer_text(out, "endpoint", s.endpoint);
	json_writer_text(out, "state", state_names_push[s.state]);
	json_writer_text(out, "error", s.error);
	json_writer_number(out, "messages", s.messages);
	json_writer_number(out, "heartbeats", s.heartbeats);
	json_writer_number(out, "bad", s.bad);
	json_writer_number(out, "gaps", s.gaps);
	json_writer_number(out, "epochs", s.epochs);
	json_writer_number(out, "connects", s.connects);
	json_writer_number(out, "rebuilds", s.rebuilds);
	json_writer_number(out, "handshake_failures", s.refused);
	json_writer_number(out, "cuts", s.cuts);
	write_number_or_null(out, "last_message_ago_ms",
		s.last_message_ms && now_ms >= s.last_message_ms
			? (int64_t)(now_ms - s.last_message_ms)
			: -1,
		-1);
	json_writer_end_object(out);
}

static void write_server_address(
	const struct upstream *s, size_t i, enum audience audience, struct buffer *out)
{
	struct upstream_address_status a;

	upstream_address_status(s, i, &a);
	json_writer_begin_object(out, NULL);
	json_writer_text(out, "url", a.url);
	json_writer_number(out, "backoff_ms", a.backoff_ms);
	write_error(out, "error", sentence_or_null(a.error), audience);
	json_writer_number(out, "failures_in_a_row", a.in_a_row);
	json_writer_number(out, "congestion", a.congestion);
	json_writer_number(out, "network", a.network);
	json_writer_number(out, "retry_after", a.advised);
	json_writer_end_object(out);
}

/* Counts of values below 1, 2, 4, 8, ..., without the zeros at the end. */
static void write_histogram(
	struct buffer *out, const char *name, const uint64_t counts[DISPATCHER_BUCKETS])
{
	size_t n = DISPATCHER_BUCKETS;

	while (n && !counts[n - 1])
		n--;
	json_writer_begin_array(out, name);
	for (size_t i = 0; i < n; i++)
		json_writer_number(out, NULL, counts[i]);
	json_writer_end_array(out);
}

static void write_server(const struct upstream *s, enum audience audience, struct buffer *out)
{
	struct upstream_status status;
	const struct dispatcher_counters *n;

	upstream_status(s, &status);
	n = status.counters;
	json_writer_begin_object(out, NULL);
	json_writer_text(out, "name", status.name);
	json_writer_number(out, "backoff_ms", status.backoff_ms);
	json_writer_number(out, "in_flight", status.in_flight);
	json_writer_number(out, "pending", status.pending);
	json_writer_number(out, "accepted", n->accepted);
	json_writer_number(out, "overridden", n->overridden);
	json_writer_number(out, "expired", n->expired);
	json_writer_number(out, "withdrawn", n->cancelled);
	json_writer_number(out, "retried", n->retried);
	json_writer_number(out, "dispatched", n->taken);
	json_writer_number(out, "batches", n->batches);
	write_histogram(out, "batch_size", n->batch_size.counts);
	write_histogram(out, "dispatch_latency_ms", n->latency_ms.counts);
	json_writer_begin_array(out, "addresses");
	for (size_t i = 0; i < status.address_count; i++)
		write_server_address(s, i, audience, out);
	json_writer_end_array(out);
	json_writer_end_object(out);
}

/* The receipts of this agent. */
static void write_report(
	const struct report *r, const char *server, enum audience audience, struct buffer *out)
{
	struct report_status s;

	report_status(r, &s);
	json_writer_begin_object(out, "report");
	json_writer_text(out, "server", server);
	json_writer_text(out, "key", s.key);
	json_writer_text(out, "state", state_names_report[s.state]);
	write_error(out, "error", sentence_or_null(s.error), audience);
	write_number_or_null(out, "sent_ms", s.sent_ms, 0);
	json_writer_number(out, "sent", s.sent);
	json_writer_number(out, "failed", s.failed);
	json_writer_number(out, "leases", s.leases);
	json_writer_end_object(out);
}

/* Errors may quote a file that readers are not allowed to read. */
static void write_configuration(
	const struct configuration_status *s, enum audience audience, struct buffer *out)
{
	static const char hidden[] = "`pulletd -t` prints the errors";

	json_writer_begin_object(out, "configuration");
	json_writer_text(out, "file", s->file);
	json_writer_number(out, "loaded_ms", (unsigned long long)s->loaded_ms);
	json_writer_number(out, "reloads", s->reloads);
	json_writer_number(out, "rejections", s->rejections);
	sentence_member(out, "error", s->error && audience != AUDIENCE_OPERATOR ? hidden : s->error,
		audience);
	json_writer_number(out, "errors", s->errors);
	json_writer_boolean(out, "applying", s->applying);
	json_writer_end_object(out);
}

int status_agent(const struct control_env *env, enum audience audience, struct buffer *out)
{
	const struct settings *settings = env->settings;
	static const char *const audiences[] = {"public", "reader", "operator"};
	const struct sys *sys = loop_sys(env->loop);
	int64_t uptime_ms = sys->wall_ms() - env->started_ms;

	json_writer_begin_object(out, NULL);
	json_writer_text(out, "version", PULLET_VERSION);
	json_writer_text(out, "host", env->host);
	json_writer_number(out, "pid", (unsigned long long)getpid());
	json_writer_number(out, "started_ms", (unsigned long long)env->started_ms);
	json_writer_number(out, "uptime_ms", (unsigned long long)(uptime_ms > 0 ? uptime_ms : 0));
	json_writer_text(out, "state_dir", settings->state_dir);
	json_writer_text(out, "runtime_dir", settings->runtime_dir);
	write_configuration(env->configuration, audience, out);
	json_writer_text(out, "audience", audiences[audience]);
	json_writer_begin_object(out, "labels");
	for (size_t i = 0; i < settings->label_count; i++)
		json_writer_text(out, settings->labels[i].name, settings->labels[i].value);
	json_writer_end_object(out);
	json_writer_begin_array(out, "configs");
	for (size_t i = 0; i < settings->config_count; i++) {
		write_config(env->configs[i], false, audience, out);
	}
	json_writer_end_array(out);
	json_writer_begin_array(out, "servers");
	for (size_t i = 0; i < settings->server_count; i++) {
		write_server(env->servers[i], audience, out);
	}
	json_writer_end_array(out);
	json_writer_begin_array(out, "push");
	for (size_t i = 0; *env->push && i < subscriber_endpoint_count(*env->push); i++)
		push_endpoint(*env->push, i, loop_now_ms(env->loop), out);
	json_writer_end_array(out);
	if (*env->report)
		write_report(*env->report, settings->report.from, audience, out);
	return json_writer_end_object(out);
}

/* Why nothing is published. */
static void write_unready(const struct config_status *s, enum audience audience, struct buffer *out)
{
	char text[64], why[1024];
	struct upstream_status server;

	buffer_append_string(out, "nothing is published yet: ");
	if (s->last_error[0]) {
		const char *error = audience == AUDIENCE_PUBLIC ? public_error(s, text)
								: sentence_show(why, sizeof(why),
									  s->last_error, audience);

		escape_append(out, error, strlen(error));
	} else if (s->waiting) {
		upstream_status(s->server, &server);
		buffer_printf(out, "the first pull is queued for its server%s%s",
			server.name ? " " : "", server.name ? server.name : "");
		if (server.backoff_ms)
			buffer_printf(out, ", in backoff for another %llu ms",
				(unsigned long long)server.backoff_ms);
	} else {
		buffer_append_string(out, "the first pull has not ended");
	}
}

bool status_ready(
	const struct control_env *env, bool verbose, enum audience audience, struct buffer *out)
{
	struct config_status s;
	bool ready = true;

	for (size_t i = 0; i < env->settings->config_count; i++) {
		bool published;

		config_status(env->configs[i], &s);
		published = s.version->generation > 0;
		ready &= published;
		if (published && !verbose)
			continue;
		buffer_printf(out, "%s%s: ",
			!verbose    ? ""
			: published ? "[+]"
				    : "[-]",
			s.settings->name);
		if (published)
			buffer_printf(out, "generation %llu, %s",
				(unsigned long long)s.version->generation, s.state);
		else
			write_unready(&s, audience, out);
		buffer_append_string(out, "\n");
	}
	if (ready || verbose)
		buffer_append_string(out, ready ? "ok\n" : "not ready\n");
	return ready;
}
