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
		jsontext_member(b, name, NULL);
	else
		jsontext_number(b, name, (unsigned long long)n);
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
	snprintf(text, 64, "refused by the %s", s->away_judge);
	return text;
}

static void last_error(
	struct buffer *out, const char *name, const struct config_status *s, enum audience audience)
{
	char text[64];

	if (audience == AUDIENCE_PUBLIC)
		jsontext_member(out, name, public_error(s, text));
	else
		sentence_member(out, name, or_null(s->last_error), audience);
}

/* How many versions each judge refused, and the one that the server has now. */
static void refused_by(const struct config_status *s, enum audience audience, struct buffer *out)
{
	buffer_append_string(out, ",\"refused_by\":{");
	for (int i = 0; i < JUDGE_COUNT; i++)
		if (s->refused_by[i])
			jsontext_number(out, judge_name((enum judge)i), s->refused_by[i]);
	buffer_append(out, "}", 1);
	if (!s->away)
		return;
	buffer_append_string(out, ",\"turned_away\":{");
	jsontext_member(out, "by", s->away_judge);
	jsontext_member(
		out, "version", s->away->part_count ? or_null(s->away->parts[0].etag) : NULL);
	jsontext_member(out, "sha256", s->away->sha256);
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
	jsontext_member(out, "by", pin->by);
	jsontext_member(out, "reason", pin->reason);
	until(out, pin->until_ms);
	buffer_append(out, "}", 1);
}

/* What operators decided. The values of overrides are not shown: they may be secrets. */
static void decisions(const struct config_status *s, struct buffer *out)
{
	if (s->expires_ms != INT64_MAX)
		jsontext_number(out, "expires_ms", (unsigned long long)s->expires_ms);
	decision("pin", s->pin, out);
	decision("suspension", s->suspension, out);
	buffer_append_string(out, ",\"overrides\":[");
	for (size_t i = 0; i < s->override_count; i++) {
		buffer_append_string(out, i ? ",{" : "{");
		jsontext_member(out, "key", s->overrides[i].key);
		jsontext_member(out, "by", s->overrides[i].by);
		jsontext_member(out, "reason", s->overrides[i].reason);
		until(out, s->overrides[i].until_ms);
		buffer_append(out, "}", 1);
	}
	buffer_append(out, "]", 1);
}

/* Is the application told of what stands, and does it bear it? */
static void aftermath(const struct aftermath_status *a, enum audience audience, struct buffer *out)
{
	static const char *const reloads[] = {"idle", "waiting", "running", "failed"};
	static const char *const probes[] = {"none", "waiting", "watching", "good", "bad"};

	if (a->has_reload) {
		buffer_append_string(out, ",\"reload\":{");
		jsontext_member(out, "state", reloads[a->reload.state]);
		jsontext_number(out, "pending", a->reload.pending);
		jsontext_number(out, "told", a->reload.told);
		jsontext_number(out, "next_ms", a->reload.next_ms);
		jsontext_number(out, "runs", a->reload.runs);
		jsontext_number(out, "failed", a->reload.failed);
		jsontext_number(out, "failed_in_a_row", a->reload.in_a_row);
		error_member(out, "error", or_null(a->reload.why), audience);
		buffer_append(out, "}", 1);
	}
	if (a->has_probe) {
		buffer_append_string(out, ",\"probe\":{");
		jsontext_member(out, "state", probes[a->probe]);
		jsontext_number(out, "generation", a->probe_generation);
		jsontext_number(out, "failed", a->probes_failed);
		error_member(out, "error", or_null(a->probe_why), audience);
		buffer_append(out, "}", 1);
	}
}

static void watch(const struct config_status *s, enum audience audience, struct buffer *out)
{
	static const char *const states[] = {"off", "connecting", "watching", "failing"};

	buffer_append_string(out, ",\"watch\":{");
	jsontext_member(out, "state", states[s->watch]);
	jsontext_number(out, "documents", s->watched);
	jsontext_number(out, "changes", s->watch_changes);
	error_member(out, "error", or_null(s->watch_error), audience);
	buffer_append(out, "}", 1);
}

int status_config(struct config *c, enum audience audience, struct buffer *out)
{
	struct server_status server;
	struct config_status s;

	config_status(c, &s);
	buffer_append(out, "{", 1);
	jsontext_member(out, "name", s.settings->name);
	jsontext_member(out, "state", s.state);
	jsontext_member(out, "url", s.url);
	server_status(s.server, &server);
	jsontext_member(out, "server", server.name);
	jsontext_member(out, "file", s.settings->file);
	jsontext_member(out, "snapshot", s.snapshot[0] ? s.snapshot : NULL);
	jsontext_member(out, "type", type_name(&s));
	jsontext_member(out, "topic", s.settings->topic);
	jsontext_number(out, "generation", s.version->generation);
	jsontext_member(out, "version", etag_of(&s));
	jsontext_member(out, "sha256", or_null(s.version->sha256));
	null_number(out, "published_ms", s.published_ms, 0);
	null_number(out, "confirmed_ms", s.confirmed_ms, 0);
	null_number(out, "age_ms", s.age_ms, -1);
	buffer_append_string(out, s.running ? ",\"running\":true" : ",\"running\":false");
	buffer_append_string(out, s.waiting ? ",\"waiting\":true" : ",\"waiting\":false");
	jsontext_number(out, "held_ms", s.waiting ? server.held_ms : 0);
	jsontext_number(out, "delay_ms", supervisor_delay(s.supervisor));
	null_number(out, "next_pull_in_ms", s.next_pull_in_ms, -1);
	last_error(out, "last_error", &s, audience);
	jsontext_member(out, "cause", or_null(kind_cause_name(s.cause)));
	null_number(out, "last_error_ms", s.last_error_ms, 0);
	null_number(out, "failing_since_ms", s.failing_since_ms, 0);
	buffer_append_string(out, ",\"runs\":{");
	jsontext_number(out, "success", s.supervisor->count[SUPERVISOR_SUCCESS]);
	jsontext_number(out, "timeouts", s.supervisor->count[SUPERVISOR_TIMEOUT]);
	jsontext_number(out, "rejected", s.supervisor->count[SUPERVISOR_REJECTED]);
	jsontext_number(out, "failed", s.supervisor->count[SUPERVISOR_FAILED]);
	buffer_append(out, "}", 1);
	jsontext_number(out, "refused", s.refused);
	refused_by(&s, audience, out);
	jsontext_number(out, "restored", s.restored);
	buffer_append_string(out, s.drifted ? ",\"drifted\":true" : ",\"drifted\":false");
	jsontext_number(out, "pushes", s.pushes);
	if (s.watched)
		watch(&s, audience, out);
	decisions(&s, out);
	if (s.has_aftermath)
		aftermath(&s.aftermath, audience, out);
	return buffer_append(out, "}", 1);
}

int status_outcome(struct config *c, enum audience audience, struct buffer *out)
{
	static const char *const outcomes[] = {
		"none", "published", "unchanged", "held back", "failed"};
	struct config_status s;

	config_status(c, &s);
	buffer_append(out, "{", 1);
	jsontext_member(out, "name", s.settings->name);
	jsontext_member(out, "outcome", outcomes[s.outcome]);
	jsontext_number(out, "generation", s.version->generation);
	jsontext_member(out, "version", etag_of(&s));
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
	jsontext_member(out, "endpoint", s.endpoint);
	jsontext_member(out, "state", states[s.state]);
	jsontext_member(out, "error", s.error);
	jsontext_number(out, "messages", s.messages);
	jsontext_number(out, "heartbeats", s.heartbeats);
	jsontext_number(out, "bad", s.bad);
	jsontext_number(out, "gaps", s.gaps);
	jsontext_number(out, "epochs", s.epochs);
	jsontext_number(out, "connects", s.connects);
	jsontext_number(out, "rebuilds", s.rebuilds);
	jsontext_number(out, "refused", s.refused);
	jsontext_number(out, "cuts", s.cuts);
	null_number(out, "last_message_ago_ms",
		s.last_message_ms && now_ms >= s.last_message_ms
			? (int64_t)(now_ms - s.last_message_ms)
			: -1,
		-1);
	buffer_append(out, "}", 1);
}

static void server_address(
	const struct server *s, size_t i, enum audience audience, struct buffer *out)
{
	struct server_address_status a;

	server_address_status(s, i, &a);
	buffer_append_string(out, i ? ",{" : "{");
	jsontext_member(out, "url", a.url);
	jsontext_number(out, "rests_ms", a.rests_ms);
	error_member(out, "error", or_null(a.error), audience);
	jsontext_number(out, "failures_in_a_row", a.in_a_row);
	jsontext_number(out, "congestion", a.congestion);
	jsontext_number(out, "network", a.network);
	jsontext_number(out, "advised", a.advised);
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

static void server(const struct server *s, enum audience audience, struct buffer *out)
{
	struct server_status status;
	const struct dispatcher_counters *n;

	server_status(s, &status);
	n = status.counters;
	buffer_append(out, "{", 1);
	jsontext_member(out, "name", status.name);
	jsontext_number(out, "held_ms", status.held_ms);
	jsontext_number(out, "in_flight", status.in_flight);
	jsontext_number(out, "pending", status.pending);
	jsontext_number(out, "accepted", n->accepted);
	jsontext_number(out, "overridden", n->overridden);
	jsontext_number(out, "expired", n->expired);
	jsontext_number(out, "withdrawn", n->cancelled);
	jsontext_number(out, "retried", n->retried);
	jsontext_number(out, "dispatched", n->taken);
	jsontext_number(out, "batches", n->batches);
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
	jsontext_member(out, "server", server);
	jsontext_member(out, "key", s.key);
	jsontext_member(out, "state", states[s.state]);
	error_member(out, "error", or_null(s.error), audience);
	null_number(out, "sent_ms", s.sent_ms, 0);
	jsontext_number(out, "sent", s.sent);
	jsontext_number(out, "failed", s.failed);
	jsontext_number(out, "leases", s.leases);
	buffer_append(out, "}", 1);
}

/* What is wrong in it may be quoted from a file that readers may not read. */
static void configuration(
	const struct configuration_status *s, enum audience audience, struct buffer *out)
{
	static const char others[] = "`pulletd -t` tells what is wrong";

	buffer_append_string(out, ",\"configuration\":{");
	jsontext_member(out, "file", s->file);
	jsontext_number(out, "loaded_ms", (unsigned long long)s->loaded_ms);
	jsontext_number(out, "reloads", s->reloads);
	jsontext_number(out, "refused", s->refused);
	sentence_member(out, "error", s->error && audience != AUDIENCE_OPERATOR ? others : s->error,
		audience);
	jsontext_number(out, "errors", s->errors);
	buffer_append_string(out, s->under_way ? ",\"applying\":true}" : ",\"applying\":false}");
}

int status_agent(const struct control_env *env, enum audience audience, struct buffer *out)
{
	const struct settings *settings = env->settings;
	const struct sys *sys = loop_sys(env->loop);
	int64_t uptime_ms = sys->wall_ms() - env->started_ms;

	buffer_append(out, "{", 1);
	jsontext_member(out, "version", PULLET_VERSION);
	jsontext_member(out, "host", env->host);
	jsontext_number(out, "pid", (unsigned long long)getpid());
	jsontext_number(out, "started_ms", (unsigned long long)env->started_ms);
	jsontext_number(out, "uptime_ms", (unsigned long long)(uptime_ms > 0 ? uptime_ms : 0));
	jsontext_member(out, "state_dir", settings->state_dir);
	jsontext_member(out, "runtime_dir", settings->runtime_dir);
	configuration(env->configuration, audience, out);
	buffer_append_string(out, ",\"labels\":{");
	for (size_t i = 0; i < settings->label_count; i++)
		jsontext_member(out, settings->labels[i].name, settings->labels[i].value);
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
	struct server_status server;

	buffer_append_string(out, "nothing is published yet: ");
	if (s->last_error[0]) {
		const char *error = audience == AUDIENCE_PUBLIC ? public_error(s, text)
								: sentence_show(why, sizeof(why),
									  s->last_error, audience);

		escape_append(out, error, strlen(error));
	} else if (s->waiting) {
		server_status(s->server, &server);
		buffer_printf(out, "the first pull waits for its server%s%s",
			server.name ? " " : "", server.name ? server.name : "");
		if (server.held_ms)
			buffer_printf(out, ", which is left alone for another %llu ms",
				(unsigned long long)server.held_ms);
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
