/*
 * The checks at work on a version: parsed, merged, validated, compared with the current version,
 * made into text and snapshot. A large version is validated on a thread of its own, so that no
 * other config waits for it.
 *
 * Surprising: both ways run the same function. It reads nothing of the config but what does not
 * change while a candidate is under way (settings, the store's files, the schema, the overrides
 * that the candidate is composed with); everything else was copied when it began. It writes to the
 * candidate alone.
 */
#include "config/state.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Smaller versions are validated on the loop: the hand-over would cost more. */
#define LARGE (16u << 10)

struct validation {
	struct worker_job job;
	struct config *config;
	struct candidate *candidate;
	enum verify_level level;
	_Atomic bool given_up; /* the result is dropped */
	/* copied when it began */
	int not_ready; /* -errno of the checks, with not_ready_why */
	char not_ready_why[FILE_WHY];
	uint64_t revs[SETTINGS_MAX_LAYERS];
	uint64_t published; /* generation; 0 = nothing is */
	size_t published_bytes;
	bool forced, snapshot;
	int64_t wall_ms;
	char version_text[256];
	/* results */
	int error;
	struct verify_result result;
};

/* ---- before ---- */

/* Notes the overrides for the candidate: for a repair those of the current version. */
static int copy_current_overrides(struct config *c)
{
	bool repairs = !c->candidate->save && c->published.generation &&
		       c->candidate->version.generation == c->published.generation;
	const struct ledger *l = repairs ? c->current_overrides : c->ledger;

	ledger_free(c->next_overrides);
	c->next_overrides = l && l->override_count ? operations_copy_overrides(l) : NULL;
	return l && l->override_count && !c->next_overrides ? -ENOMEM : 0;
}

static void begin_validation(struct config *c, enum verify_level level, struct validation *j)
{
	*j = (struct validation){
		.config = c,
		.candidate = c->candidate,
		.level = level,
		.published = c->published.generation,
		.published_bytes = version_bytes(&c->published),
		.forced = c->forced,
		.snapshot = c->settings->snapshot && !c->env->dry_run,
		.wall_ms = c->env->sys->wall_ms(),
	};
	version_text(&c->candidate->version, j->version_text);
	if (c->ledger && ledger_revs(c->ledger))
		memcpy(j->revs, ledger_revs(c->ledger), sizeof(j->revs));
	snprintf(j->not_ready_why, sizeof(j->not_ready_why), "out of memory");
	j->not_ready = copy_current_overrides(c);
	if (j->not_ready == 0 && level > VERIFY_TRUSTED)
		j->not_ready = pipeline_prepare_checks(c, j->not_ready_why);
}

/* ---- the work; on either thread ---- */

static bool needs_published(const struct config *c, const struct candidate *candidate)
{
	const struct settings_config *s = c->settings;

	return s->reload.rule_count || s->guard.max_changes ||
	       (candidate->composition.root && !candidate->composition.root->first);
}

static int check_candidate(struct validation *j, const struct candidate *before)
{
	struct candidate *candidate = j->candidate;
	const struct verify_case the_case = {
		.pieces = candidate->pieces,
		.count = candidate->version.part_count,
		.composition = &candidate->composition,
		.bytes = version_bytes(&candidate->version),
		.before = before ? before->composition.root : NULL,
		.before_bytes = j->published_bytes,
		.revs = j->revs,
		.level = j->level,
		.forced = j->forced,
		.wall_ms = j->wall_ms,
	};
	struct config *c = j->config;
	int r = verify_try(c->checks, &the_case, &j->result);

	if (r || j->given_up)
		return r;
	candidate->expires_ms = j->result.expires_ms;
	memcpy(candidate->revs, j->result.revs, sizeof(candidate->revs));
	return c->settings->dir ? candidate_compare_files(candidate, before, c->settings)
				: candidate_compare(candidate, the_case.before);
}

/* Text and snapshot. */
static int make_outputs(struct validation *j)
{
	char why[FILE_WHY] = "";
	int r = candidate_outputs(j->candidate, j->config->settings,
		j->version_text[0] ? j->version_text : NULL, j->snapshot, why);

	j->result.check = r == -EMSGSIZE ? CHECK_SIZE : CHECK_FORMAT;
	snprintf(j->result.why, sizeof(j->result.why), "%s", why);
	return r;
}

static void validate_candidate(struct validation *j)
{
	struct config *c = j->config;
	struct candidate *before = NULL;
	char why[FILE_WHY] = "";
	int r;

	j->result = (struct verify_result){.check = CHECK_SYNTAX};
	r = candidate_compose(j->candidate, c->settings, c->next_overrides, why);
	compose_drop_layers(&j->candidate->composition);
	if (r == 0 && j->not_ready) {
		r = j->not_ready == -EINVAL ? -EIO : j->not_ready; /* not the version's fault */
		snprintf(why, sizeof(why), "%s", j->not_ready_why);
	}
	if (r || j->given_up) {
		snprintf(j->result.why, sizeof(j->result.why), "%s", why);
		j->error = r;
		return;
	}
	if (j->published && needs_published(c, j->candidate) &&
		pipeline_load(c, j->published, c->current_overrides, &before, why))
		before = NULL; /* unknown */
	if (before)
		compose_drop_layers(&before->composition);
	j->error = j->given_up ? 0 : check_candidate(j, before);
	candidate_free(before);
	if (j->error == 0 && !j->given_up)
		j->error = make_outputs(j);
}

/* ---- on the thread ---- */

static void run_validation(struct worker_job *job)
{
	struct validation *j =
		(struct validation *)((char *)job - offsetof(struct validation, job));

	j->config->validating_since_ms = j->config->env->sys->now_ms();
	if (!j->given_up)
		validate_candidate(j);
	j->config->validating_since_ms = 0;
}

static void validation_done(struct worker_job *job)
{
	struct validation *j =
		(struct validation *)((char *)job - offsetof(struct validation, job));
	struct config *c = j->config;

	c->validating = NULL;
	if (j->given_up)
		pipeline_drop_candidate(c);
	else
		pipeline_validated(c, j->error, &j->result);
	free(j);
	config_finish_retiring(c);
}

void validation_give_up(struct validation *j)
{
	j->given_up = true;
}

/* ---- both ways ---- */

/* A few aliases make a small text a large document. */
static bool has_aliases(const struct buffer *body)
{
	return body->len && memchr(body->data, '&', body->len) &&
	       memchr(body->data, '*', body->len);
}

static bool is_large_candidate(const struct config *c)
{
	/* a schema may check a single value a million times */
	return c->settings->schema || c->candidate->body.len > LARGE ||
	       version_bytes(&c->published) > LARGE || has_aliases(&c->candidate->body);
}

int validation_run(struct config *c, enum verify_level level, struct verify_result *ret)
{
	struct validation *j = malloc(sizeof(*j));
	int r = -ENOMEM;

	*ret = (struct verify_result){.check = CHECK_SYNTAX};
	if (j) {
		begin_validation(c, level, j);
		validate_candidate(j);
		*ret = j->result;
		r = j->error;
	}
	free(j);
	return r;
}

void validation_start(struct config *c, enum verify_level level)
{
	struct verify_result result;
	struct validation *j = c->env->check && is_large_candidate(c) ? malloc(sizeof(*j)) : NULL;
	int r;

	if (j) {
		begin_validation(c, level, j);
		j->job = (struct worker_job){.run = run_validation, .done = validation_done};
		c->validating = j;
		worker_submit(c->env->check, &j->job);
		return;
	}
	r = validation_run(c, level, &result);
	pipeline_validated(c, r, &result);
}
