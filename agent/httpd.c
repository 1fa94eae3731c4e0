/*
 * libevent's evhttp behind one handler.
 *
 * Surprising: evhttp answers HEAD and methods it does not know by itself only in part, and it frees
 * a request whose client went away; both are put right here, so that the handler sees one request
 * and gives one answer. It knows no bound for clients, nor one for how long a request or an answer
 * may take altogether. So every connection gets its bufferevent from us, which is how we hear of
 * it, and is in a list here. Whose connection it is evhttp tells nobody before the first request:
 * it is the argument of the bufferevent's callbacks.
 */
#include "httpd.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <unistd.h>

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/keyvalq_struct.h>
#include <event2/listener.h>

#include "../lib/buffer.h"
#include "listen.h"

#define MAX_BODY 4096
#define MAX_HEADERS 8192
#define BACKLOG 128
#define TICK_MS 250
#define READ_MS 30000  /* a whole request, from the answer before it, or the connection, on */
#define CROWDED_MS 500 /* the same while no more clients are let in */
#define WRITE_MS 30000 /* a whole answer, and */
#define WRITE_RATE 32  /* bytes a millisecond for its length */

struct client { /* a connection */
	struct httpd *httpd;
	struct client *next, **link;
	struct bufferevent *fresh; /* a reference, until the connection is known */
	struct evhttp_connection *connection;
	struct httpd_request *request; /* that waits for its answer */
	enum { READING, THINKING, WRITING } phase;
	uint64_t since_ms;
	size_t queued; /* bytes of the answer */
};

struct httpd {
	struct loop *loop;
	struct evhttp *http;
	struct evconnlistener *listener; /* evhttp's */
	httpd_handler handle;
	void *arg;
	int port;
	char *path; /* of a Unix socket */
	struct httpd_request *open;
	struct client *clients;
	size_t client_count, max_clients, queued, max_queued;
	bool crowded;       /* nobody is let in */
	struct event *tick; /* always pending: see not_accepted() */
};

struct httpd_request {
	struct httpd *httpd;
	struct httpd_request *next, **link;
	struct evhttp_request *request;
	struct client *client;
	char *path;
	struct evkeyvalq query;
	void (*gone)(void *arg);
	void *gone_arg;
	struct event *closed;
};

/* ---- clients ---- */

static void enter(struct client *c, int phase, size_t queued)
{
	c->httpd->queued += queued - c->queued;
	c->queued = queued;
	c->phase = phase;
	c->since_ms = loop_now_ms(c->httpd->loop);
}

static bool is_late(const struct client *c, uint64_t now_ms)
{
	uint64_t limit_ms = c->phase == THINKING  ? UINT64_MAX
			    : c->phase == WRITING ? WRITE_MS + c->queued / WRITE_RATE
			    : c->httpd->crowded   ? CROWDED_MS
						  : READ_MS;

	return now_ms - c->since_ms >= limit_ms;
}

static void client_free(struct client *c)
{
	c->httpd->queued -= c->queued;
	c->httpd->client_count--;
	*c->link = c->next;
	if (c->next)
		c->next->link = c->link;
	if (c->fresh)
		bufferevent_decref(c->fresh);
	free(c);
}

static void release(struct httpd_request *r);

/* evhttp ends a connection, and frees its request; because we or the client want it. */
static void connection_closed(struct evhttp_connection *connection, void *arg)
{
	struct client *c = arg;
	struct httpd_request *r = c->request;

	(void)connection;
	if (r && r->gone)
		r->gone(r->gone_arg);
	if (r)
		release(r);
	client_free(c);
}

/* Within the turn of the loop in which it was accepted: nothing can have come in. */
static void adopt(struct client *c)
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
	if (!connection) /* evhttp had no memory for it */
		client_free(c);
}

static void let_in(struct httpd *h, bool in)
{
	h->crowded = !in;
	if (in)
		evconnlistener_enable(h->listener);
	else
		evconnlistener_disable(h->listener);
}

/* Soon, or as good as never. */
static void set_tick(struct httpd *h, bool soon)
{
	static const struct timeval short_time = {.tv_usec = TICK_MS * 1000},
				    long_time = {.tv_sec = 86400};

	event_add(h->tick, soon ? &short_time : &long_time);
}

/* Takes on the new ones, shows the slow ones out. */
static void tick(evutil_socket_t fd, short events, void *arg)
{
	struct httpd *h = arg;
	uint64_t now_ms = loop_now_ms(h->loop);

	(void)fd, (void)events;
	for (struct client *c = h->clients, *next; c; c = next) {
		next = c->next;
		if (c->fresh)
			adopt(c);
		else if (is_late(c, now_ms))
			evhttp_connection_free(c->connection);
	}
	if (h->crowded && h->client_count < h->max_clients)
		let_in(h, true);
	set_tick(h, h->clients || h->crowded);
}

/* evhttp wants a bufferevent for a new connection. NULL: it makes one, which is not ours. */
static struct bufferevent *accepted(struct event_base *base, void *arg)
{
	struct httpd *h = arg;
	struct client *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->fresh = bufferevent_socket_new(base, -1, 0);
	if (!c->fresh) {
		free(c);
		return NULL;
	}
	bufferevent_incref(c->fresh);
	c->httpd = h;
	c->next = h->clients;
	c->link = &h->clients;
	if (c->next)
		c->next->link = &c->next;
	h->clients = c;
	enter(c, READING, 0);
	event_active(h->tick, EV_TIMEOUT, 1);
	if (++h->client_count >= h->max_clients)
		let_in(h, false);
	return c->fresh;
}

struct search {
	const struct evconnlistener *listener;
	struct httpd *found;
};

static int is_it(const struct event_base *base, const struct event *e, void *arg)
{
	struct httpd *h = event_get_callback_arg(e);
	struct search *s = arg;

	(void)base;
	if (event_get_callback(e) == tick && h->listener == s->listener)
		s->found = h;
	return s->found != NULL;
}

/* No descriptors are left, most likely: the line waits. The listener belongs to evhttp and only
 * knows that, so that its httpd is found by the event that it has in the loop. */
static void not_accepted(struct evconnlistener *listener, void *arg)
{
	struct search s = {.listener = listener};

	(void)arg;
	event_base_foreach_event(evconnlistener_get_base(listener), is_it, &s);
	if (!s.found)
		return;
	let_in(s.found, false);
	set_tick(s.found, true);
}

static struct client *client_of(const struct httpd *h, struct evhttp_request *request)
{
	const struct evhttp_connection *connection = evhttp_request_get_connection(request);
	struct client *c = h->clients;

	while (c && c->connection != connection)
		c = c->next;
	return c;
}

/* ---- requests that come ---- */

static void release(struct httpd_request *r)
{
	r->client->request = NULL;
	if (r->closed)
		event_free(r->closed);
	*r->link = r->next;
	if (r->next)
		r->next->link = r->link;
	evhttp_clear_headers(&r->query);
	free(r->path);
	free(r);
}

/* The whole answer is out. */
static void answered(struct evhttp_request *request, void *arg)
{
	struct client *c = client_of(arg, request);

	if (c)
		enter(c, READING, 0);
}

static bool takes(enum evhttp_cmd_type method)
{
	return method == EVHTTP_REQ_GET || method == EVHTTP_REQ_HEAD || method == EVHTTP_REQ_POST;
}

/* A parameter may come without a value, as "verbose": evhttp wants its "=". 0 or -1. */
static int parse_query(const char *query, struct evkeyvalq *ret_query)
{
	struct buffer text;
	int r = 0;

	buffer_init(&text, 2 * MAX_HEADERS);
	while (*query) {
		size_t len = strcspn(query, "&");

		buffer_append(&text, query, len);
		if (len && !memchr(query, '=', len))
			buffer_append_string(&text, "=");
		if (len && query[len])
			buffer_append_string(&text, "&");
		query += query[len] ? len + 1 : len;
	}
	if (text.len)
		r = text.error ? -1 : evhttp_parse_query_str(text.data, ret_query);
	buffer_fini(&text);
	return r;
}

static void received(struct evhttp_request *request, void *arg)
{
	struct httpd *h = arg;
	const struct evhttp_uri *uri = evhttp_request_get_evhttp_uri(request);
	const char *path = uri ? evhttp_uri_get_path(uri) : NULL,
		   *query = uri ? evhttp_uri_get_query(uri) : NULL;
	struct httpd_request *r = calloc(1, sizeof(*r));
	struct client *c = client_of(h, request);
	size_t len = 0;

	evhttp_request_set_on_complete_cb(request, answered, h);
	if (!r || !c) {
		free(r);
		evhttp_send_error(request, HTTP_SERVUNAVAIL, NULL);
		return;
	}
	if (!takes(evhttp_request_get_command(request))) {
		free(r);
		evhttp_add_header(
			evhttp_request_get_output_headers(request), "Allow", "GET, HEAD, POST");
		evhttp_send_reply(request, HTTP_BADMETHOD, "Method Not Allowed", NULL);
		return;
	}
	TAILQ_INIT(&r->query);
	r->path = path ? evhttp_uridecode(path, 0, &len) : NULL;
	if (!r->path || r->path[0] != '/' || strlen(r->path) != len ||
		(query && parse_query(query, &r->query))) {
		evhttp_clear_headers(&r->query);
		free(r->path);
		free(r);
		evhttp_send_error(request, HTTP_BADREQUEST, NULL);
		return;
	}
	r->httpd = h;
	r->request = request;
	r->client = c;
	c->request = r;
	enter(c, THINKING, 0);
	r->next = h->open;
	r->link = &h->open;
	if (r->next)
		r->next->link = &r->next;
	h->open = r;
	h->handle(h->arg, r);
}

/* ---- listening ---- */

static struct httpd *httpd_new(struct loop *l, httpd_handler handle, void *arg)
{
	struct httpd *h = calloc(1, sizeof(*h));

	if (!h)
		return NULL;
	h->loop = l;
	h->http = evhttp_new(loop_base(l));
	h->tick = evtimer_new(loop_base(l), tick, h);
	h->handle = handle;
	h->arg = arg;
	h->max_clients = HTTPD_CLIENTS;
	h->max_queued = HTTPD_QUEUED;
	if (!h->http || !h->tick) {
		if (h->http)
			evhttp_free(h->http);
		if (h->tick)
			event_free(h->tick);
		free(h);
		errno = ENOMEM;
		return NULL;
	}
	set_tick(h, false);
	evhttp_set_allowed_methods(h->http, UINT16_MAX);
	evhttp_set_max_body_size(h->http, MAX_BODY);
	evhttp_set_max_headers_size(h->http, MAX_HEADERS);
	evhttp_set_timeout(h->http, READ_MS / 1000);
	evhttp_set_bevcb(h->http, accepted, h);
	evhttp_set_gencb(h->http, received, h);
	return h;
}

/* Takes fd, which is bound. */
static struct httpd *serve(struct loop *l, int fd, httpd_handler handle, void *arg)
{
	struct evconnlistener *listener;
	struct httpd *h = NULL;

	listener = evconnlistener_new(loop_base(l), NULL, NULL,
		LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC, BACKLOG, fd);
	if (!listener) {
		close(fd);
		errno = EIO;
		return NULL;
	}
	h = httpd_new(l, handle, arg);
	if (!h || !evhttp_bind_listener(h->http, listener)) {
		evconnlistener_free(listener);
		if (h)
			httpd_close(h);
		errno = ENOMEM;
		return NULL;
	}
	h->listener = listener;
	evconnlistener_set_error_cb(listener, not_accepted);
	return h;
}

struct httpd *httpd_open_unix(struct loop *l, const char *path, httpd_handler handle, void *arg)
{
	int fd = listen_unix(path);
	struct httpd *h = fd < 0 ? NULL : serve(l, fd, handle, arg);

	if (h)
		h->path = strdup(path);
	return h;
}

struct httpd *httpd_open_tcp(struct loop *l, const char *address, httpd_handler handle, void *arg)
{
	int port, fd = listen_tcp(address, &port);
	struct httpd *h = fd < 0 ? NULL : serve(l, fd, handle, arg);

	if (h)
		h->port = port;
	return h;
}

void httpd_limit(struct httpd *h, size_t clients, size_t queued)
{
	h->max_clients = clients;
	h->max_queued = queued;
}

int httpd_port(const struct httpd *h)
{
	return h->port;
}

void httpd_close(struct httpd *h)
{
	while (h->open)
		release(h->open); /* their connections end with evhttp_free() */
	evhttp_free(h->http);
	while (h->clients) /* that were not taken on yet */
		client_free(h->clients);
	event_free(h->tick);
	if (h->path)
		unlink(h->path);
	free(h->path);
	free(h);
}

/* ---- requests ---- */

enum httpd_method httpd_method(const struct httpd_request *r)
{
	switch (evhttp_request_get_command(r->request)) {
	case EVHTTP_REQ_HEAD:
		return HTTPD_HEAD;
	case EVHTTP_REQ_POST:
		return HTTPD_POST;
	default:
		return HTTPD_GET;
	}
}

const char *httpd_path(const struct httpd_request *r)
{
	return r->path;
}

const char *httpd_query(const struct httpd_request *r, const char *name)
{
	return evhttp_find_header(&r->query, name);
}

const char *httpd_header(const struct httpd_request *r, const char *name)
{
	return evhttp_find_header(evhttp_request_get_input_headers(r->request), name);
}

bool httpd_is_tcp(const struct httpd_request *r)
{
	return r->httpd->port != 0;
}

int httpd_peer(const struct httpd_request *r, uid_t *ret_uid, gid_t *ret_gid)
{
	struct bufferevent *b =
		evhttp_connection_get_bufferevent(evhttp_request_get_connection(r->request));
	struct ucred peer;
	socklen_t len = sizeof(peer);

	if (getsockopt(bufferevent_getfd(b), SOL_SOCKET, SO_PEERCRED, &peer, &len))
		return -errno;
	*ret_uid = peer.uid;
	*ret_gid = peer.gid;
	return 0;
}

/* evhttp does not look at a connection while its answer is awaited. */
static void hung_up(evutil_socket_t fd, short events, void *arg)
{
	struct httpd_request *r = arg;

	(void)fd, (void)events;
	evhttp_connection_free(evhttp_request_get_connection(r->request));
}

void httpd_on_gone(struct httpd_request *r, void (*gone)(void *arg), void *arg)
{
	struct bufferevent *b =
		evhttp_connection_get_bufferevent(evhttp_request_get_connection(r->request));

	r->gone = gone;
	r->gone_arg = arg;
	r->closed =
		event_new(loop_base(r->httpd->loop), bufferevent_getfd(b), EV_CLOSED, hung_up, r);
	if (r->closed)
		event_add(r->closed, NULL);
}

void httpd_add_header(struct httpd_request *r, const char *name, const char *value)
{
	evhttp_add_header(evhttp_request_get_output_headers(r->request), name, value);
}

static const char *reason(int status)
{
	static const struct {
		int status;
		const char *reason;
	} table[] = {
		{200, "OK"},
		{202, "Accepted"},
		{304, "Not Modified"},
		{400, "Bad Request"},
		{403, "Forbidden"},
		{404, "Not Found"},
		{409, "Conflict"},
		{405, "Method Not Allowed"},
		{421, "Misdirected Request"},
		{500, "Internal Server Error"},
		{503, "Service Unavailable"},
		{504, "Gateway Timeout"},
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (table[i].status == status)
			return table[i].reason;
	return "Answer";
}

void httpd_reply(
	struct httpd_request *r, int status, const char *content_type, const void *body, size_t len)
{
	struct evhttp_request *request = r->request;
	struct evbuffer *b = evbuffer_new();
	struct httpd *h = r->httpd;
	bool head = httpd_method(r) == HTTPD_HEAD;
	char length[24];

	if (h->queued && h->queued + len > h->max_queued) { /* for clients that do not read */
		status = 503;
		content_type = NULL;
		len = 0;
	}
	if (content_type)
		httpd_add_header(r, "Content-Type", content_type);
	if (head) {
		snprintf(length, sizeof(length), "%zu", len);
		httpd_add_header(r, "Content-Length", length);
	} else if (b && status != 304 && len) {
		evbuffer_add(b, body, len);
	}
	enter(r->client, WRITING, len);
	release(r);
	evhttp_send_reply(request, status, reason(status), b);
	if (b)
		evbuffer_free(b);
}
