/*
 * Whether a config makes progress, for the watchdog. Surprising: progress is derived from state, so
 * a path that forgets to report cannot look healthy.
 */
#include "config/core.h"
#include "process/process.h"

#define PATIENCE_MS 60000u
#define CHECKS_HANG "the checks have not ended with a version for a minute"

static bool is_overdue(uint64_t due_ms, uint64_t now_ms)
{
	return now_ms > due_ms + PATIENCE_MS;
}

/* The timer of the next run waits for the floor between pulls that messages cause. */
static bool waits_for_floor(const struct config *c, uint64_t now_ms)
{
	return wheel_timer_state(&c->run.due.timer) == WHEEL_SCHEDULED &&
	       !is_overdue(wheel_timer_due(&c->run.due.timer), now_ms);
}

/* The server has a free slot, and no backoff. */
static bool server_has_room(const struct upstream *server)
{
	struct upstream_status s;

	upstream_status(server, &s);
	return !s.backoff_ms && s.in_flight < upstream_settings(server)->max_in_flight;
}

/* A run has a time limit, or is queued for its bootstrap server. */
static const char *stuck_in_run(const struct config *c, uint64_t now_ms)
{
	if (wheel_timer_state(&c->run.limit.timer) == WHEEL_SCHEDULED)
		return is_overdue(wheel_timer_due(&c->run.limit.timer), now_ms)
			       ? "a pull goes on beyond its time limit"
			       : NULL;
	if (!pull_waiting(c->run.pull))
		return "a run has neither a pull nor a version under way";
	return NULL;
}

static const char *stuck_before_run(const struct config *c, uint64_t now_ms)
{
	uint64_t due_ms;

	if (config_suspended(c) || !trigger_due(&c->run.trigger, &due_ms) ||
		!is_overdue(due_ms, now_ms))
		return NULL;
	if (!pull_waiting(c->run.pull))
		return waits_for_floor(c, now_ms) ? NULL : "a pull is due and nobody took it up";
	return server_has_room(pull_server(c->run.pull))
		       ? "a pull is not begun although its server has room"
		       : NULL;
}

const char *config_stuck(const struct config *c, uint64_t now_ms)
{
	const struct settings_config *s = c->settings;
	uint64_t on_worker_ms = c->step.on_worker_ms, validating_ms = c->step.validating_since_ms,
		 assembling_ms = c->run.assembling_since_ms;

	/* a queued job waits for another config's, which is checked too */
	if (on_worker_ms && is_overdue(on_worker_ms, now_ms))
		return "the disk has not taken a version for a minute";
	if (validating_ms && is_overdue(validating_ms, now_ms))
		return CHECKS_HANG;
	if (assembling_ms && is_overdue(assembling_ms, now_ms))
		return CHECKS_HANG;
	if (c->step.validating || c->run.assembling)
		return NULL;
	if (c->step.programs)
		return is_overdue(c->step.programs_since_ms + s->format_run.timeout_ms +
					  s->check.timeout_ms + 2 * PROCESS_GRACE_MS,
			       now_ms)
			       ? "a program that checks a version does not end, not even killed"
			       : NULL;
	if (c->step.publishing)
		return NULL;
	return trigger_running(&c->run.trigger) ? stuck_in_run(c, now_ms)
						: stuck_before_run(c, now_ms);
}
