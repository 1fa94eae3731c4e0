/*
 * Bugs that the walks must find. Surprising: there is no copy of the table. A bug of the table
 * hides a fact from the real one; a row that is left out is one that always rests.
 */
#include "core.h"

static const struct seed *planted;

static void hide_pin(struct situation *s)
{
	s->pin = PIN_NONE;
}

static void hide_verdict(struct situation *s)
{
	s->verdict = VERDICT_FREE;
}

static void hide_rollout(struct situation *s)
{
	s->rollout = ROLLOUT_NONE;
}

static void hide_request(struct situation *s)
{
	s->request = REQUEST_NONE;
}

static void hide_overrides(struct situation *s)
{
	s->overrides = OVERRIDES_SAME;
}

static void hide_resting(struct situation *s)
{
	s->resting = 0;
}

static void release_saved(struct situation *s)
{
	if (s->saved == SAVED_HELD)
		s->saved = SAVED_WANTED;
}

static void release_late(struct situation *s)
{
	if (s->saved == SAVED_LATE)
		s->saved = SAVED_WANTED;
}

static void stop_operator(struct situation *s)
{
	if (s->pin == PIN_SET)
		s->resting |= 1u << ROW_OPERATOR_ROLLS_BACK;
}

static void invent_older(struct situation *s)
{
	s->older = OLDER_THERE;
}

static void heal_always(struct situation *s)
{
	s->drift = DRIFT_HEAL;
}

#define TABLE_BUG(text, profile, blind, row)                                                       \
	{                                                                                          \
		text, profile, BUG_OF_TABLE, blind, row, ROW_NONE                                  \
	}
#define BUG(text, profile, bug)                                                                    \
	{                                                                                          \
		text, profile, bug, NULL, ROW_NONE, ROW_NONE                                       \
	}
#define LEFT_OUT(name, profile, row)                                                               \
	{                                                                                          \
		"no row '" name "'", profile, BUG_OF_TABLE, NULL, ROW_NONE, row                    \
	}

const struct seed seeds[SEEDS] = {
	TABLE_BUG("the pin is not asked", "settings", hide_pin, ROW_LATEST_IS_PUBLISHED),
	TABLE_BUG("the verdict is not asked", "rules", hide_verdict, ROW_LATEST_IS_PUBLISHED),
	TABLE_BUG("the rollout is not asked", "rollout", hide_rollout, ROW_LATEST_IS_PUBLISHED),
	TABLE_BUG("a saved version is shown whatever the pin says", "revisions", release_saved,
		ROW_SAVED_IS_SHOWN),
	TABLE_BUG("a pin stops the operator", "revisions", stop_operator, ROW_NONE),
	TABLE_BUG("the probe beats the pin", "pinned", hide_pin, ROW_HARMFUL_IS_ROLLED_BACK),
	TABLE_BUG("the probe comes before the operator", "probe", hide_request,
		ROW_HARMFUL_IS_ROLLED_BACK),
	TABLE_BUG("rolls back to nothing", "probe", invent_older, ROW_HARMFUL_IS_ROLLED_BACK),
	TABLE_BUG("expired overrides stay", "overrides", hide_overrides, ROW_NONE),
	TABLE_BUG("heals what is to be reported", "report", heal_always, ROW_CHANGED_BY_OTHERS),
	TABLE_BUG("nothing rests", "settings", hide_resting, ROW_NONE),
	LEFT_OUT("operator rolls back", "revisions", ROW_OPERATOR_ROLLS_BACK),
	LEFT_OUT("operator overrides", "overrides", ROW_OPERATOR_OVERRIDES),
	LEFT_OUT("saved is shown", "revisions", ROW_SAVED_IS_SHOWN),
	LEFT_OUT("harmful is rolled back", "probe", ROW_HARMFUL_IS_ROLLED_BACK),
	LEFT_OUT("latest is published", "report", ROW_LATEST_IS_PUBLISHED),
	LEFT_OUT("other overrides", "overrides", ROW_OTHER_OVERRIDES),
	LEFT_OUT("other settings", "report", ROW_OTHER_SETTINGS),
	LEFT_OUT("changed by others", "heal", ROW_CHANGED_BY_OTHERS),
	BUG("the gate is not asked again", "settings", BUG_GATE_NOT_ASKED_AGAIN),
	BUG("held is a failure", "settings", BUG_HELD_IS_FAILURE),
	BUG("a verdict outlives its rules", "rules", BUG_VERDICT_OUTLIVES_RULES),
	BUG("no verdict is kept", "rules", BUG_NO_VERDICT_IS_KEPT),
	BUG("the probe keeps no verdict", "probe", BUG_PROBE_KEEPS_NO_VERDICT),
	BUG("what rests does so for ever", "settings", BUG_NOTHING_STOPS_RESTING),
	BUG("a request that fails is forgotten", "revisions", BUG_FAILED_REQUEST_IS_FORGOTTEN),
	BUG("a refused rollback stays saved", "revisions", BUG_REFUSED_STAYS_SAVED),
	BUG("a revision is kept only when it is visible", "revisions", BUG_REVISION_AFTER_SHOW),
	BUG("no application is notified again", "settings", BUG_NOBODY_IS_NOTIFIED),
	BUG("a forced version is forced for ever", "force", BUG_FORCED_FOR_EVER),
	BUG("a retirement does not wait for the disk", "settings", BUG_RETIREMENT_SKIPS_DISK),
	BUG("what was rolled back to is probed", "probe", BUG_ROLLED_BACK_IS_PROBED),
	BUG("another version rests with the one that failed", "replay", BUG_OTHER_VERSION_RESTS),
	BUG("a version rests when it comes", "replay", BUG_NEW_VERSION_RESTS),
	BUG("the last known good is late", "rules", BUG_LAST_GOOD_IS_LATE),
	BUG("an operator's version does not move the pin", "revisions", BUG_PIN_STAYS_BEHIND),
	BUG("a pin names the current version while the disk takes another", "revisions",
		BUG_PIN_NAMES_CURRENT),
	BUG("a rollback keeps no verdict", "revisions", BUG_OPERATOR_KEEPS_NO_VERDICT),
	TABLE_BUG("late is shown", "revisions", release_late, ROW_SAVED_IS_SHOWN),
	BUG("a pin stays on what was not published", "revisions", BUG_FAILURE_LOSES_PIN),
	BUG("what is saved is saved again", "settings", BUG_SAVED_IS_SAVED_AGAIN),
	BUG("the latest version passes the last known good", "rollout", BUG_SAVED_LETS_LATEST_PASS),
	BUG("a start replays nothing into the ledger", "revisions", BUG_START_REPLAYS_NOTHING),
};

void seed_plant(const struct seed *seed)
{
	planted = seed;
}

bool seed_has(enum bug bug)
{
	return planted && planted->bug == bug;
}

static struct situation blind_situation(const struct situation *s)
{
	struct situation seen = *s;

	if (planted && planted->blind)
		planted->blind(&seen);
	if (planted && planted->left_out)
		seen.resting |= 1u << planted->left_out;
	return seen;
}

struct decision seeded_decide(const struct situation *s)
{
	struct situation seen = blind_situation(s);
	struct decision d = decide(&seen);

	return planted && planted->row && d.row != planted->row ? decide(s) : d;
}

bool seeded_may_commit(const struct situation *s, enum decide_origin origin)
{
	struct situation seen = blind_situation(s);

	return seed_has(BUG_GATE_NOT_ASKED_AGAIN) || decide_may_commit(&seen, origin);
}

enum decide_outcome seeded_outcome(const struct situation *s)
{
	enum decide_outcome outcome = decide_outcome(s);

	return outcome == OUTCOME_HELD && seed_has(BUG_HELD_IS_FAILURE) ? OUTCOME_FAILING : outcome;
}
