/*
 * The way of a version: validated, seen by programs, published; or rejected and remembered.
 *
 * Surprising: what an operator asks for (a rollback, an override) goes the same way as what a pull
 * brought, from the state directory instead of from the server. One version is under way at a time.
 */
#include "config/state.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "document/merge.h"
#include "document/scrub.h"

#define NO_PROGRAM "a program could not check the version: keeping the current version"
#define NOT_VALIDATED "not validated: keeping the current version"

void pipeline_drop_candidate(struct config *c)
{
	candidate_free(c->candidate);
	c->candidate = NULL;
}

/* ---- rejected ---- */

void pipeline_forget_rejected(struct config *c)
{
	rejection_free(c->rejected);
	c->rejected = NULL;
}

/* Takes the candidate. */
static void keep_rejected(
	struct config *c, enum rejection_reason reason, const char *rules, const char *why)
{
	pipeline_forget_rejected(c);
	c->rejected = rejection_new(c->candidate, reason, rules, why);
	pipeline_drop_candidate(c);
}

static const char *rejected_text(enum rejection_reason reason, char what[64])
{
	snprintf(what, 64, "rejected by the %s: keeping the current version",
		rejection_name(reason));
	return what;
}

void pipeline_end_rejected(struct config *c)
{
	enum rejection_reason reason = c->rejected->reason;
	char text[64];

	if (rejection_is_held(reason))
		config_run_succeeded(c, CONFIG_HELD);
	else
		config_run_failed(c, SUPERVISOR_FAILED,
			reason == REJECTED_BY_PROBE
				? "the server still has the version that was rolled back"
				: rejected_text(reason, text),
			c->rejected->why);
}

int pipeline_prepare_checks(struct config *c, char why[FILE_WHY])
{
	const char *note;
	int r = verify_ready(c->checks, &note, why);

	if (r == 0 && note[0])
		log_warn("the schema has keywords that mean nothing here", "config",
			c->settings->name, "keywords", note);
	return r;
}

/* The rules, the pin, the rollout or the ledger say today what they said then. */
static bool is_still_rejected(struct config *c)
{
	const struct rejection *r = c->rejected;
	char why[FILE_WHY];

	if (r->reason == REJECTED_BY_PIN && c->ledger && c->ledger->pin.by)
		return true;
	if (r->reason == REJECTED_BY_ROLLOUT && c->rollout)
		return true;
	if (r->rules[0] &&
		(pipeline_prepare_checks(c, why) || strcmp(r->rules, verify_id(c->checks)) != 0))
		return false;
	return ledger_find_verdict(c->ledger, r->version.sha256, verify_id(c->checks));
}

void pipeline_review_rejected(struct config *c)
{
	if (c->rejected && (c->forced || !is_still_rejected(c)))
		pipeline_forget_rejected(c);
}

const struct version *pipeline_known_version(const struct config *c)
{
	if (c->rejected)
		return &c->rejected->version;
	return c->published.generation ? &c->published : NULL;
}

/* ---- the end of what is under way ---- */

void pipeline_end_local(struct config *c, const char *what, const char *why)
{
	char *sentence = NULL;

	if (why) {
		log_err(what, "config", c->settings->name, "why", why);
		if (asprintf(&sentence, "%s: %s", what, why) < 0)
			sentence = NULL;
	}
	if (c->change.granted)
		operations_end_change(c, sentence ? sentence : why);
	free(sentence);
	config_candidate_ended(c);
}

void pipeline_fail(struct config *c, const char *what, const char *why)
{
	bool local = c->candidate && c->candidate->local;

	pipeline_drop_candidate(c);
	if (local)
		pipeline_end_local(c, what, why);
	else
		config_run_failed(c, SUPERVISOR_FAILED, what, why);
}

static void reject_candidate(struct config *c, enum verify_check check, const char *why)
{
	enum rejection_reason reason = (enum rejection_reason)check;
	const char *what = rejected_text(reason, (char[64]){0});

	c->rejections[check]++;
	/* the same bytes may come again with the right digest */
	if (c->candidate->local || c->env->dry_run || check == CHECK_DIGEST) {
		pipeline_fail(c, what, why);
		return;
	}
	if (ledger_reject(c->ledger, c->candidate->version.sha256, verify_check_name(check),
		    verify_id(c->checks), c->env->sys->wall_ms(), why) == 0)
		current_save_ledger(c);
	keep_rejected(c, reason, verify_id(c->checks), why);
	config_run_failed(c, SUPERVISOR_FAILED, what, why);
}

/* ---- stored versions ---- */

int pipeline_load(struct config *c, uint64_t generation, const struct ledger *overrides,
	struct candidate **ret, char why[FILE_WHY])
{
	struct candidate *v = candidate_new();
	unsigned damaged;
	int r;

	if (!v) {
		snprintf(why, FILE_WHY, "out of memory");
		return -ENOMEM;
	}
	r = candidate_load(v, c->store, generation, &damaged, why);
	if (r == -ENOENT)
		snprintf(why, FILE_WHY,
			"there is no generation %llu in the state directory: `pullet history %s` "
			"lists those that are kept",
			(unsigned long long)generation, c->settings->name);
	if (r == 0) {
		r = candidate_compose(v, c->settings, overrides, why);
		r = r == -EINVAL ? -EBADMSG : r;
	}
	if (r)
		candidate_free(v);
	else
		*ret = v;
	return r;
}

/* What the layers said, and what came of it: of a candidate that was merged nothing else is left.
 */
static void scrub_composition(
	struct scrub *s, const struct composition *composition, char *const *mask)
{
	struct merge_layer layers[SETTINGS_MAX_LAYERS + LEDGER_MAX_OVERRIDES] = {{0}};
	size_t count = compose_layers(composition, layers);

	if (composition->merged)
		scrub_add(s, composition->root, mask);
	for (size_t i = 0; i < count; i++)
		scrub_add(s, layers[i].root, mask);
}

static void scrub_generation(struct scrub *s, struct config *c, uint64_t generation)
{
	struct candidate *v;
	char why[FILE_WHY];

	if (pipeline_load(c, generation, c->current_overrides, &v, why)) {
		scrub_hide_all(s);
		return;
	}
	scrub_composition(s, &v->composition, c->settings->mask);
	candidate_free(v);
}

void pipeline_scrub(void *arg, struct buffer *out, const char *text, size_t len)
{
	uint64_t generations[STORE_MAX_KEEP];
	struct config *c = arg;
	struct scrub *s = c->settings->mask ? scrub_new() : NULL;
	size_t count = c->store && c->published.generation ? store_list(c->store, generations) : 0;

	if (!s) {
		buffer_append(out, c->settings->mask ? "***" : text, c->settings->mask ? 3 : len);
		return;
	}
	if (c->programs) /* else another thread may be at the candidate, which no program has seen
			  */
		scrub_composition(s, &c->candidate->composition, c->settings->mask);
	for (size_t i = 0, used = 0; i < count && used < 2; i++)
		if (generations[i] <= c->published.generation) {
			scrub_generation(s, c, generations[i]);
			used++;
		}
	scrub_append(s, out, text, len);
	scrub_free(s);
}

/* ---- under way ---- */

/* Ends the run without a failure. */
static void hold_candidate(struct config *c, enum rejection_reason reason, const char *why)
{
	keep_rejected(c, reason, "", why);
	config_run_succeeded(c, CONFIG_HELD);
}

/* A pin holds the candidate: true, and the run is ended. */
static bool is_held_by_pin(struct config *c)
{
	if (!c->ledger->pin.by)
		return false;
	log_info("pinned: a new version is not published", "config", c->settings->name, "version",
		VERSION_TEXT(&c->candidate->version));
	hold_candidate(c, REJECTED_BY_PIN, "pinned");
	return true;
}

void pipeline_hold(struct config *c, const char *why)
{
	log_info("not rolled out to this host yet: keeping the current version", "config",
		c->settings->name, "version", VERSION_TEXT(&c->candidate->version), "why", why);
	hold_candidate(c, REJECTED_BY_ROLLOUT, why);
}

static void accept_candidate(struct config *c)
{
	if (c->env->dry_run)
		publishing_dry_run(c);
	else if (c->candidate->local || !is_held_by_pin(c)) /* the pin may have come meanwhile */
		publishing_start(c);
}

static void programs_ended(void *arg, const struct programs_result *result)
{
	struct config *c = arg;

	c->programs = NULL;
	if (result->rejected)
		reject_candidate(c, result->check, result->why);
	else if (result->why[0])
		pipeline_fail(c, NO_PROGRAM, result->why);
	else
		accept_candidate(c);
}

static void start_programs(struct config *c)
{
	const struct programs_options options = {
		.loop = c->env->loop,
		.config = c->settings,
		.runtime_dir = c->env->runtime_dir,
		.candidate = c->candidate,
		.generation = c->store ? store_next_generation(c->store) : 0,
		.scrub = pipeline_scrub,
		.ended = programs_ended,
		.arg = c,
	};
	char why[FILE_WHY] = "";

	c->programs_since_ms = c->env->sys->now_ms();
	if (!programs_wanted(c->settings))
		accept_candidate(c);
	else if (programs_start(&options, &c->programs, why))
		pipeline_fail(c, NO_PROGRAM, why);
}

void pipeline_validated(struct config *c, int error, const struct verify_result *result)
{
	const char *why = result->why[0] ? result->why : error ? strerror(-error) : "";

	if (c->candidate->repair_cause)
		current_repair(c, error, why);
	else if (error == -EINVAL || error == -EMSGSIZE)
		reject_candidate(c, result->check, result->why);
	else if (error)
		pipeline_fail(c, NOT_VALIDATED, why);
	else
		start_programs(c);
}

/* The ledger has a verdict on the candidate: true, and the run is ended. */
static bool is_known_rejected(struct config *c)
{
	const struct ledger_verdict *v;
	char why[FILE_WHY];

	if (c->forced || pipeline_prepare_checks(c, why))
		return false;
	v = ledger_find_verdict(c->ledger, c->candidate->version.sha256, verify_id(c->checks));
	if (!v)
		return false;
	keep_rejected(c, rejection_parse(v->check), v->checks, v->why);
	if (c->rejected)
		pipeline_end_rejected(c);
	else
		pipeline_fail(c, NOT_VALIDATED, "out of memory");
	return true;
}

void pipeline_forget_current(struct config *c)
{
	for (size_t i = 0; i < c->published.part_count; i++)
		c->published.parts[i].etag[0] = c->published.parts[i].last_modified[0] = '\0';
	c->published.sha256[0] = '\0';
}

/* The candidate from the pull's parts. 0 or -errno with a sentence. */
static int make_candidate(struct config *c, char why[FILE_WHY])
{
	int r = -ENOMEM;

	snprintf(why, FILE_WHY, "out of memory");
	c->candidate = candidate_new();
	if (c->candidate)
		r = candidate_take(c->candidate, c->pull, c->store,
			c->rejected ? &c->rejected->version : &c->published,
			c->rejected ? &c->rejected->body : NULL, c->env->sys->wall_ms(), why);
	pull_release(c->pull);
	return r;
}

/* The same bytes under new names: the next request asks by these. */
static void rename_current(struct config *c)
{
	c->candidate->version.generation = c->published.generation;
	c->candidate->version.product_len = c->published.product_len;
	publishing_set_current(c);
	pipeline_drop_candidate(c);
	pipeline_forget_rejected(c);
	current_confirm_pull(c);
}

void pipeline_take_pull(struct config *c)
{
	char why[FILE_WHY];
	int r = make_candidate(c, why);

	if (r == 0 && !c->env->dry_run && current_open(c, why)) {
		pipeline_fail(c, CONFIG_CANNOT_PUBLISH, why);
	} else if (r) {
		if (!c->rejected && (r == -ENOENT || r == -EBADMSG))
			pipeline_forget_current(c);
		pipeline_fail(c, "rejected: keeping the current version", why);
	} else if (c->published.generation && version_same(&c->published, &c->candidate->version)) {
		rename_current(c);
	} else if (c->env->dry_run ||
		   (!is_known_rejected(c) && !is_held_by_pin(c) && !rollout_gate_ask(c))) {
		validation_start(c, VERIFY_NEW);
	}
}
