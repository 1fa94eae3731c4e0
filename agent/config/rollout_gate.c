/*
 * Whether this host takes a new version: the config's rollout document is pulled before a version
 * is validated, and again at each run while one is held.
 *
 * Surprising: the document is read after the version, never before: if both are written, the
 * rollout first, no host takes the version without having read the rollout.
 */
#include "config/state.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "verify/rollout.h"

static const char failed[] = "the rollout cannot be read: keeping the current version";

/* The candidate, or the version that is held by the rollout. */
static const struct version *version_in_question(const struct config *c)
{
	return c->candidate ? &c->candidate->version : &c->rejected->version;
}

static void fail_rollout(struct config *c, enum supervisor_outcome outcome, const char *why)
{
	c->asking = false;
	pipeline_drop_candidate(c);
	config_run_failed(c, outcome, failed, why);
}

/* A held version is pulled again, whole. */
static void admit_host(struct config *c)
{
	if (c->candidate) {
		validation_start(c, VERIFY_NEW);
		return;
	}
	log_info("the rollout has come to this host", "config", c->settings->name);
	pipeline_forget_rejected(c);
	config_run_succeeded(c, CONFIG_UNCHANGED);
	trigger_hint(&c->trigger, c->env->sys->now_ms(), 0);
}

static void keep_host_out(struct config *c, const char *why)
{
	char *text;

	if (c->candidate) {
		pipeline_hold(c, why);
		return;
	}
	text = strdup(why);
	if (text) {
		free(c->rejected->why);
		c->rejected->why = text;
	}
	pipeline_end_rejected(c);
}

static int decide_takes(
	struct config *c, const struct pull_part *part, bool *ret_takes, char why[FILE_WHY])
{
	const struct rollout_host host = {
		c->env->host, c->env->labels, c->env->label_count, c->env->sys->wall_ms()};
	const char *version = VERSION_TEXT(version_in_question(c));
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

static bool begin_rollout_pull(void *arg)
{
	struct config *c = arg;

	pull_hold(c->rollout, NULL, false);
	return true;
}

static void rollout_pull_ended(void *arg, enum pull_outcome outcome, const char *why)
{
	struct config *c = arg;
	const struct pull_part *part = pull_part(c->rollout, 0);
	char sentence[FILE_WHY];
	bool takes = true; /* no rollout, no limits */
	int r = 0;

	loop_timer_cancel(c->env->loop, &c->limit);
	if (outcome != PULL_NEW && outcome != PULL_SAME) {
		c->cause = pull_cause(c->rollout);
		fail_rollout(
			c, outcome == PULL_TIMEOUT ? SUPERVISOR_TIMEOUT : SUPERVISOR_FAILED, why);
		return;
	}
	if (part->state == PULL_PULLED)
		r = decide_takes(c, part, &takes, sentence);
	pull_release(c->rollout);
	if (r) {
		fail_rollout(c, SUPERVISOR_FAILED, sentence);
		return;
	}
	c->asking = false;
	if (takes)
		admit_host(c);
	else
		keep_host_out(c, sentence);
}

static void rollout_pull_not_started(void *arg, const char *why)
{
	struct config *c = arg;

	loop_timer_cancel(c->env->loop, &c->limit); /* it is due at the same moment */
	fail_rollout(c, SUPERVISOR_REJECTED, why);
}

bool rollout_gate_ask(struct config *c)
{
	/* a host without a version takes any */
	if (!c->rollout || c->forced || c->published.generation == 0)
		return false;
	c->asking = true;
	config_start_limit(c);
	pull_submit(c->rollout, c->env->sys->now_ms() + c->settings->timeout_ms);
	return true;
}

void rollout_gate_give_up(struct config *c, const char *why)
{
	pull_withdraw(c->rollout);
	pull_give_up(c->rollout);
	fail_rollout(c, SUPERVISOR_TIMEOUT, why);
}

int rollout_gate_open(struct config *c)
{
	static const struct pull_calls calls = {
		begin_rollout_pull, rollout_pull_ended, rollout_pull_not_started};

	if (c->settings->rollout)
		c->rollout = pull_new(&c->env->pull, c->settings, c->settings->rollout, &calls, c);
	return c->settings->rollout && !c->rollout ? -ENOMEM : 0;
}

void rollout_gate_close(struct config *c)
{
	pull_free(c->rollout);
}
