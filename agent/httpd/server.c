/*
 * libevent's evhttp behind one handler: requests, answers, and their clients. The number of
 * clients, and how slow they may be, is in clients.c.
 *
 * Surprising: evhttp answers HEAD and methods it does not know by itself only in part, and it frees
 * a request whose client went away; both are repaired here, so that the handler sees one request
 * and gives one answer. It answers invalid HTTP itself, in HTML: 2.1.12 has no callback for that.
 * It does not watch a connection while its answer is pending (libevent 2.1.12,
 * evhttp_handle_request()), so an event of ours sees a client that hangs up.
 */
#include "httpd/server.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/keyvalq_struct.h>
#include <event2/listener.h>

#include "lib/buffer.h"
#include "httpd/clients.h"
#include "httpd/listen.h"

#define MAX_BODY 4096
#define MAX_HEADERS 8192
#define BACKLOG 128 /* a longer queue, kept full by others, is a longer wait */
#define BUSY "no memory left, or too many unread answers: try again"
#define STALL_S 30 /* without a byte in or out; see clients.c */

struct httpd {
	struct loop *loop;
	struct evhttp *http;
	struct clients *clients;
	struct evhttp_bound_socket *bound; /* evhttp's */
	httpd_handler handle;
	void *arg;
	int port;
	gid_t operators;
	char *path; /* of a Unix socket, */
	dev_t device;
	ino_t inode; /* and which file it is */
	LIST_HEAD(requests, httpd_request) open;
};

struct httpd_request {
	struct httpd *httpd;
	LIST_ENTRY(httpd_request) entry;
	struct evhttp_request *request;
	struct client *client;
	char *path;
	struct evkeyvalq query;
	void (*gone)(void *arg);
	void *gone_arg;
	struct event *closed;
};

/* ---- incoming requests ---- */

static const char *reason_phrase(int status)
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

static void release_request(struct httpd_request *r)
{
	if (r->closed)
		event_free(r->closed);
	LIST_REMOVE(r, entry);
	evhttp_clear_headers(&r->query);
	free(r->path);
	free(r);
}

/* The connection ends before the answer. */
static void client_lost(void *arg)
{
	struct httpd_request *r = arg;

	if (r->gone)
		r->gone(r->gone_arg);
	release_request(r);
}

/* The whole answer is out. */
static void reply_sent(struct evhttp_request *request, void *arg)
{
	(void)request;
	clients_reads(arg);
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

/* Closes the connection, so that an unread rest of the request is not taken for the next one. */
static void close_after(struct evhttp_request *request)
{
	evhttp_add_header(evhttp_request_get_output_headers(request), "Connection", "close");
}

/* Answers without the handler: 400 or 503. */
static void send_refusal(
	struct evhttp_request *request, struct client *c, int status, const char *sentence)
{
	struct evbuffer *b = evbuffer_new();

	if (b && evhttp_request_get_command(request) != EVHTTP_REQ_HEAD)
		evbuffer_add_printf(b, "{\"error\":\"%s\"}\n", sentence);
	evhttp_add_header(
		evhttp_request_get_output_headers(request), "Content-Type", "application/json");
	close_after(request);
	evhttp_send_reply(request, status, reason_phrase(status), b);
	if (c)
		clients_writes(c, 0);
	if (b)
		evbuffer_free(b);
}

/* Reads path and query. 0, or the status of an error: the caller frees *r all the same. */
static int read_request(struct evhttp_request *request, struct httpd_request *r)
{
	const struct evhttp_uri *uri = evhttp_request_get_evhttp_uri(request);
	const char *path = uri ? evhttp_uri_get_path(uri) : NULL,
		   *query = uri ? evhttp_uri_get_query(uri) : NULL;
	size_t len = 0;

	r->path = path ? evhttp_uridecode(path, 0, &len) : NULL;
	if (!r->path || r->path[0] != '/' || strlen(r->path) != len)
		return 400;
	return query && (strstr(query, "%00") || parse_query(query, &r->query)) ? 400 : 0;
}

static void request_came(struct evhttp_request *request, void *arg)
{
	struct httpd *h = arg;
	struct httpd_request *r = calloc(1, sizeof(*r));
	struct client *c = clients_find(h->clients, request);
	const char *busy = c ? clients_busy(c) : BUSY;
	int status;

	if (c)
		evhttp_request_set_on_complete_cb(request, reply_sent, c);
	if (!r || busy) {
		free(r);
		send_refusal(request, c, 503, busy ? busy : BUSY);
		return;
	}
	TAILQ_INIT(&r->query);
	r->httpd = h;
	r->request = request;
	r->client = c;
	LIST_INSERT_HEAD(&h->open, r, entry);
	status = read_request(request, r);
	if (status) {
		release_request(r);
		send_refusal(request, c, status, "invalid path or query");
		return;
	}
	if (httpd_method(r) == HTTPD_OTHER)
		close_after(request);
	clients_thinks(c, client_lost, r);
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
	h->clients = h->http ? clients_new(l, h->http) : NULL;
	h->handle = handle;
	h->arg = arg;
	h->operators = PEER_NO_GROUP;
	if (!h->clients) {
		if (h->http)
			evhttp_free(h->http);
		free(h);
		errno = ENOMEM;
		return NULL;
	}
	clients_limit(h->clients, HTTPD_CLIENTS, HTTPD_QUEUED);
	evhttp_set_allowed_methods(h->http, UINT16_MAX);
	evhttp_set_max_body_size(h->http, MAX_BODY);
	evhttp_set_max_headers_size(h->http, MAX_HEADERS);
	evhttp_set_timeout(h->http, STALL_S);
	evhttp_set_gencb(h->http, request_came, h);
	return h;
}

/* Takes fd, which is bound, and accepts there instead; connected clients stay. 0 or -errno: as
 * before. */
static int accept_at_socket(struct httpd *h, int fd)
{
	struct evhttp_bound_socket *bound;
	struct evconnlistener *listener = evconnlistener_new(loop_base(h->loop), NULL, NULL,
		LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC, BACKLOG, fd);

	if (!listener) {
		close(fd);
		return -EIO;
	}
	bound = evhttp_bind_listener(h->http, listener);
	if (!bound) {
		evconnlistener_free(listener);
		return -ENOMEM;
	}
	clients_accept(h->clients, listener);
	if (h->bound)
		evhttp_del_accept_socket(h->http, h->bound);
	h->bound = bound;
	return 0;
}

/* Takes fd. NULL with errno set. */
static struct httpd *serve_socket(struct loop *l, int fd, httpd_handler handle, void *arg)
{
	struct httpd *h = fd < 0 ? NULL : httpd_new(l, handle, arg);
	int r;

	if (!h) {
		if (fd >= 0)
			close(fd);
		return NULL;
	}
	r = accept_at_socket(h, fd);
	if (r == 0)
		return h;
	httpd_close(h);
	errno = -r;
	return NULL;
}

bool httpd_is_there(const struct httpd *h)
{
	struct stat st;

	return lstat(h->path, &st) == 0 && st.st_dev == h->device && st.st_ino == h->inode;
}

/* Remembers the file at its path. */
static void know_socket(struct httpd *h)
{
	struct stat st;

	if (lstat(h->path, &st) == 0) {
		h->device = st.st_dev;
		h->inode = st.st_ino;
	}
}

struct httpd *httpd_open_unix(struct loop *l, const char *path, httpd_handler handle, void *arg)
{
	int fd = listen_unix(path), error;
	struct httpd *h = serve_socket(l, fd, handle, arg);

	if (h)
		h->path = strdup(path);
	if (h && h->path) {
		know_socket(h);
		return h;
	}
	error = h ? ENOMEM : errno;
	if (h)
		httpd_close(h);
	if (fd >= 0)
		listen_remove(path);
	errno = error;
	return NULL;
}

int httpd_restore(struct httpd *h)
{
	int fd, r;

	if (httpd_is_there(h))
		return 0;
	fd = listen_unix(h->path);
	if (fd < 0)
		return -errno;
	r = accept_at_socket(h, fd);
	if (r)
		listen_remove(h->path);
	else
		know_socket(h);
	return r ? r : 1;
}

struct httpd *httpd_open_tcp(struct loop *l, const char *address, httpd_handler handle, void *arg)
{
	int port = 0;
	struct httpd *h = serve_socket(l, listen_tcp(address, &port), handle, arg);

	if (h)
		h->port = port;
	return h;
}

void httpd_limit(struct httpd *h, size_t clients, size_t queued)
{
	clients_limit(h->clients, clients, queued);
}

void httpd_share(struct httpd *h, void (*denied)(void *arg, const struct peer *peer), void *arg)
{
	clients_share(h->clients, &h->operators, denied, arg);
}

void httpd_operators(struct httpd *h, gid_t operators)
{
	h->operators = operators;
}

int httpd_port(const struct httpd *h)
{
	return h->port;
}

void httpd_close(struct httpd *h)
{
	for (struct httpd_request *r = LIST_FIRST(&h->open); r; r = LIST_NEXT(r, entry))
		r->gone = NULL;
	evhttp_free(h->http);
	clients_free(h->clients);
	if (h->path && httpd_is_there(h))
		listen_remove(h->path);
	free(h->path);
	free(h);
}

/* ---- requests ---- */

enum httpd_method httpd_method(const struct httpd_request *r)
{
	switch (evhttp_request_get_command(r->request)) {
	case EVHTTP_REQ_GET:
		return HTTPD_GET;
	case EVHTTP_REQ_HEAD:
		return HTTPD_HEAD;
	case EVHTTP_REQ_POST:
		return HTTPD_POST;
	default:
		return HTTPD_OTHER;
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

const char *httpd_query_name(const struct httpd_request *r, size_t i)
{
	const struct evkeyval *parameter = TAILQ_FIRST(&r->query);

	while (parameter && i-- > 0)
		parameter = TAILQ_NEXT(parameter, next);
	return parameter ? parameter->key : NULL;
}

const char *httpd_header(const struct httpd_request *r, const char *name)
{
	return evhttp_find_header(evhttp_request_get_input_headers(r->request), name);
}

bool httpd_is_tcp(const struct httpd_request *r)
{
	return r->httpd->port != 0;
}

void httpd_peer(const struct httpd_request *r, struct peer *ret_peer)
{
	peer_identify(&sys_real, clients_fd(r->client), r->httpd->operators, ret_peer);
}

bool httpd_may_see_values(const struct httpd_request *r)
{
	struct peer peer;

	httpd_peer(r, &peer);
	return peer.right >= RIGHT_OPERATE;
}

static void hung_up(evutil_socket_t fd, short events, void *arg)
{
	const struct httpd_request *r = arg;

	(void)fd, (void)events;
	clients_drop(r->client);
}

void httpd_on_gone(struct httpd_request *r, void (*gone)(void *arg), void *arg)
{
	if (r->closed)
		event_free(r->closed);
	r->closed = NULL;
	r->gone = gone;
	r->gone_arg = arg;
	if (!gone)
		return;
	r->closed =
		event_new(loop_base(r->httpd->loop), clients_fd(r->client), EV_CLOSED, hung_up, r);
	if (r->closed)
		event_add(r->closed, NULL);
}

void httpd_add_header(struct httpd_request *r, const char *name, const char *value)
{
	evhttp_add_header(evhttp_request_get_output_headers(r->request), name, value);
}

void httpd_reply(
	struct httpd_request *r, int status, const char *content_type, const void *body, size_t len)
{
	struct evhttp_request *request = r->request;
	struct client *c = r->client;
	struct evbuffer *b = evbuffer_new();
	bool sends = httpd_method(r) != HTTPD_HEAD && status != 304;
	char length[24];

	if (!b || (sends && !clients_may_write(c, len)) || /* too much is unread */
		(sends && len && evbuffer_add(b, body, len))) {
		static const char busy[] = "{\"error\":\"" BUSY "\"}\n";

		status = 503;
		content_type = "application/json";
		len = b && (!sends || !evbuffer_add(b, busy, sizeof(busy) - 1)) ? sizeof(busy) - 1
										: 0;
	}
	if (content_type)
		httpd_add_header(r, "Content-Type", content_type);
	if (status != 304) { /* libevent adds none to HTTP/1.0, whose end could be a cut */
		snprintf(length, sizeof(length), "%zu", len);
		httpd_add_header(r, "Content-Length", length);
	}
	release_request(r);
	evhttp_send_reply(request, status, reason_phrase(status), b);
	clients_writes(c, sends ? len : 0);
	if (b)
		evbuffer_free(b);
}
