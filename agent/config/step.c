/*
 * The one step under way, from its decision to its end: load, compose, validate, run programs, ask
 * the gate again, commit, show, record.
 *
 * Surprising: all five actions go the same way; they differ in where the bytes come from, how
 * strictly they are checked, and what becomes of a failure. settle.c alone begins one.
 */
#include "config/core.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define UNFIT_PIN "the pinned version does not fit the present configuration: the pin is dropped"
#define LOST_PIN "the pinned version cannot be read: the pin is dropped"
#define NOT_CHECKED "the version could not be checked: keeping the current version"
#define NOT_VALIDATED "not validated: keeping the current version"
#define NOT_COMPOSED "cannot compose the current version again"

static bool is_by_operator(const struct config *c)
{
	return c->step.decision.origin == ORIGIN_OPERATOR;
}

/* ---- the end ---- */

static void drop_step(struct config *c)
{
	struct step *s = &c->step;

	if (s->decision.action == ACTION_PUBLISH && c->latest.state == LATEST_IN_STEP)
		latest_forget(c);
	candidate_free(s->candidate);
	ledger_free(s->overrides);
	ledger_free(s->decided);
	free(s->origin);
	s->candidate = NULL;
	s->overrides = s->decided = NULL;
	s->origin = NULL;
	s->decision = (struct decision){.row = ROW_NONE};
	s->quiet = false;
}

/* The latest version goes back to where it came from, if nothing newer came. */
static void return_latest(struct config *c, enum situation_force force)
{
	bool back = c->latest.state == LATEST_IN_STEP;

	if (c->step.decision.action != ACTION_PUBLISH)
		return;
	latest_return(c, c->step.candidate);
	c->step.candidate = NULL;
	if (back && c->run.state != RUN_IDLE)
		c->latest.force = force;
}

/* It fails, or failed, for the files that readers see, or for the version that they are to see. */
static bool is_at_places(const struct config *c)
{
	return c->step.phase == STEP_SHOW || c->step.decision.action == ACTION_SHOW;
}

/* What is saved cannot be shown: nor what has the same bytes, and nothing is saved again for it.
 * Where nothing is current, it comes before what the servers have. */
static void rest_beside_saved(struct config *c)
{
	bool same =
		c->latest.state == LATEST_IN_STEP ||
		(c->latest.state == LATEST_IS_KEPT &&
			strcmp(c->latest.candidate->version.sha256, c->current.saved->sha256) == 0);

	c->resting |= 1u << ROW_SAVED_IS_SHOWN | 1u << ROW_OTHER_OVERRIDES |
		      1u << ROW_OTHER_SETTINGS | 1u << c->current.saved_by;
	if (same || !c->current.version.generation)
		c->resting |= 1u << ROW_LATEST_IS_PUBLISHED;
}

/* What failed rests until the next tick; but not a version that came meanwhile. */
static void rest_row(struct config *c)
{
	enum decide_row row = c->step.decision.row;

	if (row == ROW_LATEST_IS_PUBLISHED && c->latest.state != LATEST_IN_STEP)
		return;
	c->resting |= 1u << row;
	if (c->current.saved_generation && is_at_places(c))
		rest_beside_saved(c);
}

void step_fail(struct config *c, const char *what, const char *why)
{
	char sentence[FILE_WHY + 128], copy[FILE_WHY];

	snprintf(copy, sizeof(copy), "%s", why);
	if (is_by_operator(c)) {
		snprintf(sentence, sizeof(sentence), "%s: %s", what, copy);
		log_err("request failed: keeping the current version", "config", c->settings->name,
			"what", c->decisions.request->origin, "why", sentence);
		drop_step(c);
		request_answer(c, sentence);
		return;
	}
	rest_row(c);
	return_latest(c, c->step.force);
	drop_step(c);
	run_note_failure(c, what, copy);
}

/* The version is bad: a verdict, where the same bytes would be refused again. */
static void reject_candidate(struct config *c, enum verify_check check, const char *why)
{
	char what[64], copy[FILE_WHY];

	snprintf(copy, sizeof(copy), "%s", why);
	rejection_text((enum rejection_reason)check, what);
	c->status.rejections[check]++;
	if (c->step.decision.action != ACTION_PUBLISH || c->env->dry_run) {
		step_fail(c, what, copy);
		return;
	}
	decisions_reject(c, c->step.candidate->version.sha256, verify_check_name(check),
		verify_id(c->decisions.checks), copy);
	if (decisions_verdict(c, c->step.candidate->version.sha256) == VERDICT_FREE)
		rest_row(c);
	return_latest(c, FORCE_NONE);
	drop_step(c);
	run_note_rejection(c, what, copy);
}

/* Published, or not allowed any more: neither is a failure. */
void step_end(struct config *c, bool published)
{
	bool by_operator = is_by_operator(c);

	if (!published)
		return_latest(c, c->step.force);
	drop_step(c);
	if (by_operator)
		request_answer(c, NULL);
}

void step_drop(struct config *c)
{
	programs_free(c->step.programs);
	c->step.programs = NULL;
	if (c->step.validating)
		validation_give_up(c->step.validating);
	else if (!c->step.publishing)
		drop_step(c);
}

void step_fini(struct config *c)
{
	c->step.publishing = false; /* the worker has stopped */
	free(c->step.validating);   /* with its job */
	c->step.validating = NULL;
	step_drop(c);
}

/* ---- from the checks to the commit ---- */

/* A decision came while it was checked. */
static void drop_held_step(struct config *c)
{
	log_info("not published: it is held meanwhile", "config", c->settings->name, "version",
		VERSION_TEXT(&c->step.candidate->version));
	step_end(c, false);
}

static void commit_step(struct config *c)
{
	if (c->env->dry_run) {
		dry_run_publish(c);
	} else if (!settle_may_commit(c)) {
		drop_held_step(c);
	} else {
		publishing_start(c);
	}
}

static void programs_ended(void *arg, const struct programs_result *result)
{
	struct config *c = arg;

	c->step.programs = NULL;
	if (latest_timed_out(c, result->timed_out) || result->rejected)
		reject_candidate(c, result->check, result->why);
	else if (result->why[0])
		step_fail(c, NOT_CHECKED, result->why);
	else
		commit_step(c);
	config_settle(c);
}

static void start_programs(struct config *c)
{
	const struct programs_options options = {
		.loop = c->env->loop,
		.config = c->settings,
		.runtime_dir = c->env->runtime_dir,
		.candidate = c->step.candidate,
		.generation = c->current.store ? store_next_generation(c->current.store) : 0,
		.scrub = scrub_output,
		.ended = programs_ended,
		.arg = c,
	};
	char why[FILE_WHY] = "";

	c->step.phase = STEP_PROGRAMS;
	c->step.programs_since_ms = c->env->sys->now_ms();
	if (!programs_wanted(c->settings))
		commit_step(c);
	else if (programs_start(&options, &c->step.programs, why))
		step_fail(c, NOT_CHECKED, why);
}

/* A version that was accepted before: shown, or put back. */
static void show_again(struct config *c, int error, const char *why)
{
	bool heals = c->step.decision.action == ACTION_HEAL;

	if (!heals && decisions_adopt(c, &c->step.candidate->version) > 0)
		decisions_save(c); /* the agent died, or failed, between the two */
	if (error && heals) {
		if (!file_error_is_ours(-error)) { /* the servers have it whole */
			current_forget(c);
			latest_forget(c);
		}
		step_fail(c, "cannot repair the published file", why);
	} else if (error) {
		step_fail(c, "the last known good does not fit the present configuration", why);
		if (file_error_is_ours(-error) ||
			(file_error_may_pass(-error) && current_is_patient(c)))
			return; /* tried again at the next tick */
		current_forget_saved(c);
		if (!c->current.version.generation && c->decisions.ledger->pin.by)
			decisions_drop_pin(c, file_error_may_pass(-error) ? LOST_PIN : UNFIT_PIN);
	} else if (!heals && !settle_may_commit(c)) {
		drop_held_step(c);
	} else {
		if (heals)
			current_log_repair(c);
		publishing_start(c);
	}
}

void step_validated(struct config *c, int error, const struct verify_result *result)
{
	enum decide_action action = c->step.decision.action;
	const char *why = result->why[0] ? result->why : error ? strerror(-error) : "";

	if (action == ACTION_HEAL || action == ACTION_SHOW)
		show_again(c, error, why);
	else if (error == -EINVAL || error == -EMSGSIZE)
		reject_candidate(c, result->check, why);
	else if (error)
		step_fail(c, action == ACTION_RECOMPOSE ? NOT_COMPOSED : NOT_VALIDATED, why);
	else
		start_programs(c);
}

/* ---- the beginning ---- */

/* The overrides to compose with. 0 or -ENOMEM. */
static int choose_overrides(struct config *c)
{
	const struct step *s = &c->step;
	const struct ledger *l = c->decisions.ledger;

	if (s->decision.action == ACTION_HEAL)
		l = c->current.overrides;
	else if (s->decision.row == ROW_OPERATOR_OVERRIDES)
		l = c->decisions.request->overrides;
	c->step.overrides = l && l->override_count ? decisions_copy_overrides(l) : NULL;
	return l && l->override_count && !c->step.overrides ? -ENOMEM : 0;
}

/* The origin of the new version, in the history: NULL = that of the loaded one. */
static char *make_step_origin(struct config *c, uint64_t target)
{
	char *text = NULL;

	switch (c->step.decision.row) {
	case ROW_OPERATOR_ROLLS_BACK:
	case ROW_OPERATOR_OVERRIDES:
		return strdup(c->decisions.request->origin);
	case ROW_HARMFUL_IS_ROLLED_BACK:
		return asprintf(&text, "probe: generation %llu was bad, back to %llu",
			       (unsigned long long)c->current.version.generation,
			       (unsigned long long)target) < 0
			       ? NULL
			       : text;
	case ROW_OTHER_OVERRIDES:
		return strdup(c->decisions.overrides_why ? c->decisions.overrides_why
							 : "the overrides have changed");
	case ROW_OTHER_SETTINGS:
		return strdup("the format has changed");
	default:
		return NULL;
	}
}

static uint64_t choose_generation(struct config *c)
{
	switch (c->step.decision.action) {
	case ACTION_ROLL_BACK:
		return is_by_operator(c) ? c->decisions.request->target : current_find_older(c);
	case ACTION_SHOW:
		return c->current.saved_generation;
	default:
		return c->current.version.generation;
	}
}

static enum verify_level choose_level(const struct config *c)
{
	switch (c->step.decision.action) {
	case ACTION_PUBLISH:
		return VERIFY_NEW;
	case ACTION_RECOMPOSE:
		return VERIFY_RECOMPOSED;
	case ACTION_ROLL_BACK:
		return decisions_overrides_differ(c) ? VERIFY_RECOMPOSED : VERIFY_TRUSTED;
	default:
		return VERIFY_TRUSTED;
	}
}

/* What is shown is composed as it was committed; by the ledger where its file does not say. */
static void read_committed_overrides(struct config *c)
{
	const char *decisions = c->step.candidate->version.decisions;
	struct ledger *decided = NULL;

	if (!decisions || (decisions[0] && ledger_read(decisions, strlen(decisions), &decided)))
		return;
	ledger_free(c->step.overrides);
	c->step.overrides = decided;
}

int step_load(struct config *c, char why[FILE_WHY])
{
	struct candidate *v = c->step.candidate;
	unsigned damaged;
	int r = candidate_load(v, c->current.store, c->step.generation, &damaged, why);

	if (r)
		return r;
	if (c->step.decision.action == ACTION_SHOW)
		read_committed_overrides(c);
	if (!step_saves(c))
		return 0;
	v->version.product_len = 0; /* it is made again */
	buffer_clear(&v->text);
	v->has_text = v->text_as_saved = false;
	if (c->step.origin) {
		free(v->version.origin);
		v->version.origin = c->step.origin;
		c->step.origin = NULL;
	}
	return 0;
}

/* 0, or -errno with a sentence. */
static int take_candidate(struct config *c, char why[FILE_WHY])
{
	snprintf(why, FILE_WHY, "out of memory");
	if (c->step.decision.action == ACTION_PUBLISH) {
		c->step.generation = 0;
		c->step.force = c->latest.force;
		return latest_lend(c, &c->step.candidate, why);
	}
	c->step.generation = choose_generation(c);
	c->step.origin = make_step_origin(c, c->step.generation);
	c->step.candidate = candidate_new();
	return c->step.candidate ? 0 : -ENOMEM;
}

bool step_saves(const struct config *c)
{
	return c->step.decision.action != ACTION_HEAL && c->step.decision.action != ACTION_SHOW;
}

void step_begin(struct config *c, struct decision decision)
{
	char why[FILE_WHY];

	c->step.decision = decision;
	c->step.phase = STEP_LOAD;
	c->step.since_ms = c->env->sys->now_ms();
	c->step.starts &= decision.action == ACTION_SHOW;
	c->step.force = FORCE_NONE;
	if (!c->env->dry_run && current_open(c, why))
		step_fail(c, CONFIG_CANNOT_PUBLISH, why);
	else if (take_candidate(c, why) || choose_overrides(c))
		step_fail(c, NOT_VALIDATED, why);
	else
		validation_start(c, choose_level(c));
}
