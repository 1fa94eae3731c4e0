/*
 * The policy of one endpoint. Surprising: a socket of libzmq goes deaf for ever after one protocol
 * error (a frame over the limit, garbage instead of a greeting): it neither reconnects nor reports
 * it. A connection that ended without a retry shows it; then the socket is replaced. After a failed
 * handshake it is replaced in any case: libzmq would either never retry or, where the publisher
 * hung up first, retry at its shortest interval for ever. Which of the two is a race, even when
 * only one side uses CURVE. And of a name libzmq knows one address, the first: where that one is of
 * IPv6, and this host has none or it leads nowhere, the next socket asks for IPv4.
 */
#include "push/session.h"

#include <string.h>

#include "crypto/curve_keys.h"

#define SILENCE_SPREAD_MS 5000u
#define RETRY_MAX_MS 60000
#define RETRY_MAX_LOCAL_MS 2000

struct failure {
	const char
		*cause; /* for the limit of log lines, whatever the sentence; NULL = no failure */
	bool refuses;
	/* keyed: the agent has a key (of the publisher, or its own); relay_...: by the options of
	 * `pullet relay`, NULL = as the agent says it */
	const char *plain, *keyed, *relay_plain, *relay_keyed;
};

#define ALL(text) text, text, NULL, NULL

static const struct failure failures[SESSION_EVENTS] = {
	[SESSION_CUT] = {"memory", false,
		ALL("the publisher sent more than update messages need: over the limit of memory "
		    "for it")},
	[SESSION_UNANSWERED] = {"handshake timeout", false,
		ALL("the publisher accepts connections but does not answer")},
	[SESSION_REJECTED] = {"handshake", true,
		"the publisher ended the handshake: it wants CURVE (set curve), is not a ZeroMQ "
		"publisher, or was stopped",
		"the publisher ended the handshake: server_key is not its public key, or it does "
		"not use CURVE",
		"the publisher ended the handshake: it wants CURVE (--upstream-curve-server-key), "
		"is not a ZeroMQ publisher, or was stopped",
		"the publisher ended the handshake: --upstream-curve-server-key is not its public "
		"key, or it does not use CURVE"},
	[SESSION_MISMATCHED] = {"handshake", true,
		"the publisher does not send plain text: it wants CURVE (set curve)",
		"the publisher does not use CURVE: give it a secret key, or remove curve",
		"the publisher does not send plain text: it wants CURVE "
		"(--upstream-curve-server-key)",
		"the publisher does not use CURVE: give it a secret key, or leave "
		"--upstream-curve-server-key out"},
	[SESSION_UNDECIPHERED] = {"handshake", true,
		"cannot decrypt what the publisher sent: server_key is not its public key, or it "
		"was changed on the way",
		"cannot decrypt what the publisher sent: server_key is not its public key, or it "
		"was changed on the way",
		NULL,
		"cannot decrypt what the publisher sent: --upstream-curve-server-key is not its "
		"public key, or it was changed on the way"},
	[SESSION_BROKEN] = {"handshake", true, ALL("the publisher does not keep to the protocol")},
	[SESSION_DENIED] = {"list", true,
		"the publisher allows known keys only: set secret_key_file, and add its public key "
		"to the list there",
		"the publisher does not allow this agent's key: add it to the list there",
		"the publisher allows known keys only: set --upstream-curve-secret-key, and add "
		"its public key to the list there",
		"the publisher does not allow this relay's key: add it to the list there"},
	[SESSION_NO_PUBLISHER] = {"handshake", true, ALL("the endpoint is not a ZeroMQ publisher")},
	[SESSION_UNREACHABLE] = {"dial", false,
		ALL("nobody answers at its name, by IPv6 or IPv4: is the publisher running, can it "
		    "be reached from here, is the name found (/etc/resolv.conf)?")},
	[SESSION_NOBODY] = {"dial", false,
		ALL("nobody answers there: is the publisher running, can it be reached from "
		    "here?")},
	[SESSION_NO_SOCKET] = {"socket", false,
		"cannot open a socket: the agent has no memory or descriptors left",
		"cannot open a socket: the agent has no memory or descriptors left",
		"cannot open a socket: the relay has no memory or descriptors left",
		"cannot open a socket: the relay has no memory or descriptors left"},
	[SESSION_NO_FILTER] = {"socket", false, ALL("cannot change its subscriptions")},
};

/* Tells whether the messages are for a relay, which has other words and no pulls. */
static bool is_relay(const struct session *s)
{
	return s->listener->relays;
}

static const char *choose_failure_text(const struct session *s, const struct failure *f, bool keyed)
{
	const char *relay = keyed ? f->relay_keyed : f->relay_plain;

	if (is_relay(s) && relay)
		return relay;
	return keyed ? f->keyed : f->plain;
}

static void count_one(_Atomic uint64_t *counter)
{
	atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}

/* Makes all topics pull, or notifies the listener: messages may have been missed. */
static void report_missed(struct session *s, const char *cause, uint64_t least_spread_ms)
{
	if (s->listener->missed)
		s->listener->missed(s->listener->arg, s->number, cause);
	else
		push_topics_hint_all(s->topics, least_spread_ms);
}

/* ---- giving up ---- */

static bool awaits_rebuild(const struct session *s)
{
	return s->phase == SESSION_LOST || s->phase == SESSION_CLOSED;
}

static void rebuild_later(struct session *s, enum session_phase phase, uint64_t now_ms)
{
	s->phase = phase;
	s->heard_heartbeat = false;
	s->deadline_ms = now_ms + s->retry_ms / 2 + sys_random_upto(s->sys, s->retry_ms / 2);
	s->retry_ms = s->retry_ms * 2 > s->retry_max_ms ? s->retry_max_ms : s->retry_ms * 2;
}

/* Shows and logs why. One cause is one line a minute, whatever its sentence. */
static void show_failure(struct session *s, enum subscriber_state state, const char *cause,
	const char *error, uint64_t now_ms)
{
	const char *public_key = s->public_key[0] ? s->public_key : NULL;
	unsigned repeated;

	if (state == PUSH_REFUSED) /* whoever sees the state sees it counted */
		count_one(&s->refused);
	atomic_store(&s->error, error);
	atomic_store(&s->state, state);
	if (log_limit_pass(&s->log_limit, now_ms, cause, &repeated))
		log_warn(is_relay(s)
				 ? (state == PUSH_REFUSED ? "upstream refused: trying again"
							  : "upstream not connected: trying again")
			 : state == PUSH_REFUSED
				 ? "push channel refused: pulls go on by interval"
				 : "push channel not connected: pulls go on by interval",
			"endpoint", s->at.endpoint, "why", error, "public_key", public_key,
			"secret_key_file", s->at.secret_key_file, "repeated",
			repeated ? LOG_U64(repeated) : NULL);
}

/* Returns the state to show after a failure: one without news of the publisher changes nothing. */
static enum subscriber_state choose_failed_state(const struct session *s, enum session_event event)
{
	enum subscriber_state state = (enum subscriber_state)atomic_load(&s->state);

	if (failures[event].refuses)
		return PUSH_REFUSED;
	if (event == SESSION_NO_SOCKET)
		return state;
	if (state == PUSH_SILENT && (event == SESSION_UNANSWERED || event == SESSION_UNREACHABLE ||
					    event == SESSION_NOBODY))
		return state;
	return PUSH_CONNECTING;
}

static void note_failure(struct session *s, enum session_event event, uint64_t now_ms)
{
	const struct failure *f = &failures[event];
	bool keyed = event == SESSION_DENIED ? s->at.secret_key_file : s->at.server_key;

	show_failure(s, choose_failed_state(s, event), f->cause, choose_failure_text(s, f, keyed),
		now_ms);
}

/* Ends the connection, and tries again later with a new socket. */
static enum session_action fail_connection(
	struct session *s, enum session_event event, uint64_t now_ms)
{
	note_failure(s, event, now_ms);
	rebuild_later(s, SESSION_CLOSED, now_ms);
	return SESSION_CLOSE;
}

void session_refuse_key(struct session *s, const char *why, uint64_t now_ms)
{
	show_failure(s, PUSH_REFUSED, "own key", why, now_ms);
	rebuild_later(s, SESSION_CLOSED, now_ms);
}

void session_end(struct session *s)
{
	atomic_store(&s->error, is_relay(s) ? "it has ended: restart the relay"
					    : "it has ended: restart the agent");
	atomic_store(&s->state, PUSH_CONNECTING);
}

/* ---- messages ---- */

/* Takes the message's epoch. A new one (the publisher restarted or lost count) makes all topics
 * pull: any message may have been missed. */
static void note_epoch(struct session *s, const struct push_message *m)
{
	bool changed = s->epoch[0];

	if (!m->epoch[0] || strcmp(m->epoch, s->epoch) == 0)
		return;
	memcpy(s->epoch, m->epoch, sizeof(s->epoch));
	push_topics_forget(s->topics, s->number);
	if (changed) {
		count_one(&s->epochs);
		push_topics_hint_all(s->topics, m->spread_ms);
	}
}

static void update_topic(struct session *s, const char *name, const struct push_message *m)
{
	if (!push_topics_has(s->topics, name))
		return; /* a filter is a prefix: "web" lets "web2" through */
	note_epoch(s, m);
	count_one(&s->messages);
	if (push_topics_update(s->topics, s->number, name, m) == PUSH_GAP)
		count_one(&s->gaps);
}

/* Without a valid envelope it is still a hint: dropping it could lose an update. */
static struct push_message read_or_drop_envelope(
	struct session *s, const struct session_message *from)
{
	struct push_message m = {0};
	const char *why = from->has_more ? "the message has more than two frames" : NULL;

	if (why || (from->envelope &&
			   push_message_parse(from->envelope, from->envelope_len, &m, &why))) {
		count_one(&s->bad);
		log_debug("invalid envelope of a push message: taking the bare topic", "endpoint",
			s->at.endpoint, "topic", from->topic, "why", why);
	}
	return m;
}

static void dispatch_message(struct session *s, const char *name, const struct push_message *m)
{
	const struct subscriber_listener *l = s->listener;

	if (strcmp(name, PUSH_HEARTBEAT_TOPIC) == 0) {
		count_one(&s->heartbeats);
		s->heard_heartbeat = true;
		if (!l->heard)
			note_epoch(s, m);
	} else if (l->heard) {
		count_one(&s->messages);
	} else {
		update_topic(s, name, m);
	}
	if (l->heard)
		l->heard(l->arg, s->number, name, m);
}

static void set_silence_deadline(struct session *s, uint64_t now_ms)
{
	if (awaits_rebuild(s))
		return;
	s->deadline_ms =
		s->heard_heartbeat ? now_ms + SESSION_SILENT_HEARTBEATS * s->at.heartbeat_ms : 0;
}

void session_hear(struct session *s, const struct session_message *m, uint64_t now_ms)
{
	struct push_message read;

	if (m->topic_len == 0 || m->topic_len > PUSH_MAX_TOPIC ||
		strlen(m->topic) != m->topic_len) {
		count_one(&s->bad);
		return;
	}
	/* first: what is counted has its time */
	atomic_store_explicit(&s->last_message_ms, now_ms, memory_order_relaxed);
	read = read_or_drop_envelope(s, m);
	dispatch_message(s, m->topic, &read);
	if (atomic_load(&s->state) == PUSH_SILENT)
		atomic_store(&s->state, PUSH_CONNECTED);
	set_silence_deadline(s, now_ms);
}

/* ---- connections ---- */

static void begin_handshake(struct session *s, uint64_t now_ms)
{
	const char *error = atomic_load(&s->error);

	if (error == failures[SESSION_NOBODY].plain || error == failures[SESSION_UNREACHABLE].plain)
		atomic_store(&s->error, NULL); /* somebody is there */
	if (awaits_rebuild(s))
		s->deadline_ms = 0;
	s->phase = SESSION_GREETING;
	s->handshake_ms = now_ms;
}

/* Messages of this connection may have been taken before this event was. */
static void connection_made(struct session *s, uint64_t now_ms)
{
	count_one(&s->connects);
	s->half_dialled = false;
	atomic_store(&s->error, NULL);
	atomic_store(&s->state, PUSH_CONNECTED);
	s->phase = SESSION_UP;
	set_silence_deadline(s, now_ms);
	s->retry_ms = s->reconnect_ms;
	if (!s->quiet)
		log_info(is_relay(s) ? "upstream connected" : "push channel connected", "endpoint",
			s->at.endpoint);
	report_missed(s, "connected", 0); /* all that was sent before */
}

/* Of a publisher that comes and goes, the second line says so. */
static void report_lost(struct session *s, uint64_t now_ms)
{
	unsigned repeated = 0;
	bool first = log_limit_pass(&s->change_log, now_ms, "lost", &repeated);

	s->quiet = !first && !log_limit_pass(&s->change_log, now_ms, "lost again", &repeated);
	if (!s->quiet)
		log_warn(is_relay(s) ? (first ? "upstream lost: reconnecting"
					      : "upstream lost again: it comes and goes; logged "
						"once a minute")
			 : first     ? "push channel lost: reconnecting; pulls go on by interval"
				     : "push channel lost again: it comes and goes; logged once a "
				       "minute",
			"endpoint", s->at.endpoint, "repeated",
			repeated ? LOG_U64(repeated) : NULL);
}

static enum session_action connection_lost(struct session *s, uint64_t now_ms)
{
	if (s->phase != SESSION_UP) /* no event named a reason: the peer sent no handshake at all */
		return fail_connection(s, SESSION_NO_PUBLISHER, now_ms);
	if (atomic_exchange(&s->state, PUSH_CONNECTING) != PUSH_CONNECTING)
		report_lost(s, now_ms);
	/* libzmq retries after an orderly end and says so (SESSION_RETRIED); after a protocol error
	 * it does neither */
	rebuild_later(s, SESSION_LOST, now_ms);
	return SESSION_NONE;
}

/* A name may have addresses of two families. */
static bool may_have_two_families(const char *endpoint)
{
	static const char tcp[] = "tcp://";
	const char *host = endpoint + strlen(tcp);

	return strncmp(endpoint, tcp, strlen(tcp)) == 0 && host[0] != '[' &&
	       host[strspn(host, "0123456789.")] != ':';
}

/* The other family is next, at once after the first of the two. */
static enum session_action dial_failed(struct session *s, uint64_t now_ms)
{
	s->only_ipv4 = !s->only_ipv4;
	s->half_dialled = !s->half_dialled;
	if (!s->half_dialled)
		return fail_connection(s, SESSION_UNREACHABLE, now_ms);
	s->phase = SESSION_CLOSED;
	s->deadline_ms = now_ms + 1;
	return SESSION_CLOSE;
}

/* libzmq itself tries again: after a connection that ended or failed. */
static enum session_action retry_began(struct session *s, uint64_t now_ms)
{
	int refused = PUSH_REFUSED;

	if (s->phase == SESSION_DIALING && may_have_two_families(s->at.endpoint))
		return dial_failed(s, now_ms);

	s->deadline_ms = 0;
	if (s->phase == SESSION_DIALING) {
		note_failure(s, SESSION_NOBODY, now_ms);
	} else if (s->phase != SESSION_GREETING) {
		/* the publisher that refused the handshake is gone */
		atomic_store(&s->error, NULL);
		atomic_compare_exchange_strong(&s->state, &refused, PUSH_CONNECTING);
	}
	s->phase = SESSION_DIALING;
	return SESSION_NONE;
}

enum session_action session_note(struct session *s, enum session_event event, uint64_t now_ms)
{
	if (s->phase == SESSION_CLOSED)
		return SESSION_NONE; /* said before the socket was closed */
	switch (event) {
	case SESSION_CONNECTED:
		begin_handshake(s, now_ms);
		return SESSION_NONE;
	case SESSION_GREETED:
		connection_made(s, now_ms);
		return SESSION_NONE;
	case SESSION_RETRIED:
		return retry_began(s, now_ms);
	case SESSION_ENDED:
		return connection_lost(s, now_ms);
	case SESSION_REJECTED:
		if (s->phase == SESSION_GREETING &&
			now_ms - s->handshake_ms >= PUSH_HANDSHAKE_MS / 2)
			event = SESSION_UNANSWERED;
		return fail_connection(s, event, now_ms);
	case SESSION_CUT:
		count_one(&s->cuts);
		return fail_connection(s, event, now_ms);
	default:
		return fail_connection(s, event, now_ms);
	}
}

/* ---- deadlines ---- */

uint64_t session_deadline_ms(const struct session *s)
{
	return s->deadline_ms;
}

static void publisher_silent(struct session *s, uint64_t now_ms)
{
	unsigned repeated;

	s->quiet = !log_limit_pass(&s->change_log, now_ms, "silent", &repeated);
	if (!s->quiet)
		log_warn(is_relay(s) ? "upstream silent: all agents pull; making a new socket"
				     : "push channel silent: pulling, and making a new socket",
			"endpoint", s->at.endpoint, "repeated",
			repeated ? LOG_U64(repeated) : NULL);
	atomic_store(&s->state, PUSH_SILENT);
	s->heard_heartbeat = false;
	/* a publisher that hangs is silent for a whole fleet at the same moment */
	report_missed(s, "no heartbeat",
		s->at.heartbeat_ms < SILENCE_SPREAD_MS ? s->at.heartbeat_ms : SILENCE_SPREAD_MS);
}

enum session_action session_due(struct session *s, uint64_t now_ms)
{
	unsigned repeated;

	if (!s->deadline_ms || now_ms < s->deadline_ms)
		return SESSION_NONE;
	if (!awaits_rebuild(s))
		publisher_silent(s, now_ms);
	if (s->phase != SESSION_CLOSED) {
		if (log_limit_pass(&s->change_log, now_ms, "rebuilt", &repeated))
			log_warn(is_relay(s)
					 ? "upstream rebuilt: the socket received nothing any more"
					 : "push channel rebuilt: the socket received nothing any "
					   "more",
				"endpoint", s->at.endpoint, "repeated",
				repeated ? LOG_U64(repeated) : NULL);
		count_one(&s->rebuilds);
	}
	s->deadline_ms = 0;
	s->phase = SESSION_DIALING;
	return SESSION_REBUILD;
}

/* ---- beginning, status ---- */

void session_init(struct session *s, const struct session_setup *setup)
{
	/* relays are few: no fleet that would reconnect at once */
	bool local = curve_stays_here(setup->at->endpoint) || setup->listener->heard;

	*s = (struct session){
		.sys = setup->sys,
		.at = *setup->at,
		.public_key = setup->public_key,
		.number = setup->number,
		.listener = setup->listener,
		.topics = setup->topics,
		/* libzmq's jitter is up to one initial interval: the interval itself must be
		 * random, or a fleet comes back as one */
		.reconnect_ms =
			(local ? 100 : 2000) + sys_random_upto(setup->sys, local ? 200 : 8000),
		.retry_max_ms = local ? RETRY_MAX_LOCAL_MS : RETRY_MAX_MS,
	};
	s->retry_ms = s->reconnect_ms;
}

void session_set_topics(struct session *s, struct push_topics *topics)
{
	s->topics = topics;
}

void session_get_status(const struct session *s, struct subscriber_status *ret)
{
	int state = atomic_load(&s->state); /* first: what led to it is counted */

	*ret = (struct subscriber_status){
		.endpoint = s->at.endpoint,
		.state = (enum subscriber_state)state,
		.error = atomic_load(&s->error),
		.messages = atomic_load_explicit(&s->messages, memory_order_relaxed),
		.heartbeats = atomic_load_explicit(&s->heartbeats, memory_order_relaxed),
		.bad = atomic_load_explicit(&s->bad, memory_order_relaxed),
		.gaps = atomic_load_explicit(&s->gaps, memory_order_relaxed),
		.epochs = atomic_load_explicit(&s->epochs, memory_order_relaxed),
		.connects = atomic_load_explicit(&s->connects, memory_order_relaxed),
		.rebuilds = atomic_load_explicit(&s->rebuilds, memory_order_relaxed),
		.refused = atomic_load_explicit(&s->refused, memory_order_relaxed),
		.cuts = atomic_load_explicit(&s->cuts, memory_order_relaxed),
		.last_message_ms = atomic_load_explicit(&s->last_message_ms, memory_order_relaxed),
	};
}
