/*
 * The start of a config: which stored version becomes current first. It is noted as saved, and the
 * table shows it.
 *
 * Surprising: a place that cannot be used is tried again at every run, which then does the work of
 * the start.
 */
#include "config/core.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "publish/shown.h"
#include "version/left.h"

/* A disk that fails for a moment is waited for: what it has may be newer than what can be read, or
 * pinned. One that goes on failing is not. */
#define PATIENT_RUNS 10
#define YOUNG_MS (10 * 60 * 1000)
#define LOST_PIN "the pinned version is not in the state directory: the pin is dropped"
#define OLD_NUMBER "the pinned version keeps its old number: readers may have seen a newer one"

/* ---- what is stored ---- */

/* Versions of the state directory, newest first, without their bytes. */
struct stored {
	struct version *versions;
	size_t count;
	unsigned damaged;
};

bool current_is_patient(const struct config *c)
{
	return c->run.number < PATIENT_RUNS;
}

/* It has the pinned bytes, if any are pinned. */
static bool fits_pin(const struct config *c, const struct version *v)
{
	const struct ledger_pin *pin = &c->decisions.ledger->pin;

	return !pin->by || !pin->sha256[0] || strcmp(pin->sha256, v->sha256) == 0;
}

/* Reads the newest version below this one as the last of them. */
static int read_next(struct config *c, uint64_t below, struct stored *s)
{
	struct version *grown = realloc(s->versions, (s->count + 1) * sizeof(*grown));
	struct buffer body;
	int r;

	if (!grown)
		return -ENOMEM;
	s->versions = grown;
	buffer_init(&body, CANDIDATE_MAX_BYTES);
	r = store_load_below(c->current.store, below, current_is_patient(c), &grown[s->count],
		&body, &s->damaged);
	buffer_fini(&body);
	s->count += r == 0;
	return r;
}

/* Reads the newest version, those that the ledger has not followed, and those down to the pinned
 * one. 0, also when there is none; -errno: not known now, and nothing follows from it. */
static int read_stored(struct config *c, struct stored *s)
{
	uint64_t below = UINT64_MAX;
	bool enough;
	int r;

	do {
		r = read_next(c, below, s);
		if (r)
			return r == -ENOENT ? 0 : r;
		below = s->versions[s->count - 1].generation;
		enough = below <= c->decisions.ledger->generation &&
			 fits_pin(c, &s->versions[s->count - 1]);
	} while (!enough);
	return 0;
}

static void stored_fini(struct stored *s)
{
	for (size_t i = 0; i < s->count; i++)
		version_fini(&s->versions[i]);
	free(s->versions);
}

/* Takes over what was decided since the ledger was written, in the order of the state files; a pin
 * moves with it. 0 or -ENOMEM. */
static int adopt_newer_decisions(struct config *c, const struct stored *s)
{
	bool changed = false;
	int r = 0;

	for (size_t i = s->count; i-- > 0 && r != -ENOMEM;) {
		r = decisions_adopt(c, &s->versions[i]);
		changed |= r > 0;
	}
	if (changed)
		decisions_save(c);
	return r == -ENOMEM ? r : 0;
}

static void note_pinned_origin(struct version *v)
{
	char *origin = strdup("the pinned version came back at a start");

	if (!origin)
		return;
	free(v->origin);
	v->origin = origin;
}

/* Saves the bytes of a stored version once more, as the newest. The ledger goes first: the
 * decisions in that file are of its first time. 0 or -errno. */
static int save_as_newest(struct config *c, struct version *v, char why[FILE_WHY])
{
	struct ledger *ledger = c->decisions.ledger;
	uint64_t followed = ledger->generation;
	struct version read;
	struct buffer body;
	int r;

	buffer_init(&body, CANDIDATE_MAX_BYTES);
	r = store_load_generation(c->current.store, v->generation, &read, &body);
	if (r) {
		snprintf(why, FILE_WHY, "%s", strerror(-r));
		buffer_fini(&body);
		return r;
	}
	read.generation = store_next_generation(c->current.store);
	read.published_ms = c->env->sys->wall_ms();
	version_set_cause(&read, CAUSE_PIN, ledger->pin.by);
	note_pinned_origin(&read);
	ledger->generation = read.generation;
	r = decisions_save_asked(c, why);
	if (r == 0)
		r = store_save(
			c->current.store, &read, body.data, body.len, c->settings->strict, why);
	if (r) {
		ledger->generation = followed;
		decisions_save(c);
	} else {
		v->generation = read.generation;
	}
	version_fini(&read);
	buffer_fini(&body);
	return r;
}

/* The pinned version is older than others, which readers may have seen: it comes back under a
 * number that is newer than theirs. */
static void raise_pinned(struct config *c, struct version *v)
{
	char why[FILE_WHY] = "";

	if (save_as_newest(c, v, why))
		log_warn(OLD_NUMBER, "config", c->settings->name, "why", why);
}

/* Notes the newest version that may be current as saved; without one of the pinned bytes the pin is
 * dropped. 0 or -ENOMEM. */
static int note_last_good(struct config *c, const struct stored *s)
{
	size_t i = 0;

	while (i < s->count && !fits_pin(c, &s->versions[i]))
		i++;
	if (i == s->count && c->decisions.ledger->pin.by)
		decisions_drop_pin(c, LOST_PIN);
	if (s->count == 0)
		return 0;
	if (i > 0 && i < s->count)
		raise_pinned(c, &s->versions[i]);
	current_note_saved(c, &s->versions[i < s->count ? i : 0]);
	return c->current.saved_generation ? 0 : -ENOMEM;
}

/* Notes the version that becomes current first, if there is one. False: it is not known now, as
 * there is no memory or no descriptor. */
static bool find_last_good(struct config *c, bool *ret_damaged)
{
	struct stored s = {.count = 0};
	int r = read_stored(c, &s);

	*ret_damaged = s.damaged;
	if (s.damaged)
		log_err("state files were damaged (set aside) or could not be read", "config",
			c->settings->name, "files", LOG_U64(s.damaged));
	if (r == 0)
		r = adopt_newer_decisions(c, &s);
	if (r == 0)
		r = note_last_good(c, &s);
	if (r) {
		c->status.failed_here = true;
		config_report_failure(c, "the state directory cannot be read", strerror(-r));
	}
	stored_fini(&s);
	return r == 0;
}

/* ---- the start ---- */

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

/* An agent that was killed may have left it in the page cache alone. What is old is on the disk:
 * the kernel writes it within a minute. */
static void sync_young(struct config *c)
{
	int64_t now_ms = c->env->sys->wall_ms();
	struct store_file file;

	if (store_describe_file(c->current.store, c->current.version.generation, &file) ||
		now_ms - file.at_ms < YOUNG_MS)
		syncing_ask(c, SYNCING_STATE | SYNCING_LEDGER);
}

void current_started(struct config *c)
{
	name_pinned_bytes(c);
	c->status.published_wall_ms = version_shown_ms(&c->current.version);
	restore_confirmation(c);
	log_info("started from the last known good", "config", c->settings->name, "generation",
		LOG_U64(c->current.version.generation), "version",
		VERSION_TEXT(&c->current.version), "file", settings_place(c->settings));
	sync_young(c);
	current_start_notify(c);
}

/* The newest that readers were shown in this boot, with a snapshot or without; 0 = none is known.
 */
static uint64_t find_shown_generation(const struct config *c)
{
	const struct image *image = c->current.image;
	uint64_t paged = image && image_in_memory(image) ? image_generation(image) : 0;
	uint64_t marked =
		shown_read(c->env->sys, c->env->runtime_dir, c->settings->name, c->env->sweep);

	return paged > marked ? paged : marked;
}

/* What lies there was published after the versions were left. The directory of a set is not looked
 * at itself: this start may have made it. */
static bool is_place_newer(const struct config *c)
{
	const char *place = settings_place(c->settings);
	char shown[PATH_MAX];

	snprintf(shown, sizeof(shown), "%s%s", place ? place : "",
		c->settings->dir ? "/" FILE_SET_LINK : "");
	return place && left_is_older(c->env->sys, c->current.store, shown);
}

/* An older version would take the place of a newer one: the servers are asked before. */
static void look_at_left(struct config *c, bool damaged)
{
	uint64_t shown = find_shown_generation(c);
	/* the state directory comes from a backup, or was lost and made again */
	bool restored = shown >= store_next_generation(c->current.store);

	damaged = damaged && shown > c->current.saved_generation;
	store_go_on_from(c->current.store, shown);
	c->current.left = c->current.saved_generation && !c->decisions.ledger->pin.by &&
			  (restored || damaged || is_place_newer(c));
	if (c->current.left)
		log_warn(restored  ? "the state directory is older than what readers were shown: "
				     "the server is asked before an older version is shown"
			 : damaged ? "the state file of what readers were shown is damaged: the "
				     "server is asked before an older version is shown"
				   : "the config was gone meanwhile: the server is asked before an "
				     "older version is shown",
			"config", c->settings->name, "generation",
			LOG_U64(c->current.saved_generation), "file", settings_place(c->settings));
	else
		left_clear(c->env->sys, c->current.store);
}

void current_start(struct config *c)
{
	char why[FILE_WHY] = "";
	bool damaged;

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
	c->current.started = find_last_good(c, &damaged);
	if (!c->current.started)
		return; /* tried again at the next run */
	look_at_left(c, damaged);
	store_prune(c->current.store, false,
		(uint64_t[]){c->decisions.ledger->proven, c->current.saved_generation}, 2, 0);
	c->step.starts =
		c->env->starting || !validation_is_large_file(c, c->current.saved_generation);
	config_settle(c);
	c->step.starts = false;
	decisions_begin(c);
	if (c->step.decision.row == ROW_NONE) /* else when it is shown */
		current_start_notify(c);
}
