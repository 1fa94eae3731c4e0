/*
 * What the files of agent/config share of one config: four owners of facts (the run, the latest
 * version, the decisions, the current version), the step under way, and what the status shows.
 *
 * A fact is written by the file that owns it, and read by settle.c, which alone begins steps. For
 * nobody else than this room, and fleet/config_receipt.
 */
#ifndef PULLET_CONFIG_STATE_H
#define PULLET_CONFIG_STATE_H

#include "config/config.h"
#include "config/decide.h"
#include "notify/notify.h"
#include "verify/candidate.h"
#include "pull/pull.h"
#include "verify/verify.h"
#include "version/ledger.h"
#include "base/log.h"
#include "verify/programs.h"

/* A document that its server watches for us. */
struct watched_layer {
	struct watch_item item;
	struct config *config;
	size_t layer;
};

enum run_state {
	RUN_IDLE,
	RUN_PULLING,
	RUN_ASSEMBLING, /* what the pull brought becomes one version */
	RUN_ASKING,     /* the rollout, about what the pull brought */
	RUN_SETTLING    /* ends as soon as nothing is left to do */
};

/* How a run ended; CONFIG_NONE while it is not known. */
struct run_result {
	enum config_outcome outcome;
	char *what, *why; /* a failure, and why; NULL = out of memory, or none */
};

/* Owner: run.c. Knows no version; a crash forgets it. */
struct run {
	uint64_t number;
	struct run_result result;
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
	struct assembly *assembling;          /* on the checks' thread; NULL = none */
	_Atomic uint64_t assembling_since_ms; /* 0 = not begun */
	struct pull *rollout; /* NULL = none; asked within a run about what it brought */
	char *missed;         /* why the run needed the bootstrap */
	enum supervisor_outcome missed_as;
	enum kind_cause cause; /* of the last run's failure */
	uint64_t heard_us;     /* when the push came that this run follows; 0 = it follows none */
	struct outage *outage; /* of the failure that is reported next; NULL = none */
	struct config_waiter *waiters;
	struct watched_layer *watched; /* one for each layer; NULL = none is */
	uint64_t watch_changes;
	/* when the run began: */
	uint64_t wanted;   /* the promise of the last push */
	uint64_t hints;    /* of watches and pushes, */
	uint64_t heard;    /* and those that a run has followed */
	uint64_t followed; /* watch_changes */
	/* who gave the last order since the run began, and the one that it is for; NULL: nobody.
	 * Owner of these: reason.c */
	char *asked_by, *by;
	unsigned char asked, began; /* enum version_cause */
	bool force;                 /* asked for the next run, */
	bool forced;                /* and for this one */
	unsigned repulls;           /* for the last of watch_changes */
	unsigned watched_count;
	enum run_state state;
	bool bootstrapping;
	bool soon;   /* the run ended at its limit, but another address is ready */
	bool moved;  /* something new came since a promise was kept: it may be newer than it */
	bool lags;   /* logged: the server does not show it */
	bool is_new; /* this one brought a version that is not current */
	bool failed_by_rollout; /* `cause` is of its document */
};

enum latest_state {
	LATEST_NOT_KNOWN,
	LATEST_IS_CURRENT,
	LATEST_IS_KEPT, /* another one, and kept here */
	LATEST_IN_STEP  /* the step publishes it */
};

/* What the servers have, and what is known of it. Owner: latest.c. A crash forgets it. */
struct latest {
	enum latest_state state;
	enum situation_force force;
	enum situation_rollout rollout;
	enum rejection_reason said;  /* logged: why it is held */
	struct candidate *candidate; /* kept; its body is empty when the bytes are in the store */
	char *rollout_why;
	/* the programs' last runs in a row that timed out, for bytes whose digest begins so */
	unsigned char timeouts;
	uint32_t timeouts_digest;
};

/* What an operator asked for; one at a time, on the heap. A crash forgets it: nobody was answered.
 */
struct request {
	enum situation_request kind;
	uint64_t target;          /* generation, of a rollback */
	char about[DIGEST_HEX];   /* the bytes that it replaces */
	struct ledger *overrides; /* the whole new set; NULL: it is a rollback */
	char *origin;             /* of the new version */
	char *by;                 /* the operator; NULL = out of memory */
	char *verdict;            /* about the replaced bytes; NULL = none */
};

/* That the ledger is not in its file. */
struct unsaved {
	struct log_limit limit;
	char why[FILE_WHY];
};

/* Owner: decisions.c. */
struct decisions {
	struct verify *checks;
	struct unsaved *unsaved_note; /* NULL: it is saved, or memory was out */
	bool unsaved;                 /* the ledger is not in its file */
	bool rules_known;             /* the checks' digest is that of today */
	bool overrides_bad; /* they failed the probe: what is composed without them needs none */
	bool failed;        /* the request that ended last, and error: why */
	struct ledger *ledger;
	const char *overrides_why; /* why they changed last; NULL = not known */
	struct loop_timer expiry;  /* of what is in the ledger */
	struct request *request;   /* NULL = none */
	char *error;
};

/* Of files that somebody else changed. */
struct repairs {
	struct loop_timer timer; /* ends the rest of ROW_CHANGED_BY_OTHERS */
	uint64_t last_ms;        /* 0 = none but of our own */
	struct log_limit limit;
};

/* What readers see, and where. Owner: current.c. */
struct current {
	struct store *store;
	struct target *target;           /* NULL: no text file is configured, or not opened yet */
	struct file_set *fileset;        /* the same of a set of files */
	struct image *image;             /* the same of the snapshot */
	struct version version;          /* generation 0: nothing */
	char settings[VERSION_SETTINGS]; /* digest of those that a version is composed with now */
	struct ledger *overrides;        /* in it; NULL: none */
	int64_t expires_ms;              /* wall clock; INT64_MAX = never */
	char *unsigned_why;              /* the keys of now did not sign it; NULL: they did */
	struct notify *notify;
	/* committed, but not visible; generation 0: none */
	uint64_t saved_generation;
	struct version *saved; /* its facts */
	/* where a probe's rollback would go, as it was looked for last; 0 = nowhere */
	uint64_t older;
	enum decide_row saved_by; /* of this life's step; ROW_NONE: of an earlier life's */
	unsigned to_sync;         /* of enum syncing_file: to be brought to the disk next */
	bool not_durable; /* what is published: a power cut may bring the version before back */
	struct syncing *syncing; /* on the worker; NULL = none */
	uint64_t repeated;       /* a generation with the same bytes, to be pruned then; 0 = none */
	struct file_watch_entry file_drift, image_drift;
	struct file_watch_entry bytes_drift; /* until it reports; then from the next look on */
	bool watching_drift;                 /* these are in use */
	bool started;                        /* its places were opened */
	bool left;          /* the config was gone, or its state is older: places may be newer */
	bool half_shown;    /* a publication failed: its places may be those of either version */
	bool older_known;   /* since the last tick, for this version */
	bool repair_failed; /* nothing else is the matter: the next repair ends the failure */
	/* the version before this one: how many generations ago (0 = not known), and the first 4 of
	 * its bytes' digest */
	unsigned char before_age;
	unsigned char turns; /* pulls in a row that have brought the version before again */
	enum situation_place place;
	uint32_t before_digest;
	const char *drift_cause; /* why the files are compared next; NULL = they are not */
	struct repairs *repairs; /* NULL = there was none yet */
};

enum step_phase {
	STEP_LOAD,     /* and compose, and validate: maybe on the checks' thread */
	STEP_PROGRAMS, /* the config's own programs */
	STEP_SHOW      /* commit, show, record: never given up half-way */
};

/* The one thing under way. Owner: step.c. */
struct step {
	struct decision decision; /* ROW_NONE = none */
	enum step_phase phase;
	uint64_t since_ms;
	enum situation_force force;
	bool quiet;               /* a repair that was logged already */
	bool starts;              /* begun by the start: it may block */
	bool publishing;          /* the worker has the candidate */
	uint64_t generation;      /* to be loaded; 0 = it comes from the servers */
	const char *cause;        /* of a repair */
	char *origin;             /* of the new version; NULL = of the loaded one */
	struct ledger *overrides; /* to compose with; NULL: none */
	struct ledger *decided;   /* what its state file says */
	struct candidate *candidate;
	struct validation *validating;        /* on the checks' thread; NULL = none */
	_Atomic uint64_t validating_since_ms; /* 0 = not begun */
	struct programs *programs;            /* run for the candidate */
	uint64_t programs_since_ms;
	struct worker_job publish_job;
	_Atomic uint64_t on_worker_ms; /* since when it runs a job of ours; 0 = it does not */
};

struct status {
	enum config_outcome outcome; /* of the last run */
	char *error;                 /* NULL = the last run was good */
	struct log_limit *log_limit; /* NULL = no failure since the last good run */
	struct outage *outage;       /* that the last failure is a part of; NULL = of none */
	int64_t error_wall_ms, published_wall_ms, confirmed_wall_ms;
	int64_t failing_wall_ms; /* since when; 0 = the last run was good */
	uint64_t failing_ms;     /* the same by the other clock */
	uint64_t confirmed_ms;   /* 0 = not known, */
	uint64_t started_ms;     /* then nobody knows more than this */
	uint64_t resumed_ms;     /* after a suspension; 0 = never */
	uint32_t rejections[CHECK_COUNT], restored;
	bool failed_here; /* the last failure is of a disk, a program or memory of this host */
};

struct config {
	const struct config_env *env;
	const struct settings_config *settings;
	void (*retired)(void *arg); /* NULL = not retiring, or no caller waits */
	void *retired_arg;
	struct config_task *tasks; /* on the checks' thread */
	struct kept_layers *kept;  /* lent to a version that is on it; NULL = none */
	unsigned place;            /* in the agent's list */
	unsigned resting;          /* rows, as bits */
	enum situation_mode mode;  /* retiring: nothing begins */
	bool settling;             /* config_settle() is at work */
	struct run run;
	struct latest latest;
	struct decisions decisions;
	struct current current;
	struct step step;
	struct status status;
};

#endif
