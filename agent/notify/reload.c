/*
 * From changed keys to actions, one attempt at a time.
 *
 * Surprising: there are two changes, the one of the running attempt and the one that collects
 * meanwhile. A failed attempt puts its failed actions, and all its keys, before the other: only the
 * waiting change is ever retried.
 */
#include "notify/reload.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sys.h"
#include "lib/buffer.h"
#include "files/file.h"
#include "document/key_path.h"
#include "process/pidfile.h"
#include "process/process.h"
#include "verify/programs.h"

_Static_assert(SETTINGS_MAX_RULES <= 64, "a set of rules is one word");

struct change {
	uint64_t generation; /* 0 = nothing changed */
	uint64_t rules;      /* bits: whose actions are to run; 0 = nothing to do */
	bool all;            /* which keys is not known */
	size_t count;
	struct buffer keys; /* "\nKEY\nKEY\n" or empty */
};

struct reload {
	struct reload_options o;
	uint64_t actions; /* the rules that have one */
	uint64_t notified;
	struct change running, waiting;
	struct process *process;
	uint64_t left, bad; /* of running.rules: not begun yet; failed */
	unsigned rule;      /* that runs */
	struct loop_timer timer;
	uint64_t first_ms, splay_ms, due_ms; /* of what waits */
	bool retrying;                       /* what waits has failed, and nothing newer joined */
	unsigned tries;
	uint64_t runs, failed;
	unsigned in_a_row;
	char why[FILE_WHY];
	struct buffer output;
	uint64_t dropped;
};

/* ---- what changed ---- */

static void change_clear(struct change *c)
{
	buffer_fini(&c->keys);
	*c = (struct change){0};
	buffer_init(&c->keys, 2 * RELOAD_MAX_KEYS + 4); /* room to search for one */
}

static struct change change_take(struct change *c)
{
	struct change taken = *c;

	*c = (struct change){0};
	change_clear(c);
	return taken;
}

static void change_add_all(struct change *c)
{
	c->all = true;
	c->count = 0;
	buffer_fini(&c->keys);
}

static void change_add(struct change *c, const char *key, size_t len)
{
	size_t before;

	if (c->all)
		return;
	if (c->keys.len == 0)
		buffer_append(&c->keys, "\n", 1);
	before = c->keys.len;
	if (memchr(key, '\n', len) || buffer_append(&c->keys, key, len) ||
		buffer_append(&c->keys, "\n", 1)) {
		change_add_all(c);
		return;
	}
	if (memmem(c->keys.data, before, c->keys.data + before - 1, len + 2))
		c->keys.data[c->keys.len = before] = '\0';
	else if (c->keys.len - 2 > RELOAD_MAX_KEYS)
		change_add_all(c);
	else
		c->count++;
}

/* Adds a newer change. */
static void change_join(struct change *c, const struct change *newer)
{
	const char *end;

	c->rules |= newer->rules;
	if (newer->generation)
		c->generation = newer->generation;
	if (newer->all)
		change_add_all(c);
	if (newer->keys.len == 0)
		return;
	for (const char *key = newer->keys.data + 1; *key; key = end + 1) {
		end = strchr(key, '\n');
		change_add(c, key, (size_t)(end - key));
	}
}

/* ---- rules ---- */

static bool same_words(char *const *a, char *const *b)
{
	for (; *a && *b; a++, b++)
		if (strcmp(*a, *b) != 0)
			return false;
	return *a == *b;
}

static bool same_action(const struct settings_rule *a, const struct settings_rule *b)
{
	if (a->kind != b->kind)
		return false;
	if (a->kind == SETTINGS_RUN)
		return same_words(a->argv, b->argv);
	return a->signal == b->signal && strcmp(a->pidfile, b->pidfile) == 0;
}

/* The bit of the first rule that fits a key; 0 without one, or when it has no action. */
static uint64_t rule_of(const struct reload *r, const char *key)
{
	const struct settings_reload *s = r->o.settings;

	for (size_t i = 0; i < s->rule_count; i++)
		if (!s->rules[i].keys || key_path_matches(s->rules[i].keys, key))
			return r->actions & UINT64_C(1) << i;
	return 0;
}

/* ---- one attempt ---- */

static void run_actions(struct reload *r);

__attribute__((format(printf, 2, 3))) static void action_failed(
	struct reload *r, const char *format, ...)
{
	va_list args;

	if (!r->bad) {
		va_start(args, format);
		vsnprintf(r->why, sizeof(r->why), format, args);
		va_end(args);
	}
	r->bad |= UINT64_C(1) << r->rule;
}

static void signal_application(struct reload *r, const struct settings_rule *rule)
{
	char why[FILE_WHY];

	if (pidfile_signal(loop_sys(r->o.loop), rule->pidfile, rule->signal, why))
		action_failed(r, "%s", why);
}

static void command_ended(void *arg, const struct process_result *result)
{
	struct reload *r = arg;

	r->process = NULL;
	if (!r->bad) {
		programs_scrub(
			r->o.scrub, r->o.scrub_arg, &r->output, result->output, result->output_len);
		r->dropped = result->dropped;
	}
	if (!result->ok)
		action_failed(r, "%.200s %s", r->o.settings->rules[r->rule].argv[0], result->why);
	run_actions(r);
}

static char **make_environment(const struct reload *r)
{
	const struct change *c = &r->running;
	const char *keys = c->all ? "*" : "";
	size_t len = strlen(keys);

	if (c->keys.len) {
		keys = c->keys.data + 1;
		len = c->keys.len - 2;
	}
	return programs_environment(r->o.name, r->o.file, c->generation, keys, len);
}

/* True when a command runs, and command_ended() will come. */
static bool start_command(struct reload *r, const struct settings_rule *rule)
{
	char **env = make_environment(r);
	struct process_options o = {.argv = rule->argv,
		.env = env,
		.max_output = RELOAD_MAX_OUTPUT,
		.timeout_ms = r->o.settings->timeout_ms};
	int error = env ? process_start(r->o.loop, &o, command_ended, r, &r->process) : -ENOMEM;

	programs_environment_free(env);
	if (error)
		action_failed(r, "%.200s cannot be started: %s%s", rule->argv[0], strerror(-error),
			sys_advice(-error));
	return error == 0;
}

static uint64_t retry_ms(struct reload *r)
{
	uint64_t ms = (uint64_t)RELOAD_RETRY_MS << (r->tries < 16 ? r->tries++ : 16);

	if (ms > RELOAD_RETRY_MAX_MS)
		ms = RELOAD_RETRY_MAX_MS;
	return ms - sys_random_upto(loop_sys(r->o.loop), ms / 4);
}

/* Queues the failed actions again, before the newer change. */
static void keep_failed(struct reload *r)
{
	r->running.rules = r->bad;
	r->retrying = r->waiting.rules == 0;
	change_join(&r->running, &r->waiting);
	buffer_fini(&r->waiting.keys);
	r->waiting = change_take(&r->running);
	if (r->retrying)
		r->due_ms = loop_now_ms(r->o.loop) + retry_ms(r);
}

/* A newer change without actions counts as notified with it. */
static void note_notified(struct reload *r)
{
	r->notified = r->running.generation;
	change_clear(&r->running);
	if (r->waiting.rules == 0 && r->waiting.generation) {
		r->notified = r->waiting.generation;
		change_clear(&r->waiting);
	}
}

static void end_attempt(struct reload *r)
{
	struct reload_result result = {.ok = !r->bad, .dropped = r->dropped};

	if (result.ok) {
		r->in_a_row = 0;
		r->why[0] = '\0';
		note_notified(r);
		result.generation = r->notified;
	} else {
		r->in_a_row++;
		r->failed++;
		result.generation = r->running.generation;
		keep_failed(r);
	}
	if (r->waiting.rules)
		loop_timer_set(r->o.loop, &r->timer, r->due_ms);
	result.why = r->why;
	result.output = r->output.len ? r->output.data : "";
	r->o.ended(r->o.arg, &result);
}

/* Runs the actions left, up to a command; command_ended() goes on. */
static void run_actions(struct reload *r)
{
	const struct settings_rule *rules = r->o.settings->rules, *rule;

	while (r->left) {
		r->rule = (unsigned)__builtin_ctzll(r->left);
		rule = &rules[r->rule];
		for (unsigned i = r->rule; i < r->o.settings->rule_count; i++)
			if (r->left & UINT64_C(1) << i && same_action(rule, &rules[i]))
				r->left &= ~(UINT64_C(1) << i);
		if (!r->bad) {
			buffer_clear(&r->output);
			r->dropped = 0;
		}
		if (rule->kind == SETTINGS_SIGNAL)
			signal_application(r, rule);
		else if (start_command(r, rule))
			return;
	}
	end_attempt(r);
}

static void begin_attempt(void *arg)
{
	struct reload *r = arg;

	buffer_fini(&r->running.keys);
	r->running = change_take(&r->waiting);
	r->retrying = false;
	r->left = r->running.rules;
	r->bad = 0;
	r->runs++;
	run_actions(r);
}

/* ---- outside ---- */

/* A newer change with actions has joined the waiting one; fresh: nothing waited before. */
static void schedule_attempt(struct reload *r, bool fresh)
{
	const struct settings_reload *s = r->o.settings;
	uint64_t now_ms = loop_now_ms(r->o.loop), latest_ms;

	if (fresh) {
		r->first_ms = now_ms;
		r->splay_ms = sys_random_upto(loop_sys(r->o.loop), s->splay_ms);
	}
	r->retrying = false;
	r->tries = 0;
	r->due_ms = now_ms + s->debounce_ms;
	latest_ms = r->first_ms + s->debounce_max_ms;
	if (r->due_ms > latest_ms)
		r->due_ms = latest_ms;
	r->due_ms += r->splay_ms;
	if (!r->running.rules)
		loop_timer_set(r->o.loop, &r->timer, r->due_ms);
}

bool reload_changed(
	struct reload *r, uint64_t generation, char *const *keys, size_t count, bool all)
{
	bool fresh = r->waiting.rules == 0 || r->retrying;
	uint64_t rules = all ? r->actions : 0;

	for (size_t i = 0; i < count && rules != r->actions; i++)
		rules |= rule_of(r, keys[i]);
	if (!rules && !r->running.rules && !r->waiting.rules) {
		r->notified = generation;
		return false;
	}
	r->waiting.generation = generation;
	r->waiting.rules |= rules;
	if (all)
		change_add_all(&r->waiting);
	for (size_t i = 0; i < count && !r->waiting.all; i++)
		change_add(&r->waiting, keys[i], strlen(keys[i]));
	if (rules)
		schedule_attempt(r, fresh);
	return true;
}

struct reload *reload_new(const struct reload_options *options)
{
	struct reload *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->o = *options;
	r->notified = options->notified;
	for (size_t i = 0; i < options->settings->rule_count; i++)
		if (options->settings->rules[i].kind != SETTINGS_NOTHING)
			r->actions |= UINT64_C(1) << i;
	change_clear(&r->running);
	change_clear(&r->waiting);
	buffer_init(&r->output, RELOAD_MAX_OUTPUT);
	loop_timer_init(&r->timer, begin_attempt, r);
	if (options->current && options->current != options->notified)
		reload_changed(r, options->current, NULL, 0, true);
	return r;
}

void reload_free(struct reload *r)
{
	if (!r)
		return;
	loop_timer_cancel(r->o.loop, &r->timer);
	process_free(r->process);
	buffer_fini(&r->running.keys);
	buffer_fini(&r->waiting.keys);
	buffer_fini(&r->output);
	free(r);
}

bool reload_pending(const struct reload *r)
{
	return r->running.rules || r->waiting.rules;
}

void reload_status(const struct reload *r, struct reload_status *ret_status)
{
	uint64_t now_ms = loop_now_ms(r->o.loop);

	*ret_status = (struct reload_status){
		.state = r->running.rules    ? RELOAD_RUNNING
			 : !r->waiting.rules ? RELOAD_IDLE
			 : r->retrying       ? RELOAD_FAILED
					     : RELOAD_WAITING,
		.pending = r->waiting.generation ? r->waiting.generation : r->running.generation,
		.notified = r->notified,
		.runs = r->runs,
		.failed = r->failed,
		.in_a_row = r->in_a_row,
		.why = r->why,
		.all = r->running.all || r->waiting.all,
	};
	if (!ret_status->all)
		ret_status->keys = r->running.count + r->waiting.count;
	if (!r->running.rules && r->waiting.rules && r->due_ms > now_ms)
		ret_status->next_ms = r->due_ms - now_ms;
}
