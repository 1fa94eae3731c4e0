/*
 * The life of one config: due, pull, judge, publish, wait. The only place that knows the whole
 * sequence.
 *
 * Threads: the loop's; the push thread fires the trigger inside the push topic and nothing else.
 * Ownership: config_free() ends a run in progress. Bounds: one transfer and one publication at a
 * time; CONFIG_REPULLS extra pulls when the server still shows another version than a push
 * promised.
 */
#ifndef PULLET_CONFIG_H
#define PULLET_CONFIG_H

#include "../lib/supervisor.h"
#include "../lib/trigger.h"
#include "loop.h"
#include "publish.h"
#include "push.h"
#include "server.h"
#include "settings.h"
#include "transport.h"
#include "worker.h"

#define CONFIG_REPULLS 3
#define CONFIG_SPLAY_MS 30000u

struct config;

/* What all configs of an agent share. Borrowed for their whole life. */
struct config_env {
	const struct sys *sys;
	struct loop *loop;
	struct transport *transport;
	struct server *const *servers; /* by the index in the settings */
	struct worker *worker;
	struct trigger_queue *queue;
	const char *state_dir, *runtime_dir;
	const char *ca_file; /* NULL = the system's */
	bool dry_run;        /* pull and judge, write nothing, say what would be done */
	bool once;           /* each config runs once: no splay */
	/* Called after each run. */
	void (*run_ended)(void *arg, struct config *c);
	void *arg;
};

enum config_outcome { CONFIG_NONE, CONFIG_PUBLISHED, CONFIG_UNCHANGED, CONFIG_FAILED };

struct config_status {
	const struct settings_config *settings;
	const struct version *version; /* published; generation 0 = nothing is */
	const struct supervisor *supervisor;
	const char *state;                                 /* waiting | ok | failing | stale */
	const char *last_error;                            /* "" = the last run was good */
	int64_t last_error_ms, published_ms, confirmed_ms; /* wall clock; 0 = never */
	int64_t age_ms;          /* since the server last confirmed; -1 = nothing is published */
	int64_t next_pull_in_ms; /* -1 = none due (running) */
	bool running;
	bool waiting; /* due, but the server is held back or busy */
	const struct server *server;
	char snapshot[256];          /* path of the image; "" = none */
	char url[1024];              /* of the last pull, or of the next one */
	enum config_outcome outcome; /* of the last run */
	uint64_t refused;            /* documents judged bad */
	uint64_t restored;           /* times the file was found changed by others */
	uint64_t pushes;
};

/* Waits for the end of the first run that begins after config_wait(). Embedded by its user. */
struct config_waiter {
	void (*ended)(void *arg, struct config *c);
	void *arg;
	uint64_t after;             /* private */
	struct config_waiter *next; /* private */
};

/* NULL when there is no memory. `settings` is borrowed. */
struct config *config_new(const struct config_env *env, const struct settings_config *settings);
/* Ends what runs; waits for nothing. The worker must have been stopped, the push thread too. */
void config_free(struct config *c);
/* Publishes the last known good if the file is not that already, and fires the first pull: at once,
 * unless a version of this very document is published already; then within one interval, at most
 * CONFIG_SPLAY_MS, at random, so that hosts that start together do not pull together. */
void config_start(struct config *c);
/* The trigger was fired or suspended: for whoever takes it off the queue. */
void config_called(struct trigger *t);
/* The machine slept through the moment of the pull: one pull, splayed as at the start. */
void config_resumed(struct config *c);
/* Pull now, even if the server is left alone for a while (unless it asked for that itself). */
void config_refresh(struct config *c);
void config_wait(struct config *c, struct config_waiter *w);
void config_wait_cancel(struct config *c, struct config_waiter *w);
struct push_topic *config_push_topic(struct config *c);
const char *config_name(const struct config *c);
void config_status(struct config *c, struct config_status *ret_status);

#endif
