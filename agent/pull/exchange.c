/*
 * Surprising: an exchange that needs a token is queued at its session; the first logs in for all of
 * them, and when it is cancelled the next one does.
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
	struct local_file *file;
	struct exchange *next; /* in the session's queue */
	uint64_t serial;       /* of the token it was sent with */
	uint64_t awaits;       /* the login it is queued for */
	bool queued, logging_in, login_repeated, whole_repeated, conditional;
	bool again;                          /* exchange_again() was called */
	struct http_client_response *answer; /* within ended() */
	void (*dropped)(void *arg);          /* NULL: it is not held */
	void *dropped_arg;
};

static void continue_exchange(struct exchange *x);
static int send_next(struct exchange *x, char why[FILE_WHY]);

/* ---- the ends ---- */

static void fail_exchange(struct exchange *x, enum kind_cause cause, const char *why)
{
	const struct exchange_calls *calls = x->q.calls;
	void *arg = x->q.arg;

	free(x);
	calls->failed(arg, cause, why);
}

/* Cuts an answer that is no document: only its first words are ever shown. */
static void bound_words(struct http_client_response *response)
{
	struct buffer *body = &response->body;

	if (response->status == 200 || body->len <= EXCHANGE_MAX_WORDS)
		return;
	body->len = EXCHANGE_MAX_WORDS;
	body->data[body->len] = '\0';
}

/* An error's words are quoted, a document's version is shown, and some servers send secrets back.
 */
static void hide_secrets(struct exchange *x, struct http_client_response *response)
{
	const struct {
		char *data;
		size_t len;
	} shown[] = {
		{response->etag, strlen(response->etag)},
		{response->content_encoding, strlen(response->content_encoding)},
		{response->location, strlen(response->location)},
		{response->body.data, response->status == 200 ? 0 : response->body.len},
	};
	const char *query = strchr(x->q.place.path, '?');
	struct credentials c;
	char why[FILE_WHY];
	bool known;

	bound_words(response);
	if (response->status == 304 ||
		shown[0].len + shown[1].len + shown[2].len + shown[3].len == 0)
		return;
	known = credentials_read(x->env->sys, x->q.server, &c, why) == 0;
	for (size_t i = 0; i < sizeof(shown) / sizeof(shown[0]); i++)
		if (!known && shown[i].len) /* the secrets that were sent are unknown by now */
			memset(shown[i].data, '*', shown[i].len);
		else if (shown[i].len)
			credentials_hide(&c, x->q.session->token, query ? query + 1 : NULL,
				shown[i].data, shown[i].len);
	credentials_fini(&c);
}

static void transfer_ended(void *arg, struct http_client_response *response)
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

static void stream_line_received(void *arg, const struct http_client_response *line)
{
	struct exchange *x = arg;

	x->q.calls->line(x->q.arg, line);
}

/* ---- the session's queue ---- */

static void enter_queue(struct exchange *x)
{
	struct exchange_session *s = x->q.session;

	if (!s->first)
		s->last = &s->first;
	x->next = NULL;
	x->queued = true;
	x->awaits = s->logins;
	*s->last = x;
	s->last = &x->next;
}

static void leave_queue(struct exchange *x)
{
	struct exchange_session *s = x->q.session;
	struct exchange **link = &s->first;

	while (*link != x)
		link = &(*link)->next;
	*link = x->next;
	if (s->last == &x->next)
		s->last = link;
	x->queued = false;
}

void exchange_session_forget(struct exchange_session *s)
{
	if (s->token)
		explicit_bzero(s->token, strlen(s->token));
	free(s->token);
	s->token = NULL;
}

static enum kind_cause login_cause(int error)
{
	return error == -EACCES   ? KIND_CAUSE_FORBIDDEN
	       : error == -EAGAIN ? KIND_CAUSE_OVERLOADED
				  : KIND_CAUSE_ANSWER;
}

static void explain_failure(char why[FILE_WHY], int error)
{
	if (!why[0])
		snprintf(why, FILE_WHY, "the request cannot be made: %s", strerror(-error));
}

/* Sends the next request later than exchange_start(): the address may be in backoff by now. 0, or
 * -errno with cause and why. */
static int send_later(struct exchange *x, enum kind_cause *ret_cause, char why[FILE_WHY])
{
	const struct backoff *b = x->q.backoff;
	int r;

	*ret_cause = KIND_CAUSE_OVERLOADED;
	if (b && backoff_until(b, x->env->sys->now_ms())) {
		snprintf(why, FILE_WHY, "its address is in backoff%s%s", b->error ? ": " : "",
			b->error ? b->error : "");
		return -EAGAIN;
	}
	*ret_cause = KIND_CAUSE_HOST;
	r = send_next(x, why);
	if (r)
		explain_failure(why, r);
	return r;
}

/* Lets the first in the queue log in, if it does not yet. */
static void lead_login(struct exchange_session *s)
{
	enum kind_cause cause;
	struct exchange *x;

	while ((x = s->first) && !x->logging_in) {
		char why[FILE_WHY] = "";

		x->logging_in = true;
		if (send_later(x, &cause, why) == 0)
			return;
		leave_queue(x);
		fail_exchange(x, cause, why);
	}
}

/* The login is over for the exchanges in the queue: they go on with the token, or fail. Each step
 * may cancel others, or start new ones, which wait for the next login. */
static void release_queue(struct exchange_session *s, enum kind_cause cause, const char *why)
{
	uint64_t login = s->logins++;
	struct exchange *x;

	while ((x = s->first) && x->awaits == login) {
		leave_queue(x);
		if (cause == KIND_CAUSE_NONE)
			continue_exchange(x);
		else
			fail_exchange(x, cause, why);
	}
	lead_login(s);
}

/* True when a login had no answer, or one that concerns the address as that of a pull does. */
static bool concerns_address(const struct http_client_response *response, int login)
{
	return response->result != HTTP_CLIENT_OK ||
	       (login == -EAGAIN && (response->status == 429 || response->status >= 500));
}

static void login_ended(void *arg, struct http_client_response *response)
{
	struct exchange *x = arg;
	struct exchange_session *s = x->q.session;
	char why[FILE_WHY] = "", *token = NULL;
	uint64_t lifetime_ms = 0;
	int r = 0;

	hide_secrets(x, response);
	if (response->result == HTTP_CLIENT_OK)
		r = x->kind->login_read(response, &token, &lifetime_ms, why);
	x->transfer = NULL;
	x->logging_in = false;
	if (concerns_address(response, r)) {
		leave_queue(x);
		transfer_ended(x, response);
		lead_login(s);
		return;
	}
	if (r == 0) {
		exchange_session_forget(s);
		s->token = token;
		s->serial++;
		s->expires_ms = lifetime_ms ? x->env->sys->now_ms() + lifetime_ms : UINT64_MAX;
	}
	s->open = r == -ENOTSUP;
	release_queue(s, r == 0 || s->open ? KIND_CAUSE_NONE : login_cause(r), why);
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

/* Hashes the document's name and the credentials. Without the token of a login: it changes under
 * the same user. */
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
		.may_be_packed = x->q.document && !x->logging_in,
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
		.line = line ? stream_line_received : NULL,
		.idle_ms = line ? timeout_ms : 0,
		.document = named ? document : NULL,
		.must_end = !x->kind->wraps, /* JSON has an end of its own */
	};

	for (size_t i = 0; i < r->header_count; i++)
		headers[n++] = r->headers[i];
	for (size_t i = 0; i < c->count; i++)
		headers[n++] = c->lines[i];
	headers[n] = NULL;
	return http_client_start(x->env->transport, &q, done, x, &x->transfer);
}

static int start_file_reading(struct exchange *x, const struct kind_request *r)
{
	const struct part *held = r->conditional ? x->q.place.held : NULL;

	return local_file_start(x->env->files, r->url.data, held ? held->etag : "",
		x->q.place.max_bytes, transfer_ended, x, &x->file);
}

/* Builds and sends the login or the request. 0, or -errno with why. */
static int send_next(struct exchange *x, char why[FILE_WHY])
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
		e = start_file_reading(x, &r);
	else if (e == 0)
		e = send_request(x, &c, &r, x->logging_in ? login_ended : transfer_ended);
	kind_request_fini(&r);
	credentials_fini(&c);
	return e;
}

/* Decides between login and request. False: the exchange waits in the queue for another's login. */
static bool plan_next(struct exchange *x)
{
	struct exchange_session *s = x->q.session;

	if (s->token && x->env->sys->now_ms() >= s->expires_ms)
		exchange_session_forget(s);
	x->logging_in = x->kind->login_build && x->q.server->user && !s->open && !s->token;
	x->serial = s->serial;
	if (!x->logging_in)
		return true;
	enter_queue(x);
	x->logging_in = s->first == x;
	return x->logging_in;
}

/* Goes on later than exchange_start(): failed() reports a failure. */
static void continue_exchange(struct exchange *x)
{
	enum kind_cause cause;
	char why[FILE_WHY] = "";

	if (!plan_next(x) || send_later(x, &cause, why) == 0)
		return;
	if (x->queued)
		leave_queue(x);
	fail_exchange(x, cause, why);
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
	r = plan_next(x) ? send_next(x, why) : 0;
	if (r == 0) {
		*ret_exchange = x;
		return 0;
	}
	explain_failure(why, r);
	if (x->queued)
		leave_queue(x);
	free(x);
	return r;
}

void exchange_cancel(struct exchange *x)
{
	struct exchange_session *s;
	bool led;

	if (!x)
		return;
	s = x->q.session;
	led = x->queued && x->logging_in;
	if (x->dropped)
		x->dropped(x->dropped_arg);
	if (x->transfer)
		http_client_cancel(x->transfer);
	if (x->file)
		local_file_cancel(x->file);
	if (x->queued)
		leave_queue(x);
	free(x);
	if (led)
		lead_login(s);
}

static bool again_with_login(struct exchange *x)
{
	struct exchange_session *s = x->q.session;

	if (x->login_repeated || !x->kind->login_build || !x->q.server->user)
		return false;
	x->login_repeated = true;
	s->open = false;
	if (x->serial == s->serial) /* else there is a new one already */
		exchange_session_forget(s);
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

struct http_client_response *exchange_answer(struct exchange *x)
{
	return x->answer;
}

void exchange_end(struct exchange *x)
{
	x->dropped = NULL;
	if (x->again)
		continue_exchange(x);
	else
		free(x);
}

bool exchange_held(const struct exchange *x)
{
	return x->dropped;
}

const char *exchange_waits_for(const struct exchange *x)
{
	if (x->queued && !x->transfer)
		return "another request is logging in at its server, which does not end";
	return x->transfer ? http_client_waits_for(x->transfer) : NULL;
}

bool exchange_conditional(const struct exchange *x)
{
	return x->conditional;
}

void exchange_session_fini(struct exchange_session *s)
{
	exchange_session_forget(s);
	*s = (struct exchange_session){0};
}
