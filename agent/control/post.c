/*
 * The handlers of POST: what operators ask for. Changes are made by config/operations.c.
 *
 * Surprising: a request that waits stays open until the run or change that it caused has ended. If
 * the client disconnects before, only the waiting ends.
 */
#include "control/post.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "config/inspect.h"
#include "control/handler.h"
#include "control/outcome.h"
#include "control/query.h"
#include "control/reply.h"
#include "control/status.h"

#define MAX_TRIES 3 /* of a change, while other versions are published */

/* ---- pulls ---- */

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

static void waited_run_ended(void *arg, struct config *config)
{
	struct waiting *w = arg;
	struct httpd_request *r = w->request;
	struct buffer b;

	waiting_end(w);
	buffer_init(&b, 8192);
	status_outcome(config, reply_audience(r), &b);
	reply_json(r, 200, &b);
}

void post_refresh(struct control *c, struct httpd_request *r, struct config *config)
{
	bool forced = query_is_set(r, "force", false);
	struct waiting *w;
	char by[QUERY_CLIENT];

	if (deny_suspended(r, config))
		return;
	query_client(r, by);
	if (forced)
		log_info("forced pull requested", "config", config_name(config), "by", by);
	if (query_is_set(r, "forget_rev", false) && config_forget_revs(config))
		log_warn("the revs of signatures are forgotten: the next one is accepted", "config",
			config_name(config), "by", by);
	if (query_is_set(r, "wait", false)) {
		w = waiting_begin(&c->room, r, config, waited_run_ended, waiting_timed_out);
		if (!w)
			return;
		config_wait(config, &w->waiter);
	} else {
		httpd_reply(r, 202, "application/json", "{\"fired\":true}\n", 15);
	}
	config_note_order(config, CAUSE_OPERATOR, by);
	config_refresh(config, forced);
}

/* ---- changes of the published version ---- */

static int request_rollback(struct config *config, const struct answer *a, char why[FILE_WHY])
{
	char by[QUERY_CLIENT];

	return config_roll_back(config, a->number, query_client(a->request, by),
		query_text(a->request, "reason"), why);
}

static int request_override(struct config *config, const struct answer *a, char why[FILE_WHY])
{
	const char *value = httpd_query(a->request, "value");
	char by[QUERY_CLIENT];

	if (query_is_set(a->request, "remove", false))
		return config_drop_override(config, a->key, query_client(a->request, by), why);
	if (value)
		return config_override(config, a->key, value, a->number,
			query_client(a->request, by), query_text(a->request, "reason"), why);
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
		outcome_reply_current(r, 200, config, &effect);
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
		w = waiting_begin(&c->room, r, config, waited_change_ended, waiting_timed_out);
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
		outcome_reply_current(r, 202, config, &a->effect);
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
		handler_begin_answer(c, r, config, a);
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

void post_rollback(struct control *c, struct httpd_request *r, struct config *config)
{
	struct answer a = {.compute = check_rollback, .key = strdup("")};

	if (!numbers_of_change(r, "generation", &a)) {
		free(a.key);
		return;
	}
	a.from = a.number;
	start_change(c, r, config, &a);
}

void post_override(struct control *c, struct httpd_request *r, struct config *config)
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

/* ---- decisions ---- */

/* Answers clients that wait for a pull of a config that was suspended. */
static void end_pull_waits(struct control *c, struct config *config)
{
	for (size_t i = 0; i < WAITING_MAX; i++) {
		struct waiting *w = &c->room.places[i];
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
		outcome_reply_generation(r, 200, config, generation, NULL, ended);
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

void post_pin(struct control *c, struct httpd_request *r, struct config *config)
{
	char by[QUERY_CLIENT], why[FILE_WHY];
	struct buffer ended;
	uint64_t for_ms;
	int error;

	(void)c;
	if (!query_number(r, "for_ms", 0, &for_ms))
		return;
	keep_ended(config, true, &ended);
	error = config_pin(config, for_ms, query_client(r, by), query_text(r, "reason"), why);
	note_decision(config, error, "pinned", by, query_text(r, "reason"));
	reply_decision(r, config, config_pinned_generation(config), error, why, &ended);
}

void post_unpin(struct control *c, struct httpd_request *r, struct config *config)
{
	char by[QUERY_CLIENT], why[FILE_WHY];
	struct buffer ended;
	int error;

	(void)c;
	keep_ended(config, true, &ended);
	error = config_unpin(config, query_client(r, by), why);
	note_decision(config, error, "unpinned", by, "");
	reply_decision(r, config, current_generation(config), error, why, &ended);
}

void post_suspend(struct control *c, struct httpd_request *r, struct config *config)
{
	const char *reason = query_text(r, "reason");
	char by[QUERY_CLIENT], why[FILE_WHY];
	struct buffer ended;
	uint64_t for_ms;
	int error;

	if (!query_number(r, "for_ms", 0, &for_ms))
		return;
	keep_ended(config, false, &ended);
	error = config_suspend(config, for_ms, query_client(r, by), reason, why);
	note_decision(config, error, "suspended", by, reason);
	if (!reply_decision(r, config, current_generation(config), error, why, &ended))
		return;
	end_pull_waits(c, config);
	notify_report(c, config);
}

void post_resume(struct control *c, struct httpd_request *r, struct config *config)
{
	char by[QUERY_CLIENT], why[FILE_WHY];
	struct buffer ended;
	int error;

	keep_ended(config, false, &ended);
	error = config_resume(config, query_client(r, by), why);
	note_decision(config, error, "resumed", by, "");
	if (reply_decision(r, config, current_generation(config), error, why, &ended))
		notify_report(c, config);
}
