/*
 * Who takes a new version: the config's rollout document is asked before one is validated, and
 * again at each run while one waits.
 *
 * Surprising: the document is read after the version, never before: who writes both, the rollout
 * first, can be sure that no host takes the version without having read the rollout.
 */
#include "config/state.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "verify/rollout.h"

static const char failed[] = "the rollout cannot be read: the old version stays";

/* What it is about: the candidate, or what was rejected for it. */
static const struct version *version_of(const struct config *c)
{
	return c->candidate ? &c->candidate->version : &c->away->version;
}

static void give_up(struct config *c, enum supervisor_outcome outcome, const char *why)
{
	c->asking = false;
	version_drop(c);
	config_run_failed(c, outcome, failed, why);
}

/* The host is in. What waited is pulled again, whole. */
static void let_in(struct config *c)
{
	if (c->candidate) {
		version_admit(c);
		return;
	}
	log_info("the rollout has come to this host", "config", c->settings->name);
	version_clear_away(c);
	config_run_succeeded(c, CONFIG_UNCHANGED);
	trigger_hint(&c->trigger, c->env->sys->now_ms(), 0);
}

static void keep_out(struct config *c, const char *why)
{
	char *text;

	if (c->candidate) {
		version_hold_back(c, why);
		return;
	}
	text = strdup(why);
	if (text) {
		free(c->away->why);
		c->away->why = text;
	}
	version_end_away(c);
}

static int decide(
	struct config *c, const struct pull_part *part, bool *ret_takes, char why[FILE_WHY])
{
	const struct rollout_host host = {
		c->env->host, c->env->labels, c->env->label_count, c->env->sys->wall_ms()};
	const char *version = VERSION_TEXT(version_of(c));
	struct document *d = NULL;
	struct document_error error;
	bool json = strcmp(part->facts.type, "json") == 0;
	int r;

	if (part->mismatch) {
		snprintf(why, FILE_WHY, "it is not what its server says: %s", part->mismatch);
		return -EINVAL;
	}
	if (part->body.len > ROLLOUT_MAX_BYTES) {
		snprintf(why, FILE_WHY, "it has %zu bytes, and a rollout has at most %u",
			part->body.len, ROLLOUT_MAX_BYTES);
		return -EMSGSIZE;
	}
	r = document_parse(json ? DOCUMENT_JSON : DOCUMENT_YAML, part->body.data, part->body.len, 0,
		&d, &error);
	if (r == 0)
		r = rollout_decide(document_root(d), &host, c->settings->name,
			version ? version : "", ret_takes, why);
	else
		snprintf(why, FILE_WHY, "%u:%u: %s", error.line, error.column, error.message);
	document_free(d);
	return r;
}

static bool begins(void *arg)
{
	struct config *c = arg;

	pull_hold(c->rollout, NULL, false);
	return true;
}

static void ended(void *arg, enum pull_outcome outcome, const char *why)
{
	struct config *c = arg;
	const struct pull_part *part = pull_part(c->rollout, 0);
	char sentence[FILE_WHY];
	bool takes = true; /* no rollout, no limits */
	int r = 0;

	loop_timer_cancel(c->env->loop, &c->limit);
	if (outcome != PULL_NEW && outcome != PULL_SAME) {
		c->cause = pull_cause(c->rollout);
		give_up(c, outcome == PULL_TIMEOUT ? SUPERVISOR_TIMEOUT : SUPERVISOR_FAILED, why);
		return;
	}
	if (part->state == PULL_PULLED)
		r = decide(c, part, &takes, sentence);
	pull_release(c->rollout);
	if (r) {
		give_up(c, SUPERVISOR_FAILED, sentence);
		return;
	}
	c->asking = false;
	if (takes)
		let_in(c);
	else
		keep_out(c, sentence);
}

static void lost(void *arg, const char *why)
{
	struct config *c = arg;

	loop_timer_cancel(c->env->loop, &c->limit); /* it is due at the same moment */
	give_up(c, SUPERVISOR_REJECTED, why);
}

bool rollout_ask(struct config *c)
{
	/* a host that has nothing has nothing to stay with */
	if (!c->rollout || c->forced || c->published.generation == 0)
		return false;
	c->asking = true;
	config_start_limit(c);
	pull_submit(c->rollout, c->env->sys->now_ms() + c->settings->timeout_ms);
	return true;
}

void rollout_give_up(struct config *c, const char *why)
{
	pull_withdraw(c->rollout);
	pull_give_up(c->rollout);
	give_up(c, SUPERVISOR_TIMEOUT, why);
}

int rollout_open(struct config *c)
{
	static const struct pull_calls calls = {begins, ended, lost};

	if (c->settings->rollout)
		c->rollout =
			pull_new(&c->env->gather, c->settings, c->settings->rollout, &calls, c);
	return c->settings->rollout && !c->rollout ? -ENOMEM : 0;
}

void rollout_close(struct config *c)
{
	pull_free(c->rollout);
}
