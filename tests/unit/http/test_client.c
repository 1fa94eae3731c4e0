/*
 * Transfers against a server in the same loop that writes its answers byte by byte as the case
 * says: bodies of requests, answers without an end, and what is made of headers.
 */
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <netdb.h>
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
#include <curl/curl.h>
#include <openssl/x509_vfy.h>
#include <zlib.h>

#include "base/descriptors.h"
#include "http/advice.h"
#include "http/client.h"
#include "http/result.h"
#include "tests/unit/fixture/fault_memory.h"

#define MAX_REQUEST (2u << 20)
#define CONNECTIONS 16
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
	size_t lens[PIECES]; /* 0: up to its NUL */
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
	size_t len = s->lens[s->next];

	if (s->to->watch.fd < 0)
		return; /* the client is gone */
	if (piece) {
		s->next++;
		len = len ? len : strlen(piece);
		if (len)
			assert_int_equal(send(s->to->watch.fd, piece, len, MSG_NOSIGNAL), len);
		/* a timer that is left would send of the next answer before it is asked for */
		if (s->pieces[s->next] || s->closes)
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

/* ---- what libcurl says ---- */

#undef curl_easy_getinfo

static struct {
	CURLcode code; /* CURLE_OK: as it is */
	long verify_result, os_error;
	bool connected;
	int descriptors;
	struct curl_certinfo *certificates;
} says;

int descriptors_try(void)
{
	return says.descriptors;
}

CURLMsg *curl_multi_info_read(CURLM *multi, int *left)
{
	CURLMsg *(*real)(CURLM *, int *) =
		(CURLMsg * (*)(CURLM *, int *)) dlsym(RTLD_NEXT, "curl_multi_info_read");
	CURLMsg *m = real(multi, left);

	if (m && says.code)
		m->data.result = says.code;
	return m;
}

CURLcode curl_easy_getinfo(CURL *easy, CURLINFO info, ...)
{
	CURLcode (*real)(CURL *, CURLINFO, ...) =
		(CURLcode(*)(CURL *, CURLINFO, ...))dlsym(RTLD_NEXT, "curl_easy_getinfo");
	CURLcode code;
	va_list args;
	void *to;

	va_start(args, info);
	to = va_arg(args, void *);
	va_end(args);
	code = real(easy, info, to);
	if (info == CURLINFO_SSL_VERIFYRESULT && says.code)
		*(long *)to = says.verify_result;
	if (info == CURLINFO_OS_ERRNO && says.code)
		*(long *)to = says.os_error;
	if (info == CURLINFO_PRETRANSFER_TIME_T && says.code)
		*(curl_off_t *)to = says.connected;
	if (info == CURLINFO_CERTINFO && says.certificates)
		*(struct curl_certinfo **)to = says.certificates;
	return code;
}

/* ---- what the resolver says ---- */

static const char *const *resolved; /* the addresses of the name two.test, in this order */

static int look_up(
	const char *name, const char *port, const struct addrinfo *hints, struct addrinfo **found)
{
	int (*real)(const char *, const char *, const struct addrinfo *, struct addrinfo **) =
		(int (*)(const char *, const char *, const struct addrinfo *,
			struct addrinfo **))dlsym(RTLD_NEXT, "getaddrinfo");

	return real(name, port, hints, found);
}

int getaddrinfo(
	const char *name, const char *port, const struct addrinfo *hints, struct addrinfo **found)
{
	int r = 0;

	if (!name || strcmp(name, "two.test") != 0)
		return look_up(name, port, hints, found);
	for (size_t i = 0; r == 0 && resolved[i]; i++) {
		r = look_up(resolved[i], port, hints, found);
		while (r == 0 && *found)
			found = &(*found)->ai_next;
	}
	return r;
}

/* ---- the client ---- */

struct site {
	struct loop *loop;
	struct http_client *client;
	struct server server;
};

struct client {
	struct site *site;
	struct transfer *transfer; /* NULL: none is under way */
	/* what came */
	unsigned ended, lines;
	struct http_client_response response; /* without the body */
	char body[2048], text[2048];          /* text: the lines, "|" behind each */
	char coded[2048];
	uint64_t ended_ms, line_ms;
	/* in each line */
	void (*in_line)(struct client *c);
	struct client *other;
	int started;
};

static void is_done(void *arg, struct http_client_response *r)
{
	struct client *c = arg;

	c->transfer = NULL;
	assert_true(r->coded.len < sizeof(c->coded));
	if (r->coded.len)
		memcpy(c->coded, r->coded.data, r->coded.len);
	c->ended++;
	c->response = *r;
	snprintf(c->body, sizeof(c->body), "%s", r->body.data ? r->body.data : "");
	c->response.body = (struct buffer){.len = r->body.len};
	c->ended_ms = loop_now_ms(c->site->loop);
	loop_stop(c->site->loop);
}

static void line_came(void *arg, const struct http_client_response *line)
{
	struct client *c = arg;
	size_t len = strlen(c->text);

	assert_int_equal(c->ended, 0);
	assert_int_equal(line->status, 200);
	assert_int_equal(line->result, HTTP_CLIENT_OK);
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
	s->client = http_client_new(s->loop);
	assert_true(s->loop && s->client);
	server_start(&s->server, s->loop);
}

static void site_close(struct site *s)
{
	http_client_free(s->client);
	server_stop(&s->server);
	loop_free(s->loop);
}

static struct http_client_request request_of(const struct site *s)
{
	return (struct http_client_request){.url = s->server.url,
		.max_bytes = MAX_BYTES,
		.timeout_ms = 10000,
		.connect_timeout_ms = 10000};
}

static void start(struct client *c, struct site *s, const struct http_client_request *q)
{
	c->site = s;
	assert_int_equal(http_client_start(s->client, q, is_done, c, &c->transfer), 0);
	assert_int_equal(c->ended, 0);
}

static void run(struct client *c, struct site *s, const struct http_client_request *q)
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
		struct http_client_request q;
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
		assert_int_equal(c.response.result, HTTP_CLIENT_OK);
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
		struct http_client_request q;

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
	struct http_client_request q;
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
	assert_int_equal(c.response.result, HTTP_CLIENT_OK);
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
		struct http_client_request q;

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
	struct http_client_request q;
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
	assert_int_equal(second.response.result, HTTP_CLIENT_OK);
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
		enum http_client_result result;
		long status;
		uint64_t advice_ms;
		const char *message;
	} table[] = {
		{"HTTP/1.1 503 Busy\r\nRetry-After: 7\r\nContent-Length: 0\r\n\r\n", HTTP_CLIENT_OK,
			503, 7000, ""},
		{"HTTP/1.1 503 Busy\r\nRetry-After: soon\r\nContent-Length: 0\r\n\r\n",
			HTTP_CLIENT_OK, 503, 0, ""},
		{"HTTP/1.1 503 Busy\r\nDate: Sat, 21 Nov 2026 00:00:00 GMT\r\n"
		 "Retry-After: Sat, 21 Nov 2026 00:01:00 GMT\r\nContent-Length: 0\r\n\r\n",
			HTTP_CLIENT_OK, 503, 60000, ""},
		{"HTTP/1.1 302 Found\r\nLocation: /y\r\nContent-Length: 0\r\n\r\n", HTTP_CLIENT_OK,
			302, HTTP_CLIENT_NO_ADVICE, ""},
		{"HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\ntoo short", HTTP_CLIENT_NETWORK, 200,
			HTTP_CLIENT_NO_ADVICE, "the body was cut short"},
		{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nshort\r\n",
			HTTP_CLIENT_NETWORK, 200, HTTP_CLIENT_NO_ADVICE, "the body was cut short"},
		{"", HTTP_CLIENT_NETWORK, 0, HTTP_CLIENT_NO_ADVICE, "Empty reply"},
		{"what is this?\r\n", HTTP_CLIENT_PROTOCOL, 0, HTTP_CLIENT_NO_ADVICE, "HTTP/0.9"},
	};
	struct http_client_request q;
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
		assert_int_equal(
			c.response.message[0] == '\0', c.response.result == HTTP_CLIENT_OK);
		site_close(&s);
	}
}

static void result__of_each_error__has_its_advice(void **state)
{
	static const struct {
		CURLcode code;
		long verify_result, os_error;
		enum http_client_result result;
		const char *message; /* its end */
	} table[] = {
		{CURLE_OPERATION_TIMEDOUT, 0, 0, HTTP_CLIENT_TIMEOUT,
			"timed out: Timeout was reached"},
		{CURLE_COULDNT_RESOLVE_HOST, 0, 0, HTTP_CLIENT_NETWORK,
			": check the name in the url, and this host's resolver (/etc/resolv.conf)"},
		{CURLE_COULDNT_RESOLVE_PROXY, 0, 0, HTTP_CLIENT_NETWORK, ""},
		{CURLE_COULDNT_CONNECT, 0, ECONNREFUSED, HTTP_CLIENT_REFUSED,
			"connection refused: is the server running?"},
		{CURLE_COULDNT_CONNECT, 0, EHOSTUNREACH, HTTP_CLIENT_NETWORK,
			": check the address, and firewalls on the way to it"},
		{CURLE_PARTIAL_FILE, 0, 0, HTTP_CLIENT_NETWORK, "the body was cut short: "},
		{CURLE_GOT_NOTHING, 0, 0, HTTP_CLIENT_NETWORK,
			": it closed the connection without an answer: look at its log"},
		{CURLE_SEND_ERROR, 0, 0, HTTP_CLIENT_NETWORK, ""},
		{CURLE_RECV_ERROR, 0, 0, HTTP_CLIENT_NETWORK, ""},
		{CURLE_HTTP2, 0, 0, HTTP_CLIENT_NETWORK,
			": mend the server, or the proxy before it"},
		{CURLE_HTTP2_STREAM, 0, 0, HTTP_CLIENT_NETWORK,
			": mend the server, or the proxy before it"},
		{CURLE_OUT_OF_MEMORY, 0, 0, HTTP_CLIENT_PROTOCOL, ": look at the server"},
		{CURLE_UNSUPPORTED_PROTOCOL, 0, 0, HTTP_CLIENT_PROTOCOL, ""},
		{CURLE_SSL_CONNECT_ERROR, 0, 0, HTTP_CLIENT_TLS, ""},
		{CURLE_SSL_CERTPROBLEM, 0, 0, HTTP_CLIENT_HOST,
			": tls.cert cannot be read, or is not PEM"},
		{CURLE_SSL_CLIENTCERT, 0, 0, HTTP_CLIENT_TLS,
			": the server wants a certificate of this host: set tls.cert and tls.key"},
		{CURLE_SSL_CIPHER, 0, 0, HTTP_CLIENT_TLS, ""},
		{CURLE_SSL_CACERT_BADFILE, 0, 0, HTTP_CLIENT_HOST,
			"mend SSL_CERT_FILE, or install ca-certificates)"},
		{CURLE_SSL_CRL_BADFILE, 0, 0, HTTP_CLIENT_HOST,
			": tls.crl cannot be read, or holds no list in PEM"},
		{CURLE_SSL_ISSUER_ERROR, 0, 0, HTTP_CLIENT_TLS, ""},
		{CURLE_SSL_INVALIDCERTSTATUS, 0, 0, HTTP_CLIENT_TLS, ""},
		{CURLE_SSL_ENGINE_NOTFOUND, 0, 0, HTTP_CLIENT_TLS, ""},
		{CURLE_PEER_FAILED_VERIFICATION, X509_V_ERR_CERT_HAS_EXPIRED, 0, HTTP_CLIENT_TLS,
			": the server needs a new one, or the clock of this host is wrong"},
		{CURLE_PEER_FAILED_VERIFICATION, X509_V_ERR_CERT_NOT_YET_VALID, 0, HTTP_CLIENT_TLS,
			": is the clock of this host right?"},
		{CURLE_PEER_FAILED_VERIFICATION, X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT, 0,
			HTTP_CLIENT_TLS, ": if it is the right one, name it in tls.ca"},
		{CURLE_PEER_FAILED_VERIFICATION, X509_V_ERR_UNSPECIFIED, 0, HTTP_CLIENT_TLS,
			": the server's certificate is for another name than the url's"},
		{CURLE_SSL_CONNECT_ERROR, X509_V_ERR_CERT_HAS_EXPIRED, 0, HTTP_CLIENT_TLS,
			"error"}, /* it is not about that */
	};
	struct http_client_request q;
	struct site s;

	(void)state;
	site_open(&s);
	q = request_of(&s);
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct client c = {NULL};
		size_t len = strlen(table[i].message), said;

		says.code = table[i].code;
		says.verify_result = table[i].verify_result;
		says.os_error = table[i].os_error;
		ANSWER(&s.server, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
		run(&c, &s, &q);
		says.code = CURLE_OK;
		said = strlen(c.response.message);
		if (c.response.result != table[i].result || said == 0 || said < len ||
			strcmp(c.response.message + said - len, table[i].message) != 0)
			fail_msg("%d: %d, %s", (int)table[i].code, (int)c.response.result,
				c.response.message);
	}
	site_close(&s);
}

static void timeout__before_a_connection__is_not_the_servers_load(void **state)
{
	(void)state;
	assert_string_equal(advice_find(CURLE_OPERATION_TIMEDOUT, 0,
				    "Resolving timed out after 3001 milliseconds"),
		"this host's resolver does not answer (/etc/resolv.conf), or its servers");
	assert_string_equal(advice_find(CURLE_OPERATION_TIMEDOUT, 0,
				    "Failed to connect to x port 80 after 3001 ms"),
		"no address of it answers: a firewall is on the way, or the host is down");
	assert_string_equal(advice_find(CURLE_OPERATION_TIMEDOUT, 0, "Timeout was reached"), "");
}

static void transfer__whose_name_is_not_found_yet__waits_for_the_resolver(void **state)
{
	CURL *easy = curl_easy_init();

	(void)state;
	assert_string_equal(result_waits_for(easy, false),
		"this host's resolver does not answer (/etc/resolv.conf), or its servers");
	curl_easy_cleanup(easy);
}

static void failure__without_descriptors__is_this_hosts(void **state)
{
	static const struct {
		CURLcode code;
		long os_error;
		bool connected;
		int descriptors;
		enum http_client_result result;
		const char *message;
	} table[] = {
		{CURLE_COULDNT_CONNECT, 0, false, -EMFILE, HTTP_CLIENT_HOST,
			"cannot open a socket: Too many open files: raise the limit of open files "
			"(LimitNOFILE)"},
		{CURLE_COULDNT_RESOLVE_HOST, 0, false, -ENFILE, HTTP_CLIENT_HOST,
			"cannot open a socket: Too many open files in system: the system has no "
			"file descriptors left"},
		{CURLE_COULDNT_CONNECT, 0, false, 0, HTTP_CLIENT_NETWORK, NULL},
		/* it had its socket */
		{CURLE_RECV_ERROR, 0, true, -EMFILE, HTTP_CLIENT_NETWORK, NULL},
		{CURLE_PEER_FAILED_VERIFICATION, 0, false, -EMFILE, HTTP_CLIENT_TLS, NULL},
		{CURLE_COULDNT_CONNECT, ECONNREFUSED, false, -EMFILE, HTTP_CLIENT_REFUSED, NULL},
		{CURLE_OPERATION_TIMEDOUT, 0, false, -EMFILE, HTTP_CLIENT_TIMEOUT, NULL},
	};
	struct http_client_request q;
	struct site s;

	(void)state;
	site_open(&s);
	q = request_of(&s);
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct client c = {NULL};

		says.code = table[i].code;
		says.os_error = table[i].os_error;
		says.connected = table[i].connected;
		says.descriptors = table[i].descriptors;
		ANSWER(&s.server, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
		run(&c, &s, &q);
		memset(&says, 0, sizeof(says));
		assert_int_equal(c.response.result, table[i].result);
		if (table[i].message)
			assert_string_equal(c.response.message, table[i].message);
	}
	site_close(&s);
}

static bool no_threads;

int pthread_create(
	pthread_t *ret, const pthread_attr_t *attributes, void *(*start_it)(void *), void *arg)
{
	static int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

	if (no_threads)
		return EAGAIN;
	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "pthread_create");
	return real(ret, attributes, start_it, arg);
}

static void failure__without_a_thread_for_the_name__says_so(void **state)
{
	struct http_client_request q;
	struct client c = {NULL};
	struct site s;

	(void)state;
	site_open(&s);
	q = request_of(&s);
	q.url = "http://name.invalid/web.yaml";
	no_threads = true;
	run(&c, &s, &q);
	no_threads = false;
	assert_int_equal(c.response.result, HTTP_CLIENT_NETWORK);
	assert_string_equal(c.response.message,
		"getaddrinfo() thread failed to start: the server's name is not looked up: raise "
		"the limit of processes (TasksMax, pids.max)");
	site_close(&s);
}

#define SILENT "127.0.0.2"
#define SILENT_6 "::1"
#define REFUSING "127.0.0.3"

/* An address that answers nobody, as its queue of connections is full. */
struct silence {
	int fd, waiting[2];
};

/* False: this host has no such address. */
static bool silence_open(struct silence *q, const char *address, const char *port)
{
	const struct addrinfo hints = {.ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_STREAM};
	struct addrinfo *a;
	int one = 1;
	bool bound;

	assert_int_equal(look_up(address, port, &hints, &a), 0);
	q->fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (a->ai_family == AF_INET6)
		setsockopt(q->fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one));
	bound = bind(q->fd, a->ai_addr, a->ai_addrlen) == 0 && listen(q->fd, 0) == 0;
	for (size_t i = 0; i < 2; i++) {
		q->waiting[i] = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		if (bound)
			connect(q->waiting[i], a->ai_addr, a->ai_addrlen);
	}
	freeaddrinfo(a);
	return bound;
}

static void silence_close(struct silence *q)
{
	close(q->fd);
	close(q->waiting[0]);
	close(q->waiting[1]);
}

static void ask_addresses(
	const char *const addresses[], uint64_t connect_timeout_ms, enum http_client_result result)
{
	struct client c = {NULL};
	struct http_client_request q;
	struct silence silence, silence_6;
	struct site s;
	char url[64], port[8];
	bool has_6;

	site_open(&s);
	assert_int_equal(sscanf(s.server.url, "http://127.0.0.1:%7[0-9]/", port), 1);
	assert_true(silence_open(&silence, SILENT, port));
	has_6 = silence_open(&silence_6, SILENT_6, port);
	snprintf(url, sizeof(url), "http://two.test:%s/x", port);
	resolved = addresses;
	q = request_of(&s);
	q.url = url;
	q.connect_timeout_ms = connect_timeout_ms;
	ANSWER(&s.server, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
	if (has_6 || strcmp(addresses[0], SILENT_6) != 0)
		run(&c, &s, &q);
	else
		c.response.result = result;
	if (c.response.result != result)
		fail_msg("%s, ...: %d, %s", addresses[0], (int)c.response.result,
			c.response.message);
	if (result == HTTP_CLIENT_OK)
		assert_true(c.response.duration_ms < connect_timeout_ms);
	silence_close(&silence);
	silence_close(&silence_6);
	site_close(&s);
}

static void name__with_addresses_that_do_not_answer__is_asked_at_the_next(void **state)
{
	static const struct {
		const char *addresses[5];
		uint64_t connect_timeout_ms;
		enum http_client_result result;
	} table[] = {
		{{SILENT, "127.0.0.1"}, 1000, HTTP_CLIENT_OK},
		{{SILENT, SILENT, "127.0.0.1"}, 2000, HTTP_CLIENT_OK},
		{{REFUSING, SILENT, REFUSING, "127.0.0.1"}, 1000, HTTP_CLIENT_OK},
		{{SILENT_6, SILENT, "127.0.0.1"}, 2000, HTTP_CLIENT_OK},
		{{SILENT_6, SILENT_6, SILENT, "127.0.0.1"}, 2000, HTTP_CLIENT_OK},
		{{SILENT, REFUSING}, 500, HTTP_CLIENT_REFUSED},
		{{SILENT}, 500, HTTP_CLIENT_TIMEOUT},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		ask_addresses(table[i].addresses, table[i].connect_timeout_ms, table[i].result);
}

static void certificates__that_are_examined__have_the_first_end(void **state)
{
	struct curl_slist late = {(char[]){"Expire date:Feb  1 00:00:00 2027 GMT"}, NULL},
			  subject = {(char[]){"Subject:CN = x"}, &late},
			  early = {(char[]){"Expire date:Jan  1 00:00:00 2027 GMT"}, NULL},
			  bad = {(char[]){"Expire date:soon"}, NULL};
	struct curl_slist *chains[][3] = {{&subject, &early, NULL}, {&early, &subject, NULL},
		{&bad, &subject, &early}, {&bad, NULL, NULL}};
	static const int64_t ends_ms[] = {
		INT64_C(1798761600000), INT64_C(1798761600000), INT64_C(1798761600000), 0};

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		struct curl_certinfo found = {3, chains[i]};
		struct http_client_request q;
		struct client c = {NULL};
		struct site s;

		site_open(&s);
		http_client_examine(s.client);
		says.certificates = &found;
		ANSWER(&s.server, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
		q = request_of(&s);
		run(&c, &s, &q);
		says.certificates = NULL;
		assert_true(c.response.certificates_end_ms == ends_ms[i]);
		site_close(&s);
	}
}

static void result__of_a_body_over_the_limit__is_too_large(void **state)
{
	struct client c[3] = {{NULL}};
	struct http_client_request q;
	struct site s;

	(void)state;
	site_open(&s);
	q = request_of(&s);
	for (size_t i = 0; i < 3; i++) {
		ANSWER(&s.server, CHUNKED "4\r\n1234\r\n", "4\r\n5678\r\n0\r\n\r\n");
		q.max_bytes = 9 - i;
		run(&c[i], &s, &q);
		assert_int_equal(
			c[i].response.result, i < 2 ? HTTP_CLIENT_OK : HTTP_CLIENT_TOO_LARGE);
	}
	assert_string_equal(c[1].body, "12345678");
	assert_string_equal(c[2].response.message, "the body is larger than the limit of 7 bytes");
	site_close(&s);
}

static void answer__that_may_mean_two_things__is_refused(void **state)
{
	static const struct {
		const char *answer, *why;
	} table[] = {
		{"Content-Length: 50\r\nContent-Length: 5\r\n\r\nhello", "differ"},
		{"Content-Length: 5\r\nContent-Length: 50\r\n\r\nhello", "differ"},
		{"Content-Length: 5, 50\r\n\r\nhello", "differ"},
		{"Content-Length: 5x\r\n\r\nhello", "decimal"},
		{"Content-Length: +5\r\n\r\nhello", "decimal"},
		{"Content-Length: -1\r\n\r\nhello", "decimal"},
		{"Content-Length:\r\n\r\nhello", "decimal"},
		{"Content-Length: 0x5\r\n\r\nhello", "decimal"},
		{"Content-Length: 99999999999999999999\r\n\r\nhello", "too large"},
		{"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
			"both"},
		{"Transfer-Encoding: gzip, chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
			"Transfer-Encoding"},
		{"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"
		 "0\r\n\r\n",
			"Transfer-Encoding"},
		{"ETag : \"1\"\r\nContent-Length: 5\r\n\r\nhello", "blank"},
		{"ETag: \"1\"\r\n x\r\nContent-Length: 5\r\n\r\nhello", "goes on"},
		{"ETag: \"1\rX: \"\r\nContent-Length: 5\r\n\r\nhello", "control character"},
		{"ETag: \"1\"\r\nETag: \"2\"\r\nContent-Length: 5\r\n\r\nhello", "'etag'"},
		{"Content-Type: a/b\r\nContent-Type: a/c\r\nContent-Length: 5\r\n\r\nhello",
			"'content-type'"},
		{"Content-Encoding: gzip\r\nContent-Encoding: gzip\r\nContent-Length: "
		 "5\r\n\r\nhello",
			"'content-encoding'"},
	};
	char answer[512];
	struct site s;

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct client c = {NULL};
		struct http_client_request q;

		site_open(&s);
		snprintf(answer, sizeof(answer), "HTTP/1.1 200 OK\r\n%s", table[i].answer);
		s.server.closes = true;
		ANSWER(&s.server, answer);
		q = request_of(&s);
		run(&c, &s, &q);
		assert_int_equal(c.response.result, HTTP_CLIENT_PROTOCOL);
		/* of some libcurl says it first, in its own words */
		if (!strstr(c.response.message, "Invalid Content-Length")) {
			assert_non_null(strstr(c.response.message, table[i].why));
			assert_non_null(strstr(c.response.message, "the answer is malformed: "));
		}
		site_close(&s);
	}
}

static void header__that_is_repeated__says_the_same_or_counts_last(void **state)
{
	struct client c = {NULL};
	struct http_client_request q;
	struct site s;

	(void)state;
	site_open(&s);
	ANSWER(&s.server, "HTTP/1.1 200 OK\r\nETag: \"1\"\r\nETag: \"1\"\r\nContent-Type: a/B\r\n"
			  "Content-Type: A/b; x\r\nDate: today\r\nDate: yesterday\r\n"
			  "Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}");
	q = request_of(&s);
	run(&c, &s, &q);
	assert_int_equal(c.response.result, HTTP_CLIENT_OK);
	assert_string_equal(c.body, "{}");
	assert_string_equal(c.response.etag, "\"1\"");
	assert_string_equal(c.response.content_type, "a/b");
	assert_string_equal(c.response.server_date, "yesterday");
	site_close(&s);
}

static void header__of_a_digest__is_kept_with_all_its_lines(void **state)
{
	char long_one[HTTP_CLIENT_DIGESTS + 100], want[HTTP_CLIENT_DIGESTS + 1];
	struct http_client_request q;
	struct site s;

	(void)state;
	site_open(&s);
	q = request_of(&s);
	for (int longer = 0; longer < 2; longer++) {
		struct client c = {NULL};
		int n = HTTP_CLIENT_DIGESTS - 3 - (int)strlen("sha-512=:B:") + longer;

		snprintf(long_one, sizeof(long_one), "Repr-Digest: %0*d\r\n", n, 7);
		ANSWER(&s.server,
			"HTTP/1.1 200 OK\r\nContent-Digest: sha-256=:A:\r\nDigest: MD5=x\r\n"
			"Content-Digest:\r\ncontent-digest: sha-512=:B:\r\n",
			long_one, "Repr-Digest: sha-512=:B:\r\nContent-Length: 2\r\n\r\n{}");
		run(&c, &s, &q);
		if (longer) {
			assert_int_equal(c.response.result, HTTP_CLIENT_PROTOCOL);
			assert_non_null(strstr(c.response.message, "its headers 'repr-digest'"));
			continue;
		}
		assert_int_equal(c.response.result, HTTP_CLIENT_OK);
		assert_string_equal(c.response.content_digest, "sha-256=:A:, , sha-512=:B:");
		snprintf(want, sizeof(want), "%0*d, sha-512=:B:", n, 7);
		assert_string_equal(c.response.repr_digest, want);
		assert_string_equal(c.response.digest, "MD5=x");
		assert_int_equal(c.response.coded.len, 0);
	}
	site_close(&s);
}

static void trailers__say_nothing(void **state)
{
	struct client c = {NULL};
	struct http_client_request q;
	struct site s;

	(void)state;
	site_open(&s);
	ANSWER(&s.server,
		"HTTP/1.1 200 OK\r\nETag: \"1\"\r\nTrailer: ETag\r\nTransfer-Encoding: "
		"chunked\r\n\r\n2\r\n{}\r\n0\r\n",
		"ETag: \"2\"\r\nContent-Type: text/html\r\nContent-Length: 1\r\n"
		"Content-Encoding: gzip\r\nX-Consul-Index: 9\r\nRepr-Digest: sha-256=:A:\r\n\r\n");
	q = request_of(&s);
	run(&c, &s, &q);
	assert_int_equal(c.response.result, HTTP_CLIENT_OK);
	assert_string_equal(c.body, "{}");
	assert_string_equal(c.response.etag, "\"1\"");
	assert_string_equal(c.response.content_type, "");
	assert_string_equal(c.response.content_encoding, "");
	assert_string_equal(c.response.consul_index, "");
	assert_string_equal(c.response.repr_digest, "");
	site_close(&s);
}

/* ---- which connection carries what ---- */

#define DOCUMENT_A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define DOCUMENT_B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define UNASKED "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\nunasked"

static struct client get_document(struct site *s, const char *document)
{
	struct client c = {NULL};
	struct http_client_request q = request_of(s);

	q.document = document;
	run(&c, s, &q);
	assert_int_equal(c.response.result, HTTP_CLIENT_OK);
	return c;
}

static void stop_waiting(void *arg)
{
	loop_stop(arg);
}

/* Until all that the server sends by itself has come. */
static void let_pass(struct site *s, uint64_t ms)
{
	struct loop_timer timer;

	loop_timer_init(&timer, stop_waiting, s->loop);
	loop_timer_set(s->loop, &timer, loop_now_ms(s->loop) + ms);
	assert_int_equal(loop_run(s->loop), 0);
}

static void connection__of_a_document__carries_that_one_only(void **state)
{
	static const struct {
		const char *document;
		size_t accepted; /* in all */
		const char *said;
	} table[] = {
		{DOCUMENT_A, 1, ""},
		{DOCUMENT_A, 1, ""},
		{DOCUMENT_B, 2, ""},
		{DOCUMENT_A, 2, ""},
		{NULL, 3, "close"},
		{NULL, 4, "close"},
		{DOCUMENT_B, 4, ""},
		{DOCUMENT_A, 4, ""},
	};
	struct site s;

	(void)state;
	site_open(&s);
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		ANSWER(&s.server, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
		get_document(&s, table[i].document);
		assert_int_equal(s.server.accepted, table[i].accepted);
		assert_string_equal(sent_header(&s, "Connection"), table[i].said);
	}
	/* the machine slept */
	http_client_forget(s.client);
	get_document(&s, DOCUMENT_A);
	assert_int_equal(s.server.accepted, 5);
	site_close(&s);
}

static void connection__of_a_chunked_answer__is_used_again_however_it_was_cut(void **state)
{
	static const char *const answers[][4] = {
		{CHUNKED "2\r\nok\r\n0\r\n\r\n"},
		{CHUNKED, "2\r\nok\r\n", "0\r\n\r\n"},
		{CHUNKED "1\r\no\r\n", "1\r\nk\r\n0\r\n\r\n"},
		{CHUNKED "2\r", "\nok\r\n0\r\n", "\r\n"},
	};
	struct site s;

	(void)state;
	site_open(&s);
	for (size_t i = 0; i < 2 * sizeof(answers) / sizeof(answers[0]); i++) {
		memset(s.server.pieces, 0, sizeof(s.server.pieces));
		memcpy(s.server.pieces, answers[i / 2], sizeof(answers[0]));
		get_document(&s, DOCUMENT_A);
		assert_int_equal(s.server.accepted, 1);
	}
	site_close(&s);
}

static void connection__with_something_unread__is_not_used_again(void **state)
{
	static const char *const answers[][3] = {
		{"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", UNASKED},
		{"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok" UNASKED},
		{CHUNKED "2\r\nok\r\n0\r\n\r\n", UNASKED},
		{CHUNKED "2\r\nok\r\n0\r\n\r\n" UNASKED},
		{"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", "\r\n"},
	};
	struct client c;
	struct site s;

	(void)state;
	for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
		site_open(&s);
		ANSWER(&s.server, answers[i][0], answers[i][1]);
		get_document(&s, DOCUMENT_A);
		let_pass(&s, 30);
		ANSWER(&s.server, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nasked");
		c = get_document(&s, DOCUMENT_A);
		assert_string_equal(c.body, "asked");
		assert_int_equal(s.server.accepted, 2);
		site_close(&s);
	}
}

static void connection__behind_an_answer_without_a_body__is_doubted(void **state)
{
	static const struct {
		const char *answer;
		uint64_t pause_ms;
		size_t accepted;
	} table[] = {
		{"HTTP/1.1 304 Not Modified\r\nContent-Length: 61\r\n\r\n", 1100, 2},
		{"HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n", 1100, 2},
		{"HTTP/1.1 304 Not Modified\r\n\r\n", 0, 2},
		{"HTTP/1.1 304 Not Modified\r\n\r\n", 1100, 1},
		{"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", 0, 1},
	};
	struct client c;
	struct site s;

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		site_open(&s);
		ANSWER(&s.server, table[i].answer);
		get_document(&s, DOCUMENT_A);
		let_pass(&s, table[i].pause_ms);
		ANSWER(&s.server, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nasked");
		c = get_document(&s, DOCUMENT_A);
		assert_string_equal(c.body, "asked");
		assert_int_equal(s.server.accepted, table[i].accepted);
		site_close(&s);
	}
}

static void documents__beyond_the_places__have_new_connections(void **state)
{
	char document[65] = DOCUMENT_A;
	size_t accepted;
	struct site s;

	(void)state;
	site_open(&s);
	ANSWER(&s.server, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", NULL);
	for (int round = 0; round < 2; round++)
		for (int i = 0; i < 7; i++) {
			document[0] = (char)('A' + i);
			get_document(&s, document);
		}
	assert_int_equal(s.server.accepted, 7);
	for (int i = 0; i < 200; i++) {
		document[0] = (char)('b' + i % 25);
		get_document(&s, document);
	}
	/* now there are so many that none has a place */
	accepted = s.server.accepted;
	document[0] = 'A';
	get_document(&s, document);
	get_document(&s, document);
	assert_int_equal(s.server.accepted, accepted + 2);
	assert_string_equal(sent_header(&s, "Connection"), "close");
	site_close(&s);
}

/* ---- bodies in gzip ---- */

#define TEXT "key: value\nkey: value\nother: value\n"

/* TEXT, and a full flush in its middle. Returns the length. */
static size_t code(unsigned char coded[256])
{
	z_stream z = {0};

	assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, 31, 8, 0), Z_OK);
	z.next_in = (Bytef *)TEXT;
	z.avail_in = 17;
	z.next_out = coded;
	z.avail_out = 256;
	assert_int_equal(deflate(&z, Z_FULL_FLUSH), Z_OK);
	z.avail_in += (uInt)strlen(TEXT) - 17;
	assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
	deflateEnd(&z);
	return z.total_out;
}

static bool may_be_packed;

/* The first len bytes, as a whole body. */
static void get_coded(struct client *c, struct site *s, const char *status, const char *encoding,
	const unsigned char *coded, size_t len, bool chunked, size_t max_bytes)
{
	struct http_client_request q;
	char head[256], *body = malloc(len + 64);
	size_t at = 0;

	assert_non_null(body);
	*c = (struct client){NULL};
	memset(s->server.lens, 0, sizeof(s->server.lens));
	snprintf(head, sizeof(head), "HTTP/1.1 %s\r\nContent-Encoding: %s\r\n%s: ", status,
		encoding, chunked ? "Transfer-Encoding" : "Content-Length");
	snprintf(head + strlen(head), sizeof(head) - strlen(head),
		chunked ? "chunked\r\n\r\n" : "%zu\r\n\r\n", len);
	if (chunked && len)
		at = (size_t)snprintf(body, 64, "%zx\r\n", len);
	memcpy(body + at, coded, len);
	at += len;
	if (chunked)
		at += (size_t)snprintf(body + at, 16, "%s0\r\n\r\n", len ? "\r\n" : "");
	ANSWER(&s->server, head, at ? body : NULL);
	s->server.lens[1] = at;
	s->server.pause_ms = 0;
	q = request_of(s);
	q.max_bytes = max_bytes;
	q.may_be_packed = may_be_packed;
	run(c, s, &q);
	free(body);
}

static void gzip__that_is_whole__is_decoded(void **state)
{
	static const char *const names[] = {"gzip", "x-gzip", "GZip"};
	unsigned char coded[256];
	size_t len = code(coded);
	struct client c;
	struct site s;

	(void)state;
	site_open(&s);
	for (int i = 0; i < 6; i++) {
		get_coded(&c, &s, "200 OK", names[i % 3], coded, len, i < 3, strlen(TEXT));
		assert_int_equal(c.response.result, HTTP_CLIENT_OK);
		assert_string_equal(c.body, TEXT);
		assert_true(c.response.framed);
	}
	get_coded(&c, &s, "200 OK", "gzip", coded, len, false, strlen(TEXT) - 1);
	assert_int_equal(c.response.result, HTTP_CLIENT_TOO_LARGE);
	/* of another coding nothing is known here */
	get_coded(&c, &s, "200 OK", "br", coded, len, false, 1000);
	assert_int_equal(c.response.result, HTTP_CLIENT_OK);
	assert_int_equal(c.response.body.len, len);
	site_close(&s);
}

static void gzip__with_a_digest__is_kept_as_it_was_sent_too(void **state)
{
	static const char *const headers[] = {"200 OK", "200 OK\r\nContent-Digest: x",
		"200 OK\r\nRepr-Digest: x", "200 OK\r\nDigest: x"};
	unsigned char coded[256];
	size_t len = code(coded);
	struct client c;
	struct site s;

	(void)state;
	site_open(&s);
	for (int i = 0; i < 4; i++) {
		get_coded(&c, &s, headers[i], "gzip", coded, len, false, 1000);
		assert_int_equal(c.response.result, HTTP_CLIENT_OK);
		assert_string_equal(c.body, TEXT);
		assert_int_equal(c.response.coded.len, i ? len : 0);
		assert_memory_equal(c.coded, coded, i ? len : 0);
	}
	site_close(&s);
}

/* What may be left to another thread: a large body of a 200. */
static void gzip__that_may_be_packed__is_decoded_where_it_is_small(void **state)
{
	static const size_t sizes[] = {1000, 65536, 65537, 200000};
	unsigned char coded[1024];
	struct client c;
	struct site s;
	char *text = malloc(200000);

	(void)state;
	assert_non_null(text);
	memset(text, 'a', 200000);
	site_open(&s);
	for (int i = 0; i < 8; i++) {
		z_stream z = {0};
		bool large = sizes[i / 2] > 65536, error = i % 2;

		assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, 31, 8, 0), Z_OK);
		z.next_in = (Bytef *)text;
		z.avail_in = (uInt)sizes[i / 2];
		z.next_out = coded;
		z.avail_out = sizeof(coded);
		assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
		deflateEnd(&z);
		may_be_packed = true;
		get_coded(&c, &s, error ? "404 Not Found" : "200 OK", "gzip", coded, z.total_out,
			false, 1000000);
		may_be_packed = false;
		assert_int_equal(c.response.result, HTTP_CLIENT_OK);
		assert_int_equal(c.response.packed, large && !error);
		assert_int_equal(c.response.body.len, large && !error ? 0 : sizes[i / 2]);
		assert_int_equal(c.response.coded.len, large && !error ? z.total_out : 0);
	}
	free(text);
	site_close(&s);
}

static void gzip__that_is_not_whole__is_refused(void **state)
{
	unsigned char coded[256] = {0};
	size_t len = code(coded);
	struct client c;
	struct site s;

	(void)state;
	site_open(&s);
	for (size_t cut = 0; cut < len; cut++)
		for (int chunked = 0; chunked < 2; chunked++) {
			get_coded(&c, &s, "200 OK", "gzip", coded, cut, chunked, 1000);
			assert_int_equal(c.response.result, HTTP_CLIENT_CODING);
			assert_non_null(strstr(
				c.response.message, "its gzip body is broken: it is cut short"));
		}
	get_coded(&c, &s, "200 OK", "gzip", coded, len + 1, true, 1000);
	assert_non_null(strstr(c.response.message, "behind its end"));
	coded[len - 5] ^= 1;
	get_coded(&c, &s, "200 OK", "gzip", coded, len, false, 1000);
	assert_non_null(strstr(c.response.message, "incorrect data check"));
	assert_int_equal(c.response.result, HTTP_CLIENT_CODING);
	site_close(&s);
}

static void gzip__of_an_error__never_hides_its_status(void **state)
{
	unsigned char coded[256];
	size_t len = code(coded);
	struct client c;
	struct site s;

	(void)state;
	site_open(&s);
	get_coded(&c, &s, "404 Not Found", "gzip", coded, len, false, 1000);
	assert_int_equal(c.response.result, HTTP_CLIENT_OK);
	assert_int_equal(c.response.status, 404);
	assert_string_equal(c.body, TEXT);
	for (size_t bad = 0; bad < 2; bad++) {
		if (bad)
			coded[3] ^= 0xff;
		get_coded(&c, &s, "503 Busy\r\nRetry-After: 7", "gzip", coded, len - 1, bad, 1000);
		assert_int_equal(c.response.result, HTTP_CLIENT_OK);
		assert_int_equal(c.response.status, 503);
		assert_true(c.response.retry_after_ms == 7000);
		assert_int_equal(c.response.body.len, 0);
	}
	/* no body: it is the document's coding that is told */
	ANSWER(&s.server, "HTTP/1.1 304 Not Modified\r\nContent-Encoding: gzip\r\n\r\n");
	memset(s.server.lens, 0, sizeof(s.server.lens));
	c = (struct client){NULL};
	run(&c, &s,
		&(struct http_client_request){.url = s.server.url,
			.max_bytes = 1000,
			.timeout_ms = 10000,
			.connect_timeout_ms = 10000});
	assert_int_equal(c.response.result, HTTP_CLIENT_OK);
	assert_int_equal(c.response.status, 304);
	site_close(&s);
}

/* ---- answers without an end ---- */

static struct http_client_request lines_of(const struct site *s)
{
	struct http_client_request q = request_of(s);

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
	struct http_client_request q;
	struct site s;

	(void)state;
	for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
		struct client c = {NULL};

		site_open(&s);
		memcpy(s.server.pieces, answers[i], sizeof(answers[i]));
		q = lines_of(&s);
		run(&c, &s, &q);
		assert_int_equal(c.response.result, HTTP_CLIENT_OK);
		assert_int_equal(c.response.status, 200);
		assert_string_equal(c.text, "one|two||three\r|");
		assert_int_equal(c.lines, 4);
		/* without its end, "last" is no line */
		assert_int_equal(c.response.body.len, 4);
		site_close(&s);
	}
}

static void lines__are_not_asked_for_in_gzip(void **state)
{
	struct client c = {NULL};
	struct http_client_request q;
	struct site s;

	(void)state;
	site_open(&s);
	ANSWER(&s.server, "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nTransfer-Encoding: "
			  "chunked\r\n\r\n4\r\none\n\r\n");
	q = lines_of(&s);
	run(&c, &s, &q);
	assert_string_equal(sent_header(&s, "Accept-Encoding"), "");
	assert_int_equal(c.response.result, HTTP_CLIENT_PROTOCOL);
	assert_non_null(strstr(c.response.message, "not asked for"));
	assert_int_equal(c.lines, 0);
	site_close(&s);
}

static void lines__in_a_post__come_as_well(void **state)
{
	struct client c = {NULL};
	struct http_client_request q;
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
	http_client_cancel(c->transfer);
	c->transfer = NULL;
	loop_stop(c->site->loop);
}

static void cancel__in_a_line__ends_it_there_and_then(void **state)
{
	struct client c = {.in_line = cancel_in_line}, next = {NULL};
	struct http_client_request q;
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
	struct http_client_request q;
	struct site s;

	(void)state;
	site_open(&s);
	ANSWER(&s.server, CHUNKED "6\r\none\ntw\r\n", "2\r\no\n\r\n");
	s.server.pause_ms = 50;
	q = lines_of(&s);
	start(&c, &s, &q);
	assert_int_equal(loop_run(s.loop), 0);
	assert_string_equal(c.text, "one|");
	http_client_cancel(c.transfer);
	ANSWER(&s.server, CHUNKED "5\r\nnext\n\r\n0\r\n\r\n");
	run(&next, &s, &q);
	assert_string_equal(next.text, "next|");
	assert_string_equal(c.text, "one|");
	assert_int_equal(c.ended, 0);
	/* what is still under way ends with the client */
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
	struct http_client_request q = request_of(c->site);
	struct transfer *t = NULL;

	c->started = http_client_start(c->site->client, &q, is_done, c->other, &t);
	assert_null(t);
}

static void start__in_a_line__is_refused(void **state)
{
	struct client c = {.in_line = start_in_line}, other = {NULL};
	struct http_client_request q;
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
	struct http_client_request q;
	struct site s;

	(void)state;
	site_open(&s);
	q = lines_of(&s);
	q.max_bytes = 4; /* of a line: there are more in all */
	ANSWER(&s.server, CHUNKED "10\r\none\nfour\n1234\nto\r\n", "4\r\no l\n\r\n0\r\n\r\n");
	run(&c, &s, &q);
	assert_int_equal(c.response.result, HTTP_CLIENT_TOO_LARGE);
	assert_string_equal(c.text, "one|four|1234|");
	ANSWER(&s.server, CHUNKED "4\r\n1234\r\n", "1\r\n5\r\n");
	run(&split, &s, &q);
	assert_int_equal(split.response.result, HTTP_CLIENT_TOO_LARGE);
	assert_int_equal(split.lines, 0);
	site_close(&s);
}

static void lines__of_a_refusal__are_its_body(void **state)
{
	struct client c = {NULL}, large = {NULL};
	struct http_client_request q;
	struct site s;

	(void)state;
	site_open(&s);
	ANSWER(&s.server, "HTTP/1.1 401 No\r\nContent-Length: 9\r\n\r\n", "no\n", "token\n");
	q = lines_of(&s);
	run(&c, &s, &q);
	assert_int_equal(c.response.result, HTTP_CLIENT_OK);
	assert_int_equal(c.response.status, 401);
	assert_string_equal(c.body, "no\ntoken\n");
	assert_int_equal(c.lines, 0);
	q.max_bytes = 8;
	run(&large, &s, &q);
	assert_int_equal(large.response.result, HTTP_CLIENT_TOO_LARGE);
	site_close(&s);
}

/* ---- time ---- */

static void lines__that_keep_coming__outlast_every_limit_but_silence(void **state)
{
	struct client c = {NULL};
	struct http_client_request q;
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
	assert_int_equal(c.response.result, HTTP_CLIENT_TIMEOUT);
	assert_in_range(c.ended_ms - c.line_ms, 1000, 20000);
	site_close(&s);
}

static void lines__that_never_begin__end_by_silence_too(void **state)
{
	struct client c = {NULL};
	struct http_client_request q;
	struct site s;
	uint64_t from_ms;

	(void)state;
	site_open(&s);
	ANSWER(&s.server, "");
	q = lines_of(&s);
	q.idle_ms = 1000;
	from_ms = loop_now_ms(s.loop);
	run(&c, &s, &q);
	assert_int_equal(c.response.result, HTTP_CLIENT_TIMEOUT);
	assert_true(c.response.sent);
	assert_in_range(c.ended_ms - from_ms, 1000, 20000);
	site_close(&s);
}

static void lines__that_end_by_silence__leave_nothing_behind(void **state)
{
	struct http_client_request q;
	struct site s;
	long before = 0;

	(void)state;
	site_open(&s);
	ANSWER(&s.server, "");
	q = lines_of(&s);
	q.idle_ms = 2;
	for (int i = 0; i < 12; i++) {
		struct client c = {NULL};

		if (i == 2) /* what is made once is there */
			before = fault_memory.live;
		run(&c, &s, &q);
		assert_int_equal(c.response.result, HTTP_CLIENT_TIMEOUT);
	}
	assert_true(fault_memory.live - before < 10); /* the server has not seen the last end */
	site_close(&s);
}

static void answer__that_is_held_back__has_the_whole_time(void **state)
{
	struct client c = {NULL}, late = {NULL};
	struct http_client_request q;
	struct site s;

	(void)state;
	site_open(&s);
	/* slower than the usual half of the time */
	ANSWER(&s.server, "", "", "", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
	s.server.pause_ms = 500;
	q = request_of(&s);
	q.timeout_ms = q.idle_ms = 5000;
	run(&c, &s, &q);
	assert_int_equal(c.response.result, HTTP_CLIENT_OK);
	assert_string_equal(c.body, "ok");
	q.timeout_ms = q.idle_ms = 200;
	run(&late, &s, &q);
	assert_int_equal(late.response.result, HTTP_CLIENT_TIMEOUT);
	assert_true(late.response.sent);
	site_close(&s);
}

/* ---- memory ---- */

static struct site *short_of_memory;

static bool start_once(void)
{
	static const char *const headers[] = {"X-A: b", NULL};
	struct http_client_request q = request_of(short_of_memory);
	struct transfer *t = NULL;
	struct client c = {.site = short_of_memory};
	int r;

	q.headers = headers;
	q.document = "0123456789012345678901234567890123456789012345678901234567890123";
	q.method = "POST";
	q.body = "body";
	q.body_len = 4;
	q.user = "u";
	q.password = "p";
	q.tls.ca = "/nowhere";
	r = http_client_start(short_of_memory->client, &q, is_done, &c, &t);
	assert_int_equal(t == NULL, r != 0);
	if (t)
		http_client_cancel(t);
	return r;
}

static void start__without_memory__is_an_error(void **state)
{
	struct site s;

	(void)state;
	site_open(&s);
	short_of_memory = &s;
	assert_true(fault_memory_each(start_once, false) >= 10);
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
		cmocka_unit_test(result__of_each_error__has_its_advice),
		cmocka_unit_test(name__with_addresses_that_do_not_answer__is_asked_at_the_next),
		cmocka_unit_test(timeout__before_a_connection__is_not_the_servers_load),
		cmocka_unit_test(transfer__whose_name_is_not_found_yet__waits_for_the_resolver),
		cmocka_unit_test(failure__without_descriptors__is_this_hosts),
		cmocka_unit_test(failure__without_a_thread_for_the_name__says_so),
		cmocka_unit_test(certificates__that_are_examined__have_the_first_end),
		cmocka_unit_test(result__of_a_body_over_the_limit__is_too_large),
		cmocka_unit_test(answer__that_may_mean_two_things__is_refused),
		cmocka_unit_test(header__that_is_repeated__says_the_same_or_counts_last),
		cmocka_unit_test(trailers__say_nothing),
		cmocka_unit_test(connection__of_a_document__carries_that_one_only),
		cmocka_unit_test(connection__of_a_chunked_answer__is_used_again_however_it_was_cut),
		cmocka_unit_test(connection__with_something_unread__is_not_used_again),
		cmocka_unit_test(connection__behind_an_answer_without_a_body__is_doubted),
		cmocka_unit_test(documents__beyond_the_places__have_new_connections),
		cmocka_unit_test(gzip__that_is_whole__is_decoded),
		cmocka_unit_test(gzip__with_a_digest__is_kept_as_it_was_sent_too),
		cmocka_unit_test(gzip__that_may_be_packed__is_decoded_where_it_is_small),
		cmocka_unit_test(header__of_a_digest__is_kept_with_all_its_lines),
		cmocka_unit_test(gzip__that_is_not_whole__is_refused),
		cmocka_unit_test(gzip__of_an_error__never_hides_its_status),
		cmocka_unit_test(lines__are_not_asked_for_in_gzip),
		cmocka_unit_test(lines__however_they_are_cut__come_one_by_one),
		cmocka_unit_test(lines__in_a_post__come_as_well),
		cmocka_unit_test(cancel__in_a_line__ends_it_there_and_then),
		cmocka_unit_test(cancel__between_two_lines__is_heard_by_nobody),
		cmocka_unit_test(start__in_a_line__is_refused),
		cmocka_unit_test(line__over_the_limit__is_too_large_and_those_before_have_come),
		cmocka_unit_test(lines__of_a_refusal__are_its_body),
		cmocka_unit_test(lines__that_keep_coming__outlast_every_limit_but_silence),
		cmocka_unit_test(lines__that_never_begin__end_by_silence_too),
		cmocka_unit_test(lines__that_end_by_silence__leave_nothing_behind),
		cmocka_unit_test(answer__that_is_held_back__has_the_whole_time),
		cmocka_unit_test(start__without_memory__is_an_error),
	};

	alarm(60);
	return fault_memory_run(tests, 1);
}
