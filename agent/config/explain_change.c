/*
 * What would change the current version: commands, and the next pull.
 *
 * Surprising: what a command does is not written here. decide() is asked about the situation as the
 * command would leave it, so that an explanation cannot differ from what the agent does.
 */
#include "config/explain.h"

#include <string.h>

/* decide() about the situation as the command leaves it; NULL = no difference. */
static const char *foresee(const struct explanation *e, bool unpin, bool force)
{
	struct situation s = e->situation;
	enum decide_row row;

	s.resting = 0; /* both pull */
	if (unpin) {
		s.pin = PIN_NONE;
		s.saved = s.saved == SAVED_HELD ? SAVED_WANTED : s.saved;
	}
	if (force)
		s.force = FORCE_ASKED;
	row = decide(&s).row;
	s = e->situation;
	s.resting = 0;
	return row == decide(&s).row ? NULL : decide_row_text(row);
}

/* What reads only the document and the rules says the same of them again; programs may not, and of
 * those that are forced the guard is not asked. */
static bool may_come_out_otherwise(const struct explanation *e, enum rejection_reason by)
{
	switch ((int)by) {
	case CHECK_SYNTAX:
	case CHECK_DIGEST:
	case CHECK_SIGNATURE:
	case CHECK_SCHEMA:
	case CHECK_SIZE:
		return false;
	case CHECK_FORMAT:
		return e->status.settings->format == SETTINGS_FORMAT_RUN;
	default:
		return true;
	}
}

/* What holds the server's version when nothing is pinned. */
static enum decide_gate gate_behind_pin(const struct explanation *e)
{
	struct situation s = e->situation;

	s.pin = PIN_NONE;
	return s.latest == LATEST_NEW ? decide_gate(&s) : GATE_OPEN;
}

static void explain_force(const struct explanation *e, const char *name)
{
	bool behind = e->situation.pin == PIN_SET && gate_behind_pin(e) != GATE_OPEN;
	const char *text = foresee(e, behind, true), *then = behind ? ", after that" : "";
	enum rejection_reason by = e->status.rejected_by;
	bool harmful = by == REJECTED_BY_PROBE || by == REJECTED_BY_GUARD;

	if (!text || !may_come_out_otherwise(e, by))
		return;
	if (harmful)
		explain_say(e,
			"`pullet diff %s --held` shows what it would change: put it right at its "
			"source",
			name);
	if (harmful || rejection_is_held(by))
		explain_say(e, "`pullet refresh %s --force`%s: %s %s, if all %schecks accept it",
			name, then, text, harmful ? "as it is" : "all the same",
			by == REJECTED_BY_GUARD ? "other " : "");
	else
		explain_say(e,
			"`pullet refresh %s --force`%s: it is checked once more, and published if "
			"it is accepted now",
			name, then);
}

/* A verdict is by the rules of its time: with others the same bytes are checked once more. */
static void explain_correction(const struct explanation *e, const char *name)
{
	const struct settings_config *settings = e->status.settings;
	bool shown = settings->schema && e->audience != AUDIENCE_PUBLIC;

	if (e->status.rejected_by == (enum rejection_reason)CHECK_SCHEMA)
		explain_say(e,
			"a corrected schema%s%s%s is read at the next pull, which checks this "
			"version again; `pullet refresh %s` pulls now",
			shown ? " (" : "", shown ? settings->schema : "", shown ? ")" : "", name);
	else if (e->status.rejected_by == (enum rejection_reason)CHECK_FORMAT && settings->template)
		explain_say(e, "a corrected template is read at a reload of the agent (SIGHUP), "
			       "which checks this version again");
}

static void explain_gate_commands(const struct explanation *e, const char *name)
{
	explain_force(e, name);
	switch (decide_gate(&e->situation)) {
	case GATE_VERDICT:
		if (e->situation.pin != PIN_NONE)
			break;
		explain_correction(e, name);
		explain_say(e, "another version at the server is checked when it is pulled");
		break;
	case GATE_ROLLOUT:
		explain_say(e, "the rollout is read again at each pull");
		break;
	case GATE_PIN:
	case GATE_OPEN:
		break;
	}
}

static const char *foresee_unpin(const struct explanation *e)
{
	const char *text = foresee(e, true, false);

	if (text)
		return text;
	switch (gate_behind_pin(e)) {
	case GATE_VERDICT:
		return "other versions at the server are published again, this one is not";
	case GATE_ROLLOUT:
		return "the server's versions are published again, as the rollout says";
	case GATE_PIN:
	case GATE_OPEN:
		break;
	}
	return "the server's versions are published again";
}

void explain_commands(const struct explanation *e)
{
	const struct config_status *s = &e->status;
	const char *name = s->settings->name;

	if (s->suspension)
		explain_say(e, "`pullet resume %s`: pulls begin again", name);
	else if (explain_pull_error(e)[0])
		explain_say(e, "`pullet refresh %s`: pulls, and tries again, at once", name);
	if (s->pin)
		explain_say(e, "`pullet unpin %s`: %s", name, foresee_unpin(e));
	if (s->override_count)
		explain_say(e, "`pullet override %s KEY --remove`: the server's value comes back",
			name);
	if (e->situation.latest == LATEST_NEW && !s->suspension)
		explain_gate_commands(e, name);
}

void explain_way_forward(const struct explanation *e)
{
	const struct config_status *s = &e->status;
	const char *name = s->settings->name;

	if (s->suspension)
		explain_say(e, "`pullet resume %s`: pulls begin again", name);
	if (s->pin)
		explain_say(e, "`pullet unpin %s`: %s", name, foresee_unpin(e));
	if (e->situation.latest == LATEST_NEW) {
		explain_gate_commands(e, name);
		return;
	}
	explain_say(e,
		"another version at the server than the one that was rolled back is published when "
		"it is pulled%s",
		s->pin ? " after that" : "");
	explain_say(e,
		"`pullet refresh %s --force`%s: what the server has is published all the same",
		name, s->pin ? ", after that" : "");
}

void explain_next_pull(const struct explanation *e)
{
	const struct config_status *s = &e->status;
	bool idle = e->config->step.decision.row == ROW_NONE &&
		    decide(&e->situation).row == ROW_NONE && !explain_repairs_soon(e);

	if (s->waiting)
		explain_say(e,
			"the next pull is due: it is queued for its server, which is busy or in "
			"backoff");
	else if (s->running && e->config->run.state != RUN_SETTLING)
		explain_say(e, "a pull is under way");
	else if (s->next_pull_in_ms >= 0 && !s->suspension)
		explain_say(e, "%s in %s",
			idle ? "the agent does nothing before the next pull," : "the next pull is",
			EXPLAIN_SPAN(s->next_pull_in_ms));
	else if (idle && s->suspension)
		explain_say(e, "the agent does nothing before it is resumed");
}
