/*
 * What stands: opened, started from the last known good, looked after while somebody else touches
 * it.
 *
 * Surprising: a place that cannot be used at the start is tried again at every run, and what the
 * start does is done then.
 */
#include "config/state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PATIENCE_MS 60000u /* between two looks at the wall clock */
#define HEAL_MS 1000u

static void heal_again(void *arg);

/* ---- the ledger ---- */

static void arm_expiry(struct config *c)
{
	int64_t next_ms = ledger_next(c->ledger), left_ms;

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

void version_remember(struct config *c)
{
	struct ledger l = *c->ledger;
	char why[FILE_WHY];
	int r, dir = store_dir(c->store);

	if (c->change.under_way && !c->change.visible &&
		c->change.overrides) { /* nobody has validated the new ones yet */
		l.overrides = c->change.overrides->overrides;
		l.override_count = c->change.overrides->override_count;
	}
	r = dir < 0 ? dir : ledger_save(&l, c->env->sys, dir, c->settings->strict, why);
	if (dir >= 0)
		c->env->sys->close(dir);
	else
		snprintf(why, sizeof(why), "the state directory: %s", strerror(-dir));
	if (r)
		log_err("what was decided cannot be remembered: it is lost with the next restart",
			"config", c->settings->name, "why", why);
	else if (!c->settings->strict)
		version_sync(c, VERSION_LEDGER);
	arm_expiry(c);
}

static void expired(void *arg)
{
	struct config *c = arg;
	bool overrides, pinned = c->ledger->pin.by, suspended = config_suspended(c);

	if (ledger_expire(c->ledger, c->env->sys->wall_ms(), &overrides)) {
		bool pin = pinned && !c->ledger->pin.by;

		if (overrides)
			operate_forgive(c);
		version_remember(c);
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
			version_wish(c, &(struct wish){.kind = WISH_RECOMPOSE},
				"an override has expired");
		}
	}
	arm_expiry(c);
}

static int open_ledger(struct config *c)
{
	int r, dir = store_dir(c->store);

	if (dir < 0)
		return dir;
	r = ledger_load(c->env->sys, dir, &c->ledger);
	c->env->sys->close(dir);
	if (r == -EBADMSG) {
		log_err("the ledger cannot be read: pins and refusals are forgotten", "config",
			c->settings->name);
		r = 0;
	}
	return r;
}

/* ---- places ---- */

/* Looks after what is published; where that is not to be had, every interval does. */
static void look_after(struct config *c)
{
	const struct settings_config *s = c->settings;

	if (!c->env->drift || s->drift == SETTINGS_LEAVE || c->looked_after)
		return;
	c->looked_after = true;
	c->file_drift = (struct file_watch_entry){.noticed = version_noticed, .arg = c};
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

int version_prepare(struct config *c, char why[FILE_WHY])
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
		look_after(c);
	return r;
}

static bool is_current(struct config *c)
{
	return (!c->target || target_is_current(c->target, NULL, 0)) &&
	       (!c->fileset || file_set_is_current(c->fileset, NULL, 0, NULL)) &&
	       (!c->image || image_is_current(c->image));
}

/* ---- drift ---- */

/* Somebody changed what was published: it is put back. local: no run waits for it. */
static void heal(struct config *c, bool local, const char *cause)
{
	char why[FILE_WHY];
	unsigned damaged;
	int r = -ENOMEM;

	snprintf(why, sizeof(why), "out of memory");
	c->candidate = candidate_new();
	if (c->candidate) {
		c->candidate->local = local;
		c->candidate->heals = cause;
		r = candidate_load(c->candidate, c->store, c->published.generation, &damaged, why);
	}
	if (r)
		version_healed(c, r, why);
	else
		version_try(c, VERIFY_TRUSTED);
}

void version_healed(struct config *c, int error, const char *why)
{
	const char *cause = c->candidate ? c->candidate->heals : "";
	char copy[FILE_WHY];
	unsigned n;

	if (error) {
		snprintf(copy, sizeof(copy), "%.380s", why);
		version_forget_standing(c);
		version_failed(c, "the published file cannot be put right", copy);
		return;
	}
	c->restored++;
	c->candidate->quiet = !log_limit_pass(&c->heal_limit, loop_now_ms(c->env->loop), cause, &n);
	if (!c->candidate->quiet)
		log_warn("the file was changed by somebody else: putting it back", "config",
			c->settings->name, "file", settings_place(c->settings), "cause", cause,
			"repeated", n ? LOG_U64(n) : NULL);
	version_publish(c);
}

static void report_drift(struct config *c, const char *cause)
{
	if (!c->drifted && c->settings->drift == SETTINGS_REPORT)
		log_warn("the file was changed by somebody else: it is left so", "config",
			c->settings->name, "file", settings_place(c->settings), "cause", cause);
	c->drifted = true;
}

/* The text is to be made by a program that has not seen this version. */
static bool needs_program(const struct config *c)
{
	return c->published.generation && c->settings->format == SETTINGS_FORMAT_RUN &&
	       !c->published.product_len;
}

/* An event. What somebody changes again and again is put back once a second, and every interval. */
void version_noticed(void *arg, const char *cause)
{
	struct config *c = arg;
	uint64_t now_ms = loop_now_ms(c->env->loop);

	if (!c->published.generation || needs_program(c) || c->saved_generation)
		return; /* one that is half published: the next run says */
	if (c->candidate || trigger_running(&c->trigger)) {
		c->touched = cause; /* looked at afterwards: version_grant() */
	} else if (is_current(c)) {
		return;
	} else if (c->settings->drift != SETTINGS_HEAL) {
		report_drift(c, cause);
	} else if (now_ms < c->healed_ms + HEAL_MS) {
		c->put_off = cause;
		loop_timer_set(c->env->loop, &c->heal_again, c->healed_ms + HEAL_MS);
	} else {
		c->healed_ms = now_ms;
		heal(c, true, cause);
	}
}

static void heal_again(void *arg)
{
	struct config *c = arg;

	version_noticed(c, c->put_off);
}

/* Where the image is not as it should be, its publication does that. */
static int keep_page(struct config *c, char why[FILE_WHY])
{
	return c->image && image_is_current(c->image) ? image_keep_page(c->image, why) : 0;
}

void version_unchanged(struct config *c)
{
	char why[FILE_WHY];

	if (c->env->dry_run) {
		config_run_succeeded(c, CONFIG_UNCHANGED);
		return;
	}
	if (version_prepare(c, why) || keep_page(c, why)) {
		config_run_failed(
			c, SUPERVISOR_FAILED, "the published file cannot be put right", why);
		return;
	}
	if (needs_program(c)) {
		if (c->env->once) { /* nothing comes after this run */
			version_recompose(c);
			return;
		}
		version_wish(c, &(struct wish){.kind = WISH_RECOMPOSE}, "the format has changed");
	} else if (!is_current(c) && c->published.generation) {
		if (c->settings->drift == SETTINGS_HEAL) {
			heal(c, false, "seen at the interval");
			return;
		}
		report_drift(c, "seen at the interval");
	} else {
		c->drifted = false;
	}
	if (c->published.generation)
		version_wish_again(c);
	if (c->away && strcmp(c->away->check, "rollout") == 0 && rollout_ask(c))
		return;
	if (c->away)
		version_end_away(c);
	else
		config_run_succeeded(c, CONFIG_UNCHANGED);
}

/* ---- start and stop ---- */

/* The newest version of the store as the candidate, composed. */
static int load_last(struct config *c, char why[FILE_WHY])
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
	if (version_adopt_decisions(c)) /* the agent died between the two */
		version_remember(c);
	r = version_judge(c, VERIFY_TRUSTED, &j);
	if (r) {
		config_complain(c, "the last known good does not fit the present configuration",
			j.why[0] ? j.why : strerror(-r));
		return -ECANCELED; /* told */
	}
	return 0;
}

/* What stands already is left alone: nobody is woken for nothing. */
static void leave_what_stands(struct config *c)
{
	struct publication *p = &c->candidate->publication;

	if (p->target && target_is_current(p->target, p->text, p->text_len))
		p->target = NULL;
	if (p->fileset && publish_set_is_current(p))
		p->fileset = NULL;
}

/* Readers were told when; it was just before, where the agent was restarted. */
static void remember_confirmation(struct config *c)
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
	int r = version_prepare(c, why);

	if (r) {
		config_complain(c, CONFIG_CANNOT_PUBLISH, why);
		return;
	}
	c->started = true;
	/* otherwise what has expired is noticed when all is running: then it is a change as any */
	if (c->env->once && ledger_expire(c->ledger, c->env->sys->wall_ms(), &overrides))
		version_remember(c);
	r = load_last(c, why);
	if (r || !c->candidate->version.generation)
		goto out;
	version_fill_publication(c);
	leave_what_stands(c);
	if (c->settings->format == SETTINGS_FORMAT_RUN && !c->candidate->has_text)
		c->candidate->publication.target = NULL; /* a program has to run first */
	if (c->candidate->publication.target || c->candidate->publication.fileset ||
		c->candidate->publication.image) {
		publish_run(&c->candidate->publication); /* at start it may block */
		if (c->candidate->publication.error) {
			version_remember_saved(c);
			config_complain(c, "the last known good could not be published",
				c->candidate->publication.why);
			goto out;
		}
	}
	version_set_published(c);
	version_set_stood(c);
	c->expires_ms = c->candidate->expires_ms;
	c->published_wall_ms = c->published.pulled_ms;
	remember_confirmation(c);
	log_info("started from the last known good", "config", c->settings->name, "generation",
		LOG_U64(c->published.generation), "version", VERSION_TEXT(&c->published), "file",
		settings_place(c->settings));
out:
	version_drop(c);
}

void version_init(struct config *c)
{
	loop_timer_init(&c->expiry, expired, c);
	loop_timer_init(&c->heal_again, heal_again, c);
	version_init_jobs(c);
	c->expires_ms = INT64_MAX;
}

void version_start(struct config *c)
{
	if (c->env->dry_run)
		return;
	start_from_store(c);
	if (!c->started)
		return;
	arm_expiry(c);
	version_start_aftermath(c);
	if (!c->env->once)
		version_finish_rollback(c);
}

void version_start_late(struct config *c)
{
	if (!c->started)
		version_start(c);
}

void version_retire(struct config *c)
{
	programs_free(c->trial);
	c->trial = NULL;
	notify_free(c->aftermath);
	c->aftermath = NULL;
	if (c->looked_after) {
		file_watch_remove(c->env->drift, &c->file_drift);
		file_watch_remove(c->env->drift, &c->image_drift);
		c->looked_after = false;
	}
	loop_timer_cancel(c->env->loop, &c->expiry);
	loop_timer_cancel(c->env->loop, &c->heal_again);
	config_tasks_drop(c);
	if (c->validating)
		judging_give_up(c->validating);
	else if (!c->publishing)
		version_drop(c);
}

void version_stop(struct config *c)
{
	c->publishing = false; /* there is no worker any more, if it was */
	free(c->validating);   /* nor its job */
	c->validating = NULL;
	config_tasks_end(c);
	version_retire(c);
	version_clear_away(c);
	version_forget_wish(c);
	operate_fini(c);
	ledger_free(c->composed);
	ledger_free(c->stood);
	target_close(c->target);
	file_set_close(c->fileset);
	image_close(c->image);
	store_close(c->store);
	ledger_free(c->ledger);
	version_fini(&c->published);
}
