/*
 * Transfers against a server in the same loop that writes its answers byte by byte as the case
 * says: bodies of requests, answers without an end, and what is made of headers.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../agent/transport.h"

#define MAX_REQUEST (2u << 20)
#define CONNECTIONS 8
#define PIECES 16
#define MAX_BYTES 1000u
#define CHUNKED "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"

/* ---- the server ---- */

struct connection {
	struct loop_watch watch; /* fd -1: none */
	struct buffer in;
	struct server *server;
};

struct server {
	struct loop *loop;
	struct loop_watch watch;
	char url[64];
	struct connection connections[CONNECTIONS];
	size_t accepted;
	struct buffer request; /* the last one, whole */
	/* what is sent then, piece by piece, a moment between them; NULL ends it */
	const char *pieces[PIECES];
	size_t next;
	uint64_t pause_ms;
	bool closes; /* behind the last piece */
	struct loop_timer timer;
	struct connection *to;
};

static void hang_up(struct connection *c)
{
	if (c->watch.fd < 0)
		return;
	loop_unwatch(&c->watch);
	close(c->watch.fd);
	c->watch.fd = -1;
	buffer_fini(&c->in);
}

static void send_piece(void *arg)
{
	struct server *s = arg;
	const char *piece = s->pieces[s->next];

	if (s->to->watch.fd < 0)
		return; /* the client is gone */
	if (piece) {
		s->next++;
		if (*piece)
			assert_int_equal(send(s->to->watch.fd, piece, strlen(piece), MSG_NOSIGNAL),
				strlen(piece));
		loop_timer_set(s->loop, &s->timer, loop_now_ms(s->loop) + s->pause_ms);
	} else if (s->closes) {
		hang_up(s->to);
	}
}

/* The bytes of a whole request in front of the buffer; 0: it is not whole yet. */
static size_t whole_request(const struct buffer *in)
{
	const char *end = in->data ? strstr(in->data, "\r\n\r\n") : NULL, *length;
	size_t head, body = 0;

	if (!end)
		return 0;
	head = (size_t)(end - in->data) + 4;
	length = strcasestr(in->data, "\r\ncontent-length:");
	if (length && length < end)
		body = strtoul(length + strlen("\r\ncontent-length:"), NULL, 10);
	return in->len >= head + body ? head + body : 0;
}

static void readable(void *arg, int fd, unsigned events)
{
	struct connection *c = arg;
	struct server *s = c->server;
	char data[65536];
	ssize_t n = recv(fd, data, sizeof(data), MSG_DONTWAIT);

	(void)events;
	if (n <= 0) {
		if (n == 0 || errno != EAGAIN)
			hang_up(c);
		return;
	}
	assert_int_equal(buffer_append(&c->in, data, (size_t)n), 0);
	if (!whole_request(&c->in))
		return;
	buffer_clear(&s->request);
	assert_int_equal(buffer_append(&s->request, c->in.data, c->in.len), 0);
	buffer_clear(&c->in);
	s->to = c;
	s->next = 0;
	send_piece(s);
}

static void acceptable(void *arg, int fd, unsigned events)
{
	struct server *s = arg;
	struct connection *c = s->connections;
	int one = 1, peer = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	(void)events;
	assert_true(peer >= 0);
	setsockopt(peer, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	while (c->watch.fd >= 0) {
		c++;
		assert_true(c < s->connections + CONNECTIONS);
	}
	memset(c, 0, sizeof(*c));
	c->server = s;
	buffer_init(&c->in, MAX_REQUEST);
	assert_int_equal(loop_watch(s->loop, &c->watch, peer, LOOP_READ, readable, c), 0);
	s->accepted++;
}

static void server_start(struct server *s, struct loop *l)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(a);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	memset(s, 0, sizeof(*s));
	s->loop = l;
	s->pause_ms = 2;
	for (size_t i = 0; i < CONNECTIONS; i++)
		s->connections[i].watch.fd = -1;
	buffer_init(&s->request, MAX_REQUEST);
	loop_timer_init(&s->timer, send_piece, s);
	assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(listen(fd, 8), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &len), 0);
	snprintf(s->url, sizeof(s->url), "http://127.0.0.1:%u/x", ntohs(a.sin_port));
	assert_int_equal(loop_watch(l, &s->watch, fd, LOOP_READ, acceptable, s), 0);
}

static void server_stop(struct server *s)
{
	for (size_t i = 0; i < CONNECTIONS; i++)
		hang_up(&s->connections[i]);
	loop_timer_cancel(s->loop, &s->timer);
	loop_unwatch(&s->watch);
	close(s->watch.fd);
	buffer_fini(&s->request);
}

/* The next request is answered with these. */
#define ANSWER(s, ...)                                                                             \
	memcpy((s)->pieces, ((const char *const[PIECES]){__VA_ARGS__}), sizeof((s)->pieces))

/* ---- the client ---- */

struct site {
	struct loop *loop;
	struct transport *transport;
	struct server server;
};

struct client {
	struct site *site;
	struct transfer *transfer; /* NULL: none is under way */
	/* what came */
	unsigned ended, lines;
	struct transport_response response; /* without the body */
	char body[2048], text[2048];        /* text: the lines, "|" behind each */
	uint64_t ended_ms, line_ms;
	/* in each line */
	void (*in_line)(struct client *c);
	struct client *other;
	int started;
};

static void is_done(void *arg, const struct transport_response *r)
{
	struct client *c = arg;

	c->transfer = NULL;
	c->ended++;
	c->response = *r;
	snprintf(c->body, sizeof(c->body), "%s", r->body.data ? r->body.data : "");
	c->response.body = (struct buffer){.len = r->body.len};
	c->ended_ms = loop_now_ms(c->site->loop);
	loop_stop(c->site->loop);
}

static void line_came(void *arg, const struct transport_response *line)
{
	struct client *c = arg;
	size_t len = strlen(c->text);

	assert_int_equal(c->ended, 0);
	assert_int_equal(line->status, 200);
	assert_int_equal(line->result, TRANSPORT_OK);
	assert_non_null(c->transfer);
	c->lines++;
	c->line_ms = loop_now_ms(c->site->loop);
	snprintf(c->text + len, sizeof(c->text) - len, "%.*s|", (int)line->body.len,
		line->body.data ? line->body.data : "");
	if (c->in_line)
		c->in_line(c);
}

static void site_open(struct site *s)
{
	s->loop = loop_new(&sys_real);
	s->transport = transport_new(s->loop);
	assert_true(s->loop && s->transport);
	server_start(&s->server, s->loop);
}

static void site_close(struct site *s)
{
	transport_free(s->transport);
	server_stop(&s->server);
	loop_free(s->loop);
}

static struct transport_request request_of(const struct site *s)
{
	return (struct transport_request){.url = s->server.url,
		.max_bytes = MAX_BYTES,
		.timeout_ms = 10000,
		.connect_timeout_ms = 10000};
}

static void start(struct client *c, struct site *s, const struct transport_request *q)
{
	c->site = s;
	assert_int_equal(transport_start(s->transport, q, is_done, c, &c->transfer), 0);
	assert_int_equal(c->ended, 0);
}

static void run(struct client *c, struct site *s, const struct transport_request *q)
{
	start(c, s, q);
	assert_int_equal(loop_run(s->loop), 0);
	assert_int_equal(c->ended, 1);
}

/* The line of that header in the request that came; "" = none. */
static const char *sent_header(const struct site *s, const char *name)
{
	static char value[256];
	char want[80];
	const char *at;

	snprintf(want, sizeof(want), "\r\n%s: ", name);
	at = strcasestr(s->server.request.data, want);
	snprintf(value, sizeof(value), "%.*s", at ? (int)strcspn(at + strlen(want), "\r") : 0,
		at ? at + strlen(want) : "");
	return value;
}

static const char *sent_body(const struct site *s)
{
	return strstr(s->server.request.data, "\r\n\r\n") + 4;
}

/* ---- requests with a body ---- */

static void post__with_a_body__arrives_as_it_was_at_the_start(void **state)
{
	static const char *const methods[] = {"POST", "PUT"};
	static const char *const headers[] = {"Content-Type: application/json", NULL};
	struct site s;

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct client c = {NULL};
		struct transport_request q;
		char body[] = "{\"a\":\0001}", first[16];

		site_open(&s);
		ANSWER(&s.server, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
		q = request_of(&s);
		q.method = methods[i];
		q.body = body;
		q.body_len = sizeof(body) - 1;
		q.headers = headers;
		start(&c, &s, &q);
		memset(body, 'x', sizeof(body));
		assert_int_equal(loop_run(s.loop), 0);
		assert_int_equal(c.response.result, TRANSPORT_OK);
		assert_string_equal(c.body, "ok");
		snprintf(first, sizeof(first), "%s /x HTTP", methods[i]);
		assert_int_equal(strncmp(s.server.request.data, first, strlen(first)), 0);
		assert_string_equal(sent_header(&s, "Content-Type"), "application/json");
		assert_string_equal(sent_header(&s, "Content-Length"), "8");
		assert_memory_equal(sent_body(&s), "{\"a\":\0001}", 8);
		site_close(&s);
	}
}

static void post__without_a_body__sends_an_empty_one(void **state)
{
	static const char *const methods[] = {"POST", "PUT"};
	struct site s;

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct client c = {NULL};
		struct transport_request q;

		site_open(&s);
		ANSWER(&s.server, "HTTP/1.1 204 No Content\r\n\r\n");
		q = request_of(&s);
		q.method = methods[i];
		run(&c, &s, &q);
		assert_int_equal(c.response.status, 204);
		assert_string_equal(sent_header(&s, "Content-Length"), "0");
		assert_string_equal(sent_header(&s, "Expect"), "");
		site_close(&s);
	}
}

static void post__of_the_largest_body__goes_out_without_asking_first(void **state)
{
	size_t len = 1u << 20; /* KIND_MAX_BODY */
	char *body = malloc(len);
	struct client c = {NULL};
	struct transport_request q;
	struct site s;

	(void)state;
	assert_non_null(body);
	for (size_t i = 0; i < len; i++)
		body[i] = (char)('a' + i % 23);
	site_open(&s);
	ANSWER(&s.server, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
	q = request_of(&s);
	q.method = "POST";
	q.body = body;
	q.body_len = len;
	run(&c, &s, &q);
	assert_int_equal(c.response.result, TRANSPORT_OK);
	assert_string_equal(sent_header(&s, "Expect"), "");
	assert_string_equal(sent_header(&s, "Content-Length"), "1048576");
	assert_memory_equal(sent_body(&s), body, len);
	free(body);
	site_close(&s);
}

static void get__sends_no_body(void **state)
{
	static const char *const methods[] = {NULL, "GET"};
	struct site s;

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct client c = {NULL};
		struct transport_request q;

		site_open(&s);
		ANSWER(&s.server, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
		q = request_of(&s);
		q.method = methods[i];
		q.user = "me";
		q.password = "secret";
		run(&c, &s, &q);
		assert_int_equal(strncmp(s.server.request.data, "GET /x HTTP", 11), 0);
		assert_string_equal(sent_header(&s, "Content-Length"), "");
		assert_string_equal(sent_header(&s, "Authorization"), "Basic bWU6c2VjcmV0");
		assert_string_equal(sent_header(&s, "Accept-Encoding"), "gzip");
		assert_true(c.response.framed && c.response.sent);
		site_close(&s);
	}
}

/* ---- what is made of the headers ---- */

static void headers__of_the_answer__are_taken_over_if_they_fit(void **state)
{
	struct client c = {NULL}, second = {NULL};
	struct transport_request q;
	struct site s;

	(void)state;
	site_open(&s);
	ANSWER(&s.server,
		"HTTP/1.1 103 Early Hints\r\nETag: \"early\"\r\nConfig-Type: "
		"text\r\nX-Consul-Index: 7\r\n\r\n",
		"HTTP/1.1 200 OK\r\nETag: W/\"1\"\r\nlast-modified:  yesterday \r\n"
		"Digest: SHA-256=AAAA\r\nContent-Type: Application/JSON; charset=utf-8\r\n"
		"X-Consul-Index: 42\r\nContent-MD5: 0123456789abcdef0123456789abcdef\r\n"
		"Date: today\r\nContent-Length: 2\r\n\r\n{}");
	q = request_of(&s);
	run(&c, &s, &q);
	assert_int_equal(c.response.status, 200);
	assert_string_equal(c.response.etag, "W/\"1\"");
	assert_string_equal(c.response.last_modified, "yesterday");
	assert_string_equal(c.response.digest, "SHA-256=AAAA");
	assert_string_equal(c.response.content_type, "application/json");
	assert_string_equal(c.response.consul_index, "42");
	assert_string_equal(c.response.content_md5, "0123456789abcdef0123456789abcdef");
	assert_string_equal(c.response.server_date, "today");
	assert_string_equal(c.response.config_type, ""); /* of the one before */
	assert_true(c.response.framed);
	/* longer than anybody means it: as if it were not there */
	ANSWER(&s.server,
		"HTTP/1.1 200 OK\r\nX-Consul-Index: 123456789012345678901234\r\n"
		"Config-Type: properties-and-more\r\nContent-MD5:\r\nConnection: close\r\n\r\n{}");
	s.server.closes = true;
	run(&second, &s, &q);
	assert_int_equal(second.response.result, TRANSPORT_OK);
	assert_string_equal(second.response.consul_index, "");
	assert_string_equal(second.response.config_type, "");
	assert_string_equal(second.response.content_md5, "");
	assert_string_equal(second.response.etag, "");
	assert_string_equal(second.body, "{}");
	assert_false(second.response.framed);
	site_close(&s);
}

static void result__of_each_end__tells_what_it_was(void **state)
{
	static const struct {
		const char *answer;
		enum transport_result result;
		long status;
		uint64_t advice_ms;
		const char *message;
	} table[] = {
		{"HTTP/1.1 503 Busy\r\nRetry-After: 7\r\nContent-Length: 0\r\n\r\n", TRANSPORT_OK,
			503, 7000, ""},
		{"HTTP/1.1 503 Busy\r\nRetry-After: soon\r\nContent-Length: 0\r\n\r\n",
			TRANSPORT_OK, 503, 0, ""},
		{"HTTP/1.1 503 Busy\r\nDate: Sat, 21 Nov 2026 00:00:00 GMT\r\n"
		 "Retry-After: Sat, 21 Nov 2026 00:01:00 GMT\r\nContent-Length: 0\r\n\r\n",
			TRANSPORT_OK, 503, 60000, ""},
		{"HTTP/1.1 302 Found\r\nLocation: /y\r\nContent-Length: 0\r\n\r\n", TRANSPORT_OK,
			302, TRANSPORT_NO_ADVICE, ""},
		{"HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\ntoo short", TRANSPORT_NETWORK, 200,
			TRANSPORT_NO_ADVICE, "the body was cut short"},
		{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nshort\r\n",
			TRANSPORT_NETWORK, 200, TRANSPORT_NO_ADVICE, "the body was cut short"},
		{"", TRANSPORT_NETWORK, 0, TRANSPORT_NO_ADVICE, "Empty reply"},
		{"what is this?\r\n", TRANSPORT_PROTOCOL, 0, TRANSPORT_NO_ADVICE, "HTTP/0.9"},
	};
	struct transport_request q;
	struct site s;

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct client c = {NULL};

		site_open(&s);
		s.server.closes = true;
		ANSWER(&s.server, table[i].answer);
		q = request_of(&s);
		run(&c, &s, &q);
		assert_int_equal(c.response.result, table[i].result);
		assert_int_equal(c.response.status, table[i].status);
		assert_true(c.response.retry_after_ms == table[i].advice_ms);
		assert_non_null(strstr(c.response.message, table[i].message));
		assert_int_equal(c.response.message[0] == '\0', c.response.result == TRANSPORT_OK);
		site_close(&s);
	}
}

static void result__of_a_body_over_the_limit__is_too_large(void **state)
{
	struct client c[3] = {{NULL}};
	struct transport_request q;
	struct site s;

	(void)state;
	site_open(&s);
	q = request_of(&s);
	for (size_t i = 0; i < 3; i++) {
		ANSWER(&s.server, CHUNKED "4\r\n1234\r\n", "4\r\n5678\r\n0\r\n\r\n");
		q.max_bytes = 9 - i;
		run(&c[i], &s, &q);
		assert_int_equal(c[i].response.result, i < 2 ? TRANSPORT_OK : TRANSPORT_TOO_LARGE);
	}
	assert_string_equal(c[1].body, "12345678");
	assert_string_equal(c[2].response.message, "the body is larger than the limit of 7 bytes");
	site_close(&s);
}

/* ---- answers without an end ---- */

static struct transport_request lines_of(const struct site *s)
{
	struct transport_request q = request_of(s);

	q.line = line_came;
	q.idle_ms = 10000;
	return q;
}

static void lines__however_they_are_cut__come_one_by_one(void **state)
{
	static const char *const answers[][PIECES] = {
		{CHUNKED "c\r\none\ntwo\n\nthr\r\n", "4\r\nee\r\n\r\n", "4\r\nlast\r\n0\r\n\r\n"},
		{CHUNKED, "1\r\no\r\n", "1\r\nn\r\n", "1\r\ne\r\n", "1\r\n\n\r\n",
			"9\r\ntwo\n\nthre\r\n", "1\r\ne\r\n", "1\r\n\r\r\n", "1\r\n\n\r\n",
			"4\r\nlast\r\n0\r\n\r\n"},
		{"HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\none\ntwo\n\nthree\r", "\nlast"},
	};
	struct transport_request q;
	struct site s;

	(void)state;
	for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
		struct client c = {NULL};

		site_open(&s);
		memcpy(s.server.pieces, answers[i], sizeof(answers[i]));
		q = lines_of(&s);
		run(&c, &s, &q);
		assert_int_equal(c.response.result, TRANSPORT_OK);
		assert_int_equal(c.response.status, 200);
		assert_string_equal(c.text, "one|two||three\r|");
		assert_int_equal(c.lines, 4);
		/* without its end, "last" is no line */
		assert_int_equal(c.response.body.len, 4);
		site_close(&s);
	}
}

static void lines__in_a_post__come_as_well(void **state)
{
	struct client c = {NULL};
	struct transport_request q;
	struct site s;

	(void)state;
	site_open(&s);
	ANSWER(&s.server, CHUNKED "4\r\none\n\r\n", "0\r\n\r\n");
	q = lines_of(&s);
	q.method = "POST";
	q.body = "watch";
	q.body_len = 5;
	run(&c, &s, &q);
	assert_string_equal(c.text, "one|");
	assert_string_equal(sent_body(&s), "watch");
	site_close(&s);
}

static void cancel_in_line(struct client *c)
{
	transport_cancel(c->transfer);
	c->transfer = NULL;
	loop_stop(c->site->loop);
}

static void cancel__in_a_line__ends_it_there_and_then(void **state)
{
	struct client c = {.in_line = cancel_in_line}, next = {NULL};
	struct transport_request q;
	struct site s;

	(void)state;
	site_open(&s);
	ANSWER(&s.server, CHUNKED "c\r\none\ntwo\nthr\n\r\n", "5\r\nfour\n\r\n");
	q = lines_of(&s);
	start(&c, &s, &q);
	assert_int_equal(loop_run(s.loop), 0);
	assert_string_equal(c.text, "one|");
	/* and others go on */
	ANSWER(&s.server, CHUNKED "5\r\nnext\n\r\n0\r\n\r\n");
	run(&next, &s, &q);
	assert_string_equal(next.text, "next|");
	assert_string_equal(c.text, "one|");
	assert_int_equal(c.ended, 0);
	site_close(&s);
}

static void stop_in_line(struct client *c)
{
	loop_stop(c->site->loop);
}

static void cancel__between_two_lines__is_heard_by_nobody(void **state)
{
	struct client c = {.in_line = stop_in_line}, next = {NULL};
	struct transport_request q;
	struct site s;

	(void)state;
	site_open(&s);
	ANSWER(&s.server, CHUNKED "6\r\none\ntw\r\n", "2\r\no\n\r\n");
	s.server.pause_ms = 50;
	q = lines_of(&s);
	start(&c, &s, &q);
	assert_int_equal(loop_run(s.loop), 0);
	assert_string_equal(c.text, "one|");
	transport_cancel(c.transfer);
	ANSWER(&s.server, CHUNKED "5\r\nnext\n\r\n0\r\n\r\n");
	run(&next, &s, &q);
	assert_string_equal(next.text, "next|");
	assert_string_equal(c.text, "one|");
	assert_int_equal(c.ended, 0);
	/* what is still under way ends with the transport */
	s.server.pause_ms = 2;
	ANSWER(&s.server, CHUNKED "4\r\none\n\r\n");
	c = (struct client){.in_line = stop_in_line};
	start(&c, &s, &q);
	assert_int_equal(loop_run(s.loop), 0);
	site_close(&s);
	assert_int_equal(c.ended, 0);
}

static void start_in_line(struct client *c)
{
	struct transport_request q = request_of(c->site);
	struct transfer *t = NULL;

	c->started = transport_start(c->site->transport, &q, is_done, c->other, &t);
	assert_null(t);
}

static void start__in_a_line__is_refused(void **state)
{
	struct client c = {.in_line = start_in_line}, other = {NULL};
	struct transport_request q;
	struct site s;

	(void)state;
	c.other = &other;
	site_open(&s);
	other.site = &s;
	ANSWER(&s.server, CHUNKED "4\r\none\n\r\n0\r\n\r\n");
	q = lines_of(&s);
	run(&c, &s, &q);
	assert_int_equal(c.lines, 1);
	assert_int_equal(c.started, -EIO);
	assert_int_equal(other.ended, 0);
	site_close(&s);
}

static void line__over_the_limit__is_too_large_and_those_before_have_come(void **state)
{
	struct client c = {NULL}, split = {NULL};
	struct transport_request q;
	struct site s;

	(void)state;
	site_open(&s);
	q = lines_of(&s);
	q.max_bytes = 4; /* of a line: there are more in all */
	ANSWER(&s.server, CHUNKED "10\r\none\nfour\n1234\nto\r\n", "4\r\no l\n\r\n0\r\n\r\n");
	run(&c, &s, &q);
	assert_int_equal(c.response.result, TRANSPORT_TOO_LARGE);
	assert_string_equal(c.text, "one|four|1234|");
	ANSWER(&s.server, CHUNKED "4\r\n1234\r\n", "1\r\n5\r\n");
	run(&split, &s, &q);
	assert_int_equal(split.response.result, TRANSPORT_TOO_LARGE);
	assert_int_equal(split.lines, 0);
	site_close(&s);
}

static void lines__of_a_refusal__are_its_body(void **state)
{
	struct client c = {NULL}, large = {NULL};
	struct transport_request q;
	struct site s;

	(void)state;
	site_open(&s);
	ANSWER(&s.server, "HTTP/1.1 401 No\r\nContent-Length: 9\r\n\r\n", "no\n", "token\n");
	q = lines_of(&s);
	run(&c, &s, &q);
	assert_int_equal(c.response.result, TRANSPORT_OK);
	assert_int_equal(c.response.status, 401);
	assert_string_equal(c.body, "no\ntoken\n");
	assert_int_equal(c.lines, 0);
	q.max_bytes = 8;
	run(&large, &s, &q);
	assert_int_equal(large.response.result, TRANSPORT_TOO_LARGE);
	site_close(&s);
}

/* ---- time ---- */

static void lines__that_keep_coming__outlast_every_limit_but_silence(void **state)
{
	struct client c = {NULL};
	struct transport_request q;
	struct site s;

	(void)state;
	site_open(&s);
	ANSWER(&s.server, CHUNKED, "2\r\n1\n\r\n", "2\r\n2\n\r\n", "2\r\n3\n\r\n", "2\r\n4\n\r\n",
		"2\r\n5\n\r\n", "2\r\n6\n\r\n", "2\r\n7\n\r\n");
	s.server.pause_ms = 300;
	q = lines_of(&s);
	q.timeout_ms = 500; /* is not for answers without an end */
	q.idle_ms = 1000;
	run(&c, &s, &q);
	assert_string_equal(c.text, "1|2|3|4|5|6|7|");
	assert_int_equal(c.response.result, TRANSPORT_TIMEOUT);
	assert_in_range(c.ended_ms - c.line_ms, 1000, 20000);
	site_close(&s);
}

static void lines__that_never_begin__end_by_silence_too(void **state)
{
	struct client c = {NULL};
	struct transport_request q;
	struct site s;
	uint64_t from_ms;

	(void)state;
	site_open(&s);
	ANSWER(&s.server, "");
	q = lines_of(&s);
	q.idle_ms = 1000;
	from_ms = loop_now_ms(s.loop);
	run(&c, &s, &q);
	assert_int_equal(c.response.result, TRANSPORT_TIMEOUT);
	assert_true(c.response.sent);
	assert_in_range(c.ended_ms - from_ms, 1000, 20000);
	site_close(&s);
}

static void answer__that_is_held_back__has_the_whole_time(void **state)
{
	struct client c = {NULL}, late = {NULL};
	struct transport_request q;
	struct site s;

	(void)state;
	site_open(&s);
	/* slower than the usual half of the time */
	ANSWER(&s.server, "", "", "", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
	s.server.pause_ms = 500;
	q = request_of(&s);
	q.timeout_ms = q.idle_ms = 5000;
	run(&c, &s, &q);
	assert_int_equal(c.response.result, TRANSPORT_OK);
	assert_string_equal(c.body, "ok");
	q.timeout_ms = q.idle_ms = 200;
	run(&late, &s, &q);
	assert_int_equal(late.response.result, TRANSPORT_TIMEOUT);
	assert_true(late.response.sent);
	site_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(post__with_a_body__arrives_as_it_was_at_the_start),
		cmocka_unit_test(post__without_a_body__sends_an_empty_one),
		cmocka_unit_test(post__of_the_largest_body__goes_out_without_asking_first),
		cmocka_unit_test(get__sends_no_body),
		cmocka_unit_test(headers__of_the_answer__are_taken_over_if_they_fit),
		cmocka_unit_test(result__of_each_end__tells_what_it_was),
		cmocka_unit_test(result__of_a_body_over_the_limit__is_too_large),
		cmocka_unit_test(lines__however_they_are_cut__come_one_by_one),
		cmocka_unit_test(lines__in_a_post__come_as_well),
		cmocka_unit_test(cancel__in_a_line__ends_it_there_and_then),
		cmocka_unit_test(cancel__between_two_lines__is_heard_by_nobody),
		cmocka_unit_test(start__in_a_line__is_refused),
		cmocka_unit_test(line__over_the_limit__is_too_large_and_those_before_have_come),
		cmocka_unit_test(lines__of_a_refusal__are_its_body),
		cmocka_unit_test(lines__that_keep_coming__outlast_every_limit_but_silence),
		cmocka_unit_test(lines__that_never_begin__end_by_silence_too),
		cmocka_unit_test(answer__that_is_held_back__has_the_whole_time),
	};

	alarm(60);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
