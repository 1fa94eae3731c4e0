/*
 * Whether this host takes a new version: the config's rollout document is pulled before a version
 * is validated, and again at each run while one is held.
 *
 * Surprising: the document is read after the version, never before: if both are written, the
 * rollout first, no host takes the version without having read the rollout.
 */
#include "config/core.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "verify/rollout.h"

static const char failed[] = "the rollout cannot be read: keeping the current version";

/* The failure names the document, which is not the config's. What follows a '?' may be secret. */
static void fail_gate(struct config *c, enum supervisor_outcome outcome, const char *why)
{
	const char *path = c->settings->rollout->path;
	int len = (int)strcspn(path, "?");
	char text[FILE_WHY + 320];

	snprintf(text, sizeof(text), "rollout document %.*s: %s", len < 256 ? len : 256, path, why);
	c->status.failed_here = false;
	run_fail(c, outcome, failed, text);
}

/* The document was not pulled: its server's failure is the run's. */
static void fail_pull_of_rollout(struct config *c, enum supervisor_outcome outcome, const char *why)
{
	c->run.cause = pull_cause(c->run.rollout);
	c->run.failed_by_rollout = true;
	fail_gate(c, outcome, why);
}

static int decide_takes(
	struct config *c, const struct pull_part *part, bool *ret_takes, char why[FILE_WHY])
{
	const struct rollout_host host = {
		c->env->host, c->env->labels, c->env->label_count, c->env->sys->wall_ms()};
	const struct version *latest = latest_version(c);
	const char *version = VERSION_TEXT(latest);
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
			version ? version : "", latest ? latest->sha256 : "", ret_takes, why);
	else
		snprintf(why, FILE_WHY, "%u:%u: %s", error.line, error.column, error.message);
	document_free(d);
	return r;
}

static bool begin_rollout_pull(void *arg)
{
	struct config *c = arg;

	pull_hold(c->run.rollout, NULL, false);
	return true;
}

static void rollout_pull_ended(void *arg, enum pull_outcome outcome, const char *why)
{
	struct config *c = arg;
	const struct pull_part *part = pull_part(c->run.rollout, 0);
	char sentence[FILE_WHY];
	bool takes = true; /* no rollout, no limits */
	int r = 0;

	loop_timer_cancel(c->env->loop, &c->run.limit);
	if (outcome != PULL_NEW && outcome != PULL_SAME) {
		fail_pull_of_rollout(
			c, outcome == PULL_TIMEOUT ? SUPERVISOR_TIMEOUT : SUPERVISOR_FAILED, why);
		return;
	}
	if (part->state == PULL_PULLED)
		r = decide_takes(c, part, &takes, sentence);
	pull_release(c->run.rollout);
	if (r) {
		fail_gate(c, SUPERVISOR_FAILED, sentence);
		return;
	}
	if (takes && !c->run.is_new && c->latest.rollout == ROLLOUT_OUT)
		log_info("the rollout has come to this host", "config", c->settings->name);
	latest_set_rollout(c, takes ? ROLLOUT_IN : ROLLOUT_OUT, takes ? "" : sentence);
	c->run.state = RUN_SETTLING;
	config_settle(c);
}

static void rollout_pull_not_started(void *arg, const char *why)
{
	struct config *c = arg;

	loop_timer_cancel(c->env->loop, &c->run.limit); /* it is due at the same moment */
	fail_pull_of_rollout(c, SUPERVISOR_REJECTED, why);
}

bool rollout_gate_ask(struct config *c)
{
	struct situation s;

	if (!c->run.rollout || c->run.forced || c->latest.state != LATEST_IS_KEPT)
		return false;
	settle_read_facts(c, &s);
	s.rollout = ROLLOUT_OUT;
	if (decide_gate(&s) != GATE_ROLLOUT) /* it would not help, or does not matter */
		return false;
	run_start_limit(c);
	pull_submit(c->run.rollout, c->env->sys->now_ms() + c->settings->timeout_ms);
	return true;
}

void rollout_gate_give_up(struct config *c, const char *why)
{
	pull_withdraw(c->run.rollout);
	pull_give_up(c->run.rollout);
	fail_pull_of_rollout(c, SUPERVISOR_TIMEOUT, why);
}

int rollout_gate_open(struct config *c)
{
	static const struct pull_calls calls = {
		begin_rollout_pull, rollout_pull_ended, rollout_pull_not_started};

	if (c->settings->rollout)
		c->run.rollout =
			pull_new(&c->env->pull, c->settings, c->settings->rollout, &calls, c);
	return c->settings->rollout && !c->run.rollout ? -ENOMEM : 0;
}

void rollout_gate_close(struct config *c)
{
	pull_free(c->run.rollout);
}
