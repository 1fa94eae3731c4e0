/*
 * The table that decides. Surprising: no row asks what happened, only what is.
 */
#include "config/decide.h"

#include <string.h>

/* ---- facts ---- */

static const char *const mode_values[] = {"active", "retiring"};
static const char *const request_values[] = {"none", "rollback", "overrides"};
static const char *const pin_values[] = {"none", "set"};
static const char *const saved_values[] = {"none", "wanted", "held", "late"};
static const char *const current_values[] = {"none", "good", "harmful"};
static const char *const older_values[] = {"none", "there"};
static const char *const latest_values[] = {"unknown", "same", "new"};
static const char *const verdict_values[] = {"free", "rejected", "probe", "operator"};
static const char *const force_values[] = {"none", "asked"};
static const char *const rollout_values[] = {"none", "in", "out"};
static const char *const same_values[] = {"same", "other"};
static const char *const place_values[] = {"as published", "changed"};
static const char *const drift_values[] = {"heal", "report", "leave"};

#define FACT(member, values)                                                                       \
	{                                                                                          \
#member, offsetof(struct situation, member), sizeof(values) / sizeof((values)[0]), \
			values                                                                     \
	}

const struct situation_fact situation_facts[SITUATION_FACTS] = {
	FACT(mode, mode_values),
	FACT(request, request_values),
	FACT(pin, pin_values),
	FACT(saved, saved_values),
	FACT(current, current_values),
	FACT(older, older_values),
	FACT(latest, latest_values),
	FACT(verdict, verdict_values),
	FACT(force, force_values),
	FACT(rollout, rollout_values),
	FACT(overrides, same_values),
	FACT(settings, same_values),
	FACT(place, place_values),
	FACT(drift, drift_values),
};

_Static_assert(sizeof(enum situation_mode) == sizeof(unsigned), "an enum is read as one");

unsigned situation_value(const struct situation *s, const struct situation_fact *fact)
{
	unsigned value;

	memcpy(&value, (const char *)s + fact->offset, sizeof(value));
	return value;
}

void situation_set(struct situation *s, const struct situation_fact *fact, unsigned value)
{
	memcpy((char *)s + fact->offset, &value, sizeof(value));
}

/* ---- gates ---- */

enum decide_gate decide_gate(const struct situation *s)
{
	if (s->verdict != VERDICT_FREE && s->force == FORCE_NONE)
		return GATE_VERDICT;
	if (s->pin == PIN_SET)
		return GATE_PIN;
	/* a host without a version takes any */
	if (s->rollout == ROLLOUT_OUT && s->force == FORCE_NONE && s->current != CURRENT_NONE)
		return GATE_ROLLOUT;
	return GATE_OPEN;
}

bool decide_may_commit(const struct situation *s, enum decide_origin origin)
{
	switch (origin) {
	case ORIGIN_PULL:
		return decide_gate(s) == GATE_OPEN;
	case ORIGIN_PROBE:
		return s->pin == PIN_NONE;
	default:
		return true;
	}
}

/* ---- rows ---- */

static bool operator_rolls_back(const struct situation *s)
{
	return s->request == REQUEST_ROLL_BACK;
}

static bool operator_overrides(const struct situation *s)
{
	return s->request == REQUEST_OVERRIDES;
}

static bool saved_is_shown(const struct situation *s)
{
	return s->saved == SAVED_WANTED;
}

static bool harmful_is_rolled_back(const struct situation *s)
{
	return s->current == CURRENT_HARMFUL && s->older == OLDER_THERE && s->pin == PIN_NONE;
}

static bool latest_is_published(const struct situation *s)
{
	return s->latest == LATEST_NEW && decide_gate(s) == GATE_OPEN;
}

static bool has_other_overrides(const struct situation *s)
{
	return s->current != CURRENT_NONE && s->overrides == OVERRIDES_OTHER;
}

static bool has_other_settings(const struct situation *s)
{
	return s->current != CURRENT_NONE && s->settings == SETTINGS_OTHER;
}

static bool is_to_be_healed(const struct situation *s)
{
	return s->current != CURRENT_NONE && s->place == PLACE_CHANGED && s->drift == DRIFT_HEAL;
}

static const struct {
	bool (*holds)(const struct situation *s);
	enum decide_action action;
	enum decide_origin origin;
	const char *name, *text;
} rows[ROWS] = {
	[ROW_NONE] = {NULL, ACTION_NONE, ORIGIN_PULL, "nothing", "nothing is to be done"},
	[ROW_OPERATOR_ROLLS_BACK] = {operator_rolls_back, ACTION_ROLL_BACK, ORIGIN_OPERATOR,
		"operator_rolls_back", "an operator's rollback is published"},
	[ROW_OPERATOR_OVERRIDES] = {operator_overrides, ACTION_RECOMPOSE, ORIGIN_OPERATOR,
		"operator_overrides", "an operator's overrides are published"},
	[ROW_SAVED_IS_SHOWN] = {saved_is_shown, ACTION_SHOW, ORIGIN_START, "saved_is_shown",
		"a version that is saved, but not visible, is shown"},
	[ROW_HARMFUL_IS_ROLLED_BACK] = {harmful_is_rolled_back, ACTION_ROLL_BACK, ORIGIN_PROBE,
		"harmful_is_rolled_back", "the version that failed its probe is rolled back"},
	[ROW_LATEST_IS_PUBLISHED] = {latest_is_published, ACTION_PUBLISH, ORIGIN_PULL,
		"latest_is_published", "the server's version is published"},
	[ROW_OTHER_OVERRIDES] = {has_other_overrides, ACTION_RECOMPOSE, ORIGIN_OVERRIDES,
		"other_overrides",
		"the current version is composed again, with the overrides of now"},
	[ROW_OTHER_SETTINGS] = {has_other_settings, ACTION_RECOMPOSE, ORIGIN_START,
		"other_settings",
		"the current version is composed again, with the settings of now"},
	[ROW_CHANGED_BY_OTHERS] = {is_to_be_healed, ACTION_HEAL, ORIGIN_HEAL, "changed_by_others",
		"what is published is restored"},
};

struct decision decide(const struct situation *s)
{
	for (unsigned row = ROW_NONE + 1; s->mode == MODE_ACTIVE && row < ROWS; row++)
		if (rows[row].holds(s) && !(s->resting & 1u << row))
			return (struct decision){
				(enum decide_row)row, rows[row].action, rows[row].origin};
	return (struct decision){ROW_NONE, ACTION_NONE, ORIGIN_PULL};
}

/* ---- for people ---- */

enum decide_outcome decide_outcome(const struct situation *s)
{
	if (s->latest != LATEST_NEW)
		return OUTCOME_CURRENT;
	if (s->verdict == VERDICT_REJECTED || s->verdict == VERDICT_PROBE)
		return OUTCOME_FAILING;
	if (s->pin == PIN_SET || s->verdict == VERDICT_OPERATOR || s->rollout == ROLLOUT_OUT)
		return OUTCOME_HELD;
	return OUTCOME_CURRENT;
}

const char *decide_row_text(enum decide_row row)
{
	return rows[row].text;
}

const char *decide_row_name(enum decide_row row)
{
	return rows[row].name;
}

const char *decide_origin_name(enum decide_origin origin)
{
	static const char *const names[ORIGINS] = {
		"pull", "operator", "probe", "overrides", "start", "heal"};

	return names[origin];
}

const char *decide_action_name(enum decide_action action)
{
	static const char *const names[ACTIONS] = {
		"none", "roll back", "recompose", "show", "publish", "heal"};

	return names[action];
}
