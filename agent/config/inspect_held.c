/*
 * The version that is held back, and why, for the question what it would change.
 *
 * Surprising: held by no decision it may be on its way, or rest since a disk was full.
 */
#include "config/inspect.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "config/core.h"
#include "config/explain.h"

/* The server had the current version when it was asked last: whether that was just now. */
static void say_nothing_held(struct config *c, char why[FILE_WHY])
{
	bool suspended = config_suspended(c);
	struct config_status s;

	config_status(c, &s);
	if (!suspended && !s.last_error[0])
		snprintf(why, FILE_WHY, "nothing is held back: the server has the current version");
	else
		snprintf(why, FILE_WHY,
			"nothing is known to be held back: the server had the current version when "
			"it answered last, %s ago, but %s: `pullet %s %s`",
			EXPLAIN_SPAN(s.age_ms),
			suspended ? "pulls are suspended since" : "the last pull failed",
			suspended ? "resume" : "status", c->settings->name);
}

/* Copies what the servers have and is not current, or was saved and never shown. */
static int copy_held(struct inspection *i, char why[FILE_WHY])
{
	const struct config *c = i->config;
	bool is_new = c->latest.state == LATEST_IS_KEPT || c->latest.state == LATEST_IN_STEP;
	struct candidate *latest = latest_hold_bytes(c); /* the worker may be done with them */

	i->held_generation = is_new ? latest_generation(c) : c->current.saved_generation;
	if (latest)
		i->held = candidate_copy(latest);
	candidate_free(latest);
	if (i->held || i->held_generation)
		return 0;
	if (is_new)
		snprintf(why, FILE_WHY, "out of memory");
	else if (c->latest.state == LATEST_IS_CURRENT)
		say_nothing_held(i->config, why);
	else
		snprintf(why, FILE_WHY,
			"it is not known which version the server has: `pullet %s %s%s` asks it",
			config_suspended(c) ? "resume" : "refresh", c->settings->name,
			config_suspended(c) ? "" : " --wait");
	return is_new ? -ENOMEM : -ENOENT;
}

/* Why it is held, for people. */
static void note_held_reason(struct inspection *i)
{
	struct config *c = i->config;
	struct situation s;
	const char *why = "it is being published";
	enum rejection_reason by;

	settle_read_facts(c, &s);
	by = settle_rejection(c, &s, &why);
	if (by != REJECTION_REASONS)
		i->held_by = rejection_name(by);
	else if (s.latest != LATEST_NEW && s.saved == SAVED_HELD)
		i->held_by = rejection_name(REJECTED_BY_PIN);
	if (by == REJECTION_REASONS && i->held_by)
		why = "pinned";
	else if (by == REJECTION_REASONS && explain_is_resting(&s, ROW_LATEST_IS_PUBLISHED))
		why = "it could not be published, which is tried again at the next pull: the "
		      "status says why";
	else if (by == REJECTION_REASONS && c->step.decision.row != ROW_LATEST_IS_PUBLISHED)
		why = "it is published at the next pull";
	i->held_why = strdup(why); /* NULL: without a reason */
}

int inspect_hold(struct inspection *i, char why[FILE_WHY])
{
	int r = inspect_check_published(i, why);

	if (r == -ENODATA)
		snprintf(why, FILE_WHY,
			"nothing is published yet that the server's version could be compared "
			"with: `pullet explain %s` says why",
			i->config->settings->name);
	if (r == 0)
		r = copy_held(i, why);
	if (r == 0)
		note_held_reason(i);
	return r;
}
