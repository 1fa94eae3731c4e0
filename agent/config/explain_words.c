/*
 * The sentences of an explanation: what is current, what the server has, what else holds, and what
 * would change it.
 *
 * Surprising: what a command would do is not written here. decide() is asked about the situation as
 * it would be after it, so that an explanation cannot differ from what the agent does.
 */
#include "config/explain.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "settings/value.h"

#define MAX_SENTENCE (VERIFY_WHY + 1024)
#define TIME_TEXT 40

/* ---- words ---- */

__attribute__((format(printf, 2, 3))) static void say(
	const struct explanation *e, const char *format, ...)
{
	char text[MAX_SENTENCE];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	sentence_member(e->out, NULL, text, e->audience);
}

/* What the status shows in place of it to the public. */
static const char *choose_why(const struct explanation *e, const char *why)
{
	return e->audience == AUDIENCE_PUBLIC ? "see the control socket for the reason" : why;
}

static const char *write_time(int64_t ms, char text[TIME_TEXT])
{
	time_t seconds = (time_t)(ms / 1000);
	struct tm tm;

	if (!gmtime_r(&seconds, &tm) || !strftime(text, TIME_TEXT, "%Y-%m-%dT%H:%M:%SZ", &tm))
		snprintf(text, TIME_TEXT, "?");
	return text;
}

#define TIME(ms) write_time(ms, (char[TIME_TEXT]){0})

static const char *write_span(int64_t ms, char text[24])
{
	int64_t unit = ms < 120000 ? 1000 : ms < 7200000 ? 60000 : 3600000;

	return settings_duration_text((uint64_t)(ms < 0 ? 0 : ms / unit * unit), text);
}

#define SPAN(ms) write_span(ms, (char[24]){0})

/* ---- what is current ---- */

static void explain_current(const struct explanation *e)
{
	const struct config_status *s = &e->status;
	const char *version = s->version->generation ? VERSION_TEXT(s->version) : NULL;

	if (s->version->generation)
		say(e, "generation %" PRIu64 "%s%s%s is current since %s: %s",
			s->version->generation, version ? " (version " : "", version ? version : "",
			version ? ")" : "", TIME(s->published_ms),
			strcmp(s->version->origin, "pull") == 0 ? "pulled from the server"
								: s->version->origin);
	else
		say(e, "nothing is published yet");
	if (strcmp(s->state, "stale") == 0 && s->expires_ms <= e->wall_ms)
		say(e, "it is stale: its signature expired at %s", TIME(s->expires_ms));
	else if (strcmp(s->state, "stale") == 0)
		say(e, "it is stale: the server has not confirmed it for %s", SPAN(s->age_ms));
}

/* ---- what the server has ---- */

static void explain_rejection(
	const struct explanation *e, const char *version, const struct ledger_verdict *v)
{
	enum rejection_reason reason = rejection_parse(v->check);
	const char *why = choose_why(e, v->why);

	if (reason == REJECTED_BY_OPERATOR)
		say(e, "the server has %s, which an operator replaced: %s", version, why);
	else if (reason == REJECTED_BY_PROBE)
		say(e, "the server has %s, which failed its probe and was rolled back: %s", version,
			why);
	else
		say(e, "the server has %s, rejected by the %s: %s", version, rejection_name(reason),
			why);
}

/* By the first gate that is closed. */
static void explain_new_version(const struct explanation *e, const char *version)
{
	const struct config *c = e->config;
	const char *why = c->latest.rollout_why ? c->latest.rollout_why : "it was not read yet";

	switch (decide_gate(&e->situation)) {
	case GATE_VERDICT:
		explain_rejection(e, version, decisions_find_verdict(c, latest_version(c)->sha256));
		break;
	case GATE_PIN:
		say(e, "the server has %s, held by the pin", version);
		break;
	case GATE_ROLLOUT:
		say(e, "the server has %s, not rolled out to this host yet: %s", version,
			choose_why(e, why));
		break;
	case GATE_OPEN:
		say(e, "the server has %s, which %s", version,
			c->step.decision.row == ROW_LATEST_IS_PUBLISHED ? "is being published"
			: explain_is_resting(&e->situation, ROW_LATEST_IS_PUBLISHED)
				? "could not be published"
				: "is published next");
		break;
	}
}

static void explain_latest(const struct explanation *e)
{
	char text[VERSION_TEXT_SIZE + 16] = "another version";
	const char *version;

	if (e->situation.latest == LATEST_NEW) {
		version = VERSION_TEXT(latest_version(e->config));
		if (version)
			snprintf(text, sizeof(text), "version %s", version);
		explain_new_version(e, text);
	} else if (e->all && e->situation.latest == LATEST_SAME && e->status.age_ms >= 0) {
		say(e, "the server has the current version: confirmed %s ago",
			SPAN(e->status.age_ms));
	} else if (e->all) {
		say(e, "it is not known yet which version the server has");
	}
}

/* ---- what else holds ---- */

static void explain_decision(
	const struct explanation *e, const char *what, const struct ledger_pin *pin)
{
	bool ends = pin && pin->until_ms != LEDGER_FOREVER;

	if (pin)
		say(e, "%s by %s%s%s%s%s", what, pin->by, ends ? " until " : "",
			ends ? TIME(pin->until_ms) : "", pin->reason[0] ? ": " : "", pin->reason);
}

static void explain_overrides(const struct explanation *e)
{
	const struct ledger_override *o = e->status.overrides;

	for (size_t i = 0; i < e->status.override_count; i++)
		say(e, "the server's value of %s is overridden by %s until %s%s%s", o[i].key,
			o[i].by,
			o[i].until_ms == LEDGER_FOREVER ? "it is removed" : TIME(o[i].until_ms),
			o[i].reason[0] ? ": " : "", o[i].reason);
}

static void explain_exceptions(const struct explanation *e)
{
	const struct situation *s = &e->situation;

	if (s->saved == SAVED_HELD || s->saved == SAVED_LATE)
		say(e, "generation %" PRIu64 " is saved and was never visible: %s",
			e->config->current.saved_generation,
			s->saved == SAVED_HELD ? "the pin holds it"
					       : "the server has another version by now");
	if (s->current == CURRENT_HARMFUL)
		say(e, "the current version failed its probe%s",
			s->older == OLDER_NONE ? ": there is no older one to roll back to"
			: s->pin == PIN_SET    ? ": the pin keeps it"
					       : "");
	if (e->all && s->place == PLACE_CHANGED && s->drift != DRIFT_HEAL)
		say(e,
			"the published files were changed by others, and are not restored (drift: "
			"%s)",
			s->drift == DRIFT_REPORT ? "report" : "leave");
}

/* ---- what is done, and what failed ---- */

static void explain_steps(const struct explanation *e)
{
	static const char *const words[] = {[STEP_LOAD] = "being validated",
		[STEP_PROGRAMS] = "its programs check it",
		[STEP_SHOW] = "being written"};
	const struct step *step = &e->config->step;
	enum decide_row next = decide(&e->situation).row;

	if (step->decision.row != ROW_NONE)
		say(e, "under way for %s: %s (%s)", SPAN(e->wall_ms - explain_step_start(e)),
			decide_row_text(step->decision.row), words[step->phase]);
	if (next != ROW_NONE && next != step->decision.row)
		say(e, "next: %s", decide_row_text(next));
	for (unsigned row = ROW_NONE + 1; row < ROWS; row++)
		if (explain_is_resting(&e->situation, (enum decide_row)row))
			say(e, "failed, and is tried again at the next pull: %s",
				decide_row_text((enum decide_row)row));
}

static void explain_failures(const struct explanation *e)
{
	const struct config_status *s = &e->status;
	const struct reload_status *r = &s->notify.reload;

	if (s->last_error[0] && !s->rejected_is_error)
		say(e, "failing since %s, last at %s: %s", TIME(s->failing_since_ms),
			TIME(s->last_error_ms), choose_why(e, s->last_error));
	if (s->has_notify && s->notify.has_reload && r->in_a_row)
		say(e, "the application was not reloaded, the next attempt is in %s: %s",
			SPAN((int64_t)r->next_ms), choose_why(e, r->why));
}

/* ---- what would change it ---- */

/* decide() about the situation as the command leaves it. */
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

static void explain_commands(const struct explanation *e)
{
	const char *name = e->status.settings->name, *text;

	if (e->status.suspension)
		say(e, "`pullet resume %s`: pulls begin again", name);
	if (e->status.pin) {
		text = foresee(e, true, false);
		say(e, "`pullet unpin %s`: %s", name,
			text ? text : "new versions are published again");
	}
	text = foresee(e, false, true);
	if (text && !e->status.suspension)
		say(e,
			"`pullet refresh %s --force`: %s, if the checks other than the guard "
			"accept it",
			name, text);
	if (e->situation.latest == LATEST_NEW && decide_gate(&e->situation) == GATE_VERDICT)
		say(e, "a new version at the server is checked when it is pulled");
	else if (e->situation.latest == LATEST_NEW && decide_gate(&e->situation) == GATE_ROLLOUT)
		say(e, "the rollout is read again at each pull");
}

static void explain_next_pull(const struct explanation *e)
{
	const struct config_status *s = &e->status;

	if (s->running)
		say(e, "a pull is under way");
	else if (s->waiting)
		say(e, "the next pull is due: it is queued for its server, which is busy or in "
		       "backoff");
	else if (s->next_pull_in_ms >= 0 && !s->suspension)
		say(e, "the next pull is in %s", SPAN(s->next_pull_in_ms + 999));
}

/* ---- all of it ---- */

void explain_append_sentences(const struct explanation *e)
{
	if (e->all)
		explain_current(e);
	explain_latest(e);
	if (e->all) {
		explain_decision(e, "pinned", e->status.pin);
		explain_decision(e, "suspended", e->status.suspension);
		explain_overrides(e);
	}
	explain_exceptions(e);
	explain_steps(e);
	if (e->all) {
		explain_failures(e);
		explain_commands(e);
		explain_next_pull(e);
	}
}
