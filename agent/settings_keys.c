/*
 * The keys: one table per mapping, one row per key, and one function per kind of value.
 *
 * What would surprise: nothing stops at the first error. Each value is judged where it stands, what
 * is wrong is told and left out, and only the count at the end decides whether there are settings.
 * A new key is a new row.
 */
#include "settings_keys.h"

#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "log.h"
#include "settings_value.h"

#define MAX_WHERE (SETTINGS_SHOWN + 16) /* config "NAME" */
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

struct key;
/* Judges a value and stores it in object, at the row's offset. */
typedef void (*key_set)(struct loader *l, const struct node *n, const struct key *k, void *object);

struct choice {
	const char *name;
	uint64_t value;
};

struct key {
	const char *name;
	key_set set;
	size_t offset, size; /* of the member */
	uint64_t min, max;   /* of a number, a percentage or milliseconds */
	const char *(*check)(const char *text);
	const struct choice *choices; /* ends with a NULL name */
	bool required;
	bool merges; /* may stand in several files: they add to each other */
	bool hidden; /* the value is never shown */
};

struct mapping {
	const struct key *keys;
	size_t count;
};

/* ---- telling ---- */

static struct place place_of(const struct loader *l, const struct node *n)
{
	return (struct place){l->file, n->line, n->column};
}

static struct place place_of_key(const struct loader *l, const struct node *n)
{
	return n->key_line ? (struct place){l->file, n->key_line, n->key_column} : place_of(l, n);
}

/* "is not good", with the value in front of it unless that is secret or no text. */
static void complain_value(
	struct loader *l, const struct node *n, const struct key *k, const char *why)
{
	char shown[SETTINGS_SHOWN];

	if (k->hidden || !n->text)
		loader_complain(l, place_of(l, n), "%s %s", k->name, why);
	else
		loader_complain(l, place_of(l, n), "%s: %s %s", k->name,
			settings_shown(n->text, shown), why);
}

static bool expect(struct loader *l, const struct node *n, const char *name, unsigned types,
	const char *wanted)
{
	static const char *const is[] = {
		[NODE_NULL] = "empty",
		[NODE_BOOL] = "true or false",
		[NODE_INT] = "a number",
		[NODE_DOUBLE] = "a number with a fraction",
		[NODE_STRING] = "a text",
		[NODE_LIST] = "a list",
		[NODE_MAP] = "a mapping",
	};
	bool quotes = types == 1u << NODE_STRING && n->type >= NODE_BOOL && n->type < NODE_STRING;

	if (types & 1u << n->type)
		return true;
	loader_complain(l, place_of(l, n), "%s must be %s, but it is %s%s", name, wanted,
		is[n->type], quotes ? ": put it in quotes" : "");
	return false;
}

/* ---- one value ---- */

static void store(void *object, const struct key *k, uint64_t value)
{
	void *member = (char *)object + k->offset;

	switch (k->size) {
	case sizeof(bool):
		*(bool *)member = value != 0;
		break;
	case sizeof(unsigned): /* and the enums */
		*(unsigned *)member = (unsigned)value;
		break;
	case sizeof(uint64_t):
		*(uint64_t *)member = value;
		break;
	}
}

static void set_text(struct loader *l, const struct node *n, const struct key *k, void *object)
{
	char **member = (char **)(void *)((char *)object + k->offset);
	const char *why;

	if (!expect(l, n, k->name, 1u << NODE_STRING, "a text"))
		return;
	why = k->check(n->text);
	if (why)
		complain_value(l, n, k, why);
	else
		*member = loader_copy(l, n->text);
}

static void set_duration(struct loader *l, const struct node *n, const struct key *k, void *object)
{
	char low[24], high[24];
	uint64_t ms;

	if (!expect(l, n, k->name, 1u << NODE_STRING | 1u << NODE_INT, "a duration such as 30s"))
		return;
	if (n->type == NODE_INT || (*n->text && !n->text[strspn(n->text, "0123456789")]))
		complain_value(
			l, n, k, "has no unit: write it with ms, s, m, h or d behind the number");
	else if (settings_parse_duration(n->text, &ms))
		complain_value(l, n, k,
			"is not a duration: write a whole number and a unit, such as 500ms, 10s, "
			"5m, 1h or 2d");
	else if (ms < k->min || ms > k->max)
		loader_complain(l, place_of(l, n), "%s must be between %s and %s", k->name,
			settings_duration_text(k->min, low), settings_duration_text(k->max, high));
	else
		store(object, k, ms);
}

static void set_percent(struct loader *l, const struct node *n, const struct key *k, void *object)
{
	unsigned percent;
	const char *why;

	if (!expect(l, n, k->name, 1u << NODE_STRING | 1u << NODE_INT, "a percentage such as 10%"))
		return;
	why = settings_parse_percent(n->text, &percent);
	if (why)
		complain_value(l, n, k, why);
	else if (percent < k->min || percent > k->max)
		loader_complain(l, place_of(l, n), "%s must be between %u%% and %u%%", k->name,
			(unsigned)k->min, (unsigned)k->max);
	else
		store(object, k, percent);
}

static void set_number(struct loader *l, const struct node *n, const struct key *k, void *object)
{
	if (!expect(l, n, k->name, 1u << NODE_INT, "a whole number"))
		return;
	if (n->integer < (int64_t)k->min || n->integer > (int64_t)k->max)
		loader_complain(l, place_of(l, n), "%s must be between %u and %u", k->name,
			(unsigned)k->min, (unsigned)k->max);
	else
		store(object, k, (uint64_t)n->integer);
}

static void set_choice(struct loader *l, const struct node *n, const struct key *k, void *object)
{
	char wanted[128] = "one of";
	const struct choice *c = k->choices;

	for (; n->type == NODE_STRING && c->name; c++)
		if (!strcmp(c->name, n->text))
			break;
	if (n->type == NODE_STRING && c->name) {
		store(object, k, c->value);
		return;
	}
	for (c = k->choices; c->name; c++) {
		size_t len = strlen(wanted);

		snprintf(wanted + len, sizeof(wanted) - len, "%s %s", c == k->choices ? "" : ",",
			c->name);
	}
	loader_complain(l, place_of(l, n), "%s must be %s", k->name, wanted);
}

static void set_mode(struct loader *l, const struct node *n, const struct key *k, void *object)
{
	mode_t mode;
	const char *why;

	/* a plain 0640 is the number 640 in YAML 1.2: what counts is how it was written */
	if (!expect(l, n, k->name, 1u << NODE_STRING | 1u << NODE_INT, "a file mode like \"0640\""))
		return;
	why = settings_parse_mode(n->text, &mode);
	if (why)
		complain_value(l, n, k, why);
	else
		store(object, k, mode);
}

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

/* ---- mappings ---- */

static const struct key *nearest(const struct mapping *m, const char *word)
{
	const struct key *best = NULL;
	unsigned least = UINT_MAX;

	for (size_t i = 0; i < m->count; i++) {
		size_t a = strlen(word), b = strlen(m->keys[i].name);
		size_t limit = (a > b ? a : b) / 3;
		unsigned d = settings_distance(word, m->keys[i].name);

		if (d <= limit && d < least) {
			least = d;
			best = &m->keys[i];
		}
	}
	return best;
}

static void complain_unknown(
	struct loader *l, const struct node *n, const struct mapping *m, const char *where)
{
	const struct key *k = nearest(m, n->key);
	char shown[SETTINGS_SHOWN], known[256] = "";

	if (k) {
		loader_complain(l, place_of_key(l, n), "unknown key %s in %s: did you mean \"%s\"?",
			settings_shown(n->key, shown), where, k->name);
		return;
	}
	for (size_t i = 0; i < m->count; i++) {
		size_t len = strlen(known);

		snprintf(known + len, sizeof(known) - len, "%s%s", i ? ", " : "", m->keys[i].name);
	}
	loader_complain(l, place_of_key(l, n), "unknown key %s in %s: the keys there are %s",
		settings_shown(n->key, shown), where, known);
}

/* Each child by its row. seen has a place per row; it outlives the call where several files may set
 * the keys of one object. */
static void walk(struct loader *l, const struct node *map, const struct mapping *m,
	const char *where, struct place *seen, void *object)
{
	for (const struct node *n = map->first; n; n = n->next) {
		const struct key *k = m->keys;

		while (k < m->keys + m->count && strcmp(k->name, n->key))
			k++;
		if (k == m->keys + m->count) {
			complain_unknown(l, n, m, where);
			continue;
		}
		struct place *s = &seen[k - m->keys];

		if (s->file && (!k->merges || s->file == l->file)) {
			loader_complain(l, place_of_key(l, n), "%s is set twice: first at %s:%u:%u",
				k->name, s->file, s->line, s->column);
			if (!k->merges)
				continue;
		} else {
			*s = place_of_key(l, n);
		}
		k->set(l, n, k, object);
	}
	for (size_t i = 0; i < m->count; i++)
		if (m->keys[i].required && !seen[i].file)
			loader_complain(l, place_of_key(l, map), "%s has no %s, which it needs",
				where, m->keys[i].name);
}

/* An empty value is an empty mapping: all its keys may be commented out. */
static bool expect_map(struct loader *l, const struct node *n, const char *name)
{
	return expect(l, n, name, 1u << NODE_MAP | 1u << NODE_NULL, "a mapping");
}

#define MEMBER(type, member)                                                                       \
	.offset = offsetof(struct type, member), .size = sizeof(((struct type *)0)->member)

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
		walk(l, n, &mapping, "log", l->log_seen, object);
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

/* True while there is room; tells once that there is none. */
static bool has_room(
	struct loader *l, const struct node *n, size_t count, size_t max, const char *what)
{
	if (count >= max)
		loader_complain(l, place_of_key(l, n), "too many %s: at most %zu", what, max);
	return count < max;
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
		walk(l, n, &mapping, "agent", l->agent_seen, object);
}

#define SECOND UINT64_C(1000)
#define HOUR (3600 * SECOND)

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
	walk(l, n, &mapping, where, seen, p);
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

#define CONFIG(member) MEMBER(settings_config, member)
static const struct key config_keys[] = {
	{"url", set_text, CONFIG(url), .check = settings_check_url, .required = true,
		.hidden = true},
	{"type", set_choice, CONFIG(type), .choices = types},
	{"interval", set_duration, CONFIG(interval_ms), .min = 100, .max = 30 * 24 * HOUR},
	{"jitter", set_percent, CONFIG(jitter), .min = 0, .max = 50},
	{"timeout", set_duration, CONFIG(timeout_ms), .min = 100, .max = HOUR},
	{"backoff_bound", set_number, CONFIG(backoff_bound), .min = 1, .max = 1000},
	{"topic", set_text, CONFIG(topic), .check = settings_check_topic},
	{"push_spread", set_duration, CONFIG(push_spread_ms), .min = 0, .max = HOUR},
	{"file", set_text, CONFIG(file), .check = settings_check_path, .required = true},
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
	if (!expect(l, n, where, 1u << NODE_MAP, "a mapping with at least url and file"))
		return;
	c = loader_room(l, s->configs, s->config_count, sizeof(*c));
	if (!c)
		return;
	s->configs = c;
	c += s->config_count++;
	*c = config_defaults;
	c->name = loader_copy(l, n->key);
	walk(l, n, &mapping, where, seen, c);
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
	{"push", set_push, .merges = true},
	{"configs", set_configs, .merges = true},
};

_Static_assert(COUNT(root_keys) == LOADER_ROOT_KEYS && COUNT(agent_keys) == LOADER_AGENT_KEYS &&
		       COUNT(log_keys) == LOADER_LOG_KEYS,
	"a place per row");

void settings_keys_read(struct loader *l, const struct node *root)
{
	static const struct mapping mapping = {root_keys, COUNT(root_keys)};

	walk(l, root, &mapping, "the file", l->root_seen, l->s);
}
