/*
 * Any bytes as the agent's configuration: refused with readable sentences, or good settings.
 *
 * What is checked beside memory: the number of messages, that each is one printable line with the
 * file in front, and that settings which were accepted keep what settings.h promises.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "../../agent/settings.h"

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

static void check(const struct settings *s)
{
	demand(s->state_dir && s->runtime_dir);
	demand(s->config_count > 0 && s->config_count <= SETTINGS_MAX_CONFIGS);
	demand(s->push_count <= SETTINGS_MAX_PUSH && s->label_count <= SETTINGS_MAX_LABELS);
	for (size_t i = 0; i < s->push_count; i++)
		demand(s->push[i].endpoint && s->push[i].heartbeat_ms >= 100);
	for (size_t i = 0; i < s->server_count; i++) {
		const struct settings_server *v = &s->servers[i];

		demand(v->url_count >= 1 && v->url_count <= SETTINGS_MAX_URLS);
		demand(v->max_in_flight >= 1 && v->max_in_flight <= SETTINGS_MAX_IN_FLIGHT);
		demand(v->max_bytes >= 1 && v->header_count <= SETTINGS_MAX_HEADERS);
		demand(!(v->bearer_file && v->user) && !v->user == !v->password_file);
		for (size_t u = 0; u < v->url_count; u++)
			demand(!strncasecmp(v->urls[u], "http", 4));
		for (size_t h = 0; h < v->header_count; h++)
			demand(v->headers[h].name && !v->headers[h].value == !!v->headers[h].file);
	}
	for (size_t i = 0; i < s->config_count; i++) {
		const struct settings_config *c = &s->configs[i];

		demand(!c->url == !!c->from && c->path && c->server < s->server_count);
		demand(c->name && c->topic && *c->topic &&
			(c->file ? *c->file == '/' : c->snapshot));
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
