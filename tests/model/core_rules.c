/*
 * What must be true: of each answer of the table, of each transition, and where nothing is under
 * way. Surprising: the rules read the world, not its facts, wherever a wrong fact could hide a
 * wrong step.
 */
#include "core.h"

#include <string.h>

/* Verdicts by the rules of now, whatever the world makes of them. */
static enum situation_verdict rule_verdict(const struct world *w, enum document document)
{
	enum situation_verdict verdict = (enum situation_verdict)w->verdicts[document];

	return verdict == VERDICT_REJECTED && w->new_rules ? VERDICT_FREE : verdict;
}

/* ---- the table ---- */

const char *rules_of_table(const struct situation *s, struct decision d)
{
	bool is_operators = d.origin == ORIGIN_OPERATOR;

	if (!d.row)
		return NULL;
	if (!s->current && !is_operators && d.action != ACTION_PUBLISH && d.action != ACTION_SHOW)
		return "a version is rolled back, composed or healed where none is current";
	if (s->mode == MODE_RETIRING)
		return "a step begins although the config retires";
	if (is_operators != (s->request != REQUEST_NONE))
		return "an operator comes first, and nobody else in an operator's name";
	if (s->pin == PIN_SET && !is_operators &&
		(d.origin == ORIGIN_PULL || d.action == ACTION_ROLL_BACK))
		return "a pinned version is replaced";
	if (d.action == ACTION_PUBLISH && s->verdict != VERDICT_FREE && s->force == FORCE_NONE)
		return "a verdict is not kept";
	if (d.action == ACTION_PUBLISH && s->rollout == ROLLOUT_OUT && s->force == FORCE_NONE &&
		s->current != CURRENT_NONE)
		return "a rollout is not kept";
	if (d.action == ACTION_HEAL && s->drift != DRIFT_HEAL)
		return "what is to be reported is healed";
	return NULL;
}

/* ---- transitions ---- */

static const char *check_begin(
	const struct profile *p, const struct world *after, const struct happened *happened)
{
	const struct world_saved *saved = &after->saved;

	if (happened->begun.action == ACTION_SHOW && after->started &&
		saved->origin == ORIGIN_PULL && after->latest && after->latest != saved->content)
		return "a version is shown that the servers have replaced";
	if (happened->begun_in.request && happened->begun.origin != ORIGIN_OPERATOR)
		return "an operator does not come first";
	if (happened->begun.action == ACTION_HEAL && p->drift != DRIFT_HEAL)
		return "what is to be reported is healed";
	if (happened->begun.action == ACTION_ROLL_BACK && !happened->begun_in.older)
		return "there is nothing to roll back to";
	return NULL;
}

static const char *check_commit(const struct world *before, const struct world_step *step)
{
	if (before->saved.present && before->saved.content == step->content &&
		before->saved.overrides == step->overrides && before->saved.fits &&
		before->saved.origin == step->origin && step->origin != ORIGIN_OPERATOR &&
		step->origin != ORIGIN_PULL)
		return "what is saved is saved again";
	if (step->origin != ORIGIN_PULL || step->forced)
		return NULL;
	if (rule_verdict(before, (enum document)step->content) != VERDICT_FREE)
		return "a version with a verdict is published by the same rules";
	if (before->rolled_back & 1u << step->content)
		return "a version is published that an operator rolled back";
	if (before->latest_rollout == ROLLOUT_OUT && before->current &&
		before->latest == step->content)
		return "a version is published that is not rolled out to this host";
	return NULL;
}

static const char *check_show(const struct profile *p, const struct world *before,
	const struct world *after, const struct world_saved *saved)
{
	bool is_operators = saved->origin == ORIGIN_OPERATOR;

	if ((is_operators || saved->origin == ORIGIN_PROBE) && saved->content != saved->replaces &&
		!after->proven)
		return "a version is probed that was rolled back to";
	if (is_operators && !saved->adopted && after->latest_forced &&
		after->latest == saved->replaces)
		return "a rollback is undone by an earlier forced refresh";
	if (before->pin && before->current && saved->content != before->current && !is_operators &&
		before->pin != saved->content)
		return "a pinned version is replaced";
	if (saved->origin == ORIGIN_PULL && p->nature == NATURE_REVISIONS &&
		saved->content < before->highest)
		return "an older revision is published";
	return NULL;
}

/* Nothing is lost: each request is answered, each step ends by itself. */
static const char *check_losses(const struct world *before, enum event event,
	const struct world *after, const struct happened *happened)
{
	bool is_other =
		memcmp(&before->step, &after->step, sizeof(before->step)) || happened->begun.row;

	if (happened->dropped)
		return "a retirement does not wait for the disk";
	if (event == EVENT_CRASHED)
		return NULL;
	if (before->request.what && !after->request.what && !happened->answered)
		return "a request ends without an answer";
	if (happened->refused && after->saved.present && after->saved.origin == ORIGIN_OPERATOR)
		return "what was refused happens later";
	if (before->step.row && is_other && before->step.phase != PHASE_CHECKING &&
		event != EVENT_SHOW_SUCCEEDED && event != EVENT_SHOW_FAILED &&
		event != EVENT_RECORD_ENDED)
		return "a step does not end by its own end, nor before its commit";
	return NULL;
}

/* A forced pull's version is tried, whatever is known of it, when nothing else is to be done, and
 * it did not fail just now. */
static const char *check_force(const struct world *before, enum event event,
	const struct world *after, const struct happened *happened)
{
	bool idle = before->started && !before->step.row && !before->saved.present &&
		    !before->request.what && !before->pin && !before->resting;

	if (event != EVENT_PULL_SUCCEEDED || !before->pull_forced || !idle ||
		after->latest == after->current)
		return NULL;
	if (happened->begun.row == ROW_HARMFUL_IS_ROLLED_BACK ||
		happened->begun.action == ACTION_PUBLISH)
		return NULL;
	return "a forced refresh does not try the version";
}

const char *rules_of_transition(const struct profile *p, const struct world *before,
	enum event event, const struct world *after, const struct happened *happened)
{
	struct situation s = world_situation(p, after);
	const char *flaw = check_losses(before, event, after, happened);

	if (!flaw)
		flaw = check_force(before, event, after, happened);
	if (!flaw && happened->begun.row)
		flaw = check_begin(p, after, happened);
	if (!flaw && happened->committed)
		flaw = check_commit(before, &happened->commit);
	if (!flaw && happened->shown)
		flaw = check_show(p, before, after, &happened->show);
	if (!flaw && s.latest == LATEST_NEW && s.verdict != VERDICT_REJECTED &&
		s.verdict != VERDICT_PROBE &&
		(s.pin || s.verdict == VERDICT_OPERATOR || s.rollout == ROLLOUT_OUT) &&
		seeded_outcome(&s) == OUTCOME_FAILING)
		flaw = "what is held is told as a failure";
	return flaw;
}

/* ---- at rest ---- */

/* What is to be current, by the rules alone. */
static enum document find_allowed(const struct profile *p, const struct world *w)
{
	enum document has = (enum document)w->server, is = (enum document)w->current;

	if (w->pin || has == is)
		return is;
	if (rule_verdict(w, has) != VERDICT_FREE || world_rejects(p, w, has))
		return is;
	return w->latest_rollout == ROLLOUT_OUT && is ? is : has;
}

/* Committed, and neither held by a pin nor a pull's that the server has replaced. */
static bool is_saved_to_be_shown(const struct world *w)
{
	const struct world_saved *saved = &w->saved;

	if (!saved->present)
		return false;
	if (w->pin)
		return saved->content == w->pin;
	return saved->origin != ORIGIN_PULL || saved->content == w->latest;
}

const char *rules_of_rest(const struct profile *p, const struct world *w)
{
	bool harmful = w->current && w->verdicts[w->current] == VERDICT_PROBE;

	if (w->step.row || w->request.what || w->pull != PULL_IDLE || w->follow)
		return "something is under way for ever";
	if (w->current && !w->started)
		return "the last known good was not shown";
	if (w->current != find_allowed(p, w))
		return "the newest allowed version is not current";
	if (w->current && w->current_overrides != w->overrides)
		return "overrides are not as decided";
	if (w->changed && p->drift == DRIFT_HEAL)
		return "files stay changed";
	if (w->current && !w->fits)
		return "a version stays as it was composed with other settings";
	if (w->pin && w->pin != w->current)
		return "a pin names another version than the current one";
	if (!w->notified)
		return "the application was not notified";
	if (is_saved_to_be_shown(w))
		return "what was committed is not shown";
	if (p->has_probe && !w->proven && !harmful)
		return "a version was not probed";
	if (harmful && !w->pin && w->older)
		return "a harmful version stays";
	return NULL;
}
