/*
 * Any bytes as the agent's configuration: refused with readable sentences, or good settings.
 *
 * What is checked beside memory: the number of messages, that each is one printable line with the
 * file in front, and that settings which were accepted keep what agent/settings/settings.h
 * promises.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "settings/settings.h"

#define NAME "fuzz.yaml"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void demand(bool what)
{
	if (!what)
		abort();
}

static void count(void *arg, const char *message)
{
	size_t *told = arg;

	++*told;
	demand(!strncmp(message, NAME ":", strlen(NAME) + 1) && message[strlen(NAME) + 1]);
	for (; *message; message++)
		demand((unsigned char)*message >= 0x20 && *message != 0x7f);
}

/* 1 to max texts; a command's first is a path. */
static void check_texts(char *const *texts, size_t max, char first)
{
	size_t n = 0;

	while (texts[n])
		n++;
	demand(n >= 1 && n <= max && (!first || texts[0][0] == first));
}

/* What a document's server knows of its path. */
static void check_path(
	const struct settings *s, const struct settings_config *c, const struct settings_layer *v)
{
	const struct settings_server *server;
	size_t len;

	demand(v->path && v->server < s->server_count);
	server = s->servers[v->server];
	len = strlen(v->path);
	for (size_t i = 0; i < server->url_count; i++)
		demand(strlen(server->urls[i]) + len < 1024);
	if (server->kind == SETTINGS_HTTP)
		return;
	demand(v->path[0] == '/' && len > 1 && !strstr(v->path, "//"));
	demand(v->path[len - 1] != '/' || server->kind == SETTINGS_ETCD ||
		server->kind == SETTINGS_CONSUL);
	if (c->verify.public_keys && v != c->rollout)
		demand(v->path[len - 1] != '/' && server->kind != SETTINGS_APOLLO &&
			server->kind != SETTINGS_SPRING);
}

static void check_layers(const struct settings *s, const struct settings_config *c)
{
	demand(c->layer_count >= 1 && c->layer_count <= SETTINGS_MAX_LAYERS);
	demand(!c->url == !!c->layers->from && (!c->url || c->layer_count == 1));
	demand(c->layer_count == 1 || c->dir || c->format != SETTINGS_VERBATIM);
	demand(c->layer_count > 1 || !c->layers->optional);
	for (size_t i = 0; i < c->layer_count; i++) {
		const struct settings_layer *v = &c->layers[i];

		check_path(s, c, v);
		demand(!v->as == !c->dir);
		demand(!c->dir || (v->type != SETTINGS_TYPE_AUTO && !strchr(v->as, '/')));
		demand(c->layer_count == 1 || c->dir || v->type != SETTINGS_TYPE_BYTES);
		for (size_t k = 0; c->dir && k < i; k++)
			demand(strcmp(c->layers[k].as, v->as) != 0);
	}
}

static void check_asides(const struct settings *s, const struct settings_config *c)
{
	const struct settings_layer *const asides[] = {c->bootstrap, c->rollout};

	demand(!(c->bootstrap && c->dir));
	for (size_t i = 0; i < 2; i++) {
		if (!asides[i])
			continue;
		demand(asides[i]->from && asides[i]->optional == (i == 1) && !asides[i]->as);
		check_path(s, c, asides[i]);
	}
}

static void check_report(const struct settings *s)
{
	const struct settings_report *r = &s->report;
	size_t len = r->prefix ? strlen(r->prefix) : 0;

	if (!r->from)
		return;
	demand(r->server < s->server_count && s->servers[r->server]->kind == SETTINGS_ETCD);
	demand(len > 1 && r->prefix[0] == '/' && r->prefix[len - 1] == '/');
	demand(r->ttl_ms >= 5000 && r->ttl_ms <= 3600000);
}

static void check_kind(const struct settings_server *v)
{
	const char *scheme = v->kind == SETTINGS_FILE ? "file://" : "http";
	const unsigned kind = 1u << v->kind;

	for (size_t u = 0; u < v->url_count; u++)
		demand(!strncasecmp(v->urls[u], scheme, strlen(scheme)));
	demand(v->api == 1 || (v->api == 3 && v->kind == SETTINGS_NACOS && !v->watch));
	demand(!v->region || v->kind == SETTINGS_S3);
	demand(!v->namespace || v->kind == SETTINGS_NACOS);
	demand(!v->datacenter || kind & (1u << SETTINGS_CONSUL | 1u << SETTINGS_APOLLO));
	demand(!v->watch ||
		!(kind & (1u << SETTINGS_HTTP | 1u << SETTINGS_S3 | 1u << SETTINGS_SPRING)));
	demand(!v->secret_file || kind & (1u << SETTINGS_S3 | 1u << SETTINGS_APOLLO));
	demand(!v->secret_file || !v->access_key == (v->kind == SETTINGS_APOLLO));
	demand(v->secret_file || !(v->access_key || v->session_token_file));
	demand(v->kind != SETTINGS_FILE ||
		!(v->user || v->bearer_file || v->header_count || v->ca));
}

static void check_reload(const struct settings_reload *r)
{
	demand(r->rule_count <= SETTINGS_MAX_RULES && r->debounce_ms <= r->debounce_max_ms);
	for (size_t i = 0; i < r->rule_count; i++) {
		const struct settings_rule *v = &r->rules[i];

		demand(v->keys || i + 1 == r->rule_count);
		if (v->keys)
			check_texts(v->keys, SETTINGS_MAX_PATTERNS, 0);
		demand(!v->argv == (v->kind != SETTINGS_RUN));
		demand(!v->pidfile == (v->kind != SETTINGS_SIGNAL));
		if (v->argv)
			check_texts(v->argv, SETTINGS_MAX_ARGV, '/');
		demand(!v->pidfile || (v->signal >= 1 && v->signal <= 31));
	}
}

static void check_change(const struct settings_config *c)
{
	char *const *commands[] = {c->format_run.argv, c->check.argv, c->probe.argv};
	char *const *lists[] = {c->verify.public_keys, c->guard.require, c->mask};
	const struct settings_probe *p = &c->probe;

	for (size_t i = 0; i < 3; i++) {
		if (commands[i])
			check_texts(commands[i], SETTINGS_MAX_ARGV, '/');
		if (lists[i])
			check_texts(lists[i], SETTINGS_MAX_PATTERNS, 0);
	}
	demand(!c->format_run.argv == (c->format != SETTINGS_FORMAT_RUN));
	demand(c->guard.max_shrink <= 100 && (!c->schema || *c->schema == '/'));
	demand(!(p->argv && p->url) && (p->failures - 1) * p->every_ms <= p->for_ms);
	demand(c->history >= (p->argv || p->url ? 2 : 1) && c->history <= SETTINGS_MAX_HISTORY);
	check_reload(&c->reload);
}

static void check(const struct settings *s)
{
	demand(s->state_dir && s->runtime_dir);
	demand(s->config_count > 0 && s->config_count <= SETTINGS_MAX_CONFIGS);
	demand(s->push_count <= SETTINGS_MAX_PUSH && s->label_count <= SETTINGS_MAX_LABELS);
	for (size_t i = 0; i < s->push_count; i++)
		demand(s->push[i].endpoint && s->push[i].heartbeat_ms >= 100);
	for (size_t i = 0; i < s->server_count; i++) {
		const struct settings_server *v = s->servers[i];

		demand(v->url_count >= 1 && v->url_count <= SETTINGS_MAX_URLS);
		demand(v->max_in_flight >= 1 && v->max_in_flight <= SETTINGS_MAX_IN_FLIGHT);
		demand(v->max_bytes >= 1 && v->header_count <= SETTINGS_MAX_HEADERS);
		demand(!(v->bearer_file && v->user) && !v->user == !v->password_file);
		check_kind(v);
		for (size_t h = 0; h < v->header_count; h++)
			demand(v->headers[h].name && !v->headers[h].value == !!v->headers[h].file);
	}
	check_report(s);
	for (size_t i = 0; i < s->config_count; i++) {
		const struct settings_config *c = s->configs[i];

		check_layers(s, c);
		check_asides(s, c);
		check_change(c);
		demand(c->name && c->topic && *c->topic && !(c->file && c->dir));
		demand(c->file   ? *c->file == '/'
			: c->dir ? *c->dir == '/' && !c->snapshot
				 : c->snapshot);
		demand(c->interval_ms >= 100 && c->timeout_ms >= 100 && c->backoff_bound >= 1);
		demand(c->jitter <= 50 && !(c->mode & 022) && c->mode & 0400);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct settings *s = NULL;
	size_t told = 0;
	int errors = settings_parse(NAME, (const char *)data, size, count, &told, &s);

	demand(errors >= 0 && (errors == 0) == (s != NULL));
	demand(told == (errors > 1000 ? 1001 : (size_t)errors));
	if (s)
		check(s);
	settings_free(s);
	return 0;
}
