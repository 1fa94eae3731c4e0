/*
 * What an application is told after a publication: the actions that the rules name for the keys
 * that changed, one after the other.
 *
 * Which: for each changed key the first rule that fits it counts (key_path_matches(); a rule
 * without keys fits every key). The actions so chosen run in the order of the rules, equal ones
 * once. A failed action holds none of the others up. Changes that no rule wants anything for are
 * told by doing nothing.
 *
 * When: debounce_ms after the last change, but at most debounce_max_ms after the first, and a
 * random time up to splay_ms, drawn once, later. Never two at once: what changes while one runs
 * becomes one more, whose time counts from its own changes and which begins right after if that has
 * passed.
 *
 * Nothing is dropped: what failed runs again after 1 s, 2 s, 4 s and so on up to 5 min, each
 * shortened by a random part up to a quarter, until it succeeds. What succeeded meanwhile is not
 * repeated. Newer changes join in, start the waiting again by the rule above and the growth at 1 s.
 * The caller keeps what `told` in the status says and gives it back after a restart; if another
 * generation stands then, every action runs, whichever keys may have changed.
 *
 * A signal goes to the process that a file names, as agent/process/pidfile.h says.
 *
 * Commands (agent/process/process.h) find PULLET_CONFIG_NAME, PULLET_FILE (not without a file),
 * PULLET_GENERATION and PULLET_CHANGED_KEYS in their environment: the paths of all keys that
 * changed since the application was last told of everything, one a line, or "*" when they are not
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
	uint64_t generation; /* that it was about */
	bool ok;             /* every action succeeded: the application is told */
	const char *why;     /* a sentence about the first failure; "" when ok */
	const char *output;  /* of the command that failed first; when ok of the last one; or "" */
	uint64_t dropped;    /* bytes of output beyond RELOAD_MAX_OUTPUT */
};

struct reload_options {
	struct loop *loop;
	const struct settings_reload *settings;
	const char *name, *file; /* of the config; file NULL = none */
	uint64_t told;           /* generation the application was last told of; 0 = none */
	uint64_t standing;       /* generation that stands published; 0 = none */
	/* Appends what a program wrote without the values of masked keys; NULL = as it is. */
	void (*scrub)(void *arg, struct buffer *out, const char *text, size_t len);
	void *scrub_arg;
	/* After each attempt, from the loop, with a result that is lent. May call any function
	 * here; reload_free() as the last thing it does. */
	void (*ended)(void *arg, const struct reload_result *result);
	void *arg;
};

enum reload_state {
	RELOAD_IDLE,    /* the application is told of everything */
	RELOAD_WAITING, /* a reload will begin in next_ms */
	RELOAD_RUNNING,
	RELOAD_FAILED /* and will be tried again in next_ms */
};

struct reload_status {
	enum reload_state state;
	uint64_t pending;  /* newest generation the application has yet to be told of; 0 = none */
	uint64_t told;     /* generation it was last told of; 0 = none */
	uint64_t next_ms;  /* from now; 0 when idle or running */
	uint64_t runs;     /* attempts begun */
	uint64_t failed;   /* attempts that failed */
	unsigned in_a_row; /* of them since the last success */
	const char *why; /* the last failure's sentence, "" after a success; until the next call */
	size_t keys;     /* that changed and are not told; 0 when `all` */
	bool all;        /* which keys is not known */
};

/* NULL when there is no memory. Begins with a reload when another generation stands than the one
 * that was told. */
struct reload *reload_new(const struct reload_options *options);
/* Kills what runs, with its children; NULL is fine. */
void reload_free(struct reload *r);
/* A generation was published in which these keys are other than before (changed, added, removed);
 * all = any may be. Runs nothing before it returns. False when no rule wants anything for them and
 * nothing else is pending: the application counts as told. */
bool reload_changed(
	struct reload *r, uint64_t generation, char *const *keys, size_t count, bool all);
/* Is there anything the application has yet to be told? */
bool reload_pending(const struct reload *r);
void reload_status(const struct reload *r, struct reload_status *ret_status);

#endif
