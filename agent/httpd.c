/*
 * libevent's evhttp behind one handler.
 *
 * Surprising: evhttp answers HEAD and methods it does not know by itself only in part, and it frees
 * a request whose client went away; both are put right here, so that the handler sees one request
 * and gives one answer.
 */
#include "httpd.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/http.h>
#include <event2/keyvalq_struct.h>
#include <event2/listener.h>

#define MAX_BODY 4096
#define MAX_HEADERS 8192
#define IDLE_SECONDS 30
#define BACKLOG 128

struct httpd {
	struct evhttp *http;
	httpd_handler handle;
	void *arg;
	int port;
	char *path; /* of a Unix socket */
	struct httpd_request *open;
};

struct httpd_request {
	struct httpd *httpd;
	struct httpd_request *next, **link;
	struct evhttp_request *request;
	char *path;
	struct evkeyvalq query;
	void (*gone)(void *arg);
	void *gone_arg;
};

static void release(struct httpd_request *r)
{
	struct evhttp_connection *connection = evhttp_request_get_connection(r->request);

	if (connection)
		evhttp_connection_set_closecb(connection, NULL, NULL);
	*r->link = r->next;
	if (r->next)
		r->next->link = r->link;
	evhttp_clear_headers(&r->query);
	free(r->path);
	free(r);
}

/* The client went away before the answer; evhttp frees its request. */
static void connection_closed(struct evhttp_connection *connection, void *arg)
{
	struct httpd_request *r = arg;

	(void)connection;
	if (r->gone)
		r->gone(r->gone_arg);
	release(r);
}

static void received(struct evhttp_request *request, void *arg)
{
	struct httpd *h = arg;
	const struct evhttp_uri *uri = evhttp_request_get_evhttp_uri(request);
	const char *path = uri ? evhttp_uri_get_path(uri) : NULL,
		   *query = uri ? evhttp_uri_get_query(uri) : NULL;
	struct httpd_request *r = calloc(1, sizeof(*r));
	size_t len = 0;

	if (!r) {
		evhttp_send_error(request, HTTP_SERVUNAVAIL, NULL);
		return;
	}
	TAILQ_INIT(&r->query);
	r->path = path ? evhttp_uridecode(path, 0, &len) : NULL;
	if (!r->path || r->path[0] != '/' || strlen(r->path) != len ||
		(query && evhttp_parse_query_str(query, &r->query))) {
		evhttp_clear_headers(&r->query);
		free(r->path);
		free(r);
		evhttp_send_error(request, HTTP_BADREQUEST, NULL);
		return;
	}
	r->httpd = h;
	r->request = request;
	r->next = h->open;
	r->link = &h->open;
	if (r->next)
		r->next->link = &r->next;
	h->open = r;
	evhttp_connection_set_closecb(evhttp_request_get_connection(request), connection_closed, r);
	h->handle(h->arg, r);
}

/* ---- listening ---- */

static struct httpd *httpd_new(struct loop *l, httpd_handler handle, void *arg)
{
	struct httpd *h = calloc(1, sizeof(*h));

	if (!h)
		return NULL;
	h->http = evhttp_new(loop_base(l));
	h->handle = handle;
	h->arg = arg;
	if (!h->http) {
		free(h);
		errno = ENOMEM;
		return NULL;
	}
	evhttp_set_allowed_methods(h->http, EVHTTP_REQ_GET | EVHTTP_REQ_HEAD | EVHTTP_REQ_POST);
	evhttp_set_max_body_size(h->http, MAX_BODY);
	evhttp_set_max_headers_size(h->http, MAX_HEADERS);
	evhttp_set_timeout(h->http, IDLE_SECONDS);
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
	return h;
}

/* A socket file that nobody listens on is left from a crash. */
static bool is_stale(const struct sockaddr_un *address)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool stale = fd >= 0 && connect(fd, (const struct sockaddr *)address, sizeof(*address)) &&
		     errno == ECONNREFUSED;

	if (fd >= 0)
		close(fd);
	return stale;
}

static int bind_unix(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	mode_t mask;
	int fd, r;

	if (strlen(path) >= sizeof(address.sun_path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	memcpy(address.sun_path, path, strlen(path) + 1);
	if (is_stale(&address))
		unlink(path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -1;
	mask = umask(0117); /* 0660 from the first moment on */
	r = bind(fd, (struct sockaddr *)&address, sizeof(address));
	umask(mask);
	if (r == 0)
		return fd;
	r = errno;
	close(fd);
	errno = r;
	return -1;
}

struct httpd *httpd_open_unix(struct loop *l, const char *path, httpd_handler handle, void *arg)
{
	int fd = bind_unix(path);
	struct httpd *h = fd < 0 ? NULL : serve(l, fd, handle, arg);

	if (h)
		h->path = strdup(path);
	return h;
}

/* "HOST:PORT", "[v6]:PORT" to addresses. NULL with errno set. */
static struct addrinfo *resolve(const char *text)
{
	const struct addrinfo hints = {
		.ai_flags = AI_PASSIVE | AI_NUMERICSERV, .ai_socktype = SOCK_STREAM};
	const char *colon = strrchr(text, ':');
	struct addrinfo *found = NULL;
	char host[256];
	size_t len = colon ? (size_t)(colon - text) : 0;

	errno = EINVAL;
	if (len == 0 || len >= sizeof(host))
		return NULL;
	if (text[0] == '[' && text[len - 1] == ']') {
		text++;
		len -= 2;
	}
	memcpy(host, text, len);
	host[len] = '\0';
	return getaddrinfo(host, colon + 1, &hints, &found) ? NULL : found;
}

static int bind_tcp(const char *text, int *ret_port)
{
	struct addrinfo *a = resolve(text);
	struct sockaddr_storage bound;
	socklen_t len = sizeof(bound);
	int one = 1, fd = -1, error = errno;

	if (!a)
		goto out;
	fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) ||
		bind(fd, a->ai_addr, a->ai_addrlen) ||
		getsockname(fd, (struct sockaddr *)&bound, &len)) {
		error = errno;
		if (fd >= 0)
			close(fd);
		fd = -1;
		goto out;
	}
	*ret_port = ntohs(bound.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&bound)->sin6_port
						      : ((struct sockaddr_in *)&bound)->sin_port);
out:
	if (a)
		freeaddrinfo(a);
	errno = error;
	return fd;
}

struct httpd *httpd_open_tcp(struct loop *l, const char *address, httpd_handler handle, void *arg)
{
	int port, fd = bind_tcp(address, &port);
	struct httpd *h = fd < 0 ? NULL : serve(l, fd, handle, arg);

	if (h)
		h->port = port;
	return h;
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

void httpd_on_gone(struct httpd_request *r, void (*gone)(void *arg), void *arg)
{
	r->gone = gone;
	r->gone_arg = arg;
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
	bool head = httpd_method(r) == HTTPD_HEAD;
	char length[24];

	if (content_type)
		httpd_add_header(r, "Content-Type", content_type);
	if (head) {
		snprintf(length, sizeof(length), "%zu", len);
		httpd_add_header(r, "Content-Length", length);
	} else if (b && status != 304 && len) {
		evbuffer_add(b, body, len);
	}
	release(r);
	evhttp_send_reply(request, status, reason(status), b);
	if (b)
		evbuffer_free(b);
}
