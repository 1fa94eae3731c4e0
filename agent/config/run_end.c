/*
 * The end of a run: what it brought, the next one, and who waited.
 *
 * Surprising: the outcome is derived from the facts as they are when nothing is left to do, so that
 * nobody has to tell a run what became of its version.
 */
#include "config/core.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void run_swap_pulls(struct config *c)
{
	struct pull *other = c->run.pull;

	c->run.pull = c->run.bootstrap;
	c->run.bootstrap = other;
	c->run.bootstrapping = !c->run.bootstrapping;
}

/* Schedules the next run and wakes waiters. */
static void end_run(struct config *c)
{
	uint64_t now_ms = c->env->sys->now_ms();

	c->run.state = RUN_IDLE;
	pull_hold(c->run.pull, NULL, false); /* a thousand idle configs hold nothing */
	pull_release(c->run.pull);
	push_floor_end(&c->run.floor, now_ms, (unsigned)pull_count(c->run.pull),
		c->status.outcome == CONFIG_PUBLISHED);
	schedule_warn_floor(c, now_ms);
	trigger_end(&c->run.trigger, now_ms, schedule_next_run(c, now_ms));
	if (c->run.bootstrapping) {
		run_swap_pulls(c);
		pull_hold(c->run.pull, NULL, false);
	}
	c->run.forced = false;
	c->latest.force = FORCE_NONE; /* an order is about its own run */
	schedule_bound_backoff(c);
	schedule_arm_timer(c);
	watches_confirm(c);
	syncing_ask(c, 0); /* what had no descriptor before */
	config_wake_waiters(c, 0, c->run.number - 1);
	config_wake_waiters(c, CONFIG_ANY, CONFIG_ANY);
	if (c->env->run_ended)
		c->env->run_ended(c->env->arg, c);
}

void run_fail(struct config *c, enum supervisor_outcome outcome, const char *what, const char *why)
{
	supervisor_end(&c->run.supervisor, c->run.number, outcome);
	c->status.outcome = CONFIG_FAILED;
	config_report_failure(c, what, why);
	end_run(c);
	config_settle(c);
}

static void end_good_run(struct config *c, enum config_outcome outcome)
{
	supervisor_end(&c->run.supervisor, c->run.number,
		c->run.bootstrapping ? c->run.missed_as : SUPERVISOR_SUCCESS);
	c->status.outcome = outcome;
	if (c->run.bootstrapping) {
		config_report_failure(c,
			"published from the bootstrap server: the server is still unreachable",
			c->run.missed ? c->run.missed : "");
	} else {
		status_confirm(c);
	}
	end_run(c);
}

/* ---- what steps say ---- */

static void note_result(
	struct config *c, enum config_outcome outcome, const char *what, const char *why)
{
	c->run.result.outcome = outcome;
	free(c->run.result.what);
	free(c->run.result.why);
	c->run.result.what = what ? strdup(what) : NULL;
	c->run.result.why = why ? strdup(why) : NULL;
}

void run_forget_cause(struct config *c)
{
	c->run.cause = KIND_CAUSE_NONE;
	c->status.failed_here = false;
}

void run_note_failure(struct config *c, const char *what, const char *why)
{
	c->status.failed_here = true;
	if (c->run.state != RUN_IDLE) {
		note_result(c, CONFIG_FAILED, what, why);
		return;
	}
	c->run.cause = KIND_CAUSE_NONE; /* of the run before: this is no fault of its server */
	config_report_failure(c, what, why);
}

void run_note_rejection(struct config *c, const char *what, const char *why)
{
	if (c->run.state != RUN_IDLE)
		return; /* a run says it at its end */
	run_forget_cause(c);
	config_report_failure(c, what, why);
}

/* Counts how long the push that this run follows took to be published. */
static void count_latency(struct config *c)
{
	struct config_latency *l = c->env->latency;
	uint64_t now_us, us;
	size_t i = 0;

	if (!l || !c->run.heard_us || c->env->dry_run)
		return;
	now_us = c->env->sys->monotonic_us();
	us = now_us > c->run.heard_us ? now_us - c->run.heard_us : 0;
	c->run.heard_us = 0;
	while (i < CONFIG_LATENCY_BUCKETS - 1 && us >= (uint64_t)CONFIG_LATENCY_US << i)
		i++;
	l->counts[i]++;
	l->sum_us += us;
}

void run_note_published(struct config *c)
{
	if (c->run.state != RUN_IDLE && c->step.decision.action == ACTION_PUBLISH)
		count_latency(c);
	if (c->run.state != RUN_IDLE && c->step.decision.action != ACTION_HEAL)
		note_result(c, CONFIG_PUBLISHED, NULL, NULL);
}

static void log_held_version(struct config *c, enum rejection_reason reason, const char *why)
{
	if (c->latest.said == reason)
		return;
	c->latest.said = reason;
	if (reason != REJECTED_BY_OPERATOR)
		events_note(c, EVENT_HELD, rejection_name(reason),
			reason == REJECTED_BY_ROLLOUT ? why : NULL);
	if (reason == REJECTED_BY_PIN)
		log_info("pinned: a new version is not published", "config", c->settings->name,
			"version", VERSION_TEXT(latest_version(c)));
	else if (reason == REJECTED_BY_ROLLOUT)
		log_info("not rolled out to this host yet: keeping the current version", "config",
			c->settings->name, "version", VERSION_TEXT(latest_version(c)), "why", why);
}

/* What the servers have is current, and another host would not take it: NULL = it would. */
static const char *find_bad_signature(const struct config *c)
{
	if (c->run.bootstrapping || c->latest.state != LATEST_IS_CURRENT)
		return NULL;
	if (c->current.expires_ms <= c->env->sys->wall_ms())
		return "the signature of the current version has expired";
	return c->current.unsigned_why;
}

/* Ends the run by what the servers have now. */
static void end_by_facts(struct config *c, const struct situation *s)
{
	const char *why;
	char what[64];
	enum rejection_reason reason = settle_rejection(c, s, &why);
	const char *bad = reason == REJECTION_REASONS ? find_bad_signature(c) : NULL;

	c->status.failed_here = false;
	if (bad) {
		run_fail(c, SUPERVISOR_FAILED, rejection_text(REJECTED_BY_SIGNATURE, what), bad);
	} else if (reason == REJECTION_REASONS) {
		end_good_run(c, c->run.result.outcome == CONFIG_PUBLISHED ? CONFIG_PUBLISHED
									  : CONFIG_UNCHANGED);
	} else if (rejection_is_held(reason)) {
		log_held_version(c, reason, why);
		end_good_run(c, CONFIG_HELD);
	} else {
		char copy[FILE_WHY];

		snprintf(copy, sizeof(copy), "%s", why);
		run_fail(c, SUPERVISOR_FAILED,
			reason == REJECTED_BY_PROBE
				? "the server still has the version that was rolled back"
				: rejection_text(reason, what),
			copy);
	}
}

void run_drop_result(struct config *c)
{
	note_result(c, CONFIG_NONE, NULL, NULL);
}

bool run_settled(struct config *c, const struct situation *s)
{
	const struct run_result result = c->run.result;

	if (c->run.state != RUN_SETTLING)
		return false;
	if (result.outcome == CONFIG_FAILED)
		run_fail(c, SUPERVISOR_FAILED, result.what ? result.what : "out of memory",
			result.why ? result.why : "");
	else
		end_by_facts(c, s);
	return true;
}
