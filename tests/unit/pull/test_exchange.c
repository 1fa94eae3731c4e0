/*
 * Exchanges: who logs in, who waits for that, and who is told what. On a transport of the test's
 * own, whose answers come when the test says so, and a kind that logs in.
 *
 * What would surprise: http_client_start() and http_client_cancel() are defined here, and so is
 * kind_nacos, so that the program's own are not linked.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "pull/exchange.h"
#include "base/loop.h"
#include "tests/unit/fixture/freed.h"
#include "tests/unit/fixture/model_random.h"
#include "tests/unit/fixture/scratch.h"

#define BASE "http://a"
#define LOGIN BASE "/login"
#define TIMEOUT_MS 10000u
#define CLIENTS 12

/* ---- the transport ---- */

struct transfer {
	struct transfer *next;
	char url[128], method[8], headers[256], body[64], user[32], password[32], document[80];
	size_t max_bytes;
	uint64_t timeout_ms, connect_timeout_ms, idle_ms;
	struct http_client_tls tls;
	http_client_line line;
	http_client_done done;
	void *arg;
};

struct http_client {
	struct transfer *first; /* those under way, the oldest first */
	int refuses;            /* the errno of what is started next; 0 = none */
	unsigned started, logins;
	void (*sent)(const struct transfer *t);
};

static struct http_client net;

int http_client_start(struct http_client *transport, const struct http_client_request *q,
	http_client_done done, void *arg, struct transfer **ret_transfer)
{
	struct transfer *t, **link = &transport->first;
	size_t len = 0;
	int e = transport->refuses;

	transport->refuses = 0;
	if (e)
		return -e;
	t = calloc(1, sizeof(*t));
	assert_non_null(t);
	snprintf(t->url, sizeof(t->url), "%s", q->url);
	snprintf(t->method, sizeof(t->method), "%s", q->method);
	snprintf(t->body, sizeof(t->body), "%.*s", (int)q->body_len, q->body ? q->body : "");
	snprintf(t->user, sizeof(t->user), "%s", q->user ? q->user : "");
	snprintf(t->password, sizeof(t->password), "%s", q->password ? q->password : "");
	snprintf(t->document, sizeof(t->document), "%s", q->document ? q->document : "");
	for (size_t i = 0; q->headers[i]; i++, len = strlen(t->headers))
		snprintf(t->headers + len, sizeof(t->headers) - len, "%s\n", q->headers[i]);
	t->max_bytes = q->max_bytes;
	t->timeout_ms = q->timeout_ms;
	t->connect_timeout_ms = q->connect_timeout_ms;
	t->idle_ms = q->idle_ms;
	t->tls = q->tls;
	t->line = q->line;
	t->done = done;
	t->arg = arg;
	while (*link)
		link = &(*link)->next;
	*link = t;
	transport->started++;
	transport->logins += strcmp(t->url, LOGIN) == 0;
	*ret_transfer = t;
	if (transport->sent)
		transport->sent(t);
	return 0;
}

static void unlink_transfer(struct transfer *t)
{
	struct transfer **link = &net.first;

	while (*link != t) {
		assert_non_null(*link);
		link = &(*link)->next;
	}
	*link = t->next;
}

static void free_transfer(struct transfer *t)
{
	explicit_bzero(t, sizeof(*t));
	free(t);
}

const char *http_client_waits_for(const struct transfer *t)
{
	(void)t;
	return "it hangs";
}

void http_client_cancel(struct transfer *t)
{
	unlink_transfer(t);
	free_transfer(t);
}

/* The oldest transfer to that URL. */
static struct transfer *under_way(const char *url)
{
	for (struct transfer *t = net.first; t; t = t->next)
		if (strcmp(t->url, url) == 0)
			return t;
	fail_msg("no request to %s", url);
	return NULL;
}

static size_t count_transfers(const char *url)
{
	size_t n = 0;

	for (struct transfer *t = net.first; t; t = t->next)
		n += !url || strcmp(t->url, url) == 0;
	return n;
}

static void reply(struct transfer *t, enum http_client_result result, long status, const char *body)
{
	struct http_client_response r = {
		.result = result, .status = status, .framed = true, .message = "it is gone"};

	buffer_init(&r.body, 100);
	assert_int_equal(buffer_append_string(&r.body, body), 0);
	unlink_transfer(t);
	t->done(t->arg, &r);
	if (r.body.data)
		explicit_bzero(r.body.data, r.body.cap);
	buffer_fini(&r.body);
	free_transfer(t);
}

/* Answers the oldest request to that URL. */
static void answer(const char *url, long status, const char *body)
{
	reply(under_way(url), HTTP_CLIENT_OK, status, body);
}

/* ---- the kind ---- */

static struct {
	int error; /* of the next build */
	const char *why;
	uint64_t hold_ms;
} building;

static int build(const struct kind_place *place, struct kind_request *r, char why[FILE_WHY])
{
	int e = building.error;

	building.error = 0;
	if (e && building.why)
		snprintf(why, FILE_WHY, "%s", building.why);
	if (e)
		return e;
	if (place->server->user) {
		assert_string_equal(place->user, "me");
		assert_string_equal(place->password, "secret");
	}
	buffer_printf(&r->url, "%s%s", place->base, place->path);
	r->conditional = place->held != NULL;
	r->hold_ms = building.hold_ms;
	return place->token ? kind_header(r, "Token: %s", place->token) : 0;
}

static int login_build(const struct kind_place *place, struct kind_request *r, char why[FILE_WHY])
{
	int e = building.error;

	(void)why;
	building.error = 0;
	assert_null(place->token);
	r->method = "POST";
	r->basic = true; /* it is not for logins */
	buffer_append_string(&r->body, place->user);
	buffer_append_string(&r->body, ":");
	buffer_append_string(&r->body, place->password);
	return e ? e : buffer_printf(&r->url, "%s/login", place->base);
}

/* A good answer is "TOKEN LIFETIME". */
static int login_read(const struct http_client_response *response, char **ret_token,
	uint64_t *ret_lifetime_ms, char why[FILE_WHY])
{
	const char *text = response->body.data;
	size_t len;

	snprintf(why, FILE_WHY, "the login says %ld", response->status);
	switch (response->status) {
	case 200:
		len = strcspn(text, " ");
		*ret_token = strndup(text, len);
		*ret_lifetime_ms = strtoul(text + len, NULL, 10);
		return 0;
	case 403:
		return -EACCES;
	case 404:
		return -ENOTSUP;
	case 409:
	case 429:
	case 500:
	case 503:
		return -EAGAIN;
	default:
		return -EPROTO;
	}
}

const struct kind kind_nacos = {
	.name = "fake", .build = build, .login_build = login_build, .login_read = login_read};

/* ---- those who ask ---- */

struct client {
	struct exchange *x; /* NULL: nothing is under way */
	bool starting;
	/* what was told */
	unsigned answers, ended, failed;
	bool conditional;
	enum http_client_result result;
	long status;
	enum kind_cause cause;
	char why[FILE_WHY], etag[64], coding[64], location[64], body[128], message[FILE_WHY];
	/* within the end of it */
	void (*at_end)(struct client *c);
	struct client *other;
};

static char dir[SCRATCH_PATH], password[SCRATCH_PATH + 16];
static struct settings_server server, plain;
static struct exchange_session session;
static struct sys sys;
static struct exchange_env env;
static struct backoff *backoff; /* of BASE; NULL = nobody is asked */
static struct part held;
static uint64_t now_ms;

static uint64_t clock_ms(void)
{
	return now_ms;
}

static void is_over(struct client *c)
{
	assert_non_null(c->x);
	assert_false(c->starting);
	c->x = NULL;
	if (c->at_end)
		c->at_end(c);
}

static void ended(
	void *arg, const struct kind_place *place, const struct http_client_response *response)
{
	struct client *c = arg;

	assert_true(!place->user && !place->password && !place->secret && !place->token);
	c->answers++;
	c->result = response->result;
	c->status = response->status;
	snprintf(c->etag, sizeof(c->etag), "%.60s", response->etag);
	snprintf(c->coding, sizeof(c->coding), "%.60s", response->content_encoding);
	snprintf(c->location, sizeof(c->location), "%.60s", response->location);
	snprintf(c->message, sizeof(c->message), "%s", response->message);
	snprintf(c->body, sizeof(c->body), "%.*s", (int)response->body.len, response->body.data);
	c->conditional = exchange_conditional(c->x);
	if (response->result == HTTP_CLIENT_OK &&
		((response->status == 401 && exchange_again(c->x, true)) ||
			(response->status == 409 && exchange_again(c->x, false))))
		return;
	c->ended++;
	is_over(c);
}

static void failed(void *arg, enum kind_cause cause, const char *why)
{
	struct client *c = arg;

	c->failed++;
	c->cause = cause;
	snprintf(c->why, sizeof(c->why), "%s", why);
	is_over(c);
}

static int client_build(
	void *arg, const struct kind_place *place, struct kind_request *r, char why[FILE_WHY])
{
	const struct client *c = arg;

	assert_true(c->starting || c->x);
	return kind_of(place->server)->build(place, r, why);
}

static void line_came(void *arg, const struct http_client_response *line)
{
	struct client *c = arg;

	(void)line;
	c->answers++;
}

static const struct exchange_calls calls = {client_build, ended, failed, NULL},
				   stream = {client_build, ended, failed, line_came};

static int begin(struct client *c, const struct exchange_request *q)
{
	int e;

	assert_null(c->x);
	c->starting = true;
	c->why[0] = '\0';
	e = exchange_start(&env, q, &c->x, c->why);
	c->starting = false;
	if (e)
		c->x = NULL;
	return e;
}

static int ask_as(struct client *c, const struct settings_server *of, const char *path,
	const struct part *with, const struct exchange_calls *with_calls)
{
	struct exchange_request q = {
		.server = of,
		.session = &session,
		.backoff = backoff,
		.place = {.base = BASE,
			.path = path,
			.held = with,
			.same_address = true,
			.max_bytes = 1000},
		.timeout_ms = TIMEOUT_MS,
		.calls = with_calls,
		.arg = c,
	};

	return begin(c, &q);
}

static void ask(struct client *c, const char *path)
{
	assert_int_equal(ask_as(c, &server, path, NULL, &calls), 0);
}

static void drop(struct client *c)
{
	struct exchange *x = c->x;

	c->x = NULL;
	exchange_cancel(x);
}

static int set_up(void **state)
{
	(void)state;
	scratch_open(dir, scratch_memory());
	scratch_write(dir, "password", "secret\n", 7);
	snprintf(password, sizeof(password), "%s/password", dir);
	memset(&net, 0, sizeof(net));
	memset(&building, 0, sizeof(building));
	memset(&session, 0, sizeof(session));
	sys = sys_real;
	sys.now_ms = clock_ms;
	now_ms = 1000;
	env = (struct exchange_env){.sys = &sys, .transport = &net, .ca_file = "/ca-of-the-system"};
	server = (struct settings_server){.kind = SETTINGS_NACOS,
		.user = strdup("me"),
		.password_file = password,
		.connect_timeout_ms = 3000};
	plain = server;
	plain.kind = SETTINGS_HTTP;
	assert_int_equal(part_init(&held, BASE "/x", "\"1\"", "", "yaml"), 0);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	assert_null(net.first);
	assert_null(session.first);
	exchange_session_fini(&session);
	assert_null(session.token);
	part_fini(&held);
	free(server.user);
	scratch_close(dir);
	return 0;
}

static void logged_in_before(void)
{
	struct client c = {NULL};

	ask(&c, "/before");
	answer(LOGIN, 200, "t1 0");
	answer(BASE "/before", 200, "");
	assert_int_equal(c.ended, 1);
	net.started = net.logins = 0;
}

/* ---- one request ---- */

static void start__without_a_login__sends_what_the_server_needs(void **state)
{
	char ca[] = "/ca", crl[] = "/crl", cert[] = "/cert", key[] = "/key", name[] = "X",
	     value[] = "y";
	struct settings_header header = {.name = name, .value = value};
	struct settings_server s = plain;
	struct client c = {NULL};
	struct transfer *t;

	(void)state;
	assert_int_equal(ask_as(&c, &s, "/x", &held, &calls), 0);
	t = under_way(BASE "/x");
	assert_string_equal(t->method, "GET");
	assert_string_equal(t->headers, "If-None-Match: \"1\"\n");
	assert_string_equal(t->user, "me");
	assert_string_equal(t->password, "secret");
	assert_string_equal(t->body, "");
	assert_int_equal(t->max_bytes, 1000);
	assert_int_equal(t->timeout_ms, TIMEOUT_MS);
	assert_int_equal(t->connect_timeout_ms, 3000);
	assert_int_equal(t->idle_ms, 0);
	assert_string_equal(t->tls.ca, "/ca-of-the-system");
	assert_null(t->line);
	answer(BASE "/x", 304, "");
	assert_int_equal(c.ended, 1);
	assert_true(c.conditional);
	/* the server's own files; its headers stand behind those of the kind */
	s.ca = ca;
	s.crl = crl;
	s.cert = cert;
	s.key = key;
	s.tls_min = SETTINGS_TLS_1_3;
	s.user = NULL;
	s.password_file = NULL;
	s.bearer_file = password;
	s.headers = &header;
	s.header_count = 1;
	s.connect_timeout_ms = 60000;
	assert_int_equal(ask_as(&c, &s, "/x", &held, &calls), 0);
	t = under_way(BASE "/x");
	assert_string_equal(
		t->headers, "If-None-Match: \"1\"\nAuthorization: Bearer secret\nX: y\n");
	assert_string_equal(t->user, "");
	assert_int_equal(t->connect_timeout_ms, TIMEOUT_MS); /* within the whole */
	assert_string_equal(t->tls.ca, "/ca");
	assert_string_equal(t->tls.crl, "/crl");
	assert_string_equal(t->tls.cert, "/cert");
	assert_string_equal(t->tls.key, "/key");
	assert_true(t->tls.only_1_3);
	drop(&c);
}

static void start__of_an_answer_that_is_held_back__waits_that_much_longer(void **state)
{
	struct client c = {NULL};
	struct transfer *t;

	(void)state;
	logged_in_before();
	building.hold_ms = 30000;
	ask(&c, "/x");
	t = under_way(BASE "/x");
	assert_int_equal(t->timeout_ms, TIMEOUT_MS + 30000);
	assert_int_equal(t->connect_timeout_ms, 3000);
	assert_string_equal(t->user, ""); /* it logs in instead */
	drop(&c);
}

static void start__of_a_stream__reads_lines_but_not_of_the_login(void **state)
{
	struct http_client_response line = {.status = 200};
	struct client c = {NULL};
	struct transfer *t;

	(void)state;
	assert_int_equal(ask_as(&c, &server, "/x", NULL, &stream), 0);
	t = under_way(LOGIN);
	assert_null(t->line);
	assert_int_equal(t->idle_ms, 0);
	answer(LOGIN, 200, "t1 0");
	t = under_way(BASE "/x");
	assert_int_equal(t->idle_ms, TIMEOUT_MS);
	t->line(t->arg, &line);
	t->line(t->arg, &line);
	assert_int_equal(c.answers, 2);
	drop(&c);
}

static void start__that_cannot_be__says_why_and_leaves_nothing(void **state)
{
	struct client c = {NULL};

	(void)state;
	logged_in_before();
	building.error = -EINVAL;
	building.why = "no such path";
	assert_int_equal(ask_as(&c, &server, "/x", NULL, &calls), -EINVAL);
	assert_string_equal(c.why, "no such path");
	building.error = -ENOMEM;
	building.why = NULL;
	assert_int_equal(ask_as(&c, &server, "/x", NULL, &calls), -ENOMEM);
	assert_string_equal(c.why, "the request cannot be made: Cannot allocate memory");
	net.refuses = EIO;
	assert_int_equal(ask_as(&c, &server, "/x", NULL, &calls), -EIO);
	assert_string_equal(c.why, "the request cannot be made: Input/output error");
	assert_int_equal(unlink(password), 0);
	assert_int_equal(ask_as(&c, &server, "/x", NULL, &calls), -ENOENT);
	assert_non_null(strstr(c.why, "/password cannot be read: No such file"));
	/* the same of a login: the line is left, too */
	exchange_session_forget(&session);
	assert_int_equal(ask_as(&c, &server, "/x", NULL, &calls), -ENOENT);
	assert_null(session.first);
	scratch_write(dir, "password", "secret", 6);
	building.error = -ENOMEM;
	assert_int_equal(ask_as(&c, &server, "/x", NULL, &calls), -ENOMEM);
	net.refuses = EIO;
	assert_int_equal(ask_as(&c, &server, "/x", NULL, &calls), -EIO);
	assert_null(session.first);
	assert_int_equal(c.ended + c.failed, 0);
	ask(&c, "/x");
	assert_int_equal(count_transfers(LOGIN), 1);
	drop(&c);
	exchange_cancel(NULL);
}

/* ---- the login ---- */

static void login__of_many_that_wait__is_done_once(void **state)
{
	struct client c[5] = {{NULL}};
	const char *const paths[] = {"/0", "/1", "/2", "/3", "/4"};
	char url[64];

	(void)state;
	for (size_t i = 0; i < 5; i++)
		ask(&c[i], paths[i]);
	assert_int_equal(net.started, 1);
	assert_string_equal(net.first->method, "POST");
	assert_string_equal(net.first->url, LOGIN);
	assert_string_equal(net.first->body, "me:secret");
	assert_string_equal(net.first->user, "");
	assert_string_equal(exchange_waits_for(c[0].x), "it hangs");
	assert_string_equal(exchange_waits_for(c[1].x),
		"another request is logging in at its server, which does not end");
	answer(LOGIN, 200, "t1 0");
	assert_int_equal(net.started, 6);
	for (size_t i = 0; i < 5; i++) {
		snprintf(url, sizeof(url), BASE "%s", paths[i]);
		assert_string_equal(under_way(url)->headers, "Token: t1\n");
		answer(url, 200, "");
		assert_int_equal(c[i].ended, 1);
	}
	now_ms += UINT64_C(1) << 40; /* it has no age */
	ask(&c[0], "/0");
	answer(BASE "/0", 200, "");
	assert_int_equal(net.logins, 1);
}

static void login__that_is_refused__fails_all_that_wait(void **state)
{
	static const struct {
		long status;
		enum kind_cause cause;
	} table[] = {{403, KIND_CAUSE_FORBIDDEN}, {409, KIND_CAUSE_OVERLOADED},
		{400, KIND_CAUSE_ANSWER}};

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		struct client c[3] = {{NULL}};
		char why[64];

		snprintf(why, sizeof(why), "the login says %ld", table[i].status);
		for (size_t k = 0; k < 3; k++)
			ask(&c[k], "/x");
		answer(LOGIN, table[i].status, "");
		for (size_t k = 0; k < 3; k++) {
			assert_int_equal(c[k].failed, 1);
			assert_int_equal(c[k].cause, table[i].cause);
			assert_string_equal(c[k].why, why);
		}
		assert_null(net.first);
		assert_null(session.first);
		/* the next one tries again */
		ask(&c[0], "/x");
		assert_int_equal(count_transfers(LOGIN), 1);
		drop(&c[0]);
	}
}

/* As of a pull that cannot be served: its caller learns what that says about the address. */
static void login__at_an_address_that_fails__ends_who_led_and_the_next_one_logs_in(void **state)
{
	static const struct {
		enum http_client_result result;
		long status;
	} table[] = {{HTTP_CLIENT_REFUSED, 0}, {HTTP_CLIENT_TIMEOUT, 0}, {HTTP_CLIENT_OK, 429},
		{HTTP_CLIENT_OK, 500}, {HTTP_CLIENT_OK, 503}};

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct client c[3] = {{NULL}};

		for (size_t k = 0; k < 3; k++)
			ask(&c[k], "/x");
		reply(under_way(LOGIN), table[i].result, table[i].status, "");
		assert_int_equal(c[0].ended, 1);
		assert_int_equal(c[0].result, table[i].result);
		assert_int_equal(c[0].status, table[i].status);
		assert_false(c[0].conditional);
		assert_int_equal(c[1].ended + c[1].failed + c[2].ended + c[2].failed, 0);
		assert_int_equal(net.started, 2);
		answer(LOGIN, 200, "t1 0");
		answer(BASE "/x", 200, "");
		answer(BASE "/x", 200, "");
		assert_int_equal(c[1].ended + c[2].ended, 2);
		exchange_session_forget(&session);
		net.started = 0;
	}
}

static void login__to_a_server_that_wants_none__is_not_tried_again_until_it_does(void **state)
{
	struct client c[2] = {{NULL}};

	(void)state;
	ask(&c[0], "/0");
	ask(&c[1], "/1");
	answer(LOGIN, 404, "");
	assert_string_equal(under_way(BASE "/0")->headers, "");
	answer(BASE "/0", 200, "");
	answer(BASE "/1", 200, "");
	ask(&c[0], "/0");
	assert_int_equal(net.logins, 1);
	answer(BASE "/0", 401, ""); /* now it does */
	answer(LOGIN, 200, "t1 0");
	assert_string_equal(under_way(BASE "/0")->headers, "Token: t1\n");
	answer(BASE "/0", 200, "");
	assert_int_equal(c[0].ended, 2);
	assert_int_equal(c[0].failed + c[1].failed, 0);
}

static void login__is_not_for_those_without_a_user_or_kinds_without_one(void **state)
{
	struct settings_server open = server;
	struct client c = {NULL};

	(void)state;
	open.user = open.password_file = NULL;
	assert_int_equal(ask_as(&c, &open, "/x", NULL, &calls), 0);
	answer(BASE "/x", 401, ""); /* there is nothing to log in with */
	assert_int_equal(c.ended, 1);
	assert_int_equal(ask_as(&c, &plain, "/x", NULL, &calls), 0);
	answer(BASE "/x", 401, "");
	assert_int_equal(c.ended, 2);
	assert_int_equal(net.logins, 0);
}

static void login__without_its_secret__fails_who_would_lead_and_the_next_one_tries(void **state)
{
	struct client c[3] = {{NULL}};

	(void)state;
	for (size_t i = 0; i < 3; i++)
		ask(&c[i], "/x");
	assert_int_equal(unlink(password), 0);
	drop(&c[0]);
	for (size_t i = 1; i < 3; i++) {
		assert_int_equal(c[i].failed, 1);
		assert_int_equal(c[i].cause, KIND_CAUSE_HOST);
		assert_non_null(strstr(c[i].why, "cannot be read: No such file"));
	}
	scratch_write(dir, "password", "secret", 6);
	ask(&c[0], "/x");
	assert_int_equal(count_transfers(LOGIN), 1);
	drop(&c[0]);
}

static void heal_password(struct client *c)
{
	(void)c;
	scratch_write(dir, "password", "secret", 6);
	building.error = -ENOMEM;
}

static void login__that_fails_twice_on_its_way__tells_each_its_own_reason(void **state)
{
	struct client c[3] = {{NULL}};

	(void)state;
	for (size_t i = 0; i < 3; i++)
		ask(&c[i], "/x");
	assert_int_equal(unlink(password), 0);
	c[1].at_end = heal_password;
	drop(&c[0]);
	assert_non_null(strstr(c[1].why, "cannot be read: No such file"));
	assert_string_equal(c[2].why, "the request cannot be made: Cannot allocate memory");
}

/* ---- who is not wanted any more ---- */

static const struct http_client_response busy = {
	.result = HTTP_CLIENT_OK, .status = 503, .retry_after_ms = 40000};

static void tell_busy(struct client *c)
{
	(void)c;
	backoff_ended(backoff, now_ms, &busy);
}

static void login__that_is_turned_away__is_not_repeated_by_those_who_wait(void **state)
{
	struct backoffs *all = backoffs_new(&sys);
	struct client c[3] = {{NULL}};

	(void)state;
	backoff = backoff_join(all, &server, BASE);
	c[0].at_end = tell_busy; /* as whoever asks does */
	for (size_t i = 0; i < 3; i++)
		ask(&c[i], "/x");
	answer(LOGIN, 503, "");
	assert_int_equal(c[0].ended, 1);
	for (size_t i = 1; i < 3; i++) {
		assert_int_equal(c[i].failed, 1);
		assert_int_equal(c[i].cause, KIND_CAUSE_OVERLOADED);
		assert_string_equal(c[i].why, "its address is in backoff: it answered 503");
	}
	assert_null(net.first);
	assert_int_equal(net.logins, 1);
	backoff_leave(backoff);
	backoff = NULL;
	backoffs_free(all);
}

static void login__that_ends_when_the_address_backs_off__is_followed_by_nothing(void **state)
{
	struct backoffs *all = backoffs_new(&sys);
	struct client c[3] = {{NULL}};

	(void)state;
	backoff = backoff_join(all, &server, BASE);
	for (size_t i = 0; i < 3; i++)
		ask(&c[i], "/x");
	tell_busy(NULL); /* another request was rejected */
	answer(LOGIN, 200, "t1 0");
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(c[i].failed, 1);
		assert_int_equal(c[i].cause, KIND_CAUSE_OVERLOADED);
	}
	assert_null(net.first);
	now_ms += 70000;
	ask(&c[0], "/x"); /* the token is good */
	answer(BASE "/x", 200, "");
	assert_int_equal(net.logins, 1);
	backoff_leave(backoff);
	backoff = NULL;
	backoffs_free(all);
}

static void cancel__of_who_logs_in__makes_the_next_one_do_it(void **state)
{
	struct client c[3] = {{NULL}};

	(void)state;
	for (size_t i = 0; i < 3; i++)
		ask(&c[i], "/x");
	drop(&c[0]);
	assert_int_equal(net.started, 2);
	assert_int_equal(count_transfers(NULL), 1);
	drop(&c[1]);
	assert_int_equal(net.started, 3);
	drop(&c[2]);
	assert_null(net.first);
	assert_int_equal(c[0].ended + c[1].ended + c[2].ended, 0);
	assert_int_equal(c[0].failed + c[1].failed + c[2].failed, 0);
}

static void cancel__of_who_waits__changes_nothing_for_the_others(void **state)
{
	struct client c[4] = {{NULL}};

	(void)state;
	for (size_t i = 0; i < 4; i++)
		ask(&c[i], "/x");
	drop(&c[3]);
	drop(&c[1]);
	assert_int_equal(net.started, 1);
	ask(&c[1], "/x"); /* behind the others */
	answer(LOGIN, 200, "t1 0");
	assert_int_equal(count_transfers(BASE "/x"), 3);
	answer(BASE "/x", 200, "");
	assert_int_equal(c[0].ended, 1);
	answer(BASE "/x", 200, "");
	assert_int_equal(c[2].ended, 1);
	drop(&c[1]);
}

static void drop_other(struct client *c)
{
	if (c->other->x)
		drop(c->other);
}

static void ask_again(struct client *c)
{
	c->at_end = NULL;
	ask(c, "/again");
}

static void drop_other_and_ask_again(struct client *c)
{
	drop_other(c);
	ask_again(c);
}

static void cancel__within_the_end_of_another__is_heard_by_nobody(void **state)
{
	struct client c[4] = {{NULL}};

	(void)state;
	logged_in_before();
	/* of one that is on its way */
	ask(&c[0], "/0");
	ask(&c[1], "/1");
	c[0].at_end = drop_other;
	c[0].other = &c[1];
	answer(BASE "/0", 200, "");
	assert_null(net.first);
	/* of one that waits for the login that failed */
	exchange_session_forget(&session);
	for (size_t i = 0; i < 4; i++)
		ask(&c[i], "/x");
	c[0].other = &c[2];
	answer(LOGIN, 403, "");
	assert_int_equal(c[0].failed, 1);
	assert_int_equal(c[1].failed, 1);
	assert_int_equal(c[3].failed, 1);
	assert_int_equal(c[1].ended + c[2].ended + c[2].failed, 0);
}

static void failed__that_asks_again__is_not_failed_by_the_login_before(void **state)
{
	struct client c[3] = {{NULL}};

	(void)state;
	/* the line is empty: it logs in itself */
	ask(&c[0], "/0");
	ask(&c[1], "/1");
	c[0].at_end = drop_other_and_ask_again;
	c[0].other = &c[1];
	answer(LOGIN, 403, "");
	assert_int_equal(c[0].failed, 1);
	assert_int_equal(count_transfers(LOGIN), 1);
	answer(LOGIN, 200, "t1 0");
	answer(BASE "/again", 200, "");
	assert_int_equal(c[0].ended, 1);
	assert_int_equal(c[1].ended + c[1].failed, 0);
	/* one of the old ones is still in it, another one is not */
	exchange_session_forget(&session);
	for (size_t i = 0; i < 3; i++)
		ask(&c[i], "/x");
	c[0].at_end = drop_other_and_ask_again;
	answer(LOGIN, 403, "");
	assert_int_equal(c[0].failed, 2);
	assert_int_equal(c[2].failed, 1);
	assert_int_equal(count_transfers(LOGIN), 1);
	answer(LOGIN, 200, "t2 0");
	answer(BASE "/again", 200, "");
	assert_int_equal(c[0].ended, 2);
}

static void ended__that_asks_again__waits_for_the_login_of_the_next_one(void **state)
{
	struct client c[2] = {{NULL}};

	(void)state;
	ask(&c[0], "/0");
	ask(&c[1], "/1");
	c[0].at_end = ask_again;
	reply(under_way(LOGIN), HTTP_CLIENT_REFUSED, 0, "");
	assert_int_equal(c[0].ended, 1);
	assert_int_equal(count_transfers(NULL), 1);
	answer(LOGIN, 200, "t1 0");
	answer(BASE "/1", 200, "");
	answer(BASE "/again", 200, "");
	assert_int_equal(net.logins, 2);
	assert_int_equal(c[0].ended, 2);
}

/* ---- the token ---- */

static void token__that_is_too_old__is_not_used(void **state)
{
	struct client c = {NULL};

	(void)state;
	ask(&c, "/x");
	now_ms += 5000; /* of the login itself: its age counts from its end */
	answer(LOGIN, 200, "t1 100");
	answer(BASE "/x", 200, "");
	now_ms += 99;
	ask(&c, "/x");
	assert_string_equal(under_way(BASE "/x")->headers, "Token: t1\n");
	now_ms += 1;
	answer(BASE "/x", 200, "");
	ask(&c, "/x");
	answer(LOGIN, 200, "t2 100");
	assert_string_equal(under_way(BASE "/x")->headers, "Token: t2\n");
	drop(&c);
}

static void token__that_is_refused__is_followed_by_one_new_login(void **state)
{
	struct client c = {NULL};

	(void)state;
	logged_in_before();
	ask(&c, "/x");
	answer(BASE "/x", 401, "");
	assert_int_equal(c.ended, 0);
	answer(LOGIN, 200, "t2 0");
	assert_string_equal(under_way(BASE "/x")->headers, "Token: t2\n");
	answer(BASE "/x", 401, ""); /* so it is not the token */
	assert_int_equal(c.ended, 1);
	assert_int_equal(c.status, 401);
	assert_int_equal(net.logins, 1);
	ask(&c, "/x"); /* another exchange begins again */
	answer(BASE "/x", 401, "");
	answer(LOGIN, 403, "");
	assert_int_equal(c.failed, 1);
	assert_int_equal(c.cause, KIND_CAUSE_FORBIDDEN);
}

static void token__that_is_refused_to_several__is_followed_by_one_login(void **state)
{
	struct client c[4] = {{NULL}};

	(void)state;
	logged_in_before();
	ask(&c[0], "/0");
	ask(&c[1], "/1");
	ask(&c[2], "/2");
	ask(&c[3], "/3");
	answer(BASE "/0", 401, "");
	answer(BASE "/1", 401, ""); /* while the login is under way */
	assert_int_equal(count_transfers(LOGIN), 1);
	answer(LOGIN, 200, "t2 0");
	answer(BASE "/2", 401, ""); /* after it: there is a new one already */
	assert_int_equal(net.logins, 1);
	assert_string_equal(under_way(BASE "/2")->headers, "Token: t2\n");
	for (size_t i = 0; i < 4; i++) {
		char url[64];

		snprintf(url, sizeof(url), BASE "/%zu", i);
		answer(url, 200, "");
		assert_int_equal(c[i].ended, 1);
	}
	assert_int_equal(net.logins, 1);
	assert_null(net.first);
}

static void forget__makes_the_next_one_log_in(void **state)
{
	struct client c = {NULL};

	(void)state;
	logged_in_before();
	exchange_session_forget(&session);
	exchange_session_forget(&session);
	ask(&c, "/x");
	assert_int_equal(count_transfers(LOGIN), 1);
	drop(&c);
}

/* ---- again ---- */

static void again__for_the_whole__asks_unconditionally_and_once(void **state)
{
	struct client c = {NULL};

	(void)state;
	assert_int_equal(ask_as(&c, &plain, "/x", &held, &calls), 0);
	assert_string_equal(under_way(BASE "/x")->headers, "If-None-Match: \"1\"\n");
	answer(BASE "/x", 409, "");
	assert_true(c.conditional);
	assert_int_equal(c.ended, 0);
	assert_string_equal(under_way(BASE "/x")->headers, "");
	answer(BASE "/x", 409, "");
	assert_false(c.conditional);
	assert_int_equal(c.ended, 1);
}

static void again__that_cannot_be_sent__fails(void **state)
{
	struct client c = {NULL};

	(void)state;
	logged_in_before();
	ask(&c, "/x");
	net.refuses = EIO;
	answer(BASE "/x", 409, "");
	assert_int_equal(c.failed, 1);
	assert_int_equal(c.cause, KIND_CAUSE_HOST);
	assert_string_equal(c.why, "the request cannot be made: Input/output error");
	ask(&c, "/x");
	assert_int_equal(unlink(password), 0);
	answer(BASE "/x", 409, "");
	assert_int_equal(c.failed, 2);
	assert_non_null(strstr(c.why, "cannot be read: No such file"));
	scratch_write(dir, "password", "secret", 6);
	ask(&c, "/x");
	net.refuses = EIO;
	answer(BASE "/x", 401, ""); /* it is the login that cannot be sent */
	assert_int_equal(c.failed, 3);
	assert_null(session.first);
	assert_int_equal(c.ended, 0);
}

/* ---- files of this host ---- */

static struct loop *loop;

static void stop_loop(struct client *c)
{
	(void)c;
	loop_stop(loop);
}

static void file__is_read_by_its_thread_and_answers_as_a_server_would(void **state)
{
	char base[SCRATCH_PATH + 16], etag[64];
	struct settings_server files = {.kind = SETTINGS_FILE};
	struct client c = {.at_end = stop_loop};
	struct worker *worker;
	struct exchange_request q = {.server = &files,
		.session = &session,
		.place = {.base = base, .path = "/password", .max_bytes = 100},
		.timeout_ms = TIMEOUT_MS,
		.calls = &calls,
		.arg = &c};

	(void)state;
	loop = loop_new(&sys_real);
	worker = worker_start(loop, "test");
	assert_true(loop && worker);
	env.files = worker;
	snprintf(base, sizeof(base), "file://%s", dir);
	assert_int_equal(begin(&c, &q), 0);
	assert_int_equal(loop_run(loop), 0);
	assert_int_equal(c.status, 200);
	assert_false(c.conditional);
	/* SHA-256 of "secret\n" */
	snprintf(etag, sizeof(etag), "\"%s\"", "b37e50cedcd3e3f1ff64f4afc0422084");
	part_fini(&held);
	assert_int_equal(part_init(&held, BASE "/x", etag, "", "yaml"), 0);
	q.place.held = &held;
	q.place.same_address = true;
	assert_int_equal(begin(&c, &q), 0);
	assert_int_equal(loop_run(loop), 0);
	assert_int_equal(c.status, 304);
	assert_true(c.conditional);
	q.place.same_address = false;
	assert_int_equal(begin(&c, &q), 0);
	assert_int_equal(loop_run(loop), 0);
	assert_int_equal(c.status, 200);
	assert_int_equal(c.ended, 3);
	assert_int_equal(begin(&c, &q), 0);
	drop(&c);
	assert_int_equal(worker_stop(worker, 10000), 0);
	assert_int_equal(c.ended, 3);
	assert_null(net.first);
	loop_free(loop);
}

/* ---- anything, in any order ---- */

/* What the session must be like. */
static struct {
	struct client clients[CLIENTS];
	char token[16];
	uint64_t expires_ms;
	unsigned tokens;
	bool has_token, open;
	char carried[CLIENTS][16]; /* with its last request; "" = none */
	unsigned logins[CLIENTS], wholes[CLIENTS];
	char paths[CLIENTS][8];
	unsigned depth, told[4];
} model;

static size_t index_of(const struct client *c)
{
	return (size_t)(c - model.clients);
}

static bool is_login(const struct transfer *t)
{
	return strcmp(t->url, LOGIN) == 0;
}

/* No token is sent that was refused, is too old, or was replaced; none is missing. */
static void check_sent(const struct transfer *t)
{
	char token[16] = "";

	if (is_login(t)) {
		CHECK(count_transfers(LOGIN) == 1);
		CHECK(!model.open && !(model.has_token && now_ms < model.expires_ms));
		return;
	}
	if (sscanf(t->headers, "Token: %15s", token) == 1) {
		CHECK(model.has_token && now_ms < model.expires_ms);
		CHECK(strcmp(token, model.token) == 0);
	} else {
		CHECK(model.open);
	}
	CHECK(strlen(t->url) > strlen(BASE) + 1);
	snprintf(model.carried[strtoul(t->url + strlen(BASE) + 1, NULL, 10)], 16, "%s", token);
}

static void check_model(void)
{
	size_t live = 0, logins = count_transfers(LOGIN), all = count_transfers(NULL);

	for (size_t i = 0; i < CLIENTS; i++)
		live += model.clients[i].x != NULL;
	CHECK(logins <= 1);
	CHECK(all <= live);
	CHECK(all == live || logins == 1); /* who waits, waits for that */
	CHECK((session.first != NULL) == (logins == 1));
}

static void any_ended(
	void *arg, const struct kind_place *place, const struct http_client_response *response)
{
	struct client *c = arg;
	size_t i = index_of(c);

	CHECK(c->x != NULL && !c->starting);
	CHECK(!place->user && !place->password && !place->token);
	if (response->result == HTTP_CLIENT_OK && response->status == 401) {
		bool repeated = exchange_again(c->x, true);

		CHECK(repeated == (model.logins[i]++ == 0));
		if (repeated) {
			model.open = false;
			if (model.has_token && strcmp(model.carried[i], model.token) == 0)
				model.has_token = false;
			return;
		}
	}
	if (response->result == HTTP_CLIENT_OK && response->status == 409) {
		bool repeated = exchange_again(c->x, false);

		CHECK(repeated == (model.wholes[i]++ == 0));
		CHECK(!repeated || !place->held);
		if (repeated)
			return;
	}
	is_over(c);
}

static void any_failed(void *arg, enum kind_cause cause, const char *why)
{
	CHECK(cause == KIND_CAUSE_FORBIDDEN || cause == KIND_CAUSE_OVERLOADED ||
		cause == KIND_CAUSE_ANSWER || cause == KIND_CAUSE_HOST);
	CHECK(why[0] != '\0');
	model.told[2]++;
	is_over(arg);
}

static const struct exchange_calls any_calls = {client_build, any_ended, any_failed, NULL};

static void begin_one(struct client *c)
{
	size_t i = index_of(c);
	char *path = model.paths[i];

	if (c->x)
		return;
	model.logins[i] = model.wholes[i] = 0;
	model.carried[i][0] = '\0';
	snprintf(path, sizeof(model.paths[i]), "/%zu", i);
	if (ask_as(c, &server, path, random_below(2) ? &held : NULL, &any_calls) == 0)
		return;
	CHECK(c->why[0] != '\0');
	model.told[0]++;
}

static struct client *any_client(void)
{
	return &model.clients[random_below(CLIENTS)];
}

static void at_any_end(struct client *c)
{
	model.told[1]++;
	if (++model.depth < 4) {
		if (random_below(4) == 0)
			begin_one(c);
		if (random_below(3) == 0) {
			struct client *other = any_client();

			if (other->x)
				drop(other);
		}
		if (random_below(4) == 0)
			begin_one(any_client());
	}
	model.depth--;
}

static void answer_login(struct transfer *t)
{
	static const long refusals[] = {400, 403, 404, 409, 429, 500, 503};
	uint64_t lifetime_ms = random_below(3) ? 0 : 1 + random_below(50);
	long status = refusals[random_below(7)];
	char body[64] = "";

	if (random_below(8) == 0) {
		reply(t, HTTP_CLIENT_NETWORK, 0, "");
		return;
	}
	if (random_below(3)) {
		status = 200;
		snprintf(model.token, sizeof(model.token), "t%u", ++model.tokens);
		snprintf(body, sizeof(body), "%s %" PRIu64, model.token, lifetime_ms);
		model.expires_ms = lifetime_ms ? now_ms + lifetime_ms : UINT64_MAX;
		model.has_token = true;
	}
	if (status != 429 && status < 500)
		model.open = status == 404;
	reply(t, HTTP_CLIENT_OK, status, body);
}

static void answer_any(void)
{
	static const long statuses[] = {200, 200, 401, 409, 500};
	size_t n = count_transfers(NULL);
	struct transfer *t = net.first;

	if (!n)
		return;
	for (n = random_below(n); n; n--)
		t = t->next;
	if (is_login(t))
		answer_login(t);
	else if (random_below(8))
		reply(t, HTTP_CLIENT_OK, statuses[random_below(5)], "");
	else
		reply(t, HTTP_CLIENT_TIMEOUT, 0, "");
}

static void any_step(void)
{
	switch (random_below(16)) {
	case 0:
		now_ms += random_below(60);
		break;
	case 1:
		if (random_below(4) == 0)
			unlink(password);
		break;
	case 2:
	case 3:
		scratch_write(dir, "password", "secret", 6);
		break;
	case 4:
		net.refuses = random_below(4) ? 0 : EIO;
		break;
	case 5:
		building.error = random_below(4) ? 0 : -ENOMEM;
		break;
	case 6:
	case 7: {
		struct client *c = any_client();

		if (c->x)
			drop(c);
		break;
	}
	case 8:
	case 9:
	case 10:
	case 11:
		begin_one(any_client());
		break;
	default:
		answer_any();
	}
}

static void trial__of_any_requests_cancels_and_answers__keeps_to_the_model(void **state)
{
	(void)state;
	model_random_start();
	memset(&model, 0, sizeof(model));
	for (size_t i = 0; i < CLIENTS; i++)
		model.clients[i].at_end = at_any_end;
	net.sent = check_sent;
	for (; model_random.step < 60000; model_random.step++) {
		any_step();
		check_model();
	}
	net.sent = NULL;
	net.refuses = building.error = 0;
	for (size_t i = 0; i < CLIENTS; i++)
		if (model.clients[i].x)
			drop(&model.clients[i]);
	for (size_t i = 0; i < CLIENTS; i++) /* one that was dropped may have let another fail */
		if (model.clients[i].x)
			drop(&model.clients[i]);
	/* it has been everywhere */
	CHECK(model.tokens > 100 && model.told[0] > 50 && model.told[1] > 1000 &&
		model.told[2] > 100);
}

/* ---- secrets ---- */

/* What a server sends back to a request by a bearer's token, whose file may be gone by then. */
static void send_back(struct client *c, long status, const char *etag, const char *body, bool gone)
{
	struct http_client_response r = {
		.result = HTTP_CLIENT_OK, .status = status, .framed = true};
	struct settings_server s = plain;
	struct transfer *t;

	s.user = NULL;
	s.password_file = NULL;
	s.bearer_file = password;
	assert_int_equal(ask_as(c, &s, "/x", NULL, &calls), 0);
	if (gone)
		assert_int_equal(unlink(password), 0);
	t = under_way(BASE "/x");
	buffer_init(&r.body, 100);
	assert_int_equal(buffer_append_string(&r.body, body), 0);
	snprintf(r.etag, sizeof(r.etag), "%s", etag);
	unlink_transfer(t);
	t->done(t->arg, &r);
	if (r.body.data)
		explicit_bzero(r.body.data, r.body.cap);
	buffer_fini(&r.body);
	free_transfer(t);
}

/* As a document without bytes. */
static void send_back_names(
	struct client *c, long status, const char *etag, const char *coding, const char *location)
{
	struct http_client_response r = {
		.result = HTTP_CLIENT_OK, .status = status, .framed = true};
	struct settings_server s = plain;
	struct transfer *t;

	s.user = NULL;
	s.password_file = NULL;
	s.bearer_file = password;
	assert_int_equal(ask_as(c, &s, "/x?sig=5ig", NULL, &calls), 0);
	t = under_way(BASE "/x?sig=5ig");
	snprintf(r.etag, sizeof(r.etag), "%s", etag);
	snprintf(r.content_encoding, sizeof(r.content_encoding), "%s", coding);
	snprintf(r.location, sizeof(r.location), "%s", location);
	unlink_transfer(t);
	t->done(t->arg, &r);
	free(t);
}

static void secret__in_any_name_that_is_sent_back__is_hidden(void **state)
{
	static const struct {
		long status;
		const char *etag, *coding, *location, *shown_etag, *shown_coding, *shown_location;
	} table[] = {
		{200, "secret", "secret", "", "******", "******", ""}, /* as long as each other */
		{200, "", "secret", "", "", "******", ""},
		{200, "secret", "", "", "******", "", ""},
		{403, "secret", "a-secret", "", "******", "a-******", ""},
		{200, "\"sig=5ig\"", "gzip", "", "\"*******\"", "gzip", ""},
		{302, "", "", "http://secret@x/", "", "", "http://******@x/"},
		{304, "\"1\"", "", "", "\"1\"", "", ""},
	};
	struct client c = {NULL};

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		send_back_names(
			&c, table[i].status, table[i].etag, table[i].coding, table[i].location);
		assert_string_equal(c.etag, table[i].shown_etag);
		assert_string_equal(c.coding, table[i].shown_coding);
		assert_string_equal(c.location, table[i].shown_location);
	}
}

/* Of what libcurl says about a file of tls: the user learns which one, and why. */
static void host__whose_tls_file_cannot_be_read__is_told_which(void **state)
{
	static const enum http_client_result results[] = {
		HTTP_CLIENT_HOST, HTTP_CLIENT_NETWORK, HTTP_CLIENT_TLS};
	struct settings_server s = plain;
	static char none[] = "/none/ca";
	struct client c = {NULL};

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		s.ca = none;
		assert_int_equal(ask_as(&c, &s, "/x", NULL, &calls), 0);
		reply(under_way(BASE "/x"), results[i], 0, "");
		if (results[i] == HTTP_CLIENT_HOST)
			assert_non_null(
				strstr(c.message, "/none/ca: tls.ca cannot be read: No such"));
		else
			assert_string_equal(c.message, "it is gone");
	}
	s.ca = NULL;
	assert_int_equal(ask_as(&c, &s, "/x", NULL, &calls), 0);
	reply(under_way(BASE "/x"), HTTP_CLIENT_HOST, 0, "");
	assert_string_equal(c.message, "it is gone");
}

/* What a kind gets to build its request from. */
static struct {
	char secret[32], session_token[32], user[32], password[32];
	bool none;
} given;

static int note_place(
	void *arg, const struct kind_place *place, struct kind_request *r, char why[FILE_WHY])
{
	(void)arg;
	(void)why;
	snprintf(given.secret, sizeof(given.secret), "%s", place->secret);
	snprintf(given.session_token, sizeof(given.session_token), "%s", place->session_token);
	given.none = !place->user && !place->password && !place->token;
	return buffer_printf(&r->url, "%s%s", place->base, place->path);
}

static void place__of_a_request__has_each_secret_in_its_place(void **state)
{
	static const struct exchange_calls noting = {note_place, ended, failed, NULL};
	struct settings_server s = plain;
	char other[SCRATCH_PATH + 16];
	struct client c = {NULL};

	(void)state;
	snprintf(other, sizeof(other), "%s/other", dir);
	scratch_write(dir, "other", "0ther", 5);
	s.user = s.password_file = NULL;
	s.secret_file = password;
	s.session_token_file = other;
	assert_int_equal(ask_as(&c, &s, "/x", NULL, &noting), 0);
	assert_string_equal(given.secret, "secret");
	assert_string_equal(given.session_token, "0ther");
	assert_true(given.none);
	drop(&c);
}

static void secret__that_is_sent_back__is_hidden(void **state)
{
	struct client c = {NULL};

	(void)state;
	send_back(&c, 200, "\"v-secret-1\"", "a secret document", false);
	assert_string_equal(c.etag, "\"v-******-1\"");
	assert_string_equal(c.body, "a secret document"); /* it is the document */
	send_back(&c, 403, "", "no rights for secret here", false);
	assert_string_equal(c.body, "no rights for ****** here");
	send_back(&c, 403, "\"x\"", "secret", true);
	assert_string_equal(c.etag, "***");
	assert_string_equal(c.body, "******");
}

/* The name by which a request's connection is kept for its document. */
static void name_request(
	char ret[80], const struct settings_server *of, const char *path, bool is_document)
{
	struct client c = {NULL};
	struct exchange_request q = {
		.server = of,
		.session = &session,
		.place = {.base = BASE, .path = path, .same_address = true, .max_bytes = 1000},
		.timeout_ms = TIMEOUT_MS,
		.document = is_document,
		.calls = &calls,
		.arg = &c,
	};

	assert_int_equal(begin(&c, &q), 0);
	memcpy(ret, under_way(net.first->url)->document, 80);
	drop(&c);
}

static void document__is_named_by_its_place_and_who_asks(void **state)
{
	char value[] = "y", header_name[] = "X", one[80], other[80];
	struct settings_header header = {.name = header_name, .value = value};
	struct settings_server s = plain;

	(void)state;
	name_request(one, &s, "/x", true);
	assert_int_equal(strlen(one), DIGEST_HEX - 1);
	name_request(other, &s, "/x", true);
	assert_string_equal(one, other);
	name_request(other, &s, "/y", true);
	assert_string_not_equal(one, other);
	name_request(other, &s, "/x", false);
	assert_string_equal(other, "");
	s.headers = &header;
	s.header_count = 1;
	name_request(other, &s, "/x", true);
	assert_string_not_equal(one, other);
	memcpy(one, other, sizeof(one));
	value[0] = 'z';
	name_request(other, &s, "/x", true);
	assert_string_not_equal(one, other);
	/* a login is no document */
	name_request(other, &server, "/x", true);
	assert_string_equal(other, "");
}

/* Those of files and of a login, and what is made of them for a request. */
static void secrets__when_a_request_is_over__are_not_left_in_memory(void **state)
{
	static const char *const secrets[] = {"secret", "t0ken", "bWU6c2VjcmV0" /* me:secret */};
	struct settings_server s = plain;
	struct client c = {NULL};
	char *volatile p;
	char name[80];

	(void)state;
	s.user = s.password_file = NULL;
	s.bearer_file = s.secret_file = s.session_token_file = password;
	for (size_t i = 0; i < sizeof(secrets) / sizeof(secrets[0]); i++) {
		p = strdup(secrets[i]);
		freed_watch(secrets[i]);
		free(p);
		assert_int_equal(freed_end(), 1); /* it is seen */
		freed_watch(secrets[i]);
		ask(&c, "/x");
		answer(LOGIN, 200, "t0ken 0");
		answer(BASE "/x", 403, "not for me");
		exchange_session_forget(&session);
		assert_int_equal(ask_as(&c, &plain, "/x", NULL, &calls), 0);
		answer(BASE "/x", 403, "not for me");
		name_request(name, &s, "/x", true);
		assert_int_equal(freed_end(), 0);
	}
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(start__without_a_login__sends_what_the_server_needs),
		CASE(start__of_an_answer_that_is_held_back__waits_that_much_longer),
		CASE(start__of_a_stream__reads_lines_but_not_of_the_login),
		CASE(start__that_cannot_be__says_why_and_leaves_nothing),
		CASE(login__of_many_that_wait__is_done_once),
		CASE(login__that_is_refused__fails_all_that_wait),
		CASE(login__at_an_address_that_fails__ends_who_led_and_the_next_one_logs_in),
		CASE(login__to_a_server_that_wants_none__is_not_tried_again_until_it_does),
		CASE(login__is_not_for_those_without_a_user_or_kinds_without_one),
		CASE(login__without_its_secret__fails_who_would_lead_and_the_next_one_tries),
		CASE(login__that_fails_twice_on_its_way__tells_each_its_own_reason),
		CASE(login__that_is_turned_away__is_not_repeated_by_those_who_wait),
		CASE(login__that_ends_when_the_address_backs_off__is_followed_by_nothing),
		CASE(cancel__of_who_logs_in__makes_the_next_one_do_it),
		CASE(cancel__of_who_waits__changes_nothing_for_the_others),
		CASE(cancel__within_the_end_of_another__is_heard_by_nobody),
		CASE(failed__that_asks_again__is_not_failed_by_the_login_before),
		CASE(ended__that_asks_again__waits_for_the_login_of_the_next_one),
		CASE(token__that_is_too_old__is_not_used),
		CASE(token__that_is_refused__is_followed_by_one_new_login),
		CASE(token__that_is_refused_to_several__is_followed_by_one_login),
		CASE(forget__makes_the_next_one_log_in),
		CASE(again__for_the_whole__asks_unconditionally_and_once),
		CASE(again__that_cannot_be_sent__fails),
		CASE(file__is_read_by_its_thread_and_answers_as_a_server_would),
		CASE(trial__of_any_requests_cancels_and_answers__keeps_to_the_model),
		CASE(secret__that_is_sent_back__is_hidden),
		CASE(secret__in_any_name_that_is_sent_back__is_hidden),
		CASE(host__whose_tls_file_cannot_be_read__is_told_which),
		CASE(place__of_a_request__has_each_secret_in_its_place),
		CASE(document__is_named_by_its_place_and_who_asks),
		CASE(secrets__when_a_request_is_over__are_not_left_in_memory),
	};

	alarm(60);
	return freed_run(tests, 1);
}
