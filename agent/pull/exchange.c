/*
 * Surprising: an exchange that needs a token stands in its session's line; the one at the head logs
 * in for all of them, and when it is cancelled the next one does.
 */
#include "pull/exchange.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pull/credentials.h"
#include "crypto/digest.h"
#include "pull/local_file.h"

struct exchange {
	const struct exchange_env *env;
	struct exchange_request q;
	const struct kind *kind;
	struct transfer *transfer;
	struct localfile *file;
	struct exchange *next; /* in the session's line */
	uint64_t serial;       /* of the token it was sent with */
	uint64_t awaits;       /* the login it stands in line for */
	bool in_line, logging_in, login_repeated, whole_repeated, conditional;
	bool again;                          /* asked for within ended(), or while it is held */
	struct http_client_response *answer; /* within ended() */
	void (*dropped)(void *arg);          /* NULL: it is not held */
	void *dropped_arg;
};

static void go(struct exchange *x);
static int start(struct exchange *x, char why[FILE_WHY]);

/* ---- the ends ---- */

static void finish(struct exchange *x)
{
	free(x);
}

static void fail(struct exchange *x, enum kind_cause cause, const char *why)
{
	const struct exchange_calls *calls = x->q.calls;
	void *arg = x->q.arg;

	finish(x);
	calls->failed(arg, cause, why);
}

/* Of an answer that is no document only its first words are ever shown. */
static void bound_words(struct http_client_response *response)
{
	struct buffer *body = &response->body;

	if (response->status == 200 || body->len <= EXCHANGE_MAX_WORDS)
		return;
	body->len = EXCHANGE_MAX_WORDS;
	body->data[body->len] = '\0';
}

/* An error's words are quoted, a document's version is shown, and some servers send back what they
 * were sent. */
static void hide_secrets(struct exchange *x, struct http_client_response *response)
{
	const struct {
		char *data;
		size_t len;
	} shown[] = {
		{response->etag, strlen(response->etag)},
		{response->content_encoding, strlen(response->content_encoding)},
		{response->body.data, response->status == 200 ? 0 : response->body.len},
	};
	const char *query = strchr(x->q.place.path, '?');
	struct credentials c;
	char why[FILE_WHY];
	bool known;

	bound_words(response);
	if (response->status == 304 || shown[0].len + shown[1].len + shown[2].len == 0)
		return;
	known = credentials_read(x->env->sys, x->q.server, &c, why) == 0;
	for (size_t i = 0; i < sizeof(shown) / sizeof(shown[0]); i++)
		if (!known && shown[i].len) /* those that were sent are not known any more */
			memset(shown[i].data, '*', shown[i].len);
		else if (shown[i].len)
			credentials_hide(&c, x->q.session->token, query ? query + 1 : NULL,
				shown[i].data, shown[i].len);
	credentials_fini(&c);
}

static void ended(void *arg, struct http_client_response *response)
{
	struct exchange *x = arg;
	char why[FILE_WHY];

	hide_secrets(x, response);
	if (response->result == HTTP_CLIENT_HOST && credentials_check_tls(x->q.server, why))
		snprintf(response->message, sizeof(response->message), "%.350s", why);
	x->transfer = NULL;
	x->file = NULL;
	x->again = false;
	x->answer = response;
	x->q.calls->ended(x->q.arg, &x->q.place, response);
	x->answer = NULL;
	if (!x->dropped)
		exchange_end(x);
}

static void line_came(void *arg, const struct http_client_response *line)
{
	struct exchange *x = arg;

	x->q.calls->line(x->q.arg, line);
}

/* ---- the session's line ---- */

static void enter_line(struct exchange *x)
{
	struct session *s = x->q.session;

	if (!s->first)
		s->last = &s->first;
	x->next = NULL;
	x->in_line = true;
	x->awaits = s->logins;
	*s->last = x;
	s->last = &x->next;
}

static void leave_line(struct exchange *x)
{
	struct session *s = x->q.session;
	struct exchange **link = &s->first;

	while (*link != x)
		link = &(*link)->next;
	*link = x->next;
	if (s->last == &x->next)
		s->last = link;
	x->in_line = false;
}

void session_forget(struct session *s)
{
	if (s->token)
		explicit_bzero(s->token, strlen(s->token));
	free(s->token);
	s->token = NULL;
}

static bool has_token(struct exchange *x)
{
	struct session *s = x->q.session;

	if (s->token && x->env->sys->now_ms() >= s->expires_ms)
		session_forget(s);
	return s->token;
}

static enum kind_cause login_cause(int error)
{
	return error == -EACCES   ? KIND_CAUSE_FORBIDDEN
	       : error == -EAGAIN ? KIND_CAUSE_OVERLOADED
				  : KIND_CAUSE_ANSWER;
}

static void tell_why(char why[FILE_WHY], int error)
{
	if (!why[0])
		snprintf(why, FILE_WHY, "the request cannot be made: %s", strerror(-error));
}

/* Sends what is to be sent next, later than exchange_start(): other requests may have made the
 * address back off. 0, or -errno with cause and why. */
static int start_later(struct exchange *x, enum kind_cause *ret_cause, char why[FILE_WHY])
{
	const struct backoff *b = x->q.backoff;
	int r;

	*ret_cause = KIND_CAUSE_OVERLOADED;
	if (b && backoff_until(b, x->env->sys->now_ms())) {
		snprintf(why, FILE_WHY, "its address backs off%s%s", b->error ? ": " : "",
			b->error ? b->error : "");
		return -EAGAIN;
	}
	*ret_cause = KIND_CAUSE_HOST;
	r = start(x, why);
	if (r)
		tell_why(why, r);
	return r;
}

/* The head of the line logs in, if it does not yet. */
static void lead(struct session *s)
{
	enum kind_cause cause;
	struct exchange *x;

	while ((x = s->first) && !x->logging_in) {
		char why[FILE_WHY] = "";

		x->logging_in = true;
		if (start_later(x, &cause, why) == 0)
			return;
		leave_line(x);
		fail(x, cause, why);
	}
}

/* The login is over for those in the line: they go on with the token, or have failed with it. Each
 * step may cancel others, or start new ones, which wait for the next login. */
static void release_line(struct session *s, enum kind_cause cause, const char *why)
{
	uint64_t login = s->logins++;
	struct exchange *x;

	while ((x = s->first) && x->awaits == login) {
		leave_line(x);
		if (cause == KIND_CAUSE_NONE)
			go(x);
		else
			fail(x, cause, why);
	}
	lead(s);
}

/* It did not come to an answer, or to one that tells as much of the address as that of a pull. */
static bool tells_of_address(const struct http_client_response *response, int login)
{
	return response->result != HTTP_CLIENT_OK ||
	       (login == -EAGAIN && (response->status == 429 || response->status >= 500));
}

static void logged_in(void *arg, struct http_client_response *response)
{
	struct exchange *x = arg;
	struct session *s = x->q.session;
	char why[FILE_WHY] = "", *token = NULL;
	uint64_t lifetime_ms = 0;
	int r = 0;

	hide_secrets(x, response);
	if (response->result == HTTP_CLIENT_OK)
		r = x->kind->login_read(response, &token, &lifetime_ms, why);
	x->transfer = NULL;
	x->logging_in = false;
	if (tells_of_address(response, r)) {
		leave_line(x);
		ended(x, response);
		lead(s);
		return;
	}
	if (r == 0) {
		session_forget(s);
		s->token = token;
		s->serial++;
		s->expires_ms = lifetime_ms ? x->env->sys->now_ms() + lifetime_ms : UINT64_MAX;
	}
	s->open = r == -ENOTSUP;
	release_line(s, r == 0 || s->open ? KIND_CAUSE_NONE : login_cause(r), why);
}

/* ---- sending ---- */

static void fill_place(struct exchange *x, const struct credentials *c)
{
	struct kind_place *place = &x->q.place;

	place->server = x->q.server;
	place->user = c ? c->user : NULL;
	place->password = c ? c->password : NULL;
	place->secret = c ? c->secret : NULL;
	place->session_token = c ? c->session_token : NULL;
	place->token = c ? x->q.session->token : NULL;
	place->wall_ms = x->env->sys->wall_ms();
	place->random = x->env->sys->random();
}

/* Names the document, and who asks for it. The token of a login is not in it: it changes under the
 * same user. */
static int name_document(
	const struct exchange *x, const struct credentials *c, char ret[DIGEST_HEX])
{
	const char *texts[6 + CREDENTIALS_LINES] = {
		x->kind->name, x->q.place.base, x->q.place.path, c->user, c->password, c->secret};
	size_t n = 6, len = 0;
	struct buffer all;
	int r;

	for (size_t i = 0; i < c->count; i++)
		texts[n++] = c->lines[i];
	for (size_t i = 0; i < n; i++)
		len += texts[i] ? strlen(texts[i]) + 1 : 1;
	buffer_init(&all, len);
	r = buffer_reserve(&all, len); /* in one piece: no secret stays behind in memory */
	for (size_t i = 0; r == 0 && i < n; i++)
		r = buffer_append(
			&all, texts[i] ? texts[i] : "", texts[i] ? strlen(texts[i]) + 1 : 1);
	if (r == 0)
		r = digest_sha256(all.data, all.len, NULL, 0, ret);
	if (all.data)
		explicit_bzero(all.data, all.cap);
	buffer_fini(&all);
	return r;
}

static int send_request(struct exchange *x, const struct credentials *c,
	const struct kind_request *r, http_client_done done)
{
	const struct settings_server *server = x->q.server;
	const char *headers[KIND_MAX_HEADERS + CREDENTIALS_LINES + 1];
	uint64_t timeout_ms = x->q.timeout_ms + r->hold_ms;
	bool line = x->q.calls->line && !x->logging_in, basic = r->basic && !x->logging_in;
	char document[DIGEST_HEX];
	bool named = x->q.document && !x->logging_in && name_document(x, c, document) == 0;
	size_t n = 0;
	struct http_client_request q = {
		.url = r->url.data,
		.method = r->method,
		.body = r->body.data,
		.body_len = r->body.len,
		.headers = headers,
		.user = basic ? c->user : NULL,
		.password = basic ? c->password : NULL,
		.tls = {server->ca ? server->ca : x->env->ca_file, server->crl, server->cert,
			server->key, server->tls_min == SETTINGS_TLS_1_3},
		.max_bytes = x->logging_in    ? EXCHANGE_MAX_LOGIN
			     : x->kind->wraps ? 2 * x->q.place.max_bytes + KIND_MAX_WRAPPING
					      : x->q.place.max_bytes,
		.timeout_ms = timeout_ms,
		.connect_timeout_ms = timeout_ms < server->connect_timeout_ms
					      ? timeout_ms
					      : server->connect_timeout_ms,
		.line = line ? line_came : NULL,
		.idle_ms = line || r->hold_ms ? timeout_ms : 0,
		.document = named ? document : NULL,
	};

	for (size_t i = 0; i < r->header_count; i++)
		headers[n++] = r->headers[i];
	for (size_t i = 0; i < c->count; i++)
		headers[n++] = c->lines[i];
	headers[n] = NULL;
	return http_client_start(x->env->transport, &q, done, x, &x->transfer);
}

static int read_file(struct exchange *x, const struct kind_request *r)
{
	const struct part *held = r->conditional ? x->q.place.held : NULL;

	return local_file_start(x->env->files, r->url.data, held ? held->etag : "",
		x->q.place.max_bytes, ended, x, &x->file);
}

/* Builds and sends what is to be sent next. 0, or -errno with why. */
static int start(struct exchange *x, char why[FILE_WHY])
{
	struct credentials c;
	struct kind_request r;
	int e = credentials_read(x->env->sys, x->q.server, &c, why);

	if (e)
		return e;
	kind_request_init(&r);
	fill_place(x, &c);
	e = x->logging_in ? x->kind->login_build(&x->q.place, &r, why)
			  : x->q.calls->build(x->q.arg, &x->q.place, &r, why);
	fill_place(x, NULL);
	if (!x->logging_in)
		x->conditional = r.conditional;
	if (e == 0 && x->kind->local)
		e = read_file(x, &r);
	else if (e == 0)
		e = send_request(x, &c, &r, x->logging_in ? logged_in : ended);
	kind_request_fini(&r);
	credentials_fini(&c);
	return e;
}

static bool needs_login(struct exchange *x)
{
	return x->kind->login_build && x->q.server->user && !x->q.session->open && !has_token(x);
}

/* What is to be sent next: a login or the request. False: who is before us in the line logs in. */
static bool is_next(struct exchange *x)
{
	x->logging_in = needs_login(x);
	x->serial = x->q.session->serial;
	if (!x->logging_in)
		return true;
	enter_line(x);
	return x->logging_in = x->q.session->first == x;
}

/* Later than exchange_start(): a failure is told. */
static void go(struct exchange *x)
{
	enum kind_cause cause;
	char why[FILE_WHY] = "";

	if (!is_next(x) || start_later(x, &cause, why) == 0)
		return;
	if (x->in_line)
		leave_line(x);
	fail(x, cause, why);
}

/* ---- outside ---- */

int exchange_start(const struct exchange_env *env, const struct exchange_request *q,
	struct exchange **ret_exchange, char why[FILE_WHY])
{
	struct exchange *x = calloc(1, sizeof(*x));
	int r;

	if (!x) {
		snprintf(why, FILE_WHY, "out of memory");
		return -ENOMEM;
	}
	x->env = env;
	x->q = *q;
	x->kind = kind_of(q->server);
	why[0] = '\0';
	r = is_next(x) ? start(x, why) : 0;
	if (r == 0) {
		*ret_exchange = x;
		return 0;
	}
	tell_why(why, r);
	if (x->in_line)
		leave_line(x);
	finish(x);
	return r;
}

void exchange_cancel(struct exchange *x)
{
	struct session *s;
	bool led;

	if (!x)
		return;
	s = x->q.session;
	led = x->in_line && x->logging_in;
	if (x->dropped)
		x->dropped(x->dropped_arg);
	if (x->transfer)
		http_client_cancel(x->transfer);
	if (x->file)
		local_file_cancel(x->file);
	if (x->in_line)
		leave_line(x);
	finish(x);
	if (led)
		lead(s);
}

static bool again_with_login(struct exchange *x)
{
	struct session *s = x->q.session;

	if (x->login_repeated || !x->kind->login_build || !x->q.server->user)
		return false;
	x->login_repeated = true;
	s->open = false;
	if (x->serial == s->serial) /* else somebody has a new one already */
		session_forget(s);
	return true;
}

bool exchange_again(struct exchange *x, bool login)
{
	if (login ? !again_with_login(x) : x->whole_repeated)
		return false;
	if (!login) {
		x->whole_repeated = true;
		x->q.place.held = NULL;
	}
	x->again = true;
	return true;
}

void exchange_hold(struct exchange *x, struct http_client_response *ret_response,
	void (*dropped)(void *arg), void *arg)
{
	*ret_response = *x->answer;
	buffer_init(&x->answer->body, 0);
	buffer_init(&x->answer->coded, 0);
	x->dropped = dropped;
	x->dropped_arg = arg;
}

void exchange_end(struct exchange *x)
{
	x->dropped = NULL;
	if (x->again)
		go(x);
	else
		finish(x);
}

bool exchange_held(const struct exchange *x)
{
	return x->dropped;
}

bool exchange_conditional(const struct exchange *x)
{
	return x->conditional;
}

void session_fini(struct session *s)
{
	session_forget(s);
	*s = (struct session){0};
}
