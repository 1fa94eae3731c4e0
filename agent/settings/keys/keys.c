/*
 * The keys: one table per mapping, one row per key.
 *
 * Surprising: a new key is a new row and its member, unless its value is of a new kind.
 */
#include "settings/keys/keys.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "crypto/curve_keys.h"
#include "base/log.h"
#include "settings/keys/config.h"
#include "settings/keys/layers.h"
#include "settings/fingerprint.h"
#include "settings/places.h"
#include "settings/keys/report.h"
#include "settings/keys/safety.h"
#include "settings/keys/servers.h"
#include "settings/keys/verify.h"
#include "settings/form.h"
#include "settings/value.h"
#include "settings/walk.h"

#define MAX_WHERE (SETTINGS_SHOWN + 16) /* config "NAME" */

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
	{"level", walk_set_choice, MEMBER(settings, log_level), .choices = levels},
	{"format", walk_set_choice, MEMBER(settings, log_format), .choices = log_formats},
};

static void set_log(struct loader *l, const struct node *n, const struct key *k, void *object)
{
	if (walk_expect_map(l, n, k->name))
		walk_mapping(l, n, KEYS(log_keys), "log", l->log_seen, object);
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
		loader_complain(l, walk_key_place(l, n), "%s %s", name, why);
	if (!walk_expect(l, n, name, 1u << NODE_STRING, "a text") || why)
		return;
	why = settings_check_label(n->text);
	if (why) {
		loader_complain(l, walk_place(l, n), "the value of %s %s", name, why);
		return;
	}
	label = loader_room(l, s->labels, s->label_count, sizeof(*label));
	if (!label)
		return;
	s->labels = label;
	label += s->label_count++;
	label->name = loader_copy(l, n->key);
	label->value = loader_copy(l, n->text);
	loader_note(l, &l->labels, label->name, NULL, walk_key_place(l, n));
}

static void set_labels(struct loader *l, const struct node *n, const struct key *k, void *object)
{
	(void)object;
	if (!walk_expect_map(l, n, k->name))
		return;
	for (n = n->first; n; n = n->next) {
		if (!walk_has_room(l, n, l->s->label_count, SETTINGS_MAX_LABELS, "labels"))
			break;
		set_label(l, n);
	}
}

static void set_operators(struct loader *l, const struct node *n, const struct key *k, void *object)
{
	struct settings *s = object;
	const char *why;

	if (!walk_expect(l, n, k->name, 1u << NODE_STRING | 1u << NODE_INT, "a group"))
		return;
	why = settings_parse_group(n->text, &s->operators);
	if (why)
		walk_complain(l, n, k, why);
}

static const struct key agent_keys[] = {
	{"state_dir", walk_set_text, MEMBER(settings, state_dir), .check = settings_check_path},
	{"runtime_dir", walk_set_text, MEMBER(settings, runtime_dir),
		.check = settings_check_runtime_dir},
	{"log", set_log, .merges = true},
	{"listen", walk_set_text, MEMBER(settings, listen), .check = settings_check_address},
	{"listen_names", walk_set_texts, MEMBER(settings, listen_names), .max = 16,
		.check = settings_check_name},
	{"operators", .set = set_operators},
	{"labels", set_labels, .merges = true},
	{"watch_config", walk_set_bool, MEMBER(settings, watch_config)},
};

static void set_agent(struct loader *l, const struct node *n, const struct key *k, void *object)
{
	if (walk_expect_map(l, n, k->name))
		walk_mapping(l, n, KEYS(agent_keys), "agent", l->agent_seen, object);
}

static const struct key curve_keys[] = {
	{"server_key", walk_set_text, MEMBER(settings_push, server_key), .check = curve_check_key,
		.required = true, .hidden = true}, /* it may be a secret one by mistake */
	{"secret_key_file", walk_set_text, MEMBER(settings_push, secret_key_file),
		.check = settings_check_path, .look = LOOK_FILE, .hidden = true},
};

static const struct key push_keys[] = {
	{"endpoint", walk_set_text, MEMBER(settings_push, endpoint),
		.check = settings_check_endpoint, .required = true},
	{"heartbeat", walk_set_duration, MEMBER(settings_push, heartbeat_ms), .min = 100,
		.max = HOUR},
	{"curve", walk_set_mapping, .mapping = KEYS(curve_keys),
		.wanted = "a mapping with the server_key"},
	{"insecure", walk_set_bool, MEMBER(settings_push, insecure)},
};

/* Nobody between a publisher and the agent may suppress messages, or make it pull. */
static void check_plain_push(struct loader *l, const struct node *n, const struct settings_push *p)
{
	const struct node *curve = node_find(n, "curve"), *insecure = node_find(n, "insecure");
	char shown[SETTINGS_SHOWN];

	if (curve && p->insecure)
		loader_complain(l, walk_key_place(l, insecure),
			"insecure and curve exclude each other: remove one");
	else if (!curve && !p->insecure && p->endpoint && !curve_stays_here(p->endpoint))
		loader_complain(l, walk_place(l, node_find(n, "endpoint")),
			"endpoint: %s is not on this host, and plain text could be read and forged "
			"on the way: add curve: {server_key: ...} (pullet keygen makes the keys), "
			"or insecure: true",
			settings_shown(p->endpoint, shown));
}

static void set_push_item(struct loader *l, const struct node *n)
{
	static const char where[] = "a push item";
	struct settings *s = l->s;
	const struct node *endpoint;
	struct settings_push *p;

	if (!walk_expect(l, n, where, 1u << NODE_MAP, "a mapping with an endpoint"))
		return;
	p = loader_room(l, s->push, s->push_count, sizeof(*p));
	if (!p)
		return;
	s->push = p;
	p += s->push_count++;
	p->heartbeat_ms = 5 * SECOND;
	walk_mapping(l, n, KEYS(push_keys), where, NULL, p);
	check_plain_push(l, n, p);
	settings_print_node(l, n, &p->print);
	endpoint = node_find(n, "endpoint");
	if (endpoint)
		loader_note(l, &l->endpoints, p->endpoint, NULL, walk_place(l, endpoint));
}

static void set_push(struct loader *l, const struct node *n, const struct key *k, void *object)
{
	(void)object;
	if (!walk_expect(l, n, k->name, 1u << NODE_LIST | 1u << NODE_NULL,
		    "a list, each item with an endpoint"))
		return;
	for (n = n->first; n; n = n->next) {
		if (!walk_has_room(l, n, l->s->push_count, SETTINGS_MAX_PUSH, "push endpoints"))
			break;
		set_push_item(l, n);
	}
}

/* It was read before all others (load.c). */
static void set_env_file(struct loader *l, const struct node *n, const struct key *k, void *object)
{
	(void)object;
	if (l->file != l->files[0])
		loader_complain(l, walk_key_place(l, n),
			"%s belongs into %s: it is read before the files of conf.d", k->name,
			l->files[0]);
}

static const struct key root_keys[] = {
	{"env_file", .set = set_env_file},
	{"agent", set_agent, .merges = true},
	{"servers", settings_set_servers, .merges = true},
	{"push", set_push, .merges = true},
	{"configs", settings_set_configs, .merges = true},
	{"report", .set = settings_set_report},
};

/* Where a key belongs that stands elsewhere: the first counts. */
static const struct section sections[] = {
	{"agent", "agent:", KEYS(agent_keys)},
	{"log", "agent: log:", KEYS(log_keys)},
	{"configs", "configs: NAME:", &settings_config_keys},
	{"servers", "servers: NAME:", &settings_server_keys},
	{"tls", "servers: NAME: tls:", &settings_tls_keys},
	{"auth", "servers: NAME: auth:", &settings_auth_keys},
	{"basic", "servers: NAME: auth: basic:", &settings_basic_keys},
	{"access_key", "servers: NAME: auth: access_key:", &settings_access_keys},
	{"push", "push:, into an item", KEYS(push_keys)},
	{"curve", "push:, into an item's curve:", KEYS(curve_keys)},
	{"from", "configs: NAME: from:, into an item", &settings_from_keys},
	{"verify", "configs: NAME: verify:", &settings_verify_keys},
	{"guard", "configs: NAME: guard:", &settings_guard_keys},
	{"reload", "configs: NAME: reload:", &settings_reload_keys},
	{"probe", "configs: NAME: probe:", &settings_probe_keys},
	{"report", "report:", &settings_report_keys},
	{NULL, NULL, NULL},
};

void settings_keys_read(struct loader *l, const struct node *root)
{
	l->sections = sections;
	walk_mapping(l, root, KEYS(root_keys), "the file", l->root_seen, l->s);
}

/* ---- defaults and memory ---- */

static const struct settings defaults = {
	.operators = (gid_t)-1,
	.log_level = LOG_LEVEL_INFO,
};

struct settings *settings_keys_new(void)
{
	struct settings *s = malloc(sizeof(*s));

	if (s)
		*s = defaults;
	return s;
}

void settings_keys_complete(struct loader *l)
{
	struct settings *s = l->s;

	char path[PLACES_PATH];

	if (!s->state_dir)
		s->state_dir = loader_copy(l, places_state_dir(path));
	if (!s->runtime_dir)
		s->runtime_dir = loader_copy(l, places_runtime_dir(path));
}

void settings_free(struct settings *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->label_count; i++) {
		free(s->labels[i].name);
		free(s->labels[i].value);
	}
	for (size_t i = 0; i < s->push_count; i++)
		walk_free(KEYS(push_keys), &s->push[i]);
	for (size_t i = 0; i < s->config_count; i++)
		settings_config_free(s->configs[i]);
	for (size_t i = 0; i < s->server_count; i++)
		settings_server_free(s->servers[i]);
	settings_report_fini(&s->report);
	walk_free(KEYS(agent_keys), s);
	free(s->labels);
	free(s->push);
	free(s->servers);
	free(s->configs);
	free(s);
}
