/*
 * The checks' work on a version: parsed, merged, validated, compared with what is published, made
 * into text and snapshot. A large version is validated on a thread of its own, so that no other
 * config waits for it.
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

/* What goes to the thread; below that the way there and back costs more than it saves. */
#define LARGE (16u << 10)

struct validating {
	struct worker_job job;
	struct config *config;
	struct candidate *candidate;
	enum verify_level level;
	_Atomic bool given_up; /* its result is not wanted any more */
	/* as it was when it began */
	int not_ready; /* -errno of the checks, with not_ready_why */
	char not_ready_why[FILE_WHY];
	uint64_t revs[SETTINGS_MAX_LAYERS];
	uint64_t published; /* generation; 0 = nothing is */
	size_t published_bytes;
	bool forced, snapshot;
	int64_t wall_ms;
	char version_text[256];
	/* what comes of it */
	int error;
	struct verify_result judgement;
};

/* ---- before ---- */

/* Those that the candidate is composed with: what is only put back is as it was. Notes them. */
static int take_overrides(struct config *c)
{
	bool put_back = !c->candidate->save && c->published.generation &&
			c->candidate->version.generation == c->published.generation;
	const struct ledger *l = put_back ? c->stood : c->ledger;

	ledger_free(c->composed);
	c->composed = l && l->override_count ? operate_overrides(l) : NULL;
	return l && l->override_count && !c->composed ? -ENOMEM : 0;
}

static void begin(struct config *c, enum verify_level level, struct validating *j)
{
	*j = (struct validating){
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
	j->not_ready = take_overrides(c);
	if (j->not_ready == 0 && level > VERIFY_TRUSTED)
		j->not_ready = version_ready_judges(c, j->not_ready_why);
}

/* ---- the work; on either thread ---- */

static bool needs_published(const struct config *c, const struct candidate *candidate)
{
	const struct settings_config *s = c->settings;

	return s->reload.rule_count || s->guard.max_changes ||
	       (candidate->composition.root && !candidate->composition.root->first);
}

static int check(struct validating *j, const struct candidate *before)
{
	struct candidate *candidate = j->candidate;
	const struct verify_case the_case = {
		.pieces = candidate->pieces,
		.count = candidate->version.part_count,
		.composition = &candidate->composition,
		.bytes = candidate_bytes(candidate),
		.before = before ? before->composition.root : NULL,
		.before_bytes = j->published_bytes,
		.revs = j->revs,
		.level = j->level,
		.forced = j->forced,
		.wall_ms = j->wall_ms,
	};
	struct config *c = j->config;
	int r = verify_try(c->checks, &the_case, &j->judgement);

	if (r || j->given_up)
		return r;
	candidate->expires_ms = j->judgement.expires_ms;
	memcpy(candidate->revs, j->judgement.revs, sizeof(candidate->revs));
	return c->settings->dir ? candidate_compare_files(candidate, before, c->settings)
				: candidate_compare(candidate, the_case.before);
}

/* Text and snapshot. */
static int make_outputs(struct validating *j)
{
	char why[FILE_WHY] = "";
	int r = candidate_outputs(j->candidate, j->config->settings,
		j->version_text[0] ? j->version_text : NULL, j->snapshot, why);

	j->judgement.check = r == -EMSGSIZE ? CHECK_SIZE : CHECK_FORMAT;
	snprintf(j->judgement.why, sizeof(j->judgement.why), "%s", why);
	return r;
}

static void work(struct validating *j)
{
	struct config *c = j->config;
	struct candidate *before = NULL;
	char why[FILE_WHY] = "";
	int r;

	j->judgement = (struct verify_result){.check = CHECK_SYNTAX};
	r = candidate_compose(j->candidate, c->settings, c->composed, why);
	compose_drop_layers(&j->candidate->composition);
	if (r == 0 && j->not_ready) {
		r = j->not_ready == -EINVAL ? -EIO : j->not_ready; /* not the version's fault */
		snprintf(why, sizeof(why), "%s", j->not_ready_why);
	}
	if (r || j->given_up) {
		snprintf(j->judgement.why, sizeof(j->judgement.why), "%s", why);
		j->error = r;
		return;
	}
	if (j->published && needs_published(c, j->candidate) &&
		version_load(c, j->published, c->stood, &before, why))
		before = NULL; /* not known */
	if (before)
		compose_drop_layers(&before->composition);
	j->error = j->given_up ? 0 : check(j, before);
	candidate_free(before);
	if (j->error == 0 && !j->given_up)
		j->error = make_outputs(j);
}

/* ---- on the thread ---- */

static void run(struct worker_job *job)
{
	struct validating *j =
		(struct validating *)((char *)job - offsetof(struct validating, job));

	j->config->judging_since_ms = j->config->env->sys->now_ms();
	if (!j->given_up)
		work(j);
	j->config->judging_since_ms = 0;
}

static void done(struct worker_job *job)
{
	struct validating *j =
		(struct validating *)((char *)job - offsetof(struct validating, job));
	struct config *c = j->config;

	c->validating = NULL;
	if (j->given_up)
		version_drop(c);
	else
		version_judged(c, j->error, &j->judgement);
	free(j);
	config_retire_on(c);
}

void judging_give_up(struct validating *j)
{
	j->given_up = true;
}

/* ---- both ways ---- */

/* A few aliases make a large document of a small text. */
static bool has_aliases(const struct buffer *body)
{
	return body->len && memchr(body->data, '&', body->len) &&
	       memchr(body->data, '*', body->len);
}

static bool is_large(const struct config *c)
{
	/* a schema may look at a single value a million times */
	return c->settings->schema || c->candidate->body.len > LARGE ||
	       version_bytes(&c->published) > LARGE || has_aliases(&c->candidate->body);
}

int version_judge(struct config *c, enum verify_level level, struct verify_result *ret)
{
	struct validating *j = malloc(sizeof(*j));
	int r = -ENOMEM;

	*ret = (struct verify_result){.check = CHECK_SYNTAX};
	if (j) {
		begin(c, level, j);
		work(j);
		*ret = j->judgement;
		r = j->error;
	}
	free(j);
	return r;
}

void version_try(struct config *c, enum verify_level level)
{
	struct verify_result judgement;
	struct validating *j = c->env->check && is_large(c) ? malloc(sizeof(*j)) : NULL;
	int r;

	if (j) {
		begin(c, level, j);
		j->job = (struct worker_job){.run = run, .done = done};
		c->validating = j;
		worker_submit(c->env->check, &j->job);
		return;
	}
	r = version_judge(c, level, &judgement);
	version_judged(c, r, &judgement);
}
