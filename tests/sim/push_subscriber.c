/*
 * The agent's side of the simulated push channel: subscriber.h without sockets and threads. It is
 * the agent's code and memory: allocations may fail, and the process may end in any call.
 */
#include "push/subscriber.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/push_network.h"

struct endpoint {
	char *address, *server_key, *secret_key_file;
	char public_key[CURVE_TEXT];
	struct session session;
	struct link *link;
};

struct subscriber {
	const struct sys *sys;
	struct push_topics *topics;
	struct subscriber_listener listener;
	struct endpoint *endpoints;
	size_t count;
};

const char *push_subscriber_filter(const struct subscriber *p, size_t i)
{
	if (p->listener.heard)
		return i ? NULL : "";
	return i ? push_topics_name(p->topics, i - 1) : PUSH_HEARTBEAT_TOPIC;
}

bool push_subscriber_wants(const struct subscriber *p, const char *topic)
{
	const char *filter;

	for (size_t i = 0; (filter = push_subscriber_filter(p, i)); i++)
		if (strncmp(topic, filter, strlen(filter)) == 0)
			return true;
	return false;
}

void push_subscriber_open(const struct subscriber *p, struct link *l)
{
	struct session *s = l->session;
	char secret[CURVE_TEXT];
	const char *why;

	if (s->at.server_key && s->at.secret_key_file &&
		curve_read_secret(p->sys, s->at.secret_key_file, secret, &why)) {
		session_refuse_key(s, why, p->sys->now_ms());
		push_link_arm(l);
		return;
	}
	push_link_open(l);
}

/* NULL for NULL; NULL with *error set when memory is short. */
static char *copy_endpoint_text(const char *text, int *error)
{
	char *s = text ? strdup(text) : NULL;

	if (text && !s)
		*error = -ENOMEM;
	return s;
}

static int start_endpoint(
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
					  .public_key = e->public_key,
					  .number = (size_t)(e - p->endpoints),
					  .listener = &p->listener,
					  .topics = p->topics,
				  });
	e->link = push_link_new(&e->session, p, e->address);
	push_subscriber_open(p, e->link);
	return 0;
}

static int start_simulated(const struct sys *sys, const struct subscriber_endpoint *endpoints,
	size_t count, struct push_topic *const *topics, size_t topic_count,
	const struct subscriber_listener *listener, struct subscriber **ret_push)
{
	struct subscriber *p = calloc(1, sizeof(*p));
	int r = 0;

	if (!p)
		return -ENOMEM;
	p->sys = sys;
	p->listener = listener ? *listener : (struct subscriber_listener){NULL};
	p->endpoints = calloc(count, sizeof(*p->endpoints));
	p->count = p->endpoints ? count : 0;
	p->topics = push_topics_new(sys, topics, topic_count, count);
	if (!p->endpoints || !p->topics)
		r = -ENOMEM;
	for (size_t i = 0; r == 0 && i < count; i++)
		r = start_endpoint(p, &p->endpoints[i], &endpoints[i]);
	if (r)
		subscriber_stop(p);
	else
		*ret_push = p;
	return r;
}

int subscriber_start(const struct sys *sys, const struct subscriber_endpoint *endpoints,
	size_t count, struct push_topic *const *topics, size_t topic_count,
	struct subscriber **ret_push)
{
	return start_simulated(sys, endpoints, count, topics, topic_count, NULL, ret_push);
}

int subscriber_listen(const struct sys *sys, const struct subscriber_endpoint *endpoints,
	size_t count, const struct subscriber_listener *listener, struct subscriber **ret_push)
{
	return start_simulated(sys, endpoints, count, NULL, 0, listener, ret_push);
}

void subscriber_stop(struct subscriber *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < p->count; i++) {
		struct endpoint *e = &p->endpoints[i];

		if (e->link)
			push_link_free(e->link);
		free(e->address);
		free(e->server_key);
		free(e->secret_key_file);
	}
	free(p->endpoints);
	push_topics_free(p->topics);
	free(p);
}

static void renew_endpoint(struct subscriber *p, struct endpoint *e, struct push_topics *next)
{
	session_set_topics(&e->session, next);
	if (e->link->state == LINK_CLOSED || !push_strikes(push_network->faults.refuse))
		return;
	if (session_note(&e->session, SESSION_NO_FILTER, p->sys->now_ms()) == SESSION_CLOSE)
		push_link_close(e->link);
	push_link_arm(e->link);
}

int subscriber_renew(struct subscriber *p, struct push_topic *const *topics, size_t topic_count)
{
	struct push_topics *next = push_topics_new(p->sys, topics, topic_count, p->count);
	struct push_topics *before = p->topics;

	if (!next)
		return -ENOMEM;
	push_topics_follow(next, before);
	p->topics = next;
	for (size_t i = 0; i < p->count; i++)
		renew_endpoint(p, &p->endpoints[i], next);
	push_topics_free(before);
	return 0;
}

size_t subscriber_endpoint_count(const struct subscriber *p)
{
	return p->count;
}

void subscriber_get_status(const struct subscriber *p, size_t i, struct subscriber_status *ret)
{
	session_get_status(&p->endpoints[i].session, ret);
}

bool subscriber_has_curve(void)
{
	return true;
}

int subscriber_make_keys(char ret_public[CURVE_TEXT], char ret_secret[CURVE_TEXT])
{
	(void)ret_public;
	(void)ret_secret;
	return -EOPNOTSUPP;
}

const char *subscriber_version(void)
{
	return "simulated";
}
