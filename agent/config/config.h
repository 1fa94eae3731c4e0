/*
 * The life of one config: due, pull, check, publish, wait. The only place that knows the whole
 * sequence.
 *
 * Threads: the loop's; the push thread hints at the trigger inside the push topic and nothing else.
 * Ownership: config_free() ends a run in progress. Bounds: one transfer and one publication at a
 * time; CONFIG_REPULLS extra pulls, all within about a minute, while the server still shows another
 * version than a push promised. Changes announced while the server is unreachable are pulled in the
 * same way, then at the longest of these delays.
 */
#ifndef PULLET_CONFIG_H
#define PULLET_CONFIG_H

#include "config/rejection.h"
#include "lib/supervisor.h"
#include "notify/notify.h"
#include "files/file_watch.h"
#include "pull/pull.h"
#include "verify/verify.h"
#include "version/kept_layers.h"
#include "version/ledger.h"
#include "version/store.h"
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
#define CONFIG_QUICK_REPULLS 3 /* then the lag is logged */
#define CONFIG_SPLAY_MS 30000u

struct config;

/* What configs have counted since the start of the agent. */
struct config_totals {
	uint64_t runs[SUPERVISOR_OUTCOMES], rejections[CHECK_COUNT];
	uint64_t pushes, watch_changes, reload_runs, reload_failures, probe_failures;
};

/* From a push message's arrival at this host to the publication of what its pull brought; the
 * spread that it asked for is a part of that. Bucket i counts what took less than CONFIG_LATENCY_US
 * << i, the last one all that is longer. */
#define CONFIG_LATENCY_US 250u
#define CONFIG_LATENCY_BUCKETS 22

struct config_latency {
	uint64_t counts[CONFIG_LATENCY_BUCKETS];
	uint64_t sum_us;
};

/* What all configs of an agent share. Borrowed for their whole life; a new configuration changes it
 * in place, between two calls. */
struct config_env {
	const struct sys *sys;
	struct loop *loop;
	struct pull_env pull; /* the servers */
	struct worker *worker;
	struct worker *check;     /* what large versions are validated on; NULL = the loop */
	struct kept_shelf *shelf; /* of their layers; NULL = each is parsed again */
	struct trigger_queue *queue;
	struct file_watch *drift; /* NULL = only the interval notices */
	struct watch *watcher;    /* NULL = nothing is watched */
	struct sweep *sweep;      /* while configs are started; NULL = later, or no memory */
	const char *state_dir, *runtime_dir;
	const char *host; /* its name, for rollouts */
	const struct settings_label *labels;
	size_t label_count;
	bool starting;              /* nothing else waits: stored versions may be shown at once */
	bool dry_run;               /* pull and check, write nothing, say what would be done */
	bool once;                  /* each config runs once: no splay */
	struct push_budget *budget; /* what may be spent on messages; NULL = anything */
	struct log_limit
		*goes_on;      /* of repeated messages, for all configs; NULL = each for itself */
	struct events *events; /* the last of all configs; NULL = not kept */
	struct config_latency *latency; /* of pushes; NULL = not counted */
	struct config_totals *gone;     /* what freed configs had counted; NULL = not kept */
	/* Called after each run. */
	void (*run_ended)(void *arg, struct config *c);
	void *arg;
};

enum config_outcome {
	CONFIG_NONE,
	CONFIG_PUBLISHED,
	CONFIG_UNCHANGED,
	CONFIG_HELD, /* by a pin, a rollout or an operator */
	CONFIG_FAILED
};

struct config_status {
	const struct settings_config *settings;
	const struct version *version; /* published; generation 0 = nothing is */
	const struct supervisor *supervisor;
	const char *state;      /* waiting | ok | failing | stale */
	const char *last_error; /* "" = the last run was good */
	enum kind_cause cause;  /* of the last run's failure, on the server's side */
	int64_t last_error_ms, published_ms, confirmed_ms; /* wall clock; 0 = never */
	int64_t failing_since_ms;                          /* the same; 0 = it is not */
	int64_t age_ms;          /* since the server last confirmed; -1 = nothing is published */
	int64_t next_pull_in_ms; /* -1 = none due (running) */
	bool running;
	bool waiting; /* due, but the server is in backoff or busy */
	const struct upstream *server;
	enum config_outcome outcome;         /* of the last run */
	uint64_t rejections;                 /* by all checks */
	uint64_t rejections_by[CHECK_COUNT]; /* by each */
	/* the server's version, which is not published; NULL = it has the current one, or is not
	 * known */
	const struct version *rejected;
	enum rejection_reason rejected_by;
	const char *rejected_why;            /* until the next call of the config */
	bool held;                           /* rejected by a pin, a rollout, an operator */
	bool rejected_is_error;              /* last_error is about it, and it is not held */
	const struct ledger_pin *pin;        /* NULL = not pinned */
	const struct ledger_pin *suspension; /* NULL = not suspended */
	const struct ledger_override *overrides;
	size_t override_count;
	const struct ledger_verdict *verdicts; /* oldest first */
	size_t verdict_count;
	int64_t expires_ms; /* of the signature, wall clock; INT64_MAX = never */
	bool drifted; /* the published files were changed by somebody else, and not restored */
	bool has_notify;
	struct notify_status notify;
	uint64_t restored; /* times the file was found changed by others */
	uint64_t pushes;
	size_t watched; /* documents, and their worst state */
	enum watch_state watch;
	const char *watch_error; /* "" = none */
	uint64_t watch_changes;  /* reported by watches */
};

/* Waits for the end of the first run that begins after config_wait(). Embedded by its user. */
struct config_waiter {
	void (*ended)(void *arg, struct config *c);
	void *arg;
	uint64_t after;             /* private */
	struct config_waiter *next; /* private */
};

/* A question about a config's versions that takes long. Embedded by its user. */
struct config_task {
	/* On the checks' thread: reads nothing that changes while the config lives. Not called once
	 * the config is retired. */
	void (*run)(struct config_task *t);
	/* On the loop, once, maybe before config_task_begin() returns; may free it. */
	void (*ended)(struct config_task *t);
	_Atomic bool dropped;     /* the config is retired: the answer is not wanted */
	struct worker_job job;    /* private */
	struct config *config;    /* private */
	struct config_task *next; /* private */
};

/* NULL when there is no memory. `settings` is borrowed. */
struct config *config_new(const struct config_env *env, const struct settings_config *settings);
/* Ends what runs; waits for nothing. The worker must have been stopped, or the config retired; its
 * topic and trigger must have been removed from the push thread and the queue. */
void config_free(struct config *c);
/* Publishes the last known good if the file is not that already, and fires the first pull: at once;
 * or, when the document is published already and `now` is false, at a random moment within one
 * interval, at most CONFIG_SPLAY_MS, so that hosts that start together do not pull together. */
void config_start(struct config *c, bool now);
/* Ends what is under way, and begins nothing. True when the worker has no job of it; otherwise that
 * job is finished, and ended() is called later, once. Cancels an operator's queued change. ended
 * NULL: the agent ends, without a callback and without cancelling: the next start is as after a
 * crash. Published files stay. Only config_free(), or this again, may follow; the push thread may
 * still hint at the trigger. */
bool config_retire(struct config *c, void (*ended)(void *arg), void *arg);
/* A worker has a job of it: config_retire() would have to wait. */
bool config_at_disk(const struct config *c);
/* A call changed the trigger's due time: called when it is taken off the queue. */
void config_called(struct trigger *t);
/* The machine slept through the moment of the pull: one pull, splayed as at the start. */
void config_resumed(struct config *c);
/* Pulls now, even if the server is in backoff (unless it asked for that itself); not while
 * suspended. forced: skips the guard, and validates rejected versions again. */
void config_refresh(struct config *c, bool forced);
/* Says why the pull is asked for that config_refresh() makes next: CAUSE_OPERATOR, and who. */
void config_note_order(struct config *c, enum version_cause cause, const char *by);
/* Queues the task on the checks' thread; runs it at once where there is no such thread. */
void config_task_begin(struct config *c, struct config_task *t);
/* Forgets the highest rev of each signature, so that a lower one is accepted next: the way out when
 * a wrong rev was signed. True when there was one. */
bool config_forget_revs(struct config *c);
void config_wait(struct config *c, struct config_waiter *w);
/* The same for the next run, or change by an operator, that ends; also one that has begun. */
void config_wait_any(struct config *c, struct config_waiter *w);
/* The current version has this generation or a higher one, and one of its documents this version
 * (an ETag or a revision; "" = any). */
bool config_has_published(const struct config *c, uint64_t generation, const char *version);
void config_wait_cancel(struct config *c, struct config_waiter *w);
struct push_topic *config_push_topic(struct config *c);
const char *config_name(const struct config *c);
/* Its place in the settings' list, as last set. */
size_t config_place(const struct config *c);
void config_set_place(struct config *c, size_t place);
/* NULL when pulls and publications make progress, however slow, or wait for their time; else a
 * constant sentence that says which does not. It may be too strict just after the machine slept, or
 * while a slot is handed on: the caller asks again a moment later. */
const char *config_stuck(const struct config *c, uint64_t now_ms);
/* Fills the status. Formats nothing: /metrics reads thousands of them in one turn of the loop. */
void config_status(struct config *c, struct config_status *ret_status);
#define CONFIG_PATH 256
#define CONFIG_URL 1024
/* The path of the image; "" = none. */
void config_snapshot_path(const struct config *c, char ret_path[CONFIG_PATH]);
/* The URL of the last pull, or of the next one. */
void config_url(const struct config *c, char ret_url[CONFIG_URL]);
/* Of the document that the last failure is about, where its server is to blame; "" = it is not. */
void config_failed_url(const struct config *c, char ret_url[CONFIG_URL]);
/* What an operator decided, for the events of the config: "pinned", and the reason, or "". */
void config_note_decision(struct config *c, const char *what, const char *by, const char *reason);
/* Adds what this config has counted. */
void config_add_totals(struct config *c, struct config_totals *totals);

/*
 * Decisions of operators. `by` is the user, for the log, the status and the history: "uid 0";
 * reason may be "". The decision is in the ledger before the call returns, and is logged.
 *
 * 0, or a sentence and: -EINVAL: the key, value or reason is invalid; -ENOENT: there is no such
 * generation or override; -ENOMEM; another -errno: not possible now. Bounds:
 * CONFIG_MAX_*; one rollback or override of a config at a time (-EBUSY).
 */
#define CONFIG_MAX_REASON 256 /* bytes */
#define CONFIG_MAX_VALUE 4096 /* bytes of an override's value, as JSON */

/* Keeps the current version for so long (0 = until config_unpin()), also over a restart. A
 * publication that is being written is finished. Overrides and rollbacks stay possible: a pin holds
 * the server's changes, not the operator's. Replaces a pin. */
int config_pin(
	struct config *c, uint64_t for_ms, const char *by, const char *reason, char why[FILE_WHY]);
/* The generation that a pin is about which is made now. */
uint64_t config_pinned_generation(const struct config *c);
/* And pulls. -EALREADY: it is not pinned; -ENODATA: not known, without a state directory. */
int config_unpin(struct config *c, const char *by, char why[FILE_WHY]);
/* Begins no pull for so long (0 = until config_resume()), also over a restart; one under way ends
 * as usual. The current version does not become stale meanwhile; rollbacks, pins and overrides stay
 * possible. Replaces a suspension. */
int config_suspend(
	struct config *c, uint64_t for_ms, const char *by, const char *reason, char why[FILE_WHY]);
/* And pulls. -EALREADY: it is not suspended; -ENODATA: not known, without a state directory. */
int config_resume(struct config *c, const char *by, char why[FILE_WHY]);
bool config_suspended(const struct config *c);
/* dry_run.c: prints why a run did not come to a publication, if it failed. */
void dry_run_ended(struct config *c);

/*
 * config_roll_back() and the functions below end when the change is published, or fails, which
 * undoes the decision: maybe before the call returns, else after the run under way.
 */

/* A change may begin, for that reason. */
int config_check_change(const struct config *c, const char *reason, char why[FILE_WHY]);
/* Waits for the end of the change that the next call asks for. When that call fails the waiter is
 * still registered: config_wait_cancel(). */
void config_wait_change(struct config *c, struct config_waiter *w);
/* Why the last change failed; NULL = it did not, or has not ended. */
const char *config_change_error(const struct config *c);

/* Publishes a generation of the state directory again, as a new one; inspect_rollback() has allowed
 * it. The replaced version is not taken from the server again until it changes there. No probe
 * rolls the rollback back. Allowed while pinned. Skips a signature's rev and expiry, guard and
 * schema, but not the check program. */
int config_roll_back(struct config *c, uint64_t generation, const char *by, const char *reason,
	char why[FILE_WHY]);
/* Lays one value over the server's, for so long (at least 1). value is YAML: one value; null
 * removes the key; a mapping is merged. inspect_override() has allowed it. Replaces an override of
 * the same key. */
int config_override(struct config *c, const char *key, const char *value, uint64_t for_ms,
	const char *by, const char *reason, char why[FILE_WHY]);
int config_drop_override(struct config *c, const char *key, const char *by, char why[FILE_WHY]);

#endif
