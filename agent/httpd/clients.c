/*
 * A list of connections, and a tick that closes the slow ones.
 *
 * Surprising: evhttp reports no connection before its first request is whole. This relies on its
 * inside, read in libevent 2.1.12 (http.c, listener.c, bufferevent_sock.c):
 *
 *  - It asks the evhttp_set_bevcb() callback for a bufferevent once for each connection, within the
 *    turn of the loop in which that is accepted, and makes its evhttp_connection the argument of
 *    the bufferevent's callbacks (evhttp_get_request_connection()). Only that shows the difference;
 *    no argument: it had no memory, and has freed both.
 *  - It calls the close callback once, from evhttp_connection_free(), at any end, before
 *    it frees the request.
 *  - While an answer goes out it reads on, without a bound or a reader, and the
 *    end of the client's stream is the end of the answer (evhttp_write_buffer()). So reading is
 *    switched off for that time: it switches it on for the next request (evhttp_start_read_()).
 *    Its own error pages go out without our knowing, and the first line of a chunk has no end for
 *    it; so that is done too when more than a request has come. Not by a high watermark: above it,
 *    a bufferevent calls back in each turn of the loop (bufferevent_inbuf_wm_check()).
 *  - The listener's error callback gets evhttp's argument, not ours (evhttp_bind_listener()), and
 *    without one a failing accept() writes to stderr.
 */
#include "httpd/clients.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <linux/sockios.h>

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/listener.h>

#define TICK_MS 250
#define READ_MS 30000  /* a whole request, from the answer before it, or the connection, on */
#define CROWDED_MS 500 /* the same while others want the place, or when it is busy */
#define WRITE_MS 30000 /* a whole answer, and */
#define WRITE_RATE 32  /* bytes a millisecond for its length */
#define STALL_MS 5000  /* nothing of an answer is read, while others want the room */
#define BUSY_PART 8    /* an eighth of the places: for connections that only get a 503 */

enum phase { READING, THINKING, WRITING };

struct client { /* a connection */
	struct clients *all;
	struct client *next, **link;
	struct bufferevent *fresh; /* a reference, until the connection is known */
	struct evhttp_connection *connection;
	enum phase phase;
	uint64_t since_ms;
	size_t queued; /* bytes of the answer */
	size_t left;   /* of it, and not read by the other end, when that was looked at last */
	uint64_t moved_ms;
	struct peer peer;
	enum share busy; /* not SHARE_ROOM: it gets a 503, and nothing else */
	bool placed;     /* decided: it has a place, or never will */
	bool ended;      /* another connection has its place */
	void (*gone)(void *arg);
	void *gone_arg;
};

struct clients {
	struct loop *loop;
	struct evconnlistener *listener; /* evhttp's; NULL = not yet */
	struct client *first;
	size_t count, max, queued, max_queued;
	const gid_t *operators; /* NULL = there are no shares */
	clients_denied denied;  /* NULL = not counted */
	void *denied_arg;
	bool crowded;       /* no connection is accepted */
	struct event *tick; /* always pending: see not_accepted() */
	bool soon;          /* it is due within TICK_MS */
};

/* Soon, or in a day. */
static void set_tick(struct clients *s, bool soon)
{
	static const struct timeval short_time = {.tv_usec = TICK_MS * 1000},
				    long_time = {.tv_sec = 86400};

	s->soon = soon;
	event_add(s->tick, soon ? &short_time : &long_time);
}

static void enter_phase(struct client *c, enum phase phase, size_t queued)
{
	c->all->queued += queued - c->queued;
	c->queued = queued;
	c->phase = phase;
	c->since_ms = c->moved_ms = loop_now_ms(c->all->loop);
	if (phase != THINKING && !c->all->soon)
		set_tick(c->all, true);
}

/* Looks whether the other end reads: what is left counts with what the kernel holds. */
static void note_progress(struct client *c, uint64_t now_ms)
{
	struct bufferevent *b = evhttp_connection_get_bufferevent(c->connection);
	size_t left = evbuffer_get_length(bufferevent_get_output(b));
	int held = 0;

	if (ioctl(bufferevent_getfd(b), SIOCOUTQ, &held) == 0)
		left += (size_t)held;
	if (left != c->left)
		c->moved_ms = now_ms;
	c->left = left;
}

static bool is_stalled(const struct client *c, uint64_t now_ms)
{
	return c->phase == WRITING && now_ms - c->moved_ms >= STALL_MS;
}

static bool is_late(const struct client *c, uint64_t now_ms)
{
	uint64_t limit_ms = c->phase == THINKING  ? UINT64_MAX
			    : c->busy             ? CROWDED_MS
			    : c->phase == WRITING ? WRITE_MS + c->queued / WRITE_RATE
			    : c->all->crowded     ? CROWDED_MS
						  : READ_MS;

	return now_ms - c->since_ms >= limit_ms || (c->all->crowded && is_stalled(c, now_ms));
}

static void client_free(struct client *c)
{
	c->all->queued -= c->queued;
	c->all->count--;
	*c->link = c->next;
	if (c->next)
		c->next->link = c->link;
	if (c->fresh)
		bufferevent_decref(c->fresh);
	free(c);
}

/* evhttp ends a connection, and frees its request. */
static void connection_closed(struct evhttp_connection *connection, void *arg)
{
	struct client *c = arg;

	(void)connection;
	if (c->gone)
		c->gone(c->gone_arg);
	client_free(c);
}

/* Runs within the turn of the loop that accepted it: no byte can have come in. */
static void adopt_connection(struct client *c)
{
	bufferevent_data_cb read, write;
	bufferevent_event_cb event;
	void *connection;

	bufferevent_getcb(c->fresh, &read, &write, &event, &connection);
	c->connection = connection;
	if (connection)
		evhttp_connection_set_closecb(connection, connection_closed, c);
	bufferevent_decref(c->fresh);
	c->fresh = NULL;
	if (!connection)
		client_free(c);
}

/* ---- shares ---- */

const char *clients_busy(const struct client *c)
{
	switch (c->busy) {
	case SHARE_ROOM:
		return NULL;
	case SHARE_OF_USER:
		return "this user has all the connections that one user may have: end some, or try "
		       "again";
	case SHARE_OF_CLASS:
	case SHARE_OF_ALL:
		break;
	}
	return "other users have all the connections but those that are kept for root: try again "
	       "in a second";
}

static void report_denied(const struct client *c)
{
	if (c->all->denied)
		c->all->denied(c->all->denied_arg, &c->peer);
}

/* Counts connections that have a place (busy false), or that are busy. */
static struct share_held count_held(const struct client *asks, bool busy)
{
	struct share_held held = {0};

	for (const struct client *c = asks->all->first; c; c = c->next)
		if (c != asks && c->placed && !c->ended && busy == (c->busy != SHARE_ROOM))
			share_add(&held, &asks->peer, &c->peer, 1);
	return held;
}

/* Finds the connection that gives its place to c: of the idle ones the lowest right, then the
 * longest idle. */
static struct client *find_idle(const struct client *c, enum share share, uint64_t now_ms)
{
	struct client *found = NULL;

	for (struct client *o = c->all->first; o; o = o->next) {
		bool counts = share == SHARE_OF_USER ? o->peer.uid == c->peer.uid
						     : o->peer.right <= c->peer.right;

		if (!o->placed || o->ended || o->busy || o->phase != READING || !counts ||
			now_ms - o->since_ms < CROWDED_MS)
			continue;
		if (!found || o->peer.right < found->peer.right ||
			(o->peer.right == found->peer.right && o->since_ms < found->since_ms))
			found = o;
	}
	return found;
}

/* Finds the oldest busy connection of the same user without a request. */
static struct client *find_busy(const struct client *c)
{
	struct client *found = NULL;

	for (struct client *o = c->all->first; o; o = o->next)
		if (o != c && o->busy && !o->ended && o->phase == READING &&
			o->peer.uid == c->peer.uid && (!found || o->since_ms < found->since_ms))
			found = o;
	return found;
}

/* Makes it busy; ends one at once if there are no places for busy ones either. */
static void deny_place(struct client *c, enum share share)
{
	struct share_held held = count_held(c, true);
	struct client *old;

	c->busy = share;
	report_denied(c);
	if (share_check(c->all->max / BUSY_PART, &c->peer, &held, 1) == SHARE_ROOM)
		return;
	old = find_busy(c);
	if (old)
		old->ended = true;
	else
		c->ended = true;
}

/* Gives a new connection a place, that of another one, or makes it busy. */
static void assign_place(struct client *c)
{
	uint64_t now_ms = loop_now_ms(c->all->loop);

	peer_identify(&sys_real, clients_fd(c), *c->all->operators, &c->peer);
	while (c->peer.right < RIGHT_OWN) {
		struct share_held held = count_held(c, false);
		enum share share = share_check(c->all->max, &c->peer, &held, 1);
		struct client *idle = share == SHARE_ROOM ? NULL : find_idle(c, share, now_ms);

		if (share != SHARE_ROOM && !idle)
			deny_place(c, share);
		if (!idle)
			break;
		idle->ended = true;
	}
	c->placed = true;
}

/* Answers without a request, as far as the socket takes it without waiting. */
static void send_busy(const struct client *c)
{
	char body[256], text[512];
	int len = snprintf(body, sizeof(body), "{\"error\":\"%s\"}\n", clients_busy(c));

	len = snprintf(text, sizeof(text),
		"HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\n"
		"Content-Length: %d\r\nConnection: close\r\n\r\n%s",
		len, body);
	(void)!send(clients_fd(c), text, (size_t)len, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void end_client(struct client *c)
{
	if (c->busy && c->phase == READING)
		send_busy(c);
	clients_drop(c);
}

/* Drops the client whose answer has stalled for longest. False: none has. */
static bool drop_stalled(struct clients *s)
{
	uint64_t now_ms = loop_now_ms(s->loop);
	struct client *found = NULL;

	for (struct client *c = s->first; c; c = c->next)
		if (is_stalled(c, now_ms) && (!found || c->moved_ms < found->moved_ms))
			found = c;
	if (found)
		clients_drop(found);
	return found;
}

bool clients_may_write(const struct client *c, size_t len)
{
	struct clients *s = c->all;
	struct share_held held = {0};

	while (!s->operators && s->queued && s->queued + len > s->max_queued)
		if (!drop_stalled(s))
			return false;
	if (!s->operators)
		return true;
	for (const struct client *o = s->first; o; o = o->next)
		share_add(&held, &c->peer, &o->peer, o->queued);
	if (share_check(s->max_queued, &c->peer, &held, len) == SHARE_ROOM)
		return true;
	report_denied(c);
	return false;
}

/* ---- the list ---- */

static void accept_more(struct clients *s, bool in)
{
	s->crowded = !in;
	if (in)
		evconnlistener_enable(s->listener);
	else
		evconnlistener_disable(s->listener);
}

/* Takes on new connections, each of which may end others. */
static void take_new_clients(struct clients *s)
{
	for (struct client *c = s->first, *next; c; c = next) {
		next = c->next;
		if (c->fresh)
			adopt_connection(c);
	}
	if (s->operators)
		for (struct client *c = s->first; c; c = c->next)
			if (!c->placed)
				assign_place(c);
	for (struct client *c = s->first, *next; c; c = next) {
		next = c->next;
		if (c->ended)
			end_client(c);
	}
	if (s->crowded && s->count < s->max)
		accept_more(s, true);
}

/* Takes on new connections, and ends the slow ones. */
static void tick_due(evutil_socket_t fd, short events, void *arg)
{
	struct clients *s = arg;
	uint64_t now_ms = loop_now_ms(s->loop);
	bool soon = false;

	(void)fd, (void)events;
	take_new_clients(s);
	for (struct client *c = s->first, *next; c; c = next) {
		next = c->next;
		if (c->phase == WRITING)
			note_progress(c, now_ms);
		if (is_late(c, now_ms))
			end_client(c);
	}
	if (s->crowded && s->count < s->max)
		accept_more(s, true);
	for (const struct client *c = s->first; c && !soon; c = c->next)
		soon = c->phase != THINKING;
	set_tick(s, soon || s->crowded);
}

/* Stops reading beyond any request and one read, in which evhttp finds no end. */
static void input_came(struct evbuffer *input, const struct evbuffer_cb_info *info, void *arg)
{
	(void)info;
	if (evbuffer_get_length(input) >= CLIENTS_INPUT)
		bufferevent_disable(arg, EV_READ);
}

/* Makes the bufferevent of a new connection. NULL: evhttp makes one, which is not ours. */
static struct bufferevent *connection_accepted(struct event_base *base, void *arg)
{
	struct clients *s = arg;
	struct client *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->fresh = bufferevent_socket_new(base, -1, 0);
	if (!c->fresh) {
		free(c);
		return NULL;
	}
	evbuffer_add_cb(bufferevent_get_input(c->fresh), input_came, c->fresh);
	bufferevent_incref(c->fresh);
	c->all = s;
	c->next = s->first;
	c->link = &s->first;
	if (c->next)
		c->next->link = &c->next;
	s->first = c;
	enter_phase(c, READING, 0);
	event_active(s->tick, EV_TIMEOUT, 1);
	if (++s->count >= s->max)
		accept_more(s, false);
	return c->fresh;
}

struct search {
	const struct evconnlistener *listener;
	struct clients *found;
};

static int is_searched_tick(const struct event_base *base, const struct event *e, void *arg)
{
	struct clients *s = event_get_callback_arg(e);
	struct search *search = arg;

	(void)base;
	if (event_get_callback(e) == tick_due && s->listener == search->listener)
		search->found = s;
	return 0; /* go on */
}

/* Pauses accepting: no descriptors are left, most likely. The listener only knows evhttp, so its
 * clients are found by their event in the loop. */
static void accept_failed(struct evconnlistener *listener, void *arg)
{
	struct search search = {.listener = listener};

	(void)arg;
	event_base_foreach_event(evconnlistener_get_base(listener), is_searched_tick, &search);
	if (!search.found)
		return;
	accept_more(search.found, false);
	set_tick(search.found, true);
}

struct clients *clients_new(struct loop *l, struct evhttp *http)
{
	struct clients *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->loop = l;
	s->tick = evtimer_new(loop_base(l), tick_due, s);
	if (!s->tick) {
		free(s);
		errno = ENOMEM;
		return NULL;
	}
	set_tick(s, false);
	evhttp_set_bevcb(http, connection_accepted, s);
	return s;
}

void clients_free(struct clients *s)
{
	if (!s)
		return;
	while (s->first) /* not taken on yet */
		client_free(s->first);
	event_free(s->tick);
	free(s);
}

void clients_limit(struct clients *s, size_t max, size_t max_queued)
{
	s->max = max;
	s->max_queued = max_queued;
}

void clients_share(struct clients *s, const gid_t *operators, clients_denied denied, void *arg)
{
	s->operators = operators;
	s->denied = denied;
	s->denied_arg = arg;
}

void clients_accept(struct clients *s, struct evconnlistener *listener)
{
	s->listener = listener;
	evconnlistener_set_error_cb(listener, accept_failed);
	if (s->crowded)
		evconnlistener_disable(listener);
}

struct client *clients_find(const struct clients *s, struct evhttp_request *request)
{
	const struct evhttp_connection *connection = evhttp_request_get_connection(request);
	struct client *c = s->first;

	while (c && c->connection != connection)
		c = c->next;
	return c;
}

void clients_thinks(struct client *c, void (*gone)(void *arg), void *arg)
{
	c->gone = gone;
	c->gone_arg = arg;
	enter_phase(c, THINKING, 0);
}

void clients_writes(struct client *c, size_t len)
{
	c->gone = NULL;
	enter_phase(c, WRITING, len);
	bufferevent_disable(evhttp_connection_get_bufferevent(c->connection), EV_READ);
}

void clients_reads(struct client *c)
{
	enter_phase(c, READING, 0);
}

void clients_drop(struct client *c)
{
	evhttp_connection_free(c->connection);
}

int clients_fd(const struct client *c)
{
	return bufferevent_getfd(evhttp_connection_get_bufferevent(c->connection));
}
