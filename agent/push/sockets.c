/*
 * Surprising: the sockets are XSUB, not SUB: they deliver every message, so that messages of other
 * topics are taken one by one too, and not within one call of libzmq that ends when the publisher
 * likes.
 */
#include "push/sockets.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <zmq.h>

#include "push/context.h"
#include "push/peer_guard.h"

/* Beyond, one empty subscription: publishers drop filters over their high-water mark. */
#define MAX_FILTERS 500

/* The queue of an honest publisher stays far below the guard's limit: whole messages up to the
 * high-water mark, of two frames with their headers. */
#define QUEUE 64 /* messages */
#define MAX_FRAME (PUSH_MAX_ENVELOPE + 64)
_Static_assert(QUEUE *(PUSH_MAX_TOPIC + MAX_FRAME + 18) + (64 << 10) < PEER_GUARD_HELD,
	"an honest backlog would be cut off");

/* ---- filters ---- */

enum { UNSUBSCRIBE, SUBSCRIBE }; /* as an XSUB socket sends them */

/* 0 or -1, as zmq_setsockopt(). */
static int set_filter(void *socket, int option, const char *name)
{
	char message[1 + PUSH_MAX_TOPIC];
	size_t len = strlen(name);

	assert(len <= PUSH_MAX_TOPIC);
	message[0] = (char)option;
	memcpy(message + 1, name, len);
	return zmq_send(socket, message, 1 + len, ZMQ_DONTWAIT) < 0 ? -1 : 0;
}

static bool wants_all(const struct push_topics *t)
{
	return push_topics_name(t, MAX_FILTERS);
}

/* Sets or removes the filters that these topics need and others (NULL = none) do not. */
static int set_filters(
	void *socket, int option, const struct push_topics *of, const struct push_topics *but)
{
	const char *name = NULL, *last = PUSH_HEARTBEAT_TOPIC;
	bool all_but = but && wants_all(but);

	if (wants_all(of))
		return all_but ? 0 : set_filter(socket, option, "");
	if ((!but || all_but) && set_filter(socket, option, last))
		return -1;
	for (size_t i = 0; (name = push_topics_name(of, i)); last = name, i++) {
		if (strcmp(name, last) == 0 || (but && !all_but && push_topics_has(but, name)))
			continue;
		if (set_filter(socket, option, name))
			return -1;
	}
	return 0;
}

/* ---- keys and options ---- */

struct own_keys {
	char public_key[CURVE_TEXT], secret_key[CURVE_TEXT];
};

/* Reads or makes the agent's own keys, which the caller wipes. NULL, or a constant sentence. */
static const char *read_own_keys(const struct session *e, struct own_keys *k)
{
	const char *file = e->at.secret_key_file, *why = NULL;

	if (!file)
		return zmq_curve_keypair(k->public_key, k->secret_key)
			       ? "no key could be made for this connection"
			       : NULL;
	if (curve_read_secret(e->sys, file, k->secret_key, &why) == 0 &&
		zmq_curve_public(k->public_key, k->secret_key))
		why = "the secret key's file does not hold a secret key";
	return why;
}

static int set_keys(void *socket, const char *server_key, const struct own_keys *k)
{
	if (!server_key)
		return 0;
	return zmq_setsockopt(socket, ZMQ_CURVE_SERVERKEY, server_key, CURVE_TEXT) ||
	       zmq_setsockopt(socket, ZMQ_CURVE_PUBLICKEY, k->public_key, CURVE_TEXT) ||
	       zmq_setsockopt(socket, ZMQ_CURVE_SECRETKEY, k->secret_key, CURVE_TEXT);
}

static int set_subscriber_options(void *socket, const struct session *e)
{
	const struct push_option options[] = {
		{ZMQ_LINGER, 0},
		{ZMQ_RCVHWM, QUEUE},
		{ZMQ_RECONNECT_IVL, (int)e->reconnect_ms},
		{ZMQ_RECONNECT_IVL_MAX, (int)e->retry_max_ms},
		{ZMQ_CONNECT_TIMEOUT, 5000},
		{ZMQ_TCP_MAXRT, 20000},
		{ZMQ_TCP_KEEPALIVE_INTVL, 10},
		{ZMQ_TCP_KEEPALIVE_CNT, 6},
		{ZMQ_IPV6, !e->only_ipv4},
	};

	return push_context_set_options(
		socket, MAX_FRAME, options, sizeof(options) / sizeof(options[0]));
}

/* ---- open, close ---- */

void push_sockets_init(struct push_sockets *s, void *context, struct session *session)
{
	*s = (struct push_sockets){.context = context, .session = session};
}

void push_sockets_close(struct push_sockets *s)
{
	if (s->socket) {
		zmq_socket_monitor(s->socket, NULL, 0);
		zmq_close(s->socket);
	}
	if (s->monitor)
		zmq_close(s->monitor);
	s->socket = s->monitor = NULL;
}

static int subscribe_topics(void *socket, const struct push_topics *topics)
{
	return topics ? set_filters(socket, SUBSCRIBE, topics, NULL)
		      : set_filter(socket, SUBSCRIBE, "");
}

static int make_sockets(
	struct push_sockets *s, const struct own_keys *keys, const struct push_topics *topics)
{
	const struct session *e = s->session;
	int r = 0, zero = 0;
	char name[64];

	snprintf(name, sizeof(name), "inproc://monitor-%zu-%u", e->number, s->made++);
	s->socket = zmq_socket(s->context, ZMQ_XSUB);
	s->monitor = zmq_socket(s->context, ZMQ_PAIR);
	if (!s->socket || !s->monitor ||
		zmq_setsockopt(s->monitor, ZMQ_LINGER, &zero, sizeof(zero)) ||
		set_subscriber_options(s->socket, e) ||
		set_keys(s->socket, e->at.server_key, keys) ||
		subscribe_topics(s->socket, topics) ||
		/* in this order: without its other end, a monitor that is ended waits for ever */
		zmq_connect(s->monitor, name) ||
		zmq_socket_monitor(s->socket, name, ZMQ_EVENT_ALL) ||
		zmq_connect(s->socket, e->at.endpoint)) {
		r = -zmq_errno();
		push_sockets_close(s);
	}
	return r;
}

int push_sockets_open(struct push_sockets *s, const struct push_topics *topics)
{
	struct session *e = s->session;
	struct own_keys keys = {0};
	const char *why = e->at.server_key ? read_own_keys(e, &keys) : NULL;
	int r = 0;

	memcpy(s->public_key, keys.public_key, e->at.secret_key_file ? sizeof(s->public_key) : 0);
	if (why)
		session_refuse_key(e, why, e->sys->now_ms());
	else
		r = make_sockets(s, &keys, topics);
	explicit_bzero(&keys, sizeof(keys));
	return r;
}

/* Closes when the session gives up because of this event. */
static void note_event(struct push_sockets *s, enum session_event event)
{
	if (session_note(s->session, event, s->session->sys->now_ms()) == SESSION_CLOSE)
		push_sockets_close(s);
}

void push_sockets_follow(
	struct push_sockets *s, const struct push_topics *before, const struct push_topics *next)
{
	if (s->socket && (set_filters(s->socket, SUBSCRIBE, next, before) ||
				 set_filters(s->socket, UNSUBSCRIBE, before, next)))
		note_event(s, SESSION_NO_FILTER);
}

/* ---- messages ---- */

struct frame { /* NUL-terminated */
	char data[PUSH_MAX_ENVELOPE + 1];
	size_t len; /* larger than the data: too long, and not copied */
};

/* Takes one frame. 1, 0 when there is none, or -errno. */
static int receive_frame(struct push_sockets *s, struct frame *ret_frame, bool *ret_more)
{
	zmq_msg_t message;
	int error;

	zmq_msg_init(&message);
	if (zmq_msg_recv(&message, s->socket, ZMQ_DONTWAIT) < 0) {
		error = zmq_errno();
		zmq_msg_close(&message);
		return error == EAGAIN ? 0 : -error;
	}
	ret_frame->len = zmq_msg_size(&message);
	if (ret_frame->len < sizeof(ret_frame->data)) {
		memcpy(ret_frame->data, zmq_msg_data(&message), ret_frame->len);
		ret_frame->data[ret_frame->len] = '\0';
	}
	*ret_more = zmq_msg_more(&message);
	s->bytes += ret_frame->len;
	if (!*ret_more) {
		peer_guard_delivered(
			zmq_msg_get(&message, ZMQ_SRCFD), s->bytes, s->session->at.server_key);
		s->bytes = 0;
	}
	zmq_msg_close(&message);
	return 1;
}

int push_sockets_take_message(struct push_sockets *s)
{
	struct frame topic, envelope, extra;
	struct session_message m = {.topic = topic.data};
	bool more = false;
	int r;

	if (!s->socket)
		return 0; /* an event before closed it */
	r = receive_frame(s, &topic, &more);
	if (r == 1 && more) {
		m.envelope = envelope.data;
		r = receive_frame(s, &envelope, &more);
	}
	m.has_more = more;
	while (r == 1 && more)
		r = receive_frame(s, &extra, &more);
	if (r != 1)
		return r;
	m.topic_len = topic.len;
	m.envelope_len = m.envelope ? envelope.len : 0;
	session_hear(s->session, &m, s->session->sys->now_ms());
	return 1;
}

/* ---- events ---- */

static enum session_event explain_broken_handshake(uint32_t error)
{
	return error == ZMQ_PROTOCOL_ERROR_ZMTP_MECHANISM_MISMATCH ? SESSION_MISMATCHED
	       : error == ZMQ_PROTOCOL_ERROR_ZMTP_CRYPTOGRAPHIC    ? SESSION_UNDECIPHERED
								   : SESSION_BROKEN;
}

/* Translates an event of the monitor; SESSION_EVENTS: one that says nothing. */
static enum session_event translate_event(uint16_t event, uint32_t value)
{
	switch (event) {
	case ZMQ_EVENT_CONNECTED:
		return SESSION_CONNECTED;
	case ZMQ_EVENT_HANDSHAKE_SUCCEEDED:
		return SESSION_GREETED;
	case ZMQ_EVENT_CONNECT_RETRIED:
		return SESSION_RETRIED;
	case ZMQ_EVENT_DISCONNECTED:
		return peer_guard_take_cut((int)value) ? SESSION_CUT : SESSION_ENDED;
	case ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL:
		return SESSION_REJECTED;
	case ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL:
		return explain_broken_handshake(value);
	case ZMQ_EVENT_HANDSHAKE_FAILED_AUTH:
		return SESSION_DENIED;
	default:
		return SESSION_EVENTS;
	}
}

int push_sockets_take_event(struct push_sockets *s)
{
	unsigned char frame[6];
	char address[256];
	enum session_event e;
	uint16_t event;
	uint32_t value;

	if (!s->monitor)
		return 0; /* an event before this one closed it */
	if (zmq_recv(s->monitor, frame, sizeof(frame), ZMQ_DONTWAIT) < 0)
		return zmq_errno() == EAGAIN ? 0 : -zmq_errno();
	if (zmq_recv(s->monitor, address, sizeof(address), ZMQ_DONTWAIT) < 0)
		return -zmq_errno();
	memcpy(&event, frame, sizeof(event));
	memcpy(&value, frame + sizeof(event), sizeof(value));
	e = translate_event(event, value);
	if (e != SESSION_EVENTS)
		note_event(s, e);
	return 1;
}
