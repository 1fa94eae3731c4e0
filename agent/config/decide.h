/*
 * What a config does next: one pure function over facts.
 *
 * The core of a config is a reconciler. Four owners keep facts (the run, the latest version of the
 * servers, the decisions, the current version); after each event the facts are brought up to date,
 * and decide() names the step that begins: the first row of its table that holds and does not rest.
 * What led to the facts does not matter, so a step that failed, a crash or a lost event cannot
 * leave anything undone: the same facts name the same step again.
 *
 * Threads: any; libc only, no state. Source: the table and its model in tests/model/core.
 */
#ifndef PULLET_DECIDE_H
#define PULLET_DECIDE_H

#include <stdbool.h>
#include <stddef.h>

/* ---- facts ---- */

enum situation_mode { MODE_ACTIVE, MODE_RETIRING };

/* The operator's open request. */
enum situation_request { REQUEST_NONE, REQUEST_ROLL_BACK, REQUEST_OVERRIDES };

/* A pin names the bytes that are to stay current. */
enum situation_pin { PIN_NONE, PIN_SET };

/* A generation of the state directory that was committed, but is not visible: a pull's or an
 * operator's; held by a pin; or late, as the servers have another version by now. */
enum situation_saved { SAVED_NONE, SAVED_WANTED, SAVED_HELD, SAVED_LATE };

/* What readers see. Harmful: it failed its probe. */
enum situation_current { CURRENT_NONE, CURRENT_GOOD, CURRENT_HARMFUL };

/* A version that a probe's rollback would go to. */
enum situation_older { OLDER_NONE, OLDER_THERE };

/* What the servers had when they were asked last, beside the current version. */
enum situation_latest { LATEST_UNKNOWN, LATEST_SAME, LATEST_NEW };

/* About the latest version, by the rules of now. */
enum situation_verdict { VERDICT_FREE, VERDICT_REJECTED, VERDICT_PROBE, VERDICT_OPERATOR };

/* The latest was brought by a forced pull, and was not published since. */
enum situation_force { FORCE_NONE, FORCE_ASKED };

enum situation_rollout { ROLLOUT_NONE, ROLLOUT_IN, ROLLOUT_OUT };

/* The overrides that the current version is composed with, and those of the ledger. */
enum situation_overrides { OVERRIDES_SAME, OVERRIDES_OTHER };

/* The settings that the current version was composed with, and today's. */
enum situation_settings { SETTINGS_SAME, SETTINGS_OTHER };

/* The published files. */
enum situation_place { PLACE_AS_PUBLISHED, PLACE_CHANGED };
enum situation_drift { DRIFT_HEAL, DRIFT_REPORT, DRIFT_LEAVE };

struct situation {
	enum situation_mode mode;
	enum situation_request request;
	enum situation_pin pin;
	enum situation_saved saved;
	enum situation_current current;
	enum situation_older older;
	enum situation_latest latest;
	enum situation_verdict verdict;
	enum situation_force force;
	enum situation_rollout rollout;
	enum situation_overrides overrides;
	enum situation_settings settings;
	enum situation_place place;
	enum situation_drift drift;
	unsigned resting; /* rows, as bits: they failed without a verdict, and wait for a tick */
};

/* Names of the facts and of their values, in the order of the struct. */
struct situation_fact {
	const char *name;
	size_t offset; /* of an enum in struct situation */
	unsigned count;
	const char *const *values;
};
#define SITUATION_FACTS 14
extern const struct situation_fact situation_facts[SITUATION_FACTS];
unsigned situation_value(const struct situation *s, const struct situation_fact *fact);
void situation_set(struct situation *s, const struct situation_fact *fact, unsigned value);

/* ---- the decision ---- */

enum decide_action {
	ACTION_NONE,
	ACTION_ROLL_BACK, /* an older generation becomes current again, under a new number */
	ACTION_RECOMPOSE, /* the current bytes, with other overrides or settings */
	ACTION_SHOW,      /* what was committed becomes visible */
	ACTION_PUBLISH,   /* the latest version becomes current */
	ACTION_HEAL,      /* the published files are put back */
	ACTIONS
};

/* On whose account a step is. */
enum decide_origin {
	ORIGIN_PULL,
	ORIGIN_OPERATOR,
	ORIGIN_PROBE,
	ORIGIN_OVERRIDES, /* some of them ended */
	ORIGIN_START,     /* what an earlier life, or other settings, left to do */
	ORIGIN_HEAL,
	ORIGINS
};

enum decide_row {
	ROW_NONE,
	ROW_OPERATOR_ROLLS_BACK,
	ROW_OPERATOR_OVERRIDES,
	ROW_SAVED_IS_SHOWN,
	ROW_HARMFUL_IS_ROLLED_BACK,
	ROW_LATEST_IS_PUBLISHED,
	ROW_OTHER_OVERRIDES,
	ROW_OTHER_SETTINGS,
	ROW_CHANGED_BY_OTHERS,
	ROWS
};

struct decision {
	enum decide_row row; /* ROW_NONE: no row holds */
	enum decide_action action;
	enum decide_origin origin;
};

struct decision decide(const struct situation *s);

/* Why a version that a pull brought is not published: the first gate that is closed. */
enum decide_gate { GATE_OPEN, GATE_VERDICT, GATE_PIN, GATE_ROLLOUT };
enum decide_gate decide_gate(const struct situation *s);
/* Asked again just before the commit: a step that is not allowed any more is dropped. Never "is it
 * still the first choice?": with checks slower than the server's changes nothing would be
 * published. */
bool decide_may_commit(const struct situation *s, enum decide_origin origin);

/* What the servers have and is not current: held by a decision is no failure. */
enum decide_outcome { OUTCOME_CURRENT, OUTCOME_HELD, OUTCOME_FAILING };
enum decide_outcome decide_outcome(const struct situation *s);

/* Sentences for people, and names for programs. */
const char *decide_row_text(enum decide_row row);
const char *decide_row_name(enum decide_row row);
const char *decide_origin_name(enum decide_origin origin);
const char *decide_action_name(enum decide_action action);

#endif
