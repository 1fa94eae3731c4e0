/*
 * The pulls of one run. Surprising: only the first part waits in the line of its server before the
 * run begins; the others stand in line within the run, and its time limit covers their waiting.
 */
#include "gather.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "credentials.h"
#include "push.h"
#include "source.h"

struct pull {
	struct gather_part part; /* what came */
	struct gather *gather;
	struct server *server;
	struct server_task task;
	struct source_item item;
	char *path; /* of a signature: on the heap */
	struct transfer *transfer;
	bool conditional;
	uint64_t shown; /* hash of the ETag it showed in this run */
};

struct gather {
	const struct gather_env *env;
	const struct settings_config *config;
	const struct gather_calls *calls;
	void *arg;
	const struct version *held;
	bool running, overloaded;
	size_t left; /* parts that have not come yet */
	size_t count;
	struct pull pulls[];
};

static const struct part *held_part(const struct pull *p)
{
	const struct gather *g = p->gather;

	return g->held && g->held->generation && g->held->part_count == g->count
		       ? &g->held->parts[p - g->pulls]
		       : NULL;
}

/* ---- the end ---- */

static void drop(struct pull *p)
{
	if (p->task.waiting)
		server_withdraw(p->server, &p->task);
	if (!p->transfer)
		return;
	transport_cancel(p->transfer);
	p->transfer = NULL;
	server_dropped(p->server);
}

/* The run is over: whatever still runs is not wanted. */
static void end(struct gather *g, enum gather_outcome outcome, const char *why)
{
	g->running = false;
	for (size_t i = 0; i < g->count; i++)
		drop(&g->pulls[i]);
	g->calls->ended(g->arg, outcome, why);
}

static void fail(struct pull *p, enum gather_outcome outcome, const char *why)
{
	char named[FILE_WHY];

	if (p->gather->count > 1) {
		snprintf(named, sizeof(named), "%.100s: %.270s", p->item.path, why);
		why = named;
	}
	end(p->gather, outcome, why);
}

static void settled(struct gather *g)
{
	enum gather_outcome outcome = GATHER_SAME;

	if (--g->left)
		return;
	for (size_t i = 0; i < g->count; i++) {
		const struct gather_part *part = &g->pulls[i].part;
		const struct part *held = held_part(&g->pulls[i]);

		if (part->state == GATHER_PULLED ||
			(part->state == GATHER_ABSENT && !(held && held->absent)))
			outcome = GATHER_NEW;
	}
	end(g, outcome, "");
}

/* ---- one answer ---- */

static int take(struct pull *p, enum settings_type type, const struct transport_response *response)
{
	static const char *const names[] = {"yaml", "yaml", "json", "bytes"};
	struct gather_part *part = &p->part;
	char url[1024];
	int r;

	snprintf(url, sizeof(url), "%s%s", server_url(p->server, &p->task), p->item.path);
	r = part_init(&part->facts, url, response->etag, response->last_modified,
		part->signature ? "minisig" : names[type]);
	if (r == 0)
		r = buffer_append(&part->body, response->body.data, response->body.len);
	if (r)
		return r;
	part->facts.len = part->body.len;
	if (response->digest[0] && !response->content_encoding[0]) {
		part->digest = strdup(response->digest);
		if (!part->digest)
			return -ENOMEM;
	}
	part->state = GATHER_PULLED;
	return 0;
}

static int take_absence(struct pull *p)
{
	int r = part_init(&p->part.facts, "", "", "", p->part.signature ? "minisig" : "yaml");

	p->part.facts.absent = true;
	p->part.state = GATHER_ABSENT;
	return r;
}

static void answered(void *arg, const struct transport_response *response)
{
	struct pull *p = arg;
	struct gather *g = p->gather;
	enum settings_type type = SETTINGS_TYPE_YAML;
	const struct part *held = held_part(p);
	char why[FILE_WHY] = "";
	int r = 0;

	p->transfer = NULL;
	if (server_ended(p->server, &p->task, response)) {
		server_retry(p->server, &p->task); /* within the same time limit */
		return;
	}
	g->overloaded |= response->status == 429 || response->status == 503;
	switch (source_judge(&p->item, response, p->conditional, &type, why)) {
	case SOURCE_NEW:
		p->shown = push_version_hash(response->etag);
		r = take(p, type, response);
		break;
	case SOURCE_SAME:
		p->shown = push_version_hash(held->etag);
		p->part.state = GATHER_HELD;
		break;
	case SOURCE_ABSENT:
		r = take_absence(p);
		break;
	case SOURCE_TIMEOUT:
		fail(p, GATHER_TIMEOUT, why);
		return;
	case SOURCE_FAILED:
		fail(p, GATHER_FAILED, why);
		return;
	}
	if (r)
		fail(p, GATHER_FAILED, "out of memory");
	else
		settled(g);
}

/* ---- requests ---- */

static int start_transfer(struct pull *p, char why[FILE_WHY])
{
	const struct settings_server *server = server_settings(p->server);
	const struct gather_env *env = p->gather->env;
	struct source_request request;
	struct credentials credentials;
	int r = credentials_read(env->sys, server, &credentials, why);

	if (r)
		return r;
	source_build(&p->item, server, server_url(p->server, &p->task), held_part(p), &credentials,
		&request);
	if (!request.request.tls.ca)
		request.request.tls.ca = env->ca_file;
	p->conditional = request.conditional;
	r = transport_start(env->transport, &request.request, answered, p, &p->transfer);
	if (r)
		snprintf(why, FILE_WHY, "the request cannot be made: %s", strerror(-r));
	credentials_fini(&credentials);
	return r;
}

static void begin(struct gather *g)
{
	gather_release(g);
	g->running = true;
	g->overloaded = false;
	g->left = g->count;
	for (size_t i = 0; i < g->count; i++)
		g->pulls[i].shown = 0;
}

/* The server has a free slot: for a new run, for the next part of one, or at another address. */
static bool slot_free(void *arg)
{
	struct pull *p = arg;
	struct gather *g = p->gather;
	bool first = !g->running;
	char why[FILE_WHY] = "";

	if (first && p != g->pulls)
		return false; /* its run is over */
	if (first) {
		if (!g->calls->begin(g->arg))
			return false;
		begin(g);
	}
	if (start_transfer(p, why)) {
		fail(p, GATHER_REJECTED, why);
		return false;
	}
	for (size_t i = 1; first && g->running && i < g->count; i++)
		server_submit(g->pulls[i].server, &g->pulls[i].task, UINT64_MAX);
	return true;
}

static void slot_lost(void *arg, const char *why)
{
	struct pull *p = arg;

	if (p->gather->running)
		fail(p, GATHER_REJECTED, why);
	else
		p->gather->calls->lost(p->gather->arg, why);
}

/* ---- outside ---- */

/* "/web.yaml?x=1" to "/web.yaml.minisig?x=1". */
static char *signature_path(const char *path)
{
	size_t stem = strcspn(path, "?");
	char *made;

	return asprintf(&made, "%.*s.minisig%s", (int)stem, path, path + stem) < 0 ? NULL : made;
}

static bool set_up(struct gather *g, size_t i, size_t layer, bool signature)
{
	const struct settings_layer *l = &g->config->layers[layer];
	struct pull *p = &g->pulls[i];

	p->gather = g;
	p->part.layer = layer;
	p->part.signature = signature;
	p->server = g->env->servers[l->server];
	p->task = (struct server_task){.begin = slot_free, .lost = slot_lost, .arg = p};
	p->path = signature ? signature_path(l->path) : NULL;
	p->item = (struct source_item){
		.path = signature ? p->path : l->path,
		.type = signature ? SETTINGS_TYPE_BYTES : l->type,
		.optional = signature || l->optional, /* who judges says that there is none */
		.timeout_ms = g->config->timeout_ms,
	};
	buffer_init(&p->part.body, server_settings(p->server)->max_bytes);
	return p->item.path;
}

struct gather *gather_new(const struct gather_env *env, const struct settings_config *config,
	const struct gather_calls *calls, void *arg)
{
	size_t each = config->verify.public_keys ? 2 : 1, count = config->layer_count * each;
	struct gather *g = calloc(1, sizeof(*g) + count * sizeof(g->pulls[0]));
	bool good = g;

	if (g) {
		g->env = env;
		g->config = config;
		g->calls = calls;
		g->arg = arg;
		g->count = count;
	}
	for (size_t i = 0; good && i < count; i++)
		good = set_up(g, i, i / each, i % each);
	if (good)
		return g;
	gather_free(g);
	return NULL;
}

void gather_free(struct gather *g)
{
	if (!g)
		return;
	for (size_t i = 0; i < g->count; i++) {
		struct pull *p = &g->pulls[i];

		if (p->server)
			drop(p);
		free(p->path);
	}
	gather_release(g);
	free(g);
}

void gather_submit(struct gather *g, uint64_t expires_ms)
{
	server_submit(g->pulls[0].server, &g->pulls[0].task, expires_ms);
}

void gather_withdraw(struct gather *g)
{
	server_withdraw(g->pulls[0].server, &g->pulls[0].task);
}

bool gather_waiting(const struct gather *g)
{
	return !g->running && g->pulls[0].task.waiting;
}

void gather_hold(struct gather *g, const struct version *held)
{
	g->held = held;
}

bool gather_give_up(struct gather *g)
{
	bool ready = false;

	for (size_t i = 0; i < g->count; i++) {
		struct pull *p = &g->pulls[i];

		if (p->transfer) {
			transport_cancel(p->transfer);
			p->transfer = NULL;
			ready |= server_ended(p->server, &p->task, NULL);
		}
		drop(p);
	}
	g->running = false;
	return ready;
}

bool gather_overloaded(const struct gather *g)
{
	return g->overloaded;
}

void gather_lift(struct gather *g)
{
	for (size_t i = 0; i < g->count; i++)
		if (i == 0 || g->pulls[i].server != g->pulls[i - 1].server)
			server_lift(g->pulls[i].server);
}

const struct gather_part *gather_part(const struct gather *g, size_t i)
{
	return &g->pulls[i].part;
}

size_t gather_count(const struct gather *g)
{
	return g->count;
}

bool gather_showed(const struct gather *g)
{
	for (size_t i = 0; i < g->count; i++)
		if (g->left == 0 && g->pulls[i].shown)
			return true;
	return false;
}

bool gather_shows(const struct gather *g, uint64_t version_hash)
{
	for (size_t i = 0; i < g->count; i++)
		if (g->pulls[i].shown == version_hash)
			return true;
	return false;
}

void gather_release(struct gather *g)
{
	for (size_t i = 0; i < g->count; i++) {
		struct gather_part *part = &g->pulls[i].part;

		buffer_fini(&part->body);
		part_fini(&part->facts);
		free(part->digest);
		part->digest = NULL;
		part->state = GATHER_PENDING;
	}
}

struct server *gather_server(const struct gather *g)
{
	return g->pulls[0].server;
}

void gather_url(const struct gather *g, char ret_url[1024])
{
	const struct pull *p = &g->pulls[0];

	snprintf(ret_url, 1024, "%.1000s%s", server_url(p->server, &p->task), p->item.path);
}

bool gather_covers(const struct gather *g, const struct version *v)
{
	if (v->part_count != g->count)
		return false;
	for (size_t i = 0; i < g->count; i++)
		if (!v->parts[i].absent &&
			server_find(g->pulls[i].server, v->parts[i].url, g->pulls[i].item.path) < 0)
			return false;
	return true;
}
