/*
 * What the files of agent/config share of one config;
 * inspect.c reads it. For nobody else.
 */
#ifndef PULLET_CONFIG_STATE_H
#define PULLET_CONFIG_STATE_H

#include "notify/notify.h"
#include "verify/candidate.h"
#include "config/config.h"
#include "pull/pull.h"
#include "verify/verify.h"
#include "version/ledger.h"
#include "base/log.h"
#include "verify/programs.h"

/* A change that needs no server, begun as soon as nothing else is under way. */
struct request {
	enum { REQUEST_NOTHING, REQUEST_RECOMPOSE, REQUEST_ROLL_BACK } kind;
	uint64_t generation;   /* to be published again */
	char *origin;          /* of the new version, and for the log */
	bool stays;            /* as in struct candidate */
	bool asked;            /* by an operator: his rollback counts more than a probe's */
	char from[DIGEST_HEX]; /* the bytes that a rollback replaces; private */
	bool recompose;        /* if the rollback is cancelled; private */
};

/* What an operator asked for, until it is published or fails. One at a time. */
struct change {
	bool under_way;
	bool granted;              /* the candidate, which is local, is for it */
	bool visible;              /* it is published, but the ledger was not written yet */
	struct ledger *overrides;  /* as they were before; NULL: it is a rollback */
	char rejected[DIGEST_HEX]; /* a rollback: the bytes that have a verdict because of it */
	bool failed;               /* the last that ended, */
	char *error;               /* and why */
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
	void (*retired)(void *arg); /* NULL = not retiring, or no caller waits */
	void *retired_arg;
	struct config_task *tasks; /* on the checks' thread */
	struct trigger trigger;
	struct supervisor supervisor;
	struct loop_timer due;   /* the next run */
	struct loop_timer limit; /* the run's time limit */
	struct push_topic topic;
	struct push_floor floor;
	/* when the next run is due without hints: as the last order or the last run said;
	 * UINT64_MAX: neither did since the run began */
	uint64_t own_ms;
	struct pull *pull;
	/* while `bootstrapping` this and `pull` have changed places; NULL = no bootstrap */
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
	bool lags;  /* logged: the server does not show it */

	/* versions: pipeline.c, publishing.c */
	struct candidate *candidate;          /* under way; NULL = none */
	struct validation *validating;        /* on the checks' thread; NULL = none */
	_Atomic uint64_t validating_since_ms; /* 0 = not begun */
	struct programs *programs;            /* runs for the candidate */
	uint64_t programs_since_ms;           /* since when */
	struct worker_job publish_job;
	_Atomic uint64_t on_worker_ms; /* since when it runs a job of ours; 0 = it does not */
	bool publishing;               /* the worker has the candidate */
	bool force;                    /* the guard is not asked in the next run, */
	bool forced;                   /* in this one */
	struct verify *checks;
	struct ledger *ledger;
	struct loop_timer expiry;   /* of what is in the ledger */
	struct rejection *rejected; /* NULL = the server has the current version */
	struct request request;
	struct change change;

	/* the current version: current.c */
	struct store *store;
	struct target *target;    /* NULL: no text file is configured, or not opened yet */
	struct file_set *fileset; /* the same of a set of files */
	struct image *image;      /* the same of the snapshot */
	struct version published; /* generation 0: nothing */
	/* in the candidate, and in the current version; NULL: none */
	struct ledger *next_overrides, *current_overrides;
	int64_t expires_ms; /* wall clock; INT64_MAX = never */
	struct notify *notify;
	/* in the store, but the file could not be replaced; generation 0: none */
	uint64_t saved_generation;
	char saved_sha256[DIGEST_HEX];
	struct worker_job sync_job;
	unsigned to_sync,
		syncing; /* of enum version_file: to be brought to the disk next, and now */
	uint64_t sync_generation; /* of the state file */
	int sync_error;
	struct file_watch_entry file_drift, image_drift;
	bool watching_drift; /* these two are in use */
	bool started;        /* from the last known good, if there is one */
	bool drifted;        /* somebody changed what was published, and it stays that way */
	const char
		*drift_cause; /* the cause, when something else was under way; NULL = nobody did */
	const char *deferred_cause; /* the cause, until repair_timer */
	struct loop_timer repair_timer;
	uint64_t repaired_ms;
	struct log_limit repair_limit;

	/* what the status shows */
	enum config_outcome outcome;
	char *error; /* NULL = the last run was good */
	struct log_limit log_limit;
	int64_t error_wall_ms, published_wall_ms, confirmed_wall_ms;
	int64_t failing_wall_ms; /* since when; 0 = the last run was good */
	uint64_t confirmed_ms;   /* 0 = not known, */
	uint64_t started_ms;     /* then nobody knows more than this */
	uint64_t resumed_ms;     /* after a suspension; 0 = never */
	uint64_t rejections[CHECK_COUNT], restored;
};

/* --- config.c --- */

/* Notes the failure of a run or a start for the status; logs it once per cause, then once a minute.
 */
void config_report_failure(struct config *c, const char *what, const char *why);
/* Starts the run's time limit. */
void config_start_limit(struct config *c);
/* These two end the run in progress. */
void config_run_failed(
	struct config *c, enum supervisor_outcome outcome, const char *what, const char *why);
void config_run_succeeded(struct config *c, enum config_outcome outcome);
/* Where the current version cannot be replaced, at the start as at every run. */
#define CONFIG_CANNOT_PUBLISH "cannot publish here: trying again at every pull"
/* What waiters are after beside a run; no run has these numbers. */
#define CONFIG_ANY (UINT64_MAX - 1)
#define CONFIG_CHANGE UINT64_MAX
/* Wakes waiters registered for runs first..last. */
void config_wake_waiters(struct config *c, uint64_t first, uint64_t last);
/* How long after the last confirmation the current version is stale; CONFIG_NEVER = never. */
#define CONFIG_NEVER UINT64_MAX
uint64_t config_stale_ms(const struct config *c);
/* The ledger has changed: pulls and watches end, or start again, splayed as after a sleep; the
 * snapshot says when it becomes stale. */
void config_suspension_began(struct config *c);
void config_suspension_ended(struct config *c);
/* Starts a run that waited for a local candidate, and the next request. */
void config_candidate_ended(struct config *c);
/* Ends config_retire() after the last job of a worker. The caller's last call: c may be gone then.
 */
void config_finish_retiring(struct config *c);

/* --- rollout_gate.c: whether this host takes a new version --- */

/* 0 also when there is no rollout; else -ENOMEM. */
int rollout_gate_open(struct config *c);
void rollout_gate_close(struct config *c);
/* Asks about the candidate, or about the version held by the rollout. True: the run goes on when
 * the answer is there; false: nothing to ask. */
bool rollout_gate_ask(struct config *c);
/* The run's time limit has passed. */
void rollout_gate_give_up(struct config *c, const char *why);

/* --- pipeline.c: the way of a version --- */

void pipeline_drop_candidate(struct config *c);
void pipeline_forget_rejected(struct config *c);
/* Forgets a rejection whose reason is gone; reads the schema if it has changed. */
void pipeline_review_rejected(struct config *c);
/* The server still has the rejected version: ends the run. */
void pipeline_end_rejected(struct config *c);
/* The version that the next request is conditional on; NULL = none. */
const struct version *pipeline_known_version(const struct config *c);
/* Reads what the checks need, when it has changed. Not while they are at work. 0, or -errno with a
 * sentence. */
int pipeline_prepare_checks(struct config *c, char why[FILE_WHY]);
/* The pull brought something new; ends the run, now or later. */
void pipeline_take_pull(struct config *c);
/* The checks but for the programs have ended: 0, or -EINVAL and the result, or another error. */
void pipeline_validated(struct config *c, int error, const struct verify_result *result);
/* The rollout keeps the candidate from this host: ends the run. */
void pipeline_hold(struct config *c, const char *why);
/* Gives the candidate up: ends the run, or the change that was asked for. */
void pipeline_fail(struct config *c, const char *what, const char *why);
/* Ends a change that no run waits for; why NULL: it is published. */
void pipeline_end_local(struct config *c, const char *what, const char *why);
/* The stored bytes are unavailable: the next request asks for all, and publishes it again. */
void pipeline_forget_current(struct config *c);
/* Reads a version from the state directory and composes it with these overrides (NULL = none). 0,
 * or a sentence and -ENOENT, -EBADMSG (damaged, or of other layers than configured) or another
 * -errno. */
int pipeline_load(struct config *c, uint64_t generation, const struct ledger *overrides,
	struct candidate **ret, char why[FILE_WHY]);
/* Appends a program's output without the values of masked keys, of the candidate and of the last
 * two generations. arg: the config. */
void pipeline_scrub(void *arg, struct buffer *out, const char *text, size_t len);

/* --- publishing.c --- */

void publishing_init(struct config *c);
/* Publishes the candidate, on the worker if it may block. */
void publishing_start(struct config *c);
/* Logs and prints what publishing_start() would do; ends the run. */
void publishing_dry_run(struct config *c);
/* Fills in the candidate's publication. */
void publishing_fill(struct config *c);
/* Makes the candidate's version the current one, then its overrides. */
void publishing_set_current(struct config *c);
void publishing_set_overrides(struct config *c);
/* The candidate is in the store, but not visible. */
void publishing_note_saved(struct config *c);
/* Takes over what the candidate's state file decided, if that is newer than the ledger. True: the
 * ledger has changed. */
bool publishing_adopt_decisions(struct config *c);
/* Brings files of the state directory to the disk soon, unless they lie in memory. */
enum publishing_file { PUBLISHING_STATE = 1, PUBLISHING_LEDGER = 2 };
void publishing_sync(struct config *c, unsigned files);

/* --- validation.c: the checks at work --- */

/* Checks the candidate at once: at the start, when nothing else waits. */
int validation_run(struct config *c, enum verify_level level, struct verify_result *ret);
/* Checks the candidate, then calls pipeline_validated(): before it returns, or, for a large
 * version, when its thread has ended. Until then `validating` is set, and nothing else touches the
 * candidate. */
void validation_start(struct config *c, enum verify_level level);
/* Drops the result: the thread ends soon, and drops the candidate. */
void validation_give_up(struct validation *j);

/* --- tasks.c: questions about versions --- */

/* Drops those that have not begun. */
void tasks_drop(struct config *c);
/* Ends all: the thread is gone. */
void tasks_end(struct config *c);

/* --- current.c: the current version --- */

void current_init(struct config *c);
/* Opens store, ledger, file and snapshot as far as they are not open, and watches them for drift.
 */
int current_open(struct config *c, char why[FILE_WHY]);
/* Makes the last known good visible, if it is not yet. */
void current_start(struct config *c);
/* Again, when that failed at the start. */
void current_start_late(struct config *c);
/* Ends what is under way, but not on the worker. */
void current_retire(struct config *c);
/* Ends what is under way and frees everything about versions. */
void current_stop(struct config *c);
/* Writes the ledger, which has changed. */
void current_save_ledger(struct config *c);
/* The server has the version that it had; ends the run, now or later. */
void current_confirm_pull(struct config *c);
/* inotify event, or a check after a run: repairs at most once per second. */
void current_drift_noticed(void *arg, const char *cause);
/* The version for a repair was validated. */
void current_repair(struct config *c, int error, const char *why);

/* --- requests.c: what replaces the current version without a pull --- */

/* Queues a request, and does it if nothing is under way; origin is copied. Joins the one that is
 * queued: a rollback composes again too. 0 or -ENOMEM. */
int requests_add(struct config *c, const struct request *request, const char *origin);
/* Does the queued request, if nothing else is under way. */
void requests_serve(struct config *c);
void requests_clear(struct config *c);
/* Queues a request that failed before, if its reason is still there. */
void requests_retry(struct config *c);
/* Composes the current version again, within the run. */
void requests_recompose(struct config *c);
void requests_start_notify(struct config *c);
/* After a crash between a verdict and its rollback. */
void requests_finish_rollback(struct config *c);

/* --- operations.c --- */

/* 0, or -ENODATA with a sentence: nothing is published. */
int operations_check_published(const struct config *c, char why[FILE_WHY]);
/* 0, or -ENOTSUP or -EINVAL with a sentence: there cannot be such a key. */
int operations_check_key(const struct config *c, const char *key, char why[FILE_WHY]);
/* Ends the operator's change, if there is one: why NULL = it is published; otherwise undoes the
 * decision. Wakes its waiters. */
void operations_end_change(struct config *c, const char *why);
/* The config is removed: ends a change that the worker is not publishing yet. */
void operations_cancel_change(struct config *c);
void operations_fini(struct config *c);
/* A ledger with the same overrides and nothing else, for ledger_free(); NULL when there is no
 * memory. */
struct ledger *operations_copy_overrides(const struct ledger *l);
/* The overrides have changed: versions rejected with the old ones are validated again. True: the
 * ledger has changed. */
bool operations_forgive_rejections(struct config *c);

#endif
