/*
 * The way of a version: judged, tried, published; or turned away and remembered.
 *
 * Surprising: what an operator asks for (a rollback, an override) goes the same way as what a pull
 * brought, from the state directory instead of from the server. One version is under way at a time,
 * and once it is accepted its publication is never given up half-way.
 */
#include "config_private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "diff.h"
#include "document.h"

static void go_on(struct config *c);
static void tried(void *arg, const struct trial_result *result);

void version_drop(struct config *c)
{
	candidate_free(c->candidate);
	c->candidate = NULL;
}

/* An ETag for people: without its quotes. With several layers the first one's. */
const char *version_text(const struct version *v, char text[256])
{
	const char *etag = v->part_count ? v->parts[0].etag : "";
	size_t len = strlen(etag);
	bool quoted = len >= 2 && etag[0] == '"' && etag[len - 1] == '"';

	snprintf(text, 256, "%.*s", (int)(quoted ? len - 2 : len), etag + quoted);
	return text[0] ? text : NULL;
}

/* ---- turned away ---- */

void version_clear_away(struct config *c)
{
	if (!c->away)
		return;
	version_fini(&c->away->version);
	buffer_fini(&c->away->body);
	free(c->away->why);
	free(c->away);
	c->away = NULL;
}

/* The candidate is not what will stand; takes its version and bytes. */
static void turn_away(struct config *c, const char *judge, const char *id, const char *why)
{
	struct away *a = calloc(1, sizeof(*a));

	version_clear_away(c);
	if (a && (a->why = strdup(why))) {
		a->version = c->candidate->version;
		c->candidate->version = (struct version){.generation = 0};
		a->body = c->candidate->body;
		buffer_init(&c->candidate->body, 0);
		/* never empty: a request is conditional on what has a generation */
		a->version.generation = UINT64_MAX;
		snprintf(a->judge, sizeof(a->judge), "%s", judge);
		snprintf(a->id, sizeof(a->id), "%s", id);
		c->away = a;
	} else {
		free(a);
	}
	version_drop(c);
}

bool version_is_held(const struct away *a)
{
	return strcmp(a->judge, "pin") == 0 || strcmp(a->judge, "rollout") == 0 ||
	       strcmp(a->judge, "operator") == 0;
}

/* The server has what it had, and that was turned away. */
void version_end_away(struct config *c)
{
	char what[64];

	if (version_is_held(c->away)) {
		config_run_succeeded(c, CONFIG_HELD);
		return;
	}
	snprintf(what, sizeof(what), "refused by the %s: the old version stays", c->away->judge);
	config_run_failed(c, SUPERVISOR_FAILED,
		strcmp(c->away->judge, "probe") == 0
			? "the server still has the version that was taken back"
			: what,
		c->away->why);
}

/* Makes the judges ready. 0, or -errno with a sentence. */
static int get_ready(struct config *c, char why[FILE_WHY])
{
	const char *note;
	int r = judges_ready(c->judges, &note, why);

	if (r == 0 && note[0])
		log_warn("the schema has keywords that mean nothing here", "config",
			c->settings->name, "keywords", note);
	return r;
}

const struct version *version_held(struct config *c)
{
	char why[FILE_WHY];
	bool pinned = c->ledger && c->ledger->pin.by;

	if (c->away) {
		bool by_pin = strcmp(c->away->judge, "pin") == 0;
		bool by_rollout = strcmp(c->away->judge, "rollout") == 0;
		bool waits = by_pin ? pinned : by_rollout && c->rollout;
		bool same_rules =
			by_pin || by_rollout || !c->away->id[0] ||
			(get_ready(c, why) == 0 && strcmp(c->away->id, judges_id(c->judges)) == 0);

		if (c->forced || !same_rules ||
			(!waits && !ledger_find(c->ledger, c->away->version.sha256,
					   judges_id(c->judges))))
			version_clear_away(c); /* it gets another chance */
	}
	if (c->away)
		return &c->away->version;
	return c->published.generation ? &c->published : NULL;
}

/* ---- the end of what is under way ---- */

static void local_ended(struct config *c, const char *what, const char *why)
{
	char *sentence = NULL;

	if (why) {
		log_err(what, "config", c->settings->name, "why", why);
		if (asprintf(&sentence, "%s: %s", what, why) < 0)
			sentence = NULL;
	}
	if (c->change.granted)
		operate_ended(c, sentence ? sentence : why);
	free(sentence);
	config_free_for_run(c);
}

void version_failed(struct config *c, const char *what, const char *why)
{
	bool local = c->candidate && c->candidate->local;

	version_drop(c);
	if (local)
		local_ended(c, what, why);
	else
		config_run_failed(c, SUPERVISOR_FAILED, what, why);
}

static void refuse(struct config *c, enum judge judge, const char *why)
{
	char what[64];

	c->refused[judge]++;
	snprintf(what, sizeof(what), "refused by the %s: the old version stays", judge_name(judge));
	/* of a digest that is not right nothing is remembered: the same bytes may come with the
	 * right one */
	if (c->candidate->local || c->env->dry_run || judge == JUDGE_DIGEST) {
		version_failed(c, what, why);
		return;
	}
	if (ledger_refuse(c->ledger, c->candidate->version.sha256, judge_name(judge),
		    judges_id(c->judges), c->env->sys->wall_ms(), why) == 0)
		version_remember(c);
	turn_away(c, judge_name(judge), judges_id(c->judges), why);
	config_run_failed(c, SUPERVISOR_FAILED, what, why);
}

/* ---- judging ---- */

int version_load(struct config *c, uint64_t generation, const struct ledger *overrides,
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

/* Those that the candidate is composed with: what is only put back is as it was. Notes them. */
static const struct ledger *take_overrides(struct config *c)
{
	bool put_back = !c->candidate->save && c->published.generation &&
			c->candidate->version.generation == c->published.generation;
	const struct ledger *l = put_back ? c->stood : c->ledger;

	ledger_free(c->composed);
	c->composed = l && l->override_count ? operate_overrides(l) : NULL;
	return l;
}

static bool needs_standing(const struct config *c)
{
	const struct settings_config *s = c->settings;

	return s->reload.rule_count || s->guard.max_changes ||
	       (c->candidate->composition.root && !c->candidate->composition.root->first);
}

/* The judges but for the programs. 0, or -EINVAL and the judgement, or another error. */
int version_judge(struct config *c, enum judges_level level, struct judgement *ret)
{
	struct candidate *candidate = c->candidate, *before = NULL;
	struct judges_case the_case = {
		.pieces = candidate->pieces,
		.count = candidate->version.part_count,
		.composition = &candidate->composition,
		.bytes = candidate_bytes(candidate),
		.before_bytes = version_bytes(&c->published),
		.level = level,
		.forced = c->forced,
		.wall_ms = c->env->sys->wall_ms(),
	};
	static const uint64_t no_revs[SETTINGS_MAX_LAYERS];
	char why[FILE_WHY] = "";
	int r;

	*ret = (struct judgement){.judge = JUDGE_SYNTAX};
	r = candidate_compose(candidate, c->settings, take_overrides(c), why);
	if (r) {
		snprintf(ret->why, sizeof(ret->why), "%s", why);
		return r;
	}
	r = level > JUDGES_TRUSTED ? get_ready(c, why) : 0;
	if (r) {
		snprintf(ret->why, sizeof(ret->why), "%s", why);
		return r == -EINVAL ? -EIO : r; /* says nothing about the version */
	}
	if (c->published.generation && needs_standing(c) &&
		version_load(c, c->published.generation, c->stood, &before, why))
		before = NULL; /* not known */
	the_case.before = before ? before->composition.root : NULL;
	the_case.revs = c->ledger ? c->ledger->revs : no_revs;
	r = judges_try(c->judges, &the_case, ret);
	if (r == 0)
		r = c->settings->dir ? candidate_compare_files(candidate, before, c->settings)
				     : candidate_compare(candidate, the_case.before);
	if (r == 0) {
		candidate->expires_ms = ret->expires_ms;
		memcpy(candidate->revs, ret->revs, sizeof(candidate->revs));
		r = candidate_outputs(candidate, c->settings, VERSION_TEXT(&candidate->version),
			c->settings->snapshot && !c->env->dry_run, why);
		ret->judge = JUDGE_FORMAT;
		snprintf(ret->why, sizeof(ret->why), "%s", why);
	}
	candidate_free(before);
	return r;
}

/* ---- publishing ---- */

static void run_sync(struct worker_job *job)
{
	struct config *c = (struct config *)((char *)job - offsetof(struct config, sync_job));

	c->on_worker_ms = c->env->sys->now_ms();
	c->sync_error = store_sync(c->store, c->sync_generation);
	c->on_worker_ms = 0;
}

/* Brings the published generation's state file to the disk, unless that is under way: then again
 * when it has ended. */
static void sync_state(struct config *c)
{
	if (c->syncing)
		return;
	c->syncing = true;
	c->sync_generation = c->published.generation;
	worker_submit(c->env->worker, &c->sync_job);
}

static void sync_done(struct worker_job *job)
{
	struct config *c = (struct config *)((char *)job - offsetof(struct config, sync_job));

	c->syncing = false;
	/* Nothing that is visible is lost: the file stays in the page cache, and the next
	 * generation is a new file. */
	if (c->sync_error)
		log_warn("the state file is not on the disk: a power cut may lose it", "config",
			c->settings->name, "why", strerror(-c->sync_error));
	if (c->published.generation != c->sync_generation)
		sync_state(c);
	config_retire_on(c);
}

/* What the candidate's version names is what stands. */
void version_set_published(struct config *c)
{
	version_fini(&c->published);
	c->published = c->candidate->version;
	c->candidate->version = (struct version){.generation = 0};
}

/* And what is in it. */
void version_set_stood(struct config *c)
{
	ledger_free(c->stood);
	c->stood = c->composed;
	c->composed = NULL;
}

/* What stands has no verdict against it. */
static void forgive_published(struct config *c)
{
	if (ledger_forgive(c->ledger, c->published.sha256))
		version_remember(c);
	if (c->away && strcmp(c->away->version.sha256, c->published.sha256) == 0)
		version_clear_away(c);
}

/* What the guard refused was too far from what stood before. */
static void forgive_guarded(struct config *c)
{
	const char *guard = judge_name(JUDGE_GUARD);
	char sha256[DIGEST_HEX];
	bool any = false;

	for (size_t i = c->ledger->verdict_count; i-- > 0;)
		if (strcmp(c->ledger->verdicts[i].judge, guard) == 0) {
			snprintf(sha256, sizeof(sha256), "%s", c->ledger->verdicts[i].sha256);
			any |= ledger_forgive(c->ledger, sha256);
		}
	if (any)
		version_remember(c);
	if (c->away && strcmp(c->away->judge, guard) == 0)
		version_clear_away(c);
}

/* The state file of the candidate stands, but the target does not show it. */
void version_remember_saved(struct config *c)
{
	c->saved_generation = c->candidate->version.generation;
	memcpy(c->saved_sha256, c->candidate->version.sha256, sizeof(c->saved_sha256));
}

void version_fill_publication(struct config *c)
{
	struct candidate *candidate = c->candidate;
	const struct buffer *text = candidate_text(candidate);

	c->candidate->publication = (struct publication){
		.sys = c->env->sys,
		.config = c->settings,
		.store = candidate->save ? c->store : NULL,
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

/* What the application is told about, and what is kept of the decision. */
static void follow_up(struct config *c, const struct candidate *candidate)
{
	bool changed = false;

	for (size_t i = 0; i < c->settings->layer_count; i++)
		if (candidate->revs[i] > c->ledger->revs[i]) {
			c->ledger->revs[i] = candidate->revs[i];
			changed = true;
		}
	if (changed)
		version_remember(c);
	if (c->aftermath)
		aftermath_published(c->aftermath, c->published.generation, candidate->keys,
			candidate->key_count, candidate->all_changed, candidate->stays);
}

static void published(struct config *c)
{
	struct publication *p = &c->candidate->publication;
	struct candidate *candidate = c->candidate;
	bool restored =
		!candidate->save && candidate->version.generation == c->published.generation;
	bool local = candidate->local;
	char why[FILE_WHY];

	if (p->error) {
		if (!restored && store_next_generation(c->store) > candidate->version.generation)
			version_remember_saved(c);
		snprintf(why, sizeof(why), "%s", p->why);
		version_failed(c, "could not publish: the old version stays", why);
		return;
	}
	version_set_published(c);
	version_set_stood(c);
	if (!restored && (!local || candidate->stays))
		forgive_published(c);
	if (!restored)
		forgive_guarded(c);
	c->expires_ms = candidate->expires_ms;
	c->saved_generation = 0;
	c->drifted = false;
	c->published_wall_ms = c->env->sys->wall_ms();
	if (!candidate->quiet)
		log_info("published", "config", c->settings->name, "generation",
			LOG_U64(c->published.generation), "version", VERSION_TEXT(&c->published),
			"bytes", LOG_U64(p->text_len), "file", settings_place(c->settings),
			"origin", strcmp(c->published.origin, "pull") ? c->published.origin : NULL);
	if (p->not_durable)
		log_warn("published, but a power cut may bring the old version back", "config",
			c->settings->name, "why", p->why);
	if (!c->settings->strict && p->store && !store_in_memory(c->store))
		sync_state(c);
	c->candidate = NULL;
	if (!restored)
		follow_up(c, candidate);
	candidate_free(candidate);
	if (local) {
		local_ended(c, NULL, NULL);
		return;
	}
	if (restored && c->away) { /* what the server has does not stand */
		version_end_away(c);
		return;
	}
	version_clear_away(c);
	config_run_succeeded(c, CONFIG_PUBLISHED);
}

static void run_publish(struct worker_job *job)
{
	struct config *c = (struct config *)((char *)job - offsetof(struct config, publish_job));

	c->on_worker_ms = c->env->sys->now_ms();
	publish_run(&c->candidate->publication);
	c->on_worker_ms = 0;
}

static void publish_done(struct worker_job *job)
{
	struct config *c = (struct config *)((char *)job - offsetof(struct config, publish_job));

	c->publishing = false;
	published(c);
	config_retire_on(c);
}

/* What a program made of the document is kept with it: at the next start nobody runs it. */
static int keep_product(struct candidate *candidate)
{
	candidate->version.product_len = candidate->text.len;
	return buffer_append(&candidate->body, candidate->text.data ? candidate->text.data : "",
		candidate->text.len);
}

/* Publishes the candidate, on the worker if it may block. */
void version_publish(struct config *c)
{
	struct candidate *candidate = c->candidate;
	bool again = candidate->save && !candidate->local && c->saved_generation &&
		     strcmp(c->saved_sha256, candidate->version.sha256) == 0;

	compose_fini(&candidate->composition); /* a thousand may wait for the disk */
	if (candidate->save && c->settings->format == SETTINGS_FORMAT_RUN &&
		keep_product(candidate)) {
		version_failed(c, "could not publish: the old version stays", "out of memory");
		return;
	}
	if (again)
		candidate->version.generation = c->saved_generation;
	else if (candidate->save)
		candidate->version.generation = store_next_generation(c->store);
	candidate->save = candidate->save && !again;
	version_fill_publication(c);
	if (!candidate->local && (candidate->save || again || !c->away)) {
		c->candidate->publication.confirmed_ms = c->env->sys->now_ms();
		c->candidate->publication.stale_ms = config_stale_ms(c);
	}
	if (!candidate->save && !again) { /* only what was lost or changed */
		if (c->target && target_is_current(c->target, NULL, 0))
			c->candidate->publication.target = NULL;
		if (c->fileset && fileset_is_current(c->fileset, NULL, 0, NULL))
			c->candidate->publication.fileset = NULL;
	}
	if (publish_blocks(&c->candidate->publication)) {
		c->publishing = true;
		worker_submit(c->env->worker, &c->publish_job);
		return;
	}
	publish_run(&c->candidate->publication);
	published(c);
}

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

/* --dry-run: says what version_publish() would do. */
static void publish_dry(struct config *c)
{
	const struct buffer *text = candidate_text(c->candidate);
	struct buffer there;
	bool same;

	buffer_init(&there, CANDIDATE_MAX_BYTES);
	same = c->settings->file &&
	       file_read(c->env->sys, AT_FDCWD, c->settings->file, &there) == 0 &&
	       there.len == text->len &&
	       memcmp(there.data ? there.data : "", text->data ? text->data : "", text->len) == 0;
	log_info(same ? "dry run: the file is up to date" : "dry run: would publish", "config",
		c->settings->name, "file", settings_place(c->settings), "bytes", LOG_U64(text->len),
		"version", VERSION_TEXT(&c->candidate->version));
	if (!same)
		print_changes(c, &there);
	buffer_fini(&there);
	version_drop(c);
	config_run_succeeded(c, same ? CONFIG_UNCHANGED : CONFIG_PUBLISHED);
}

/* ---- under way ---- */

/* A pin holds the candidate: true, and the run is ended. */
static bool held_by_pin(struct config *c)
{
	if (!c->ledger->pin.by)
		return false;
	log_info("pinned: a new version is not published", "config", c->settings->name, "version",
		VERSION_TEXT(&c->candidate->version));
	turn_away(c, "pin", "", "pinned");
	config_run_succeeded(c, CONFIG_HELD);
	return true;
}

static void judged_well(struct config *c)
{
	if (c->env->dry_run)
		publish_dry(c);
	else if (c->candidate->local || !held_by_pin(c)) /* the pin may have come meanwhile */
		version_publish(c);
}

static void tried(void *arg, const struct trial_result *result)
{
	struct config *c = arg;

	c->trial = NULL;
	if (result->refused)
		refuse(c, result->judge, result->why);
	else if (result->why[0])
		version_failed(
			c, "a program could not judge the version: the old one stays", result->why);
	else
		judged_well(c);
}

/* The candidate is composed and judged: now the programs. */
static void go_on(struct config *c)
{
	const struct trial_options options = {
		.loop = c->env->loop,
		.config = c->settings,
		.runtime_dir = c->env->runtime_dir,
		.candidate = c->candidate,
		.generation = c->store ? store_next_generation(c->store) : 0,
		.ended = tried,
		.arg = c,
	};
	char why[FILE_WHY] = "";

	c->tried_ms = c->env->sys->now_ms();
	if (!trial_wanted(c->settings))
		judged_well(c);
	else if (trial_start(&options, &c->trial, why))
		version_failed(c, "a program could not judge the version: the old one stays", why);
}

void version_try(struct config *c, enum judges_level level)
{
	struct judgement j;
	int r = version_judge(c, level, &j);

	if (r == -EINVAL || r == -EMSGSIZE)
		refuse(c, j.judge, j.why);
	else if (r)
		version_failed(
			c, "not judged: the old version stays", j.why[0] ? j.why : strerror(-r));
	else
		go_on(c);
}

/* Remembered: true, and the run is ended. */
static bool known_away(struct config *c)
{
	const struct ledger_verdict *v;
	char why[FILE_WHY];

	if (!c->forced && get_ready(c, why) == 0) {
		v = ledger_find(c->ledger, c->candidate->version.sha256, judges_id(c->judges));
		if (v) {
			turn_away(c, v->judge, v->judges, v->why);
			if (c->away)
				version_end_away(c);
			else
				version_failed(
					c, "not judged: the old version stays", "out of memory");
			return true;
		}
	}
	return false;
}

/* The bytes of what stands are not to be had any more: asks for all of it, and publishes it anew.
 */
void version_forget_standing(struct config *c)
{
	for (size_t i = 0; i < c->published.part_count; i++)
		c->published.parts[i].etag[0] = c->published.parts[i].last_modified[0] = '\0';
	c->published.sha256[0] = '\0';
}

void version_gathered(struct config *c)
{
	char why[FILE_WHY] = "out of memory";
	int r = -ENOMEM;
	bool lost;

	c->candidate = candidate_new();
	if (c->candidate)
		r = candidate_take(c->candidate, c->gather, c->store,
			c->away ? &c->away->version : &c->published,
			c->away ? &c->away->body : NULL, c->env->sys->wall_ms(), why);
	lost = !c->away && (r == -ENOENT || r == -EBADMSG);
	gather_release(c->gather);
	if (r == 0 && !c->env->dry_run && version_prepare(c, why)) {
		version_failed(c, CONFIG_CANNOT_PUBLISH, why);
		return;
	}
	if (r) {
		if (lost)
			version_forget_standing(c);
		version_failed(c, "refused: the old version stays", why);
		return;
	}
	if (c->published.generation && version_same(&c->published, &c->candidate->version)) {
		/* same bytes under new names: the file stands, the next request asks by them */
		c->candidate->version.generation = c->published.generation;
		c->candidate->version.product_len = c->published.product_len;
		version_set_published(c);
		version_drop(c);
		version_clear_away(c);
		version_unchanged(c);
		return;
	}
	if (!c->env->dry_run && (known_away(c) || held_by_pin(c) || rollout_ask(c)))
		return;
	version_try(c, JUDGES_NEW);
}

void version_admit(struct config *c)
{
	version_try(c, JUDGES_NEW);
}

void version_hold_back(struct config *c, const char *why)
{
	log_info("not rolled out to this host yet: the old version stays", "config",
		c->settings->name, "version", VERSION_TEXT(&c->candidate->version), "why", why);
	turn_away(c, "rollout", "", why);
	config_run_succeeded(c, CONFIG_HELD);
}

void version_init_jobs(struct config *c)
{
	c->publish_job = (struct worker_job){.run = run_publish, .done = publish_done};
	c->sync_job = (struct worker_job){.run = run_sync, .done = sync_done};
}
