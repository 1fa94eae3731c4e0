/*
 * Whether a config makes progress, for the watchdog. Surprising: nothing here is told of when a
 * step begins and ends, for then what forgets to tell would look well; what stands in the config is
 * held against what may be true of one between two turns of the loop.
 */
#include "config/state.h"
#include "process/process.h"

#define PATIENCE_MS 60000u

static bool is_over(uint64_t due_ms, uint64_t now_ms)
{
	return now_ms > due_ms + PATIENCE_MS;
}

/* The timer of the next run waits for the floor between pulls that messages cause. */
static bool waits_for_floor(const struct config *c, uint64_t now_ms)
{
	return wheel_timer_state(&c->due.timer) == WHEEL_SCHEDULED &&
	       !is_over(wheel_timer_due(&c->due.timer), now_ms);
}

/* The server has room for those in its line, and nothing holds them. */
static bool has_room(const struct upstream *server)
{
	struct upstream_status s;

	upstream_status(server, &s);
	return !s.backoff_ms && s.in_flight < upstream_settings(server)->max_in_flight;
}

/* A run has a time limit, or is in the line for its bootstrap. */
static const char *stuck_in_run(const struct config *c, uint64_t now_ms)
{
	if (wheel_timer_state(&c->limit.timer) == WHEEL_SCHEDULED)
		return is_over(wheel_timer_due(&c->limit.timer), now_ms)
			       ? "a pull goes on beyond its time limit"
			       : NULL;
	if (!pull_waiting(c->gather))
		return "a run has neither a pull nor a version under way";
	return NULL;
}

static const char *stuck_before_run(const struct config *c, uint64_t now_ms)
{
	uint64_t due_ms;

	if (config_suspended(c) || !trigger_due(&c->trigger, &due_ms) || !is_over(due_ms, now_ms))
		return NULL;
	if (!pull_waiting(c->gather))
		return waits_for_floor(c, now_ms) ? NULL : "a pull is due and nobody took it up";
	return has_room(pull_server(c->gather)) ? "a pull is not begun although its server has room"
						: NULL;
}

const char *config_stuck(const struct config *c, uint64_t now_ms)
{
	const struct settings_config *s = c->settings;
	uint64_t on_worker_ms = c->on_worker_ms, judging_ms = c->judging_since_ms;

	/* one that waits for the worker waits for that of another config, which is looked at too */
	if (on_worker_ms && is_over(on_worker_ms, now_ms))
		return "the disk has not taken a version for a minute";
	if (c->validating)
		return judging_ms && is_over(judging_ms, now_ms)
			       ? "the checks have not ended with a version for a minute"
			       : NULL;
	if (c->trial)
		return is_over(c->tried_ms + s->format_run.timeout_ms + s->check.timeout_ms +
				       2 * PROCESS_GRACE_MS,
			       now_ms)
			       ? "a program that checks a version does not end, not even killed"
			       : NULL;
	if (c->publishing || (c->candidate && c->candidate->local))
		return NULL;
	return trigger_running(&c->trigger) ? stuck_in_run(c, now_ms) : stuck_before_run(c, now_ms);
}
