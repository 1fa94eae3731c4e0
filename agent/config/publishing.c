/*
 * Publishing an accepted candidate: its number, what is decided with it, the worker's job, and what
 * follows; the state file is brought to the disk later where that can wait.
 *
 * Surprising: once begun it is never given up half-way; the run ends when the worker has ended.
 */
#include "config/state.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "document/diff.h"
#include "document/document.h"
#include "files/trusted.h"

#define LARGE (1u << 20) /* bytes */
#define CANNOT_PUBLISH "could not publish: keeping the current version"

/* ---- bringing files to the disk ---- */

static int sync_ledger_file(struct config *c)
{
	int r, dir = store_dir(c->store);

	if (dir < 0)
		return dir;
	r = ledger_sync(c->env->sys, dir);
	c->env->sys->close(dir);
	return r;
}

static void run_sync_job(struct worker_job *job)
{
	struct config *c = (struct config *)((char *)job - offsetof(struct config, sync_job));
	int r = 0;

	c->on_worker_ms = c->env->sys->now_ms();
	if (c->syncing & PUBLISHING_STATE)
		r = store_sync(c->store, c->sync_generation);
	if (r == 0 && c->syncing & PUBLISHING_LEDGER)
		r = sync_ledger_file(c);
	c->sync_error = r;
	c->on_worker_ms = 0;
}

void publishing_sync(struct config *c, unsigned files)
{
	if (store_in_memory(c->store))
		return;
	c->to_sync |= files;
	if (c->syncing || !c->to_sync)
		return;
	c->syncing = c->to_sync;
	c->to_sync = 0;
	c->sync_generation = c->published.generation;
	worker_submit(c->env->worker, &c->sync_job);
}

static void sync_job_done(struct worker_job *job)
{
	struct config *c = (struct config *)((char *)job - offsetof(struct config, sync_job));

	c->syncing = 0;
	/* Nothing that is visible is lost: the file stays in the page cache, and the next
	 * generation is a new file. */
	if (c->sync_error)
		log_warn("the state file is not on the disk: a power cut may lose it", "config",
			c->settings->name, "why", strerror(-c->sync_error));
	publishing_sync(c, 0);
	config_finish_retiring(c);
}

/* ---- the current version ---- */

void publishing_set_current(struct config *c)
{
	version_fini(&c->published);
	c->published = c->candidate->version;
	c->candidate->version = (struct version){.generation = 0};
	free(c->published.decisions); /* they are in the ledger */
	c->published.decisions = NULL;
}

void publishing_set_overrides(struct config *c)
{
	ledger_free(c->current_overrides);
	c->current_overrides = c->next_overrides;
	c->next_overrides = NULL;
}

/* Drops verdicts against the current version. */
static void forgive_current(struct config *c)
{
	if (ledger_forgive(c->ledger, c->published.sha256))
		current_save_ledger(c);
	if (c->rejected && strcmp(c->rejected->version.sha256, c->published.sha256) == 0)
		pipeline_forget_rejected(c);
}

/* The guard compared with the version before. */
static void forgive_guarded(struct config *c)
{
	if (ledger_forgive_check(c->ledger, verify_check_name(CHECK_GUARD)))
		current_save_ledger(c);
	if (c->rejected && c->rejected->reason == REJECTED_BY_GUARD)
		pipeline_forget_rejected(c);
}

void publishing_note_saved(struct config *c)
{
	c->saved_generation = c->candidate->version.generation;
	memcpy(c->saved_sha256, c->candidate->version.sha256, sizeof(c->saved_sha256));
}

void publishing_fill(struct config *c)
{
	struct candidate *candidate = c->candidate;
	const struct buffer *text = candidate_text(candidate);

	candidate->publication = (struct publication){
		.sys = c->env->sys,
		.config = c->settings,
		.store = c->store,
		.save = candidate->save,
		.target = c->target,
		.fileset = c->fileset,
		.image = candidate->image ? c->image : NULL,
		.image_data = candidate->image,
		.image_len = candidate->image_len,
		.version = &candidate->version,
		.pieces = candidate->pieces,
		.body = candidate->body.data ? candidate->body.data : "",
		.body_len = candidate->body.len,
		.text = text->data ? text->data : "",
		.text_len = text->len,
	};
}

/* ---- what is decided with a publication ---- */

/* Copies the verdicts that stay valid after it: about the replaced bytes, and its own. */
static int list_verdicts(struct config *c, struct ledger *ret_decided)
{
	const struct candidate *candidate = c->candidate;
	const char *own = candidate->version.sha256, *old = c->published.sha256;
	bool forgives = !candidate->local || candidate->stays;
	int r = 0;

	for (size_t i = 0; r == 0 && i < c->ledger->verdict_count; i++) {
		const struct ledger_verdict *v = &c->ledger->verdicts[i];
		bool about_own = strcmp(v->sha256, own) == 0;

		if (about_own ? !forgives : strcmp(v->sha256, old) == 0)
			r = ledger_reject(
				ret_decided, v->sha256, v->check, v->checks, v->at_ms, v->why);
	}
	return r;
}

/* Fills in the decisions of the state file. 0 or -errno. */
static int write_decisions(struct config *c)
{
	struct candidate *candidate = c->candidate;
	bool signed_ = c->settings->verify.public_keys;
	struct ledger *decided = c->next_overrides ? operations_copy_overrides(c->next_overrides)
						   : calloc(1, sizeof(*decided));
	struct buffer text;
	int r = decided ? list_verdicts(c, decided) : -ENOMEM;

	free(candidate->version.decisions);
	candidate->version.decisions = NULL;
	if (r == 0 && signed_)
		r = ledger_reserve_revs(c->ledger) ? -ENOMEM : ledger_reserve_revs(decided);
	if (r == 0) {
		ledger_raise_revs(decided, ledger_revs(c->ledger));
		ledger_raise_revs(decided, candidate->revs);
	}
	if (r == 0 && (decided->override_count || decided->verdict_count || decided->revs)) {
		buffer_init(&text, 1u << 20);
		r = ledger_write(decided, &text);
		if (r == 0 && !(candidate->version.decisions = strdup(text.data)))
			r = -ENOMEM;
		buffer_fini(&text);
	}
	ledger_free(decided);
	return r;
}

bool publishing_adopt_decisions(struct config *c)
{
	const struct version *v = &c->candidate->version;
	struct ledger *decided = NULL;
	int r = 0;

	if (v->decisions && v->decisions[0])
		r = ledger_read(v->decisions, strlen(v->decisions), &decided);
	else if (v->decisions)
		r = (decided = calloc(1, sizeof(*decided))) ? 0 : -ENOMEM;
	if (decided)
		r = ledger_adopt_decisions(c->ledger, v->generation, decided, v->sha256);
	ledger_free(decided);
	if (r < 0)
		log_err("the decisions in the state file are not known", "config",
			c->settings->name, "why", strerror(-r));
	return r > 0;
}

static void log_published(const struct config *c)
{
	const struct publication *p = &c->candidate->publication;

	if (!c->candidate->quiet)
		log_info("published", "config", c->settings->name, "generation",
			LOG_U64(c->published.generation), "version", VERSION_TEXT(&c->published),
			"bytes", LOG_U64(p->text_len), "file", settings_place(c->settings),
			"origin", strcmp(c->published.origin, "pull") ? c->published.origin : NULL);
	if (p->not_durable)
		log_warn("published, but a power cut may bring the old version back", "config",
			c->settings->name, "why", p->why);
}

/* Makes the published candidate the current version; repaired: it was that before. */
static void commit_published(struct config *c, bool revs_raised, bool repaired)
{
	struct candidate *candidate = c->candidate;

	publishing_set_current(c);
	publishing_set_overrides(c);
	c->change.visible = c->change.granted;
	if (revs_raised)
		current_save_ledger(c);
	if (!repaired && (!candidate->local || candidate->stays))
		forgive_current(c);
	if (!repaired)
		forgive_guarded(c);
	c->expires_ms = candidate->expires_ms;
	c->saved_generation = 0;
	c->drifted = false;
	c->published_wall_ms = c->env->sys->wall_ms();
}

/* Ends the run, or the change that was asked for. The last step: a next candidate may begin. */
static void end_published(struct config *c, bool local, bool repaired)
{
	if (local) {
		pipeline_end_local(c, NULL, NULL);
	} else if (repaired && c->rejected) {
		pipeline_end_rejected(c);
	} else {
		pipeline_forget_rejected(c);
		config_run_succeeded(c, CONFIG_PUBLISHED);
	}
}

static void publication_ended(struct config *c)
{
	struct candidate *candidate = c->candidate;
	const struct publication *p = &candidate->publication;
	uint64_t generation = candidate->version.generation;
	bool local = candidate->local;
	bool repaired = !candidate->save && generation == c->published.generation;
	bool saved = !repaired && store_next_generation(c->store) > generation;
	bool revs_raised = saved && ledger_raise_revs(c->ledger, candidate->revs);
	char why[FILE_WHY];

	if (saved)
		c->ledger->generation = generation;
	if (p->error) {
		if (saved)
			publishing_note_saved(c);
		if (revs_raised)
			current_save_ledger(c);
		snprintf(why, sizeof(why), "%s", p->why);
		pipeline_fail(c, CANNOT_PUBLISH, why);
		return;
	}
	commit_published(c, revs_raised, repaired);
	log_published(c);
	if (p->save && !p->state_synced)
		publishing_sync(c, PUBLISHING_STATE);
	c->candidate = NULL;
	if (!repaired && c->notify)
		notify_published(c->notify, generation, candidate->keys, candidate->key_count,
			candidate->all_changed, candidate->stays);
	candidate_free(candidate);
	end_published(c, local, repaired);
}

static void run_publish_job(struct worker_job *job)
{
	struct config *c = (struct config *)((char *)job - offsetof(struct config, publish_job));

	c->on_worker_ms = c->env->sys->now_ms();
	publish_run(&c->candidate->publication);
	c->on_worker_ms = 0;
}

static void publish_job_done(struct worker_job *job)
{
	struct config *c = (struct config *)((char *)job - offsetof(struct config, publish_job));

	c->publishing = false;
	publication_ended(c);
	config_finish_retiring(c);
}

/* Keeps the output of `format: run` with the version: a start does not run the program. */
static int append_product(struct candidate *candidate)
{
	candidate->version.product_len = candidate->text.len;
	return buffer_append(&candidate->body, candidate->text.data ? candidate->text.data : "",
		candidate->text.len);
}

/* Copying it may take as long as a disk does. */
static bool is_large_publication(const struct publication *p)
{
	return p->text_len + p->body_len + p->image_len > LARGE;
}

/* Its state file is there: only the file could not be replaced. */
static bool is_saved(const struct config *c)
{
	return !c->candidate->local && c->saved_generation &&
	       strcmp(c->saved_sha256, c->candidate->version.sha256) == 0;
}

/* Gives a new version its generation, and what its state file says. 0 or -ENOMEM. */
static int prepare_state_file(struct config *c)
{
	struct candidate *candidate = c->candidate;

	if (!candidate->save)
		return 0;
	if (c->settings->format == SETTINGS_FORMAT_RUN && append_product(candidate))
		return -ENOMEM;
	candidate->save = !is_saved(c);
	candidate->version.generation =
		candidate->save ? store_next_generation(c->store) : c->saved_generation;
	return candidate->save ? write_decisions(c) : 0;
}

/* A repair replaces what was lost or changed. */
static void skip_unchanged_places(struct config *c)
{
	struct publication *p = &c->candidate->publication;

	if (c->target && target_is_current(c->target, NULL, 0))
		p->target = NULL;
	if (c->fileset && file_set_is_current(c->fileset, NULL, 0, NULL))
		p->fileset = NULL;
}

void publishing_start(struct config *c)
{
	struct candidate *candidate = c->candidate;
	struct publication *p = &candidate->publication;
	bool is_new = candidate->save;

	compose_fini(&candidate->composition); /* a thousand may wait for the disk */
	if (prepare_state_file(c)) {
		pipeline_fail(c, CANNOT_PUBLISH, "out of memory");
		return;
	}
	publishing_fill(c);
	if (!candidate->local && (is_new || !c->rejected)) {
		p->confirmed_ms = c->env->sys->now_ms();
		p->stale_ms = config_stale_ms(c);
	}
	if (!is_new)
		skip_unchanged_places(c);
	if (publish_blocks(p) || is_large_publication(p)) {
		c->publishing = true;
		worker_submit(c->env->worker, &c->publish_job);
		return;
	}
	publish_run(p);
	publication_ended(c);
}

/* ---- dry run ---- */

/* The document in the published file, if it is one. */
static struct document *parse_file(const struct config *c, const struct buffer *text)
{
	bool json = c->settings->format == SETTINGS_FORMAT_JSON ||
		    (c->settings->format == SETTINGS_VERBATIM &&
			    c->candidate->version.parts[0].type[0] == 'j');
	struct document_error e;
	struct document *d = NULL;

	if (c->settings->format > SETTINGS_FORMAT_JSON || !text->data ||
		document_parse(
			json ? DOCUMENT_JSON : DOCUMENT_YAML, text->data, text->len, 0, &d, &e))
		return NULL;
	return d;
}

/* Prints the keys that would change. */
static void print_changes(const struct config *c, const struct buffer *there)
{
	struct document *before = parse_file(c, there);
	struct diff *d = NULL;
	struct buffer lines;

	buffer_init(&lines, 64u << 20);
	if (c->candidate->composition.root && diff_new(before ? document_root(before) : NULL,
						      c->candidate->composition.root, &d) == 0)
		for (size_t i = 0; i < diff_count(d); i++)
			diff_write_text(diff_at(d, i), c->settings->mask, &lines);
	if (lines.len)
		fwrite(lines.data, 1, lines.len, stdout);
	fflush(stdout);
	buffer_fini(&lines);
	diff_free(d);
	document_free(before);
}

void publishing_dry_run(struct config *c)
{
	const struct buffer *text = candidate_text(c->candidate);
	struct buffer there;
	bool same;

	buffer_init(&there, CANDIDATE_MAX_BYTES);
	same = c->settings->file &&
	       trusted_read(c->env->sys, c->settings->file, &there, NULL) == 0 &&
	       there.len == text->len &&
	       memcmp(there.data ? there.data : "", text->data ? text->data : "", text->len) == 0;
	log_info(same ? "dry run: the file is up to date" : "dry run: would publish", "config",
		c->settings->name, "file", settings_place(c->settings), "bytes", LOG_U64(text->len),
		"version", VERSION_TEXT(&c->candidate->version));
	if (!same)
		print_changes(c, &there);
	buffer_fini(&there);
	pipeline_drop_candidate(c);
	config_run_succeeded(c, same ? CONFIG_UNCHANGED : CONFIG_PUBLISHED);
}

void publishing_init(struct config *c)
{
	c->publish_job = (struct worker_job){.run = run_publish_job, .done = publish_job_done};
	c->sync_job = (struct worker_job){.run = run_sync_job, .done = sync_job_done};
}
