/*
 * The sentences of an explanation: what is current, what the server has, what else holds, what is
 * done, and what failed.
 *
 * Surprising: the same sentences are for all; what an audience may not see is left out of them
 * (text/sentence.h), or replaced.
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

void explain_say(const struct explanation *e, const char *format, ...)
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

const char *explain_write_span(int64_t ms, char text[24])
{
	int64_t unit = ms < 120000 ? 1000 : ms < 7200000 ? 60000 : 3600000;

	return settings_duration_text((uint64_t)(ms < unit ? unit : ms / unit * unit), text);
}

/* ---- what is current ---- */

static void explain_current(const struct explanation *e)
{
	const struct config_status *s = &e->status;
	const char *version = s->version->generation ? VERSION_TEXT(s->version) : NULL;
	bool pulled = !s->version->origin;
	const char *by = pulled && s->version->cause == CAUSE_OPERATOR ? s->version->by : NULL;

	if (s->version->generation)
		explain_say(e, "generation %" PRIu64 "%s%s%s is current since %s (%s ago): %s%s%s",
			s->version->generation, version ? " (version " : "", version ? version : "",
			version ? ")" : "", TIME(s->published_ms),
			EXPLAIN_SPAN(e->wall_ms - s->published_ms),
			pulled ? "pulled from the server" : s->version->origin,
			by ? ", asked for by " : "", by ? by : "");
	else
		explain_say(e, "nothing is published yet");
	if (strcmp(s->state, "stale") == 0 && s->expires_ms <= e->wall_ms)
		explain_say(e, "it is stale: its signature expired at %s", TIME(s->expires_ms));
	else if (strcmp(s->state, "stale") == 0)
		explain_say(
			e, "it is stale: no pull has confirmed it for %s", EXPLAIN_SPAN(s->age_ms));
}

/* ---- what the server has ---- */

static void explain_rejection(
	const struct explanation *e, const char *version, const struct ledger_verdict *v)
{
	enum rejection_reason reason = rejection_parse(v->check);
	bool public = e->audience == AUDIENCE_PUBLIC;

	if (reason == REJECTED_BY_OPERATOR) /* the verdict begins with "rolled back by" */
		explain_say(e, "the server has %s, which was %s", version,
			public ? "rolled back by an operator" : v->why);
	else if (reason == REJECTED_BY_PROBE)
		explain_say(e, "the server has %s, which failed its probe and was rolled back: %s",
			version, choose_why(e, v->why));
	else
		explain_say(e, "the server has %s, rejected by the %s: %s", version,
			rejection_name(reason), choose_why(e, v->why));
}

static const char *name_phase(const struct explanation *e)
{
	switch (e->config->step.phase) {
	case STEP_LOAD:
		return "being validated";
	case STEP_PROGRAMS:
		return "its programs check it";
	case STEP_SHOW:
		break;
	}
	return "being written";
}

/* No gate is closed. */
static void explain_open_gate(const struct explanation *e, const char *version)
{
	if (e->config->step.decision.row == ROW_LATEST_IS_PUBLISHED)
		explain_say(e, "the server has %s, which is being published for %s: %s", version,
			EXPLAIN_SPAN(e->wall_ms - explain_step_start(e)), name_phase(e));
	else if (explain_is_resting(&e->situation, ROW_LATEST_IS_PUBLISHED))
		explain_say(e,
			"the server has %s, which could not be published: it is tried again at the "
			"next pull",
			version);
	else
		explain_say(e, "the server has %s, which is published next", version);
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
		explain_say(e, "the server has %s, held by the pin", version);
		break;
	case GATE_ROLLOUT:
		explain_say(e, "the server has %s, not rolled out to this host yet: %s", version,
			choose_why(e, why));
		break;
	case GATE_OPEN:
		explain_open_gate(e, version);
		break;
	}
}

const char *explain_pull_error(const struct explanation *e)
{
	const struct config_status *s = &e->status;
	bool of_probe = s->has_notify && strcmp(s->last_error, s->notify.probe_why) == 0;

	return s->rejected_is_error || of_probe ? "" : s->last_error;
}

/* The server has what is current, as far as it was asked. */
static void explain_same_version(const struct explanation *e)
{
	const struct config_status *s = &e->status;

	if (s->suspension || explain_pull_error(e)[0])
		explain_say(e, "the server had the current version when it answered last, %s ago",
			EXPLAIN_SPAN(s->age_ms));
	else
		explain_say(e, "the server has the current version: confirmed %s ago",
			EXPLAIN_SPAN(s->age_ms));
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
		explain_same_version(e);
	} else if (e->all) {
		explain_say(e, "it is not known which version the server has");
	}
}

/* ---- what else holds ---- */

static void explain_decision(
	const struct explanation *e, const char *what, const struct ledger_pin *pin)
{
	bool ends = pin && pin->until_ms != LEDGER_FOREVER;

	if (pin)
		explain_say(e, "%s by %s%s%s%s%s", what, pin->by, ends ? " until " : "",
			ends ? TIME(pin->until_ms) : "", pin->reason[0] ? ": " : "", pin->reason);
}

static void explain_overrides(const struct explanation *e)
{
	const struct ledger_override *o = e->status.overrides;

	for (size_t i = 0; i < e->status.override_count; i++)
		explain_say(e, "the server's value of %s is overridden by %s until %s%s%s",
			o[i].key, o[i].by,
			o[i].until_ms == LEDGER_FOREVER ? "it is removed" : TIME(o[i].until_ms),
			o[i].reason[0] ? ": " : "", o[i].reason);
}

/* The current version failed its probe, which may be no verdict when nothing is older. */
static void explain_probe(const struct explanation *e)
{
	const struct situation *s = &e->situation;
	const struct notify_status *n = &e->status.notify;
	bool failed = e->all && e->status.has_notify && n->probe == PROBE_FAILED &&
		      n->probe_generation == e->config->current.version.generation;
	const char *why = failed ? choose_why(e, n->probe_why) : "";

	if (failed || s->current == CURRENT_HARMFUL)
		explain_say(e, "the current version failed its probe%s%s%s",
			s->older == OLDER_NONE ? ", and there is no older one to roll back to"
			: s->pin == PIN_SET    ? ", and the pin keeps it"
					       : "",
			why[0] ? ": " : "", why);
	else if (e->all && e->status.has_notify && n->probe == PROBE_RUNNING)
		explain_say(
			e, "the probe of generation %" PRIu64 " is running", n->probe_generation);
}

static void explain_exceptions(const struct explanation *e)
{
	const struct situation *s = &e->situation;

	if (e->config->current.left)
		explain_say(e,
			"the config was gone meanwhile, or the state directory is from a backup or "
			"damaged, and what stands may be newer: generation %" PRIu64
			" is not shown before the server has answered",
			e->config->current.saved_generation);
	else if (s->saved == SAVED_HELD || s->saved == SAVED_LATE)
		explain_say(e, "generation %" PRIu64 " is saved and was never visible: %s",
			e->config->current.saved_generation,
			s->saved == SAVED_HELD ? "the pin holds it"
					       : "the server has another version by now");
	if (e->config->decisions.unsaved_note)
		explain_say(e,
			"rejections, pins and overrides could not be saved, and would be lost with "
			"a restart: %s",
			choose_why(e, e->config->decisions.unsaved_note->why));
	if (e->config->current.not_durable)
		explain_say(e,
			"what is published is not known to be on the disk: a power cut may bring "
			"the version before back; it is tried again after each pull");
	explain_probe(e);
	if (e->all && s->place == PLACE_CHANGED && s->drift != DRIFT_HEAL)
		explain_say(e,
			"the published files were changed by others, and are not restored before "
			"the next version is published (drift: %s)",
			s->drift == DRIFT_REPORT ? "report" : "leave");
}

/* ---- what is done, and what failed ---- */

static void explain_step(const struct explanation *e, enum decide_row row)
{
	bool latest = row == ROW_LATEST_IS_PUBLISHED;

	if (latest && decide_gate(&e->situation) == GATE_OPEN)
		return; /* said of the server's version */
	explain_say(e, "under way for %s: %s (%s)%s",
		EXPLAIN_SPAN(e->wall_ms - explain_step_start(e)), decide_row_text(row),
		name_phase(e), latest ? "; it is held at the end of its check" : "");
}

/* What is saved may be the server's version, of which it is said. */
static bool rests_unsaid(const struct explanation *e, enum decide_row row)
{
	bool latest = explain_is_resting(&e->situation, ROW_LATEST_IS_PUBLISHED);

	return explain_is_resting(&e->situation, row) && row != ROW_LATEST_IS_PUBLISHED &&
	       !(latest && row == ROW_SAVED_IS_SHOWN);
}

bool explain_repairs_soon(const struct explanation *e)
{
	const struct repairs *repairs = e->config->current.repairs;

	return explain_is_resting(&e->situation, ROW_CHANGED_BY_OTHERS) && repairs &&
	       wheel_timer_state(&repairs->timer.timer) == WHEEL_SCHEDULED;
}

static void explain_steps(const struct explanation *e)
{
	enum decide_row now = e->config->step.decision.row, next = decide(&e->situation).row;

	if (now != ROW_NONE)
		explain_step(e, now);
	if (next != ROW_NONE && next != now)
		explain_say(e, "next: %s", decide_row_text(next));
	for (unsigned row = ROW_NONE + 1; row < ROWS; row++)
		if (rests_unsaid(e, (enum decide_row)row))
			explain_say(e, "not done yet, and tried again %s: %s",
				explain_repairs_soon(e) && row == ROW_CHANGED_BY_OTHERS
					? "in a moment"
					: "at the next pull",
				decide_row_text((enum decide_row)row));
	if (e->situation.mode == MODE_RETIRING)
		explain_say(e,
			"the agent's configuration has changed: nothing begins before it is taken "
			"over");
}

static void explain_failures(const struct explanation *e)
{
	const struct config_status *s = &e->status;
	const struct reload_status *r = &s->notify.reload;
	bool once = s->last_error_ms - s->failing_since_ms < 1000;
	const char *why = explain_pull_error(e);

	if (why[0])
		explain_say(e, "failing since %s (%s ago)%s%s: %s", TIME(s->failing_since_ms),
			EXPLAIN_SPAN(e->wall_ms - s->failing_since_ms), once ? "" : ", last at ",
			once ? "" : TIME(s->last_error_ms), choose_why(e, why));
	if (s->has_notify && s->notify.has_reload && r->in_a_row)
		explain_say(e, "the application was not reloaded, which is tried again in %s: %s",
			EXPLAIN_SPAN((int64_t)r->next_ms), choose_why(e, r->why));
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
