/*
 * The push thread. Surprising: a socket of libzmq goes deaf for ever after one protocol error
 * (a frame over the limit, garbage instead of a greeting): it neither reconnects nor reports it.
 * The socket's monitor shows a connection that ended without a retry; then the socket is replaced.
 * After a failed handshake it is replaced in any case: libzmq would either never retry or, where
 * the publisher hung up first, retry at its shortest interval for ever. Which of the two is a race,
 * even when only one side uses CURVE.
 *
 * The sockets are XSUB, not SUB: they deliver every message, so that messages of other topics are
 * taken one by one too, and not within one call of libzmq that ends when the publisher likes.
 *
 * All sockets are made before the thread starts or by the thread itself, in one context that lives
 * as long as the channel.
 */
#include "push/subscriber.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <zmq.h>

#include "base/hash.h"
#include "base/log.h"
#include "push/context.h"
#include "push/peer_guard.h"
#include "push/message.h"
#include "push/topics.h"

/* Beyond, one empty subscription: publishers drop filters over their high-water mark. */
#define MAX_FILTERS 500
#define SILENCE_SPREAD_MS 5000u
#define SILENT_HEARTBEATS 3
#define RETRY_MAX_MS 60000
#define RETRY_MAX_LOCAL_MS 2000
#define TURN 64 /* messages or events of one socket, then the next has its turn */

/* The queue of an honest publisher stays far below the guard's limit: whole messages up to the
 * high-water mark, of two frames with their headers. */
#define QUEUE 64 /* messages */
#define MAX_FRAME (PUSH_MAX_ENVELOPE + 64)
_Static_assert(QUEUE *(PUSH_MAX_TOPIC + MAX_FRAME + 18) + (64 << 10) < PEER_GUARD_HELD,
	"an honest backlog would be cut off");

struct endpoint {
	struct subscriber *push;
	char *address, *server_key, *secret_key_file;
	char public_key[CURVE_TEXT]; /* the agent's own; "" = a new one each time */
	uint64_t heartbeat_ms;
	uint64_t reconnect_ms; /* libzmq's interval, random per process */
	uint64_t retry_max_ms;
	void *socket, *monitor;
	unsigned sockets;      /* made so far */
	size_t bytes;          /* of the message that is being received */
	uint64_t handshake_ms; /* when the one under way began; 0 = none is */
	bool established;      /* the handshake is over */
	struct log_limit log_limit;
	char epoch[65];
	bool heard_heartbeat; /* in this connection: silence means something */
	uint64_t deadline_ms; /* of silence, or of the rebuild; 0 = none */
	bool rebuilding;      /* the deadline is the rebuild's */
	uint64_t retry_ms;    /* grows while rebuilding fails */
	_Atomic int state;
	const char *_Atomic error;
	_Atomic uint64_t messages, heartbeats, bad, gaps, epochs, connects, rebuilds, refused, cuts,
		last_message_ms;
};

struct subscriber {
	const struct sys *sys;
	void *context;
	pthread_t thread;
	struct endpoint *endpoints;
	size_t endpoint_count;
	struct push_topics *topics;          /* the thread's */
	struct subscriber_listener listener; /* zeroed = the topics' triggers are hinted at */
	void *stop;                          /* a socket that reports the end of the context only */
	zmq_pollitem_t *items;
	pthread_mutex_t mutex;
	pthread_cond_t taken;
	struct push_topics *_Atomic next; /* topics to take; NULL = none; set under the mutex */
	bool ended;                       /* the thread, whatever the reason */
	int renewed;                      /* eventfd: wakes the thread for the next ones */
};

static void count_one(_Atomic uint64_t *counter)
{
	atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}

static size_t endpoint_index(const struct endpoint *e)
{
	return (size_t)(e - e->push->endpoints);
}

/* Makes all topics pull, or notifies the listener: messages may have been missed. */
static void report_missed(struct endpoint *e, const char *cause, uint64_t least_spread_ms)
{
	const struct subscriber *p = e->push;

	if (p->listener.missed)
		p->listener.missed(p->listener.arg, endpoint_index(e), cause);
	else
		push_topics_hint_all(p->topics, least_spread_ms);
}

/* ---- sockets ---- */

static int set_subscriber_options(const struct endpoint *e, void *socket)
{
	/* libzmq's jitter is up to one initial interval: the interval itself must be random, or a
	 * fleet comes back as one */
	const struct push_option options[] = {
		{ZMQ_LINGER, 0},
		{ZMQ_RCVHWM, QUEUE},
		{ZMQ_RECONNECT_IVL, (int)e->reconnect_ms},
		{ZMQ_RECONNECT_IVL_MAX, (int)e->retry_max_ms},
		{ZMQ_CONNECT_TIMEOUT, 5000},
		{ZMQ_TCP_MAXRT, 20000},
		{ZMQ_TCP_KEEPALIVE_INTVL, 10},
		{ZMQ_TCP_KEEPALIVE_CNT, 6},
		{ZMQ_IPV6, 1},
	};

	return push_context_set_options(
		socket, MAX_FRAME, options, sizeof(options) / sizeof(options[0]));
}

struct own_keys {
	char public_key[CURVE_TEXT], secret_key[CURVE_TEXT];
};

/* Reads or makes the agent's own keys, which the caller wipes. NULL, or a constant sentence. */
static const char *read_own_keys(const struct endpoint *e, struct own_keys *k)
{
	const char *why = NULL;

	if (!e->secret_key_file)
		return zmq_curve_keypair(k->public_key, k->secret_key)
			       ? "no key could be made for this connection"
			       : NULL;
	if (curve_read_secret(e->push->sys, e->secret_key_file, k->secret_key, &why) == 0 &&
		zmq_curve_public(k->public_key, k->secret_key))
		why = "the secret key's file does not hold a secret key";
	return why;
}

static int set_keys(const struct endpoint *e, void *socket, const struct own_keys *k)
{
	if (!e->server_key)
		return 0;
	return zmq_setsockopt(socket, ZMQ_CURVE_SERVERKEY, e->server_key, CURVE_TEXT) ||
	       zmq_setsockopt(socket, ZMQ_CURVE_PUBLICKEY, k->public_key, CURVE_TEXT) ||
	       zmq_setsockopt(socket, ZMQ_CURVE_SECRETKEY, k->secret_key, CURVE_TEXT);
}

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

static int subscribe_topics(const struct subscriber *p, void *socket)
{
	return p->listener.heard ? set_filter(socket, SUBSCRIBE, "")
				 : set_filters(socket, SUBSCRIBE, p->topics, NULL);
}

static void close_sockets(struct endpoint *e)
{
	if (e->socket) {
		zmq_socket_monitor(e->socket, NULL, 0);
		zmq_close(e->socket);
	}
	if (e->monitor)
		zmq_close(e->monitor);
	e->socket = e->monitor = NULL;
	e->established = false;
	e->handshake_ms = 0;
}

static int make_sockets(struct endpoint *e, const struct own_keys *keys)
{
	struct subscriber *p = e->push;
	int r = 0, zero = 0;
	char name[64];

	snprintf(name, sizeof(name), "inproc://monitor-%zu-%u", endpoint_index(e), e->sockets++);
	e->socket = zmq_socket(p->context, ZMQ_XSUB);
	e->monitor = zmq_socket(p->context, ZMQ_PAIR);
	if (!e->socket || !e->monitor ||
		zmq_setsockopt(e->monitor, ZMQ_LINGER, &zero, sizeof(zero)) ||
		set_subscriber_options(e, e->socket) || set_keys(e, e->socket, keys) ||
		subscribe_topics(p, e->socket) ||
		zmq_socket_monitor(e->socket, name, ZMQ_EVENT_ALL) ||
		zmq_connect(e->monitor, name) || zmq_connect(e->socket, e->address)) {
		r = -zmq_errno();
		close_sockets(e);
	}
	return r;
}

static void rebuild_later(struct endpoint *e)
{
	if (e->rebuilding)
		return;
	e->rebuilding = true;
	e->deadline_ms = e->push->sys->now_ms() + e->retry_ms / 2 +
			 sys_random_upto(e->push->sys, e->retry_ms / 2);
	e->retry_ms = e->retry_ms * 2 > e->retry_max_ms ? e->retry_max_ms : e->retry_ms * 2;
}

/* Ends the connection, logs why, and tries again later with a new socket. One cause is one line a
 * minute, whatever its sentence. */
static void give_up_connection(
	struct endpoint *e, enum subscriber_state state, const char *cause, const char *error)
{
	const char *public_key = e->public_key[0] ? e->public_key : NULL;
	unsigned repeated;

	close_sockets(e);
	atomic_store(&e->error, error);
	atomic_store(&e->state, state);
	e->rebuilding = false;
	rebuild_later(e);
	if (state == PUSH_REFUSED)
		count_one(&e->refused);
	if (log_limit_pass(&e->log_limit, e->push->sys->now_ms(), cause, &repeated))
		log_warn(state == PUSH_REFUSED
				 ? "push channel refused: pulls go on by interval"
				 : "push channel not connected: pulls go on by interval",
			"endpoint", e->address, "why", error, "public_key", public_key,
			"secret_key_file", e->secret_key_file, "repeated",
			repeated ? LOG_U64(repeated) : NULL);
}

static int open_sockets(struct endpoint *e)
{
	struct own_keys keys = {0};
	const char *why = e->server_key ? read_own_keys(e, &keys) : NULL;
	int r = 0;

	memcpy(e->public_key, keys.public_key, e->secret_key_file ? sizeof(e->public_key) : 0);
	if (why)
		give_up_connection(e, PUSH_REFUSED, "own key", why);
	else
		r = make_sockets(e, &keys);
	explicit_bzero(&keys, sizeof(keys));
	return r;
}

/* ---- messages ---- */

/* Takes the message's epoch. A new one (the publisher restarted or lost count) makes all topics
 * pull: any message may have been missed. */
static void note_epoch(struct endpoint *e, const struct push_message *m)
{
	bool changed = m->epoch[0] && e->epoch[0] && strcmp(m->epoch, e->epoch) != 0;

	if (!m->epoch[0] || strcmp(m->epoch, e->epoch) == 0)
		return;
	memcpy(e->epoch, m->epoch, sizeof(e->epoch));
	push_topics_forget(e->push->topics, endpoint_index(e));
	if (changed) {
		count_one(&e->epochs);
		push_topics_hint_all(e->push->topics, m->spread_ms);
	}
}

static void update_topic(struct endpoint *e, const char *name, const struct push_message *m)
{
	struct push_topics *t = e->push->topics;

	if (!push_topics_has(t, name))
		return; /* a filter is a prefix: "web" lets "web2" through */
	note_epoch(e, m);
	count_one(&e->messages);
	if (push_topics_update(t, endpoint_index(e), name, m) == PUSH_GAP)
		count_one(&e->gaps);
}

static void set_silence_deadline(struct endpoint *e)
{
	if (e->rebuilding)
		return;
	e->deadline_ms = e->heard_heartbeat
				 ? e->push->sys->now_ms() + SILENT_HEARTBEATS * e->heartbeat_ms
				 : 0;
}

static void handle_message(struct endpoint *e, const char *name, const char *envelope, size_t len)
{
	struct push_message m = {0};
	const struct subscriber_listener *l = &e->push->listener;
	const char *why = NULL;

	if (envelope && push_message_parse(envelope, len, &m, &why)) {
		/* still a hint: dropping it could lose an update */
		count_one(&e->bad);
		log_debug("invalid envelope of a push message: taking the bare topic", "endpoint",
			e->address, "topic", name, "why", why);
	}
	if (strcmp(name, PUSH_HEARTBEAT_TOPIC) == 0) {
		count_one(&e->heartbeats);
		e->heard_heartbeat = true;
		if (!l->heard)
			note_epoch(e, &m);
	} else if (l->heard) {
		count_one(&e->messages);
	} else {
		update_topic(e, name, &m);
	}
	if (l->heard)
		l->heard(l->arg, endpoint_index(e), name, &m);
	atomic_store_explicit(&e->last_message_ms, e->push->sys->now_ms(), memory_order_relaxed);
	if (atomic_load(&e->state) == PUSH_SILENT)
		atomic_store(&e->state, PUSH_CONNECTED);
	set_silence_deadline(e);
}

struct frame { /* NUL-terminated */
	char data[PUSH_MAX_ENVELOPE + 1];
	size_t len; /* larger than the data: too long, and not copied */
};

/* Takes one frame. 1, 0 when there is none, or -errno. */
static int receive_frame(struct endpoint *e, struct frame *ret_frame, bool *ret_more)
{
	zmq_msg_t message;
	int error;

	zmq_msg_init(&message);
	if (zmq_msg_recv(&message, e->socket, ZMQ_DONTWAIT) < 0) {
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
	e->bytes += ret_frame->len;
	if (!*ret_more) {
		peer_guard_delivered(zmq_msg_get(&message, ZMQ_SRCFD), e->bytes, e->server_key);
		e->bytes = 0;
	}
	zmq_msg_close(&message);
	return 1;
}

/* Takes one message. 1, 0 when there is none, or -errno. */
static int receive_message(struct endpoint *e)
{
	struct frame topic, envelope, extra;
	unsigned frames = 1;
	bool more = false;
	int r = receive_frame(e, &topic, &more);

	if (r == 1 && more) {
		frames = 2;
		r = receive_frame(e, &envelope, &more);
	}
	for (; r == 1 && more; frames++)
		r = receive_frame(e, &extra, &more);
	if (r != 1)
		return r;
	if (frames > 2 || topic.len == 0 || topic.len > PUSH_MAX_TOPIC ||
		strlen(topic.data) != topic.len)
		count_one(&e->bad);
	else
		handle_message(e, topic.data, frames == 2 ? envelope.data : NULL,
			frames == 2 ? envelope.len : 0);
	return 1;
}

/* ---- connections ---- */

static void connection_made(struct endpoint *e)
{
	count_one(&e->connects);
	atomic_store(&e->error, NULL);
	atomic_store(&e->state, PUSH_CONNECTED);
	e->established = true;
	e->handshake_ms = 0;
	e->heard_heartbeat = false;
	e->rebuilding = false;
	e->deadline_ms = 0;
	e->retry_ms = e->reconnect_ms;
	log_info("push channel connected", "endpoint", e->address);
	report_missed(e, "connected", 0); /* all that was sent before */
}

static void connection_lost(struct endpoint *e, int fd)
{
	if (peer_guard_take_cut(fd)) {
		count_one(&e->cuts);
		give_up_connection(e, PUSH_CONNECTING, "memory",
			"the publisher sent more than update messages need: over the limit of "
			"memory for it");
		return;
	}
	if (!e->established) { /* no event named a reason: the peer sent no handshake at all */
		give_up_connection(
			e, PUSH_REFUSED, "handshake", "the endpoint is not a ZeroMQ publisher");
		return;
	}
	e->established = false;
	if (atomic_exchange(&e->state, PUSH_CONNECTING) != PUSH_CONNECTING)
		log_warn("push channel lost: reconnecting; pulls go on by interval", "endpoint",
			e->address);
	e->heard_heartbeat = false;
	/* libzmq retries after an orderly end and says so (CONNECT_RETRIED); after a protocol error
	 * it does neither */
	rebuild_later(e);
}

/* libzmq itself tries again: after a connection that ended or failed. */
static void retry_began(struct endpoint *e)
{
	e->rebuilding = false;
	e->deadline_ms = 0;
	if (e->handshake_ms == 0) {
		int refused = PUSH_REFUSED;

		/* the publisher that refused the handshake is gone */
		atomic_store(&e->error, NULL);
		atomic_compare_exchange_strong(&e->state, &refused, PUSH_CONNECTING);
	}
	e->handshake_ms = 0;
}

static void handshake_timed_out(struct endpoint *e)
{
	give_up_connection(e, atomic_load(&e->state) == PUSH_SILENT ? PUSH_SILENT : PUSH_CONNECTING,
		"handshake timeout", "the publisher accepts connections but does not answer");
}

/* The handshake failed, and libzmq gives no reason. */
static void handshake_ended(struct endpoint *e)
{
	if (e->handshake_ms && e->push->sys->now_ms() - e->handshake_ms >= PUSH_HANDSHAKE_MS / 2)
		handshake_timed_out(e);
	else
		give_up_connection(e, PUSH_REFUSED, "handshake",
			e->server_key
				? "the publisher ended the handshake: server_key is not its public "
				  "key, or it does not use CURVE"
				: "the publisher ended the handshake: it wants CURVE (set curve), "
				  "or it is not a ZeroMQ publisher");
}

static void handshake_broken(struct endpoint *e, uint32_t error)
{
	const char *why = "the publisher does not keep to the protocol";

	if (error == ZMQ_PROTOCOL_ERROR_ZMTP_MECHANISM_MISMATCH)
		why = e->server_key ? "the publisher does not use CURVE: give it a secret key, or "
				      "remove curve"
				    : "the publisher does not send plain text: it wants CURVE "
				      "(set curve)";
	else if (error == ZMQ_PROTOCOL_ERROR_ZMTP_CRYPTOGRAPHIC)
		why = "cannot decrypt what the publisher sent: server_key is not its public "
		      "key, or it was changed on the way";
	give_up_connection(e, PUSH_REFUSED, "handshake", why);
}

static void handshake_refused(struct endpoint *e)
{
	give_up_connection(e, PUSH_REFUSED, "list",
		e->secret_key_file ? "the publisher does not allow this agent's key: add it to the "
				     "list there"
				   : "the publisher allows known keys only: set secret_key_file, "
				     "and add its public key to the list there");
}

/* Takes one event of the monitor. 1, 0 when there is none, or -errno. */
static int take_event(struct endpoint *e)
{
	unsigned char frame[6];
	char address[256];
	uint16_t event;
	uint32_t value;

	if (!e->monitor)
		return 0; /* an event before this one closed it */
	if (zmq_recv(e->monitor, frame, sizeof(frame), ZMQ_DONTWAIT) < 0)
		return zmq_errno() == EAGAIN ? 0 : -zmq_errno();
	if (zmq_recv(e->monitor, address, sizeof(address), ZMQ_DONTWAIT) < 0)
		return -zmq_errno();
	memcpy(&event, frame, sizeof(event));
	memcpy(&value, frame + sizeof(event), sizeof(value));
	switch (event) {
	case ZMQ_EVENT_CONNECTED:
		e->handshake_ms = e->push->sys->now_ms();
		break;
	case ZMQ_EVENT_HANDSHAKE_SUCCEEDED:
		connection_made(e);
		break;
	case ZMQ_EVENT_CONNECT_RETRIED:
		retry_began(e);
		break;
	case ZMQ_EVENT_DISCONNECTED:
		connection_lost(e, (int)value);
		break;
	case ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL:
		handshake_ended(e);
		break;
	case ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL:
		handshake_broken(e, value);
		break;
	case ZMQ_EVENT_HANDSHAKE_FAILED_AUTH:
		handshake_refused(e);
		break;
	default:
		break;
	}
	return 1;
}

static void rebuild_sockets(struct endpoint *e)
{
	int r;

	if (e->socket) {
		log_warn("push channel rebuilt: the socket received nothing any more", "endpoint",
			e->address);
		close_sockets(e);
		count_one(&e->rebuilds);
	}
	e->rebuilding = false;
	e->deadline_ms = 0;
	r = open_sockets(e);
	if (r && r != -ETERM)
		give_up_connection(e, (enum subscriber_state)atomic_load(&e->state), "socket",
			"cannot open a socket: the agent has no memory or descriptors left");
}

static void deadline_passed(struct endpoint *e)
{
	e->deadline_ms = 0;
	if (!e->rebuilding) {
		log_warn("push channel silent: pulling, and making a new socket", "endpoint",
			e->address);
		atomic_store(&e->state, PUSH_SILENT);
		e->heard_heartbeat = false;
		/* a publisher that hangs is silent for a whole fleet at the same moment */
		report_missed(e, "no heartbeat",
			e->heartbeat_ms < SILENCE_SPREAD_MS ? e->heartbeat_ms : SILENCE_SPREAD_MS);
	}
	rebuild_sockets(e);
}

/* ---- the thread ---- */

/* Milliseconds until the next deadline, at most a day; -1 = none. */
static long next_deadline(const struct subscriber *p)
{
	uint64_t now_ms = p->sys->now_ms(), left = UINT64_MAX;

	for (size_t i = 0; i < p->endpoint_count; i++) {
		uint64_t due_ms = p->endpoints[i].deadline_ms;

		if (due_ms == 0)
			continue;
		due_ms = due_ms > now_ms ? due_ms - now_ms : 0;
		if (due_ms < left)
			left = due_ms;
	}
	return left == UINT64_MAX ? -1 : left > 86400000 ? 86400000 : (long)left;
}

/* Takes up to TURN messages or events of one socket, or until other topics wait. 0 or -errno. */
static int drain_socket(struct endpoint *e, int (*take)(struct endpoint *e))
{
	int r = 1;

	for (unsigned i = 0; r > 0 && i < TURN; i++)
		r = atomic_load(&e->push->next) ? 0 : take(e);
	return r > 0 ? 0 : r;
}

/* Replaces the topics. A socket whose filters cannot be changed (no memory) is replaced. */
static void take_topics(struct subscriber *p)
{
	struct push_topics *before = p->topics, *next;
	uint64_t n;

	if (read(p->renewed, &n, sizeof(n)) < 0)
		return;
	pthread_mutex_lock(&p->mutex);
	next = atomic_load(&p->next);
	push_topics_follow(next, before);
	p->topics = next;
	for (size_t i = 0; i < p->endpoint_count; i++) {
		struct endpoint *e = &p->endpoints[i];

		if (e->socket && (set_filters(e->socket, SUBSCRIBE, next, before) ||
					 set_filters(e->socket, UNSUBSCRIBE, before, next)))
			give_up_connection(
				e, PUSH_CONNECTING, "socket", "cannot change its subscriptions");
	}
	atomic_store(&p->next, NULL);
	pthread_cond_signal(&p->taken);
	pthread_mutex_unlock(&p->mutex);
	push_topics_free(before);
}

/* Sleeps until a message, an event or a deadline. Checks only the sockets that zmq_poll() named:
 * each check costs system calls, and the loop thread, which a message wakes, may share this core.
 */
static int run_turn(struct subscriber *p)
{
	size_t count = 2 * p->endpoint_count;
	int r = 0;

	for (size_t i = 0; i < p->endpoint_count; i++) {
		struct endpoint *e = &p->endpoints[i];

		/* without a socket, a descriptor that is never ready takes its place */
		p->items[2 * i] =
			(zmq_pollitem_t){.socket = e->socket, .fd = -1, .events = ZMQ_POLLIN};
		p->items[2 * i + 1] =
			(zmq_pollitem_t){.socket = e->monitor, .fd = -1, .events = ZMQ_POLLIN};
	}
	p->items[count] = (zmq_pollitem_t){.socket = p->stop, .events = ZMQ_POLLIN};
	p->items[count + 1] = (zmq_pollitem_t){.fd = p->renewed, .events = ZMQ_POLLIN};
	if (zmq_poll(p->items, (int)count + 2, next_deadline(p)) < 0 && zmq_errno() != EINTR)
		return -zmq_errno();
	if (p->items[count + 1].revents)
		take_topics(p);
	for (size_t i = 0; r == 0 && i < p->endpoint_count; i++) {
		struct endpoint *e = &p->endpoints[i];

		if (p->items[2 * i].revents)
			r = drain_socket(e, receive_message);
		if (r == 0 && p->items[2 * i + 1].revents)
			r = drain_socket(e, take_event);
		if (r == 0 && e->deadline_ms && e->deadline_ms <= p->sys->now_ms())
			deadline_passed(e);
	}
	return r;
}

static void *run_push_thread(void *arg)
{
	struct subscriber *p = arg;
	int r;

	do
		r = run_turn(p);
	while (r == 0);
	if (r != -ETERM)
		log_err("push channel ended: pulls go on by interval", "why", zmq_strerror(-r));
	zmq_close(p->stop);
	p->stop = NULL;
	for (size_t i = 0; i < p->endpoint_count; i++)
		close_sockets(&p->endpoints[i]);
	pthread_mutex_lock(&p->mutex);
	p->ended = true;
	pthread_cond_signal(&p->taken);
	pthread_mutex_unlock(&p->mutex);
	return NULL;
}

/* ---- start, stop, status ---- */

static void release_subscriber(struct subscriber *p)
{
	for (size_t i = 0; p->endpoints && i < p->endpoint_count; i++) {
		close_sockets(&p->endpoints[i]);
		free(p->endpoints[i].address);
		free(p->endpoints[i].server_key);
		free(p->endpoints[i].secret_key_file);
	}
	if (p->stop)
		zmq_close(p->stop);
	if (p->context)
		zmq_ctx_term(p->context);
	if (p->renewed >= 0)
		close(p->renewed);
	pthread_cond_destroy(&p->taken);
	pthread_mutex_destroy(&p->mutex);
	free(p->endpoints);
	push_topics_free(p->topics);
	free(p->items);
	free(p);
}

/* NULL for NULL; NULL with *error set when memory is short. */
static char *copy_text(const char *text, int *error)
{
	char *s = text ? strdup(text) : NULL;

	if (text && !s)
		*error = -ENOMEM;
	return s;
}

static int prepare_endpoint(
	struct subscriber *p, struct endpoint *e, const struct subscriber_endpoint *from)
{
	/* relays are few: no fleet that would reconnect at once */
	bool local = curve_stays_here(from->endpoint) || p->listener.heard;
	int r = 0;

	e->push = p;
	e->address = copy_text(from->endpoint, &r);
	e->server_key = copy_text(from->server_key, &r);
	e->secret_key_file = copy_text(from->secret_key_file, &r);
	e->heartbeat_ms = from->heartbeat_ms;
	e->reconnect_ms = (local ? 100 : 2000) + sys_random_upto(p->sys, local ? 200 : 8000);
	e->retry_ms = e->reconnect_ms;
	e->retry_max_ms = local ? RETRY_MAX_LOCAL_MS : RETRY_MAX_MS;
	if (r)
		return r;
	return e->server_key && !subscriber_has_curve() ? -EOPNOTSUPP : open_sockets(e);
}

static int prepare_subscriber(struct subscriber *p, const struct subscriber_endpoint *endpoints,
	struct push_topic *const *topics, size_t topic_count)
{
	int r = 0;

	p->endpoints = calloc(p->endpoint_count, sizeof(*p->endpoints));
	p->topics = push_topics_new(p->sys, topics, topic_count, p->endpoint_count);
	p->items = calloc(2 * p->endpoint_count + 2, sizeof(*p->items));
	p->context = push_context_new(PEER_GUARD_PUBLISHERS);
	p->stop = p->context ? zmq_socket(p->context, ZMQ_PAIR) : NULL;
	if (!p->endpoints || !p->topics || !p->items || !p->stop)
		return -ENOMEM;
	p->renewed = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (p->renewed < 0)
		return -errno;
	for (size_t i = 0; r == 0 && i < p->endpoint_count; i++)
		r = prepare_endpoint(p, &p->endpoints[i], &endpoints[i]);
	return r;
}

static int start_subscriber(const struct sys *sys, const struct subscriber_endpoint *endpoints,
	size_t endpoint_count, struct push_topic *const *topics, size_t topic_count,
	const struct subscriber_listener *listener, struct subscriber **ret_push)
{
	struct subscriber *p = calloc(1, sizeof(*p));
	sigset_t all, before;
	int r;

	if (!p)
		return -ENOMEM;
	p->sys = sys;
	p->endpoint_count = endpoint_count;
	p->renewed = -1;
	pthread_mutex_init(&p->mutex, NULL);
	pthread_cond_init(&p->taken, NULL);
	p->listener = listener ? *listener : (struct subscriber_listener){NULL};
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all,
		&before); /* libzmq's threads are made here too: signals are the loop's */
	r = prepare_subscriber(p, endpoints, topics, topic_count);
	if (r == 0)
		r = -pthread_create(&p->thread, NULL, run_push_thread, p);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (r) {
		release_subscriber(p);
		return r;
	}
	pthread_setname_np(p->thread, "pullet-push");
	*ret_push = p;
	return 0;
}

int subscriber_start(const struct sys *sys, const struct subscriber_endpoint *endpoints,
	size_t endpoint_count, struct push_topic *const *topics, size_t topic_count,
	struct subscriber **ret_push)
{
	return start_subscriber(
		sys, endpoints, endpoint_count, topics, topic_count, NULL, ret_push);
}

int subscriber_listen(const struct sys *sys, const struct subscriber_endpoint *endpoints,
	size_t endpoint_count, const struct subscriber_listener *listener,
	struct subscriber **ret_push)
{
	return start_subscriber(sys, endpoints, endpoint_count, NULL, 0, listener, ret_push);
}

void subscriber_stop(struct subscriber *p)
{
	if (!p)
		return;
	zmq_ctx_shutdown(p->context); /* every blocking call of the thread returns ETERM */
	pthread_join(p->thread, NULL);
	release_subscriber(p);
}

int subscriber_renew(struct subscriber *p, struct push_topic *const *topics, size_t topic_count)
{
	struct push_topics *next = push_topics_new(p->sys, topics, topic_count, p->endpoint_count);
	const uint64_t one = 1;

	if (!next)
		return -ENOMEM;
	pthread_mutex_lock(&p->mutex);
	atomic_store(&p->next, next);
	if (!p->ended && write(p->renewed, &one, sizeof(one)) < 0)
		abort(); /* it is read before each next write */
	while (!p->ended && atomic_load(&p->next))
		pthread_cond_wait(&p->taken, &p->mutex);
	if (atomic_load(&p->next)) {
		push_topics_free(p->topics);
		p->topics = next;
		atomic_store(&p->next, NULL);
	}
	pthread_mutex_unlock(&p->mutex);
	return 0;
}

size_t subscriber_endpoint_count(const struct subscriber *p)
{
	return p->endpoint_count;
}

void subscriber_get_status(const struct subscriber *p, size_t i, struct subscriber_status *ret)
{
	struct endpoint *e = &p->endpoints[i];

	*ret = (struct subscriber_status){
		.endpoint = e->address,
		.state = (enum subscriber_state)atomic_load(&e->state),
		.error = atomic_load(&e->error),
		.messages = atomic_load_explicit(&e->messages, memory_order_relaxed),
		.heartbeats = atomic_load_explicit(&e->heartbeats, memory_order_relaxed),
		.bad = atomic_load_explicit(&e->bad, memory_order_relaxed),
		.gaps = atomic_load_explicit(&e->gaps, memory_order_relaxed),
		.epochs = atomic_load_explicit(&e->epochs, memory_order_relaxed),
		.connects = atomic_load_explicit(&e->connects, memory_order_relaxed),
		.rebuilds = atomic_load_explicit(&e->rebuilds, memory_order_relaxed),
		.refused = atomic_load_explicit(&e->refused, memory_order_relaxed),
		.cuts = atomic_load_explicit(&e->cuts, memory_order_relaxed),
		.last_message_ms = atomic_load_explicit(&e->last_message_ms, memory_order_relaxed),
	};
}

bool subscriber_has_curve(void)
{
	return zmq_has("curve");
}

int subscriber_make_keys(char ret_public[CURVE_TEXT], char ret_secret[CURVE_TEXT])
{
	return zmq_curve_keypair(ret_public, ret_secret) ? -EOPNOTSUPP : 0;
}

const char *subscriber_version(void)
{
	static char text[32];
	int major, minor, patch;

	zmq_version(&major, &minor, &patch);
	snprintf(text, sizeof(text), "libzmq/%d.%d.%d", major, minor, patch);
	return text;
}
