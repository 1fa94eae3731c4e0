/*
 * The keys of a config: a table of them, and a table of those that exclude each other.
 *
 * Surprising: a key without an effect is an error, not ignored; which keys those are depends on the
 * kind of config (bytes, layers, a set of files) and is looked up in a table.
 */
#include "settings/keys/config.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "settings/keys/format.h"
#include "settings/keys/safety.h"
#include "settings/keys/layers.h"
#include "settings/fingerprint.h"
#include "settings/look.h"
#include "settings/form.h"
#include "settings/value.h"
#include "settings/keys/verify.h"

#define MAX_WHERE (SETTINGS_SHOWN + 16) /* config "NAME" */

static void set_owner(struct loader *l, const struct node *n, const struct key *k, void *object)
{
	struct settings_config *c = object;
	const char *why;

	if (!walk_expect(l, n, k->name, 1u << NODE_STRING | 1u << NODE_INT, "user:group"))
		return;
	why = settings_parse_owner(n->text, &c->uid, &c->gid);
	if (why)
		walk_complain(l, n, k, why);
}

static const struct choice types[] = {
	{"yaml", SETTINGS_TYPE_YAML},
	{"json", SETTINGS_TYPE_JSON},
	{"bytes", SETTINGS_TYPE_BYTES},
	{NULL, 0},
};
static const struct choice formats[] = {
	{"verbatim", SETTINGS_VERBATIM},
	{"yaml", SETTINGS_FORMAT_YAML},
	{"json", SETTINGS_FORMAT_JSON},
	{"env", SETTINGS_FORMAT_ENV},
	{"properties", SETTINGS_FORMAT_PROPERTIES},
	{NULL, 0},
};
static const struct choice durabilities[] = {{"normal", false}, {"strict", true}, {NULL, 0}};
static const struct choice drifts[] = {
	{"heal", SETTINGS_HEAL},
	{"report", SETTINGS_REPORT},
	{"leave", SETTINGS_LEAVE},
	{NULL, 0},
};

#define CONFIG(member) MEMBER(settings_config, member)
static const struct key config_keys[] = {
	{"url", walk_set_text, CONFIG(url), .check = settings_check_url, .hidden = true},
	{"from", .set = settings_set_from},
	{"bootstrap", settings_set_aside, CONFIG(bootstrap)},
	{"rollout", settings_set_aside, CONFIG(rollout)},
	{"type", walk_set_choice, CONFIG(type), .choices = types},
	{"interval", walk_set_duration, CONFIG(interval_ms), .min = 100, .max = 30 * 24 * HOUR},
	{"jitter", walk_set_percent, CONFIG(jitter), .min = 0, .max = 50},
	{"timeout", walk_set_duration, CONFIG(timeout_ms), .min = 100, .max = HOUR},
	{"backoff_bound", walk_set_number, CONFIG(backoff_bound), .min = 1, .max = 1000},
	{"topic", walk_set_text, CONFIG(topic), .check = settings_check_topic},
	{"push_spread", walk_set_duration, CONFIG(push_spread_ms), .min = 0, .max = HOUR},
	{"push_min_interval", walk_set_duration, CONFIG(push_min_ms), .min = 0, .max = HOUR},
	{"verify", settings_set_verify, .mapping = &settings_verify_keys,
		.wanted = "a mapping with public_key or public_keys"},
	{"guard", walk_set_mapping, .mapping = &settings_guard_keys},
	{"schema", walk_set_text, CONFIG(schema), .check = settings_check_path, .look = LOOK_FILE},
	{"schema_dir", walk_set_text, CONFIG(schema_dir), .check = settings_check_path,
		.look = LOOK_FOLDER},
	{"file", walk_set_text, CONFIG(file), .check = settings_check_path, .look = LOOK_OUTPUT},
	{"dir", walk_set_text, CONFIG(dir), .check = settings_check_path, .look = LOOK_OUTPUT},
	{"snapshot", walk_set_bool, CONFIG(snapshot)},
	{"format", settings_set_format, CONFIG(format), .choices = formats},
	{"mode", walk_set_mode, CONFIG(mode)},
	{"owner", .set = set_owner},
	{"durability", walk_set_choice, CONFIG(strict), .choices = durabilities},
	{"check", .set = settings_set_check},
	{"reload", .set = settings_set_reload},
	{"probe", settings_set_probe, .mapping = &settings_probe_keys},
	{"history", walk_set_number, CONFIG(history), .min = 1, .max = SETTINGS_MAX_HISTORY},
	{"mask", walk_set_texts, CONFIG(mask), .max = SETTINGS_MAX_PATTERNS,
		.check = settings_check_pattern},
	{"drift", walk_set_choice, CONFIG(drift), .choices = drifts},
};

const struct mapping settings_config_keys = {config_keys, COUNT(config_keys)};

static const struct settings_config config_defaults = {
	.type = SETTINGS_TYPE_AUTO,
	.interval_ms = 30 * SECOND,
	.jitter = 10,
	.push_min_ms = 100,
	.timeout_ms = 10 * SECOND,
	.backoff_bound = 10,
	.snapshot = true,
	.format = SETTINGS_VERBATIM,
	.format_run.timeout_ms = 30 * SECOND,
	.guard.max_shrink = 100,
	.check.timeout_ms = 30 * SECOND,
	.reload = {.debounce_max_ms = 5 * SECOND, .timeout_ms = 30 * SECOND},
	.probe = {.for_ms = 10 * SECOND,
		.every_ms = 1 * SECOND,
		.timeout_ms = 5 * SECOND,
		.failures = 3},
	.history = 10,
	.drift = SETTINGS_HEAL,
	.mode = 0640,
	.uid = (uid_t)-1,
	.gid = (gid_t)-1,
};

/* ---- keys together ---- */

enum kind { PLAIN, BYTES, MERGED, SET };

static const struct {
	enum kind kind;
	const char *key, *sub;    /* a key of the config; one of that key's */
	const char *only, *never; /* the one valid, or invalid, value; else no value is valid */
} exclusions[] = {
	{BYTES, .key = "format", .only = "verbatim"},
	{BYTES, .key = "schema"},
	{BYTES, .key = "guard", .sub = "max_changes"},
	{BYTES, .key = "guard", .sub = "require"},
	{BYTES, .key = "guard", .sub = "allow_empty"},
	{BYTES, .key = "reload", .sub = "on"},
	{BYTES, .key = "mask"},
	{MERGED, .key = "type", .never = "bytes"},
	{MERGED, .key = "format", .never = "verbatim"},
	{SET, .key = "format", .only = "verbatim"},
	{SET, .key = "snapshot", .only = "false"},
	{SET, .key = "schema"},
	{SET, .key = "guard", .sub = "max_changes"},
	{SET, .key = "guard", .sub = "require"},
	{SET, .key = "mask"},
};

static void check_exclusions(struct loader *l, const struct node *config, enum kind kind)
{
	static const char *const what[] = {
		[BYTES] = "a config of type bytes is not looked into",
		[MERGED] = "several documents are merged and written again",
		[SET] = "a set of files (dir) is not merged into one document",
	};
	const struct node *n;

	for (size_t i = 0; i < COUNT(exclusions); i++) {
		const char *only = exclusions[i].only, *never = exclusions[i].never;

		if (exclusions[i].kind != kind || !(n = node_find(config, exclusions[i].key)))
			continue;
		if (exclusions[i].sub && !(n = node_find(n, exclusions[i].sub)))
			continue;
		if (!only && !never)
			loader_complain(
				l, walk_key_place(l, n), "%s: %s: remove it", n->key, what[kind]);
		else if (only && (!n->text || strcmp(n->text, only)))
			loader_complain(l, walk_place(l, n), "%s: %s: only %s is possible", n->key,
				what[kind], only);
		else if (never && n->text && !strcmp(n->text, never))
			loader_complain(l, walk_place(l, n), "%s: %s: %s is not possible", n->key,
				what[kind], never);
	}
}

static enum kind kind_of_config(const struct settings_config *c, const struct node *n)
{
	if (node_find(n, "dir"))
		return SET;
	if (c->layer_count > 1)
		return MERGED;
	return c->type == SETTINGS_TYPE_BYTES ? BYTES : PLAIN;
}

static void check_topic(struct loader *l, const struct node *n, struct settings_config *c)
{
	const char *why;

	if (c->topic || node_find(n, "topic"))
		return;
	why = settings_check_topic(n->key);
	if (why)
		loader_complain(l, walk_key_place(l, n),
			"the name, which is the topic when none is set, %s", why);
	c->topic = c->name;
}

static void check_whole_config(struct loader *l, const struct node *n, struct settings_config *c)
{
	const struct node *file = node_find(n, "file"), *dir = node_find(n, "dir"),
			  *history = node_find(n, "history"),
			  *schema_dir = node_find(n, "schema_dir");
	enum kind kind = kind_of_config(c, n);
	char shown[SETTINGS_SHOWN];

	check_topic(l, n, c);
	check_exclusions(l, n, kind);
	settings_layers_check(l, n);
	if (!file && !dir && (!c->snapshot || c->type == SETTINGS_TYPE_BYTES))
		loader_complain(l, walk_key_place(l, n),
			"config %s needs a file: without one, and without a snapshot, nothing "
			"would be written",
			settings_shown(n->key, shown));
	if (history && c->history < 2 && node_find(n, "probe"))
		loader_complain(l, walk_place(l, history),
			"history must be at least 2 beside probe, which brings back the version "
			"before");
	if (schema_dir && !c->schema)
		loader_complain(l, walk_key_place(l, schema_dir),
			"schema_dir has the schemas that another one refers to: name that one by "
			"schema, or remove it");
	if (c->schema)
		look_at_schema(l, node_find(n, "schema"), c->schema, c->schema_dir);
	if (c->type == SETTINGS_TYPE_BYTES || kind == SET)
		c->snapshot = false;
	if (kind == MERGED && c->format == SETTINGS_VERBATIM)
		c->format = SETTINGS_FORMAT_YAML;
	loader_note(l, &l->names, c->name, NULL, walk_key_place(l, n));
	if (file)
		loader_note(l, &l->paths, c->file, c->name, walk_place(l, file));
	if (dir)
		loader_note(l, &l->paths, c->dir, c->name, walk_place(l, dir));
}

/* ---- configs ---- */

static struct settings_config *append_config(struct loader *l)
{
	struct settings *s = l->s;
	struct settings_config **configs =
		loader_room(l, s->configs, s->config_count, sizeof(*configs));
	struct settings_config *c = configs ? loader_room(l, NULL, 0, sizeof(*c)) : NULL;

	if (configs)
		s->configs = configs;
	if (!c)
		return NULL;
	*c = config_defaults;
	return configs[s->config_count++] = c;
}

static void set_config(struct loader *l, const struct node *n)
{
	char shown[SETTINGS_SHOWN], where[MAX_WHERE];
	const char *why = settings_check_name(n->key);
	struct settings_config *c;

	settings_shown(n->key, shown);
	snprintf(where, sizeof(where), "config %s", shown);
	if (why)
		loader_complain(l, walk_key_place(l, n), "%s %s", where, why);
	if (n->type != NODE_MAP && n->type != NODE_NULL &&
		walk_find_key(&settings_config_keys, n->key)) {
		loader_complain(l, walk_key_place(l, n),
			"%s is a key of a config, not its name: put it below configs: NAME:",
			n->key);
		return;
	}
	if (!walk_expect(l, n, where, 1u << NODE_MAP, "a mapping with at least url (or from)"))
		return;
	c = append_config(l);
	if (!c)
		return;
	c->name = loader_copy(l, n->key);
	walk_mapping(l, n, KEYS(config_keys), where, NULL, c);
	check_whole_config(l, n, c);
	settings_print_node(l, n, &c->print);
}

void settings_set_configs(struct loader *l, const struct node *n, const struct key *k, void *object)
{
	(void)object;
	if (n->type != NODE_NULL && (n->type != NODE_MAP || n->first))
		l->config_missed = true;
	if (!walk_expect_map(l, n, k->name))
		return;
	for (n = n->first; n; n = n->next) {
		if (!walk_has_room(l, n, l->s->config_count, SETTINGS_MAX_CONFIGS, "configs"))
			break;
		set_config(l, n);
	}
}

void settings_config_free(struct settings_config *c)
{
	settings_safety_fini(c);
	settings_layers_fini(c);
	if (c->topic == c->name)
		c->topic = NULL;
	walk_free(KEYS(config_keys), c);
	free(c->name);
	free(c);
}
