/*
 * One connection after the other of one endpoint, as libzmq makes them, and the session that hears
 * of them. Surprising: a call into a session may not come back, when the agent's process ends in
 * it; the link is forgotten then, which its serial shows.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/push_network.h"
#include "tests/sim/world.h"

#define CONNECT_TIMEOUT_US 5000000u
#define MAX_DOUBLINGS 16

enum moment {
	AT_ATTEMPT,
	AT_ANSWER,
	AT_NO_ANSWER,
	AT_GREETING, /* the push thread takes the event */
	AT_SUBSCRIPTION,
	AT_END,
	AT_DEAF
};

static const char *const event_names[SESSION_EVENTS] = {
	[SESSION_CONNECTED] = "connected",
	[SESSION_GREETED] = "greeted",
	[SESSION_RETRIED] = "retried",
	[SESSION_ENDED] = "ended",
	[SESSION_CUT] = "cut",
	[SESSION_UNANSWERED] = "unanswered",
	[SESSION_REJECTED] = "rejected",
	[SESSION_MISMATCHED] = "mismatched",
	[SESSION_UNDECIPHERED] = "undeciphered",
	[SESSION_BROKEN] = "broken",
	[SESSION_DENIED] = "denied",
	[SESSION_NO_PUBLISHER] = "no publisher",
	[SESSION_UNREACHABLE] = "unreachable",
	[SESSION_NO_SOCKET] = "no socket",
	[SESSION_NO_FILTER] = "no filter",
};

static size_t link_number(const struct link *l)
{
	return (size_t)(l - push_network->links);
}

/* ---- calls into the session ---- */

struct session_call {
	struct link *link;
	enum session_event event;
	const struct letter *letter; /* NULL: the event, or, where that is SESSION_EVENTS, the
					deadline */
};

static void hear_letter(struct session *s, const struct letter *letter)
{
	const struct session_message m = {.topic = letter->topic,
		.envelope = letter->bare ? NULL : letter->envelope,
		.topic_len = letter->topic_len,
		.envelope_len = letter->bare ? 0 : letter->envelope_len,
		.has_more = letter->has_more};

	session_hear(s, &m, world_now_ms());
}

static void rebuild_link(struct link *l)
{
	push_network->totals.rebuilds++;
	push_link_close(l);
	if (push_strikes(push_network->faults.refuse))
		session_note(l->session, SESSION_NO_SOCKET, world_now_ms());
	else
		push_subscriber_open(l->subscriber, l);
}

static void call_session(void *arg)
{
	const struct session_call *call = arg;
	struct link *l = call->link;

	if (call->letter)
		hear_letter(l->session, call->letter);
	else if (call->event == SESSION_EVENTS &&
		 session_due(l->session, world_now_ms()) == SESSION_REBUILD)
		rebuild_link(l);
	else if (call->event != SESSION_EVENTS &&
		 session_note(l->session, call->event, world_now_ms()) == SESSION_CLOSE)
		push_link_close(l);
	push_link_arm(l);
}

/* False: the link is closed or forgotten since. */
static bool enter_session(struct link *l, enum session_event event, const struct letter *letter)
{
	struct session_call call = {l, event, letter};
	uint32_t serial = l->serial;

	if (event != SESSION_EVENTS)
		world_trace("push: %zu %s", link_number(l), event_names[event]);
	if (l->relay || !push_network->around.run)
		call_session(&call);
	else
		push_network->around.run(l->host, call_session, &call);
	return l->serial == serial;
}

void push_link_hear(struct link *l, const struct letter *letter)
{
	if (strcmp(letter->topic, PUSH_HEARTBEAT_TOPIC) != 0)
		world_trace(
			"push: %zu hears %s %s", link_number(l), letter->topic, letter->m.version);
	enter_session(l, SESSION_EVENTS, letter);
}

bool push_link_sleeps(const struct link *l, uint64_t *ret_until_us)
{
	if (l->state == LINK_UNUSED || l->relay || !push_network->around.asleep_until_us)
		return false;
	*ret_until_us = push_network->around.asleep_until_us(l->host);
	return *ret_until_us > world.now_us;
}

static void deadline_comes(void *arg, uint64_t timer)
{
	struct link *l = arg;
	uint64_t until_us;

	if (l->state == LINK_UNUSED || l->timer != timer)
		return;
	if (push_link_sleeps(l, &until_us)) {
		world_at(until_us, deadline_comes, l, timer);
		return;
	}
	l->armed_ms = 0;
	enter_session(l, SESSION_EVENTS, NULL);
}

void push_link_arm(struct link *l)
{
	uint64_t due_ms = session_deadline_ms(l->session);

	if (due_ms == 0 || (l->armed_ms && l->armed_ms <= due_ms))
		return; /* a deadline that was put off is armed again when it comes */
	l->armed_ms = due_ms;
	world_at(due_ms * 1000, deadline_comes, l, ++l->timer);
}

/* ---- connections ---- */

static void moment_comes(void *arg, uint64_t number);

static void link_at(struct link *l, uint64_t delay_us, enum moment moment)
{
	world_at(world.now_us + delay_us, moment_comes, l, (uint64_t)l->serial << 32 | moment);
}

static void set_link_state(struct link *l, enum link_state state)
{
	l->serial++; /* all that is under way for it is lost */
	l->state = state;
	l->to = NULL;
	l->greets_late = false;
	l->last_due_us = 0;
}

static void attempt_later(struct link *l)
{
	uint64_t pause_ms = l->session->reconnect_ms;

	for (unsigned i = 0; i < l->attempts && pause_ms < l->session->retry_max_ms; i++)
		pause_ms *= 2;
	if (pause_ms > l->session->retry_max_ms)
		pause_ms = l->session->retry_max_ms;
	l->attempts += l->attempts < MAX_DOUBLINGS;
	link_at(l, 1000 * (pause_ms + world_random(STREAM_NETWORK, l->session->reconnect_ms)),
		AT_ATTEMPT);
}

static void attempt_connection(struct link *l)
{
	struct push_publisher *p = push_find_publisher(l->endpoint);

	if (p && !push_reaches(l->host, p->host)) {
		if (enter_session(l, SESSION_RETRIED, NULL))
			link_at(l, CONNECT_TIMEOUT_US, AT_ATTEMPT);
	} else if (!p || !p->runs) {
		if (enter_session(l, SESSION_RETRIED, NULL))
			attempt_later(l);
	} else {
		l->state = LINK_GREETING;
		l->to = p;
		if (enter_session(l, SESSION_CONNECTED, NULL))
			link_at(l, 2 * push_delay_us(), AT_ANSWER);
	}
}

static void fail_handshake(struct link *l)
{
	static const enum session_event failures[] = {SESSION_REJECTED, SESSION_MISMATCHED,
		SESSION_UNDECIPHERED, SESSION_BROKEN, SESSION_DENIED, SESSION_ENDED};
	size_t count = sizeof(failures) / sizeof(failures[0]);
	size_t which = world_random(STREAM_PUSH, count + 1);

	push_network->totals.refusals++;
	if (which < count) {
		enter_session(l, failures[which], NULL);
	} else if (which == count) {
		link_at(l, 1000 * PUSH_HANDSHAKE_MS, AT_NO_ANSWER);
	} else { /* the publisher hung up first: no reason, and a retry */
		set_link_state(l, LINK_DIALING);
		if (enter_session(l, SESSION_RETRIED, NULL))
			attempt_later(l);
	}
}

/* False: the link is closed or forgotten since. */
static bool pass_greeting(struct link *l)
{
	if (!l->greets_late)
		return true;
	l->greets_late = false;
	return enter_session(l, SESSION_GREETED, NULL);
}

static void greeting_passes(struct link *l)
{
	pass_greeting(l);
}

static void finish_handshake(struct link *l)
{
	push_network->totals.handshakes++;
	if (!push_reaches(l->host, l->to->host)) {
		link_at(l, 1000 * PUSH_HANDSHAKE_MS, AT_NO_ANSWER);
		return;
	}
	if (push_strikes(push_network->faults.refuse)) {
		fail_handshake(l);
		return;
	}
	l->state = LINK_UP;
	l->attempts = 0;
	l->subscribed_us = UINT64_MAX;
	link_at(l, push_delay_us(), AT_SUBSCRIPTION);
	l->greets_late = true;
	if (push_strikes(push_network->faults.delay)) /* messages may be taken before */
		link_at(l, 1000 * world_random(STREAM_PUSH, push_network->faults.delay_ms),
			AT_GREETING);
	else
		pass_greeting(l);
}

static void subscription_arrives(struct link *l)
{
	l->subscribed_us = world.now_us;
	push_relay_join(l->to, l);
}

static void end_connection(struct link *l)
{
	enum session_event event = l->state == LINK_GREETING ? SESSION_REJECTED : SESSION_ENDED;

	if (!pass_greeting(l))
		return;
	push_network->totals.cuts++;
	set_link_state(l, LINK_DIALING);
	if (enter_session(l, event, NULL) && enter_session(l, SESSION_RETRIED, NULL))
		attempt_later(l);
}

/* What is in the queue of the socket is taken still. */
static void end_connection_deaf(struct link *l)
{
	if (!pass_greeting(l))
		return;
	push_network->totals.deaf++;
	l->state = LINK_DEAF;
	enter_session(l, world_once_in(STREAM_PUSH, 4) ? SESSION_CUT : SESSION_ENDED, NULL);
}

static void moment_comes(void *arg, uint64_t number)
{
	static void (*const takes[])(struct link * l) = {
		[AT_ATTEMPT] = attempt_connection,
		[AT_ANSWER] = finish_handshake,
		[AT_GREETING] = greeting_passes,
		[AT_SUBSCRIPTION] = subscription_arrives,
		[AT_END] = end_connection,
		[AT_DEAF] = end_connection_deaf,
	};
	enum moment moment = (enum moment)(uint32_t)number;
	struct link *l = arg;
	uint64_t until_us;

	if (l->state == LINK_UNUSED || l->serial != number >> 32)
		return;
	if (l->state == LINK_DEAF)
		return; /* all of it was for the connection that ended */
	if (push_link_sleeps(l, &until_us))
		world_at(until_us, moment_comes, l, number);
	else if (moment == AT_NO_ANSWER)
		enter_session(l, SESSION_REJECTED, NULL);
	else
		takes[moment](l);
}

void push_link_end(struct link *l)
{
	if (l->state == LINK_UP || l->state == LINK_GREETING)
		link_at(l, push_delay_us(), AT_END);
}

void push_link_deafen(struct link *l)
{
	if (l->state == LINK_UP)
		link_at(l, push_delay_us(), AT_DEAF);
}

void push_link_mute(struct link *l)
{
	if (l->state != LINK_UP)
		return;
	push_network->totals.mute++;
	world_trace("push: %zu mute", link_number(l));
	l->state = LINK_MUTE;
	link_at(l, 1000 * PUSH_MUTE_MS, AT_END);
}

/* ---- sockets ---- */

struct link *push_link_new(
	struct session *session, const struct subscriber *subscriber, const char *endpoint)
{
	struct push_network *n = push_network;
	size_t i = 0;
	struct link *l;

	while (i < n->link_count && n->links[i].state != LINK_UNUSED)
		i++;
	if (i == PUSH_MAX_LINKS)
		abort();
	l = &n->links[i];
	n->link_count += i == n->link_count;
	l->session = session;
	l->subscriber = subscriber;
	l->relay = n->starting;
	l->host = n->starting ? n->starting->host : n->host;
	l->attempts = 0;
	l->armed_ms = 0;
	snprintf(l->endpoint, sizeof(l->endpoint), "%s", endpoint);
	set_link_state(l, LINK_CLOSED);
	return l;
}

void push_link_free(struct link *l)
{
	l->timer++;
	set_link_state(l, LINK_UNUSED);
}

void push_link_open(struct link *l)
{
	set_link_state(l, LINK_DIALING);
	l->attempts = 0;
	link_at(l, push_delay_us(), AT_ATTEMPT);
}

void push_link_close(struct link *l)
{
	set_link_state(l, LINK_CLOSED);
}
