/*
 * Notifies an application after a publication: runs the actions that the rules name for the changed
 * keys, one after the other.
 *
 * Which: for each changed key the first rule that fits it counts (key_path_matches(); a rule
 * without keys fits every key). The actions so chosen run in the order of the rules, equal ones
 * once. A failed action does not stop the others. Changes without a rule need no
 * action.
 *
 * When: debounce_ms after the last change, but at most debounce_max_ms after the first, and a
 * random time up to splay_ms, drawn once, later. Never two at once: changes while one runs are for
 * the next, whose time counts from its own changes; it begins right after if that has passed.
 *
 * Nothing is dropped: a failed action runs again after 1 s, 2 s, 4 s and so on up to 5 min, each
 * shortened by a random part up to a quarter, until it succeeds. Actions that succeeded are not
 * repeated. Newer changes join in, and restart the wait by the rule above and the growth at 1 s.
 * The caller keeps `notified` of the status over a restart; if another generation is current then,
 * every action runs.
 *
 * A signal goes to the process that a file names, as agent/process/pidfile.h says.
 *
 * Commands (agent/process/process.h) find PULLET_CONFIG_NAME, PULLET_FILE (not without a file),
 * PULLET_GENERATION and PULLET_CHANGED_KEYS in their environment: the paths of all keys that
 * changed since the last successful reload, one a line, or "*" when they are not
 * known, are more than RELOAD_MAX_KEYS bytes, or one has a line break in it.
 *
 * Threads: the loop's. Ownership: settings and names are borrowed until reload_free(). Errors: in
 * the result and the status; never logs. Bounds: SETTINGS_MAX_RULES, RELOAD_MAX_KEYS,
 * RELOAD_MAX_OUTPUT, one process, time limit of a command as set.
 */
#ifndef PULLET_RELOAD_H
#define PULLET_RELOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/buffer.h"
#include "base/loop.h"
#include "settings/settings.h"

#define RELOAD_MAX_KEYS 32768u
#define RELOAD_MAX_OUTPUT 4096u
#define RELOAD_RETRY_MS 1000u
#define RELOAD_RETRY_MAX_MS 300000u

struct reload;

struct reload_result {
	uint64_t generation; /* that the attempt was for */
	bool ok;             /* every action succeeded */
	const char *why;     /* a sentence about the first failure; "" when ok */
	const char *output;  /* of the command that failed first; when ok of the last one; or "" */
	uint64_t dropped;    /* bytes of output beyond RELOAD_MAX_OUTPUT */
};

struct reload_options {
	struct loop *loop;
	const struct settings_reload *settings;
	const char *name, *file; /* of the config; file NULL = none */
	uint64_t notified;       /* generation of the last successful reload; 0 = none */
	uint64_t current;        /* generation that is published; 0 = none */
	/* Appends what a program wrote without the values of masked keys; NULL = as it is. */
	void (*scrub)(void *arg, struct buffer *out, const char *text, size_t len);
	void *scrub_arg;
	/* After each attempt, from the loop, with a result that is lent. May call any function
	 * here; reload_free() as the last thing it does. */
	void (*ended)(void *arg, const struct reload_result *result);
	void *arg;
};

enum reload_state {
	RELOAD_IDLE,    /* the application has the current version */
	RELOAD_WAITING, /* a reload will begin in next_ms */
	RELOAD_RUNNING,
	RELOAD_FAILED /* and will be tried again in next_ms */
};

struct reload_status {
	enum reload_state state;
	uint64_t pending;  /* newest generation to reload; 0 = none */
	uint64_t notified; /* generation of the last successful reload; 0 = none */
	uint64_t next_ms;  /* from now; 0 when idle or running */
	uint64_t runs;     /* attempts begun */
	uint64_t failed;   /* attempts that failed */
	unsigned in_a_row; /* of them since the last success */
	const char *why; /* the last failure's sentence, "" after a success; until the next call */
	size_t keys;     /* changed since then; 0 when `all` */
	bool all;        /* the keys are unknown */
};

/* NULL when there is no memory. Begins with a reload when another generation is current than the
 * notified one. */
struct reload *reload_new(const struct reload_options *options);
/* Kills what runs, with its children; NULL is fine. */
void reload_free(struct reload *r);
/* A generation was published in which these keys are other than before (changed, added, removed);
 * all = any may be. Runs nothing before it returns. False when they need no action and
 * nothing is pending: the application counts as notified. */
bool reload_changed(
	struct reload *r, uint64_t generation, char *const *keys, size_t count, bool all);
/* A reload is to run, or runs. */
bool reload_pending(const struct reload *r);
void reload_status(const struct reload *r, struct reload_status *ret_status);

#endif
