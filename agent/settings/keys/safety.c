/*
 * The keys of a config that are about a change: guard, check, reload, probe.
 *
 * Surprising: a key that could never have an effect (a check without the candidate's path, a probe
 * that ends before it could fail) is an error, because it would promise a safety that is not there.
 */
#include "settings/keys/safety.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "settings/keys/format.h"
#include "settings/form.h"
#include "settings/value.h"

#define CONFIG(member) MEMBER(settings_config, member)
#define PATTERNS .max = SETTINGS_MAX_PATTERNS, .check = settings_check_pattern
#define WORDS .max = SETTINGS_MAX_ARGV, .check = settings_check_argument

/* Reports an error unless exactly one key is set. */
static void expect_one(
	struct loader *l, const struct node *map, const char *where, const char *a, const char *b)
{
	bool has_a = node_find(map, a), has_b = node_find(map, b);

	if (has_a == has_b)
		loader_complain(l, walk_key_place(l, map), "%s needs either %s or %s, and has %s",
			where, a, b, has_a ? "both" : "neither");
}

/* ---- commands ---- */

static const struct key command_keys[] = {
	{"run", walk_set_argv, MEMBER(settings_command, argv), WORDS, .required = true},
	{"timeout", walk_set_duration, MEMBER(settings_command, timeout_ms), .min = 100,
		.max = HOUR},
};

static void walk_command(
	struct loader *l, const struct node *n, const char *where, struct settings_command *command)
{
	walk_mapping(l, n, KEYS(command_keys), where, NULL, command);
}

/* True when a word holds the candidate's path, or an invalid word was left out. */
static bool names_path(char *const *argv, size_t count)
{
	size_t i = 0;

	while (argv[i] && !strstr(argv[i], SETTINGS_PATH_WORD))
		i++;
	return argv[i] || i < count;
}

void settings_set_check(struct loader *l, const struct node *n, const struct key *k, void *object)
{
	static const struct key list = {
		"check", walk_set_argv, MEMBER(settings_command, argv), WORDS};
	struct settings_command *command = &((struct settings_config *)object)->check;
	const struct node *words = n->type == NODE_LIST ? n : node_find(n, "run");

	if (!walk_expect(l, n, k->name, 1u << NODE_LIST | 1u << NODE_MAP,
		    "a list of texts, or a mapping with run"))
		return;
	if (n->type == NODE_LIST)
		walk_set_argv(l, n, &list, command);
	else
		walk_command(l, n, k->name, command);
	if (command->argv && !names_path(command->argv, words->count))
		loader_complain(l, walk_place(l, n),
			"check: no word holds \"" SETTINGS_PATH_WORD "\", which stands for the new "
			"file: a check that does not look at it checks nothing");
}

/* ---- guard ---- */

static const struct key guard_keys[] = {
	{"max_shrink", walk_set_percent, CONFIG(guard.max_shrink), .min = 0, .max = 100},
	{"max_changes", walk_set_number, CONFIG(guard.max_changes), .min = 1,
		.max = DOCUMENT_MAX_NODES},
	{"require", walk_set_texts, CONFIG(guard.require), .max = SETTINGS_MAX_PATTERNS,
		.check = settings_check_key},
	{"allow_empty", walk_set_bool, CONFIG(guard.allow_empty)},
};

const struct mapping settings_guard_keys = {guard_keys, COUNT(guard_keys)};

/* ---- reload ---- */

/* One action and, of an item of "on", its keys. */
struct draft {
	struct settings_rule rule;
	bool none;
};

static void set_signal(struct loader *l, const struct node *n, const struct key *k, void *object)
{
	int *member = (int *)(void *)((char *)object + k->offset);
	const char *why;

	if (!walk_expect(l, n, k->name, 1u << NODE_STRING | 1u << NODE_INT, "a signal such as HUP"))
		return;
	why = settings_parse_signal(n->text, member);
	if (why)
		walk_complain(l, n, k, why);
}

/* The mapping's action. At most one of run, signal and none; signal and pidfile together. */
static void settle_action(struct loader *l, const struct node *map, struct draft *d)
{
	const struct node *run = node_find(map, "run"), *signal = node_find(map, "signal"),
			  *pidfile = node_find(map, "pidfile");

	if (run && signal)
		loader_complain(l, walk_key_place(l, signal),
			"run and signal exclude each other: remove one");
	if (d->none && (run || signal))
		loader_complain(l, walk_key_place(l, node_find(map, "none")),
			"none is set beside %s: remove one", run ? "run" : "signal");
	if (signal && !pidfile && !run)
		loader_complain(l, walk_key_place(l, signal),
			"signal needs pidfile, the file with the number of the process");
	if (pidfile && !signal)
		loader_complain(l, walk_key_place(l, pidfile),
			"pidfile is set without signal: name the signal, such as HUP");
	d->rule.kind = run ? SETTINGS_RUN : signal ? SETTINGS_SIGNAL : SETTINGS_NOTHING;
}

/* Takes what the draft holds. */
static void add_rule(struct loader *l, struct settings_reload *r, const struct draft *d)
{
	struct settings_rule *rules = loader_room(l, r->rules, r->rule_count, sizeof(*rules));

	if (!rules) {
		walk_free_texts(d->rule.keys);
		walk_free_texts(d->rule.argv);
		free(d->rule.pidfile);
		return;
	}
	r->rules = rules;
	rules[r->rule_count++] = d->rule;
}

static const struct key on_keys[] = {
	{"keys", walk_set_texts, MEMBER(draft, rule.keys), PATTERNS, .required = true},
	{"run", walk_set_argv, MEMBER(draft, rule.argv), WORDS},
	{"signal", set_signal, MEMBER(draft, rule.signal)},
	{"pidfile", walk_set_text, MEMBER(draft, rule.pidfile), .check = settings_check_path},
	{"none", walk_set_bool, MEMBER(draft, none)},
};

static void set_on_item(struct loader *l, const struct node *n, struct settings_reload *r)
{
	struct draft d = {.none = false};

	if (!walk_expect(l, n, "each of on", 1u << NODE_MAP, "a mapping with keys and an action"))
		return;
	walk_mapping(l, n, KEYS(on_keys), "an item of on", NULL, &d);
	settle_action(l, n, &d);
	if (d.rule.kind == SETTINGS_NOTHING && !d.none && !node_find(n, "pidfile"))
		loader_complain(l, walk_key_place(l, n),
			"an item of on has no action: add run, or signal and pidfile, or none: "
			"true");
	add_rule(l, r, &d);
}

static void set_on(struct loader *l, const struct node *n, const struct key *k, void *object)
{
	struct settings_reload *r = (void *)((char *)object + k->offset);

	if (!walk_expect(
		    l, n, k->name, 1u << NODE_LIST, "a list of mappings with keys and an action"))
		return;
	if (!n->first)
		loader_complain(l, walk_place(l, n), "on is empty: add an item, or remove it");
	for (n = n->first; n; n = n->next) { /* the last rule is the action without keys */
		if (!walk_has_room(l, n, r->rule_count, SETTINGS_MAX_RULES - 1, "items of on"))
			break;
		set_on_item(l, n, r);
	}
}

struct reload_draft {
	struct settings_reload reload;
	struct draft rest; /* the action of the keys that no item of "on" fits */
};

#define RELOAD(member) MEMBER(reload_draft, member)
static const struct key reload_keys[] = {
	{"run", walk_set_argv, RELOAD(rest.rule.argv), WORDS},
	{"signal", set_signal, RELOAD(rest.rule.signal)},
	{"pidfile", walk_set_text, RELOAD(rest.rule.pidfile), .check = settings_check_path},
	{"on", set_on, RELOAD(reload)},
	{"debounce", walk_set_duration, RELOAD(reload.debounce_ms), .min = 0, .max = HOUR},
	{"debounce_max", walk_set_duration, RELOAD(reload.debounce_max_ms), .min = 0, .max = HOUR},
	{"splay", walk_set_duration, RELOAD(reload.splay_ms), .min = 0, .max = HOUR},
	{"timeout", walk_set_duration, RELOAD(reload.timeout_ms), .min = 100, .max = HOUR},
};

const struct mapping settings_reload_keys = {reload_keys, COUNT(reload_keys)};

void settings_set_reload(struct loader *l, const struct node *n, const struct key *k, void *object)
{
	struct settings_config *c = object;
	struct reload_draft d = {.reload = c->reload};
	char longest[24], wanted[24];

	if (!walk_expect(l, n, k->name, 1u << NODE_MAP,
		    "a mapping with run, or signal and pidfile, or on"))
		return;
	walk_mapping(l, n, KEYS(reload_keys), k->name, NULL, &d);
	settle_action(l, n, &d.rest);
	if (!node_find(n, "run") && !node_find(n, "signal") && !node_find(n, "pidfile") &&
		!node_find(n, "on"))
		loader_complain(l, walk_key_place(l, n),
			"reload has no action: add run, or signal and pidfile, or on");
	if (d.reload.debounce_max_ms < d.reload.debounce_ms)
		loader_complain(l, walk_key_place(l, node_find(n, "debounce")),
			"debounce is longer than debounce_max, which is %s: raise that to at least "
			"%s",
			settings_duration_text(d.reload.debounce_max_ms, longest),
			settings_duration_text(d.reload.debounce_ms, wanted));
	if (d.rest.rule.kind != SETTINGS_NOTHING || d.rest.rule.pidfile)
		add_rule(l, &d.reload, &d.rest);
	c->reload = d.reload;
}

/* ---- probe ---- */

static const struct key probe_keys[] = {
	{"run", walk_set_argv, CONFIG(probe.argv), WORDS},
	{"url", walk_set_text, CONFIG(probe.url), .check = settings_check_url, .hidden = true},
	{"for", walk_set_duration, CONFIG(probe.for_ms), .min = 100, .max = HOUR},
	{"every", walk_set_duration, CONFIG(probe.every_ms), .min = 100, .max = HOUR},
	{"timeout", walk_set_duration, CONFIG(probe.timeout_ms), .min = 100, .max = HOUR},
	{"failures", walk_set_number, CONFIG(probe.failures), .min = 1, .max = 1000},
};

const struct mapping settings_probe_keys = {probe_keys, COUNT(probe_keys)};

void settings_set_probe(struct loader *l, const struct node *n, const struct key *k, void *object)
{
	struct settings_probe *p = &((struct settings_config *)object)->probe;
	char needed[24];

	if (!walk_expect(l, n, k->name, 1u << NODE_MAP, "a mapping with run or url"))
		return;
	walk_mapping(l, n, k->mapping, k->name, NULL, object);
	expect_one(l, n, k->name, "run", "url");
	if (p->every_ms * (p->failures - 1) > p->for_ms)
		loader_complain(l, walk_key_place(l, n),
			"probe ends before it can fail %u times in a row: raise for to at least "
			"%s, or lower failures or every",
			p->failures,
			settings_duration_text(p->every_ms * (p->failures - 1), needed));
}

/* ---- memory ---- */

void settings_safety_fini(struct settings_config *c)
{
	settings_format_fini(c);
	walk_free(KEYS(command_keys), &c->check);
	for (size_t i = 0; i < c->reload.rule_count; i++) {
		walk_free_texts(c->reload.rules[i].keys);
		walk_free_texts(c->reload.rules[i].argv);
		free(c->reload.rules[i].pidfile);
	}
	free(c->reload.rules);
}
