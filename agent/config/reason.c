/*
 * Why a version is published, and who asked for it: kept in its state file, for the history.
 *
 * Surprising: a pull has one reason, the strongest that came since the last one began: an order and
 * who gave it, else a push, else a watch, else the interval. What it brings has that reason also if
 * it is published later, unless an operator ended what held it.
 */
#include "config/core.h"

#include <stdlib.h>
#include <string.h>

void config_note_order(struct config *c, enum version_cause cause, const char *by)
{
	char *copy = by ? strdup(by) : NULL; /* NULL without memory: nobody is named */

	free(c->run.asked_by);
	c->run.asked_by = copy;
	c->run.asked = (unsigned char)cause;
}

/* Before read_hints(). */
static enum version_cause find_hint(const struct config *c)
{
	uint64_t messages = atomic_load_explicit(&c->run.topic.messages, memory_order_relaxed);

	if (messages != c->run.hints - c->run.followed ||
		atomic_load_explicit(&c->run.topic.wanted, memory_order_relaxed))
		return CAUSE_PUSH;
	return c->run.watch_changes != c->run.followed ? CAUSE_WATCH : CAUSE_PULL;
}

void reason_begin_run(struct config *c)
{
	enum version_cause hint = find_hint(c);

	free(c->run.by);
	c->run.by = c->run.asked_by;
	c->run.began = c->run.asked != CAUSE_UNKNOWN ? c->run.asked : (unsigned char)hint;
	c->run.asked_by = NULL;
	c->run.asked = CAUSE_UNKNOWN;
}

void reason_of_pull(const struct config *c, struct version *v)
{
	version_set_cause(v, (enum version_cause)c->run.began, c->run.by);
}

void reason_of_released(struct config *c, const char *by)
{
	if (c->latest.state == LATEST_IS_KEPT && c->latest.said == REJECTED_BY_PIN)
		version_set_cause(&c->latest.candidate->version, CAUSE_PIN, by);
	if (!by)
		events_note(c, EVENT_DECIDED, NULL, "the pin has expired");
	config_note_order(c, CAUSE_PIN, by);
}

void reason_of_step(struct config *c)
{
	static const enum version_cause causes[ROWS] = {
		[ROW_OPERATOR_ROLLS_BACK] = CAUSE_ROLLBACK,
		[ROW_OPERATOR_OVERRIDES] = CAUSE_OVERRIDE,
		[ROW_HARMFUL_IS_ROLLED_BACK] = CAUSE_PROBE,
		[ROW_OTHER_OVERRIDES] = CAUSE_OVERRIDE,
		[ROW_OTHER_SETTINGS] = CAUSE_SETTINGS,
	};
	enum version_cause cause = causes[c->step.decision.row];
	struct version *v = &c->step.candidate->version;

	if (cause != CAUSE_UNKNOWN)
		version_set_cause(v, cause,
			c->step.decision.origin == ORIGIN_OPERATOR ? c->decisions.request->by
								   : NULL);
	v->published_ms = c->env->sys->wall_ms();
}

void reason_fini(struct config *c)
{
	free(c->run.asked_by);
	free(c->run.by);
}
