/*
 * The keys: one table per mapping, one row per key.
 *
 * What would surprise: a new key is a new row and nothing else, unless its value is of a new kind.
 */
#include "settings_keys.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "log.h"
#include "settings_servers.h"
#include "settings_value.h"
#include "settings_walk.h"

#define MAX_WHERE (SETTINGS_SHOWN + 16) /* config "NAME" */

static void set_owner(struct loader *l, const struct node *n, const struct key *k, void *object)
{
	struct settings_config *c = object;
	const char *why;

	if (!expect(l, n, k->name, 1u << NODE_STRING | 1u << NODE_INT, "user:group"))
		return;
	why = settings_parse_owner(n->text, &c->uid, &c->gid);
	if (why)
		complain_value(l, n, k, why);
}

static const struct choice levels[] = {
	{"err", LOG_LEVEL_ERR},
	{"warn", LOG_LEVEL_WARN},
	{"info", LOG_LEVEL_INFO},
	{"debug", LOG_LEVEL_DEBUG},
	{NULL, 0},
};
static const struct choice log_formats[] = {
	{"text", LOG_FORMAT_TEXT},
	{"json", LOG_FORMAT_JSON},
	{NULL, 0},
};
static const struct key log_keys[] = {
	{"level", set_choice, MEMBER(settings, log_level), .choices = levels},
	{"format", set_choice, MEMBER(settings, log_format), .choices = log_formats},
};

static void set_log(struct loader *l, const struct node *n, const struct key *k, void *object)
{
	static const struct mapping mapping = {log_keys, COUNT(log_keys)};

	if (expect_map(l, n, k->name))
		settings_walk(l, n, &mapping, "log", l->log_seen, object);
}

static void set_label(struct loader *l, const struct node *n)
{
	struct settings *s = l->s;
	char shown[SETTINGS_SHOWN], name[MAX_WHERE];
	struct settings_label *label;
	const char *why = settings_check_name(n->key);

	settings_shown(n->key, shown);
	snprintf(name, sizeof(name), "label %s", shown);
	if (why)
		loader_complain(l, place_of_key(l, n), "%s %s", name, why);
	if (!expect(l, n, name, 1u << NODE_STRING, "a text") || why)
		return;
	why = settings_check_label(n->text);
	if (why) {
		loader_complain(l, place_of(l, n), "the value of %s %s", name, why);
		return;
	}
	label = loader_room(l, s->labels, s->label_count, sizeof(*label));
	if (!label)
		return;
	s->labels = label;
	label += s->label_count++;
	label->name = loader_copy(l, n->key);
	label->value = loader_copy(l, n->text);
	loader_note(l, &l->labels, label->name, NULL, place_of_key(l, n));
}

static void set_labels(struct loader *l, const struct node *n, const struct key *k, void *object)
{
	(void)object;
	if (!expect_map(l, n, k->name))
		return;
	for (n = n->first; n; n = n->next) {
		if (!has_room(l, n, l->s->label_count, SETTINGS_MAX_LABELS, "labels"))
			break;
		set_label(l, n);
	}
}

static const struct key agent_keys[] = {
	{"state_dir", set_text, MEMBER(settings, state_dir), .check = settings_check_path},
	{"runtime_dir", set_text, MEMBER(settings, runtime_dir),
		.check = settings_check_runtime_dir},
	{"log", set_log, .merges = true},
	{"listen", set_text, MEMBER(settings, listen), .check = settings_check_address},
	{"labels", set_labels, .merges = true},
};

static void set_agent(struct loader *l, const struct node *n, const struct key *k, void *object)
{
	static const struct mapping mapping = {agent_keys, COUNT(agent_keys)};

	if (expect_map(l, n, k->name))
		settings_walk(l, n, &mapping, "agent", l->agent_seen, object);
}

static const struct key push_keys[] = {
	{"endpoint", set_text, MEMBER(settings_push, endpoint), .check = settings_check_endpoint,
		.required = true},
	{"heartbeat", set_duration, MEMBER(settings_push, heartbeat_ms), .min = 100, .max = HOUR},
};

static void set_push_item(struct loader *l, const struct node *n)
{
	static const struct mapping mapping = {push_keys, COUNT(push_keys)};
	static const char where[] = "a push item";
	struct place seen[COUNT(push_keys)] = {{0}};
	struct settings *s = l->s;
	const struct node *endpoint;
	struct settings_push *p;

	if (!expect(l, n, where, 1u << NODE_MAP, "a mapping with an endpoint"))
		return;
	p = loader_room(l, s->push, s->push_count, sizeof(*p));
	if (!p)
		return;
	s->push = p;
	p += s->push_count++;
	p->heartbeat_ms = 5 * SECOND;
	settings_walk(l, n, &mapping, where, seen, p);
	endpoint = node_find(n, "endpoint");
	if (endpoint)
		loader_note(l, &l->endpoints, p->endpoint, NULL, place_of(l, endpoint));
}

static void set_push(struct loader *l, const struct node *n, const struct key *k, void *object)
{
	(void)object;
	if (!expect(l, n, k->name, 1u << NODE_LIST | 1u << NODE_NULL,
		    "a list, each item with an endpoint"))
		return;
	for (n = n->first; n; n = n->next) {
		if (!has_room(l, n, l->s->push_count, SETTINGS_MAX_PUSH, "push endpoints"))
			break;
		set_push_item(l, n);
	}
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
	{NULL, 0},
};
static const struct choice durabilities[] = {{"normal", false}, {"strict", true}, {NULL, 0}};

static const struct choice yes_or_no[] = {{"true", true}, {"false", false}, {NULL, 0}};

#define CONFIG(member) MEMBER(settings_config, member)
static const struct key config_keys[] = {
	{"url", set_text, CONFIG(url), .check = settings_check_url, .hidden = true},
	{"from", .set = settings_set_from},
	{"type", set_choice, CONFIG(type), .choices = types},
	{"interval", set_duration, CONFIG(interval_ms), .min = 100, .max = 30 * 24 * HOUR},
	{"jitter", set_percent, CONFIG(jitter), .min = 0, .max = 50},
	{"timeout", set_duration, CONFIG(timeout_ms), .min = 100, .max = HOUR},
	{"backoff_bound", set_number, CONFIG(backoff_bound), .min = 1, .max = 1000},
	{"topic", set_text, CONFIG(topic), .check = settings_check_topic},
	{"push_spread", set_duration, CONFIG(push_spread_ms), .min = 0, .max = HOUR},
	{"file", set_text, CONFIG(file), .check = settings_check_path},
	{"snapshot", set_choice, CONFIG(snapshot), .choices = yes_or_no},
	{"format", set_choice, CONFIG(format), .choices = formats},
	{"mode", set_mode, CONFIG(mode)},
	{"owner", .set = set_owner},
	{"durability", set_choice, CONFIG(strict), .choices = durabilities},
};

static const struct settings_config config_defaults = {
	.type = SETTINGS_TYPE_AUTO,
	.interval_ms = 30 * SECOND,
	.jitter = 10,
	.timeout_ms = 10 * SECOND,
	.backoff_bound = 10,
	.snapshot = true,
	.format = SETTINGS_VERBATIM,
	.mode = 0640,
	.uid = (uid_t)-1,
	.gid = (gid_t)-1,
};

/* What no single value shows. */
static void check_config(struct loader *l, const struct node *n, struct settings_config *c)
{
	const struct node *format = node_find(n, "format"), *file = node_find(n, "file");
	const char *why;

	if (!c->topic && !node_find(n, "topic")) {
		why = settings_check_topic(n->key);
		if (why)
			loader_complain(l, place_of_key(l, n),
				"the name, which is the topic when none is set, %s", why);
		c->topic = loader_copy(l, n->key);
	}
	if (format && c->type == SETTINGS_TYPE_BYTES && c->format != SETTINGS_VERBATIM)
		loader_complain(l, place_of(l, format),
			"format: a config of type bytes is not looked into: only verbatim is "
			"possible");
	if (!node_find(n, "url") == !node_find(n, "from"))
		loader_complain(l, place_of_key(l, n),
			"config \"%s\" needs either url or from, and has %s",
			c->name ? c->name : "", node_find(n, "url") ? "both" : "neither");
	if (!file && (!c->snapshot || c->type == SETTINGS_TYPE_BYTES))
		loader_complain(l, place_of_key(l, n),
			"config \"%s\" needs a file: without one, and without a snapshot, nothing "
			"would be "
			"written",
			c->name ? c->name : "");
	if (c->type == SETTINGS_TYPE_BYTES)
		c->snapshot = false;
	loader_note(l, &l->names, c->name, NULL, place_of_key(l, n));
	if (file)
		loader_note(l, &l->paths, c->file, c->name, place_of(l, file));
}

static void set_config(struct loader *l, const struct node *n)
{
	static const struct mapping mapping = {config_keys, COUNT(config_keys)};
	struct place seen[COUNT(config_keys)] = {{0}};
	struct settings *s = l->s;
	char shown[SETTINGS_SHOWN], where[MAX_WHERE];
	const char *why = settings_check_name(n->key);
	struct settings_config *c;

	settings_shown(n->key, shown);
	snprintf(where, sizeof(where), "config %s", shown);
	if (why)
		loader_complain(l, place_of_key(l, n), "%s %s", where, why);
	if (!expect(l, n, where, 1u << NODE_MAP, "a mapping with at least url (or from)"))
		return;
	c = loader_room(l, s->configs, s->config_count, sizeof(*c));
	if (!c)
		return;
	s->configs = c;
	c += s->config_count++;
	*c = config_defaults;
	c->name = loader_copy(l, n->key);
	settings_walk(l, n, &mapping, where, seen, c);
	check_config(l, n, c);
}

static void set_configs(struct loader *l, const struct node *n, const struct key *k, void *object)
{
	(void)object;
	if (n->type != NODE_NULL && (n->type != NODE_MAP || n->first))
		l->config_missed = true;
	if (!expect_map(l, n, k->name))
		return;
	for (n = n->first; n; n = n->next) {
		if (!has_room(l, n, l->s->config_count, SETTINGS_MAX_CONFIGS, "configs"))
			break;
		set_config(l, n);
	}
}

static const struct key root_keys[] = {
	{"agent", set_agent, .merges = true},
	{"servers", settings_set_servers, .merges = true},
	{"push", set_push, .merges = true},
	{"configs", set_configs, .merges = true},
};

_Static_assert(COUNT(root_keys) == LOADER_ROOT_KEYS && COUNT(agent_keys) == LOADER_AGENT_KEYS &&
		       COUNT(log_keys) == LOADER_LOG_KEYS,
	"a place per row");

void settings_keys_read(struct loader *l, const struct node *root)
{
	static const struct mapping mapping = {root_keys, COUNT(root_keys)};

	settings_walk(l, root, &mapping, "the file", l->root_seen, l->s);
}
