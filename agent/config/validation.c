/*
 * The checks at work on a version: parsed, merged, validated, compared with the current version,
 * made into text and snapshot. A large version is validated on a thread of its own, so that no
 * other config waits for it.
 *
 * Surprising: both ways run the same function. It reads nothing of the config but what does not
 * change while a candidate is under way (settings, the store's files, the schema, the overrides
 * that the candidate is composed with); everything else was copied when it began. It writes to the
 * step's candidate and overrides alone.
 */
#include "config/core.h"

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
	struct kept_layers *kept; /* of the config, on the thread; NULL = none */
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
	/* results */
	int error;
	struct verify_result result;
};

/* ---- versions of the store ---- */

static int read_version(
	struct config *c, uint64_t generation, struct candidate **ret, char why[FILE_WHY])
{
	struct candidate *v = candidate_new();
	unsigned damaged;
	int r;

	if (!v) {
		snprintf(why, FILE_WHY, "out of memory");
		return -ENOMEM;
	}
	r = candidate_load(v, c->current.store, generation, &damaged, why);
	if (r == -ENOENT)
		snprintf(why, FILE_WHY,
			"there is no generation %llu in the state directory: `pullet history %s` "
			"lists those that are kept",
			(unsigned long long)generation, c->settings->name);
	if (r)
		candidate_free(v);
	else
		*ret = v;
	return r;
}

static int load_version(struct config *c, uint64_t generation, const struct ledger *overrides,
	const struct kept_layers *kept, struct candidate **ret, char why[FILE_WHY])
{
	struct candidate *v;
	int r = read_version(c, generation, &v, why);

	if (r)
		return r;
	r = candidate_compose(v, c->settings, overrides, kept, why);
	if (r)
		candidate_free(v);
	else
		*ret = v;
	return r == -EINVAL ? -EBADMSG : r;
}

int validation_load_own(struct config *c, uint64_t generation, struct candidate **ret,
	struct ledger **ret_overrides, char why[FILE_WHY])
{
	struct ledger *own = NULL;
	struct candidate *v;
	const char *text;
	int r = read_version(c, generation, &v, why);

	if (r)
		return r;
	text = v->version.decisions; /* what cannot be read is unknown, as in an older file */
	if (text && text[0] && ledger_read(text, strlen(text), &own) == -ENOMEM) {
		snprintf(why, FILE_WHY, "out of memory");
		r = -ENOMEM;
	}
	if (r == 0)
		r = candidate_compose(v, c->settings, own, NULL, why);
	if (r == 0) {
		*ret = v;
		*ret_overrides = own;
		return 0;
	}
	candidate_free(v);
	ledger_free(own);
	return r == -EINVAL ? -EBADMSG : r;
}

int validation_load(struct config *c, uint64_t generation, const struct ledger *overrides,
	struct candidate **ret, char why[FILE_WHY])
{
	return load_version(c, generation, overrides, NULL, ret, why);
}

int validation_prepare(struct config *c, char why[FILE_WHY])
{
	const char *note;
	int r = verify_ready(c->decisions.checks, &note, why);

	if (r == 0 && note[0])
		log_warn("the schema has keywords that mean nothing here", "config",
			c->settings->name, "keywords", note);
	return r;
}

/* ---- before ---- */

static void begin_validation(struct config *c, enum verify_level level, struct validation *j)
{
	*j = (struct validation){
		.config = c,
		.candidate = c->step.candidate,
		.level = level,
		.published = c->current.version.generation,
		.published_bytes = version_bytes(&c->current.version),
		.forced = c->step.force == FORCE_ASKED,
		.snapshot = c->settings->snapshot && !c->env->dry_run,
		.wall_ms = c->env->sys->wall_ms(),
	};
	if (c->decisions.ledger && ledger_revs(c->decisions.ledger))
		memcpy(j->revs, ledger_revs(c->decisions.ledger), sizeof(j->revs));
	snprintf(j->not_ready_why, sizeof(j->not_ready_why), "out of memory");
	if (level > VERIFY_TRUSTED)
		j->not_ready = validation_prepare(c, j->not_ready_why);
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
	int r = verify_try(c->decisions.checks, &the_case, &j->result);

	if (r || j->given_up)
		return r;
	candidate->expires_ms = j->result.expires_ms;
	memcpy(candidate->revs, j->result.revs, sizeof(candidate->revs));
	free(candidate->unsigned_why);
	candidate->unsigned_why = NULL;
	if (j->result.unsigned_why[0]) {
		candidate->unsigned_why = strdup(j->result.unsigned_why);
		if (!candidate->unsigned_why)
			return -ENOMEM;
	}
	return c->settings->dir ? candidate_compare_files(candidate, before, c->settings)
				: candidate_compare(candidate, the_case.before);
}

/* Text and snapshot. */
static int make_outputs(struct validation *j)
{
	char why[FILE_WHY] = "";
	int r = candidate_outputs(j->candidate, j->config->settings,
		VERSION_TEXT(&j->candidate->version), j->snapshot, why);

	j->result.check = r == -EMSGSIZE ? CHECK_SIZE : CHECK_FORMAT;
	snprintf(j->result.why, sizeof(j->result.why), "%s", why);
	return r;
}

/* What the version is compared with; NULL: it is not, or is unknown. */
static struct candidate *load_published(struct validation *j)
{
	struct config *c = j->config;
	struct candidate *before;
	char why[FILE_WHY];

	if (!j->published || !needs_published(c, j->candidate) ||
		load_version(c, j->published, c->current.overrides, j->kept, &before, why))
		return NULL;
	compose_drop_layers(&before->composition);
	return before;
}

/* From here on the result alone is wanted; the next version may have the same layers. */
static void drop_layers(struct validation *j)
{
	struct candidate *v = j->candidate;

	if (j->kept && v->composition.merged)
		compose_keep_layers(&v->composition, v->pieces, v->version.part_count, j->kept);
	compose_drop_layers(&v->composition);
}

static void validate_candidate(struct validation *j)
{
	struct config *c = j->config;
	struct candidate *before = NULL;
	char why[FILE_WHY] = "";
	int r;

	j->result = (struct verify_result){.check = CHECK_SYNTAX};
	r = c->step.generation ? step_load(c, why) : 0;
	if (r == -EINVAL)
		r = -EIO; /* that is what a bad version is */
	if (r == 0)
		r = candidate_compose(j->candidate, c->settings, c->step.overrides, j->kept, why);
	if (r == 0 && j->not_ready) {
		r = j->not_ready == -EINVAL ? -EIO : j->not_ready; /* not the version's fault */
		snprintf(why, sizeof(why), "%s", j->not_ready_why);
	}
	if (r == 0 && !j->given_up)
		before = load_published(j);
	drop_layers(j);
	if (r || j->given_up) {
		snprintf(j->result.why, sizeof(j->result.why), "%s", why);
		j->error = r;
	} else {
		j->error = check_candidate(j, before);
	}
	candidate_free(before);
	if (j->error == 0 && !j->given_up)
		j->error = make_outputs(j);
}

/* Frees what nobody needs any more. */
static void drop_remains(struct validation *j)
{
	const struct config *c = j->config;

	if (j->error || j->given_up)
		candidate_drop_outputs(j->candidate);
	else if (!programs_wanted(c->settings) && !c->env->dry_run)
		compose_fini(&j->candidate->composition);
}

/* ---- on the thread ---- */

static void run_validation(struct worker_job *job)
{
	struct validation *j =
		(struct validation *)((char *)job - offsetof(struct validation, job));

	j->config->step.validating_since_ms = j->config->env->sys->now_ms();
	if (!j->given_up)
		validate_candidate(j);
	drop_remains(j);
	j->config->step.validating_since_ms = 0;
}

static void validation_done(struct worker_job *job)
{
	struct validation *j =
		(struct validation *)((char *)job - offsetof(struct validation, job));
	struct config *c = j->config;

	c->step.validating = NULL;
	if (j->kept)
		kept_layers_return(j->kept);
	if (j->given_up)
		step_drop(c);
	else
		step_validated(c, j->error, &j->result);
	free(j);
	config_settle(c);
	config_finish_retiring(c);
}

void validation_give_up(struct validation *j)
{
	j->given_up = true;
}

/* What the config keeps, for the job; NULL = nothing. A single layer is a new one whenever it is
 * parsed, and files of a set are not merged. */
static struct kept_layers *lend_layers(struct config *c)
{
	const struct settings_config *s = c->settings;

	if (!c->env->shelf || s->layer_count < 2 || s->dir || s->type == SETTINGS_TYPE_BYTES)
		return NULL;
	if (c->kept)
		kept_layers_lend(c->kept);
	else
		c->kept = kept_layers_new(c->env->shelf);
	return c->kept;
}

/* ---- both ways ---- */

/* A few aliases make a small text a large document. */
static bool has_aliases(const struct buffer *body)
{
	return body->len && memchr(body->data, '&', body->len) &&
	       memchr(body->data, '*', body->len);
}

bool validation_is_large_file(const struct config *c, uint64_t generation)
{
	struct store_file f;

	return generation &&
	       (store_describe_file(c->current.store, generation, &f) || f.bytes > LARGE);
}

static bool is_large_candidate(const struct config *c)
{
	const struct buffer *body = &c->step.candidate->body;

	/* a schema may check a single value a million times, and a template write it */
	return c->settings->schema || c->settings->template || body->len > LARGE ||
	       version_bytes(&c->current.version) > LARGE || has_aliases(body) ||
	       validation_is_large_file(c, c->step.generation);
}

void validation_start(struct config *c, enum verify_level level)
{
	struct validation *j, here;

	j = c->env->check && !c->step.starts && is_large_candidate(c) ? malloc(sizeof(*j)) : NULL;
	if (j) {
		begin_validation(c, level, j);
		j->kept = lend_layers(c);
		j->job = (struct worker_job){.run = run_validation, .done = validation_done};
		c->step.validating = j;
		worker_submit(c->env->check, &j->job);
		return;
	}
	begin_validation(c, level, &here);
	validate_candidate(&here);
	step_validated(c, here.error, &here.result);
}
