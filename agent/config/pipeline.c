/*
 * The way of a version: validated, tried, published; or rejected and remembered.
 *
 * Surprising: what an operator asks for (a rollback, an override) goes the same way as what a pull
 * brought, from the state directory instead of from the server. One version is under way at a time,
 * and once it is accepted its publication is never given up half-way.
 */
#include "config/state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "document/diff.h"
#include "document/document.h"
#include "document/merge.h"
#include "document/scrub.h"
#include "files/trusted.h"

#define LARGE (1u << 20) /* bytes */

static void go_on(struct config *c);
static void tried(void *arg, const struct programs_result *result);

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

/* ---- rejected ---- */

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
static void turn_away(struct config *c, const char *check, const char *id, const char *why)
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
		snprintf(a->check, sizeof(a->check), "%s", check);
		snprintf(a->id, sizeof(a->id), "%s", id);
		c->away = a;
	} else {
		free(a);
	}
	version_drop(c);
}

bool version_is_held(const struct away *a)
{
	return strcmp(a->check, "pin") == 0 || strcmp(a->check, "rollout") == 0 ||
	       strcmp(a->check, "operator") == 0;
}

/* The server has what it had, and that was rejected. */
void version_end_away(struct config *c)
{
	char what[64];

	if (version_is_held(c->away)) {
		config_run_succeeded(c, CONFIG_HELD);
		return;
	}
	snprintf(what, sizeof(what), "refused by the %s: the old version stays", c->away->check);
	config_run_failed(c, SUPERVISOR_FAILED,
		strcmp(c->away->check, "probe") == 0
			? "the server still has the version that was rolled back"
			: what,
		c->away->why);
}

int version_ready_judges(struct config *c, char why[FILE_WHY])
{
	const char *note;
	int r = verify_ready(c->checks, &note, why);

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
		bool by_pin = strcmp(c->away->check, "pin") == 0;
		bool by_rollout = strcmp(c->away->check, "rollout") == 0;
		bool waits = by_pin ? pinned : by_rollout && c->rollout;
		bool same_rules = by_pin || by_rollout || !c->away->id[0] ||
				  (version_ready_judges(c, why) == 0 &&
					  strcmp(c->away->id, verify_id(c->checks)) == 0);

		if (c->forced || !same_rules ||
			(!waits && !ledger_find(c->ledger, c->away->version.sha256,
					   verify_id(c->checks))))
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

static void refuse(struct config *c, enum verify_check check, const char *why)
{
	char what[64];

	c->refused[check]++;
	snprintf(what, sizeof(what), "refused by the %s: the old version stays",
		verify_check_name(check));
	/* of a digest that is not right nothing is remembered: the same bytes may come with the
	 * right one */
	if (c->candidate->local || c->env->dry_run || check == CHECK_DIGEST) {
		version_failed(c, what, why);
		return;
	}
	if (ledger_refuse(c->ledger, c->candidate->version.sha256, verify_check_name(check),
		    verify_id(c->checks), c->env->sys->wall_ms(), why) == 0)
		version_remember(c);
	turn_away(c, verify_check_name(check), verify_id(c->checks), why);
	config_run_failed(c, SUPERVISOR_FAILED, what, why);
}

/* ---- validating ---- */

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

/* What the layers said, and what came of it: of a candidate that was merged nothing else is left.
 */
static void scrub_layers(struct scrub *s, const struct composition *composition, char *const *mask)
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

	if (version_load(c, generation, c->stood, &v, why)) {
		scrub_hide_all(s);
		return;
	}
	scrub_layers(s, &v->composition, c->settings->mask);
	candidate_free(v);
}

void version_scrub(void *arg, struct buffer *out, const char *text, size_t len)
{
	uint64_t generations[STORE_MAX_KEEP];
	struct config *c = arg;
	struct scrub *s = c->settings->mask ? scrub_new() : NULL;
	size_t count = c->store && c->published.generation ? store_list(c->store, generations) : 0;

	if (!s) {
		buffer_append(out, c->settings->mask ? "***" : text, c->settings->mask ? 3 : len);
		return;
	}
	if (c->trial) /* else another thread may be at the candidate, which no program has seen */
		scrub_layers(s, &c->candidate->composition, c->settings->mask);
	for (size_t i = 0, used = 0; i < count && used < 2; i++)
		if (generations[i] <= c->published.generation) {
			scrub_generation(s, c, generations[i]);
			used++;
		}
	scrub_append(s, out, text, len);
	scrub_free(s);
}

/* ---- publishing ---- */

static int sync_ledger(struct config *c)
{
	int r, dir = store_dir(c->store);

	if (dir < 0)
		return dir;
	r = ledger_sync(c->env->sys, dir);
	c->env->sys->close(dir);
	return r;
}

static void run_sync(struct worker_job *job)
{
	struct config *c = (struct config *)((char *)job - offsetof(struct config, sync_job));
	int r = 0;

	c->on_worker_ms = c->env->sys->now_ms();
	if (c->syncing & VERSION_STATE)
		r = store_sync(c->store, c->sync_generation);
	if (r == 0 && c->syncing & VERSION_LEDGER)
		r = sync_ledger(c);
	c->sync_error = r;
	c->on_worker_ms = 0;
}

void version_sync(struct config *c, unsigned files)
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

static void sync_done(struct worker_job *job)
{
	struct config *c = (struct config *)((char *)job - offsetof(struct config, sync_job));

	c->syncing = 0;
	/* Nothing that is visible is lost: the file stays in the page cache, and the next
	 * generation is a new file. */
	if (c->sync_error)
		log_warn("the state file is not on the disk: a power cut may lose it", "config",
			c->settings->name, "why", strerror(-c->sync_error));
	version_sync(c, 0);
	config_retire_on(c);
}

/* What the candidate's version names is what stands. */
void version_set_published(struct config *c)
{
	version_fini(&c->published);
	c->published = c->candidate->version;
	c->candidate->version = (struct version){.generation = 0};
	free(c->published.decisions); /* they are in the ledger */
	c->published.decisions = NULL;
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
	const char *guard = verify_check_name(CHECK_GUARD);
	char sha256[DIGEST_HEX];
	bool any = false;

	for (size_t i = c->ledger->verdict_count; i-- > 0;)
		if (strcmp(c->ledger->verdicts[i].check, guard) == 0) {
			snprintf(sha256, sizeof(sha256), "%s", c->ledger->verdicts[i].sha256);
			any |= ledger_forgive(c->ledger, sha256);
		}
	if (any)
		version_remember(c);
	if (c->away && strcmp(c->away->check, guard) == 0)
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

/* The verdicts that hold after it about the bytes that it replaces, and about its own. */
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
			r = ledger_refuse(
				ret_decided, v->sha256, v->check, v->checks, v->at_ms, v->why);
	}
	return r;
}

/* Writes down, for the state file, what will be so once the candidate is published. 0 or -errno. */
static int note_decisions(struct config *c)
{
	struct candidate *candidate = c->candidate;
	bool signed_ = c->settings->verify.public_keys;
	struct ledger *decided =
		c->composed ? operate_overrides(c->composed) : calloc(1, sizeof(*decided));
	struct buffer text;
	int r = decided ? list_verdicts(c, decided) : -ENOMEM;

	free(candidate->version.decisions);
	candidate->version.decisions = NULL;
	if (r == 0 && signed_)
		r = ledger_reserve_revs(c->ledger) ? -ENOMEM : ledger_reserve_revs(decided);
	if (r == 0) {
		ledger_raise(decided, ledger_revs(c->ledger));
		ledger_raise(decided, candidate->revs);
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

bool version_adopt_decisions(struct config *c)
{
	const struct version *v = &c->candidate->version;
	struct ledger *decided = NULL;
	int r = 0;

	if (v->decisions && v->decisions[0])
		r = ledger_read(v->decisions, strlen(v->decisions), &decided);
	else if (v->decisions)
		r = (decided = calloc(1, sizeof(*decided))) ? 0 : -ENOMEM;
	if (decided)
		r = ledger_adopt(c->ledger, v->generation, decided, v->sha256);
	ledger_free(decided);
	if (r < 0)
		log_err("the decisions in the state file are not known", "config",
			c->settings->name, "why", strerror(-r));
	return r > 0;
}

static void published(struct config *c)
{
	struct publication *p = &c->candidate->publication;
	struct candidate *candidate = c->candidate;
	bool restored =
		!candidate->save && candidate->version.generation == c->published.generation;
	bool local = candidate->local;
	bool saved = !restored && store_next_generation(c->store) > candidate->version.generation;
	bool changed = saved && ledger_raise(c->ledger, candidate->revs);
	char why[FILE_WHY];

	if (saved)
		c->ledger->generation = candidate->version.generation;
	if (p->error) {
		if (saved)
			version_remember_saved(c);
		if (changed)
			version_remember(c);
		snprintf(why, sizeof(why), "%s", p->why);
		version_failed(c, "could not publish: the old version stays", why);
		return;
	}
	version_set_published(c);
	version_set_stood(c);
	c->change.visible = c->change.granted;
	if (changed)
		version_remember(c);
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
	if (p->save && !p->state_synced)
		version_sync(c, VERSION_STATE);
	c->candidate = NULL;
	if (!restored && c->aftermath)
		notify_published(c->aftermath, c->published.generation, candidate->keys,
			candidate->key_count, candidate->all_changed, candidate->stays);
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

/* To copy it takes as long as a disk may. */
static bool is_large(const struct publication *p)
{
	return p->text_len + p->body_len + p->image_len > LARGE;
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
	if (candidate->save && note_decisions(c)) {
		version_failed(c, "could not publish: the old version stays", "out of memory");
		return;
	}
	version_fill_publication(c);
	if (!candidate->local && (candidate->save || again || !c->away)) {
		c->candidate->publication.confirmed_ms = c->env->sys->now_ms();
		c->candidate->publication.stale_ms = config_stale_ms(c);
	}
	if (!candidate->save && !again) { /* only what was lost or changed */
		if (c->target && target_is_current(c->target, NULL, 0))
			c->candidate->publication.target = NULL;
		if (c->fileset && file_set_is_current(c->fileset, NULL, 0, NULL))
			c->candidate->publication.fileset = NULL;
	}
	if (publish_blocks(&c->candidate->publication) || is_large(&c->candidate->publication)) {
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
	       trusted_read(c->env->sys, c->settings->file, &there, NULL) == 0 &&
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

static void tried(void *arg, const struct programs_result *result)
{
	struct config *c = arg;

	c->trial = NULL;
	if (result->refused)
		refuse(c, result->check, result->why);
	else if (result->why[0])
		version_failed(
			c, "a program could not check the version: the old one stays", result->why);
	else
		judged_well(c);
}

/* The candidate is composed and validated: now the programs. */
static void go_on(struct config *c)
{
	const struct programs_options options = {
		.loop = c->env->loop,
		.config = c->settings,
		.runtime_dir = c->env->runtime_dir,
		.candidate = c->candidate,
		.generation = c->store ? store_next_generation(c->store) : 0,
		.scrub = version_scrub,
		.ended = tried,
		.arg = c,
	};
	char why[FILE_WHY] = "";

	c->tried_ms = c->env->sys->now_ms();
	if (!programs_wanted(c->settings))
		judged_well(c);
	else if (programs_start(&options, &c->trial, why))
		version_failed(c, "a program could not check the version: the old one stays", why);
}

void version_judged(struct config *c, int error, const struct verify_result *judgement)
{
	const char *why = judgement->why[0] ? judgement->why : error ? strerror(-error) : "";

	if (c->candidate->heals)
		version_healed(c, error, why);
	else if (error == -EINVAL || error == -EMSGSIZE)
		refuse(c, judgement->check, judgement->why);
	else if (error)
		version_failed(c, "not validated: the old version stays", why);
	else
		go_on(c);
}

/* Remembered: true, and the run is ended. */
static bool known_away(struct config *c)
{
	const struct ledger_verdict *v;
	char why[FILE_WHY];

	if (!c->forced && version_ready_judges(c, why) == 0) {
		v = ledger_find(c->ledger, c->candidate->version.sha256, verify_id(c->checks));
		if (v) {
			turn_away(c, v->check, v->checks, v->why);
			if (c->away)
				version_end_away(c);
			else
				version_failed(
					c, "not validated: the old version stays", "out of memory");
			return true;
		}
	}
	return false;
}

/* The bytes of what stands are not to be had any more: asks for all of it, and publishes it again.
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
	pull_release(c->gather);
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
	version_try(c, VERIFY_NEW);
}

void version_admit(struct config *c)
{
	version_try(c, VERIFY_NEW);
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
