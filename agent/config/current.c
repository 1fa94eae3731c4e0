/*
 * The current version: opened, started from the last known good, repaired when somebody else
 * changes its files.
 *
 * Surprising: a place that cannot be used at the start is tried again at every run, which then does
 * the work of the start.
 */
#include "config/core.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mustache/mustache.h"
#include "version/left.h"

#define REPAIR_MS 1000u

static void drift_noticed(void *arg, const char *cause);
static void bytes_noticed(void *arg, const char *cause);

/* ---- places ---- */

/* Who keeps the file open may cut it short and not close it. A new file is another one to watch. */
static void watch_bytes(struct config *c)
{
	if (!c->current.watching_drift || !c->settings->file)
		return;
	file_watch_remove(c->env->drift, &c->current.bytes_drift);
	c->current.bytes_drift = (struct file_watch_entry){.noticed = bytes_noticed, .arg = c};
	file_watch_add_bytes(c->env->drift, &c->current.bytes_drift, c->settings->file);
}

/* Watches what the directories are by now. */
static void watch_places(struct config *c)
{
	const struct settings_config *s = c->settings;

	if (!c->current.watching_drift)
		return;
	if (s->file) {
		const char *slash = strrchr(s->file, '/');
		char dir[CONFIG_PATH];

		snprintf(dir, sizeof(dir), "%.*s", slash > s->file ? (int)(slash - s->file) : 1,
			s->file);
		file_watch_renew(c->env->drift, &c->current.file_drift, dir, slash + 1);
	} else if (s->dir) {
		file_watch_renew(c->env->drift, &c->current.file_drift, s->dir, NULL);
	}
	if (c->current.image)
		file_watch_renew(c->env->drift, &c->current.image_drift, c->env->runtime_dir,
			image_name(c->current.image));
}

/* Watches the published files; without inotify they are checked at each interval. */
static void watch_drift(struct config *c)
{
	if (!c->env->drift || c->settings->drift == SETTINGS_LEAVE || c->current.watching_drift)
		return;
	c->current.watching_drift = true;
	c->current.file_drift = (struct file_watch_entry){.noticed = drift_noticed, .arg = c};
	c->current.image_drift = c->current.file_drift;
	watch_places(c);
	watch_bytes(c);
}

int current_open(struct config *c, char why[FILE_WHY])
{
	const struct settings_config *s = c->settings;
	int r = 0;

	if (!c->current.store)
		r = store_open(c->env->sys, c->env->state_dir, s->name, s->history,
			&c->current.store, why);
	if (r == 0)
		r = decisions_open(c, why);
	if (r == 0 && !c->current.target && s->file)
		r = target_open(c->env->sys, s, c->env->sweep, &c->current.target, why);
	if (r == 0 && !c->current.fileset && s->dir)
		r = file_set_open(c->env->sys, s->dir, &c->current.fileset, why);
	if (r == 0 && !c->current.image && s->snapshot)
		r = image_open(c->env->sys, c->env->runtime_dir, s->name, c->env->sweep,
			&c->current.image, why);
	if (r == 0)
		watch_drift(c);
	return r;
}

static bool is_place_current(struct config *c)
{
	return (!c->current.target || target_is_current(c->current.target, NULL, 0)) &&
	       (!c->current.fileset || file_set_is_current(c->current.fileset, NULL, 0, NULL)) &&
	       (!c->current.image || image_is_current(c->current.image));
}

/* ---- drift ---- */

static void report_drift(struct config *c, const char *cause)
{
	if (c->settings->drift == SETTINGS_REPORT)
		log_warn("the file was changed by somebody else: leaving it as it is", "config",
			c->settings->name, "file", settings_place(c->settings), "cause", cause);
}

static void repair_due(void *arg)
{
	struct config *c = arg;

	c->resting &= ~(1u << ROW_CHANGED_BY_OTHERS);
	config_settle(c);
}

/* NULL: without memory repairs are not limited. */
static struct repairs *find_repairs(struct config *c)
{
	if (!c->current.repairs && (c->current.repairs = calloc(1, sizeof(*c->current.repairs))))
		loop_timer_init(&c->current.repairs->timer, repair_due, c);
	return c->current.repairs;
}

void current_log_repair(struct config *c)
{
	const char *cause = c->step.cause ? c->step.cause : "";
	bool ours = c->current.half_shown;
	uint64_t now_ms = loop_now_ms(c->env->loop);
	struct repairs *repairs = find_repairs(c);
	unsigned n = 0;
	bool logs = !repairs || log_limit_pass(&repairs->limit, now_ms, cause, &n);

	c->step.quiet = ours || !logs;
	if (!ours && repairs)
		repairs->last_ms = now_ms;
	if (logs)
		log_warn(ours ? "restoring the files of the current version"
			      : "the file was changed by somebody else: restoring it",
			"config", c->settings->name, "file", settings_place(c->settings), "cause",
			cause, "repeated", n ? LOG_U64(n) : NULL);
}

/* Heals at most once per second. */
static void rest_after_repair(struct config *c)
{
	struct repairs *repairs = c->current.repairs;
	uint64_t due_ms = repairs ? repairs->last_ms + REPAIR_MS : 0;

	if (!repairs || !repairs->last_ms || loop_now_ms(c->env->loop) >= due_ms)
		return;
	c->resting |= 1u << ROW_CHANGED_BY_OTHERS;
	loop_timer_set(c->env->loop, &repairs->timer, due_ms);
}

void current_look(struct config *c)
{
	const char *cause = c->current.drift_cause;
	bool was_changed = c->current.place == PLACE_CHANGED;

	c->current.drift_cause = NULL;
	if (!cause || !c->current.version.generation || c->mode == MODE_RETIRING)
		return;
	c->current.place = is_place_current(c) ? PLACE_AS_PUBLISHED : PLACE_CHANGED;
	c->step.cause = cause;
	if (c->current.place == PLACE_AS_PUBLISHED) {
		c->current.half_shown = false;
		if (!c->current.bytes_drift.noticed)
			watch_bytes(c);
	}
	if (c->current.place == PLACE_AS_PUBLISHED || c->current.half_shown)
		return;
	if (c->settings->drift == SETTINGS_HEAL)
		rest_after_repair(c);
	else if (!was_changed)
		report_drift(c, cause);
}

static void drift_noticed(void *arg, const char *cause)
{
	struct config *c = arg;

	c->current.drift_cause = cause;
	if (!c->current.half_shown) /* what made a repair fail may be gone */
		c->resting &= ~(1u << ROW_CHANGED_BY_OTHERS);
	config_settle(c);
}

/* Once is enough: who goes on writing is not listened to until the file is looked at. */
static void bytes_noticed(void *arg, const char *cause)
{
	struct config *c = arg;

	file_watch_remove(c->env->drift, &c->current.bytes_drift);
	if (strcmp(cause, "written") == 0) /* a removal is reported by the watch on its name */
		drift_noticed(c, cause);
}

int current_confirm(struct config *c, char why[FILE_WHY])
{
	struct image *image = c->current.image;

	if (c->step.publishing)
		return 0;
	watch_places(c);
	c->current.drift_cause = "seen at the interval";
	/* a drifted image gets its page with the repair */
	return image && image_is_current(image) ? image_keep_page(image, why) : 0;
}

/* ---- what it is composed with ---- */

static void digest_texts(struct buffer *b, char *const *texts)
{
	for (size_t i = 0; texts && texts[i]; i++)
		buffer_append(b, texts[i], strlen(texts[i]) + 1);
	buffer_append(b, "\n", 1);
}

/* Everything that makes another output of the same bytes. */
static void digest_settings(const struct settings_config *s, char ret_digest[VERSION_SETTINGS])
{
	char digest[DIGEST_HEX] = "";
	struct buffer b;

	buffer_init(&b, 1u << 20);
	buffer_printf(&b, "%d %d %d %d\n", (int)s->format, (int)s->type, s->dir != NULL,
		(int)s->layer_count);
	digest_texts(&b, s->format_run.argv);
	if (s->template)
		mustache_describe(s->template, &b);
	for (size_t i = 0; i < s->layer_count; i++)
		buffer_printf(&b, "%d %s\n", (int)s->layers[i].type,
			s->layers[i].as ? s->layers[i].as : "");
	if (b.error || digest_sha256(b.data, b.len, NULL, 0, digest))
		digest[0] = '\0';
	snprintf(ret_digest, VERSION_SETTINGS, "%.*s", VERSION_SETTINGS - 1, digest);
	buffer_fini(&b);
}

bool current_settings_differ(const struct config *c)
{
	const struct version *v = &c->current.version;

	if (!v->generation)
		return false;
	if (c->settings->format == SETTINGS_FORMAT_RUN && !v->product_len)
		return true; /* the program must run first */
	return v->settings[0] && strcmp(v->settings, c->current.settings) != 0;
}

/* ---- where a rollback goes ---- */

/* It can be read, did not fail its probe, and no operator rolled it back. */
static bool is_good(struct config *c, uint64_t generation)
{
	struct version v;
	struct buffer body;
	bool good;

	buffer_init(&body, CANDIDATE_MAX_BYTES);
	good = store_load_generation(c->current.store, generation, &v, &body) == 0;
	if (good) {
		const struct ledger_verdict *verdict = decisions_find_verdict(c, v.sha256);

		good = !verdict || !rejection_is_rollback(rejection_parse(verdict->check));
		version_fini(&v);
	}
	buffer_fini(&body);
	return good;
}

uint64_t current_find_older(struct config *c)
{
	uint64_t generations[STORE_MAX_KEEP], newest = 0, bad = c->current.version.generation;
	size_t n = store_list(c->current.store, generations);

	for (size_t i = 0; i < n; i++) {
		bool proven = generations[i] == c->decisions.ledger->proven;

		if (generations[i] >= bad || (newest && !proven) || !is_good(c, generations[i]))
			continue;
		if (proven)
			return generations[i];
		newest = generations[i];
	}
	return newest;
}

void current_read_older(struct config *c)
{
	struct current *current = &c->current;

	if (current->older_known || decisions_verdict(c, current->version.sha256) != VERDICT_PROBE)
		return;
	current->older_known = true;
	current->older = current_find_older(c);
}

/* ---- what is saved, and not visible ---- */

void current_forget_saved(struct config *c)
{
	c->current.saved_generation = 0;
	if (c->current.saved)
		version_fini(c->current.saved);
	free(c->current.saved);
	c->current.saved = NULL;
}

void current_note_saved(struct config *c, const struct version *v)
{
	struct version *saved = malloc(sizeof(*saved));

	current_forget_saved(c);
	if (saved && version_copy(v, saved) == 0) {
		c->current.saved = saved;
		c->current.saved_generation = v->generation;
	} else {
		free(saved); /* the next version is saved beside it */
	}
	c->current.saved_by = c->step.decision.row;
}

/* ---- the current version ---- */

void current_replace(struct config *c)
{
	struct version replaced = c->current.version;

	c->current.version = c->step.candidate->version;
	c->step.candidate->version = (struct version){.generation = 0};
	free(c->current.version.decisions); /* they are in the ledger */
	c->current.version.decisions = NULL;
	ledger_free(c->current.overrides);
	c->current.overrides = c->step.overrides;
	c->step.overrides = NULL;
	c->current.expires_ms = c->step.candidate->expires_ms;
	free(c->current.unsigned_why);
	c->current.unsigned_why = c->step.candidate->unsigned_why;
	c->step.candidate->unsigned_why = NULL;
	c->current.place = PLACE_AS_PUBLISHED;
	c->current.half_shown = c->current.older_known = false;
	watch_bytes(c);
	if (c->step.decision.action != ACTION_HEAL)
		current_forget_saved(c);
	if (c->current.left)
		left_clear(c->env->sys, c->current.store);
	c->current.left = false;
	latest_current_replaced(c, &replaced);
	version_fini(&replaced);
}

void current_forget(struct config *c)
{
	for (size_t i = 0; i < c->current.version.part_count; i++)
		c->current.version.parts[i].etag[0] = c->current.version.parts[i].last_modified[0] =
			'\0';
	c->current.version.sha256[0] = '\0';
}

/* ---- life ---- */

void current_init(struct config *c)
{
	c->current.expires_ms = INT64_MAX;
	digest_settings(c->settings, c->current.settings);
}

void current_retire(struct config *c)
{
	notify_free(c->current.notify);
	c->current.notify = NULL;
	if (c->current.watching_drift) {
		file_watch_remove(c->env->drift, &c->current.file_drift);
		file_watch_remove(c->env->drift, &c->current.image_drift);
		file_watch_remove(c->env->drift, &c->current.bytes_drift);
		c->current.watching_drift = false;
	}
	loop_timer_cancel(c->env->loop, &c->decisions.expiry);
	if (c->current.repairs)
		loop_timer_cancel(c->env->loop, &c->current.repairs->timer);
}

void current_fini(struct config *c)
{
	current_retire(c);
	current_forget_saved(c);
	free(c->current.repairs);
	c->current.repairs = NULL;
	free(c->current.syncing); /* the worker has stopped */
	ledger_free(c->current.overrides);
	free(c->current.unsigned_why);
	target_close(c->current.target);
	file_set_close(c->current.fileset);
	image_close(c->current.image);
	store_close(c->current.store);
	version_fini(&c->current.version);
}
