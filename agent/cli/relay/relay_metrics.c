/*
 * Every metric of a relay, a row each. Surprising: the help is what pullet(1) is compared with by
 * make check-man, so a row without its paragraph there does not pass.
 */
#include "cli/relay/relay_metrics.h"

#include "base/usage.h"
#include "control/state_names.h"
#include "text/exposition.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

struct relay_subject { /* begins zero but for view */
	const struct relay_view *view;
	size_t next;
	const char *labels[METRIC_LABELS];

	bool is, ready; /* is: true */
	int64_t started_ms;
	struct relay_counts counts;
	uint64_t changes, dropped[5], lost[2], epochs[3];
	struct publisher_counts published;
	struct usage process;
	struct subscriber_status upstream;
	int64_t age_ms;
	struct {
		bool watched;
		unsigned state; /* enum watch_state */
		uint64_t changes;
	} source;
};

#define AT(member) offsetof(struct relay_subject, member)
#define FIELD(member) METRIC_FIELD(struct relay_subject, member)
#define GAUGE METRIC_GAUGE
#define COUNTER METRIC_COUNTER
#define NUMBER METRIC_NUMBER
#define SECONDS METRIC_SECONDS
#define BYTES METRIC_BYTES

static const char *const versions[] = {PULLET_VERSION};
static const char *const drops[] = {"repeated", "superseded", "no_room", "invalid_name", "circle"};
static const char *const losses[] = {"slow_subscriber", "error"};
static const char *const doubts[] = {"doubt", "lost_message", "too_many_topics"};

#define CAUSES(table) .label = "cause", .names = table, .values = COUNT(table)
#define STATES(table) .label = "state", .names = table, .values = 4, .is_set = true

/* ---- the relay ---- */

static const struct metric relay_metrics[] = {
	{"pullet_relay_build_info", METRIC_INFO, NUMBER, "The version of the relay.", FIELD(is),
		.label = "version", .names = versions, .values = 1},
	{"pullet_relay_ready", GAUGE, NUMBER,
		"1 when an upstream is connected or a source is watched, as /readyz says.",
		FIELD(ready)},
	{"pullet_relay_subscribers", GAUGE, NUMBER,
		"Connected subscribers with a subscription at least.",
		FIELD(published.held.subscribers)},
	{"pullet_relay_subscriptions", GAUGE, NUMBER, "Subscriptions of all subscribers.",
		FIELD(published.held.subscriptions)},
	{"pullet_relay_topics", GAUGE, NUMBER, "Topics that the relay knows.",
		FIELD(counts.topics)},
	{"pullet_relay_waiting_changes", GAUGE, NUMBER,
		"Changes that wait to be sent: for the pause of their topic, or for subscribers.",
		FIELD(counts.waiting)},
	{"pullet_relay_changes_total", COUNTER, NUMBER,
		"Changes heard of, in sources and from upstreams: they are sent, dropped or wait.",
		FIELD(changes)},
	{"pullet_relay_dropped_changes_total", COUNTER, NUMBER,
		"Changes that were not sent: repeated (an upstream sent it again, for somebody who "
		"came late), superseded (a later one of its topic came while it waited), no_room "
		"(no memory, or too many topics: a new epoch follows), invalid_name (no topic can "
		"have it), circle (it came through 16 relays).",
		FIELD(dropped[0]), CAUSES(drops)},
	{"pullet_relay_messages_total", COUNTER, NUMBER,
		"Update messages sent, each once however many subscribers get it.",
		FIELD(counts.messages)},
	{"pullet_relay_lost_messages_total", COUNTER, NUMBER,
		"Messages and heartbeats that some subscribers lost: slow_subscriber (their queue "
		"was full for too long), error (none got it). A new epoch follows.",
		FIELD(lost[0]), CAUSES(losses)},
	{"pullet_relay_repetitions_total", COUNTER, NUMBER,
		"Last messages of topics, sent again for late subscribers.",
		FIELD(counts.repetitions)},
	{"pullet_relay_heartbeats_total", COUNTER, NUMBER, "Heartbeats sent.",
		FIELD(counts.heartbeats)},
	{"pullet_relay_sent_bytes_total", COUNTER, BYTES,
		"Size of all messages sent, each once however many subscribers get it.",
		FIELD(published.bytes)},
	{"pullet_relay_epochs_total", COUNTER, NUMBER,
		"New epochs, each of which makes all agents pull: doubt (a source or an upstream "
		"may have changed unheard), lost_message, too_many_topics.",
		FIELD(epochs[0]), CAUSES(doubts)},
	{"pullet_relay_denied_subscribers_total", COUNTER, NUMBER,
		"Connections denied: the key is not on the list of allowed keys.",
		FIELD(published.denied)},
	{"pullet_relay_cut_subscribers_total", COUNTER, NUMBER,
		"Subscribers cut off, which sent what none does or more than there is room for.",
		FIELD(published.cuts)},
	{"process_start_time_seconds", GAUGE, SECONDS, "When the relay started, since 1970.",
		FIELD(started_ms)},
	{"process_cpu_seconds_total", COUNTER, SECONDS, "Processor time of the relay.",
		FIELD(process.cpu_ms)},
	{"process_resident_memory_bytes", GAUGE, BYTES, "Resident memory of the relay.",
		FIELD(process.resident_bytes)},
	{"process_virtual_memory_bytes", GAUGE, BYTES, "Address space of the relay.",
		FIELD(process.virtual_bytes)},
	{"process_open_fds", GAUGE, NUMBER, "Open descriptors: each subscriber has one.",
		FIELD(process.open_fds)},
	{"process_max_fds", GAUGE, NUMBER, "Maximum of open descriptors.", FIELD(process.max_fds)},
};

static bool next_relay(void *subject)
{
	struct relay_subject *s = subject;
	const struct relay_view *v = s->view;
	const struct relay_counts *c = relay_counts(v->relay);

	if (s->next++)
		return false;
	s->is = true;
	s->started_ms = v->started_ms;
	s->ready = relay_metrics_ready(v, false, NULL);
	s->counts = *c;
	s->changes = c->changes + v->invalid_names;
	s->dropped[0] = c->repeated;
	s->dropped[1] = c->superseded;
	s->dropped[2] = c->no_room;
	s->dropped[3] = v->invalid_names;
	s->dropped[4] = c->circled;
	s->lost[0] = c->slow;
	s->lost[1] = c->failed;
	s->epochs[0] = c->doubts;
	s->epochs[1] = c->losses;
	s->epochs[2] = c->forgets;
	publisher_get_counts(v->publisher, &s->published);
	usage_read(loop_sys(v->loop), &s->process);
	return true;
}

/* ---- an upstream ---- */

static const struct metric upstream_metrics[] = {
	{"pullet_relay_upstream_state", GAUGE, NUMBER, "1 for the state of the upstream.",
		FIELD(upstream.state), STATES(state_names_push)},
	{"pullet_relay_upstream_messages_total", COUNTER, NUMBER, "Update messages received.",
		FIELD(upstream.messages)},
	{"pullet_relay_upstream_heartbeats_total", COUNTER, NUMBER, "Heartbeats received.",
		FIELD(upstream.heartbeats)},
	{"pullet_relay_upstream_bad_messages_total", COUNTER, NUMBER,
		"Invalid messages, of which at most the topic was used.", FIELD(upstream.bad)},
	{"pullet_relay_upstream_connects_total", COUNTER, NUMBER, "Connections made.",
		FIELD(upstream.connects)},
	{"pullet_relay_upstream_rebuilds_total", COUNTER, NUMBER,
		"Times that a silent socket was recreated.", FIELD(upstream.rebuilds)},
	{"pullet_relay_upstream_handshake_failures_total", COUNTER, NUMBER, "Failed handshakes.",
		FIELD(upstream.refused)},
	{"pullet_relay_upstream_cuts_total", COUNTER, NUMBER,
		"Connections cut because the upstream sent more than is buffered for it.",
		FIELD(upstream.cuts)},
	{"pullet_relay_upstream_last_message_age_seconds", GAUGE, SECONDS,
		"Time since its last message or heartbeat; absent before the first one.",
		FIELD(age_ms)},
};

static bool next_relay_upstream(void *subject)
{
	struct relay_subject *s = subject;
	const struct relay_view *v = s->view;
	uint64_t now_ms = loop_sys(v->loop)->now_ms(), last_ms;

	if (!v->upstreams || s->next == v->upstream_count)
		return false;
	listener_get_status(v->upstreams, s->next++, &s->upstream);
	last_ms = s->upstream.last_message_ms;
	s->age_ms = !last_ms ? -1 : now_ms > last_ms ? (int64_t)(now_ms - last_ms) : 0;
	s->labels[0] = s->upstream.endpoint;
	return true;
}

/* ---- a source ---- */

static const struct metric source_metrics[] = {
	{"pullet_relay_source_changes_total", COUNTER, NUMBER,
		"Changes that the source reported, also those that it cannot name.",
		FIELD(source.changes)},
	{"pullet_relay_source_state", GAUGE, NUMBER,
		"1 for the state of the watch; a directory has none.", FIELD(source.state),
		STATES(state_names_watch), .when = AT(source.watched)},
};

static enum watch_state source_state(const struct relay_view_source *source)
{
	const char *error;

	return source->item ? watch_status(source->item, &error) : WATCH_ON;
}

static bool next_relay_source(void *subject)
{
	struct relay_subject *s = subject;
	const struct relay_view_source *source;

	if (s->next == s->view->source_count)
		return false;
	source = s->view->sources[s->next++];
	s->source.watched = source->item;
	s->source.state = source_state(source);
	s->source.changes = source->changes;
	s->labels[0] = source->label;
	return true;
}

/* ---- all of them ---- */

#define METRICS(table) table, COUNT(table)

int relay_metrics_write(const struct relay_view *view, bool openmetrics, struct buffer *out)
{
	static const struct metric_scope scopes[] = {
		{{NULL}, METRICS(relay_metrics), next_relay},
		{{"endpoint"}, METRICS(upstream_metrics), next_relay_upstream},
		{{"source"}, METRICS(source_metrics), next_relay_source},
	};
	int e = 0;

	for (size_t i = 0; e == 0 && i < COUNT(scopes); i++) {
		struct relay_subject s = {.view = view};

		e = exposition_write(&scopes[i], &s, s.labels, openmetrics, out);
	}
	if (e == 0 && openmetrics)
		e = buffer_append_string(out, "# EOF\n");
	return e;
}

/* ---- ready ---- */

static void append_state(
	struct buffer *out, bool good, const char *name, const char *state, const char *why)
{
	buffer_printf(out, "[%c]%s: %s%s%s\n", good ? '+' : '-', name, state, why ? ", " : "",
		why ? why : "");
}

static bool list_sources(const struct relay_view *view, struct buffer *out)
{
	bool ready = false;

	for (size_t i = 0; view->upstreams && i < view->upstream_count; i++) {
		struct subscriber_status s;
		bool good;

		listener_get_status(view->upstreams, i, &s);
		good = s.state == PUSH_CONNECTED;
		ready |= good;
		if (out)
			append_state(out, good, s.endpoint, state_names_push[s.state], s.error);
	}
	for (size_t i = 0; i < view->source_count; i++) {
		enum watch_state state = source_state(view->sources[i]);

		ready |= state == WATCH_ON;
		if (out)
			append_state(out, state == WATCH_ON, view->sources[i]->label,
				state_names_watch[state], NULL);
	}
	return ready;
}

bool relay_metrics_ready(const struct relay_view *view, bool verbose, struct buffer *out)
{
	bool ready = list_sources(view, NULL);

	if (!out)
		return ready;
	if (verbose || !ready)
		list_sources(view, out);
	buffer_append_string(out, ready ? "ok\n" : "not ready\n");
	return ready;
}
