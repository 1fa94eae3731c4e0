/*
 * The current version: opened, started from the last known good, repaired when somebody else
 * changes its files.
 *
 * Surprising: a place that cannot be used at the start is tried again at every run, which then does
 * the work of the start.
 */
#include "config/state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PATIENCE_MS 60000u /* between two readings of the wall clock */
#define REPAIR_MS 1000u

static void repair_due(void *arg);

/* ---- the ledger ---- */

static void set_expiry_timer(struct config *c)
{
	int64_t next_ms = ledger_next_expiry(c->ledger), left_ms;

	if (next_ms == LEDGER_FOREVER) {
		loop_timer_cancel(c->env->loop, &c->expiry);
		return;
	}
	left_ms = next_ms - c->env->sys->wall_ms();
	if (left_ms < 0)
		left_ms = 0;
	if (left_ms > PATIENCE_MS)
		left_ms = PATIENCE_MS;
	loop_timer_set(c->env->loop, &c->expiry, loop_now_ms(c->env->loop) + (uint64_t)left_ms + 1);
}

void current_save_ledger(struct config *c)
{
	struct ledger l = *c->ledger;
	char why[FILE_WHY];
	int r, dir = store_dir(c->store);

	if (c->change.under_way && !c->change.visible &&
		c->change.overrides) { /* the new ones are not validated yet */
		l.overrides = c->change.overrides->overrides;
		l.override_count = c->change.overrides->override_count;
	}
	r = dir < 0 ? dir : ledger_save(&l, c->env->sys, dir, c->settings->strict, why);
	if (dir >= 0)
		c->env->sys->close(dir);
	else
		snprintf(why, sizeof(why), "the state directory: %s", strerror(-dir));
	if (r)
		log_err("cannot save pins and overrides: they will be lost on restart", "config",
			c->settings->name, "why", why);
	else if (!c->settings->strict)
		publishing_sync(c, PUBLISHING_LEDGER);
	set_expiry_timer(c);
}

static void expiry_passed(void *arg)
{
	struct config *c = arg;
	bool overrides, pinned = c->ledger->pin.by, suspended = config_suspended(c);

	if (ledger_expire(c->ledger, c->env->sys->wall_ms(), &overrides)) {
		bool pin = pinned && !c->ledger->pin.by;

		if (overrides)
			operations_forgive_rejections(c);
		current_save_ledger(c);
		if (pin) {
			log_info("the pin has expired", "config", c->settings->name);
			config_refresh(c, false);
		}
		if (suspended && !config_suspended(c)) {
			log_info("the suspension has expired", "config", c->settings->name);
			config_suspension_ended(c);
		}
		if (overrides) {
			log_info("an override has expired", "config", c->settings->name);
			requests_add(c, &(struct request){.kind = REQUEST_RECOMPOSE},
				"an override has expired");
		}
	}
	set_expiry_timer(c);
}

static int open_ledger(struct config *c)
{
	int r, dir = store_dir(c->store);

	if (dir < 0)
		return dir;
	r = ledger_load(c->env->sys, dir, &c->ledger);
	c->env->sys->close(dir);
	if (r == -EBADMSG) {
		log_err("the ledger cannot be read: pins and rejections are forgotten", "config",
			c->settings->name);
		r = 0;
	}
	return r;
}

/* ---- places ---- */

/* Watches the published files; without inotify they are checked at each interval. */
static void watch_drift(struct config *c)
{
	const struct settings_config *s = c->settings;

	if (!c->env->drift || s->drift == SETTINGS_LEAVE || c->watching_drift)
		return;
	c->watching_drift = true;
	c->file_drift = (struct file_watch_entry){.noticed = current_drift_noticed, .arg = c};
	c->image_drift = c->file_drift;
	if (s->file) {
		const char *slash = strrchr(s->file, '/');
		char *dir = strndup(s->file, slash > s->file ? (size_t)(slash - s->file) : 1);

		if (dir)
			file_watch_add(c->env->drift, &c->file_drift, dir, slash + 1);
		free(dir);
	} else if (s->dir) {
		file_watch_add(c->env->drift, &c->file_drift, s->dir, NULL);
	}
	if (c->image)
		file_watch_add(
			c->env->drift, &c->image_drift, c->env->runtime_dir, image_name(c->image));
}

int current_open(struct config *c, char why[FILE_WHY])
{
	const struct settings_config *s = c->settings;
	int r = 0;

	if (!c->store)
		r = store_open(c->env->sys, c->env->state_dir, s->name, s->history, &c->store, why);
	if (r == 0 && !c->ledger) {
		r = open_ledger(c);
		if (r)
			snprintf(why, FILE_WHY, "the ledger: %s", strerror(-r));
	}
	if (r == 0 && !c->target && s->file)
		r = target_open(c->env->sys, s, c->env->sweep, &c->target, why);
	if (r == 0 && !c->fileset && s->dir)
		r = file_set_open(c->env->sys, s->dir, &c->fileset, why);
	if (r == 0 && !c->image && s->snapshot)
		r = image_open(
			c->env->sys, c->env->runtime_dir, s->name, c->env->sweep, &c->image, why);
	if (r == 0)
		watch_drift(c);
	return r;
}

static bool is_place_current(struct config *c)
{
	return (!c->target || target_is_current(c->target, NULL, 0)) &&
	       (!c->fileset || file_set_is_current(c->fileset, NULL, 0, NULL)) &&
	       (!c->image || image_is_current(c->image));
}

/* ---- drift ---- */

/* Loads the current version for a repair. local: no run waits for it. */
static void start_repair(struct config *c, bool local, const char *cause)
{
	char why[FILE_WHY];
	unsigned damaged;
	int r = -ENOMEM;

	snprintf(why, sizeof(why), "out of memory");
	c->candidate = candidate_new();
	if (c->candidate) {
		c->candidate->local = local;
		c->candidate->repair_cause = cause;
		r = candidate_load(c->candidate, c->store, c->published.generation, &damaged, why);
	}
	if (r)
		current_repair(c, r, why);
	else
		validation_start(c, VERIFY_TRUSTED);
}

void current_repair(struct config *c, int error, const char *why)
{
	const char *cause = c->candidate ? c->candidate->repair_cause : "";
	char copy[FILE_WHY];
	unsigned n;

	if (error) {
		snprintf(copy, sizeof(copy), "%.380s", why);
		pipeline_forget_current(c);
		pipeline_fail(c, "cannot repair the published file", copy);
		return;
	}
	c->restored++;
	c->candidate->quiet =
		!log_limit_pass(&c->repair_limit, loop_now_ms(c->env->loop), cause, &n);
	if (!c->candidate->quiet)
		log_warn("the file was changed by somebody else: restoring it", "config",
			c->settings->name, "file", settings_place(c->settings), "cause", cause,
			"repeated", n ? LOG_U64(n) : NULL);
	publishing_start(c);
}

static void report_drift(struct config *c, const char *cause)
{
	if (!c->drifted && c->settings->drift == SETTINGS_REPORT)
		log_warn("the file was changed by somebody else: leaving it as it is", "config",
			c->settings->name, "file", settings_place(c->settings), "cause", cause);
	c->drifted = true;
}

/* `format: run` was configured after this version was published. */
static bool needs_program(const struct config *c)
{
	return c->published.generation && c->settings->format == SETTINGS_FORMAT_RUN &&
	       !c->published.product_len;
}

void current_drift_noticed(void *arg, const char *cause)
{
	struct config *c = arg;
	uint64_t now_ms = loop_now_ms(c->env->loop);

	if (!c->published.generation || needs_program(c) || c->saved_generation)
		return; /* half published: the next run goes on */
	if (c->candidate || trigger_running(&c->trigger)) {
		c->drift_cause = cause; /* looked at afterwards: requests_serve() */
	} else if (is_place_current(c)) {
		return;
	} else if (c->settings->drift != SETTINGS_HEAL) {
		report_drift(c, cause);
	} else if (now_ms < c->repaired_ms + REPAIR_MS) {
		c->deferred_cause = cause;
		loop_timer_set(c->env->loop, &c->repair_timer, c->repaired_ms + REPAIR_MS);
	} else {
		c->repaired_ms = now_ms;
		start_repair(c, true, cause);
	}
}

static void repair_due(void *arg)
{
	struct config *c = arg;

	current_drift_noticed(c, c->deferred_cause);
}

/* A drifted image gets its page with the repair. */
static int repair_image(struct config *c, char why[FILE_WHY])
{
	return c->image && image_is_current(c->image) ? image_keep_page(c->image, why) : 0;
}

void current_confirm_pull(struct config *c)
{
	char why[FILE_WHY];

	if (c->env->dry_run) {
		config_run_succeeded(c, CONFIG_UNCHANGED);
		return;
	}
	if (current_open(c, why) || repair_image(c, why)) {
		config_run_failed(c, SUPERVISOR_FAILED, "cannot repair the published file", why);
		return;
	}
	if (needs_program(c)) {
		if (c->env->once) { /* there is no later run */
			requests_recompose(c);
			return;
		}
		requests_add(
			c, &(struct request){.kind = REQUEST_RECOMPOSE}, "the format has changed");
	} else if (!is_place_current(c) && c->published.generation) {
		if (c->settings->drift == SETTINGS_HEAL) {
			start_repair(c, false, "seen at the interval");
			return;
		}
		report_drift(c, "seen at the interval");
	} else {
		c->drifted = false;
	}
	if (c->published.generation)
		requests_retry(c);
	if (c->rejected && c->rejected->reason == REJECTED_BY_ROLLOUT && rollout_gate_ask(c))
		return;
	if (c->rejected)
		pipeline_end_rejected(c);
	else
		config_run_succeeded(c, CONFIG_UNCHANGED);
}

/* ---- start and stop ---- */

/* Makes the newest version of the store the candidate, composed. */
static int load_newest(struct config *c, char why[FILE_WHY])
{
	struct verify_result j = {.why = ""};
	unsigned damaged = 0;
	int r;

	c->candidate = candidate_new();
	if (!c->candidate)
		return -ENOMEM;
	r = candidate_load(c->candidate, c->store, 0, &damaged, why);
	if (damaged)
		log_err("state files were damaged (set aside) or could not be read", "config",
			c->settings->name, "files", LOG_U64(damaged));
	if (r)
		return r == -ENOENT ? 0 : r;
	if (publishing_adopt_decisions(c)) /* the agent died between the two */
		current_save_ledger(c);
	r = validation_run(c, VERIFY_TRUSTED, &j);
	if (r) {
		config_report_failure(c,
			"the last known good does not fit the present configuration",
			j.why[0] ? j.why : strerror(-r));
		return -ECANCELED; /* logged */
	}
	return 0;
}

/* Skips files that are right already: their readers need not wake up. */
static void skip_current_places(struct config *c)
{
	struct publication *p = &c->candidate->publication;

	if (p->target && target_is_current(p->target, p->text, p->text_len))
		p->target = NULL;
	if (p->fileset && publish_set_is_current(p))
		p->fileset = NULL;
}

/* The snapshot has the time of the last confirmation before a restart. */
static void restore_confirmation(struct config *c)
{
	uint64_t now_ms = c->env->sys->now_ms(),
		 then_ms = c->image ? image_confirmed_ms(c->image) : 0;

	if (then_ms == 0 || then_ms > now_ms)
		return;
	c->confirmed_ms = then_ms;
	c->confirmed_wall_ms = c->env->sys->wall_ms() - (int64_t)(now_ms - then_ms);
}

static void start_from_store(struct config *c)
{
	char why[FILE_WHY] = "";
	bool overrides;
	int r = current_open(c, why);

	if (r) {
		config_report_failure(c, CONFIG_CANNOT_PUBLISH, why);
		return;
	}
	c->started = true;
	/* a running agent expires them by a timer, as an ordinary change */
	if (c->env->once && ledger_expire(c->ledger, c->env->sys->wall_ms(), &overrides))
		current_save_ledger(c);
	r = load_newest(c, why);
	if (r || !c->candidate->version.generation)
		goto out;
	publishing_fill(c);
	skip_current_places(c);
	if (c->settings->format == SETTINGS_FORMAT_RUN && !c->candidate->has_text)
		c->candidate->publication.target = NULL; /* a program must run first */
	if (c->candidate->publication.target || c->candidate->publication.fileset ||
		c->candidate->publication.image) {
		publish_run(&c->candidate->publication); /* at start it may block */
		if (c->candidate->publication.error) {
			publishing_note_saved(c);
			config_report_failure(c, "the last known good could not be published",
				c->candidate->publication.why);
			goto out;
		}
	}
	publishing_set_current(c);
	publishing_set_overrides(c);
	c->expires_ms = c->candidate->expires_ms;
	c->published_wall_ms = c->published.pulled_ms;
	restore_confirmation(c);
	log_info("started from the last known good", "config", c->settings->name, "generation",
		LOG_U64(c->published.generation), "version", VERSION_TEXT(&c->published), "file",
		settings_place(c->settings));
out:
	pipeline_drop_candidate(c);
}

void current_init(struct config *c)
{
	loop_timer_init(&c->expiry, expiry_passed, c);
	loop_timer_init(&c->repair_timer, repair_due, c);
	publishing_init(c);
	c->expires_ms = INT64_MAX;
}

void current_start(struct config *c)
{
	if (c->env->dry_run)
		return;
	start_from_store(c);
	if (!c->started)
		return;
	set_expiry_timer(c);
	requests_start_notify(c);
	if (!c->env->once)
		requests_finish_rollback(c);
}

void current_start_late(struct config *c)
{
	if (!c->started)
		current_start(c);
}

void current_retire(struct config *c)
{
	programs_free(c->programs);
	c->programs = NULL;
	notify_free(c->notify);
	c->notify = NULL;
	if (c->watching_drift) {
		file_watch_remove(c->env->drift, &c->file_drift);
		file_watch_remove(c->env->drift, &c->image_drift);
		c->watching_drift = false;
	}
	loop_timer_cancel(c->env->loop, &c->expiry);
	loop_timer_cancel(c->env->loop, &c->repair_timer);
	tasks_drop(c);
	if (c->validating)
		validation_give_up(c->validating);
	else if (!c->publishing)
		pipeline_drop_candidate(c);
}

void current_stop(struct config *c)
{
	c->publishing = false; /* the worker has stopped */
	free(c->validating);   /* with its job */
	c->validating = NULL;
	tasks_end(c);
	current_retire(c);
	pipeline_forget_rejected(c);
	requests_clear(c);
	operations_fini(c);
	ledger_free(c->next_overrides);
	ledger_free(c->current_overrides);
	target_close(c->target);
	file_set_close(c->fileset);
	image_close(c->image);
	store_close(c->store);
	ledger_free(c->ledger);
	version_fini(&c->published);
}
