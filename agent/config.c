/*
 * One config's circulation: the trigger says when, the servers when they have room, the gather
 * brings documents, config_version.c decides what becomes of them, the supervisor says when again.
 *
 * Surprising: the time limit covers the transfers only. Once a document is accepted its publication
 * is never given up half-way; a disk that hangs shows as a run that does not end, and no second one
 * begins beside it.
 */
#include "config_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char timed_out[] = "the server timed out: the old version stays, pulls slow down";
/* From a run that an address let run into its time limit to the next, at another address. */
#define FAILOVER_MS 500
#define PATIENCE_MS 300000u
static const uint64_t repull_delay_ms[CONFIG_REPULLS] = {50, 200, 1000};

/* A pull that found no slot for so long is told as rejected; no hold alone is that long. */
static uint64_t expiry_ms(const struct config *c)
{
	uint64_t max_ms = c->supervisor.max_ms;

	return c->env->sys->now_ms() + (max_ms > PATIENCE_MS ? max_ms : PATIENCE_MS);
}

/* The last of the slowest pulls has not confirmed it. */
uint64_t config_stale_ms(const struct config *c)
{
	return c->supervisor.max_ms + c->settings->timeout_ms;
}

/* The trigger's word decides whether the timer is armed, and whether a run that waits for the
 * server is still wanted. */
static void arm(struct config *c)
{
	uint64_t due_ms;
	bool is_set = trigger_due(&c->trigger, &due_ms);

	if (gather_waiting(c->gather)) {
		if (is_set && due_ms <= c->env->sys->now_ms()) {
			gather_submit(c->gather, expiry_ms(c));
			return;
		}
		gather_withdraw(c->gather);
	}
	if (is_set)
		loop_timer_set(c->env->loop, &c->due, due_ms);
	else
		loop_timer_cancel(c->env->loop, &c->due);
}

/* ---- telling ---- */

static const char *error_of(const struct config *c)
{
	return c->error ? c->error : "";
}

void config_complain(struct config *c, const char *what, const char *why)
{
	unsigned suppressed;

	free(c->error);
	c->error = strdup(why[0] ? why : what);
	c->error_wall_ms = c->env->sys->wall_ms();
	if (log_limit_pass(&c->log_limit, c->env->sys->now_ms(), why, &suppressed))
		log_warn(what, "config", c->settings->name, "why", why, "next_in_ms",
			LOG_U64(supervisor_delay(&c->supervisor)), "generation",
			LOG_U64(c->published.generation), "repeated",
			suppressed ? LOG_U64(suppressed) : NULL);
}

/* For the snapshot's readers: what a signature says may make it stale sooner. */
static uint64_t readers_stale_ms(const struct config *c)
{
	uint64_t stale_ms = config_stale_ms(c);
	int64_t left_ms;

	if (c->expires_ms == INT64_MAX)
		return stale_ms;
	left_ms = c->expires_ms - c->env->sys->wall_ms();
	if (left_ms < 1)
		left_ms = 1;
	return (uint64_t)left_ms < stale_ms ? (uint64_t)left_ms : stale_ms;
}

static void confirm(struct config *c)
{
	c->confirmed_ms = c->env->sys->now_ms();
	c->confirmed_wall_ms = c->env->sys->wall_ms();
	if (c->image)
		image_confirm(c->image, c->confirmed_ms, readers_stale_ms(c));
	if (c->error) {
		log_info("the server's answer is good again", "config", c->settings->name);
		memset(&c->log_limit, 0, sizeof(c->log_limit));
	}
	free(c->error);
	c->error = NULL;
}

/* ---- runs ---- */

/* The server has a free slot for the run that is due. */
static bool begin_run(void *arg)
{
	struct config *c = arg;

	if (c->candidate) { /* something an operator asked for is under way */
		c->late = true;
		return false;
	}
	if (!trigger_begin(&c->trigger, c->env->sys->now_ms())) {
		arm(c);
		return false;
	}
	c->run = supervisor_begin(&c->supervisor);
	/* before the request: a message lost from here on is caught up with */
	atomic_store_explicit(&c->topic.pulled, true, memory_order_release);
	c->soon = false;
	c->forced = c->force;
	c->force = false;
	version_start_late(c);
	gather_hold(c->gather, version_held(c));
	loop_timer_set(
		c->env->loop, &c->limit, loop_now_ms(c->env->loop) + c->settings->timeout_ms);
	arm(c);
	return true;
}

static void gathered(void *arg, enum gather_outcome outcome, const char *why)
{
	struct config *c = arg;

	loop_timer_cancel(c->env->loop, &c->limit);
	switch (outcome) {
	case GATHER_NEW:
		version_gathered(c);
		return;
	case GATHER_SAME:
		version_unchanged(c);
		return;
	case GATHER_TIMEOUT:
		config_run_failed(c, SUPERVISOR_TIMEOUT, timed_out, why);
		return;
	case GATHER_FAILED:
		config_run_failed(c, SUPERVISOR_FAILED, "pull failed: the old version stays", why);
		return;
	case GATHER_REJECTED:
		config_run_failed(c, SUPERVISOR_REJECTED, "pull could not be started", why);
		return;
	}
}

/* The server had no slot in time. */
static void lost(void *arg, const char *why)
{
	struct config *c = arg;

	if (!trigger_begin(&c->trigger, c->env->sys->now_ms())) {
		arm(c);
		return;
	}
	c->run = supervisor_begin(&c->supervisor);
	config_run_failed(c, SUPERVISOR_REJECTED, "pull could not be started", why);
}

static const struct gather_calls gather_calls = {begin_run, gathered, lost};

static void limit_passed(void *arg)
{
	struct config *c = arg;
	char why[FILE_WHY];

	c->soon = gather_give_up(c->gather);
	snprintf(why, sizeof(why), "no whole answer within the time limit of %llu ms",
		(unsigned long long)c->settings->timeout_ms);
	config_run_failed(c, SUPERVISOR_TIMEOUT, timed_out, why);
}

static void due(void *arg)
{
	struct config *c = arg;

	if (trigger_running(&c->trigger)) { /* one more run right after it */
		trigger_begin(&c->trigger, c->env->sys->now_ms());
		arm(c);
	} else {
		gather_submit(c->gather, expiry_ms(c));
	}
}

void config_free_for_run(struct config *c)
{
	if (c->late) {
		c->late = false;
		trigger_fire(&c->trigger, c->env->sys->now_ms(), 0);
	}
	version_grant(c);
}

/* ---- the end of a run ---- */

/* A push promised a version. Showing another one, the server lags: ask again soon, a few times. */
static bool must_repull(struct config *c)
{
	uint64_t wanted = atomic_load_explicit(&c->topic.wanted, memory_order_acquire);
	bool shown;

	if (wanted != c->wanted) {
		c->wanted = wanted;
		c->repulls = 0;
	}
	if (wanted == 0 || !gather_showed(c->gather))
		return false;
	shown = gather_shows(c->gather, wanted);
	if (shown || c->repulls == CONFIG_REPULLS) {
		if (!shown)
			log_warn("the server still shows another version than the push promised",
				"config", c->settings->name, "shown",
				c->published.part_count ? c->published.parts[0].etag : NULL);
		/* not if a newer promise came meanwhile */
		atomic_compare_exchange_strong(&c->topic.wanted, &wanted, 0);
		return false;
	}
	return true;
}

/* The supervised delay with jitter, so that the hosts of a fleet do not fall into step. */
static uint64_t jittered(struct config *c, uint64_t delay_ms, unsigned percent)
{
	uint64_t span = delay_ms / 100 * percent + delay_ms % 100 * percent / 100;

	return delay_ms - span + sys_random_upto(c->env->sys, 2 * span);
}

/* Whatever the run came to: the next one is due, those who waited are told. */
static void run_ended(struct config *c)
{
	struct config_waiter *w, **link = &c->waiters, *ended = NULL;
	uint64_t next_ms = jittered(c, supervisor_delay(&c->supervisor), c->settings->jitter);

	if (must_repull(c))
		next_ms = jittered(c, repull_delay_ms[c->repulls++], 25);
	else if (c->soon)
		next_ms = jittered(c, FAILOVER_MS, 50);
	else if (gather_overloaded(c->gather)) /* not all who were turned away in step */
		next_ms = sys_random_upto(c->env->sys, supervisor_delay(&c->supervisor));
	c->forced = false;
	trigger_end(&c->trigger, c->env->sys->now_ms(), next_ms);
	arm(c);

	while ((w = *link)) { /* unlinked first: a waiter may add or cancel others */
		if (c->run <= w->after) {
			link = &w->next;
			continue;
		}
		*link = w->next;
		w->next = ended;
		ended = w;
	}
	while ((w = ended)) {
		ended = w->next;
		w->ended(w->arg, c);
	}
	if (c->env->run_ended)
		c->env->run_ended(c->env->arg, c);
	version_grant(c);
}

void config_run_failed(
	struct config *c, enum supervisor_outcome outcome, const char *what, const char *why)
{
	supervisor_end(&c->supervisor, c->run, outcome);
	c->outcome = CONFIG_FAILED;
	config_complain(c, what, why);
	run_ended(c);
}

void config_run_succeeded(struct config *c, enum config_outcome outcome, bool confirmed)
{
	supervisor_end(&c->supervisor, c->run, SUPERVISOR_SUCCESS);
	c->outcome = outcome;
	if (confirmed)
		confirm(c);
	run_ended(c);
}

/* ---- outside ---- */

struct config *config_new(const struct config_env *env, const struct settings_config *settings)
{
	struct config *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->env = env;
	c->settings = settings;
	c->gather_env = (struct gather_env){
		.sys = env->sys,
		.transport = env->transport,
		.servers = env->servers,
		.ca_file = env->ca_file,
	};
	trigger_init(&c->trigger, env->queue);
	supervisor_init(&c->supervisor, settings->interval_ms, settings->backoff_bound);
	loop_timer_init(&c->due, due, c);
	loop_timer_init(&c->limit, limit_passed, c);
	c->topic.topic = settings->topic;
	c->topic.trigger = &c->trigger;
	c->topic.spread_ms = settings->push_spread_ms;
	version_init(c);
	c->gather = gather_new(&c->gather_env, settings, &gather_calls, c);
	c->judges = judges_new(env->sys, settings);
	if (c->gather && c->judges)
		return c;
	config_free(c);
	return NULL;
}

void config_free(struct config *c)
{
	if (!c)
		return;
	gather_free(c->gather);
	loop_timer_cancel(c->env->loop, &c->due);
	loop_timer_cancel(c->env->loop, &c->limit);
	version_stop(c);
	judges_free(c->judges);
	free(c->error);
	free(c);
}

/* How long a pull that nobody waits for may be put off. */
static uint64_t splay_ms(struct config *c)
{
	uint64_t bound = c->settings->interval_ms;

	if (c->env->once || c->published.generation == 0 ||
		!gather_covers(c->gather, &c->published))
		return 0;
	return sys_random_upto(c->env->sys, bound < CONFIG_SPLAY_MS ? bound : CONFIG_SPLAY_MS);
}

void config_start(struct config *c)
{
	version_start(c);
	trigger_fire(&c->trigger, c->env->sys->now_ms(), splay_ms(c));
}

void config_resumed(struct config *c)
{
	uint64_t due_ms, now_ms = c->env->sys->now_ms();

	if (trigger_due(&c->trigger, &due_ms) && due_ms < now_ms && !gather_waiting(c->gather))
		trigger_fire(&c->trigger, now_ms, splay_ms(c));
	arm(c);
}

void config_called(struct trigger *t)
{
	struct config *c = (struct config *)((char *)t - offsetof(struct config, trigger));

	arm(c);
}

void config_refresh(struct config *c, bool forced)
{
	c->force |= forced;
	gather_lift(c->gather);
	trigger_fire(&c->trigger, c->env->sys->now_ms(), 0);
}

void config_wait(struct config *c, struct config_waiter *w)
{
	w->after = c->run;
	w->next = c->waiters;
	c->waiters = w;
}

void config_wait_cancel(struct config *c, struct config_waiter *w)
{
	for (struct config_waiter **link = &c->waiters; *link; link = &(*link)->next) {
		if (*link == w) {
			*link = w->next;
			return;
		}
	}
}

struct push_topic *config_push_topic(struct config *c)
{
	return &c->topic;
}

const char *config_name(const struct config *c)
{
	return c->settings->name;
}

static int64_t age_ms(struct config *c)
{
	int64_t age;

	if (c->published.generation == 0)
		return -1;
	if (c->confirmed_ms)
		return (int64_t)(c->env->sys->now_ms() - c->confirmed_ms);
	age = c->env->sys->wall_ms() - c->published.pulled_ms; /* by an earlier process */
	return age > 0 ? age : 0;
}

void config_status(struct config *c, struct config_status *ret_status)
{
	uint64_t due_ms, now_ms = c->env->sys->now_ms();
	int64_t age = age_ms(c);
	const char *state = "ok";

	/* an expired signature makes it stale too */
	if (c->published.generation && c->expires_ms <= c->env->sys->wall_ms())
		state = "stale";
	else if (c->published.generation == 0)
		state = "waiting";
	else if (c->confirmed_ms == 0 || c->error)
		state = age > (int64_t)config_stale_ms(c) ? "stale" : c->error ? "failing" : "ok";
	*ret_status = (struct config_status){
		.settings = c->settings,
		.version = &c->published,
		.supervisor = &c->supervisor,
		.state = state,
		.last_error = error_of(c),
		.last_error_ms = c->error_wall_ms,
		.published_ms = c->published_wall_ms,
		.confirmed_ms = c->confirmed_wall_ms,
		.age_ms = age,
		.next_pull_in_ms = -1,
		.running = trigger_running(&c->trigger),
		.waiting = gather_waiting(c->gather),
		.server = gather_server(c->gather),
		.outcome = c->outcome,
		.expires_ms = c->expires_ms,
		.drifted = c->drifted,
		.pin = c->ledger && c->ledger->pin.by ? &c->ledger->pin : NULL,
		.restored = c->restored,
		.pushes = atomic_load_explicit(&c->topic.messages, memory_order_relaxed),
	};
	if (c->settings->snapshot)
		snprintf(ret_status->snapshot, sizeof(ret_status->snapshot), "%s/%s.snap",
			c->env->runtime_dir, c->settings->name);
	gather_url(c->gather, ret_status->url);
	if (trigger_due(&c->trigger, &due_ms))
		ret_status->next_pull_in_ms = due_ms > now_ms ? (int64_t)(due_ms - now_ms) : 0;
	for (int i = 0; i < JUDGE_COUNT; i++) {
		ret_status->refused += c->refused[i];
		ret_status->refused_by[i] = c->refused[i];
	}
	if (c->away) {
		ret_status->away_judge = c->away->judge;
		ret_status->away_why = c->away->why;
		ret_status->away = &c->away->version;
	}
	if (c->ledger) {
		ret_status->overrides = c->ledger->overrides;
		ret_status->override_count = c->ledger->override_count;
	}
	ret_status->has_aftermath = c->aftermath;
	if (c->aftermath)
		aftermath_status(c->aftermath, &ret_status->aftermath);
}
