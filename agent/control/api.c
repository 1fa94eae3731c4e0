/*
 * The control API: a table of paths, each a few lines. Answers are written by status.c and
 * config/inspect.c, changes are made by config/operations.c.
 *
 * Surprising: a request that waits stays open until the run or change that it caused has ended. If
 * the client disconnects before, only the waiting ends.
 */
#include "control/api.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "control/answers.h"
#include "config/changes.h"
#include "config/events.h"
#include "httpd/host_header.h"
#include "httpd/server.h"
#include "config/inspect.h"
#include "text/json_writer.h"
#include "base/log.h"
#include "control/metrics.h"
#include "text/exposition.h"
#include "control/page/page.h"
#include "httpd/peer.h"
#include "control/socket.h"
#include "text/sentence.h"
#include "settings/value.h"
#include "httpd/share.h"
#include "control/status.h"
#include "files/user.h"

#define MAX_ANSWER (64u << 20)
#define MAX_TRIES 3 /* of a change, while other versions are published */
#define MAX_WAIT_MS 3600000u
#define WAIT_MS 60000u

struct waiting { /* one client that waits for a run or a change */
	struct control *control;
	struct httpd_request *request; /* NULL = free */
	struct peer peer;
	struct config *config;
	struct config_waiter waiter;
	struct loop_timer limit;
	uint64_t limit_ms;
	struct inspect_effect effect; /* of an override */
};

struct control {
	const struct control_env *env; /* may change between two calls */
	struct control_socket *socket;
	struct changes *changes;
	struct answers answers;
	struct waiting waiting[CONTROL_MAX_WAITING];
	struct log_limit denied; /* by user */
	struct log_limit busy;   /* by user */
};

static void reply_json(struct httpd_request *r, int status, struct buffer *b)
{
	static const char cut[] = "{\"error\":\"the answer is too large, or memory is short\"}\n";

	if (buffer_append(b, "\n", 1)) /* or an earlier append failed */
		httpd_reply(r, 500, "application/json", cut, sizeof(cut) - 1);
	else
		httpd_reply(r, status, "application/json", b->data, b->len);
	buffer_fini(b);
}

static enum audience audience_of(const struct httpd_request *r)
{
	return httpd_is_tcp(r)           ? AUDIENCE_PUBLIC
	       : httpd_may_see_values(r) ? AUDIENCE_OPERATOR
					 : AUDIENCE_READER;
}

static void reply_error(struct httpd_request *r, int status, const char *sentence)
{
	struct buffer b;

	buffer_init(&b, 16384);
	json_writer_begin_object(&b, NULL);
	sentence_member(&b, "error", sentence, audience_of(r));
	json_writer_end_object(&b);
	reply_json(r, status, &b);
}

/* Answers with the HTTP status of this -errno. */
static void reply_errno(struct httpd_request *r, int error, const char *sentence)
{
	static const struct {
		int error, status;
	} table[] = {{-EINVAL, 400}, {-ENOENT, 404}, {-ENOMEM, 500}, {-EMSGSIZE, 500}};
	int status = 409;

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (table[i].error == error)
			status = table[i].status;
	reply_error(r, status, sentence);
}

static struct config *find_named_config(struct control *c, const char *name)
{
	for (size_t i = 0; i < c->env->settings->config_count; i++)
		if (strcmp(config_name(c->env->configs[i]), name) == 0)
			return c->env->configs[i];
	return NULL;
}

/* ---- query ---- */

static bool query_is_set(const struct httpd_request *r, const char *name, bool fallback)
{
	const char *text = httpd_query(r, name);

	return text ? strcmp(text, "0") != 0 : fallback;
}

static const char *query_text(const struct httpd_request *r, const char *name)
{
	const char *text = httpd_query(r, name);

	return text ? text : "";
}

/* A number of the query, or the fallback. False, and answered: it is not a number. */
static bool query_number(
	struct httpd_request *r, const char *name, uint64_t fallback, uint64_t *ret_number)
{
	const char *text = httpd_query(r, name);
	char why[64];

	*ret_number = fallback;
	if (!text)
		return true;
	errno = 0;
	*ret_number = strtoull(text, NULL, 10);
	if (text[0] && strspn(text, "0123456789") == strlen(text) && errno == 0)
		return true;
	snprintf(why, sizeof(why), "%s takes a number", name);
	reply_error(r, 400, why);
	return false;
}

/* ---- GET ---- */

static void get_status(struct control *c, struct httpd_request *r, struct config *config)
{
	struct buffer b;
	int e;

	(void)config;
	buffer_init(&b, MAX_ANSWER);
	e = status_agent(c->env, audience_of(r), &b);
	if (e) {
		buffer_fini(&b);
		reply_error(r, 500, strerror(-e));
		return;
	}
	reply_json(r, 200, &b);
}

static void get_config(struct control *c, struct httpd_request *r, struct config *config)
{
	struct buffer b;

	(void)c;
	buffer_init(&b, MAX_ANSWER);
	status_config(config, audience_of(r), &b);
	reply_json(r, 200, &b);
}

/* ---- answers that take long ---- */

static void reply_answer(struct answer *a)
{
	if (a->error)
		reply_errno(a->request, a->error, a->why);
	else
		reply_json(a->request, 200, &a->out);
}

/* A user exceeds the share of the control socket. */
static void share_refused(void *arg, const struct peer *peer)
{
	struct control *c = arg;
	char user[USER_TEXT], cause[24];
	unsigned before;

	c->env->counts->busy++;
	snprintf(cause, sizeof(cause), "%u", (unsigned)peer->uid);
	if (!log_limit_pass(&c->busy, loop_now_ms(c->env->loop), cause, &before))
		return;
	user_describe(&sys_real, peer->uid, user);
	log_warn("the control socket is busy: a request was denied", "by", user, "before",
		before ? LOG_U64(before) : NULL);
}

/* Begins a slow answer, or answers with an error. */
static void begin_slow_answer(
	struct control *c, struct httpd_request *r, struct config *config, struct answer *a)
{
	char why[FILE_WHY];
	struct peer peer;
	int e;

	a->audience = audience_of(r);
	e = answers_begin(&c->answers, a, r, config, why);
	if (e == 0)
		return;
	free(a->key);
	if (e == -EBUSY) {
		httpd_peer(r, &peer);
		share_refused(c, &peer);
	}
	if (e == -EBUSY)
		reply_error(r, 503, why);
	else
		reply_errno(r, e, why);
}

static void compute_history(struct answer *a)
{
	a->error = inspect_history(&a->seen, a->audience, &a->out, a->why);
}

static void get_history(struct control *c, struct httpd_request *r, struct config *config)
{
	begin_slow_answer(
		c, r, config, &(struct answer){.compute = compute_history, .reply = reply_answer});
}

static void compute_diff(struct answer *a)
{
	a->error = inspect_diff(
		&a->seen, a->from, a->to, a->audience == AUDIENCE_OPERATOR, &a->out, a->why);
}

static void get_events(struct control *c, struct httpd_request *r, struct config *config)
{
	struct buffer b;

	(void)c;
	buffer_init(&b, MAX_ANSWER);
	events_write(config, audience_of(r), &b);
	reply_json(r, 200, &b);
}

static void get_diff(struct control *c, struct httpd_request *r, struct config *config)
{
	struct answer a = {.compute = compute_diff, .reply = reply_answer};

	a.held = query_is_set(r, "held", false);
	if (a.held && httpd_query(r, "to"))
		reply_error(r, 400, "held=1 says what it compares with: it takes no to=N");
	else if (query_number(r, "from", 0, &a.from) && query_number(r, "to", 0, &a.to))
		begin_slow_answer(c, r, config, &a);
}

static void compute_explanation(struct answer *a)
{
	a->error = inspect_explain(
		&a->seen, a->key ? a->key : "", a->audience == AUDIENCE_OPERATOR, &a->out, a->why);
}

/* Without a key: why the current version is current. */
static void get_explain(struct control *c, struct httpd_request *r, struct config *config)
{
	struct buffer b;

	if (!httpd_query(r, "key")) {
		buffer_init(&b, MAX_ANSWER);
		explain_config(config, audience_of(r), &b);
		reply_json(r, 200, &b);
		return;
	}
	begin_slow_answer(c, r, config,
		&(struct answer){.compute = compute_explanation,
			.reply = reply_answer,
			.key = strdup(query_text(r, "key"))});
}

/* ---- the last publications ---- */

static void reply_changes(struct control *c, struct httpd_request *r)
{
	struct buffer b;
	int e;

	buffer_init(&b, MAX_ANSWER);
	e = changes_write(c->changes, httpd_may_see_values(r), &b);
	if (e == 0) {
		reply_json(r, 200, &b);
		return;
	}
	buffer_fini(&b);
	reply_errno(r, e, strerror(-e));
}

static void compute_change(struct answer *a)
{
	changes_compare(a->made);
}

static void drop_change(void *made)
{
	changes_drop(made);
}

static void next_change(struct answer *a);

/* Compares the publications since, one after the other, then answers. */
static void answer_changes(struct control *c, struct httpd_request *r, uint64_t read)
{
	struct answer a = {.compute = compute_change,
		.reply = next_change,
		.unmake = drop_change,
		.arg = c,
		.number = read};
	const struct control_env *env = c->env;
	struct changes_entry *missing;
	char why[FILE_WHY];
	int e = changes_find_missing(
		c->changes, env->configs, env->settings->config_count, &a.number, &missing);

	if (e < 0) {
		reply_errno(r, e, strerror(-e));
	} else if (e == 0) {
		reply_changes(c, r);
	} else {
		a.made = missing;
		if (answers_begin(&c->answers, &a, r, changes_config(missing), why) == 0)
			return;
		changes_drop(missing);
		reply_changes(c, r); /* those compared so far */
	}
}

static void next_change(struct answer *a)
{
	struct control *c = a->arg;

	if (a->error) { /* its config is being removed */
		reply_changes(c, a->request);
		return;
	}
	changes_keep(c->changes, a->made);
	a->made = NULL;
	answer_changes(c, a->request, a->number);
}

static void get_changes(struct control *c, struct httpd_request *r, struct config *config)
{
	(void)config;
	answer_changes(c, r, 0);
}

/* ---- the page ---- */

static void get_page(struct control *c, struct httpd_request *r, struct config *config)
{
	const struct page *p = page_find(httpd_path(r));

	(void)c, (void)config;
	httpd_reply(r, 200, p->type, p->data, (size_t)(p->end - p->data));
}

/* ---- health ---- */

static void get_livez(struct control *c, struct httpd_request *r, struct config *config)
{
	(void)c, (void)config;
	httpd_reply(r, 200, "text/plain; charset=utf-8", "ok\n", 3);
}

/* Every config has a published version, from the network or from the last known good. */
static void get_readyz(struct control *c, struct httpd_request *r, struct config *config)
{
	struct buffer b;
	bool ready;

	(void)config;
	buffer_init(&b, MAX_ANSWER);
	ready = status_ready(c->env, httpd_query(r, "verbose") != NULL, audience_of(r), &b);
	httpd_reply(r, ready ? 200 : 503, "text/plain; charset=utf-8", b.data ? b.data : "", b.len);
	buffer_fini(&b);
}

/* In the text format 0.0.4, unless the scraper asks for OpenMetrics. */
static void get_metrics(struct control *c, struct httpd_request *r, struct config *config)
{
	bool open = exposition_is_open(httpd_header(r, "Accept"));
	struct buffer b;
	int e;

	(void)config;
	buffer_init(&b, MAX_ANSWER);
	e = metrics_write(c->env, open, &b);
	if (e)
		reply_error(r, 500, strerror(-e));
	else
		httpd_reply(r, 200, exposition_type(open), b.data, b.len);
	buffer_fini(&b);
}

/* ---- clients that wait ---- */

static void waiting_end(struct waiting *w)
{
	loop_timer_cancel(w->control->env->loop, &w->limit);
	config_wait_cancel(w->config, &w->waiter);
	w->request = NULL;
}

static void waited_run_ended(void *arg, struct config *config)
{
	struct waiting *w = arg;
	struct httpd_request *r = w->request;
	struct buffer b;

	waiting_end(w);
	buffer_init(&b, 8192);
	status_outcome(config, audience_of(r), &b);
	reply_json(r, 200, &b);
}

static bool is_rollback(const struct httpd_request *r)
{
	const char *what = strrchr(httpd_path(r), '/');

	return what && strcmp(what, "/rollback") == 0;
}

/* A rollback leaves them as they are. */
static void write_overridden_keys(const struct config_status *s, struct buffer *out)
{
	if (!s->override_count)
		return;
	json_writer_begin_array(out, "overridden");
	for (size_t i = 0; i < s->override_count; i++)
		json_writer_text(out, NULL, s->overrides[i].key);
	json_writer_end_array(out);
}

static void write_override_effect(
	const struct httpd_request *r, const struct inspect_effect *effect, struct buffer *out)
{
	const char *value = httpd_query(r, "value");
	size_t replaced = value ? inspect_replaced(effect, value) : 0;

	if (value && effect->adds)
		json_writer_boolean(out, "adds_key", true);
	if (value && effect->near[0])
		json_writer_text(out, "near_key", effect->near);
	if (replaced)
		json_writer_number(out,
			effect->present == NODE_MAP ? "replaced_keys" : "replaced_items", replaced);
}

/* Answers a change with the current version, but for its generation. effect: of an override; ended:
 * members about what the change ended; else NULL. */
static void reply_generation(struct httpd_request *r, int status, struct config *config,
	uint64_t generation, const struct inspect_effect *effect, const struct buffer *ended)
{
	struct config_status s;
	struct buffer b;

	config_status(config, &s);
	buffer_init(&b, 1u << 20);
	json_writer_begin_object(&b, NULL);
	json_writer_boolean(&b, "ok", true);
	json_writer_text(&b, "name", config_name(config));
	json_writer_number(&b, "generation", generation);
	json_writer_text(&b, "origin", s.version->origin);
	if (is_rollback(r)) {
		write_overridden_keys(&s, &b);
		explain_forward(config, &b);
	}
	if (effect)
		write_override_effect(r, effect, &b);
	if (ended && ended->len) {
		buffer_append(&b, ",", 1);
		buffer_append(&b, ended->data, ended->len);
	}
	json_writer_end_object(&b);
	reply_json(r, status, &b);
}

/* Answers a change with the current version. */
static void reply_current(struct httpd_request *r, int status, struct config *config,
	const struct inspect_effect *effect)
{
	struct config_status s;

	config_status(config, &s);
	reply_generation(r, status, config, s.version->generation, effect, NULL);
}

static void waited_change_ended(void *arg, struct config *config)
{
	struct waiting *w = arg;
	struct httpd_request *r = w->request;
	const char *error = config_change_error(config);
	struct inspect_effect effect = w->effect;

	waiting_end(w);
	if (error)
		reply_error(r, 409, error);
	else
		reply_current(r, 200, config, &effect);
}

static void wait_timed_out(void *arg)
{
	struct waiting *w = arg;
	struct httpd_request *r = w->request;

	waiting_end(w);
	reply_error(r, 504, "timed out: the request continues");
}

/* The same for a wait for a version. */
static void version_timed_out(void *arg)
{
	struct waiting *w = arg;
	struct httpd_request *r = w->request;
	const char *version = query_text(r, "version"), *generation = query_text(r, "generation");
	struct config_status s;
	char why[256], span[24], now[64] = "nothing is published yet";

	config_status(w->config, &s);
	if (s.version->generation)
		snprintf(now, sizeof(now), "generation %" PRIu64 " is current",
			s.version->generation);
	snprintf(why, sizeof(why), "%s %.64s was not published within %s; %s",
		version[0] ? "version" : "generation", version[0] ? version : generation,
		settings_duration_text(w->limit_ms, span), now);
	waiting_end(w);
	reply_error(r, 504, why);
}

static void waiter_gone(void *arg)
{
	waiting_end(arg);
}

/* A free place to wait in, if the user's share has one. */
static struct waiting *find_waiting(struct control *c, const struct peer *peer)
{
	struct share_held held = {0};
	struct waiting *found = NULL;

	for (size_t i = 0; i < CONTROL_MAX_WAITING; i++) {
		struct waiting *w = &c->waiting[i];

		if (w->request)
			share_add(&held, peer, &w->peer, 1);
		else if (!found)
			found = w;
	}
	return share_check(CONTROL_MAX_WAITING, peer, &held, 1) == SHARE_ROOM ? found : NULL;
}

/* Keeps the client waiting; the caller registers the waiter with config_wait*(). NULL, and
 * answered: not possible. */
static struct waiting *waiting_begin(struct control *c, struct httpd_request *r,
	struct config *config, void (*ended)(void *arg, struct config *c),
	void (*passed)(void *arg))
{
	struct waiting *w;
	struct peer peer;
	uint64_t timeout_ms;

	if (!query_number(r, "timeout_ms", WAIT_MS, &timeout_ms))
		return NULL;
	httpd_peer(r, &peer);
	w = find_waiting(c, &peer);
	if (!w) {
		share_refused(c, &peer);
		reply_error(r, 503, "too many clients wait already: try again, or without waiting");
		return NULL;
	}
	if (timeout_ms > MAX_WAIT_MS)
		timeout_ms = MAX_WAIT_MS;
	*w = (struct waiting){.control = c, .request = r, .peer = peer, .config = config};
	w->waiter.ended = ended;
	w->waiter.arg = w;
	w->limit_ms = timeout_ms;
	loop_timer_init(&w->limit, passed, w);
	loop_timer_set(c->env->loop, &w->limit, loop_now_ms(c->env->loop) + timeout_ms);
	httpd_on_gone(r, waiter_gone, w);
	return w;
}

/* ---- waiting for a version ---- */

static bool version_is_current(const struct waiting *w)
{
	uint64_t generation = strtoull(query_text(w->request, "generation"), NULL, 10);

	return config_has_published(w->config, generation, query_text(w->request, "version"));
}

static void version_checked(void *arg, struct config *config)
{
	struct waiting *w = arg;
	struct httpd_request *r = w->request;

	if (!version_is_current(w)) {
		config_wait_any(config, &w->waiter);
		return;
	}
	waiting_end(w);
	reply_current(r, 200, config, NULL);
}

static void get_wait(struct control *c, struct httpd_request *r, struct config *config)
{
	struct waiting *w;
	uint64_t generation;

	if (!query_number(r, "generation", 0, &generation))
		return;
	if (generation == 0 && !query_text(r, "version")[0]) {
		reply_error(r, 400, "generation=N or version=V is missing");
		return;
	}
	w = waiting_begin(c, r, config, version_checked, version_timed_out);
	if (w)
		version_checked(w, config);
}

/* ---- POST ---- */

#define WHO USER_TEXT

/* The client, for the log and the history. */
static const char *describe_client(const struct httpd_request *r, char text[WHO])
{
	struct peer peer;

	httpd_peer(r, &peer);
	if (peer.local)
		user_describe(&sys_real, peer.uid, text);
	else
		snprintf(text, WHO, "somebody");
	return text;
}

/* True, and answered: the config is suspended, which a forced pull does not undo. */
static bool deny_suspended(struct httpd_request *r, struct config *config)
{
	struct config_status s;
	char why[FILE_WHY];

	if (!config_suspended(config))
		return false;
	config_status(config, &s);
	snprintf(why, sizeof(why), "%s is suspended by %s%s%s: `pullet resume %s` ends that",
		s.settings->name, s.suspension->by, s.suspension->reason[0] ? ": " : "",
		s.suspension->reason, s.settings->name);
	reply_error(r, 409, why);
	return true;
}

static void post_refresh(struct control *c, struct httpd_request *r, struct config *config)
{
	bool forced = query_is_set(r, "force", false);
	struct waiting *w;
	char by[WHO];

	if (deny_suspended(r, config))
		return;
	describe_client(r, by);
	if (forced)
		log_info("forced pull requested", "config", config_name(config), "by", by);
	if (query_is_set(r, "forget_rev", false) && config_forget_revs(config))
		log_warn("the revs of signatures are forgotten: the next one is accepted", "config",
			config_name(config), "by", by);
	if (query_is_set(r, "wait", false)) {
		w = waiting_begin(c, r, config, waited_run_ended, wait_timed_out);
		if (!w)
			return;
		config_wait(config, &w->waiter);
	} else {
		httpd_reply(r, 202, "application/json", "{\"fired\":true}\n", 15);
	}
	config_note_order(config, CAUSE_OPERATOR, by);
	config_refresh(config, forced);
}

static int request_rollback(struct config *config, const struct answer *a, char why[FILE_WHY])
{
	char by[WHO];

	return config_roll_back(config, a->number, describe_client(a->request, by),
		query_text(a->request, "reason"), why);
}

static int request_override(struct config *config, const struct answer *a, char why[FILE_WHY])
{
	const char *value = httpd_query(a->request, "value");
	char by[WHO];

	if (query_is_set(a->request, "remove", false))
		return config_drop_override(config, a->key, describe_client(a->request, by), why);
	if (value)
		return config_override(config, a->key, value, a->number,
			describe_client(a->request, by), query_text(a->request, "reason"), why);
	snprintf(why, FILE_WHY, "an override needs a value, or remove=1");
	return -EINVAL;
}

static void check_rollback(struct answer *a)
{
	a->error = inspect_rollback(&a->seen, &a->number, a->why);
}

static void check_override(struct answer *a)
{
	a->error = inspect_override(&a->seen, a->key, &a->effect, a->why);
}

/* Requests a change that was checked, and answers when it has ended. */
static void request_change(struct control *c, struct config *config, const struct answer *a)
{
	struct httpd_request *r = a->request;
	bool waits = query_is_set(r, "wait", true);
	struct waiting *w = NULL;
	char why[FILE_WHY];
	int e;

	if (waits) {
		w = waiting_begin(c, r, config, waited_change_ended, wait_timed_out);
		if (!w)
			return;
		w->effect = a->effect;
		config_wait_change(config, &w->waiter);
	}
	/* may answer, and free r */
	e = a->compute == check_rollback ? request_rollback(config, a, why)
					 : request_override(config, a, why);
	if (e && w)
		waiting_end(w);
	if (e)
		reply_errno(r, e, why);
	else if (!waits && config_change_error(config)) /* already */
		reply_error(r, 409, config_change_error(config));
	else if (!waits)
		reply_current(r, 202, config, &a->effect);
}

static void start_change(
	struct control *c, struct httpd_request *r, struct config *config, struct answer *a);

static void change_checked(struct answer *a)
{
	struct config *config = a->seen.config;
	struct control *c = a->arg;
	int e = a->error ? a->error : inspect_unchanged(&a->seen, a->why);
	struct answer again = {.compute = a->compute,
		.reply = a->reply,
		.arg = c,
		.from = a->from,
		.number = a->from,
		.tries = a->tries + 1};

	if (e == -EAGAIN && a->tries < MAX_TRIES) {
		again.key = strdup(query_text(a->request, "key"));
		start_change(c, a->request, config, &again);
	} else if (e) {
		reply_errno(a->request, e, a->why);
	} else {
		request_change(c, config, a);
	}
}

/* Checks whether the change is possible. */
static void start_change(
	struct control *c, struct httpd_request *r, struct config *config, struct answer *a)
{
	char why[FILE_WHY];
	int e = a->key ? config_check_change(config, query_text(r, "reason"), why) : -ENOMEM;

	a->arg = c;
	a->reply = change_checked;
	if (e == 0) {
		begin_slow_answer(c, r, config, a);
		return;
	}
	free(a->key);
	reply_errno(r, e, e == -ENOMEM ? "out of memory" : why);
}

/* False, and answered: one of them is not a number. */
static bool numbers_of_change(struct httpd_request *r, const char *name, struct answer *ret)
{
	uint64_t timeout_ms; /* waiting_begin() reads it, when it is too late for a sentence */

	return query_number(r, name, 0, &ret->number) &&
	       query_number(r, "timeout_ms", 0, &timeout_ms);
}

static void post_rollback(struct control *c, struct httpd_request *r, struct config *config)
{
	struct answer a = {.compute = check_rollback, .key = strdup("")};

	if (!numbers_of_change(r, "generation", &a)) {
		free(a.key);
		return;
	}
	a.from = a.number;
	start_change(c, r, config, &a);
}

static void post_override(struct control *c, struct httpd_request *r, struct config *config)
{
	struct answer a = {.compute = check_override, .key = strdup(query_text(r, "key"))};

	if (!numbers_of_change(r, "for_ms", &a)) {
		free(a.key);
		return;
	}
	a.from = a.number;
	if (a.key && query_is_set(r, "remove", false)) { /* whatever is published */
		a.request = r;
		request_change(c, config, &a);
		free(a.key);
		return;
	}
	start_change(c, r, config, &a);
}

/* Answers clients that wait for a pull of a config that was suspended. */
static void end_pull_waits(struct control *c, struct config *config)
{
	for (size_t i = 0; i < CONTROL_MAX_WAITING; i++) {
		struct waiting *w = &c->waiting[i];
		struct httpd_request *r = w->request;

		if (!r || w->config != config || w->waiter.ended != waited_run_ended)
			continue;
		waiting_end(w);
		deny_suspended(r, config);
	}
}

/* Updates the receipt of this host. */
static void notify_report(const struct control *c, const struct config *config)
{
	for (size_t i = 0; *c->env->report && i < c->env->settings->config_count; i++)
		if (c->env->configs[i] == config)
			report_changed(*c->env->report, i);
}

/* Done, maybe not saved. */
static bool is_decided(int error)
{
	return error == 0 || error == -EIO;
}

/* What a decision is about to replace or to end: for its answer, which frees it. */
static void keep_ended(struct config *config, bool pin, struct buffer *ret_ended)
{
	struct config_status s;

	config_status(config, &s);
	buffer_init(ret_ended, 4096);
	status_decision("ended", pin ? s.pin : s.suspension, ret_ended);
}

/* Answers what an operator decided: 0, or -errno with why. Frees ended. True: it holds. */
static bool reply_decision(struct httpd_request *r, struct config *config, uint64_t generation,
	int error, const char *why, struct buffer *ended)
{
	if (error)
		reply_errno(r, error, why);
	else
		reply_generation(r, 200, config, generation, NULL, ended);
	buffer_fini(ended);
	return is_decided(error);
}

static uint64_t current_generation(struct config *config)
{
	struct config_status s;

	config_status(config, &s);
	return s.version->generation;
}

static void note_decision(
	struct config *config, int error, const char *what, const char *by, const char *reason)
{
	if (is_decided(error))
		config_note_decision(config, what, by, reason);
}

static void post_pin(struct control *c, struct httpd_request *r, struct config *config)
{
	char by[WHO], why[FILE_WHY];
	struct buffer ended;
	uint64_t for_ms;
	int error;

	(void)c;
	if (!query_number(r, "for_ms", 0, &for_ms))
		return;
	keep_ended(config, true, &ended);
	error = config_pin(config, for_ms, describe_client(r, by), query_text(r, "reason"), why);
	note_decision(config, error, "pinned", by, query_text(r, "reason"));
	reply_decision(r, config, config_pinned_generation(config), error, why, &ended);
}

static void post_unpin(struct control *c, struct httpd_request *r, struct config *config)
{
	char by[WHO], why[FILE_WHY];
	struct buffer ended;
	int error;

	(void)c;
	keep_ended(config, true, &ended);
	error = config_unpin(config, describe_client(r, by), why);
	note_decision(config, error, "unpinned", by, "");
	reply_decision(r, config, current_generation(config), error, why, &ended);
}

static void post_suspend(struct control *c, struct httpd_request *r, struct config *config)
{
	const char *reason = query_text(r, "reason");
	char by[WHO], why[FILE_WHY];
	struct buffer ended;
	uint64_t for_ms;
	int error;

	if (!query_number(r, "for_ms", 0, &for_ms))
		return;
	keep_ended(config, false, &ended);
	error = config_suspend(config, for_ms, describe_client(r, by), reason, why);
	note_decision(config, error, "suspended", by, reason);
	if (!reply_decision(r, config, current_generation(config), error, why, &ended))
		return;
	end_pull_waits(c, config);
	notify_report(c, config);
}

static void post_resume(struct control *c, struct httpd_request *r, struct config *config)
{
	char by[WHO], why[FILE_WHY];
	struct buffer ended;
	int error;

	keep_ended(config, false, &ended);
	error = config_resume(config, describe_client(r, by), why);
	note_decision(config, error, "resumed", by, "");
	if (reply_decision(r, config, current_generation(config), error, why, &ended))
		notify_report(c, config);
}

/* ---- the table ---- */

#define CONFIGS "/v1/configs/"
#define ANY                                                                                        \
	{                                                                                          \
		"*"                                                                                \
	} /* browsers, probes and scrapers may add parameters */

static const struct route {
	enum httpd_method method;
	const char *before, *after; /* around the config's name; after NULL: no name */
	void (*handle)(struct control *c, struct httpd_request *r, struct config *config);
	enum right right;    /* required; the handler decides how much is shown */
	bool local;          /* not on the TCP listener: expensive, or waits */
	const char *keys[8]; /* of the query */
} routes[] = {
	{HTTPD_GET, "/", NULL, get_page, RIGHT_READ, false, ANY},
	{HTTPD_GET, "/page.css", NULL, get_page, RIGHT_READ, false, ANY},
	{HTTPD_GET, "/page.js", NULL, get_page, RIGHT_READ, false, ANY},
	{HTTPD_GET, "/detail.js", NULL, get_page, RIGHT_READ, false, ANY},
	{HTTPD_GET, "/v1/status", NULL, get_status, RIGHT_READ, false, {NULL}},
	{HTTPD_GET, "/v1/changes", NULL, get_changes, RIGHT_READ, false, {NULL}},
	{HTTPD_GET, "/livez", NULL, get_livez, RIGHT_READ, false, ANY},
	{HTTPD_GET, "/healthz", NULL, get_livez, RIGHT_READ, false, ANY},
	{HTTPD_GET, "/metrics", NULL, get_metrics, RIGHT_READ, false, ANY},
	{HTTPD_GET, "/readyz", NULL, get_readyz, RIGHT_READ, false, ANY},
	{HTTPD_GET, CONFIGS, "", get_config, RIGHT_READ, false, {NULL}},
	{HTTPD_GET, CONFIGS, "/history", get_history, RIGHT_READ, false, {NULL}},
	{HTTPD_GET, CONFIGS, "/events", get_events, RIGHT_READ, false, {NULL}},
	{HTTPD_GET, CONFIGS, "/wait", get_wait, RIGHT_READ, true,
		{"generation", "version", "timeout_ms"}},
	{HTTPD_GET, CONFIGS, "/diff", get_diff, RIGHT_READ, true, {"from", "to", "held"}},
	{HTTPD_GET, CONFIGS, "/explain", get_explain, RIGHT_READ, true, {"key"}},
	{HTTPD_POST, CONFIGS, "/refresh", post_refresh, RIGHT_OPERATE, true,
		{"force", "forget_rev", "wait", "timeout_ms"}},
	{HTTPD_POST, CONFIGS, "/rollback", post_rollback, RIGHT_OPERATE, true,
		{"generation", "reason", "wait", "timeout_ms"}},
	{HTTPD_POST, CONFIGS, "/pin", post_pin, RIGHT_OPERATE, true, {"for_ms", "reason"}},
	{HTTPD_POST, CONFIGS, "/unpin", post_unpin, RIGHT_OPERATE, true, {NULL}},
	{HTTPD_POST, CONFIGS, "/suspend", post_suspend, RIGHT_OPERATE, true, {"for_ms", "reason"}},
	{HTTPD_POST, CONFIGS, "/resume", post_resume, RIGHT_OPERATE, true, {NULL}},
	{HTTPD_POST, CONFIGS, "/override", post_override, RIGHT_OPERATE, true,
		{"key", "value", "for_ms", "remove", "reason", "wait", "timeout_ms"}},
};

/* Does path match the route? Copies the config's name, if any. */
static bool route_matches(const struct route *route, const char *path, char name[128])
{
	size_t before = strlen(route->before), len = strlen(path), after;

	if (!route->after)
		return strcmp(path, route->before) == 0;
	after = strlen(route->after);
	if (len <= before + after || len - before - after >= 128 ||
		strncmp(path, route->before, before) != 0 ||
		strcmp(path + len - after, route->after) != 0)
		return false;
	memcpy(name, path + before, len - before - after);
	name[len - before - after] = '\0';
	return !strchr(name, '/');
}

static bool route_takes(const struct route *route, const char *key)
{
	for (size_t i = 0; route->keys[i]; i++)
		if (strcmp(route->keys[i], key) == 0)
			return true;
	return false;
}

/* False, and answered: an unknown parameter, or a switch that is not 0 or 1. */
static bool check_query(const struct route *route, struct httpd_request *r)
{
	static const char *const switches[] = {"force", "forget_rev", "wait", "remove", "held"};
	const char *key;
	char why[128];

	for (size_t i = 0; !route_takes(route, "*") && (key = httpd_query_name(r, i)); i++)
		if (!route_takes(route, key)) {
			snprintf(why, sizeof(why), "no parameter here is called %.64s", key);
			reply_error(r, 400, why);
			return false;
		}
	for (size_t i = 0; i < sizeof(switches) / sizeof(switches[0]); i++) {
		const char *value = httpd_query(r, switches[i]);

		if (!value || strcmp(value, "0") == 0 || strcmp(value, "1") == 0)
			continue;
		snprintf(why, sizeof(why), "%s takes 0 or 1", switches[i]);
		reply_error(r, 400, why);
		return false;
	}
	return true;
}

/* Browsers send these from foreign pages; the status page changes nothing. */
static bool is_browser(const struct httpd_request *r)
{
	return httpd_header(r, "Origin") || httpd_header(r, "Sec-Fetch-Site");
}

/* Browsers must not cache, sniff, frame or leak answers. */
static void add_page_headers(struct httpd_request *r)
{
	static const struct {
		const char *name, *value;
	} headers[] = {
		{"Cache-Control", "no-store"},
		{"Content-Security-Policy", PAGE_POLICY},
		{"Cross-Origin-Resource-Policy", "same-origin"},
		{"Referrer-Policy", "no-referrer"},
		{"X-Content-Type-Options", "nosniff"},
		{"X-Frame-Options", "DENY"},
	};

	for (size_t i = 0; i < sizeof(headers) / sizeof(headers[0]); i++)
		httpd_add_header(r, headers[i].name, headers[i].value);
}

static bool is_own_host(const struct control *c, const struct httpd_request *r)
{
	return host_header_is_this_machines(
		httpd_header(r, "Host"), c->env->settings->listen_names);
}

/* Answers and logs that the user is not allowed, and how that is configured. */
static void deny_right(struct control *c, struct httpd_request *r, const char *name)
{
	char by[WHO], why[FILE_WHY];

	describe_client(r, by);
	snprintf(why, sizeof(why),
		"%s may only read: root, the agent's user and members of the group that "
		"agent: {operators: GROUP} names may change something",
		by);
	c->env->counts->denied++;
	if (log_limit_pass(&c->denied, loop_now_ms(c->env->loop), by, &(unsigned){0}))
		log_warn("a request for a change was denied", "config", name, "by", by, "request",
			strrchr(httpd_path(r), '/') + 1);
	reply_error(r, 403, why);
}

/* True, and answered: not on this listener, or not allowed. */
static bool deny_request(
	struct control *c, const struct route *route, struct httpd_request *r, const char *name)
{
	bool changes = route->method == HTTPD_POST;
	struct peer peer;

	if (route->local && httpd_is_tcp(r)) {
		c->env->counts->denied += changes;
		reply_error(r, 403,
			changes ? "this listener is read-only: use the control socket"
				: "this is on the control socket only: use that one");
		return true;
	}
	if (changes && is_browser(r)) {
		reply_error(r, 403, "a browser may only read: use the command line");
		return true;
	}
	httpd_peer(r, &peer);
	if (peer.right >= route->right)
		return false;
	deny_right(c, r, name);
	return true;
}

/* The route of the request; NULL: none, and *ret_allow lists the methods of that path, if any. */
static const struct route *find_route(
	const struct httpd_request *r, char name[128], const char **ret_allow)
{
	enum httpd_method method = httpd_method(r) == HTTPD_HEAD ? HTTPD_GET : httpd_method(r);

	*ret_allow = NULL;
	for (size_t i = 0; i < sizeof(routes) / sizeof(routes[0]); i++) {
		if (!route_matches(&routes[i], httpd_path(r), name))
			continue;
		*ret_allow = routes[i].method == HTTPD_GET ? "GET, HEAD" : "POST";
		if (routes[i].method == method)
			return &routes[i];
	}
	return NULL;
}

static void dispatch_request(void *arg, struct httpd_request *r)
{
	const struct route *route;
	struct config *config;
	const char *allow;
	struct control *c = arg;
	char name[128] = "";

	add_page_headers(r);
	if (!is_own_host(c, r)) {
		reply_error(r, 421,
			"this host does not have the requested name: use its address, or "
			"list the name in agent.listen_names");
		return;
	}
	route = find_route(r, name, &allow);
	if (route) {
		if (deny_request(c, route, r, name))
			return;
		config = route->after ? find_named_config(c, name) : NULL;
		if (route->after && !config)
			reply_error(r, 404,
				"there is no config of that name: `pullet status` lists them");
		else if (check_query(route, r))
			route->handle(c, r, config);
		return;
	}
	if (!allow) {
		reply_error(r, 404, "there is nothing at this path: see pulletd(8)");
		return;
	}
	httpd_add_header(r, "Allow", allow);
	reply_error(r, 405, "this path does not take that method");
}

int control_listen(struct control *c, const char *address, char why[FILE_WHY])
{
	return control_socket_listen(c->socket, address, why);
}

void control_operators(struct control *c, gid_t operators)
{
	control_socket_operators(c->socket, operators);
}

void control_check(struct control *c)
{
	control_socket_check(c->socket);
}

int control_start(const struct control_env *env, struct control **ret_control, char why[FILE_WHY])
{
	struct control *c = calloc(1, sizeof(*c));
	int r = -ENOMEM;

	snprintf(why, FILE_WHY, "out of memory");
	if (!c)
		return r;
	c->env = env;
	c->changes = changes_new();
	if (!c->changes)
		goto fail;
	r = control_socket_open(env->loop, env->drift, env->settings->runtime_dir, dispatch_request,
		c, &c->socket, why);
	if (r)
		goto fail;
	control_socket_limit(c->socket, 2 * CONTROL_MAX_WAITING, HTTPD_QUEUED);
	control_socket_share(c->socket, share_refused, c);
	control_socket_operators(c->socket, env->settings->operators);
	r = control_socket_listen(c->socket, env->settings->listen, why);
	if (r)
		goto fail;
	*ret_control = c;
	return 0;
fail:
	control_stop(c);
	return r;
}

void control_forget(struct control *c, const struct config *config, bool gone)
{
	for (size_t i = 0; i < CONTROL_MAX_WAITING; i++) {
		struct waiting *w = &c->waiting[i];
		struct httpd_request *r = w->request;

		if (!r || w->config != config)
			continue;
		waiting_end(w);
		reply_error(r, gone ? 404 : 409,
			gone ? "the config was removed from the configuration"
			     : "the config was recreated by a new configuration");
	}
	changes_forget(c->changes, config);
}

void control_stop(struct control *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < CONTROL_MAX_WAITING; i++)
		if (c->waiting[i].request)
			waiting_end(&c->waiting[i]);
	answers_forget(&c->answers);
	control_socket_close(c->socket);
	changes_free(c->changes);
	free(c);
}
