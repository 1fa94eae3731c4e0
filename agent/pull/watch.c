/*
 * Watches. Surprising: the first answer of a watch counts as a change, since changes before it were
 * not seen. Where the server compares versions, a request sent before the pull has ended would be
 * answered at once; so what is `reported` is left out of requests for the others until it was
 * followed. The end of a watch that was held for a while (a restart, a proxy's time limit) does not
 * count against the address.
 */
#include "pull/watch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"

#define ANSWER_MS 10000u /* for an answer, beside what the server may hold it back */
#define SECOND 1000u

struct watch_request { /* one at a time, again and again */
	struct watch *watcher;
	struct watch_request *next;
	const struct settings_server *server;
	const struct kind *kind;
	struct exchange_session *session;
	struct exchange *exchange;
	struct loop_timer again;
	enum watch_state state;
	struct backoff **backoffs; /* of the server's addresses */
	size_t address;
	uint64_t begun_ms; /* the request under way */
	unsigned failures;
	unsigned refusals;       /* of its token, in a row */
	uint64_t up_ms;          /* since when it is up; 0 = it is not */
	uint64_t tokens_ms;      /* a request costs a second of it; more than now is debt */
	struct kind_watch watch; /* of the first `count` below: the request's own */
	struct kind_watched watched[KIND_MAX_WATCHED];
	struct watch_item *items[KIND_MAX_WATCHED];
	size_t item_count; /* all; in any order */
	char error[FILE_WHY];
	struct log_limit log_limit;
};

struct watch {
	struct loop *loop;
	const struct sys *sys;
	struct file_watch *drift;
	struct exchange_env env;
	struct backoffs *backoffs;
	struct watch_request *requests;
	unsigned count;
	bool full; /* logged */
	struct log_limit local_limit;
};

static void begin_watch(void *arg);

/* ---- when again ---- */

/* How long to wait for the pulls of the reported documents: as long as they take, unless the
 * request has others too. */
static uint64_t pulls_ms(const struct watch_request *q)
{
	size_t reported = 0;

	for (size_t i = 0; i < q->item_count; i++)
		reported += q->items[i]->reported;
	return reported == 0 ? 0 : reported == q->item_count ? WATCH_RETRY_MS : WATCH_PULL_MS;
}

/* Sets the timer to when the request has its token, and the reported documents are pulled. */
static void set_again(struct watch_request *q)
{
	struct loop *l = q->watcher->loop;
	uint64_t pulled_ms = loop_now_ms(l) + pulls_ms(q);

	loop_timer_set(l, &q->again, q->tokens_ms > pulled_ms ? q->tokens_ms : pulled_ms);
}

/* A token bucket: WATCH_BURST at once, one a second in the long run. */
static void ask_again(struct watch_request *q)
{
	uint64_t now_ms = loop_now_ms(q->watcher->loop),
		 least = now_ms > WATCH_BURST * SECOND ? now_ms - WATCH_BURST * SECOND : 0;

	if (q->tokens_ms < least)
		q->tokens_ms = least;
	q->tokens_ms += SECOND;
	set_again(q);
}

/* Tries the next address, later. */
static void retry_later(struct watch_request *q, const char *why)
{
	const struct sys *sys = q->watcher->sys;
	uint64_t now_ms = loop_now_ms(q->watcher->loop), delay_ms;
	unsigned suppressed;

	if (q->up_ms && now_ms - q->up_ms >= WATCH_PROVEN_MS)
		q->failures = q->refusals = 0;
	q->up_ms = 0;
	if (q->failures < 10)
		q->failures++;
	delay_ms = (SECOND / 2) << q->failures;
	if (delay_ms > WATCH_RETRY_MS)
		delay_ms = WATCH_RETRY_MS;
	q->address = (q->address + 1) % q->server->url_count;
	q->state = WATCH_FAILING;
	snprintf(q->error, sizeof(q->error), "%s", why);
	if (log_limit_pass_kind(&q->log_limit, now_ms, "watch", why, &suppressed))
		log_warn("watch failed: changes are seen at the interval", "server",
			q->server->name, "path", LOG_URL(q->items[0]->path), "why", why, "repeated",
			suppressed ? LOG_U64(suppressed) : NULL);
	loop_timer_set(q->watcher->loop, &q->again,
		now_ms + delay_ms / 4 + sys_random_upto(sys, delay_ms * 3 / 4));
}

static void watch_established(struct watch_request *q)
{
	if (q->state == WATCH_FAILING)
		log_info("watching again", "server", q->server->name, "path",
			LOG_URL(q->items[0]->path));
	q->state = WATCH_ON;
	q->error[0] = '\0';
	if (!q->up_ms)
		q->up_ms = loop_now_ms(q->watcher->loop);
	if (!q->kind->stream)
		q->failures = 0;
}

/* A stream is answered before its token is checked: the token may be what is rejected. Not the
 * second time in a row: then a new token is rejected, too. */
static void watch_refused(struct watch_request *q, int error, const char *why)
{
	if (error == -EACCES && q->kind->stream && q->refusals++ == 0)
		exchange_session_forget(q->session);
	retry_later(q, why);
}

/* ---- answers ---- */

static void item_changed(void *arg, size_t i, const char *key, size_t key_len, const char *version)
{
	struct watch_request *q = arg;
	struct watch_item *item = q->items[i];

	item->reported = q->kind->compares;
	item->changed(item->arg, key, key_len, version);
}

static void item_answered(void *arg, size_t i, const struct http_client_response *answer)
{
	struct watch_request *q = arg;

	if (q->items[i]->answered)
		q->items[i]->answered(q->items[i]->arg, answer);
}

static void read_whole_answer(struct watch_request *q, const struct http_client_response *response)
{
	struct exchange *x = q->exchange;
	char why[FILE_WHY] = "the server does not answer as it should";
	int r = q->kind->watch_read(&q->watch, response, why);

	if (r == -EACCES && exchange_again(x, true))
		return;
	q->exchange = NULL;
	if (r == 0 || r == -ESTALE) {
		watch_established(q);
		ask_again(q);
	} else {
		watch_refused(q, r, why);
	}
}

/* Counts an answer for the backoff of the address. */
static void record_backoff(struct watch_request *q, const struct http_client_response *response)
{
	bool held = loop_now_ms(q->watcher->loop) - q->begun_ms >= WATCH_PROVEN_MS;

	if (!held || backoff_health(response) != BACKOFF_FAILED)
		backoff_ended(q->backoffs[q->address], q->begun_ms, response);
}

static void watch_answered(
	void *arg, const struct kind_place *place, const struct http_client_response *response)
{
	struct watch_request *q = arg;

	(void)place;
	record_backoff(q, response);
	if (response->result == HTTP_CLIENT_OK && !(q->kind->stream && response->status == 200)) {
		read_whole_answer(q, response);
		return;
	}
	q->exchange = NULL;
	if (q->state == WATCH_ON && loop_now_ms(q->watcher->loop) - q->up_ms >= WATCH_PROVEN_MS) {
		q->failures = q->refusals = 0;
		q->up_ms = 0;
		q->state = WATCH_CONNECTING;
		q->address = (q->address + 1) % q->server->url_count;
		ask_again(q);
	} else {
		retry_later(q, response->result == HTTP_CLIENT_OK
				       ? "the server ended the watch at once"
				       : response->message);
	}
}

static void watch_line_received(void *arg, const struct http_client_response *line)
{
	struct watch_request *q = arg;
	char why[FILE_WHY] = "the server does not answer as it should";
	int r;

	if (line->body.len == 0)
		return; /* it keeps the connection: the watch may not even be made */
	r = q->kind->watch_read(&q->watch, line, why);
	if (r == 0) {
		if (!q->up_ms)
			record_backoff(q, line);
		watch_established(q);
		return;
	}
	exchange_cancel(q->exchange);
	q->exchange = NULL;
	if (r == -ESTALE)
		ask_again(q);
	else
		watch_refused(q, r, why);
}

static void watch_request_failed(void *arg, enum kind_cause cause, const char *why)
{
	struct watch_request *q = arg;

	(void)cause;
	q->exchange = NULL;
	retry_later(q, why);
}

/* ---- requests ---- */

static int build_watch_request(
	void *arg, const struct kind_place *place, struct kind_request *r, char why[FILE_WHY])
{
	struct watch_request *q = arg;

	q->watch.place = place;
	for (size_t i = 0; i < q->watch.count; i++)
		q->watched[i].version = q->items[i]->version(q->items[i]->arg);
	return q->kind->watch_build(&q->watch, r, why);
}

/* Takes the first address, from the present one on, that is not in backoff; else waits for one. */
static bool pick_address(struct watch_request *q)
{
	uint64_t now_ms = loop_now_ms(q->watcher->loop), until_ms;
	size_t address = backoff_pick(
		q->backoffs, q->server->url_count, q->address, BACKOFF_NONE, now_ms, &until_ms);

	q->begun_ms = now_ms;
	if (until_ms) {
		if (q->state == WATCH_ON)
			q->state = WATCH_CONNECTING;
		q->up_ms = 0;
		loop_timer_set(q->watcher->loop, &q->again, until_ms);
		return false;
	}
	q->address = address;
	return true;
}

static void swap_items(struct watch_request *q, size_t a, size_t b)
{
	struct watch_item *item = q->items[a];
	struct kind_watched watched = q->watched[a];

	q->items[a] = q->items[b];
	q->items[b] = item;
	q->watched[a] = q->watched[b];
	q->watched[b] = watched;
}

/* Those that are not reported; all, when the pulls of all have been waited for long enough. */
static void choose_watched(struct watch_request *q)
{
	size_t n = 0;

	for (size_t i = 0; i < q->item_count; i++)
		if (!q->items[i]->reported)
			swap_items(q, i, n++);
	for (size_t i = 0; n == 0 && i < q->item_count; i++)
		q->items[i]->reported = false;
	q->watch.count = n ? n : q->item_count;
}

static size_t find_watch_item(const struct watch_request *q, const struct watch_item *item)
{
	size_t i = 0;

	while (q->items[i] != item)
		i++;
	return i;
}

static void begin_watch(void *arg)
{
	static const struct exchange_calls whole = {build_watch_request, watch_answered,
						   watch_request_failed, NULL},
					   stream = {build_watch_request, watch_answered,
						   watch_request_failed, watch_line_received};
	struct watch_request *q = arg;
	const struct sys *sys = q->watcher->sys;
	struct exchange_request request = {
		.server = q->server,
		.session = q->session,
		.place = {.path = q->items[0]->path, .max_bytes = q->server->max_bytes},
		.timeout_ms = q->kind->stream
				      ? WATCH_IDLE_MS - sys_random_upto(sys, WATCH_IDLE_MS / 4)
				      : ANSWER_MS,
		.calls = q->kind->stream ? &stream : &whole,
		.arg = q,
	};
	char why[FILE_WHY];

	if (q->state == WATCH_OFF)
		q->state = WATCH_CONNECTING;
	if (!pick_address(q))
		return;
	request.backoff = q->backoffs[q->address];
	request.place.base = q->server->urls[q->address];
	choose_watched(q);
	if (exchange_start(&q->watcher->env, &request, &q->exchange, why)) {
		q->exchange = NULL;
		retry_later(q, why);
	}
}

/* ---- local files ---- */

static void file_noticed(void *arg, const char *cause)
{
	struct watch_item *item = arg;

	(void)cause;
	item->changed(item->arg, NULL, 0, NULL);
}

static void log_file_watch(struct watch_item *item, const char *error)
{
	struct watch *w = item->watcher;
	unsigned suppressed = 0;

	if (!error)
		log_info(
			"watching again", "server", item->local->name, "path", LOG_URL(item->path));
	else if (log_limit_pass_kind(
			 &w->local_limit, loop_now_ms(w->loop), "watch", error, &suppressed))
		log_warn("watch failed: changes are seen at the interval", "server",
			item->local->name, "path", LOG_URL(item->path), "why", error, "repeated",
			suppressed ? LOG_U64(suppressed) : NULL);
}

/* Watches the directory: the file, or a link to it, is replaced. 1: it is another directory. */
static int watch_directory(struct watch_item *item)
{
	const char *before = item->error;
	char path[4200], *slash;
	int r;

	item->error = "inotify cannot be used"; /* the agent has said so */
	if (!item->watcher->drift)
		return 0;
	snprintf(path, sizeof(path), "%s%s", item->local->urls[0] + strlen("file://"), item->path);
	slash = strrchr(path, '/');
	slash[slash == path] = '\0';
	r = file_watch_renew(item->watcher->drift, &item->entry, path, NULL);
	item->error = r < 0 ? file_watch_explain(-r) : NULL;
	if (strcmp(before ? before : "", item->error ? item->error : "") != 0)
		log_file_watch(item, item->error);
	return r;
}

static void add_file(struct watch *w, const struct settings_server *server, struct watch_item *item)
{
	item->local = server;
	item->watcher = w;
	item->error = NULL;
	item->entry = (struct file_watch_entry){.noticed = file_noticed, .arg = item};
	watch_directory(item);
}

/* ---- outside ---- */

static struct watch_request *find_room(struct watch *w, const struct settings_server *server,
	const struct kind *kind, const char *path)
{
	for (struct watch_request *q = w->requests; q; q = q->next)
		if (q->server == server && q->item_count < KIND_MAX_WATCHED && kind->together &&
			kind->together(q->items[0]->path, path))
			return q;
	return NULL;
}

static struct watch_request *add_request(struct watch *w, const struct settings_server *server,
	const struct kind *kind, struct exchange_session *session)
{
	struct watch_request *q = calloc(1, sizeof(*q));

	if (!q)
		return NULL;
	*q = (struct watch_request){
		.watcher = w,
		.next = w->requests,
		.server = server,
		.kind = kind,
		.session = session,
		.backoffs = backoff_join_all(w->backoffs, server),
		.address = w->sys->host() % server->url_count,
		.watch = {.items = q->watched,
			.changed = item_changed,
			.answered = item_answered,
			.arg = q},
	};
	if (!q->backoffs) {
		free(q);
		return NULL;
	}
	loop_timer_init(&q->again, begin_watch, q);
	loop_timer_set(
		w->loop, &q->again, loop_now_ms(w->loop) + sys_random_upto(w->sys, WATCH_SPLAY_MS));
	w->requests = q;
	w->count++;
	return q;
}

/* Starts again with another list of documents. */
static void restart_request(struct watch_request *q)
{
	if (!q->exchange) {
		if (q->state == WATCH_ON)
			set_again(q);
		return;
	}
	exchange_cancel(q->exchange);
	q->exchange = NULL;
	if (q->state == WATCH_ON)
		q->state = WATCH_CONNECTING;
	ask_again(q);
}

int watch_add(struct watch *w, const struct settings_server *server,
	struct exchange_session *session, struct watch_item *item)
{
	const struct kind *kind = kind_of(server);
	struct watch_request *q;

	if (kind->local) {
		add_file(w, server, item);
		return 0;
	}
	if (!kind->watch_build)
		return -ENOTSUP;
	q = find_room(w, server, kind, item->path);
	if (!q && w->count == WATCH_MAX_REQUESTS) {
		if (!w->full)
			log_warn("too many documents are watched: the others are polled", "at_most",
				LOG_U64(WATCH_MAX_REQUESTS));
		w->full = true;
		return -ENOSPC;
	}
	if (!q)
		q = add_request(w, server, kind, session);
	if (!q)
		return -ENOMEM;
	q->items[q->item_count] = item;
	q->watched[q->item_count++] = (struct kind_watched){.path = item->path};
	item->request = q;
	restart_request(q);
	return 0;
}

static void free_request(struct watch_request *q)
{
	struct watch *w = q->watcher;
	struct watch_request **link = &w->requests;

	while (*link != q)
		link = &(*link)->next;
	*link = q->next;
	w->count--;
	loop_timer_cancel(w->loop, &q->again);
	exchange_cancel(q->exchange);
	backoff_leave_all(q->backoffs, q->server->url_count);
	free(q);
}

void watch_remove(struct watch *w, struct watch_item *item)
{
	struct watch_request *q = item->request;
	size_t i, behind;

	if (item->entry.arg && w->drift)
		file_watch_remove(w->drift, &item->entry);
	item->request = NULL;
	item->local = NULL;
	item->reported = false;
	if (!q)
		return;
	i = find_watch_item(q, item);
	behind = --q->item_count - i;
	memmove(&q->items[i], &q->items[i + 1], behind * sizeof(q->items[0]));
	memmove(&q->watched[i], &q->watched[i + 1], behind * sizeof(q->watched[0]));
	if (q->item_count)
		restart_request(q);
	else
		free_request(q);
}

void watch_followed(struct watch_item *item)
{
	struct watch_request *q = item->request;

	if (item->local && watch_directory(item) > 0)
		file_noticed(item, NULL); /* it may have changed between the pull and this */
	if (!item->reported)
		return;
	item->reported = false;
	if (q->exchange && find_watch_item(q, item) >= q->watch.count) {
		exchange_cancel(q->exchange);
		q->exchange = NULL;
		ask_again(q);
	} else if (!q->exchange && q->state == WATCH_ON) {
		set_again(q);
	}
}

enum watch_state watch_status(const struct watch_item *item, const char **ret_error)
{
	*ret_error = item->request ? item->request->error : item->error ? item->error : "";
	if (item->request)
		return item->request->state;
	return !item->local ? WATCH_OFF : item->error ? WATCH_FAILING : WATCH_ON;
}

struct watch *watch_new(struct loop *l, const struct sys *sys, struct backoffs *backoffs,
	const char *ca_file, struct file_watch *drift)
{
	struct watch *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	w->loop = l;
	w->sys = sys;
	w->drift = drift;
	w->backoffs = backoffs;
	w->env = (struct exchange_env){sys, http_client_new(l), NULL, ca_file};
	if (w->env.transport)
		return w;
	free(w);
	return NULL;
}

void watch_resume(struct watch *w)
{
	http_client_forget(w->env.transport);
	for (struct watch_request *q = w->requests; q; q = q->next) {
		if (!q->exchange)
			continue;
		exchange_cancel(q->exchange);
		q->exchange = NULL;
		q->state = WATCH_CONNECTING;
		ask_again(q);
	}
}

void watch_free(struct watch *w)
{
	struct watch_request *q;

	if (!w)
		return;
	while ((q = w->requests))
		free_request(q);
	http_client_free(w->env.transport);
	free(w);
}
