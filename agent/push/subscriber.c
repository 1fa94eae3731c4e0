/*
 * The push thread. All sockets are made before the thread starts or by the thread itself, in one
 * context that lives as long as the channel. Surprising: with many messages it changes between
 * sockets after a few, so that no publisher keeps the others waiting.
 */
#include "push/subscriber.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <zmq.h>

#include "base/log.h"
#include "push/context.h"
#include "push/peer_guard.h"
#include "push/session.h"
#include "push/sockets.h"

#define TURN 64 /* messages or events of one socket, then the next has its turn */

struct endpoint {
	char *address, *server_key, *secret_key_file;
	struct session session;
	struct push_sockets sockets;
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

/* A listener gets all topics. */
static int open_sockets(const struct subscriber *p, struct endpoint *e)
{
	return push_sockets_open(&e->sockets, p->listener.heard ? NULL : p->topics);
}

static void rebuild_sockets(const struct subscriber *p, struct endpoint *e)
{
	int r;

	push_sockets_close(&e->sockets);
	r = open_sockets(p, e);
	if (r && r != -ETERM)
		session_note(&e->session, SESSION_NO_SOCKET, p->sys->now_ms());
}

/* ---- the thread ---- */

/* Milliseconds until the next deadline, at most a day; -1 = none. */
static long next_deadline(const struct subscriber *p)
{
	uint64_t now_ms = p->sys->now_ms(), left = UINT64_MAX;

	for (size_t i = 0; i < p->endpoint_count; i++) {
		uint64_t due_ms = session_deadline_ms(&p->endpoints[i].session);

		if (due_ms == 0)
			continue;
		due_ms = due_ms > now_ms ? due_ms - now_ms : 0;
		if (due_ms < left)
			left = due_ms;
	}
	return left == UINT64_MAX ? -1 : left > 86400000 ? 86400000 : (long)left;
}

/* Takes up to TURN messages or events of one socket, or until other topics wait. 0 or -errno. */
static int drain_socket(
	const struct subscriber *p, struct push_sockets *s, int (*take)(struct push_sockets *s))
{
	int r = 1;

	for (unsigned i = 0; r > 0 && i < TURN; i++)
		r = atomic_load(&p->next) ? 0 : take(s);
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
		session_set_topics(&p->endpoints[i].session, next);
		push_sockets_follow(&p->endpoints[i].sockets, before, next);
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
		const struct push_sockets *at = &p->endpoints[i].sockets;

		/* without a socket, a descriptor that is never ready takes its place */
		p->items[2 * i] =
			(zmq_pollitem_t){.socket = at->socket, .fd = -1, .events = ZMQ_POLLIN};
		p->items[2 * i + 1] =
			(zmq_pollitem_t){.socket = at->monitor, .fd = -1, .events = ZMQ_POLLIN};
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
			r = drain_socket(p, &e->sockets, push_sockets_take_message);
		if (r == 0 && p->items[2 * i + 1].revents)
			r = drain_socket(p, &e->sockets, push_sockets_take_event);
		if (r == 0 && session_due(&e->session, p->sys->now_ms()) == SESSION_REBUILD)
			rebuild_sockets(p, e);
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
	for (size_t i = 0; i < p->endpoint_count; i++)
		session_end(&p->endpoints[i].session);
	if (r != -ETERM)
		log_err(p->listener.relays ? "upstreams ended: restart the relay"
					   : "push channel ended: pulls go on by interval",
			"why", zmq_strerror(-r));
	zmq_close(p->stop);
	p->stop = NULL;
	for (size_t i = 0; i < p->endpoint_count; i++)
		push_sockets_close(&p->endpoints[i].sockets);
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
		push_sockets_close(&p->endpoints[i].sockets);
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
static char *copy_endpoint_text(const char *text, int *error)
{
	char *s = text ? strdup(text) : NULL;

	if (text && !s)
		*error = -ENOMEM;
	return s;
}

static int prepare_endpoint(
	struct subscriber *p, struct endpoint *e, const struct subscriber_endpoint *from)
{
	struct subscriber_endpoint at = {.heartbeat_ms = from->heartbeat_ms};
	int r = 0;

	at.endpoint = e->address = copy_endpoint_text(from->endpoint, &r);
	at.server_key = e->server_key = copy_endpoint_text(from->server_key, &r);
	at.secret_key_file = e->secret_key_file = copy_endpoint_text(from->secret_key_file, &r);
	if (r)
		return r;
	session_init(&e->session, &(struct session_setup){
					  .sys = p->sys,
					  .at = &at,
					  .public_key = e->sockets.public_key,
					  .number = (size_t)(e - p->endpoints),
					  .listener = &p->listener,
					  .topics = p->topics,
				  });
	push_sockets_init(&e->sockets, p->context, &e->session);
	return e->server_key && !subscriber_has_curve() ? -EOPNOTSUPP : open_sockets(p, e);
}

static int prepare_subscriber(struct subscriber *p, const struct subscriber_endpoint *endpoints,
	struct push_topic *const *topics, size_t topic_count)
{
	int r = push_context_try();

	if (r)
		return r;
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
	session_get_status(&p->endpoints[i].session, ret);
}

bool subscriber_has_curve(void)
{
	return zmq_has("curve");
}

int subscriber_make_keys(char ret_public[CURVE_TEXT], char ret_secret[CURVE_TEXT])
{
	int r;

	do /* a configuration takes ${ for a variable: one pair in some 200 */
		r = zmq_curve_keypair(ret_public, ret_secret) ? -EOPNOTSUPP : 0;
	while (r == 0 && strstr(ret_public, "${"));
	return r;
}

const char *subscriber_version(void)
{
	static char text[32];
	int major, minor, patch;

	zmq_version(&major, &minor, &patch);
	snprintf(text, sizeof(text), "libzmq/%d.%d.%d", major, minor, patch);
	return text;
}
