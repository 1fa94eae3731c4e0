/*
 * When the next run is: the interval or the supervised backoff, sooner after a hint that was not
 * followed or a promise that was not kept.
 *
 * Surprising: the delay of a run is not decided when it is due, but when the one before ends.
 */
#include "config/core.h"

#define PATIENCE_MS 300000u
/* From a run that an address let run into its time limit to the next, at another address. */
#define FAILOVER_MS 500
static const uint64_t repull_delay_ms[CONFIG_REPULLS] = {
	50, 200, 1000, 2000, 4000, 8000, 16000, 32000};

/* A pull without a slot until then is rejected; no backoff alone is that long. */
uint64_t schedule_expiry_ms(const struct config *c)
{
	uint64_t max_ms = c->run.supervisor.max_ms;

	return c->env->sys->now_ms() + (max_ms > PATIENCE_MS ? max_ms : PATIENCE_MS);
}

bool config_suspended(const struct config *c)
{
	return c->decisions.ledger && c->decisions.ledger->suspension && !c->env->once;
}

/* Hints wait for the floor, but not beyond the moment that set_due() or the interval has set; while
 * suspended nothing is due. */
bool schedule_find_due(const struct config *c, uint64_t *ret_due_ms)
{
	uint64_t ready_ms = push_floor_ready_ms(&c->run.floor, c->env->sys->now_ms());

	if (config_suspended(c) || !trigger_due(&c->run.trigger, ret_due_ms))
		return false;
	if (ready_ms > c->run.own_ms)
		ready_ms = c->run.own_ms;
	if (*ret_due_ms < ready_ms)
		*ret_due_ms = ready_ms;
	return true;
}

/* Arms the timer by the trigger; withdraws a queued pull that is not due any more. */
void schedule_arm_timer(struct config *c)
{
	uint64_t due_ms;
	bool is_set = trigger_due(&c->run.trigger, &due_ms) && !config_suspended(c);

	if (c->mode == MODE_RETIRING)
		return;
	if (!c->run.bootstrapping && pull_waiting(c->run.pull)) {
		if (is_set && due_ms <= c->env->sys->now_ms()) {
			pull_submit(c->run.pull, schedule_expiry_ms(c));
			return;
		}
		pull_withdraw(c->run.pull);
	}
	if (schedule_find_due(c, &due_ms))
		loop_timer_set(c->env->loop, &c->run.due, due_ms);
	else
		loop_timer_cancel(c->env->loop, &c->run.due);
}

/* Overrides any earlier due time. */
void schedule_set_due(struct config *c, uint64_t delay_ms)
{
	uint64_t now_ms = c->env->sys->now_ms();

	c->run.own_ms = now_ms + delay_ms;
	trigger_fire(&c->run.trigger, now_ms, delay_ms);
}

/* ---- the next run ---- */

static void warn_lag(struct config *c, const char *what)
{
	const struct version *v = latest_version(c);

	log_warn(what, "config", c->settings->name, "shown", v ? VERSION_TEXT(v) : NULL);
}

static void end_promise(struct config *c, bool shown)
{
	uint64_t wanted = c->run.wanted;

	/* not if a newer promise came meanwhile; before the line, whose reader may make the same
	 * promise again */
	atomic_compare_exchange_strong(&c->run.topic.wanted, &wanted, 0);
	if (!shown)
		warn_lag(c, "the server never showed the version that the push promised: the "
			    "interval counts");
	else if (c->run.lags)
		log_info("the server shows the promised version now", "config", c->settings->name,
			"repulls", LOG_U64(c->run.repulls));
	c->run.lags = false;
	c->run.moved = false;
}

/* The server lags behind the version that a push promised: pulls again soon, a few times, and from
 * another address if there is one. */
static bool must_repull(struct config *c)
{
	bool missing = c->status.outcome == CONFIG_FAILED && c->run.cause == KIND_CAUSE_NOT_FOUND,
	     shown;

	if (c->run.wanted == 0 || (!missing && !pull_showed(c->run.pull)))
		return false;
	shown = pull_shows(c->run.pull, c->run.wanted);
	if (shown || c->run.repulls == CONFIG_REPULLS) {
		end_promise(c, shown);
		return false;
	}
	if (c->run.repulls == CONFIG_QUICK_REPULLS && !c->run.lags) {
		warn_lag(c, "the server still shows another version than the push promised: it is "
			    "asked again");
		c->run.lags = true;
	}
	/* a new version may be newer than the promise: then the other addresses lag */
	c->run.moved |= !missing && c->status.outcome != CONFIG_UNCHANGED &&
			c->status.outcome != CONFIG_HELD;
	if (!c->run.moved)
		pull_avoid(c->run.pull);
	return true;
}

/* The server was unreachable when a hint came, which will not be repeated. A slow or overloaded one
 * keeps the supervised delay. */
static bool must_retry_hints(struct config *c)
{
	switch (c->status.outcome == CONFIG_FAILED ? c->run.cause : KIND_CAUSE_NONE) {
	case KIND_CAUSE_UNREACHABLE:
	case KIND_CAUSE_HOST:
		return c->run.heard != c->run.hints;
	case KIND_CAUSE_TIMEOUT:
	case KIND_CAUSE_OVERLOADED:
		return false;
	default:
		c->run.heard = c->run.hints;
		return false;
	}
}

static uint64_t add_jitter(struct config *c, uint64_t delay_ms, unsigned percent)
{
	return supervisor_jitter(&c->run.supervisor, delay_ms, percent, c->env->sys->random());
}

/* Bounds how long a backoff that the server did not ask for delays a pull. */
void schedule_bound_backoff(struct config *c)
{
	uint64_t max_ms = c->run.supervisor.max_ms;

	pull_wait_until(c->run.pull,
		c->env->sys->now_ms() + (max_ms > SHAPER_CAP_MIN_MS ? max_ms : SHAPER_CAP_MIN_MS));
}

/* The delay of a repull, at most until the next run. */
static uint64_t repull_delay(struct config *c, uint64_t next_ms)
{
	unsigned i = c->run.repulls < CONFIG_REPULLS ? c->run.repulls++ : CONFIG_REPULLS - 1;
	uint64_t delay_ms = add_jitter(c, repull_delay_ms[i], 25);

	return delay_ms < next_ms ? delay_ms : next_ms;
}

/* Messages bring nothing new and the floor has grown: logged once a minute, by one config for all.
 */
void schedule_warn_floor(struct config *c, uint64_t now_ms)
{
	uint64_t floor_ms = push_floor_ms(&c->run.floor, now_ms);
	unsigned suppressed;

	if (floor_ms > c->settings->push_min_ms && c->env->goes_on &&
		log_limit_pass(c->env->goes_on, now_ms, "floor", &suppressed))
		log_warn("messages keep coming that bring nothing new: they pull less often",
			"config", c->settings->name, "topic", c->settings->topic, "every_ms",
			LOG_U64(floor_ms));
}

uint64_t schedule_next_run(struct config *c, uint64_t now_ms)
{
	uint64_t own_ms = add_jitter(c, supervisor_delay(&c->run.supervisor), c->settings->jitter);
	bool again = must_repull(c) || must_retry_hints(c);

	if (!again)
		c->run.heard_us = 0;
	if (!again && c->run.soon)
		own_ms = add_jitter(c, FAILOVER_MS, 50);
	else if (!again &&
		 pull_overloaded(c->run.pull)) /* spread hosts that were rejected together */
		own_ms = sys_random_upto(c->env->sys, supervisor_delay(&c->run.supervisor));
	if (c->run.own_ms == UINT64_MAX)
		c->run.own_ms = now_ms + own_ms;
	return again ? repull_delay(c, own_ms) : own_ms;
}

/* ---- who asks for a run ---- */

static void run_due(void *arg)
{
	struct config *c = arg;
	uint64_t due_ms, now_ms = c->env->sys->now_ms();

	if (trigger_running(&c->run.trigger)) { /* one more run right after it */
		trigger_begin(&c->run.trigger, now_ms);
		schedule_arm_timer(c);
	} else if (schedule_find_due(c, &due_ms) &&
		   due_ms > now_ms) { /* the floor has risen meanwhile */
		schedule_arm_timer(c);
	} else {
		pull_submit(c->run.pull, schedule_expiry_ms(c));
	}
}

/* How long a pull that no caller waits for is delayed. */
static uint64_t splay_ms(struct config *c)
{
	uint64_t bound = c->settings->interval_ms;

	if (c->env->once || c->current.version.generation == 0 ||
		!pull_covers(c->run.pull, &c->current.version))
		return 0;
	return sys_random_upto(c->env->sys, bound < CONFIG_SPLAY_MS ? bound : CONFIG_SPLAY_MS);
}

void config_start(struct config *c, bool now)
{
	c->status.started_ms = c->env->sys->now_ms();
	current_start(c);
	if (!config_suspended(c))
		watches_start(c);
	config_note_order(c, CAUSE_START, NULL);
	schedule_set_due(c, now ? 0 : splay_ms(c));
}

void config_resumed(struct config *c)
{
	uint64_t due_ms, now_ms = c->env->sys->now_ms();

	if (trigger_due(&c->run.trigger, &due_ms) && due_ms < now_ms && !pull_waiting(c->run.pull))
		schedule_set_due(c, splay_ms(c));
	schedule_arm_timer(c);
}

void config_called(struct trigger *t)
{
	struct config *c = (struct config *)((char *)t - offsetof(struct config, run.trigger));

	schedule_arm_timer(c);
}

void config_refresh(struct config *c, bool forced)
{
	if (config_suspended(c))
		return;
	c->run.force |= forced;
	pull_lift(c->run.pull);
	schedule_set_due(c, 0);
}

void run_suspension_began(struct config *c)
{
	status_forget_outage(c);
	watches_stop(c);
	trigger_suspend(&c->run.trigger);
	schedule_arm_timer(c);
	if (c->current.image && c->status.confirmed_ms)
		image_confirm(c->current.image, c->status.confirmed_ms, status_readers_stale_ms(c));
}

void run_suspension_ended(struct config *c)
{
	uint64_t now_ms = c->env->sys->now_ms();

	c->status.resumed_ms = now_ms;
	if (c->current.image && c->status.confirmed_ms)
		image_confirm(c->current.image, c->status.confirmed_ms, status_readers_stale_ms(c));
	watches_start(c);
	schedule_set_due(c, splay_ms(c));
}

void schedule_init(struct config *c)
{
	loop_timer_init(&c->run.due, run_due, c);
	push_floor_init(&c->run.floor, c->settings->push_min_ms, c->env->budget);
}
