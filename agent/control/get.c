/*
 * The handlers of GET. Answers are written by status.c, events and config/inspect.c.
 *
 * Surprising: /v1/changes compares what was published since, one after the other, before it
 * answers.
 */
#include "control/get.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/changes.h"
#include "config/events.h"
#include "config/explain.h"
#include "config/inspect.h"
#include "control/handler.h"
#include "control/metrics.h"
#include "control/outcome.h"
#include "control/page/page.h"
#include "control/query.h"
#include "control/reply.h"
#include "control/status.h"
#include "settings/value.h"
#include "text/exposition.h"

void get_status(struct control *c, struct httpd_request *r, struct config *config)
{
	struct buffer b;
	int e;

	(void)config;
	buffer_init(&b, REPLY_MAX);
	e = status_agent(c->env, reply_audience(r), &b);
	if (e) {
		buffer_fini(&b);
		reply_error(r, 500, strerror(-e));
		return;
	}
	reply_json(r, 200, &b);
}

void get_config(struct control *c, struct httpd_request *r, struct config *config)
{
	struct buffer b;

	(void)c;
	buffer_init(&b, REPLY_MAX);
	status_config(config, reply_audience(r), &b);
	reply_json(r, 200, &b);
}

void get_events(struct control *c, struct httpd_request *r, struct config *config)
{
	struct buffer b;

	(void)c;
	buffer_init(&b, REPLY_MAX);
	events_write(config, reply_audience(r), &b);
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

static void compute_history(struct answer *a)
{
	a->error = inspect_history(&a->seen, a->audience, &a->out, a->why);
}

void get_history(struct control *c, struct httpd_request *r, struct config *config)
{
	handler_begin_answer(
		c, r, config, &(struct answer){.compute = compute_history, .reply = reply_answer});
}

static void compute_diff(struct answer *a)
{
	a->error = inspect_diff(
		&a->seen, a->from, a->to, a->audience == AUDIENCE_OPERATOR, &a->out, a->why);
}

void get_diff(struct control *c, struct httpd_request *r, struct config *config)
{
	struct answer a = {.compute = compute_diff, .reply = reply_answer};

	a.held = query_is_set(r, "held", false);
	if (a.held && httpd_query(r, "to"))
		reply_error(r, 400, "held=1 says what it compares with: it takes no to=N");
	else if (query_number(r, "from", 0, &a.from) && query_number(r, "to", 0, &a.to))
		handler_begin_answer(c, r, config, &a);
}

static void compute_explanation(struct answer *a)
{
	a->error = inspect_explain(
		&a->seen, a->key ? a->key : "", a->audience == AUDIENCE_OPERATOR, &a->out, a->why);
}

/* Without a key: why the current version is current. */
void get_explain(struct control *c, struct httpd_request *r, struct config *config)
{
	struct buffer b;

	if (!httpd_query(r, "key")) {
		buffer_init(&b, REPLY_MAX);
		explain_config(config, reply_audience(r), &b);
		reply_json(r, 200, &b);
		return;
	}
	handler_begin_answer(c, r, config,
		&(struct answer){.compute = compute_explanation,
			.reply = reply_answer,
			.key = strdup(query_text(r, "key"))});
}

/* ---- the last publications ---- */

static void reply_changes(struct control *c, struct httpd_request *r)
{
	struct buffer b;
	int e;

	buffer_init(&b, REPLY_MAX);
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

void get_changes(struct control *c, struct httpd_request *r, struct config *config)
{
	(void)config;
	answer_changes(c, r, 0);
}

/* ---- the page, and what programs ask ---- */

void get_page(struct control *c, struct httpd_request *r, struct config *config)
{
	const struct page *p = page_find(httpd_path(r));

	(void)c, (void)config;
	httpd_reply(r, 200, p->type, p->data, (size_t)(p->end - p->data));
}

void get_livez(struct control *c, struct httpd_request *r, struct config *config)
{
	(void)c, (void)config;
	httpd_reply(r, 200, "text/plain; charset=utf-8", "ok\n", 3);
}

/* Every config has a published version, from the network or from the last known good. */
void get_readyz(struct control *c, struct httpd_request *r, struct config *config)
{
	struct buffer b;
	bool ready;

	(void)config;
	buffer_init(&b, REPLY_MAX);
	ready = status_ready(c->env, httpd_query(r, "verbose") != NULL, reply_audience(r), &b);
	httpd_reply(r, ready ? 200 : 503, "text/plain; charset=utf-8", b.data ? b.data : "", b.len);
	buffer_fini(&b);
}

/* In the text format 0.0.4, unless the scraper asks for OpenMetrics. */
void get_metrics(struct control *c, struct httpd_request *r, struct config *config)
{
	bool open = exposition_is_open(httpd_header(r, "Accept"));
	struct buffer b;
	int e;

	(void)config;
	buffer_init(&b, REPLY_MAX);
	e = metrics_write(c->env, open, &b);
	if (e)
		reply_error(r, 500, strerror(-e));
	else
		httpd_reply(r, 200, exposition_type(open), b.data, b.len);
	buffer_fini(&b);
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
	outcome_reply_current(r, 200, config, NULL);
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

void get_wait(struct control *c, struct httpd_request *r, struct config *config)
{
	struct waiting *w;
	uint64_t generation;

	if (!query_number(r, "generation", 0, &generation))
		return;
	if (generation == 0 && !query_text(r, "version")[0]) {
		reply_error(r, 400, "generation=N or version=V is missing");
		return;
	}
	w = waiting_begin(&c->room, r, config, version_checked, version_timed_out);
	if (w)
		version_checked(w, config);
}
