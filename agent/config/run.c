/*
 * One config's circulation: the trigger says when, the server when it has a slot, the pull brings
 * documents, the rollout says whether for this host, the supervisor says when again.
 *
 * Surprising: the time limit covers the transfers only. A run ends when nothing is left to do of
 * what it brought; a disk that hangs shows as a run that does not end, and no second one begins
 * beside it.
 */
#include "config/core.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "settings/value.h"
#include "version/left.h"

#define PULL_FAILED_TEXT "pull failed: keeping the current version"
#define LOST_STATE "the current version is not in the state directory any more"
#define TIMED_OUT "the server timed out: keeping the current version, pulls slow down"

void run_start_limit(struct config *c)
{
	loop_timer_set(
		c->env->loop, &c->run.limit, loop_now_ms(c->env->loop) + c->settings->timeout_ms);
}

/* Notes what pushes and watches announced; newer hints reset the count of repulls. */
static void read_hints(struct config *c)
{
	uint64_t wanted = atomic_load_explicit(&c->run.topic.wanted, memory_order_acquire),
		 hints = c->run.watch_changes +
			 atomic_load_explicit(&c->run.topic.messages, memory_order_relaxed);

	if (hints != c->run.hints || wanted != c->run.wanted)
		c->run.repulls = 0;
	c->run.hints = hints;
	if (!c->run.heard_us) /* else it is a repull for the same push */
		c->run.heard_us =
			atomic_exchange_explicit(&c->run.topic.heard_us, 0, memory_order_relaxed);
	c->run.followed = c->run.watch_changes;
	c->run.wanted = wanted;
}

/* Callback: the server has a free slot. */
static bool begin_pull(void *arg)
{
	struct config *c = arg;

	if (!trigger_begin(&c->run.trigger, c->env->sys->now_ms())) {
		schedule_arm_timer(c);
		return false;
	}
	push_floor_begin(
		&c->run.floor, c->env->sys->now_ms(), c->run.own_ms > c->env->sys->now_ms());
	c->run.own_ms = UINT64_MAX;
	c->run.number = supervisor_begin(&c->run.supervisor);
	/* before the request: a message lost after this triggers another pull */
	atomic_store_explicit(&c->run.topic.pulled, true, memory_order_release);
	c->run.soon = false;
	reason_begin_run(c);
	read_hints(c);
	c->run.forced = c->run.force;
	c->run.force = false;
	run_drop_result(c);
	c->run.state = RUN_PULLING;
	c->run.is_new = false;
	/* a tick: what failed is tried again; the servers' version when they have answered */
	c->resting &= 1u << ROW_LATEST_IS_PUBLISHED;
	c->current.older_known = false;
	current_start(c);
	if (c->decisions.unsaved)
		decisions_save(c);
	if (!c->step.validating && decisions_read_rules(c))
		c->resting |= 1u << ROW_LATEST_IS_PUBLISHED; /* the servers may have another one */
	config_settle(c);
	pull_hold(c->run.pull, latest_version(c), c->run.forced);
	run_start_limit(c);
	schedule_arm_timer(c);
	return true;
}

/* ---- the bootstrap ---- */

/* Without a stored version, asks the bootstrap server within the same run. */
static bool try_bootstrap(struct config *c, enum supervisor_outcome outcome, const char *why)
{
	if (!c->run.bootstrap || c->run.bootstrapping || c->current.version.generation ||
		c->current.saved_generation)
		return false;
	free(c->run.missed);
	c->run.missed = strdup(why);
	c->run.missed_as = outcome;
	log_warn("pull failed and nothing is stored: trying the bootstrap server", "config",
		c->settings->name, "why", why);
	run_swap_pulls(c);
	pull_submit(c->run.pull, schedule_expiry_ms(c));
	return true;
}

static bool begin_bootstrap(void *arg)
{
	struct config *c = arg;

	pull_hold(c->run.pull, NULL, c->run.forced);
	run_start_limit(c);
	return true;
}

/* What keeps the last known good from being published here; it is tried again at each run. */
static bool is_place_unusable(struct config *c, char why[FILE_WHY])
{
	return !c->env->dry_run && !c->current.started && current_open(c, why) < 0;
}

static void pull_failed(
	struct config *c, enum supervisor_outcome outcome, const char *what, const char *why)
{
	char both[FILE_WHY], here[FILE_WHY], with_here[FILE_WHY];

	c->status.failed_here = false;
	(void)current_confirm(c, here); /* the server's failure is what is reported */
	if (!c->run.bootstrapping)
		c->run.cause = pull_cause(c->run.pull);
	c->run.failed_by_rollout = false;
	if (try_bootstrap(c, outcome, why))
		return;
	if (c->run.bootstrapping) {
		snprintf(both, sizeof(both), "%.180s; bootstrap: %.180s",
			c->run.missed ? c->run.missed : "", why);
		outcome = c->run.missed_as;
		why = both;
	} else {
		c->run.outage = pull_outage(c->run.pull);
	}
	if (is_place_unusable(c, here)) {
		snprintf(with_here, sizeof(with_here), "%.240s; and here: %.240s", why, here);
		why = with_here;
	}
	run_fail(c, outcome, what, why);
}

/* ---- the end of a pull ---- */

/* The servers' version is tried again, if it failed; but not what is saved and cannot be shown, and
 * nothing before that where nothing is current. */
static void try_latest(struct config *c)
{
	const struct version *latest = latest_version(c);
	struct situation s;

	settle_read_facts(c, &s);
	if (s.saved == SAVED_WANTED && s.current == CURRENT_NONE)
		return;
	if (s.saved != SAVED_NONE && latest &&
		strcmp(latest->sha256, c->current.saved->sha256) == 0)
		return;
	c->resting &= ~(1u << ROW_LATEST_IS_PUBLISHED);
}

/* The pull has brought all: asks the rollout, or lets the facts settle. */
static void pull_succeeded(struct config *c)
{
	if (!c->run.bootstrapping)
		c->run.cause = KIND_CAUSE_NONE;
	try_latest(c);
	if (rollout_gate_ask(c)) {
		c->run.state = RUN_ASKING;
		return;
	}
	c->run.state = RUN_SETTLING;
	config_settle(c);
}

/* The pull was good, and what it brought, or what is here, is not. */
static void fail_after_pull(struct config *c, bool here, const char *what, const char *why)
{
	if (!c->run.bootstrapping)
		run_forget_cause(c);
	c->status.failed_here = here;
	run_fail(c, SUPERVISOR_FAILED, what, why);
}

/* What readers see would not survive a restart: asked for whole by the next run, which saves it. */
static bool save_lost_again(struct config *c)
{
	const struct version *v = &c->current.version;

	if (!v->generation || c->step.publishing ||
		!left_is_removed(c->env->sys, c->env->state_dir, c->settings->name, v->generation))
		return false;
	if (c->latest.state == LATEST_IS_CURRENT)
		latest_forget(c);
	current_forget(c);
	return true;
}

static void take_same(struct config *c)
{
	char why[FILE_WHY];

	latest_confirm(c, c->run.forced);
	if (!c->run.is_new && save_lost_again(c))
		fail_after_pull(c, true, LOST_STATE,
			"somebody removed it: the next pull that brings it saves it again");
	else if (!c->run.is_new && current_confirm(c, why))
		fail_after_pull(c, true, "cannot repair the published file", why);
	else
		pull_succeeded(c);
}

/* What is decided in the state files comes before what the pull brought. 0, or -errno with a
 * sentence. */
static int finish_start(struct config *c, char why[FILE_WHY])
{
	int r = c->env->dry_run ? 0 : current_open(c, why);

	if (r || c->env->dry_run || c->current.started)
		return r;
	current_start(c);
	snprintf(why, FILE_WHY, "the state directory cannot be read now");
	return c->current.started ? 0 : -EAGAIN;
}

static void take_new(struct config *c)
{
	char why[FILE_WHY];

	if (finish_start(c, why)) {
		pull_release(c->run.pull);
		fail_after_pull(c, true, CONFIG_CANNOT_PUBLISH, why);
		return;
	}
	c->run.state = RUN_ASSEMBLING;
	assembly_start(c);
}

void run_take_version(struct config *c, int error, bool is_new, const char *why)
{
	char text[REJECTION_TEXT];

	c->run.is_new = is_new;
	if (error == -EPROTO)
		c->status.rejections[CHECK_DIGEST]++;
	if (error)
		fail_after_pull(c, error != -EPROTO,
			error == -EPROTO ? rejection_text(REJECTED_BY_DIGEST, text)
					 : "rejected: keeping the current version",
			why);
	else
		take_same(c);
}

static void pull_ended(void *arg, enum pull_outcome outcome, const char *why)
{
	struct config *c = arg;

	loop_timer_cancel(c->env->loop, &c->run.limit);
	if ((outcome == PULL_NEW || outcome == PULL_SAME) && !latest_is_asked(c)) {
		pull_release(c->run.pull);
		fail_after_pull(c, false, PULL_FAILED_TEXT,
			"the version that the servers were asked about is not here any more");
		return;
	}
	switch (outcome) {
	case PULL_NEW:
		take_new(c);
		return;
	case PULL_SAME:
		take_same(c);
		return;
	case PULL_TIMEOUT:
		pull_failed(c, SUPERVISOR_TIMEOUT, TIMED_OUT, why);
		return;
	case PULL_FAILED:
		pull_failed(c, SUPERVISOR_FAILED, PULL_FAILED_TEXT, why);
		return;
	case PULL_REJECTED:
		pull_failed(c, SUPERVISOR_REJECTED, "pull could not be started", why);
		return;
	}
}

/* Callback: the server had no slot in time. */
static void pull_not_started(void *arg, const char *why)
{
	struct config *c = arg;

	if (!trigger_begin(&c->run.trigger, c->env->sys->now_ms())) {
		schedule_arm_timer(c);
		return;
	}
	c->run.own_ms = UINT64_MAX;
	c->run.number = supervisor_begin(&c->run.supervisor);
	pull_failed(c, SUPERVISOR_REJECTED, "pull could not be started", why);
}

static void bootstrap_not_started(void *arg, const char *why)
{
	pull_failed(arg, SUPERVISOR_REJECTED, "pull could not be started", why);
}

static const struct pull_calls server_calls = {begin_pull, pull_ended, pull_not_started};
static const struct pull_calls bootstrap_calls = {
	begin_bootstrap, pull_ended, bootstrap_not_started};

static void limit_passed(void *arg)
{
	struct config *c = arg;
	bool asking = c->run.state == RUN_ASKING;
	const struct pull *pull = asking ? c->run.rollout : c->run.pull;
	char why[FILE_WHY], text[24], waits_for[FILE_WHY];

	if (pull_reading(pull)) { /* no server is late */
		run_start_limit(c);
		return;
	}
	pull_waits_for(pull, waits_for);
	snprintf(why, sizeof(why), "request timed out after %s%.400s",
		settings_duration_text(c->settings->timeout_ms, text), waits_for);
	c->run.soon = !asking && pull_give_up(c->run.pull);
	if (asking)
		rollout_gate_give_up(c, why);
	else
		pull_failed(c, SUPERVISOR_TIMEOUT, TIMED_OUT, why);
}

/* ---- life ---- */

void run_init(struct config *c)
{
	const struct settings_config *settings = c->settings;

	trigger_init(&c->run.trigger, c->env->queue);
	supervisor_init(&c->run.supervisor, settings->interval_ms, settings->backoff_bound);
	loop_timer_init(&c->run.limit, limit_passed, c);
	schedule_init(c);
	c->run.topic.topic = settings->topic;
	c->run.topic.trigger = &c->run.trigger;
	c->run.topic.spread_ms = settings->push_spread_ms;
}

int run_open(struct config *c)
{
	const struct settings_config *settings = c->settings;

	c->run.pull = pull_new(&c->env->pull, settings, NULL, &server_calls, c);
	if (settings->bootstrap)
		c->run.bootstrap =
			pull_new(&c->env->pull, settings, settings->bootstrap, &bootstrap_calls, c);
	if (!c->run.pull || !c->run.bootstrap != !settings->bootstrap)
		return -ENOMEM;
	return rollout_gate_open(c);
}

void run_retire(struct config *c)
{
	bool settling = c->run.state == RUN_SETTLING && c->step.publishing;

	trigger_suspend(&c->run.trigger);
	pull_drop(c->run.pull);
	if (c->run.bootstrap)
		pull_drop(c->run.bootstrap);
	if (c->run.rollout)
		pull_drop(c->run.rollout);
	assembly_give_up(c);
	loop_timer_cancel(c->env->loop, &c->run.due);
	loop_timer_cancel(c->env->loop, &c->run.limit);
	watches_stop(c);
	if (settling || !trigger_running(&c->run.trigger)) /* that run ends with its version */
		return;
	c->run.state = RUN_IDLE;
	trigger_end(&c->run.trigger, c->env->sys->now_ms(), TRIGGER_NO_NEXT);
}

void run_fini(struct config *c)
{
	assembly_fini(c);
	pull_free(c->run.pull);
	pull_free(c->run.bootstrap);
	rollout_gate_close(c);
	loop_timer_cancel(c->env->loop, &c->run.due);
	loop_timer_cancel(c->env->loop, &c->run.limit);
	watches_stop(c);
	free(c->run.watched);
	free(c->run.missed);
	reason_fini(c);
	run_drop_result(c);
}
