/*
 * What the servers have: known or not, the current version or another one, whose bytes are kept
 * until it is published or something newer comes.
 *
 * Surprising: pulls go on while a step publishes it, so the version that a request is conditional
 * on may be the step's. It is the same one whatever the step's end: published, it is current; if
 * not, it comes back here.
 */
#include "config/core.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A kept version that was never published: requests are conditional on one with a generation. */
#define NOT_STORED UINT64_MAX
/* A busy host is slow once or twice; a program that hangs with these bytes does so each time. */
#define TIMEOUTS_IN_A_ROW 3

static void drop_candidate(struct config *c)
{
	candidate_free(c->latest.candidate);
	c->latest.candidate = NULL;
	free(c->latest.rollout_why);
	c->latest.rollout_why = NULL;
	c->latest.rollout = ROLLOUT_NONE;
	c->latest.force = FORCE_NONE;
	c->latest.said = REJECTION_REASONS;
}

static void set_state(struct config *c, enum latest_state state)
{
	drop_candidate(c);
	c->latest.state = state;
}

/* Takes the candidate, of which version and bytes stay. */
static void keep_candidate(struct config *c, struct candidate *candidate)
{
	candidate_drop_outputs(candidate);
	c->latest.candidate = candidate;
	c->latest.state = LATEST_IS_KEPT;
}

void latest_forget(struct config *c)
{
	set_state(c, LATEST_NOT_KNOWN);
}

/* ---- what requests are conditional on ---- */

static struct candidate *find_candidate(const struct config *c)
{
	if (c->latest.state == LATEST_IS_KEPT)
		return c->latest.candidate;
	return c->latest.state == LATEST_IN_STEP ? c->step.candidate : NULL;
}

const struct version *latest_version(const struct config *c)
{
	const struct candidate *candidate = find_candidate(c);

	if (candidate)
		return &candidate->version;
	return c->current.version.generation ? &c->current.version : NULL;
}

bool latest_is_asked(const struct config *c)
{
	const struct version *asked = pull_held(c->run.pull), *latest = latest_version(c);

	return !asked || (latest && version_same(asked, latest));
}

static bool is_stored(const struct candidate *candidate)
{
	return candidate->version.generation && candidate->version.generation != NOT_STORED &&
	       candidate->body.len == 0;
}

uint64_t latest_generation(const struct config *c)
{
	const struct candidate *candidate = find_candidate(c);

	return candidate && is_stored(candidate) ? candidate->version.generation : 0;
}

/* ---- the end of a pull ---- */

void latest_confirm(struct config *c, bool forced)
{
	if (c->latest.state == LATEST_NOT_KNOWN && c->current.version.generation)
		c->latest.state = LATEST_IS_CURRENT;
	if (!forced || c->latest.state != LATEST_IS_KEPT)
		return;
	c->latest.force = FORCE_ASKED;
	reason_of_pull(c, &c->latest.candidate->version);
}

/* The same bytes under new names: the next request asks by these. */
static void rename_current(struct config *c, struct candidate *candidate)
{
	struct version *current = &c->current.version;

	candidate->version.generation = current->generation;
	candidate->version.product_len = current->product_len;
	candidate->version.published_ms = current->published_ms;
	version_set_cause(&candidate->version, current->cause, current->by);
	memcpy(candidate->version.settings, current->settings, sizeof(current->settings));
	version_fini(current);
	*current = candidate->version;
	candidate->version = (struct version){.generation = 0};
	candidate_free(candidate);
	set_state(c, LATEST_IS_CURRENT);
}

/* -EPROTO with a sentence when a part is not what the digests say that came with it: the same bytes
 * may come again with the right ones. */
static int check_digests(const struct candidate *candidate, char why[FILE_WHY])
{
	for (size_t i = 0; i < candidate->version.part_count; i++) {
		if (!candidate->mismatches[i])
			continue;
		snprintf(why, FILE_WHY, "%s is not what its server says: %s",
			LOG_URL(candidate->version.parts[i].url), candidate->mismatches[i]);
		return -EPROTO;
	}
	return 0;
}

struct candidate *latest_hold_bytes(const struct config *c)
{
	struct candidate *candidate = find_candidate(c);

	return candidate && !is_stored(candidate) ? candidate_hold(candidate) : NULL;
}

int latest_take(struct config *c, struct candidate *candidate, int error, bool of_current,
	bool *ret_is_new, char why[FILE_WHY])
{
	int r;

	if (error) {
		candidate_free(candidate);
		if (of_current && (error == -ENOENT || error == -EBADMSG))
			current_forget(c);
		else if (error == -ENOENT || error == -EBADMSG)
			latest_forget(c);
		return error;
	}
	*ret_is_new = !c->current.version.generation ||
		      !version_same(&c->current.version, &candidate->version);
	if (!*ret_is_new) {
		rename_current(c, candidate);
		return 0;
	}
	r = check_digests(candidate, why);
	if (r) {
		candidate_free(candidate);
		return r;
	}
	candidate->version.generation = NOT_STORED;
	reason_of_pull(c, &candidate->version);
	set_state(c, LATEST_IS_KEPT);
	c->latest.candidate = candidate;
	c->latest.force = c->run.forced ? FORCE_ASKED : FORCE_NONE;
	c->latest.rollout = c->run.rollout ? ROLLOUT_OUT : ROLLOUT_NONE; /* until it is asked */
	return 0;
}

/* ---- the rollout's word ---- */

void latest_set_rollout(struct config *c, enum situation_rollout word, const char *why)
{
	free(c->latest.rollout_why);
	c->latest.rollout_why = strdup(why); /* NULL: a status without a reason */
	c->latest.rollout = word;
}

/* ---- a step with it ---- */

bool latest_timed_out(struct config *c, bool timed_out)
{
	struct latest *l = &c->latest;
	uint32_t digest = version_digest_begin(&c->step.candidate->version);

	if (!timed_out || digest != l->timeouts_digest)
		l->timeouts = 0;
	l->timeouts_digest = digest;
	l->timeouts += timed_out && l->timeouts < TIMEOUTS_IN_A_ROW;
	return l->timeouts == TIMEOUTS_IN_A_ROW;
}

/* The bytes of one that was current before. */
static int load_stored(struct config *c, struct candidate *candidate, char why[FILE_WHY])
{
	struct version kept = candidate->version;
	unsigned damaged;
	int r;

	candidate->version = (struct version){.generation = 0};
	r = candidate_load(candidate, c->current.store, kept.generation, &damaged, why);
	if (r == 0)
		version_set_cause(&candidate->version, kept.cause, kept.by);
	version_fini(&kept);
	if (r)
		return r;
	candidate_drop_outputs(candidate);
	free(candidate->version.origin);
	candidate->version.origin = NULL;
	candidate->version.product_len = 0;
	return 0;
}

int latest_lend(struct config *c, struct candidate **ret_candidate, char why[FILE_WHY])
{
	struct candidate *candidate = c->latest.candidate;
	int r = is_stored(candidate) ? load_stored(c, candidate, why) : 0;

	if (r) {
		latest_forget(c);
		return r;
	}
	c->latest.candidate = NULL;
	c->latest.state = LATEST_IN_STEP;
	*ret_candidate = candidate;
	return 0;
}

void latest_return(struct config *c, struct candidate *candidate)
{
	if (!candidate || c->latest.state != LATEST_IN_STEP) {
		candidate_free(candidate);
		return;
	}
	candidate->version.generation = NOT_STORED;
	keep_candidate(c, candidate);
}

/* Another version has become current: the servers have the replaced one still. */
static void keep_replaced_version(struct config *c, struct version *replaced)
{
	struct candidate *candidate = candidate_new();

	if (!candidate) {
		latest_forget(c);
		return;
	}
	candidate->version = *replaced;
	*replaced = (struct version){.generation = 0};
	version_set_cause(&candidate->version, CAUSE_PULL, NULL);
	c->latest.candidate = candidate;
	c->latest.state = LATEST_IS_KEPT;
	c->latest.rollout = c->run.rollout ? ROLLOUT_OUT : ROLLOUT_NONE;
}

void latest_current_replaced(struct config *c, struct version *replaced)
{
	const struct version *asked = pull_held(c->run.pull);
	bool same = replaced->generation && version_same(replaced, &c->current.version);
	/* a pull that is under way may be conditional on the replaced one: its 304 is about that */
	bool is_asked = c->latest.state == LATEST_NOT_KNOWN && c->run.state == RUN_PULLING &&
			asked && version_same(asked, replaced);

	if (c->latest.state == LATEST_IN_STEP ||
		(c->latest.state == LATEST_IS_KEPT &&
			version_same(&c->latest.candidate->version, &c->current.version)))
		set_state(c, LATEST_IS_CURRENT);
	else if ((c->latest.state == LATEST_IS_CURRENT || is_asked) && replaced->generation &&
		 !same)
		keep_replaced_version(c, replaced);
	if (is_asked) /* the servers have not said that they have it */
		c->resting |= 1u << ROW_LATEST_IS_PUBLISHED;
}
