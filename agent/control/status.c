/*
 * The status as JSON. Surprising: an error of the buffer sticks (a buffer that is full or out of
 * memory refuses the rest too), so only the last call's result is looked at.
 */
#include "control/status.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "text/escape.h"
#include "text/json_text.h"

static void null_number(struct buffer *b, const char *name, int64_t n, int64_t null)
{
	if (n == null)
		json_text_member(b, name, NULL);
	else
		json_text_number(b, name, (unsigned long long)n);
}

static const char *type_name(const struct config_status *s)
{
	static const char *const names[] = {"auto", "yaml", "json", "bytes"};

	return s->version->generation ? s->version->parts[0].type : names[s->settings->type];
}

static const char *or_null(const char *s)
{
	return s[0] ? s : NULL;
}

static const char *etag_of(const struct config_status *s)
{
	return s->version->part_count ? or_null(s->version->parts[0].etag) : NULL;
}

/* What the public is told instead of a sentence. */
static const char elsewhere[] = "the control socket tells why";

static void error_member(
	struct buffer *out, const char *name, const char *sentence, enum audience audience)
{
	if (sentence && audience == AUDIENCE_PUBLIC)
		sentence = elsewhere;
	sentence_member(out, name, sentence, audience);
}

/* Of what kind the last failure was, by whom a version was refused: no more. NULL = there is none.
 */
static const char *public_error(const struct config_status *s, char text[64])
{
	static const char *const causes[KIND_CAUSES] = {
		[KIND_CAUSE_NOT_FOUND] = "there is no such document",
		[KIND_CAUSE_EMPTY] = "the document is empty",
		[KIND_CAUSE_FORBIDDEN] = "the server forbids it",
		[KIND_CAUSE_UNREACHABLE] = "the server cannot be reached",
		[KIND_CAUSE_TIMEOUT] = "the server did not answer in time",
		[KIND_CAUSE_OVERLOADED] = "the server is overloaded",
		[KIND_CAUSE_OLDER] = "the server has an older version",
		[KIND_CAUSE_ANSWER] = "the server's answer is not good",
		[KIND_CAUSE_HOST] = "something of this host is not good",
	};

	if (!s->last_error[0])
		return NULL;
	if (causes[s->cause])
		return causes[s->cause];
	if (!s->away_failed)
		return elsewhere;
	snprintf(text, 64, "refused by the %s", s->away_check);
	return text;
}

static void last_error(
	struct buffer *out, const char *name, const struct config_status *s, enum audience audience)
{
	char text[64];

	if (audience == AUDIENCE_PUBLIC)
		json_text_member(out, name, public_error(s, text));
	else
		sentence_member(out, name, or_null(s->last_error), audience);
}

/* How many versions each check refused, and the one that the server has now. */
static void rejections_by(const struct config_status *s, enum audience audience, struct buffer *out)
{
	buffer_append_string(out, ",\"rejections_by\":{");
	for (int i = 0; i < CHECK_COUNT; i++)
		if (s->rejections_by[i])
			json_text_number(
				out, verify_check_name((enum verify_check)i), s->rejections_by[i]);
	buffer_append(out, "}", 1);
	if (!s->away)
		return;
	buffer_append_string(out, ",\"rejected\":{");
	json_text_member(out, "by", s->away_check);
	json_text_member(
		out, "version", s->away->part_count ? or_null(s->away->parts[0].etag) : NULL);
	json_text_member(out, "sha256", s->away->sha256);
	error_member(out, "why", s->away_why, audience);
	buffer_append_string(
		out, s->away_failed ? ",\"is_last_error\":true}" : ",\"is_last_error\":false}");
}

static void until(struct buffer *out, int64_t until_ms)
{
	null_number(out, "until_ms", until_ms, LEDGER_FOREVER);
}

static void decision(const char *name, const struct ledger_pin *pin, struct buffer *out)
{
	if (!pin)
		return;
	buffer_printf(out, ",\"%s\":{", name);
	json_text_member(out, "by", pin->by);
	json_text_member(out, "reason", pin->reason);
	until(out, pin->until_ms);
	buffer_append(out, "}", 1);
}

/* What operators decided. The values of overrides are not shown: they may be secrets. */
static void decisions(const struct config_status *s, struct buffer *out)
{
	if (s->expires_ms != INT64_MAX)
		json_text_number(out, "expires_ms", (unsigned long long)s->expires_ms);
	decision("pin", s->pin, out);
	decision("suspension", s->suspension, out);
	buffer_append_string(out, ",\"overrides\":[");
	for (size_t i = 0; i < s->override_count; i++) {
		buffer_append_string(out, i ? ",{" : "{");
		json_text_member(out, "key", s->overrides[i].key);
		json_text_member(out, "by", s->overrides[i].by);
		json_text_member(out, "reason", s->overrides[i].reason);
		until(out, s->overrides[i].until_ms);
		buffer_append(out, "}", 1);
	}
	buffer_append(out, "]", 1);
}

/* Is the application told of what stands, and does it bear it? */
static void aftermath(const struct notify_status *a, enum audience audience, struct buffer *out)
{
	static const char *const reloads[] = {"idle", "waiting", "running", "failed"};
	static const char *const probes[] = {"none", "waiting", "running", "passed", "failed"};

	if (a->has_reload) {
		buffer_append_string(out, ",\"reload\":{");
		json_text_member(out, "state", reloads[a->reload.state]);
		json_text_number(out, "pending", a->reload.pending);
		json_text_number(out, "notified", a->reload.told);
		json_text_number(out, "next_ms", a->reload.next_ms);
		json_text_number(out, "runs", a->reload.runs);
		json_text_number(out, "failed", a->reload.failed);
		json_text_number(out, "failed_in_a_row", a->reload.in_a_row);
		error_member(out, "error", or_null(a->reload.why), audience);
		buffer_append(out, "}", 1);
	}
	if (a->has_probe) {
		buffer_append_string(out, ",\"probe\":{");
		json_text_member(out, "state", probes[a->probe]);
		json_text_number(out, "generation", a->probe_generation);
		json_text_number(out, "failed", a->probes_failed);
		error_member(out, "error", or_null(a->probe_why), audience);
		buffer_append(out, "}", 1);
	}
}

static void watch(const struct config_status *s, enum audience audience, struct buffer *out)
{
	static const char *const states[] = {"off", "connecting", "watching", "failing"};

	buffer_append_string(out, ",\"watch\":{");
	json_text_member(out, "state", states[s->watch]);
	json_text_number(out, "documents", s->watched);
	json_text_number(out, "changes", s->watch_changes);
	error_member(out, "error", or_null(s->watch_error), audience);
	buffer_append(out, "}", 1);
}

int status_config(struct config *c, enum audience audience, struct buffer *out)
{
	struct upstream_status server;
	struct config_status s;

	config_status(c, &s);
	buffer_append(out, "{", 1);
	json_text_member(out, "name", s.settings->name);
	json_text_member(out, "state", s.state);
	json_text_member(out, "url", s.url);
	upstream_status(s.server, &server);
	json_text_member(out, "server", server.name);
	json_text_member(out, "file", s.settings->file);
	json_text_member(out, "snapshot", s.snapshot[0] ? s.snapshot : NULL);
	json_text_member(out, "type", type_name(&s));
	json_text_member(out, "topic", s.settings->topic);
	json_text_number(out, "generation", s.version->generation);
	json_text_member(out, "version", etag_of(&s));
	json_text_member(out, "sha256", or_null(s.version->sha256));
	null_number(out, "published_ms", s.published_ms, 0);
	null_number(out, "confirmed_ms", s.confirmed_ms, 0);
	null_number(out, "age_ms", s.age_ms, -1);
	buffer_append_string(out, s.running ? ",\"running\":true" : ",\"running\":false");
	buffer_append_string(out, s.waiting ? ",\"waiting\":true" : ",\"waiting\":false");
	json_text_number(out, "backoff_ms", s.waiting ? server.backoff_ms : 0);
	json_text_number(out, "delay_ms", supervisor_delay(s.supervisor));
	null_number(out, "next_pull_in_ms", s.next_pull_in_ms, -1);
	last_error(out, "last_error", &s, audience);
	json_text_member(out, "cause", or_null(kind_cause_name(s.cause)));
	null_number(out, "last_error_ms", s.last_error_ms, 0);
	null_number(out, "failing_since_ms", s.failing_since_ms, 0);
	buffer_append_string(out, ",\"runs\":{");
	json_text_number(out, "success", s.supervisor->count[SUPERVISOR_SUCCESS]);
	json_text_number(out, "timeouts", s.supervisor->count[SUPERVISOR_TIMEOUT]);
	json_text_number(out, "rejected", s.supervisor->count[SUPERVISOR_REJECTED]);
	json_text_number(out, "failed", s.supervisor->count[SUPERVISOR_FAILED]);
	buffer_append(out, "}", 1);
	json_text_number(out, "rejections", s.refused);
	rejections_by(&s, audience, out);
	json_text_number(out, "restored", s.restored);
	buffer_append_string(out, s.drifted ? ",\"drifted\":true" : ",\"drifted\":false");
	json_text_number(out, "pushes", s.pushes);
	if (s.watched)
		watch(&s, audience, out);
	decisions(&s, out);
	if (s.has_aftermath)
		aftermath(&s.aftermath, audience, out);
	return buffer_append(out, "}", 1);
}

int status_outcome(struct config *c, enum audience audience, struct buffer *out)
{
	static const char *const outcomes[] = {"none", "published", "unchanged", "held", "failed"};
	struct config_status s;

	config_status(c, &s);
	buffer_append(out, "{", 1);
	json_text_member(out, "name", s.settings->name);
	json_text_member(out, "outcome", outcomes[s.outcome]);
	json_text_number(out, "generation", s.version->generation);
	json_text_member(out, "version", etag_of(&s));
	error_member(out, "error",
		s.outcome == CONFIG_HELD && s.held ? s.away_why : or_null(s.last_error), audience);
	return buffer_append(out, "}", 1);
}

static void push_endpoint(const struct push *p, size_t i, uint64_t now_ms, struct buffer *out)
{
	static const char *const states[] = {"connecting", "connected", "silent", "refused"};
	struct push_status s;

	push_status_get(p, i, &s);
	buffer_append_string(out, i ? ",{" : "{");
	json_text_member(out, "endpoint", s.endpoint);
	json_text_member(out, "state", states[s.state]);
	json_text_member(out, "error", s.error);
	json_text_number(out, "messages", s.messages);
	json_text_number(out, "heartbeats", s.heartbeats);
	json_text_number(out, "bad", s.bad);
	json_text_number(out, "gaps", s.gaps);
	json_text_number(out, "epochs", s.epochs);
	json_text_number(out, "connects", s.connects);
	json_text_number(out, "rebuilds", s.rebuilds);
	json_text_number(out, "handshake_failures", s.refused);
	json_text_number(out, "cuts", s.cuts);
	null_number(out, "last_message_ago_ms",
		s.last_message_ms && now_ms >= s.last_message_ms
			? (int64_t)(now_ms - s.last_message_ms)
			: -1,
		-1);
	buffer_append(out, "}", 1);
}

static void server_address(
	const struct upstream *s, size_t i, enum audience audience, struct buffer *out)
{
	struct upstream_address_status a;

	upstream_address_status(s, i, &a);
	buffer_append_string(out, i ? ",{" : "{");
	json_text_member(out, "url", a.url);
	json_text_number(out, "backoff_ms", a.backoff_ms);
	error_member(out, "error", or_null(a.error), audience);
	json_text_number(out, "failures_in_a_row", a.in_a_row);
	json_text_number(out, "congestion", a.congestion);
	json_text_number(out, "network", a.network);
	json_text_number(out, "retry_after", a.advised);
	buffer_append(out, "}", 1);
}

/* Counts of values below 1, 2, 4, 8, ..., without the zeros at the end. */
static void histogram(
	struct buffer *out, const char *name, const uint64_t counts[DISPATCHER_BUCKETS])
{
	size_t n = DISPATCHER_BUCKETS;

	while (n && !counts[n - 1])
		n--;
	buffer_printf(out, ",\"%s\":[", name);
	for (size_t i = 0; i < n; i++)
		buffer_printf(out, i ? ",%llu" : "%llu", (unsigned long long)counts[i]);
	buffer_append(out, "]", 1);
}

static void server(const struct upstream *s, enum audience audience, struct buffer *out)
{
	struct upstream_status status;
	const struct dispatcher_counters *n;

	upstream_status(s, &status);
	n = status.counters;
	buffer_append(out, "{", 1);
	json_text_member(out, "name", status.name);
	json_text_number(out, "backoff_ms", status.backoff_ms);
	json_text_number(out, "in_flight", status.in_flight);
	json_text_number(out, "pending", status.pending);
	json_text_number(out, "accepted", n->accepted);
	json_text_number(out, "overridden", n->overridden);
	json_text_number(out, "expired", n->expired);
	json_text_number(out, "withdrawn", n->cancelled);
	json_text_number(out, "retried", n->retried);
	json_text_number(out, "dispatched", n->taken);
	json_text_number(out, "batches", n->batches);
	histogram(out, "batch_size", n->batch_size.counts);
	histogram(out, "dispatch_latency_ms", n->latency_ms.counts);
	buffer_append_string(out, ",\"addresses\":[");
	for (size_t i = 0; i < status.address_count; i++)
		server_address(s, i, audience, out);
	buffer_append_string(out, "]}");
}

/* How it stands with telling the fleet what runs here. */
static void receipts(
	const struct report *r, const char *server, enum audience audience, struct buffer *out)
{
	static const char *const states[] = {"starting", "ok", "failing", "off"};
	struct report_status s;

	report_status(r, &s);
	buffer_append_string(out, ",\"report\":{");
	json_text_member(out, "server", server);
	json_text_member(out, "key", s.key);
	json_text_member(out, "state", states[s.state]);
	error_member(out, "error", or_null(s.error), audience);
	null_number(out, "sent_ms", s.sent_ms, 0);
	json_text_number(out, "sent", s.sent);
	json_text_number(out, "failed", s.failed);
	json_text_number(out, "leases", s.leases);
	buffer_append(out, "}", 1);
}

/* What is wrong in it may be quoted from a file that readers may not read. */
static void configuration(
	const struct configuration_status *s, enum audience audience, struct buffer *out)
{
	static const char others[] = "`pulletd -t` tells what is wrong";

	buffer_append_string(out, ",\"configuration\":{");
	json_text_member(out, "file", s->file);
	json_text_number(out, "loaded_ms", (unsigned long long)s->loaded_ms);
	json_text_number(out, "reloads", s->reloads);
	json_text_number(out, "rejections", s->refused);
	sentence_member(out, "error", s->error && audience != AUDIENCE_OPERATOR ? others : s->error,
		audience);
	json_text_number(out, "errors", s->errors);
	buffer_append_string(out, s->under_way ? ",\"applying\":true}" : ",\"applying\":false}");
}

int status_agent(const struct control_env *env, enum audience audience, struct buffer *out)
{
	const struct settings *settings = env->settings;
	const struct sys *sys = loop_sys(env->loop);
	int64_t uptime_ms = sys->wall_ms() - env->started_ms;

	buffer_append(out, "{", 1);
	json_text_member(out, "version", PULLET_VERSION);
	json_text_member(out, "host", env->host);
	json_text_number(out, "pid", (unsigned long long)getpid());
	json_text_number(out, "started_ms", (unsigned long long)env->started_ms);
	json_text_number(out, "uptime_ms", (unsigned long long)(uptime_ms > 0 ? uptime_ms : 0));
	json_text_member(out, "state_dir", settings->state_dir);
	json_text_member(out, "runtime_dir", settings->runtime_dir);
	configuration(env->configuration, audience, out);
	buffer_append_string(out, ",\"labels\":{");
	for (size_t i = 0; i < settings->label_count; i++)
		json_text_member(out, settings->labels[i].name, settings->labels[i].value);
	buffer_append_string(out, "},\"configs\":[");
	for (size_t i = 0; i < settings->config_count; i++) {
		if (i)
			buffer_append(out, ",", 1);
		status_config(env->configs[i], audience, out);
	}
	buffer_append_string(out, "],\"servers\":[");
	for (size_t i = 0; i < settings->server_count; i++) {
		if (i)
			buffer_append(out, ",", 1);
		server(env->servers[i], audience, out);
	}
	buffer_append_string(out, "],\"push\":[");
	for (size_t i = 0; *env->push && i < push_endpoint_count(*env->push); i++)
		push_endpoint(*env->push, i, loop_now_ms(env->loop), out);
	buffer_append_string(out, "]");
	if (*env->report)
		receipts(*env->report, settings->report.from, audience, out);
	return buffer_append_string(out, "}");
}

/* Why nothing is published. */
static void unready(const struct config_status *s, enum audience audience, struct buffer *out)
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
		buffer_printf(out, "the first pull waits for its server%s%s",
			server.name ? " " : "", server.name ? server.name : "");
		if (server.backoff_ms)
			buffer_printf(out, ", which is left alone for another %llu ms",
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
		bool stands;

		config_status(env->configs[i], &s);
		stands = s.version->generation > 0;
		ready &= stands;
		if (stands && !verbose)
			continue;
		buffer_printf(out, "%s%s: ",
			!verbose ? ""
			: stands ? "[+]"
				 : "[-]",
			s.settings->name);
		if (stands)
			buffer_printf(out, "generation %llu, %s",
				(unsigned long long)s.version->generation, s.state);
		else
			unready(&s, audience, out);
		buffer_append_string(out, "\n");
	}
	if (ready || verbose)
		buffer_append_string(out, ready ? "ok\n" : "not ready\n");
	return ready;
}
