/*
 * What the files of agent/config share of one config;
 * inspect.c reads it. For nobody else.
 */
#ifndef PULLET_CONFIG_PRIVATE_H
#define PULLET_CONFIG_PRIVATE_H

#include "notify/notify.h"
#include "verify/candidate.h"
#include "config/config.h"
#include "pull/pull.h"
#include "verify/verify.h"
#include "version/ledger.h"
#include "base/log.h"
#include "verify/programs.h"

/* What the server has, and what does not stand: refused, rolled back, or held by a pin. */
struct away {
	struct version version;
	struct buffer body;  /* the bytes of its parts: one of them may stay when others change */
	char check[16];      /* as in the ledger; "pin" */
	char id[DIGEST_HEX]; /* of the rules; "" = whatever they are */
	char *why;
};

/* Something to be done without the server, as soon as nothing else is under way. */
struct wish {
	enum { WISH_NOTHING, WISH_RECOMPOSE, WISH_ROLL_BACK } kind;
	uint64_t generation; /* to be published again */
	char *origin;        /* of the new version, and for the log */
	bool stays;
	bool asked;            /* by an operator: his rollback counts more than a probe's */
	char from[DIGEST_HEX]; /* the bytes that a rollback is to replace; private */
	bool recompose;        /* to be done, if the rollback is not; private */
};

/* What an operator asked for, until it is published or refused. One at a time. */
struct change {
	bool under_way;
	bool granted;             /* the candidate, which is local, is for it */
	bool visible;             /* it is published: only the ledger does not know yet */
	struct ledger *overrides; /* as they were before; NULL: it is a rollback */
	char refused[DIGEST_HEX]; /* a rollback: the bytes that have a verdict because of it */
	bool failed;              /* the last that ended, */
	char *error;              /* and why */
};

/* A document that its server watches for us. */
struct watched_layer {
	struct watch_item item;
	struct config *config;
	size_t layer;
};

struct config {
	const struct config_env *env;
	const struct settings_config *settings;
	size_t place; /* in the agent's list */

	/* circulation: config.c */
	void (*retired)(void *arg); /* NULL = it is not, or nobody is to be told any more */
	void *retired_arg;
	struct config_task *tasks; /* the thread of the checks has them */
	struct trigger trigger;
	struct supervisor supervisor;
	struct loop_timer due;   /* the next run */
	struct loop_timer limit; /* the run's time limit */
	struct push_topic topic;
	struct push_floor floor;
	/* when the next run is due without hints: as the last order or the last run said;
	 * UINT64_MAX: neither did since the run began */
	uint64_t own_ms;
	struct pull *gather;
	/* while `bootstrapping` this and `gather` have changed places; NULL = no bootstrap */
	struct pull *bootstrap;
	bool bootstrapping;
	struct pull *rollout; /* NULL = none; asked within a run about what it brought */
	char *missed;         /* why the run needed the bootstrap */
	enum supervisor_outcome missed_as;
	enum kind_cause cause; /* of the last run's failure */
	uint64_t run;
	bool asking;  /* the rollout */
	bool retires; /* nothing begins */
	bool soon;    /* the run ended at its limit, but another address is ready */
	bool late;    /* a run was due while a version was under way */
	struct config_waiter *waiters;
	struct watched_layer *watched; /* one for each layer; NULL = none is */
	size_t watched_count;
	uint64_t watch_changes;
	/* when the run began: */
	uint64_t wanted;   /* the promise of the last push */
	uint64_t hints;    /* of watches and pushes, */
	uint64_t heard;    /* and those that a run has followed */
	uint64_t followed; /* watch_changes */
	unsigned repulls;  /* for the last of these */
	bool moved; /* something new came since a promise was kept: it may be newer than it */
	bool lags;  /* told: the server does not show it */

	/* versions: pipeline.c */
	struct candidate *candidate;       /* under way; NULL = none */
	struct validating *validating;     /* the thread of the checks has it; NULL = it has not */
	_Atomic uint64_t judging_since_ms; /* since when it is at it; 0 = not yet */
	struct programs *trial;            /* runs for the candidate */
	uint64_t tried_ms;                 /* since when */
	struct worker_job publish_job;
	_Atomic uint64_t on_worker_ms; /* since when it is at a job of ours; 0 = it is not */
	bool publishing;               /* the worker has the candidate */
	bool force;                    /* the guard is not asked in the next run, */
	bool forced;                   /* in this one */
	struct verify *checks;
	struct ledger *ledger;
	struct loop_timer expiry; /* of what is in the ledger */
	struct away *away;        /* NULL = the server has what stands */
	struct wish wish;
	struct change change;

	/* what stands */
	struct store *store;
	struct target *target;    /* NULL: no text file is wanted, or not opened yet */
	struct file_set *fileset; /* the same of a set of files */
	struct image *image;      /* the same of the snapshot */
	struct version published; /* generation 0: nothing */
	/* overrides in what is validated or published, and in what stands; NULL: none */
	struct ledger *composed, *stood;
	int64_t expires_ms; /* wall clock; INT64_MAX = never */
	struct notify *aftermath;
	/* in the store, but the file could not be replaced; generation 0: none */
	uint64_t saved_generation;
	char saved_sha256[DIGEST_HEX];
	struct worker_job sync_job;
	unsigned to_sync,
		syncing; /* of enum version_file: to be brought to the disk next, and now */
	uint64_t sync_generation; /* of the state file */
	int sync_error;
	struct file_watch_entry file_drift, image_drift;
	bool looked_after;   /* these two are in use */
	bool started;        /* from the last known good, if there is one */
	bool drifted;        /* somebody changed what was published, and it stays that way */
	const char *touched; /* the cause, when something else was under way; NULL = nobody did */
	const char *put_off; /* the cause, until heal_again */
	struct loop_timer heal_again;
	uint64_t healed_ms;
	struct log_limit heal_limit;

	/* what the status shows */
	enum config_outcome outcome;
	char *error; /* NULL = the last run was good */
	struct log_limit log_limit;
	int64_t error_wall_ms, published_wall_ms, confirmed_wall_ms;
	int64_t failing_wall_ms; /* since when; 0 = the last run was good */
	uint64_t confirmed_ms;   /* 0 = not known, */
	uint64_t started_ms;     /* then nobody knows more than this */
	uint64_t resumed_ms;     /* after a suspension; 0 = never */
	uint64_t refused[CHECK_COUNT], restored;
};

/* --- config.c --- */

/* A run or a start went wrong: remembered for the status, and logged once per cause, then once a
 * minute. */
void config_complain(struct config *c, const char *what, const char *why);
/* The run's time limit, from now on. */
void config_start_limit(struct config *c);
/* The end of the run in progress. */
void config_run_failed(
	struct config *c, enum supervisor_outcome outcome, const char *what, const char *why);
/* Where what stands cannot be replaced, at the start as at every run. */
#define CONFIG_CANNOT_PUBLISH "cannot publish here: trying again at every pull"
/* What stands is what is to stand. */
void config_run_succeeded(struct config *c, enum config_outcome outcome);
/* What waiters are after beside a run; no run has these numbers. */
#define CONFIG_ANY (UINT64_MAX - 1)
#define CONFIG_CHANGE UINT64_MAX
/* Tells those who wait, and whose `after` is one of first to last, that it has ended. */
void config_tell(struct config *c, uint64_t first, uint64_t last);
/* How long after the last confirmation what is published is stale; CONFIG_NEVER = never. */
#define CONFIG_NEVER UINT64_MAX
uint64_t config_stale_ms(const struct config *c);
/* The ledger says so now: pulls and watches end, or begin again, splayed as after a sleep; readers
 * are told when what is published is stale. */
void config_suspension_began(struct config *c);
void config_suspension_ended(struct config *c);
/* Nothing is under way any more that a run had to wait for. */
void config_free_for_run(struct config *c);
/* The worker has ended a job. The last call of whoever is told of that: c may be gone then. */
void config_retire_on(struct config *c);

/* --- rollout_gate.c: who takes a new version --- */

/* NULL and 0: there is no rollout; else -ENOMEM. */
int rollout_open(struct config *c);
void rollout_close(struct config *c);
/* Asks whether this host takes the version that is under way, or the one that waits for that. True:
 * the run goes on when it is known; false: it does. */
bool rollout_ask(struct config *c);
/* The run's time limit has passed. */
void rollout_give_up(struct config *c, const char *why);

/* --- pipeline.c: the way of a version --- */

/* The candidate is for this host, or is not: ends the run then. */
void version_admit(struct config *c);
void version_hold_back(struct config *c, const char *why);

/* An ETag for people, without its quotes; of several layers the first one's. NULL = none. */
const char *version_text(const struct version *v, char text[256]);
#define VERSION_TEXT(v) version_text(v, (char[256]){0})
void version_init_jobs(struct config *c);
/* Frees the candidate. */
void version_drop(struct config *c);
void version_clear_away(struct config *c);
/* The server has what it had, and that was rejected: ends the run. */
void version_end_away(struct config *c);
/* By a decision, which is not a failure. */
bool version_is_held(const struct away *a);
/* The candidate is given up: ends the run, or the change that was asked for. */
void version_failed(struct config *c, const char *what, const char *why);
/* Reads what the checks need, when it has changed. Not while they are at work. 0, or -errno with a
 * sentence. */
int version_ready_judges(struct config *c, char why[FILE_WHY]);
/* The checks but for the programs have ended: 0, or -EINVAL and the judgement, or another error. */
void version_judged(struct config *c, int error, const struct verify_result *judgement);
void version_fill_publication(struct config *c);
/* Brings files of the state directory to the disk soon, unless they lie in memory. */
enum version_file { VERSION_STATE = 1, VERSION_LEDGER = 2 };
void version_sync(struct config *c, unsigned files);
/* The ledger takes over what the candidate's state file says, if that is newer. True: it has
 * changed. */
bool version_adopt_decisions(struct config *c);
void version_publish(struct config *c);
void version_set_published(struct config *c);
void version_set_stood(struct config *c);
void version_remember_saved(struct config *c);
/* The bytes of what stands are not to be had any more: asks for all of it, and publishes it again.
 */
void version_forget_standing(struct config *c);

/* --- requests.c: what is to stand instead --- */

void version_forget_wish(struct config *c);
/* The standing bytes again, within the run. */
void version_recompose(struct config *c);
/* What was wished for and could not be done is wished for again. */
void version_wish_again(struct config *c);
void version_start_aftermath(struct config *c);
void version_finish_rollback(struct config *c);

/* --- checking.c: the checks' work --- */

/* Checks the candidate at once: at the start, when nobody else waits. */
int version_judge(struct config *c, enum verify_level level, struct verify_result *ret);
/* Checks the candidate, then has it tried, then published; or put back, when it heals. Calls
 * version_judged(): before it returns, or, for a large version, when its thread has ended. Until
 * then `validating` is set, and nobody touches the candidate. */
void version_try(struct config *c, enum verify_level level);
/* The result is not wanted: the thread ends soon, and drops the candidate. */
void judging_give_up(struct validating *j);

/* --- tasks.c: what somebody asks about versions --- */

/* Nobody wants to know any more: those that have not begun do not. */
void config_tasks_drop(struct config *c);
/* There is no thread any more. */
void config_tasks_end(struct config *c);

/* --- standing.c: what stands --- */

/* What was changed by somebody is validated, and is put back. */
void version_healed(struct config *c, int error, const char *why);

void version_noticed(void *arg, const char *cause);

/* Opens store, file and snapshot as far as they are not open. */
int version_prepare(struct config *c, char why[FILE_WHY]);
/* Appends what a program of the user's wrote, without the values of masked keys, of the candidate
 * and of the last two generations. arg: the config. */
void version_scrub(void *arg, struct buffer *out, const char *text, size_t len);
void version_init(struct config *c);
/* Makes the last known good visible, if it is not yet. */
void version_start(struct config *c);
/* Again, when it could not be done at the start. */
void version_start_late(struct config *c);
/* Ends what is under way, but not on the worker. */
void version_retire(struct config *c);
/* Ends what is under way and frees everything about versions. */
void version_stop(struct config *c);
/* Before a request: what it is conditional on. */
const struct version *version_held(struct config *c);
/* The run brought something new; ends the run, now or later. */
void version_gathered(struct config *c);
/* The server has what it had; ends the run, now or later. */
void version_unchanged(struct config *c);
/* Writes the ledger, which has changed. */
void version_remember(struct config *c);
/* Reads a version from the state directory and composes it with these overrides (NULL = none). 0,
 * or a sentence and -ENOENT, -EBADMSG (it is damaged, or is not what is configured now) or another
 * -errno. */
int version_load(struct config *c, uint64_t generation, const struct ledger *overrides,
	struct candidate **ret, char why[FILE_WHY]);
/* Wishes for something, to be done as soon as nothing is under way, maybe at once; origin is
 * copied. What is wished already is done with it: a rollback composes again too. 0 or -ENOMEM. */
int version_wish(struct config *c, const struct wish *wish, const char *origin);
/* Does what is wished, if nothing else is under way. */
void version_grant(struct config *c);

/* --- operations.c --- */

/* A version stands. 0, or -ENODATA with a sentence. */
int operate_check_standing(const struct config *c, char why[FILE_WHY]);
/* Somebody decided that the bytes that stood are bad. */
bool operate_took_back(const struct ledger_verdict *v);
/* There may be such a key. 0, or -ENOTSUP or -EINVAL with a sentence. */
int operate_check_key(const struct config *c, const char *key, char why[FILE_WHY]);
/* What an operator asked for, if anything, has ended: why NULL = it stands. Otherwise takes the
 * decision back. Tells those who wait. */
void operate_ended(struct config *c, const char *why);
/* The config goes: what an operator asked for, and the disk is not taking yet, has ended. */
void operate_forgo(struct config *c);
void operate_fini(struct config *c);
/* A ledger with the same overrides and nothing else, for ledger_free(); NULL when there is no
 * memory. */
struct ledger *operate_overrides(const struct ledger *l);
/* Other overrides: what was refused with the old ones is validated again. True: the ledger has
 * changed. */
bool operate_forgive(struct config *c);

#endif
