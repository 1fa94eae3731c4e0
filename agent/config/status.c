/*
 * What is said of a config: its failures in the log, its state, age and last error in the status.
 */
#include "config/core.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "text/sentence.h"

#define CLOCK_STEP_MS 1000 /* less is no step of the wall clock, which is also slewed */

/* The last of the slowest pulls has not confirmed it; the time of a suspension does not count. */
uint64_t config_stale_ms(const struct config *c)
{
	uint64_t stale_ms = c->run.supervisor.max_ms + c->settings->timeout_ms,
		 confirmed_ms =
			 c->status.confirmed_ms ? c->status.confirmed_ms : c->status.started_ms;

	if (config_suspended(c))
		return CONFIG_NEVER;
	return stale_ms +
	       (c->status.resumed_ms > confirmed_ms ? c->status.resumed_ms - confirmed_ms : 0);
}

/* Nobody has confirmed the current version for that long, or its signature has expired. */
static bool has_become_stale(const struct config *c)
{
	uint64_t confirmed_ms =
		c->status.confirmed_ms ? c->status.confirmed_ms : c->status.started_ms;

	return (c->current.version.generation && c->current.expires_ms <= c->env->sys->wall_ms()) ||
	       c->env->sys->now_ms() - confirmed_ms > config_stale_ms(c);
}

/* ---- errors ---- */

static const char *error_text(const struct config *c)
{
	return c->status.error ? c->status.error : "";
}

/* Each config logs its own failure once; a lasting one is repeated by one config for all. */
static bool may_log_failure(
	struct config *c, const char *what, const char *why, unsigned *ret_suppressed)
{
	struct log_limit *limit = c->status.log_limit;
	uint64_t now_ms = c->env->sys->now_ms();
	unsigned others;
	bool goes_on;

	*ret_suppressed = 0;
	if (!limit)
		limit = c->status.log_limit = calloc(1, sizeof(*limit));
	if (!limit) /* out of memory: a line too many */
		return true;
	goes_on = log_limit_told(limit, what, why);
	if (!log_limit_pass_kind(limit, now_ms, what, why, ret_suppressed))
		return false;
	if (!goes_on || !c->env->goes_on ||
		log_limit_pass_kind(c->env->goes_on, now_ms, what, why, &others))
		return true;
	limit->suppressed = *ret_suppressed + 1;
	return false;
}

static const char *without_current(
	const char *what, const char *instead, char *ret_text, size_t size)
{
	static const char stays[] = ": keeping the current version";
	const char *at = strstr(what, stays);

	if (!at)
		return what;
	snprintf(ret_text, size, "%.*s%s%s", (int)(at - what), what, instead,
		at + sizeof(stays) - 1);
	return ret_text;
}

static enum kind_cause cause_of_error(const struct config *c)
{
	if (!c->status.error)
		return KIND_CAUSE_NONE;
	return c->run.cause == KIND_CAUSE_NONE && c->status.failed_here ? KIND_CAUSE_HOST
									: c->run.cause;
}

/* It is the verdict about the servers' version, which is an event of its own. */
static bool is_verdict(const struct config *c, const char *why)
{
	const struct version *latest = latest_version(c);
	const struct ledger_verdict *v = latest ? decisions_find_verdict(c, latest->sha256) : NULL;

	return v && strcmp(v->why, why) == 0;
}

void status_forget_outage(struct config *c)
{
	if (c->status.outage)
		outage_forget(c->status.outage);
	c->status.outage = NULL;
}

/* Takes the config out of the outage that it is a part of. True: its recovery is said there. */
static bool leave_outage(struct config *c)
{
	struct outage *o = c->status.outage;

	c->status.outage = NULL;
	return o && outage_leave(o, c->env->sys->now_ms());
}

/* The same for a config that fails with others, for the sake of their server: a line for all. */
static bool may_log_outage(struct config *c, struct outage *o, unsigned *ret_suppressed)
{
	uint64_t now_ms = c->env->sys->now_ms();

	if (c->status.outage != o) {
		leave_outage(c);
		outage_join(o, now_ms);
		c->status.outage = o;
	}
	return outage_may_log(o, now_ms, ret_suppressed);
}

/* For a failure that is a part of no outage. */
static bool may_log_own(struct config *c, const char *what, const char *why, unsigned *ret)
{
	leave_outage(c);
	return may_log_failure(c, what, why, ret);
}

void config_report_failure(struct config *c, const char *what, const char *why)
{
	struct outage *o = c->run.outage;
	bool dry = c->env->dry_run; /* which looks at no current version */
	bool verdict = is_verdict(c, why);
	unsigned suppressed;
	char text[160];

	c->run.outage = NULL;
	c->current.repair_failed = false; /* this is said instead */
	if (c->current.version.generation == 0)
		what = without_current(
			what, dry ? "" : ": nothing is published yet", text, sizeof(text));
	free(c->status.error);
	c->status.error = strdup(why[0] ? why : what);
	c->status.error_wall_ms = c->env->sys->wall_ms();
	if (!c->status.failing_wall_ms) {
		c->status.failing_wall_ms = c->status.error_wall_ms;
		c->status.failing_ms = c->env->sys->now_ms();
	}
	if (!verdict)
		events_note(c, EVENT_FAILED, sentence_or_null(kind_cause_name(cause_of_error(c))),
			why[0] ? why : what);
	if (o ? may_log_outage(c, o, &suppressed) : may_log_own(c, what, why, &suppressed))
		log_warn(what, "config", c->settings->name, "why", why, "next_in_ms",
			dry ? NULL : LOG_U64(supervisor_delay(&c->run.supervisor)), "generation",
			dry ? NULL : LOG_U64(c->current.version.generation), "repeated",
			suppressed ? LOG_U64(suppressed) : NULL, "failing_configs",
			outage_configs(o) > 1 ? LOG_U64(o->failing) : NULL, "server_configs",
			outage_configs(o) > 1 ? LOG_U64(outage_configs(o)) : NULL, "stale",
			c->current.version.generation && has_become_stale(c) ? "true" : NULL,
			"version", verdict ? VERSION_TEXT(latest_version(c)) : NULL);
}

/* For the snapshot's readers: a signature's expiry may come sooner. */
uint64_t status_readers_stale_ms(const struct config *c)
{
	uint64_t stale_ms = config_stale_ms(c);
	int64_t left_ms;

	if (c->current.expires_ms == INT64_MAX)
		return stale_ms;
	left_ms = c->current.expires_ms - c->env->sys->wall_ms();
	if (left_ms < 1)
		left_ms = 1;
	return (uint64_t)left_ms < stale_ms ? (uint64_t)left_ms : stale_ms;
}

void status_recover(struct config *c)
{
	if (!leave_outage(c) && c->status.error)
		log_info("recovered", "config", c->settings->name);
	if (c->status.error)
		events_note(c, EVENT_RECOVERED, NULL, NULL);
	free(c->status.log_limit);
	c->status.log_limit = NULL;
	free(c->status.error);
	c->status.error = NULL;
	c->status.failing_wall_ms = 0;
	c->current.repair_failed = false;
}

void status_confirm(struct config *c)
{
	c->status.confirmed_ms = c->env->sys->now_ms();
	c->status.confirmed_wall_ms = c->env->sys->wall_ms();
	if (c->current.image)
		image_confirm(c->current.image, c->status.confirmed_ms, status_readers_stale_ms(c));
	status_recover(c);
}

static bool is_place_there(const struct config *c)
{
	const char *place = settings_place(c->settings);

	if (place)
		return access(place, F_OK) == 0;
	return c->current.image && image_confirmed_ms(c->current.image) != 0;
}

/* What readers have. While a large version of an earlier life, or of other settings, is validated,
 * its file is there already. */
static const struct version *shown_version(const struct config *c)
{
	const struct current *current = &c->current;

	if (!current->version.generation && current->saved_generation &&
		current->saved_by == ROW_NONE && c->step.decision.action == ACTION_SHOW &&
		is_place_there(c))
		return current->saved;
	return &current->version;
}

static int64_t age_ms(struct config *c)
{
	uint64_t now_ms = c->env->sys->now_ms();
	const struct version *v = shown_version(c);
	int64_t age, life_ms = (int64_t)(now_ms - c->status.started_ms);

	if (v->generation == 0)
		return -1;
	if (c->status.confirmed_ms)
		return (int64_t)(now_ms - c->status.confirmed_ms);
	age = c->env->sys->wall_ms() -
	      v->pulled_ms; /* an upper bound, by a clock that may be set */
	return age > life_ms ? age : life_ms;
}

/* By the wall clock as it is now: it may have been set meanwhile. */
static int64_t failing_since_ms(const struct config *c)
{
	int64_t noted_ms = c->status.failing_wall_ms, passed_ms, since_ms;

	if (!noted_ms)
		return 0;
	passed_ms = (int64_t)(c->env->sys->now_ms() - c->status.failing_ms);
	since_ms = c->env->sys->wall_ms() - passed_ms;
	return llabs(since_ms - noted_ms) < CLOCK_STEP_MS ? noted_ms : since_ms;
}

/* waiting | ok | failing | stale; an expired signature makes it stale too. */
static const char *state_text(const struct config *c)
{
	if (shown_version(c)->generation == 0)
		return "waiting";
	if (has_become_stale(c))
		return "stale";
	return c->status.error ? "failing" : "ok";
}

/* Why the version that the servers have is not current. */
static void fill_rejected(struct config *c, struct config_status *s)
{
	struct situation situation;

	if (c->latest.state != LATEST_IS_KEPT)
		return;
	settle_read_facts(c, &situation);
	s->rejected_by = settle_rejection(c, &situation, &s->rejected_why);
	if (s->rejected_by == REJECTION_REASONS)
		return;
	s->rejected = &c->latest.candidate->version;
	s->held = rejection_is_held(s->rejected_by);
	s->rejected_is_error = !s->held && strcmp(s->rejected_why, s->last_error) == 0;
}

static void fill_rejections(struct config *c, struct config_status *s)
{
	for (int i = 0; i < CHECK_COUNT; i++) {
		s->rejections += c->status.rejections[i];
		s->rejections_by[i] = c->status.rejections[i];
	}
	fill_rejected(c, s);
}

static void fill_decisions(const struct config *c, struct config_status *s)
{
	if (!c->decisions.ledger)
		return;
	s->pin = c->decisions.ledger->pin.by ? &c->decisions.ledger->pin : NULL;
	s->suspension = config_suspended(c) ? c->decisions.ledger->suspension : NULL;
	s->overrides = c->decisions.ledger->overrides;
	s->override_count = c->decisions.ledger->override_count;
	s->verdicts = c->decisions.ledger->verdicts;
	s->verdict_count = c->decisions.ledger->verdict_count;
}

static void fill_next_pull(const struct config *c, struct config_status *s)
{
	uint64_t due_ms, now_ms = c->env->sys->now_ms();

	s->running = trigger_running(&c->run.trigger);
	s->waiting = pull_waiting(c->run.pull);
	s->server = pull_server(c->run.pull);
	s->next_pull_in_ms = -1;
	if (schedule_find_due(c, &due_ms))
		s->next_pull_in_ms = due_ms > now_ms ? (int64_t)(due_ms - now_ms) : 0;
}

void config_status(struct config *c, struct config_status *ret_status)
{
	const struct version *shown = shown_version(c);

	*ret_status = (struct config_status){
		.settings = c->settings,
		.version = shown,
		.supervisor = &c->run.supervisor,
		.state = state_text(c),
		.last_error = error_text(c),
		.cause = cause_of_error(c),
		.last_error_ms = c->status.error_wall_ms,
		.failing_since_ms = failing_since_ms(c),
		.published_ms = shown == &c->current.version ? c->status.published_wall_ms
							     : version_shown_ms(shown),
		.confirmed_ms = c->status.confirmed_wall_ms,
		.age_ms = age_ms(c),
		.outcome = c->status.outcome,
		.expires_ms = c->current.expires_ms,
		.drifted = c->current.place == PLACE_CHANGED && c->settings->drift != SETTINGS_HEAL,
		.restored = c->status.restored,
		.pushes = atomic_load_explicit(&c->run.topic.messages, memory_order_relaxed),
	};
	fill_next_pull(c, ret_status);
	watches_fill_status(c, ret_status);
	fill_rejections(c, ret_status);
	fill_decisions(c, ret_status);
	ret_status->has_notify = c->current.notify;
	if (c->current.notify)
		notify_status(c->current.notify, &ret_status->notify);
}

void config_snapshot_path(const struct config *c, char ret_path[CONFIG_PATH])
{
	ret_path[0] = '\0';
	if (c->settings->snapshot)
		snprintf(ret_path, CONFIG_PATH, "%s/%s.snap", c->env->runtime_dir,
			c->settings->name);
}

void config_url(const struct config *c, char ret_url[CONFIG_URL])
{
	pull_url(c->run.pull, ret_url);
}

void config_failed_url(const struct config *c, char ret_url[CONFIG_URL])
{
	ret_url[0] = '\0';
	if (c->run.cause == KIND_CAUSE_NONE || c->run.cause == KIND_CAUSE_HOST)
		return;
	if (c->run.failed_by_rollout)
		pull_failed_url(c->run.rollout, ret_url);
	else
		pull_failed_url(c->run.bootstrapping ? c->run.bootstrap : c->run.pull, ret_url);
}

void config_add_totals(struct config *c, struct config_totals *totals)
{
	struct notify_status notify = {.has_reload = false};

	for (int i = 0; i < SUPERVISOR_OUTCOMES; i++)
		totals->runs[i] += c->run.supervisor.count[i];
	for (int i = 0; i < CHECK_COUNT; i++)
		totals->rejections[i] += c->status.rejections[i];
	totals->pushes += atomic_load_explicit(&c->run.topic.messages, memory_order_relaxed);
	totals->watch_changes += c->run.watch_changes;
	if (c->current.notify)
		notify_status(c->current.notify, &notify);
	totals->reload_runs += notify.reload.runs;
	totals->reload_failures += notify.reload.failed;
	totals->probe_failures += notify.probes_failed;
}
