/*
 * The life of one config: due, pull, check, publish, wait. The only place that knows the whole
 * sequence.
 *
 * Threads: the loop's; the push thread hints at the trigger inside the push topic and nothing else.
 * Ownership: config_free() ends a run in progress. Bounds: one transfer and one publication at a
 * time; CONFIG_REPULLS extra pulls, all within about a minute, while the server still shows another
 * version than a push promised. What a push or a watch told of, while the server is not to be
 * reached, is asked for in the same way, and then at the longest of these delays.
 */
#ifndef PULLET_CONFIG_H
#define PULLET_CONFIG_H

#include "lib/supervisor.h"
#include "notify/notify.h"
#include "files/file_watch.h"
#include "pull/pull.h"
#include "verify/verify.h"
#include "version/ledger.h"
#include "lib/trigger.h"
#include "base/loop.h"
#include "publish/publish.h"
#include "push/subscriber.h"
#include "push/floor.h"
#include "pull/upstream.h"
#include "settings/settings.h"
#include "http/client.h"
#include "pull/watch.h"
#include "base/worker.h"

#define CONFIG_REPULLS 8
#define CONFIG_QUICK_REPULLS 3 /* of these; what lags longer is told */
#define CONFIG_SPLAY_MS 30000u

struct config;

/* What all configs of an agent share. Borrowed for their whole life; what a new configuration
 * brings is changed in place, between two calls. */
struct config_env {
	const struct sys *sys;
	struct loop *loop;
	struct pull_env gather; /* the servers; how they are asked */
	struct worker *worker;
	struct worker *check; /* what large versions are validated on; NULL = the loop */
	struct trigger_queue *queue;
	struct file_watch *drift; /* NULL = only the interval notices */
	struct watch *watcher;    /* NULL = nothing is watched */
	struct sweep *sweep;      /* while configs are started; NULL = later, or no memory */
	const char *state_dir, *runtime_dir;
	const char *host; /* its name, for rollouts */
	const struct settings_label *labels;
	size_t label_count;
	bool dry_run;               /* pull and check, write nothing, say what would be done */
	bool once;                  /* each config runs once: no splay */
	struct push_budget *budget; /* what may be spent on messages; NULL = anything */
	struct log_limit *goes_on; /* for all configs: what is told again; NULL = each for itself */
	/* Called after each run. */
	void (*run_ended)(void *arg, struct config *c);
	void *arg;
};

enum config_outcome {
	CONFIG_NONE,
	CONFIG_PUBLISHED,
	CONFIG_UNCHANGED,
	CONFIG_HELD, /* a decision keeps what the server has from standing */
	CONFIG_FAILED
};

struct config_status {
	const struct settings_config *settings;
	const struct version *version; /* published; generation 0 = nothing is */
	const struct supervisor *supervisor;
	const char *state;      /* waiting | ok | failing | stale */
	const char *last_error; /* "" = the last run was good */
	enum kind_cause
		cause; /* of the last run's failure, as far as the server has to do with it */
	int64_t last_error_ms, published_ms, confirmed_ms; /* wall clock; 0 = never */
	int64_t failing_since_ms;                          /* the same; 0 = it is not */
	int64_t age_ms;          /* since the server last confirmed; -1 = nothing is published */
	int64_t next_pull_in_ms; /* -1 = none due (running) */
	bool running;
	bool waiting; /* due, but the server is held back or busy */
	const struct upstream *server;
	char snapshot[256];                  /* path of the image; "" = none */
	char url[1024];                      /* of the last pull, or of the next one */
	enum config_outcome outcome;         /* of the last run */
	uint64_t refused;                    /* documents validated bad, */
	uint64_t rejections_by[CHECK_COUNT]; /* each by whom */
	/* what the server has and does not stand; NULL = it has what stands */
	const struct version *away;
	const char *away_check, *away_why;
	bool held;        /* that is decided: by a pin, a rollout, an operator's rollback */
	bool away_failed; /* last_error is about it, and it is not held */
	const struct ledger_pin *pin;        /* NULL = not pinned */
	const struct ledger_pin *suspension; /* NULL = not suspended */
	const struct ledger_override *overrides;
	size_t override_count;
	int64_t expires_ms; /* of the signature, wall clock; INT64_MAX = never */
	bool drifted;       /* somebody changed what was published, and it is left so */
	bool has_aftermath;
	struct notify_status aftermath;
	uint64_t restored; /* times the file was found changed by others */
	uint64_t pushes;
	size_t watched; /* documents that are watched, and the worst state of those */
	enum watch_state watch;
	const char *watch_error; /* "" = none */
	uint64_t watch_changes;  /* told by them */
};

/* Waits for the end of the first run that begins after config_wait(). Embedded by its user. */
struct config_waiter {
	void (*ended)(void *arg, struct config *c);
	void *arg;
	uint64_t after;             /* private */
	struct config_waiter *next; /* private */
};

/* Work on a config's versions that takes long, for whoever asks about them. Embedded by its user.
 */
struct config_task {
	/* On the checks' thread: reads nothing that changes while the config lives. Not called when
	 * the config goes before. */
	void (*run)(struct config_task *t);
	/* On the loop, once, maybe before config_task_begin() returns; may free it. */
	void (*ended)(struct config_task *t);
	_Atomic bool dropped;     /* the config goes: run() was not called, or ends for nothing */
	struct worker_job job;    /* private */
	struct config *config;    /* private */
	struct config_task *next; /* private */
};

/* NULL when there is no memory. `settings` is borrowed. */
struct config *config_new(const struct config_env *env, const struct settings_config *settings);
/* Ends what runs; waits for nothing. The worker must have been stopped, or the config retired; the
 * push thread does not know its topic any more, and its trigger was taken off the queue. */
void config_free(struct config *c);
/* Publishes the last known good if the file is not that already, and fires the first pull: at once,
 * unless a version of this very document is published already; then, if it is not wanted now,
 * within one interval, at most CONFIG_SPLAY_MS, at random, so that hosts that start together do not
 * pull together. */
void config_start(struct config *c, bool now);
/* Ends what is under way, and begins nothing any more, but for what the worker is at: true when
 * there is nothing of that; else the version that it is at is finished in order, and ended() is
 * called later, once. What an operator asked for, and waits, is rolled back. ended NULL: the agent
 * ends, nobody is told, and nothing is rolled back: after the next start it is as after a crash.
 * What is published stays, and is remembered. Only config_free(), or this again, may follow; the
 * push thread may still hint at the trigger. */
bool config_retire(struct config *c, void (*ended)(void *arg), void *arg);
/* The worker is at something of it, or is to be: config_retire() would have to wait. */
bool config_at_disk(const struct config *c);
/* The trigger's moment was changed by a call: for whoever takes it off the queue. */
void config_called(struct trigger *t);
/* The machine slept through the moment of the pull: one pull, splayed as at the start. */
void config_resumed(struct config *c);
/* Pull now, even if the server is left alone for a while (unless it asked for that itself); not
 * while it is suspended.
 * forced: the guard is not asked, and what was refused is validated again. */
void config_refresh(struct config *c, bool forced);
/* Has the checks' thread work, in line with the versions that it checks; at once where there is no
 * such thread. */
void config_task_begin(struct config *c, struct config_task *t);
/* Lets go of the highest rev that each signature had, so that a lower one is taken next; the way
 * out when a rev was signed that was never meant. True when there was one. */
bool config_forget_revs(struct config *c);
void config_wait(struct config *c, struct config_waiter *w);
/* The same for the next run, or change by an operator, that ends; also one that has begun. */
void config_wait_any(struct config *c, struct config_waiter *w);
/* What stands has this generation or a higher one, and one of its documents this version (as an
 * ETag or a revision; "" = any). */
bool config_stands(const struct config *c, uint64_t generation, const char *version);
void config_wait_cancel(struct config *c, struct config_waiter *w);
struct push_topic *config_push_topic(struct config *c);
const char *config_name(const struct config *c);
/* Where it is in the settings' list; as it was last set. */
size_t config_place(const struct config *c);
void config_set_place(struct config *c, size_t place);
/* NULL when pulls and publications make progress, however slow, or wait for their time; else a
 * sentence, a constant, that says what does not. For a timer of the loop: asked for the first time
 * after the machine slept, or while a slot is just being handed on, it may be too strict, so that
 * who gets a sentence asks again a moment later. */
const char *config_stuck(const struct config *c, uint64_t now_ms);
void config_status(struct config *c, struct config_status *ret_status);

/*
 * What operators decide. `by` is who, for the log, the status and the history: "uid 0"; reason may
 * be "". The decision is in the ledger before the call returns, and is logged.
 *
 * 0, or a sentence and: -EINVAL: the key, value or reason is not good; -ENOENT: there is no such
 * generation or override; -ENOMEM; another -errno: it cannot be done as things stand. Bounds:
 * CONFIG_MAX_*; one rollback or override of a config at a time (-EBUSY).
 */
#define CONFIG_MAX_REASON 256 /* bytes */
#define CONFIG_MAX_VALUE 4096 /* bytes of an override's value, as JSON */

/* No new version is published for so long (0 = until config_unpin()); what stands stays, also over
 * a restart. A publication that is being written is finished. Overrides and rollbacks are still
 * possible: a pin holds the server's changes back, not the operator's. Replaces a pin. */
int config_pin(
	struct config *c, uint64_t for_ms, const char *by, const char *reason, char why[FILE_WHY]);
/* And pulls. */
int config_unpin(struct config *c, const char *by, char why[FILE_WHY]);
/* No pull is begun for so long (0 = until config_resume()), whoever wants one, also over a restart;
 * one that is under way ends as ever. What is published stays, and does not become stale meanwhile;
 * rollbacks, pins and overrides are possible. Replaces a suspension. */
int config_suspend(
	struct config *c, uint64_t for_ms, const char *by, const char *reason, char why[FILE_WHY]);
/* And pulls. -EALREADY: it is not suspended. */
int config_resume(struct config *c, const char *by, char why[FILE_WHY]);
bool config_suspended(const struct config *c);

/*
 * The changes, config_roll_back() and what follows it, end when they are published, or are refused,
 * which takes the decision back: maybe before the call returns, else after the run under way.
 */

/* A change may begin, for that reason. */
int config_check_change(const struct config *c, const char *reason, char why[FILE_WHY]);
/* Waits for the end of the change that is asked for next: to be called before it. When that is
 * refused at once the waiter is still there: config_wait_cancel(). */
void config_wait_change(struct config *c, struct config_waiter *w);
/* Why the last change was not done; NULL = it was, or has not ended. */
const char *config_change_error(const struct config *c);

/* Publishes a generation of the state directory again, as a new one; inspect_rollback() has said
 * that it may. What stands is not taken from the server again until it changes there. No probe
 * takes the rollback back. Allowed while pinned. A signature's rev and its expiry are not asked
 * for, the operator decides; neither are guard and schema, but the check is. */
int config_roll_back(struct config *c, uint64_t generation, const char *by, const char *reason,
	char why[FILE_WHY]);
/* Lays one value over whatever the server says, for so long (at least 1). value is YAML: one value;
 * null removes the key; a mapping is merged into the one that is there. inspect_override() has said
 * that there may be one. Replaces an override of the same key. */
int config_override(struct config *c, const char *key, const char *value, uint64_t for_ms,
	const char *by, const char *reason, char why[FILE_WHY]);
int config_drop_override(struct config *c, const char *key, const char *by, char why[FILE_WHY]);

#endif
