/*
 * The last phase of a step: commit, show, record; the state file is brought to the disk later
 * (syncing) where that can wait.
 *
 * Surprising: once begun it is never given up half-way, not even when the config retires.
 */
#include "config/core.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LARGE (1u << 20) /* bytes */
#define CANNOT_PUBLISH "could not publish: keeping the current version"
#define CANNOT_START "the last known good could not be published"

/* ---- the publication ---- */

/* A pull brings what was current before the current version. */
static bool brings_earlier(const struct config *c)
{
	return c->step.decision.action == ACTION_PUBLISH && c->current.before_age &&
	       c->current.before_digest == version_digest_begin(&c->step.candidate->version);
}

/* A generation with the bytes of the candidate, which is published once more. */
static uint64_t repeated_generation(const struct config *c)
{
	if (strcmp(c->current.version.sha256, c->step.candidate->version.sha256) == 0)
		return c->current.version.generation;
	if (brings_earlier(c))
		return c->current.version.generation - c->current.before_age;
	return c->step.generation;
}

/* A rollback at the server, and forward again, are 2 turns. */
static void warn_of_turns(const struct config *c)
{
	if (c->current.turns % 64 == 3)
		log_warn("the server shows two versions in turn: its addresses, or caches before "
			 "them, do not agree",
			"config", c->settings->name, "version", VERSION_TEXT(&c->current.version));
}

/* Before the candidate becomes current. */
static void note_before(struct config *c)
{
	const struct version *old = &c->current.version, *new = &c->step.candidate->version;
	uint64_t age = new->generation - old->generation;

	if (strcmp(old->sha256, new->sha256) == 0) {
		age = c->current.before_age ? age + c->current.before_age : 0;
	} else {
		c->current.turns = brings_earlier(c) ? (unsigned char)(c->current.turns + 1u) : 0;
		c->current.before_digest = version_digest_begin(old);
	}
	c->current.before_age = old->generation && age <= UINT8_MAX ? (unsigned char)age : 0;
}

static void fill_publication(struct config *c)
{
	struct candidate *candidate = c->step.candidate;
	const struct buffer *text = candidate_text(candidate);

	candidate->publication = (struct publication){
		.sys = c->env->sys,
		.config = c->settings,
		.store = c->current.store,
		.save = step_saves(c),
		.give_up = c->step.decision.origin == ORIGIN_OPERATOR,
		.spared = {c->decisions.ledger->proven, latest_generation(c)},
		.repeated = step_saves(c) ? repeated_generation(c) : 0,
		.target = c->current.target,
		.fileset = c->current.fileset,
		.image = candidate->image ? c->current.image : NULL,
		.image_data = candidate->image,
		.image_len = candidate->image_len,
		.shown_dir = c->settings->snapshot ? NULL : c->env->runtime_dir,
		.version = &candidate->version,
		.pieces = candidate->pieces,
		.body = candidate->body.data ? candidate->body.data : "",
		.body_len = candidate->body.len,
		.text = text->data ? text->data : "",
		.text_len = text->len,
	};
}

/* Gives a new version its generation, and what its state file says. 0 or -ENOMEM. */
static int prepare_state_file(struct config *c)
{
	struct candidate *candidate = c->step.candidate;

	if (!step_saves(c))
		return 0;
	if (settings_makes_product(c->settings->format) && candidate_append_product(candidate))
		return -ENOMEM;
	candidate->version.generation = store_next_generation(c->current.store);
	memcpy(candidate->version.settings, c->current.settings,
		sizeof(candidate->version.settings));
	reason_of_step(c);
	return decisions_write(c);
}

static void forget_places(struct config *c)
{
	if (c->current.target)
		target_forget(c->current.target);
	if (c->current.fileset)
		file_set_forget(c->current.fileset);
}

/* Skips places that are right already: their readers need not wake up. */
static void skip_current_places(struct config *c)
{
	struct publication *p = &c->step.candidate->publication;

	if (c->step.decision.action == ACTION_SHOW) /* what they know is the version before */
		forget_places(c);
	if (p->target && target_is_current(p->target, p->text, p->text_len))
		p->target = NULL;
	if (p->fileset && publish_set_is_current(p))
		p->fileset = NULL;
	if (c->settings->format == SETTINGS_FORMAT_RUN && !c->step.candidate->has_text)
		p->target = NULL; /* a program must run first */
}

/* Copying it may take as long as a disk does. */
static bool is_large_publication(const struct publication *p)
{
	return p->text_len + p->body_len + p->image_len > LARGE;
}

/* ---- its end ---- */

static void log_published(struct config *c, const struct publication *p)
{
	const struct version *v = &c->current.version;
	bool comes = !v->origin && c->step.decision.row == ROW_LATEST_IS_PUBLISHED;

	if (!c->step.quiet)
		log_info("published", "config", c->settings->name, "generation",
			LOG_U64(v->generation), "version", VERSION_TEXT(v), "bytes",
			LOG_U64(p->text_len), "file", settings_place(c->settings), "origin",
			v->origin, "cause", comes ? version_cause_name(v->cause) : NULL, "by",
			comes ? v->by : NULL);
}

/* But for a repair, which is noted with its cause, and the first pull, which the history has. */
static void note_published_event(struct config *c)
{
	const struct version *v = &c->current.version;

	if (c->step.decision.action != ACTION_HEAL && v->cause != CAUSE_START)
		events_note(c, EVENT_PUBLISHED, version_cause_name(v->cause),
			v->origin ? v->origin : v->by);
}

/* What follows from the version is in the ledger; the guard compared with the one before. */
static void record_version(struct config *c, bool replaces, bool starts)
{
	struct ledger *l = c->decisions.ledger;
	bool changed = c->step.decided;

	decisions_record(c, c->current.version.generation, c->current.version.sha256);
	if (replaces && !starts) /* also one that was forced, and could not be shown at first */
		changed |= ledger_forgive(l, c->current.version.sha256);
	if (replaces)
		changed |= ledger_forgive_check(l, verify_check_name(CHECK_GUARD));
	if (changed)
		decisions_save(c);
	if (c->step.decision.row == ROW_OPERATOR_OVERRIDES)
		decisions_forgive_checks(c);
}

static void follow_published(struct config *c)
{
	struct candidate *v = c->step.candidate;
	enum decide_action action = c->step.decision.action;
	enum decide_row row = action == ACTION_SHOW ? c->current.saved_by : c->step.decision.row;
	bool all = v->all_changed || row == ROW_OTHER_SETTINGS; /* the same keys, in another form */

	if (c->current.notify && action != ACTION_HEAL)
		notify_published(c->current.notify, c->current.version.generation, v->keys,
			v->key_count, all, decisions_prove(c, row));
}

/* Some of the failed version may be visible: the files of the current one are put back. */
static void note_half_shown(struct config *c, const struct publication *p)
{
	enum decide_action action = c->step.decision.action;

	if (action == ACTION_HEAL || !c->current.version.generation ||
		!(p->touched || action == ACTION_SHOW))
		return;
	forget_places(c);
	c->current.half_shown = true;
	c->current.drift_cause = "a publication failed";
	c->resting &= ~(1u << ROW_CHANGED_BY_OTHERS); /* whatever drift says, at once */
}

static void publication_failed(struct config *c, const struct publication *p)
{
	struct candidate *v = c->step.candidate;
	bool alone = c->step.decision.action == ACTION_HEAL && c->run.state == RUN_IDLE &&
		     (!c->status.error || c->current.repair_failed);
	char why[FILE_WHY];

	snprintf(why, sizeof(why), "%s", p->why);
	if (p->saved) {
		current_note_saved(c, &v->version);
		c->decisions.ledger->generation = v->version.generation;
		if (ledger_raise_revs(c->decisions.ledger, v->revs))
			decisions_save(c);
	}
	note_half_shown(c, p);
	decisions_return_pin(c, v->version.sha256);
	step_fail(c, c->current.version.generation || step_saves(c) ? CANNOT_PUBLISH : CANNOT_START,
		why);
	c->current.repair_failed = alone;
}

static void publication_ended(struct config *c)
{
	struct publication p = c->step.candidate->publication;
	bool replaces, starts, restores;

	if (p.error) {
		publication_failed(c, &p);
		return;
	}
	starts = !step_saves(c) && !c->current.version.generation;
	replaces = strcmp(c->current.version.sha256, c->step.candidate->version.sha256) != 0;
	restores = c->step.decision.action == ACTION_HEAL && !c->current.half_shown;
	if (c->step.decision.action != ACTION_HEAL)
		c->resting = 0;
	else if (c->current.repair_failed)
		status_recover(c);
	if (restores) {
		c->status.restored++;
		events_note(c, EVENT_RESTORED, NULL, c->step.cause);
	}
	c->current.repeated = p.repeated;
	note_before(c);
	current_replace(c);
	current_look(
		c); /* before anybody hears of it: what is changed after that has its own cause */
	record_version(c, replaces, starts);
	if (starts) {
		current_started(c);
	} else {
		c->status.published_wall_ms = c->env->sys->wall_ms();
		log_published(c, &p);
		warn_of_turns(c);
		note_published_event(c);
		follow_published(c);
	}
	if (p.not_durable) {
		log_warn("published, but a power cut may bring the old version back", "config",
			c->settings->name, "why", p.why);
		c->current.not_durable = true;
		c->current.to_sync |= SYNCING_PLACES; /* at the end of the next run */
	}
	if (p.save && !p.state_synced)
		syncing_ask(c, SYNCING_STATE);
	run_note_published(c);
	step_end(c, true);
}

static void run_publish_job(struct worker_job *job)
{
	struct config *c =
		(struct config *)((char *)job - offsetof(struct config, step.publish_job));

	c->step.on_worker_ms = c->env->sys->now_ms();
	publish_run(&c->step.candidate->publication);
	if (!c->step.candidate->publication.error) /* megabytes: the loop would be held by it */
		candidate_drop_published(c->step.candidate);
	c->step.on_worker_ms = 0;
}

static void publish_job_done(struct worker_job *job)
{
	struct config *c =
		(struct config *)((char *)job - offsetof(struct config, step.publish_job));

	c->step.publishing = false;
	publication_ended(c);
	config_settle(c);
	config_finish_retiring(c);
}

void publishing_start(struct config *c)
{
	struct candidate *candidate = c->step.candidate;
	struct publication *p = &candidate->publication;
	bool starts = c->step.starts;

	c->step.phase = STEP_SHOW;
	compose_fini(&candidate->composition); /* a thousand may wait for the disk */
	if (prepare_state_file(c)) {
		step_fail(c, CANNOT_PUBLISH, "out of memory");
		return;
	}
	fill_publication(c);
	if (c->step.decision.action == ACTION_PUBLISH) {
		p->confirmed_ms = c->env->sys->now_ms();
		p->stale_ms = config_stale_ms(c);
	}
	if (!step_saves(c))
		skip_current_places(c);
	if (!starts && (publish_blocks(p) || is_large_publication(p))) {
		c->step.publishing = true;
		worker_submit(c->env->worker, &c->step.publish_job);
		return;
	}
	publish_run(p); /* at a start it may block */
	publication_ended(c);
}

void publishing_init(struct config *c)
{
	c->step.publish_job = (struct worker_job){.run = run_publish_job, .done = publish_job_done};
}
