/*
 * The start of a config: which stored version becomes current first. It is noted as saved, and the
 * table shows it.
 *
 * Surprising: a place that cannot be used is tried again at every run, which then does the work of
 * the start.
 */
#include "config/core.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define LOST_PIN "the pinned version is not in the state directory: the pin is dropped"

/* True when this generation may be current after a start: it has the pinned bytes, or an operator's
 * change moved the pin to it. Its bytes are noted. */
static bool may_start_with(struct config *c, const struct version *v)
{
	const struct ledger_pin *pin = &c->decisions.ledger->pin;
	struct ledger *decided = NULL;
	bool moves = false;

	if (!pin->by || !pin->sha256[0] || strcmp(pin->sha256, v->sha256) == 0)
		return true;
	if (v->decisions && v->decisions[0] && v->generation > c->decisions.ledger->generation &&
		ledger_read(v->decisions, strlen(v->decisions), &decided) == 0)
		moves = decided->pin.by && strcmp(decided->pin.sha256, v->sha256) == 0;
	ledger_free(decided);
	return moves;
}

/* Notes it as saved. A pin that the version moved moves now: the agent died before its ledger was
 * written. */
static void note_last_good(struct config *c, const struct version *v)
{
	const struct ledger_pin *pin = &c->decisions.ledger->pin;

	current_note_saved(c, v);
	if (pin->by && strcmp(pin->sha256, v->sha256) != 0 && decisions_adopt(c, v))
		decisions_save(c);
}

/* Notes the newest one that has the pinned bytes; else the pin is dropped, and the newest counts.
 */
static void find_pinned(struct config *c, const struct version *newest)
{
	uint64_t generations[STORE_MAX_KEEP];
	size_t n = store_list(c->current.store, generations);

	for (size_t i = 0; i < n && !c->current.saved_generation; i++) {
		struct version v;
		struct buffer body;

		buffer_init(&body, CANDIDATE_MAX_BYTES);
		if (store_load_generation(c->current.store, generations[i], &v, &body) == 0) {
			if (may_start_with(c, &v))
				note_last_good(c, &v);
			version_fini(&v);
		}
		buffer_fini(&body);
	}
	if (c->current.saved_generation)
		return;
	decisions_drop_pin(c, LOST_PIN);
	current_note_saved(c, newest);
}

/* Takes over what was decided since the ledger was written, in the order of the state files. */
static void adopt_newer_decisions(struct config *c)
{
	uint64_t generations[STORE_MAX_KEEP];
	bool changed = false;

	for (size_t i = store_list(c->current.store, generations); i-- > 0;) {
		struct version v;
		struct buffer body;

		if (generations[i] <= c->decisions.ledger->generation)
			continue;
		buffer_init(&body, CANDIDATE_MAX_BYTES);
		if (store_load_generation(c->current.store, generations[i], &v, &body) == 0) {
			changed |= decisions_adopt(c, &v);
			version_fini(&v);
		}
		buffer_fini(&body);
	}
	if (changed)
		decisions_save(c);
}

/* Notes the newest version that may be current as saved, if there is one. False: it is not known
 * now, as there is no memory or no descriptor. */
static bool find_last_good(struct config *c)
{
	struct version newest;
	struct buffer body;
	unsigned damaged = 0;
	int r;

	buffer_init(&body, CANDIDATE_MAX_BYTES);
	r = store_load(c->current.store, &newest, &body, &damaged);
	buffer_fini(&body);
	if (damaged)
		log_err("state files were damaged (set aside) or could not be read", "config",
			c->settings->name, "files", LOG_U64(damaged));
	if (r && r != -ENOENT) {
		c->status.failed_here = true;
		config_report_failure(c, "the state directory cannot be read", strerror(-r));
	}
	if (r == -ENOENT && c->decisions.ledger->pin.by)
		decisions_drop_pin(c, LOST_PIN);
	if (r)
		return r == -ENOENT;
	if (may_start_with(c, &newest))
		note_last_good(c, &newest);
	else
		find_pinned(c, &newest);
	version_fini(&newest);
	return true;
}

/* The snapshot has the time of the last confirmation before a restart. */
static void restore_confirmation(struct config *c)
{
	uint64_t now_ms = c->env->sys->now_ms(),
		 then_ms = c->current.image ? image_confirmed_ms(c->current.image) : 0;

	if (then_ms == 0 || then_ms > now_ms)
		return;
	c->status.confirmed_ms = then_ms;
	c->status.confirmed_wall_ms = c->env->sys->wall_ms() - (int64_t)(now_ms - then_ms);
}

/* An older ledger does not name the bytes that it pins: they are the current ones. */
static void name_pinned_bytes(struct config *c)
{
	const struct ledger_pin *pin = &c->decisions.ledger->pin;

	if (pin->by && !pin->sha256[0] &&
		ledger_pin(c->decisions.ledger, pin->until_ms, pin->by, pin->reason,
			c->current.version.sha256) == 0)
		decisions_save(c);
}

void current_started(struct config *c)
{
	name_pinned_bytes(c);
	c->status.published_wall_ms = c->current.version.pulled_ms;
	restore_confirmation(c);
	log_info("started from the last known good", "config", c->settings->name, "generation",
		LOG_U64(c->current.version.generation), "version",
		VERSION_TEXT(&c->current.version), "file", settings_place(c->settings));
	current_start_notify(c);
}

void current_start(struct config *c)
{
	char why[FILE_WHY] = "";

	if (c->env->dry_run || c->current.started)
		return;
	if (current_open(c, why)) {
		c->status.failed_here = true;
		config_report_failure(c, CONFIG_CANNOT_PUBLISH, why);
		return;
	}
	c->current.started = true;
	/* a running agent expires them by a timer, as an ordinary change */
	if (c->env->once)
		decisions_expire(c);
	decisions_read_rules(c);
	adopt_newer_decisions(c);
	c->current.started = find_last_good(c);
	if (!c->current.started)
		return; /* tried again at the next run */
	store_prune(c->current.store,
		(uint64_t[]){c->decisions.ledger->proven, c->current.saved_generation}, 2);
	c->step.starts =
		c->env->starting || !validation_is_large_file(c, c->current.saved_generation);
	config_settle(c);
	c->step.starts = false;
	decisions_begin(c);
	if (c->step.decision.row == ROW_NONE) /* else when it is shown */
		current_start_notify(c);
}
