/*
 * One config's circulation: the trigger says when, the servers when they have room, the gather
 * brings documents, pipeline.c decides what becomes of them, the supervisor says when again.
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

static const char timed_out[] = "the server timed out: the old version stays, pulls slow down";
/* From a run that an address let run into its time limit to the next, at another address. */
#define FAILOVER_MS 500
#define PATIENCE_MS 300000u
static const uint64_t repull_delay_ms[CONFIG_REPULLS] = {
	50, 200, 1000, 2000, 4000, 8000, 16000, 32000};

/* A pull that found no slot for so long is told as rejected; no hold alone is that long. */
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

/* What only hints ask for waits for the floor, but not beyond the moment that an order or the
 * interval has set. While it is suspended, what others fire or hint waits until it resumes. */
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

/* The trigger's word decides whether the timer is armed, and whether a run that waits for the
 * server is still wanted. */
static void arm(struct config *c)
{
	uint64_t due_ms;
	bool is_set = trigger_due(&c->trigger, &due_ms) && !config_suspended(c);

	if (c->retires)
		return;
	if (!c->bootstrapping && pull_waiting(c->gather)) {
		if (is_set && due_ms <= c->env->sys->now_ms()) {
			pull_submit(c->gather, expiry_ms(c));
			return;
		}
		pull_withdraw(c->gather);
	}
	if (find_due(c, &due_ms))
		loop_timer_set(c->env->loop, &c->due, due_ms);
	else
		loop_timer_cancel(c->env->loop, &c->due);
}

/* The last word, whatever was said before. */
static void order(struct config *c, uint64_t delay_ms)
{
	uint64_t now_ms = c->env->sys->now_ms();

	c->own_ms = now_ms + delay_ms;
	trigger_fire(&c->trigger, now_ms, delay_ms);
}

/* ---- telling ---- */

static const char *error_of(const struct config *c)
{
	return c->error ? c->error : "";
}

/* Each config tells of its own failure once; what goes on, one tells for all. */
static bool may_complain(
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

/* The same where there is no old version. */
static const char *with_nothing(const char *what, char *ret_text, size_t size)
{
	static const char stays[] = ": the old version stays";
	size_t len = strlen(what), end = sizeof(stays) - 1;

	if (len < end || strcmp(what + len - end, stays) != 0)
		return what;
	snprintf(ret_text, size, "%.*s: nothing is published yet", (int)(len - end), what);
	return ret_text;
}

void config_complain(struct config *c, const char *what, const char *why)
{
	unsigned suppressed;
	char text[160];

	if (c->published.generation == 0 && !c->env->dry_run)
		what = with_nothing(what, text, sizeof(text));
	free(c->error);
	c->error = strdup(why[0] ? why : what);
	c->error_wall_ms = c->env->sys->wall_ms();
	if (!c->failing_wall_ms)
		c->failing_wall_ms = c->error_wall_ms;
	if (may_complain(c, what, why, &suppressed))
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
		log_info("all is well again", "config", c->settings->name);
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

/* What the run is to bring, as far as anybody said so. Newer hints are worth trying for again. */
static void take_hints(struct config *c)
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
	push_floor_begin(&c->floor, c->env->sys->now_ms(), c->own_ms > c->env->sys->now_ms());
	c->own_ms = UINT64_MAX;
	c->run = supervisor_begin(&c->supervisor);
	/* before the request: a message lost from here on is caught up with */
	atomic_store_explicit(&c->topic.pulled, true, memory_order_release);
	c->soon = false;
	take_hints(c);
	c->forced = c->force;
	c->force = false;
	version_start_late(c);
	pull_hold(c->gather, version_held(c), c->forced);
	config_start_limit(c);
	arm(c);
	return true;
}

/* ---- the bootstrap ---- */

static void change_places(struct config *c)
{
	struct pull *other = c->gather;

	c->gather = c->bootstrap;
	c->bootstrap = other;
	c->bootstrapping = !c->bootstrapping;
}

/* Nothing stands, and nothing came: another server is asked, within the same run. */
static bool turn_to_bootstrap(struct config *c, enum supervisor_outcome outcome, const char *why)
{
	if (!c->bootstrap || c->bootstrapping || c->published.generation || c->saved_generation)
		return false;
	free(c->missed);
	c->missed = strdup(why);
	c->missed_as = outcome;
	log_warn("the server did not bring it: asking the bootstrap", "config", c->settings->name,
		"why", why);
	change_places(c);
	pull_submit(c->gather, expiry_ms(c));
	return true;
}

static bool begin_bootstrap(void *arg)
{
	struct config *c = arg;

	pull_hold(c->gather, NULL, c->forced);
	config_start_limit(c);
	return true;
}

/* What no server brought. */
static void pull_failed(
	struct config *c, enum supervisor_outcome outcome, const char *what, const char *why)
{
	char both[FILE_WHY];

	if (!c->bootstrapping)
		c->cause = pull_cause(c->gather);
	if (turn_to_bootstrap(c, outcome, why))
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

static void gathered(void *arg, enum pull_outcome outcome, const char *why)
{
	struct config *c = arg;

	loop_timer_cancel(c->env->loop, &c->limit);
	if ((outcome == PULL_NEW || outcome == PULL_SAME) && !c->bootstrapping)
		c->cause = KIND_CAUSE_NONE;
	switch (outcome) {
	case PULL_NEW:
		version_gathered(c);
		return;
	case PULL_SAME:
		version_unchanged(c);
		return;
	case PULL_TIMEOUT:
		pull_failed(c, SUPERVISOR_TIMEOUT, timed_out, why);
		return;
	case PULL_FAILED:
		pull_failed(c, SUPERVISOR_FAILED, "pull failed: the old version stays", why);
		return;
	case PULL_REJECTED:
		pull_failed(c, SUPERVISOR_REJECTED, "pull could not be started", why);
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
	c->own_ms = UINT64_MAX;
	c->run = supervisor_begin(&c->supervisor);
	pull_failed(c, SUPERVISOR_REJECTED, "pull could not be started", why);
}

static void bootstrap_lost(void *arg, const char *why)
{
	pull_failed(arg, SUPERVISOR_REJECTED, "pull could not be started", why);
}

static const struct pull_calls gather_calls = {begin_run, gathered, lost};
static const struct pull_calls bootstrap_calls = {begin_bootstrap, gathered, bootstrap_lost};

static void limit_passed(void *arg)
{
	struct config *c = arg;
	char why[FILE_WHY];

	if (pull_reading(c->asking ? c->rollout : c->gather)) { /* no server is late */
		config_start_limit(c);
		return;
	}
	c->soon = !c->asking && pull_give_up(c->gather);
	snprintf(why, sizeof(why), "no whole answer within the time limit of %llu ms",
		(unsigned long long)c->settings->timeout_ms);
	if (c->asking)
		rollout_give_up(c, why);
	else
		pull_failed(c, SUPERVISOR_TIMEOUT, timed_out, why);
}

static void due(void *arg)
{
	struct config *c = arg;
	uint64_t due_ms, now_ms = c->env->sys->now_ms();

	if (trigger_running(&c->trigger)) { /* one more run right after it */
		trigger_begin(&c->trigger, now_ms);
		arm(c);
	} else if (find_due(c, &due_ms) && due_ms > now_ms) { /* the floor has risen meanwhile */
		arm(c);
	} else {
		pull_submit(c->gather, expiry_ms(c));
	}
}

void config_free_for_run(struct config *c)
{
	if (c->late) {
		c->late = false;
		arm(c); /* it is due still */
	}
	version_grant(c);
}

/* ---- watched documents ---- */

/* What was seen of it last: else a server that compares (Nacos) would tell of the same change again
 * and again, when that was refused. */
static const char *held_version(void *arg)
{
	const struct watched_layer *w = arg;
	const struct config *c = w->config;
	size_t each = c->settings->verify.public_keys ? 2 : 1, i = w->layer * each;
	const char *seen = w->layer < c->settings->layer_count
				   ? pull_seen(c->bootstrapping ? c->bootstrap : c->gather, i)
				   : "";

	return seen ? seen : i < c->published.part_count ? c->published.parts[i].etag : "";
}

/* All hosts are told at the same moment: the spread of a push counts here, too. */
static void told(void *arg, const char *key, size_t key_len, const char *version)
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

/* What cannot be watched is pulled at the interval. */
static void watch(struct config *c)
{
	size_t n = c->settings->layer_count;

	free(c->watched);
	c->watched = c->env->watcher ? calloc(n + 1, sizeof(*c->watched)) : NULL;
	for (size_t i = 0; c->watched && i < n + (c->rollout ? 1 : 0); i++) {
		const struct settings_layer *layer =
			i < n ? &c->settings->layers[i] : c->settings->rollout;
		struct upstream *server = c->env->gather.servers[layer->server];
		const struct settings_server *settings = upstream_settings(server);
		struct watched_layer *w = &c->watched[c->watched_count];

		/* Nacos must be told what is held, and of a rollout nothing is */
		if (!settings->watch || (i == n && settings->kind == SETTINGS_NACOS))
			continue;
		*w = (struct watched_layer){
			.item = {layer->path, held_version, told, w}, .config = c, .layer = i};
		c->watched_count += watch_add(c->env->watcher, settings, upstream_session(server),
					    &w->item) == 0;
	}
}

static void unwatch(struct config *c)
{
	for (size_t i = 0; i < c->watched_count; i++)
		watch_remove(c->env->watcher, &c->watched[i].item);
	c->watched_count = 0;
}

/* A run has ended; what watches told of since it began is to be followed yet. */
static void tell_watches(struct config *c)
{
	for (size_t i = 0; c->followed == c->watch_changes && i < c->watched_count; i++)
		watch_followed(&c->watched[i].item);
}

static void fill_watch_status(const struct config *c, struct config_status *s)
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

static void tell_lag(struct config *c, const char *what)
{
	const struct version *v = c->away ? &c->away->version : &c->published;

	log_warn(what, "config", c->settings->name, "shown", VERSION_TEXT(v));
}

/* The promise is kept, or given up. */
static void end_promise(struct config *c, bool shown)
{
	uint64_t wanted = c->wanted;

	if (!shown)
		tell_lag(c, "the server never showed the version that the push promised: the "
			    "interval counts");
	else if (c->lags)
		log_info("the server shows the promised version now", "config", c->settings->name,
			"repulls", LOG_U64(c->repulls));
	c->lags = false;
	c->moved = false;
	/* not if a newer promise came meanwhile */
	atomic_compare_exchange_strong(&c->topic.wanted, &wanted, 0);
}

/* A push promised a version. Showing another one, the server lags: ask again soon, some times, and
 * elsewhere where there is another address. */
static bool must_repull(struct config *c)
{
	bool missing = c->outcome == CONFIG_FAILED && c->cause == KIND_CAUSE_NOT_FOUND, shown;

	if (c->wanted == 0 || (!missing && !pull_showed(c->gather)))
		return false;
	shown = pull_shows(c->gather, c->wanted);
	if (shown || c->repulls == CONFIG_REPULLS) {
		end_promise(c, shown);
		return false;
	}
	if (c->repulls == CONFIG_QUICK_REPULLS && !c->lags) {
		tell_lag(c, "the server still shows another version than the push promised: it is "
			    "asked again");
		c->lags = true;
	}
	/* what is new may be newer than the promise, and than others that are still on their way:
	 * then the other addresses are those that lag, until a promise of it comes */
	c->moved |= !missing && c->outcome != CONFIG_UNCHANGED && c->outcome != CONFIG_HELD;
	if (!c->moved)
		pull_avoid(c->gather);
	return true;
}

/* A push or a watch told of something, and the server was not to be reached: nobody will tell of it
 * again. Where it was too slow, or overloaded, the supervised delay counts all the same. */
static bool must_follow(struct config *c)
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

/* A delay with jitter, so that the hosts of a fleet do not fall into step. */
static uint64_t jittered(struct config *c, uint64_t delay_ms, unsigned percent)
{
	return supervisor_jitter(&c->supervisor, delay_ms, percent, c->env->sys->random());
}

/* Rests that the server did not ask for keep a pull waiting for no longer than the bound. */
static void bound_waiting(struct config *c)
{
	uint64_t max_ms = c->supervisor.max_ms;

	pull_wait_until(c->gather,
		c->env->sys->now_ms() + (max_ms > SHAPER_CAP_MIN_MS ? max_ms : SHAPER_CAP_MIN_MS));
}

/* When to ask again what must be asked for again; at the latest when it is due anyway. */
static uint64_t repull_ms(struct config *c, uint64_t next_ms)
{
	unsigned i = c->repulls < CONFIG_REPULLS ? c->repulls++ : CONFIG_REPULLS - 1;
	uint64_t delay_ms = jittered(c, repull_delay_ms[i], 25);

	return delay_ms < next_ms ? delay_ms : next_ms;
}

void config_tell(struct config *c, uint64_t first, uint64_t last)
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

/* The floor of a config on which messages pull in vain has grown: said once a minute, by one config
 * for all. */
static void tell_floor(struct config *c, uint64_t now_ms)
{
	uint64_t floor_ms = push_floor_ms(&c->floor, now_ms);
	unsigned suppressed;

	if (floor_ms > c->settings->push_min_ms && c->env->goes_on &&
		log_limit_pass(c->env->goes_on, now_ms, "floor", &suppressed))
		log_warn("messages keep coming that bring nothing new: they pull less often",
			"config", c->settings->name, "topic", c->settings->topic, "every_ms",
			LOG_U64(floor_ms));
}

/* When the next run is due: of its own, and sooner if it must ask again. */
static uint64_t find_next_ms(struct config *c, uint64_t now_ms)
{
	uint64_t own_ms = jittered(c, supervisor_delay(&c->supervisor), c->settings->jitter);
	bool again = must_repull(c) || must_follow(c);

	if (!again && c->soon)
		own_ms = jittered(c, FAILOVER_MS, 50);
	else if (!again && pull_overloaded(c->gather)) /* not all who were rejected in step */
		own_ms = sys_random_upto(c->env->sys, supervisor_delay(&c->supervisor));
	if (c->own_ms == UINT64_MAX)
		c->own_ms = now_ms + own_ms;
	return again ? repull_ms(c, own_ms) : own_ms;
}

/* Whatever the run came to: the next one is due, those who waited are told. */
static void run_ended(struct config *c)
{
	uint64_t now_ms = c->env->sys->now_ms();

	push_floor_end(
		&c->floor, now_ms, (unsigned)pull_count(c->gather), c->outcome == CONFIG_PUBLISHED);
	tell_floor(c, now_ms);
	trigger_end(&c->trigger, now_ms, find_next_ms(c, now_ms));
	if (c->bootstrapping)
		change_places(c);
	c->forced = false;
	bound_waiting(c);
	arm(c);
	tell_watches(c);
	config_tell(c, 0, c->run - 1);
	config_tell(c, CONFIG_ANY, CONFIG_ANY);
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

void config_run_succeeded(struct config *c, enum config_outcome outcome)
{
	supervisor_end(
		&c->supervisor, c->run, c->bootstrapping ? c->missed_as : SUPERVISOR_SUCCESS);
	c->outcome = outcome;
	if (c->bootstrapping) {
		config_complain(c,
			"what the bootstrap has is published: the server is still to be "
			"reached",
			c->missed ? c->missed : "");
	} else {
		confirm(c);
	}
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
	trigger_init(&c->trigger, env->queue);
	supervisor_init(&c->supervisor, settings->interval_ms, settings->backoff_bound);
	loop_timer_init(&c->due, due, c);
	loop_timer_init(&c->limit, limit_passed, c);
	c->topic.topic = settings->topic;
	c->topic.trigger = &c->trigger;
	c->topic.spread_ms = settings->push_spread_ms;
	push_floor_init(&c->floor, settings->push_min_ms, env->budget);
	version_init(c);
	c->gather = pull_new(&env->gather, settings, NULL, &gather_calls, c);
	if (settings->bootstrap)
		c->bootstrap =
			pull_new(&env->gather, settings, settings->bootstrap, &bootstrap_calls, c);
	c->checks = verify_new(env->sys, settings);
	if (c->gather && c->checks && !c->bootstrap == !settings->bootstrap && rollout_open(c) == 0)
		return c;
	config_free(c);
	return NULL;
}

void config_free(struct config *c)
{
	if (!c)
		return;
	pull_free(c->gather);
	pull_free(c->bootstrap);
	rollout_close(c);
	loop_timer_cancel(c->env->loop, &c->due);
	loop_timer_cancel(c->env->loop, &c->limit);
	version_stop(c);
	verify_free(c->checks);
	unwatch(c);
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

/* Something of it was under way on the worker: is it still? */
void config_retire_on(struct config *c)
{
	void (*retired)(void *arg) = c->retired;

	if (!retired || config_at_disk(c))
		return;
	c->retired = NULL;
	retired(c->retired_arg);
}

/* A run whose version the worker is at ends as ever; any other one ends here. */
bool config_retire(struct config *c, void (*ended)(void *arg), void *arg)
{
	c->retires = true;
	trigger_suspend(&c->trigger);
	pull_drop(c->gather);
	if (c->bootstrap)
		pull_drop(c->bootstrap);
	if (c->rollout)
		pull_drop(c->rollout);
	loop_timer_cancel(c->env->loop, &c->due);
	loop_timer_cancel(c->env->loop, &c->limit);
	unwatch(c);
	version_retire(c);
	if (!c->publishing && trigger_running(&c->trigger))
		trigger_end(&c->trigger, c->env->sys->now_ms(), TRIGGER_NO_NEXT);
	if (ended)
		operate_forgo(c);
	if (!config_at_disk(c))
		return true;
	c->retired = ended;
	c->retired_arg = arg;
	return false;
}

/* How long a pull that nobody waits for may be put off. */
static uint64_t splay_ms(struct config *c)
{
	uint64_t bound = c->settings->interval_ms;

	if (c->env->once || c->published.generation == 0 || !pull_covers(c->gather, &c->published))
		return 0;
	return sys_random_upto(c->env->sys, bound < CONFIG_SPLAY_MS ? bound : CONFIG_SPLAY_MS);
}

void config_start(struct config *c, bool now)
{
	c->started_ms = c->env->sys->now_ms();
	version_start(c);
	if (!config_suspended(c))
		watch(c);
	order(c, now ? 0 : splay_ms(c));
}

void config_resumed(struct config *c)
{
	uint64_t due_ms, now_ms = c->env->sys->now_ms();

	if (trigger_due(&c->trigger, &due_ms) && due_ms < now_ms && !pull_waiting(c->gather))
		order(c, splay_ms(c));
	arm(c);
}

void config_called(struct trigger *t)
{
	struct config *c = (struct config *)((char *)t - offsetof(struct config, trigger));

	arm(c);
}

void config_refresh(struct config *c, bool forced)
{
	if (config_suspended(c))
		return;
	c->force |= forced;
	pull_lift(c->gather);
	order(c, 0);
}

void config_suspension_began(struct config *c)
{
	unwatch(c);
	trigger_suspend(&c->trigger);
	arm(c);
	if (c->image && c->confirmed_ms)
		image_confirm(c->image, c->confirmed_ms, readers_stale_ms(c));
}

void config_suspension_ended(struct config *c)
{
	uint64_t now_ms = c->env->sys->now_ms();

	c->resumed_ms = now_ms;
	if (c->image && c->confirmed_ms)
		image_confirm(c->image, c->confirmed_ms, readers_stale_ms(c));
	watch(c);
	order(c, splay_ms(c));
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

bool config_stands(const struct config *c, uint64_t generation, const char *version)
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
	age = c->env->sys->wall_ms() - c->published.pulled_ms; /* it cannot be more */
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
	else if (now_ms - (c->confirmed_ms ? c->confirmed_ms : c->started_ms) > config_stale_ms(c))
		state = "stale";
	else if (c->error)
		state = "failing";
	*ret_status = (struct config_status){
		.settings = c->settings,
		.version = &c->published,
		.supervisor = &c->supervisor,
		.state = state,
		.last_error = error_of(c),
		.cause = c->error ? c->cause : KIND_CAUSE_NONE,
		.last_error_ms = c->error_wall_ms,
		.failing_since_ms = c->failing_wall_ms,
		.published_ms = c->published_wall_ms,
		.confirmed_ms = c->confirmed_wall_ms,
		.age_ms = age,
		.next_pull_in_ms = -1,
		.running = trigger_running(&c->trigger),
		.waiting = pull_waiting(c->gather),
		.server = pull_server(c->gather),
		.outcome = c->outcome,
		.expires_ms = c->expires_ms,
		.drifted = c->drifted,
		.pin = c->ledger && c->ledger->pin.by ? &c->ledger->pin : NULL,
		.suspension = config_suspended(c) ? &c->ledger->suspension : NULL,
		.restored = c->restored,
		.pushes = atomic_load_explicit(&c->topic.messages, memory_order_relaxed),
	};
	fill_watch_status(c, ret_status);
	if (c->settings->snapshot)
		snprintf(ret_status->snapshot, sizeof(ret_status->snapshot), "%s/%s.snap",
			c->env->runtime_dir, c->settings->name);
	pull_url(c->gather, ret_status->url);
	if (find_due(c, &due_ms))
		ret_status->next_pull_in_ms = due_ms > now_ms ? (int64_t)(due_ms - now_ms) : 0;
	for (int i = 0; i < CHECK_COUNT; i++) {
		ret_status->refused += c->refused[i];
		ret_status->rejections_by[i] = c->refused[i];
	}
	if (c->away) {
		ret_status->away_check = c->away->check;
		ret_status->away_why = c->away->why;
		ret_status->away = &c->away->version;
		ret_status->held = version_is_held(c->away);
		ret_status->away_failed =
			!ret_status->held && strcmp(c->away->why, ret_status->last_error) == 0;
	}
	if (c->ledger) {
		ret_status->overrides = c->ledger->overrides;
		ret_status->override_count = c->ledger->override_count;
	}
	ret_status->has_aftermath = c->aftermath;
	if (c->aftermath)
		notify_status(c->aftermath, &ret_status->aftermath);
}
