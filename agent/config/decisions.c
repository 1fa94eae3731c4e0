/*
 * What was decided about a config's versions: the ledger (verdicts, pin, suspension, overrides).
 *
 * Surprising: what a version decides is in its state file first. That file is the commit; the
 * ledger is brought up from it when the version is visible, and in the same way at a start.
 */
#include "config/core.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATIENCE_MS 60000u /* between two readings of the wall clock */

/* ---- the ledger ---- */

void decisions_await_expiry(struct config *c)
{
	int64_t next_ms = ledger_next_expiry(c->decisions.ledger), left_ms;

	if (next_ms == LEDGER_FOREVER || c->mode == MODE_RETIRING) {
		loop_timer_cancel(c->env->loop, &c->decisions.expiry);
		return;
	}
	left_ms = next_ms - c->env->sys->wall_ms();
	if (left_ms < 0)
		left_ms = 0;
	if (left_ms > PATIENCE_MS)
		left_ms = PATIENCE_MS;
	loop_timer_set(c->env->loop, &c->decisions.expiry,
		loop_now_ms(c->env->loop) + (uint64_t)left_ms + 1);
}

static void end_expired(struct config *c, bool pin, bool suspension, bool overrides)
{
	if (pin) {
		log_info("the pin has expired", "config", c->settings->name);
		reason_of_released(c, NULL);
		config_refresh(c, false);
	}
	if (suspension) {
		log_info("the suspension has expired", "config", c->settings->name);
		events_note(c, EVENT_DECIDED, NULL, "the suspension has expired");
		run_suspension_ended(c);
	}
	if (overrides) {
		c->decisions.overrides_why = "an override has expired";
		c->decisions.overrides_bad = false;
		log_info("an override has expired", "config", c->settings->name);
		decisions_forgive_checks(c);
	}
}

void decisions_expire(struct config *c)
{
	bool overrides, pinned, suspended;

	if (!c->decisions.ledger)
		return;
	pinned = c->decisions.ledger->pin.by;
	suspended = config_suspended(c);
	if (ledger_expire(c->decisions.ledger, c->env->sys->wall_ms(), &overrides)) {
		end_expired(c, pinned && !c->decisions.ledger->pin.by,
			suspended && !config_suspended(c), overrides);
		decisions_save(c);
	}
	decisions_await_expiry(c);
}

static void expiry_passed(void *arg)
{
	decisions_expire(arg);
	config_settle(arg);
}

struct ledger *decisions_copy_overrides(const struct ledger *l)
{
	struct ledger *copy = calloc(1, sizeof(*copy));

	if (copy && ledger_copy_overrides(copy, l)) {
		ledger_free(copy);
		return NULL;
	}
	return copy;
}

/* The current version was composed with others than those of the ledger. */
bool decisions_overrides_differ(const struct config *c)
{
	const struct ledger *l = c->decisions.ledger;

	return l && !ledger_same_overrides(c->current.overrides, l);
}

/* ---- verdicts ---- */

/* By a clock that was ahead a signature had expired that is good. */
static bool forgive_wrong_clock(struct config *c)
{
	if (!c->decisions.ledger ||
		!ledger_forgive_later(c->decisions.ledger, rejection_name(REJECTED_BY_SIGNATURE),
			c->env->sys->wall_ms()))
		return false;
	decisions_save(c);
	return true;
}

bool decisions_read_rules(struct config *c)
{
	bool forgiven = forgive_wrong_clock(c);
	bool known = c->decisions.rules_known;
	char why[FILE_WHY], before[VERIFY_ID];

	snprintf(before, sizeof(before), "%s", verify_id(c->decisions.checks));
	c->decisions.rules_known = validation_prepare(c, why) == 0;
	return forgiven || c->decisions.rules_known != known ||
	       strcmp(before, verify_id(c->decisions.checks)) != 0;
}

const struct ledger_verdict *decisions_find_verdict(const struct config *c, const char *sha256)
{
	if (!c->decisions.ledger)
		return NULL;
	return ledger_find_verdict(c->decisions.ledger, sha256,
		c->decisions.rules_known ? verify_id(c->decisions.checks) : "-");
}

enum situation_verdict decisions_verdict(const struct config *c, const char *sha256)
{
	const struct ledger_verdict *v = decisions_find_verdict(c, sha256);

	if (!v)
		return VERDICT_FREE;
	switch (rejection_parse(v->check)) {
	case REJECTED_BY_PROBE:
		return VERDICT_PROBE;
	case REJECTED_BY_OPERATOR:
		return VERDICT_OPERATOR;
	default:
		return VERDICT_REJECTED;
	}
}

void decisions_reject(
	struct config *c, const char *sha256, const char *check, const char *rules, const char *why)
{
	events_note_verdict(c, check, why);
	if (ledger_reject(c->decisions.ledger, sha256, check, rules, c->env->sys->wall_ms(), why) ==
		0)
		decisions_save(c);
	else
		log_err("out of memory: a verdict is forgotten", "config", c->settings->name,
			"check", check);
}

bool decisions_forgive_checks(struct config *c)
{
	struct ledger *l = c->decisions.ledger;
	char sha256[DIGEST_HEX];
	bool some = false;

	for (size_t i = l->verdict_count; i-- > 0;) {
		const struct ledger_verdict *v = &l->verdicts[i];

		if (rejection_is_rollback(rejection_parse(v->check)))
			continue;
		snprintf(sha256, sizeof(sha256), "%s", v->sha256);
		some |= ledger_forgive(l, sha256);
	}
	if (some)
		config_refresh(c, false);
	return some;
}

/* ---- what a state file decides ---- */

/* Copies the verdicts that stay valid after the step's version: those about it, unless it was
 * accepted, and about the version that it replaces; all others too while the ledger has them in
 * memory only. */
static int copy_verdicts(struct config *c, bool accepted, struct ledger *ret_decided)
{
	const char *own = c->step.candidate->version.sha256, *old = c->current.version.sha256;
	const struct ledger *l = c->decisions.ledger;
	int r = 0;

	for (size_t i = 0; r == 0 && i < l->verdict_count; i++) {
		const struct ledger_verdict *v = &l->verdicts[i];
		bool about_own = strcmp(v->sha256, own) == 0;

		if (about_own ? !accepted : c->decisions.unsaved || strcmp(v->sha256, old) == 0)
			r = ledger_reject(
				ret_decided, v->sha256, v->check, v->checks, v->at_ms, v->why);
	}
	return r;
}

/* An operator's rollback rejects the bytes that it replaces. */
static int add_operators_verdict(struct config *c, struct ledger *ret_decided)
{
	const struct request *q = c->decisions.request;
	const char *old = c->current.version.sha256;

	if (c->step.decision.row != ROW_OPERATOR_ROLLS_BACK ||
		strcmp(old, c->step.candidate->version.sha256) == 0)
		return 0;
	return ledger_reject(ret_decided, old, rejection_name(REJECTED_BY_OPERATOR), "",
		c->env->sys->wall_ms(), q->verdict);
}

static int raise_revs(struct config *c, struct ledger *ret_decided)
{
	if (!c->settings->verify.public_keys)
		return 0;
	if (ledger_reserve_revs(c->decisions.ledger) || ledger_reserve_revs(ret_decided))
		return -ENOMEM;
	ledger_raise_revs(ret_decided, ledger_revs(c->decisions.ledger));
	ledger_raise_revs(ret_decided, c->step.candidate->revs);
	return 0;
}

/* A pin moves with an operator's version. */
static int move_pin(struct config *c, struct ledger *ret_decided)
{
	const struct ledger_pin *pin = &c->decisions.ledger->pin;

	if (!pin->by || c->step.decision.origin != ORIGIN_OPERATOR)
		return 0;
	return ledger_pin(ret_decided, pin->until_ms, pin->by, pin->reason,
		c->step.candidate->version.sha256);
}

bool decisions_prove(const struct config *c, enum decide_row row)
{
	return row == ROW_OPERATOR_ROLLS_BACK || row == ROW_HARMFUL_IS_ROLLED_BACK ||
	       (row == ROW_OTHER_OVERRIDES && c->decisions.overrides_bad);
}

int decisions_write(struct config *c)
{
	enum decide_action action = c->step.decision.action;
	struct version *v = &c->step.candidate->version;
	struct ledger *decided = c->step.overrides ? decisions_copy_overrides(c->step.overrides)
						   : calloc(1, sizeof(*decided));
	struct buffer text;
	int r = decided ? copy_verdicts(c, action != ACTION_RECOMPOSE, decided) : -ENOMEM;

	free(v->decisions);
	v->decisions = NULL;
	if (r == 0)
		r = add_operators_verdict(c, decided);
	if (r == 0)
		r = raise_revs(c, decided);
	if (r == 0)
		r = move_pin(c, decided);
	if (r == 0 && notify_wanted(c->settings) && decisions_prove(c, c->step.decision.row))
		decided->proven = v->generation;
	if (r == 0 && (decided->override_count || decided->verdict_count || decided->revs ||
			      decided->pin.by || decided->proven)) {
		buffer_init(&text, 1u << 20);
		r = ledger_write(decided, &text);
		if (r == 0 && !(v->decisions = strdup(text.data)))
			r = -ENOMEM;
		buffer_fini(&text);
	}
	ledger_free(c->step.decided);
	c->step.decided = decided;
	return r;
}

int decisions_adopt(struct config *c, const struct version *v)
{
	struct ledger *decided = NULL;
	int r = 0;

	if (v->decisions && v->decisions[0])
		r = ledger_read(v->decisions, strlen(v->decisions), &decided);
	else if (v->decisions)
		r = (decided = calloc(1, sizeof(*decided))) ? 0 : -ENOMEM;
	if (decided)
		r = ledger_adopt_decisions(
			c->decisions.ledger, v->generation, decided, v->sha256, true);
	ledger_free(decided);
	if (r < 0)
		log_err("the decisions in the state file are not known", "config",
			c->settings->name, "why", strerror(-r));
	return r;
}

void decisions_record(struct config *c, uint64_t generation, const char *sha256)
{
	/* they may have ended while the version was checked: only an operator's change those of the
	 * ledger */
	bool with_overrides = c->step.decision.origin == ORIGIN_OPERATOR ||
			      c->step.decision.row == ROW_SAVED_IS_SHOWN;

	if (!c->step.decided)
		return;
	ledger_adopt_decisions(
		c->decisions.ledger, generation, c->step.decided, sha256, with_overrides);
	ledger_free(c->step.decided);
	c->step.decided = NULL;
}

void decisions_return_pin(struct config *c, const char *sha256)
{
	struct ledger_pin *pin = &c->decisions.ledger->pin;

	if (!pin->by || strcmp(pin->sha256, sha256) != 0 || !c->current.version.generation ||
		strcmp(sha256, c->current.version.sha256) == 0)
		return;
	log_warn("pinned: the version that was to be published was not: the current one is kept",
		"config", c->settings->name, "generation", LOG_U64(c->current.version.generation));
	if (ledger_pin(c->decisions.ledger, pin->until_ms, pin->by, pin->reason,
		    c->current.version.sha256) == 0)
		decisions_save(c);
}

void decisions_drop_pin(struct config *c, const char *what)
{
	log_err(what, "config", c->settings->name, "by", c->decisions.ledger->pin.by);
	ledger_unpin(c->decisions.ledger);
	decisions_save(c);
}

/* ---- life ---- */

void decisions_init(struct config *c)
{
	loop_timer_init(&c->decisions.expiry, expiry_passed, c);
}

void decisions_begin(struct config *c)
{
	decisions_await_expiry(c);
}

void decisions_fini(struct config *c)
{
	request_drop(c);
	decisions_forget_unsaved(c);
	free(c->decisions.error);
	ledger_free(c->decisions.ledger);
	verify_free(c->decisions.checks);
}
