/*
 * What follows each event: the facts are read, the table decides, and the step begins. Nothing else
 * begins a step.
 *
 * Surprising: a step that ends at once is followed by the next look here, in the same loop, never
 * by a call from within the step.
 */
#include "config/core.h"

#include <stdlib.h>
#include <string.h>

/* ---- facts ---- */

/* The servers have another version than what a pull brought in this life. Without a current version
 * what an earlier one left is better than nothing; but not than what its place may show by now. */
static bool is_saved_late(const struct config *c)
{
	const struct latest *l = &c->latest;

	if (c->current.left)
		return l->state != LATEST_IS_KEPT ||
		       strcmp(l->candidate->version.sha256, c->current.saved->sha256) != 0;
	if (c->current.saved_by != ROW_LATEST_IS_PUBLISHED)
		return false;
	return l->state == LATEST_IS_CURRENT ||
	       (l->state == LATEST_IS_KEPT &&
		       strcmp(l->candidate->version.sha256, c->current.saved->sha256) != 0);
}

static enum situation_saved saved_fact(const struct config *c)
{
	const struct ledger *ledger = c->decisions.ledger;

	if (!c->current.saved_generation)
		return SAVED_NONE;
	if (ledger->pin.by && ledger->pin.sha256[0] &&
		strcmp(ledger->pin.sha256, c->current.saved->sha256) != 0)
		return SAVED_HELD;
	return is_saved_late(c) ? SAVED_LATE : SAVED_WANTED;
}

/* A pin names bytes: it does not hold these very ones, which come again when the stored ones are
 * lost. */
static enum situation_pin pin_fact(const struct config *c, const char *sha256)
{
	const struct ledger_pin *pin = c->decisions.ledger ? &c->decisions.ledger->pin : NULL;

	return pin && pin->by && strcmp(pin->sha256, sha256) != 0 ? PIN_SET : PIN_NONE;
}

/* About the version that the servers have. */
static enum situation_pin latest_pin_fact(const struct config *c)
{
	bool is_other = c->latest.state == LATEST_IS_KEPT || c->latest.state == LATEST_IN_STEP;

	return pin_fact(c, is_other ? latest_version(c)->sha256 : "-");
}

static enum situation_current current_fact(const struct config *c)
{
	const struct version *v = &c->current.version;

	if (!v->generation)
		return CURRENT_NONE;
	return decisions_verdict(c, v->sha256) == VERDICT_PROBE ? CURRENT_HARMFUL : CURRENT_GOOD;
}

static void add_latest_facts(const struct config *c, struct situation *s)
{
	switch (c->latest.state) {
	case LATEST_NOT_KNOWN:
		s->latest = LATEST_UNKNOWN;
		break;
	case LATEST_IS_CURRENT:
		s->latest = LATEST_SAME;
		break;
	case LATEST_IS_KEPT:
	case LATEST_IN_STEP:
		s->latest = LATEST_NEW;
		s->verdict = decisions_verdict(c, latest_version(c)->sha256);
		break;
	}
	s->force = c->latest.force;
	s->rollout = c->latest.rollout;
}

void settle_read_facts(struct config *c, struct situation *ret_situation)
{
	static const enum situation_drift drifts[] = {
		[SETTINGS_HEAL] = DRIFT_HEAL,
		[SETTINGS_REPORT] = DRIFT_REPORT,
		[SETTINGS_LEAVE] = DRIFT_LEAVE,
	};
	struct situation s = {
		.mode = c->mode,
		.request = c->decisions.request ? c->decisions.request->kind : REQUEST_NONE,
		.pin = latest_pin_fact(c),
		.saved = saved_fact(c),
		.current = current_fact(c),
		.overrides = decisions_overrides_differ(c) ? OVERRIDES_OTHER : OVERRIDES_SAME,
		.settings = current_settings_differ(c) ? SETTINGS_OTHER : SETTINGS_SAME,
		.place = c->current.place,
		.drift = c->current.half_shown ? DRIFT_HEAL : drifts[c->settings->drift],
		.resting = c->resting,
	};

	if (s.current == CURRENT_HARMFUL && c->current.older)
		s.older = OLDER_THERE;
	add_latest_facts(c, &s);
	*ret_situation = s;
}

bool settle_may_commit(struct config *c)
{
	struct situation s;

	settle_read_facts(c, &s);
	if (c->step.decision.action == ACTION_SHOW)
		return s.saved != SAVED_HELD;
	if (c->step.decision.action == ACTION_PUBLISH) {
		bool newer = c->latest.state != LATEST_IN_STEP;

		s.verdict = decisions_verdict(c, c->step.candidate->version.sha256);
		s.pin = pin_fact(c, c->step.candidate->version.sha256);
		s.force = c->step.force;
		s.rollout = newer ? ROLLOUT_NONE : c->latest.rollout;
	}
	return decide_may_commit(&s, c->step.decision.origin);
}

enum rejection_reason settle_rejection(
	const struct config *c, const struct situation *s, const char **ret_why)
{
	const struct ledger_verdict *v;

	if (c->latest.state != LATEST_IS_KEPT)
		return REJECTION_REASONS;
	switch (decide_gate(s)) {
	case GATE_OPEN:
		break;
	case GATE_VERDICT:
		v = decisions_find_verdict(c, c->latest.candidate->version.sha256);
		*ret_why = v->why;
		return rejection_parse(v->check);
	case GATE_PIN:
		*ret_why = "pinned";
		return REJECTED_BY_PIN;
	case GATE_ROLLOUT:
		*ret_why = c->latest.rollout_why ? c->latest.rollout_why : "not asked yet";
		return REJECTED_BY_ROLLOUT;
	}
	return REJECTION_REASONS;
}

/* ---- after each event ---- */

/* True when something was done: look again. */
static bool settle_once(struct config *c)
{
	struct situation s;
	struct decision d;

	if (c->step.decision.row != ROW_NONE)
		return false;
	current_look(c);
	if (request_supersede(c))
		return true;
	current_read_older(c);
	settle_read_facts(c, &s);
	d = decide(&s);
	if (d.row != ROW_NONE) {
		step_begin(c, d);
		return true;
	}
	return run_settled(c, &s);
}

void config_settle(struct config *c)
{
	if (c->settling) /* the loop below looks again */
		return;
	c->settling = true;
	while (settle_once(c))
		;
	c->settling = false;
}
