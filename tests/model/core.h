/*
 * A model of the core of one config: the world around decide(), walked in full.
 *
 * The table is the real one, agent/config/decide.c. Around it is a world: a server, a disk,
 * programs and people, any of whom may do anything at any moment, and a crash, which forgets what
 * is volatile. A transition is one event and all that follows at once.
 *
 * Threads: one. Test code: memory that runs out ends the program.
 */
#ifndef PULLET_MODEL_CORE_H
#define PULLET_MODEL_CORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/decide.h"

/* ---- the world ---- */

/* X is the one with a nature: harmful, rejected by the old rules, or just the highest revision. */
enum document { DOCUMENT_NONE, DOCUMENT_A, DOCUMENT_B, DOCUMENT_X, DOCUMENTS };

/* A step loads and checks, commits (one state file), replaces the files, writes the ledger. */
enum step_phase { PHASE_CHECKING, PHASE_SHOWING, PHASE_RECORDING };
enum pull_state { PULL_IDLE, PULL_WANTED, PULL_RUNNING };
/* After a publication. Stale: a reload that notifies of a version that is not current any more. */
enum follow_state { FOLLOW_NOTHING, FOLLOW_NOTIFYING, FOLLOW_PROBING, FOLLOW_STALE };

#define RESTING_NOTIFY (1u << ROWS) /* beside the bits of the rows */

/* Bytes without padding: worlds are compared and hashed as such. */
struct world {
	uint16_t resting;
	/* environment */
	uint8_t server;    /* enum document: what it has */
	uint8_t new_rules; /* the checks were changed, and accept X */
	uint8_t rollout;   /* enum situation_rollout, as the rollout document says now */
	/* durable; the current version is that of the readers */
	uint8_t current, current_overrides, older;
	uint8_t changed, notified, proven, fits, pin;
	uint8_t verdicts[DOCUMENTS]; /* enum situation_verdict */
	uint8_t overrides;
	struct world_saved { /* a state file: the bytes, and each decision that they imply */
		uint8_t present, content, overrides, origin, replaces;
		uint8_t fits;    /* it was composed with the settings of now */
		uint8_t adopted; /* the ledger has what they imply */
		uint8_t visible; /* readers see it, and who is notified is in the ledger */
	} saved;
	uint8_t floor; /* no signed revision below it is accepted */
	/* volatile */
	uint8_t latest, latest_forced, latest_rollout;
	uint8_t pull, pull_forced;
	struct world_request {
		uint8_t what, about; /* enum situation_request; the document that was current */
	} request;
	struct world_step {
		uint8_t row, action, origin, content, overrides, forced, phase;
	} step; /* row: ROW_NONE when none is under way */
	uint8_t follow, mode;
	uint8_t started; /* the current version was shown in this life */
	/* known to the rules alone */
	uint8_t highest;     /* revision that a pull published */
	uint8_t rolled_back; /* by an operator, and not current since: documents, as bits */
	uint8_t zeros[2];
};
_Static_assert(sizeof(struct world) == 48, "bytes without padding");

/* ---- profiles: features in twos and threes ---- */

enum nature { NATURE_NONE, NATURE_HARMFUL, NATURE_REJECTED, NATURE_REVISIONS };

enum { /* what may happen, as bits */
	CAN_FORCE = 1,
	CAN_ROLL_BACK = 2,
	CAN_OVERRIDE = 4,
	CAN_PIN = 8,
	CAN_ROLL_OUT = 16,
	CAN_CHANGE_RULES = 32,
	CAN_CHANGE_FILES = 64,
	CAN_CRASH = 128,
	CAN_RETIRE = 256,
	CAN_ALL = 511,
};

struct profile {
	const char *name;
	const char *documents; /* of the server: some of "ABX" */
	enum nature nature;    /* of X */
	bool has_probe, has_rollout;
	enum situation_drift drift;
	unsigned can;
};

/* ---- events ---- */

enum event {
	EVENT_SERVER_HAS_A,
	EVENT_SERVER_HAS_B,
	EVENT_SERVER_HAS_X,
	EVENT_TICK, /* the interval, a push, a refresh */
	EVENT_FORCED_REFRESH,
	EVENT_ROLLBACK_REQUESTED,
	EVENT_OVERRIDE_REQUESTED,
	EVENT_PINNED,
	EVENT_UNPINNED,
	EVENT_OVERRIDES_EXPIRED,
	EVENT_FILES_CHANGED,
	EVENT_RULES_CHANGED,
	EVENT_ROLLOUT_CHANGED,
	EVENT_CRASHED,
	EVENT_RETIRED, /* a SIGHUP with other settings: its successor goes on */
	/* endings of what is under way */
	EVENT_PULL_SUCCEEDED,
	EVENT_PULL_FAILED,
	EVENT_CHECKS_ENDED,
	EVENT_CHECKS_FAILED, /* they could not run, or the state file could not be written */
	EVENT_SHOW_SUCCEEDED,
	EVENT_SHOW_FAILED,
	EVENT_RECORD_ENDED,
	EVENT_NOTIFY_SUCCEEDED,
	EVENT_NOTIFY_FAILED,
	EVENT_PROBE_ENDED,
	EVENTS
};
const char *event_name(enum event event);

struct event_list {
	unsigned count;
	enum event events[64];
};

/* What may end now: all well, all that may fail does, or either. */
enum endings { ENDINGS_GOOD, ENDINGS_BAD, ENDINGS_ANY };
void endings_add(struct event_list *list, const struct world *w, enum endings which);
/* What may come from outside. */
void arrivals_add(struct event_list *list, const struct profile *p, const struct world *w);

/* ---- facts ---- */

struct situation world_situation(const struct profile *p, const struct world *w);
/* The verdict that counts by the rules of now. */
enum situation_verdict world_verdict(const struct world *w, enum document document);
/* Whether the checks, when they can run, reject a document. */
bool world_rejects(const struct profile *p, const struct world *w, enum document document);

/* ---- transitions ---- */

/* What happened in a transition, beside the world after it. */
struct happened {
	bool answered, refused; /* the operator's request */
	bool dropped;           /* a step whose state file the disk was taking */
	struct decision begun;  /* ROW_NONE: no step began */
	struct situation begun_in;
	bool committed, shown;
	struct world_step commit;
	struct world_saved show;
};

struct world world_begin(const struct profile *p);
struct world world_apply(
	const struct profile *p, struct world w, enum event event, struct happened *ret);

/* ---- rules ---- */

/* Each returns the rule that is broken, or NULL. */
const char *rules_of_transition(const struct profile *p, const struct world *before,
	enum event event, const struct world *after, const struct happened *happened);
/* Faults have stopped, the server was asked, and nothing is under way. */
const char *rules_of_rest(const struct profile *p, const struct world *w);
/* Over one situation, possible or not: what the table answers. */
const char *rules_of_table(const struct situation *s, struct decision d);

/* ---- walks ---- */

#define PATH_MAX_EVENTS 64

struct walk_result {
	const char *flaw;                       /* NULL: none */
	unsigned events;                        /* from the beginning to the flaw */
	enum event path[PATH_MAX_EVENTS], last; /* EVENTS: the flaw is in the rest of the story */
	unsigned path_length;
	size_t worlds, transitions;
	int rest, rest_after_tick, rest_of_faults; /* the most endings until nothing is under way */
};
/* Distinct situations of all walks since the beginning, and of the last. */
struct sightings {
	size_t all, last;
};

/* All worlds that can be reached. */
struct walk_result walk_all(const struct profile *p, struct sightings *sightings);
/* One long life at random. */
struct walk_result walk_life(
	const struct profile *p, uint64_t seed, unsigned events, struct sightings *sightings);

/* ---- seeded bugs ---- */

/* In the bookkeeping around the table; those of the table change what it sees. */
enum bug {
	BUG_NONE,
	BUG_OF_TABLE,
	BUG_GATE_NOT_ASKED_AGAIN,
	BUG_HELD_IS_FAILURE,
	BUG_VERDICT_OUTLIVES_RULES,
	BUG_NO_VERDICT_IS_KEPT,
	BUG_PROBE_KEEPS_NO_VERDICT,
	BUG_NOTHING_STOPS_RESTING,
	BUG_FAILED_REQUEST_IS_FORGOTTEN,
	BUG_REFUSED_STAYS_SAVED,
	BUG_REVISION_AFTER_SHOW,
	BUG_NOBODY_IS_NOTIFIED,
	BUG_FORCED_FOR_EVER,
	BUG_RETIREMENT_SKIPS_DISK,
	BUG_ROLLED_BACK_IS_PROBED,
	BUG_OTHER_VERSION_RESTS,
	BUG_NEW_VERSION_RESTS,
	BUG_LAST_GOOD_IS_LATE,
	BUG_PIN_STAYS_BEHIND,
	BUG_PIN_NAMES_CURRENT,
	BUG_OPERATOR_KEEPS_NO_VERDICT,
	BUG_SAVED_LETS_LATEST_PASS,
	BUG_SAVED_IS_SAVED_AGAIN,
	BUG_START_REPLAYS_NOTHING,
	BUG_FAILURE_LOSES_PIN,
};

struct seed {
	const char *text;
	const char *profile; /* that finds it */
	enum bug bug;
	void (*blind)(struct situation *s); /* BUG_OF_TABLE: changes what the table sees... */
	enum decide_row row;                /* ...for this row alone, or for all (ROW_NONE) */
	enum decide_row left_out;
};
#define SEEDS 43
extern const struct seed seeds[SEEDS];

/* NULL: none. */
void seed_plant(const struct seed *seed);
bool seed_has(enum bug bug);

/* decide(), decide_may_commit() and decide_outcome(), or what the seeded bug makes of them. */
struct decision seeded_decide(const struct situation *s);
bool seeded_may_commit(const struct situation *s, enum decide_origin origin);
enum decide_outcome seeded_outcome(const struct situation *s);

#endif
