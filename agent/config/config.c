/*
 * One config's circulation: the trigger says when, the server when it has a slot, the pull brings
 * documents, pipeline.c validates and publishes them, the supervisor says when again.
 *
 * Surprising: the time limit covers the transfers only. Once a document is accepted its publication
 * is never given up half-way; a disk that hangs shows as a run that does not end, and no second one
 * begins beside it.
 */
#include "config/state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/etag.h"
#include "settings/value.h"

#define TIMED_OUT "the server timed out: keeping the current version, pulls slow down"
/* From a run that an address let run into its time limit to the next, at another address. */
#define FAILOVER_MS 500
#define PATIENCE_MS 300000u
static const uint64_t repull_delay_ms[CONFIG_REPULLS] = {
	50, 200, 1000, 2000, 4000, 8000, 16000, 32000};

/* A pull without a slot until then is rejected; no backoff alone is that long. */
static uint64_t expiry_ms(const struct config *c)
{
	uint64_t max_ms = c->supervisor.max_ms;

	return c->env->sys->now_ms() + (max_ms > PATIENCE_MS ? max_ms : PATIENCE_MS);
}

bool config_suspended(const struct config *c)
{
	return c->ledger && c->ledger->suspension.by && !c->env->once;
}

/* The last of the slowest pulls has not confirmed it; the time of a suspension does not count. */
uint64_t config_stale_ms(const struct config *c)
{
	uint64_t stale_ms = c->supervisor.max_ms + c->settings->timeout_ms,
		 confirmed_ms = c->confirmed_ms ? c->confirmed_ms : c->started_ms;

	if (config_suspended(c))
		return CONFIG_NEVER;
	return stale_ms + (c->resumed_ms > confirmed_ms ? c->resumed_ms - confirmed_ms : 0);
}

/* Hints wait for the floor, but not beyond the moment that set_due() or the interval has set; while
 * suspended nothing is due. */
static bool find_due(const struct config *c, uint64_t *ret_due_ms)
{
	uint64_t ready_ms = push_floor_ready_ms(&c->floor, c->env->sys->now_ms());

	if (config_suspended(c) || !trigger_due(&c->trigger, ret_due_ms))
		return false;
	if (ready_ms > c->own_ms)
		ready_ms = c->own_ms;
	if (*ret_due_ms < ready_ms)
		*ret_due_ms = ready_ms;
	return true;
}

/* Arms the timer by the trigger; withdraws a queued pull that is not due any more. */
static void arm_timer(struct config *c)
{
	uint64_t due_ms;
	bool is_set = trigger_due(&c->trigger, &due_ms) && !config_suspended(c);

	if (c->retires)
		return;
	if (!c->bootstrapping && pull_waiting(c->pull)) {
		if (is_set && due_ms <= c->env->sys->now_ms()) {
			pull_submit(c->pull, expiry_ms(c));
			return;
		}
		pull_withdraw(c->pull);
	}
	if (find_due(c, &due_ms))
		loop_timer_set(c->env->loop, &c->due, due_ms);
	else
		loop_timer_cancel(c->env->loop, &c->due);
}

/* Overrides any earlier due time. */
static void set_due(struct config *c, uint64_t delay_ms)
{
	uint64_t now_ms = c->env->sys->now_ms();

	c->own_ms = now_ms + delay_ms;
	trigger_fire(&c->trigger, now_ms, delay_ms);
}

/* ---- errors ---- */

static const char *error_text(const struct config *c)
{
	return c->error ? c->error : "";
}

/* Each config logs its own failure once; a lasting one is repeated by one config for all. */
static bool may_log_failure(
	struct config *c, const char *what, const char *why, unsigned *ret_suppressed)
{
	uint64_t now_ms = c->env->sys->now_ms();
	bool goes_on = log_limit_told(&c->log_limit, what, why);
	unsigned others;

	if (!log_limit_pass_kind(&c->log_limit, now_ms, what, why, ret_suppressed))
		return false;
	if (!goes_on || !c->env->goes_on ||
		log_limit_pass_kind(c->env->goes_on, now_ms, what, why, &others))
		return true;
	c->log_limit.suppressed = *ret_suppressed + 1;
	return false;
}

static const char *without_current(const char *what, char *ret_text, size_t size)
{
	static const char stays[] = ": keeping the current version";
	size_t len = strlen(what), end = sizeof(stays) - 1;

	if (len < end || strcmp(what + len - end, stays) != 0)
		return what;
	snprintf(ret_text, size, "%.*s: nothing is published yet", (int)(len - end), what);
	return ret_text;
}

void config_report_failure(struct config *c, const char *what, const char *why)
{
	unsigned suppressed;
	char text[160];

	if (c->published.generation == 0 && !c->env->dry_run)
		what = without_current(what, text, sizeof(text));
	free(c->error);
	c->error = strdup(why[0] ? why : what);
	c->error_wall_ms = c->env->sys->wall_ms();
	if (!c->failing_wall_ms)
		c->failing_wall_ms = c->error_wall_ms;
	if (may_log_failure(c, what, why, &suppressed))
		log_warn(what, "config", c->settings->name, "why", why, "next_in_ms",
			LOG_U64(supervisor_delay(&c->supervisor)), "generation",
			LOG_U64(c->published.generation), "repeated",
			suppressed ? LOG_U64(suppressed) : NULL);
}

/* For the snapshot's readers: a signature's expiry may come sooner. */
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

static void confirm_current(struct config *c)
{
	c->confirmed_ms = c->env->sys->now_ms();
	c->confirmed_wall_ms = c->env->sys->wall_ms();
	if (c->image)
		image_confirm(c->image, c->confirmed_ms, readers_stale_ms(c));
	if (c->error) {
		log_info("recovered", "config", c->settings->name);
		memset(&c->log_limit, 0, sizeof(c->log_limit));
	}
	free(c->error);
	c->error = NULL;
	c->failing_wall_ms = 0;
}

/* ---- runs ---- */

void config_start_limit(struct config *c)
{
	loop_timer_set(
		c->env->loop, &c->limit, loop_now_ms(c->env->loop) + c->settings->timeout_ms);
}

/* Notes what pushes and watches announced; newer hints reset the count of repulls. */
static void read_hints(struct config *c)
{
	uint64_t wanted = atomic_load_explicit(&c->topic.wanted, memory_order_acquire),
		 hints = c->watch_changes +
			 atomic_load_explicit(&c->topic.messages, memory_order_relaxed);

	if (hints != c->hints || wanted != c->wanted)
		c->repulls = 0;
	c->hints = hints;
	c->followed = c->watch_changes;
	c->wanted = wanted;
}

/* Callback: the server has a free slot. */
static bool begin_pull(void *arg)
{
	struct config *c = arg;

	if (c->candidate) { /* an operator's change is under way */
		c->late = true;
		return false;
	}
	if (!trigger_begin(&c->trigger, c->env->sys->now_ms())) {
		arm_timer(c);
		return false;
	}
	push_floor_begin(&c->floor, c->env->sys->now_ms(), c->own_ms > c->env->sys->now_ms());
	c->own_ms = UINT64_MAX;
	c->run = supervisor_begin(&c->supervisor);
	/* before the request: a message lost after this triggers another pull */
	atomic_store_explicit(&c->topic.pulled, true, memory_order_release);
	c->soon = false;
	read_hints(c);
	c->forced = c->force;
	c->force = false;
	current_start_late(c);
	pipeline_review_rejected(c);
	pull_hold(c->pull, pipeline_known_version(c), c->forced);
	config_start_limit(c);
	arm_timer(c);
	return true;
}

/* ---- the bootstrap ---- */

static void swap_pulls(struct config *c)
{
	struct pull *other = c->pull;

	c->pull = c->bootstrap;
	c->bootstrap = other;
	c->bootstrapping = !c->bootstrapping;
}

/* Without a stored version, asks the bootstrap server within the same run. */
static bool try_bootstrap(struct config *c, enum supervisor_outcome outcome, const char *why)
{
	if (!c->bootstrap || c->bootstrapping || c->published.generation || c->saved_generation)
		return false;
	free(c->missed);
	c->missed = strdup(why);
	c->missed_as = outcome;
	log_warn("pull failed and nothing is stored: trying the bootstrap server", "config",
		c->settings->name, "why", why);
	swap_pulls(c);
	pull_submit(c->pull, expiry_ms(c));
	return true;
}

static bool begin_bootstrap(void *arg)
{
	struct config *c = arg;

	pull_hold(c->pull, NULL, c->forced);
	config_start_limit(c);
	return true;
}

static void pull_failed(
	struct config *c, enum supervisor_outcome outcome, const char *what, const char *why)
{
	char both[FILE_WHY];

	if (!c->bootstrapping)
		c->cause = pull_cause(c->pull);
	if (try_bootstrap(c, outcome, why))
		return;
	if (c->bootstrapping) {
		snprintf(both, sizeof(both), "%.180s; bootstrap: %.180s",
			c->missed ? c->missed : "", why);
		outcome = c->missed_as;
		why = both;
	}
	config_run_failed(c, outcome, what, why);
}

/* ---- the end of a pull ---- */

static void pull_ended(void *arg, enum pull_outcome outcome, const char *why)
{
	struct config *c = arg;

	loop_timer_cancel(c->env->loop, &c->limit);
	if ((outcome == PULL_NEW || outcome == PULL_SAME) && !c->bootstrapping)
		c->cause = KIND_CAUSE_NONE;
	switch (outcome) {
	case PULL_NEW:
		pipeline_take_pull(c);
		return;
	case PULL_SAME:
		current_confirm_pull(c);
		return;
	case PULL_TIMEOUT:
		pull_failed(c, SUPERVISOR_TIMEOUT, TIMED_OUT, why);
		return;
	case PULL_FAILED:
		pull_failed(c, SUPERVISOR_FAILED, "pull failed: keeping the current version", why);
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

	if (!trigger_begin(&c->trigger, c->env->sys->now_ms())) {
		arm_timer(c);
		return;
	}
	c->own_ms = UINT64_MAX;
	c->run = supervisor_begin(&c->supervisor);
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
	char why[FILE_WHY], text[24];

	if (pull_reading(c->asking ? c->rollout : c->pull)) { /* no server is late */
		config_start_limit(c);
		return;
	}
	c->soon = !c->asking && pull_give_up(c->pull);
	snprintf(why, sizeof(why), "request timed out after %s",
		settings_duration_text(c->settings->timeout_ms, text));
	if (c->asking)
		rollout_gate_give_up(c, why);
	else
		pull_failed(c, SUPERVISOR_TIMEOUT, TIMED_OUT, why);
}

static void run_due(void *arg)
{
	struct config *c = arg;
	uint64_t due_ms, now_ms = c->env->sys->now_ms();

	if (trigger_running(&c->trigger)) { /* one more run right after it */
		trigger_begin(&c->trigger, now_ms);
		arm_timer(c);
	} else if (find_due(c, &due_ms) && due_ms > now_ms) { /* the floor has risen meanwhile */
		arm_timer(c);
	} else {
		pull_submit(c->pull, expiry_ms(c));
	}
}

void config_candidate_ended(struct config *c)
{
	if (c->late) {
		c->late = false;
		arm_timer(c); /* it is due still */
	}
	requests_serve(c);
}

/* ---- watched documents ---- */

/* The version seen last: a server that compares (Nacos) would report a rejected version for ever.
 */
static const char *watched_version(void *arg)
{
	const struct watched_layer *w = arg;
	const struct config *c = w->config;
	size_t each = c->settings->verify.public_keys ? 2 : 1, i = w->layer * each;
	const char *seen = w->layer < c->settings->layer_count
				   ? pull_seen(c->bootstrapping ? c->bootstrap : c->pull, i)
				   : "";

	return seen ? seen : i < c->published.part_count ? c->published.parts[i].etag : "";
}

/* Callback: hosts hear of it at the same moment, so the spread of a push applies. */
static void document_changed(void *arg, const char *key, size_t key_len, const char *version)
{
	const struct watched_layer *w = arg;
	struct config *c = w->config;
	uint64_t spread_ms = c->settings->push_spread_ms, now_ms = c->env->sys->now_ms(), due_ms;

	(void)key, (void)key_len, (void)version;
	c->watch_changes++;
	if (trigger_due(&c->trigger, &due_ms) && due_ms <= now_ms + spread_ms)
		return; /* that pull is within the window */
	trigger_hint(&c->trigger, now_ms, sys_random_upto(c->env->sys, spread_ms));
}

/* A document that cannot be watched is pulled at the interval. */
static void start_watches(struct config *c)
{
	size_t n = c->settings->layer_count;

	free(c->watched);
	c->watched = c->env->watcher ? calloc(n + 1, sizeof(*c->watched)) : NULL;
	for (size_t i = 0; c->watched && i < n + (c->rollout ? 1 : 0); i++) {
		const struct settings_layer *layer =
			i < n ? &c->settings->layers[i] : c->settings->rollout;
		struct upstream *server = c->env->pull.servers[layer->server];
		const struct settings_server *settings = upstream_settings(server);
		struct watched_layer *w = &c->watched[c->watched_count];

		/* Nacos needs the version that is held; of a rollout none is */
		if (!settings->watch || (i == n && settings->kind == SETTINGS_NACOS))
			continue;
		*w = (struct watched_layer){
			.item = {layer->path, watched_version, document_changed, w},
			.config = c,
			.layer = i};
		c->watched_count += watch_add(c->env->watcher, settings, upstream_session(server),
					    &w->item) == 0;
	}
}

static void stop_watches(struct config *c)
{
	for (size_t i = 0; i < c->watched_count; i++)
		watch_remove(c->env->watcher, &c->watched[i].item);
	c->watched_count = 0;
}

/* The run has followed all changes that watches reported before it began. */
static void confirm_watches(struct config *c)
{
	for (size_t i = 0; c->followed == c->watch_changes && i < c->watched_count; i++)
		watch_followed(&c->watched[i].item);
}

static void fill_watches(const struct config *c, struct config_status *s)
{
	s->watched = c->watched_count;
	s->watch_changes = c->watch_changes;
	s->watch_error = "";
	for (size_t i = 0; i < c->watched_count; i++) {
		const char *error;
		enum watch_state state = watch_status(&c->watched[i].item, &error);

		if (i == 0 || state == WATCH_FAILING ||
			(state == WATCH_CONNECTING && s->watch == WATCH_ON))
			s->watch = state;
		if (error[0])
			s->watch_error = error;
	}
}

/* ---- the end of a run ---- */

static void warn_lag(struct config *c, const char *what)
{
	const struct version *v = c->rejected ? &c->rejected->version : &c->published;

	log_warn(what, "config", c->settings->name, "shown", VERSION_TEXT(v));
}

static void end_promise(struct config *c, bool shown)
{
	uint64_t wanted = c->wanted;

	if (!shown)
		warn_lag(c, "the server never showed the version that the push promised: the "
			    "interval counts");
	else if (c->lags)
		log_info("the server shows the promised version now", "config", c->settings->name,
			"repulls", LOG_U64(c->repulls));
	c->lags = false;
	c->moved = false;
	/* not if a newer promise came meanwhile */
	atomic_compare_exchange_strong(&c->topic.wanted, &wanted, 0);
}

/* The server lags behind the version that a push promised: pulls again soon, a few times, and from
 * another address if there is one. */
static bool must_repull(struct config *c)
{
	bool missing = c->outcome == CONFIG_FAILED && c->cause == KIND_CAUSE_NOT_FOUND, shown;

	if (c->wanted == 0 || (!missing && !pull_showed(c->pull)))
		return false;
	shown = pull_shows(c->pull, c->wanted);
	if (shown || c->repulls == CONFIG_REPULLS) {
		end_promise(c, shown);
		return false;
	}
	if (c->repulls == CONFIG_QUICK_REPULLS && !c->lags) {
		warn_lag(c, "the server still shows another version than the push promised: it is "
			    "asked again");
		c->lags = true;
	}
	/* a new version may be newer than the promise: then the other addresses lag */
	c->moved |= !missing && c->outcome != CONFIG_UNCHANGED && c->outcome != CONFIG_HELD;
	if (!c->moved)
		pull_avoid(c->pull);
	return true;
}

/* The server was unreachable when a hint came, which will not be repeated. A slow or overloaded one
 * keeps the supervised delay. */
static bool must_retry_hints(struct config *c)
{
	switch (c->outcome == CONFIG_FAILED ? c->cause : KIND_CAUSE_NONE) {
	case KIND_CAUSE_UNREACHABLE:
	case KIND_CAUSE_HOST:
		return c->heard != c->hints;
	case KIND_CAUSE_TIMEOUT:
	case KIND_CAUSE_OVERLOADED:
		return false;
	default:
		c->heard = c->hints;
		return false;
	}
}

static uint64_t add_jitter(struct config *c, uint64_t delay_ms, unsigned percent)
{
	return supervisor_jitter(&c->supervisor, delay_ms, percent, c->env->sys->random());
}

/* Bounds how long a backoff that the server did not ask for delays a pull. */
static void bound_backoff(struct config *c)
{
	uint64_t max_ms = c->supervisor.max_ms;

	pull_wait_until(c->pull,
		c->env->sys->now_ms() + (max_ms > SHAPER_CAP_MIN_MS ? max_ms : SHAPER_CAP_MIN_MS));
}

/* The delay of a repull, at most until the next run. */
static uint64_t repull_delay(struct config *c, uint64_t next_ms)
{
	unsigned i = c->repulls < CONFIG_REPULLS ? c->repulls++ : CONFIG_REPULLS - 1;
	uint64_t delay_ms = add_jitter(c, repull_delay_ms[i], 25);

	return delay_ms < next_ms ? delay_ms : next_ms;
}

void config_wake_waiters(struct config *c, uint64_t first, uint64_t last)
{
	struct config_waiter *w, **link = &c->waiters, *ended = NULL;

	while ((w = *link)) { /* unlinked first: a waiter may add or cancel others */
		if (w->after < first || w->after > last) {
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
}

/* Messages bring nothing new and the floor has grown: logged once a minute, by one config for all.
 */
static void warn_floor(struct config *c, uint64_t now_ms)
{
	uint64_t floor_ms = push_floor_ms(&c->floor, now_ms);
	unsigned suppressed;

	if (floor_ms > c->settings->push_min_ms && c->env->goes_on &&
		log_limit_pass(c->env->goes_on, now_ms, "floor", &suppressed))
		log_warn("messages keep coming that bring nothing new: they pull less often",
			"config", c->settings->name, "topic", c->settings->topic, "every_ms",
			LOG_U64(floor_ms));
}

static uint64_t next_run_ms(struct config *c, uint64_t now_ms)
{
	uint64_t own_ms = add_jitter(c, supervisor_delay(&c->supervisor), c->settings->jitter);
	bool again = must_repull(c) || must_retry_hints(c);

	if (!again && c->soon)
		own_ms = add_jitter(c, FAILOVER_MS, 50);
	else if (!again && pull_overloaded(c->pull)) /* spread hosts that were rejected together */
		own_ms = sys_random_upto(c->env->sys, supervisor_delay(&c->supervisor));
	if (c->own_ms == UINT64_MAX)
		c->own_ms = now_ms + own_ms;
	return again ? repull_delay(c, own_ms) : own_ms;
}

/* Schedules the next run and wakes waiters. */
static void end_run(struct config *c)
{
	uint64_t now_ms = c->env->sys->now_ms();

	push_floor_end(
		&c->floor, now_ms, (unsigned)pull_count(c->pull), c->outcome == CONFIG_PUBLISHED);
	warn_floor(c, now_ms);
	trigger_end(&c->trigger, now_ms, next_run_ms(c, now_ms));
	if (c->bootstrapping)
		swap_pulls(c);
	c->forced = false;
	bound_backoff(c);
	arm_timer(c);
	confirm_watches(c);
	config_wake_waiters(c, 0, c->run - 1);
	config_wake_waiters(c, CONFIG_ANY, CONFIG_ANY);
	if (c->env->run_ended)
		c->env->run_ended(c->env->arg, c);
	requests_serve(c);
}

void config_run_failed(
	struct config *c, enum supervisor_outcome outcome, const char *what, const char *why)
{
	supervisor_end(&c->supervisor, c->run, outcome);
	c->outcome = CONFIG_FAILED;
	config_report_failure(c, what, why);
	end_run(c);
}

void config_run_succeeded(struct config *c, enum config_outcome outcome)
{
	supervisor_end(
		&c->supervisor, c->run, c->bootstrapping ? c->missed_as : SUPERVISOR_SUCCESS);
	c->outcome = outcome;
	if (c->bootstrapping) {
		config_report_failure(c,
			"published from the bootstrap server: the server is still unreachable",
			c->missed ? c->missed : "");
	} else {
		confirm_current(c);
	}
	end_run(c);
}

/* ---- outside ---- */

struct config *config_new(const struct config_env *env, const struct settings_config *settings)
{
	struct config *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->env = env;
	c->settings = settings;
	trigger_init(&c->trigger, env->queue);
	supervisor_init(&c->supervisor, settings->interval_ms, settings->backoff_bound);
	loop_timer_init(&c->due, run_due, c);
	loop_timer_init(&c->limit, limit_passed, c);
	c->topic.topic = settings->topic;
	c->topic.trigger = &c->trigger;
	c->topic.spread_ms = settings->push_spread_ms;
	push_floor_init(&c->floor, settings->push_min_ms, env->budget);
	current_init(c);
	c->pull = pull_new(&env->pull, settings, NULL, &server_calls, c);
	if (settings->bootstrap)
		c->bootstrap =
			pull_new(&env->pull, settings, settings->bootstrap, &bootstrap_calls, c);
	c->checks = verify_new(env->sys, settings);
	if (c->pull && c->checks && !c->bootstrap == !settings->bootstrap &&
		rollout_gate_open(c) == 0)
		return c;
	config_free(c);
	return NULL;
}

void config_free(struct config *c)
{
	if (!c)
		return;
	pull_free(c->pull);
	pull_free(c->bootstrap);
	rollout_gate_close(c);
	loop_timer_cancel(c->env->loop, &c->due);
	loop_timer_cancel(c->env->loop, &c->limit);
	current_stop(c);
	verify_free(c->checks);
	stop_watches(c);
	free(c->watched);
	free(c->missed);
	free(c->error);
	free(c);
}

/* ---- the end, while others go on ---- */

bool config_at_disk(const struct config *c)
{
	return c->publishing || c->syncing || c->validating || c->tasks;
}

void config_finish_retiring(struct config *c)
{
	void (*retired)(void *arg) = c->retired;

	if (!retired || config_at_disk(c))
		return;
	c->retired = NULL;
	retired(c->retired_arg);
}

/* A run that the worker publishes ends as usual; any other ends here. */
bool config_retire(struct config *c, void (*ended)(void *arg), void *arg)
{
	c->retires = true;
	trigger_suspend(&c->trigger);
	pull_drop(c->pull);
	if (c->bootstrap)
		pull_drop(c->bootstrap);
	if (c->rollout)
		pull_drop(c->rollout);
	loop_timer_cancel(c->env->loop, &c->due);
	loop_timer_cancel(c->env->loop, &c->limit);
	stop_watches(c);
	current_retire(c);
	if (!c->publishing && trigger_running(&c->trigger))
		trigger_end(&c->trigger, c->env->sys->now_ms(), TRIGGER_NO_NEXT);
	if (ended)
		operations_cancel_change(c);
	if (!config_at_disk(c))
		return true;
	c->retired = ended;
	c->retired_arg = arg;
	return false;
}

/* How long a pull that no caller waits for is delayed. */
static uint64_t splay_ms(struct config *c)
{
	uint64_t bound = c->settings->interval_ms;

	if (c->env->once || c->published.generation == 0 || !pull_covers(c->pull, &c->published))
		return 0;
	return sys_random_upto(c->env->sys, bound < CONFIG_SPLAY_MS ? bound : CONFIG_SPLAY_MS);
}

void config_start(struct config *c, bool now)
{
	c->started_ms = c->env->sys->now_ms();
	current_start(c);
	if (!config_suspended(c))
		start_watches(c);
	set_due(c, now ? 0 : splay_ms(c));
}

void config_resumed(struct config *c)
{
	uint64_t due_ms, now_ms = c->env->sys->now_ms();

	if (trigger_due(&c->trigger, &due_ms) && due_ms < now_ms && !pull_waiting(c->pull))
		set_due(c, splay_ms(c));
	arm_timer(c);
}

void config_called(struct trigger *t)
{
	struct config *c = (struct config *)((char *)t - offsetof(struct config, trigger));

	arm_timer(c);
}

void config_refresh(struct config *c, bool forced)
{
	if (config_suspended(c))
		return;
	c->force |= forced;
	pull_lift(c->pull);
	set_due(c, 0);
}

void config_suspension_began(struct config *c)
{
	stop_watches(c);
	trigger_suspend(&c->trigger);
	arm_timer(c);
	if (c->image && c->confirmed_ms)
		image_confirm(c->image, c->confirmed_ms, readers_stale_ms(c));
}

void config_suspension_ended(struct config *c)
{
	uint64_t now_ms = c->env->sys->now_ms();

	c->resumed_ms = now_ms;
	if (c->image && c->confirmed_ms)
		image_confirm(c->image, c->confirmed_ms, readers_stale_ms(c));
	start_watches(c);
	set_due(c, splay_ms(c));
}

void config_wait(struct config *c, struct config_waiter *w)
{
	w->after = c->run;
	w->next = c->waiters;
	c->waiters = w;
}

void config_wait_any(struct config *c, struct config_waiter *w)
{
	config_wait(c, w);
	w->after = CONFIG_ANY;
}

bool config_has_published(const struct config *c, uint64_t generation, const char *version)
{
	const struct version *v = &c->published;

	if (v->generation == 0 || v->generation < generation)
		return false;
	for (size_t i = 0; version[0] && i < v->part_count; i++)
		if (etag_hash(v->parts[i].etag) == etag_hash(version))
			return true;
	return !version[0];
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

size_t config_place(const struct config *c)
{
	return c->place;
}

void config_set_place(struct config *c, size_t place)
{
	c->place = place;
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
	age = c->env->sys->wall_ms() - c->published.pulled_ms; /* an upper bound */
	return age > 0 ? age : 0;
}

/* waiting | ok | failing | stale; an expired signature makes it stale too. */
static const char *state_text(const struct config *c)
{
	uint64_t confirmed_ms = c->confirmed_ms ? c->confirmed_ms : c->started_ms;

	if (c->published.generation && c->expires_ms <= c->env->sys->wall_ms())
		return "stale";
	if (c->published.generation == 0)
		return "waiting";
	if (c->env->sys->now_ms() - confirmed_ms > config_stale_ms(c))
		return "stale";
	return c->error ? "failing" : "ok";
}

static void fill_rejections(const struct config *c, struct config_status *s)
{
	for (int i = 0; i < CHECK_COUNT; i++) {
		s->rejections += c->rejections[i];
		s->rejections_by[i] = c->rejections[i];
	}
	if (!c->rejected)
		return;
	s->rejected = c->rejected;
	s->held = rejection_is_held(c->rejected->reason);
	s->rejected_is_error = !s->held && strcmp(c->rejected->why, s->last_error) == 0;
}

static void fill_decisions(const struct config *c, struct config_status *s)
{
	if (!c->ledger)
		return;
	s->pin = c->ledger->pin.by ? &c->ledger->pin : NULL;
	s->suspension = config_suspended(c) ? &c->ledger->suspension : NULL;
	s->overrides = c->ledger->overrides;
	s->override_count = c->ledger->override_count;
}

static void fill_next_pull(const struct config *c, struct config_status *s)
{
	uint64_t due_ms, now_ms = c->env->sys->now_ms();

	s->running = trigger_running(&c->trigger);
	s->waiting = pull_waiting(c->pull);
	s->server = pull_server(c->pull);
	pull_url(c->pull, s->url);
	s->next_pull_in_ms = -1;
	if (find_due(c, &due_ms))
		s->next_pull_in_ms = due_ms > now_ms ? (int64_t)(due_ms - now_ms) : 0;
}

void config_status(struct config *c, struct config_status *ret_status)
{
	*ret_status = (struct config_status){
		.settings = c->settings,
		.version = &c->published,
		.supervisor = &c->supervisor,
		.state = state_text(c),
		.last_error = error_text(c),
		.cause = c->error ? c->cause : KIND_CAUSE_NONE,
		.last_error_ms = c->error_wall_ms,
		.failing_since_ms = c->failing_wall_ms,
		.published_ms = c->published_wall_ms,
		.confirmed_ms = c->confirmed_wall_ms,
		.age_ms = age_ms(c),
		.outcome = c->outcome,
		.expires_ms = c->expires_ms,
		.drifted = c->drifted,
		.restored = c->restored,
		.pushes = atomic_load_explicit(&c->topic.messages, memory_order_relaxed),
	};
	if (c->settings->snapshot)
		snprintf(ret_status->snapshot, sizeof(ret_status->snapshot), "%s/%s.snap",
			c->env->runtime_dir, c->settings->name);
	fill_next_pull(c, ret_status);
	fill_watches(c, ret_status);
	fill_rejections(c, ret_status);
	fill_decisions(c, ret_status);
	ret_status->has_notify = c->notify;
	if (c->notify)
		notify_status(c->notify, &ret_status->notify);
}
