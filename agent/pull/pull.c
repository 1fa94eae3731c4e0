/*
 * The pulls of one run. Surprising: only the first part waits in the line of its server before the
 * run begins; the others stand in line within the run, and its time limit covers their waiting.
 */
#include "pull/pull.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/etag.h"
#include "pull/reading.h"

struct doctor_pull {
	struct pull_part part; /* what came */
	struct pull *gather;
	struct upstream *server;
	struct upstream_task task;
	const char *path;
	char *made_path; /* of a signature */
	enum settings_type type;
	bool optional;
	struct exchange *exchange;
	char *seen;     /* of a watched document: the version that the server showed last */
	uint64_t shown; /* hash of the ETag it showed in this run */
};

struct pull {
	const struct pull_env *env;
	const struct settings_config *config;
	const struct pull_calls *calls;
	void *arg;
	const struct version *held;
	bool running, overloaded, forced;
	enum kind_cause cause;
	size_t left; /* parts that have not come yet */
	size_t count;
	struct doctor_pull pulls[];
};

static const struct part *held_part(const struct doctor_pull *p)
{
	const struct pull *g = p->gather;

	return g->held && g->held->generation && g->held->part_count == g->count
		       ? &g->held->parts[p - g->pulls]
		       : NULL;
}

/* ---- the end ---- */

static void drop(struct doctor_pull *p)
{
	struct exchange *x = p->exchange;

	if (p->task.waiting)
		upstream_withdraw(p->server, &p->task);
	if (!x)
		return;
	p->exchange = NULL;
	exchange_cancel(x);
	upstream_dropped(p->server);
}

/* The run is over: whatever still runs is not wanted. */
static void end(struct pull *g, enum pull_outcome outcome, const char *why)
{
	g->running = false;
	for (size_t i = 0; i < g->count; i++)
		drop(&g->pulls[i]);
	g->calls->ended(g->arg, outcome, why);
}

static void fail(
	struct doctor_pull *p, enum pull_outcome outcome, enum kind_cause cause, const char *why)
{
	char named[FILE_WHY];

	p->gather->cause = cause;
	if (p->gather->count > 1) {
		snprintf(named, sizeof(named), "%.100s: %.400s", LOG_URL(p->path), why);
		why = named;
	}
	end(p->gather, outcome, why);
}

static void settled(struct pull *g)
{
	enum pull_outcome outcome = PULL_SAME;

	if (--g->left)
		return;
	for (size_t i = 0; i < g->count; i++) {
		const struct pull_part *part = &g->pulls[i].part;
		const struct part *held = held_part(&g->pulls[i]);

		if (part->state == PULL_PULLED ||
			(part->state == PULL_ABSENT && !(held && held->absent)))
			outcome = PULL_NEW;
	}
	end(g, outcome, "");
}

/* ---- one answer ---- */

/* Takes the answer's body. */
static int take(struct doctor_pull *p, struct kind_answer *answer)
{
	static const char *const names[] = {"yaml", "yaml", "json", "bytes"};
	struct pull_part *part = &p->part;
	char url[1024];
	int r;

	snprintf(url, sizeof(url), "%s%s", upstream_url(p->server, &p->task), p->path);
	r = part_init(&part->facts, url, answer->version, answer->last_modified,
		part->signature ? "minisig" : names[answer->type]);
	if (r == 0)
		r = part_set_epoch(&part->facts, answer->epoch);
	if (r == 0 && answer->mismatch[0] && !(part->mismatch = strdup(answer->mismatch)))
		r = -ENOMEM;
	if (r)
		return r;
	part->body = answer->body;
	buffer_init(&answer->body, 0);
	part->facts.len = part->body.len;
	part->state = PULL_PULLED;
	if (answer->note[0])
		log_warn(answer->note, "config", p->gather->config->name, "path", LOG_URL(p->path));
	return 0;
}

static int take_absence(struct doctor_pull *p)
{
	int r = part_init(&p->part.facts, "", "", "", p->part.signature ? "minisig" : "yaml");

	p->part.facts.absent = true;
	p->part.state = PULL_ABSENT;
	return r;
}

/* Whatever becomes of it: a watch is told what was seen. */
static void note_seen(struct doctor_pull *p, const char *version)
{
	if (!upstream_settings(p->server)->watch)
		return;
	free(p->seen);
	p->seen = strdup(version);
}

static void came(struct doctor_pull *p, enum kind_verdict verdict, struct kind_answer *answer,
	enum kind_cause cause, const char *why)
{
	const struct part *held = held_part(p);
	int r = 0;

	if (verdict == KIND_NEW || verdict == KIND_SAME || verdict == KIND_ABSENT)
		note_seen(p, verdict == KIND_NEW    ? answer->version
			     : verdict == KIND_SAME ? held->etag
						    : "");
	if (verdict == KIND_ABSENT && !p->optional)
		verdict = KIND_FAILED;
	if (verdict == KIND_NEW) {
		p->shown = etag_hash(answer->version);
		r = take(p, answer);
	} else if (verdict == KIND_SAME) {
		p->shown = etag_hash(held->etag);
		p->part.state = PULL_HELD;
	} else if (verdict == KIND_ABSENT) {
		r = take_absence(p);
	} else {
		fail(p, cause == KIND_CAUSE_TIMEOUT ? PULL_TIMEOUT : PULL_FAILED, cause, why);
		return;
	}
	if (r)
		fail(p, PULL_FAILED, KIND_CAUSE_HOST, "out of memory");
	else
		settled(p->gather);
}

static void was_read(
	void *arg, const struct http_client_response *response, struct reading_result *result)
{
	struct doctor_pull *p = arg;
	enum kind_verdict verdict = result->verdict;
	enum kind_cause cause = result->cause;

	if ((verdict == KIND_UNAUTHORIZED && exchange_again(p->exchange, true)) ||
		(verdict == KIND_WHOLE && exchange_again(p->exchange, false)))
		return;
	p->exchange = NULL;
	if (verdict == KIND_UNAUTHORIZED)
		cause = KIND_CAUSE_FORBIDDEN;
	if (verdict == KIND_WHOLE)
		cause = KIND_CAUSE_ANSWER;
	if (upstream_ended(p->server, &p->task, response)) {
		upstream_retry(p->server, &p->task); /* within the same time limit */
	} else {
		p->gather->overloaded |= response->status == 429 || response->status == 503;
		came(p, verdict, &result->answer, cause, result->why);
	}
}

static void answered(
	void *arg, const struct kind_place *place, const struct http_client_response *response)
{
	struct doctor_pull *p = arg;

	reading_start(p->gather->env->check, p->exchange, place, response, was_read, p);
}

/* A secret cannot be read, the login failed, or the address backs off by now: that says nothing new
 * about it. Also called while the run is being ended, which lets one pull after the other lead the
 * login. */
static void not_sent(void *arg, enum kind_cause cause, const char *why)
{
	struct doctor_pull *p = arg;
	bool elsewhere = upstream_deferred(p->server, &p->task);

	p->exchange = NULL;
	if (p->gather->running && cause == KIND_CAUSE_OVERLOADED && elsewhere)
		upstream_retry(p->server, &p->task);
	else if (p->gather->running)
		fail(p, cause == KIND_CAUSE_HOST ? PULL_REJECTED : PULL_FAILED, cause, why);
}

/* ---- requests ---- */

static int build(
	void *arg, const struct kind_place *place, struct kind_request *r, char why[FILE_WHY])
{
	(void)arg;
	return kind_of(place->server)->build(place, r, why);
}

static const struct exchange_calls exchange_calls = {
	.build = build, .ended = answered, .failed = not_sent};

static int start_exchange(struct doctor_pull *p, char why[FILE_WHY])
{
	const struct pull *g = p->gather;
	const char *base = upstream_url(p->server, &p->task);
	const struct part *held = held_part(p);
	size_t len = strlen(base);
	struct exchange_request request = {
		.server = upstream_settings(p->server),
		.session = upstream_session(p->server),
		.backoff = upstream_backoff(p->server, &p->task),
		.place = {.base = base,
			.path = p->path,
			.type = p->type,
			.forced = g->forced,
			.max_bytes = upstream_settings(p->server)->max_bytes},
		.timeout_ms = g->config->timeout_ms,
		.document = true,
		.calls = &exchange_calls,
		.arg = p,
	};

	if (held && !held->absent && upstream_find(p->server, held->url, p->path) >= 0) {
		request.place.held = held;
		request.place.same_address =
			strncmp(held->url, base, len) == 0 && strcmp(held->url + len, p->path) == 0;
	}
	return exchange_start(&g->env->exchange, &request, &p->exchange, why);
}

/* What nobody is asked for is absent. 0 or -ENOMEM. */
static int begin(struct pull *g)
{
	int r = 0;

	pull_release(g);
	g->running = true;
	g->overloaded = false;
	g->cause = KIND_CAUSE_NONE;
	g->left = g->count;
	for (size_t i = 0; r == 0 && i < g->count; i++) {
		g->pulls[i].shown = 0;
		if (g->pulls[i].server)
			continue;
		r = take_absence(&g->pulls[i]);
		g->left--;
	}
	return r;
}

/* The server has a free slot: for a new run, for the next part of one, or at another address. */
static bool slot_free(void *arg)
{
	struct doctor_pull *p = arg;
	struct pull *g = p->gather;
	bool first = !g->running;
	char why[FILE_WHY] = "";

	if (first && p != g->pulls)
		return false; /* its run is over */
	if (first) {
		if (!g->calls->begin(g->arg))
			return false;
		if (begin(g)) {
			fail(p, PULL_REJECTED, KIND_CAUSE_HOST, "out of memory");
			return false;
		}
	}
	if (start_exchange(p, why)) {
		fail(p, PULL_REJECTED, KIND_CAUSE_HOST, why);
		return false;
	}
	for (size_t i = 1; first && g->running && i < g->count; i++)
		if (g->pulls[i].server)
			upstream_submit(g->pulls[i].server, &g->pulls[i].task, UINT64_MAX);
	return true;
}

static void slot_lost(void *arg, const char *why)
{
	struct doctor_pull *p = arg;

	p->gather->cause = KIND_CAUSE_OVERLOADED;
	if (p->gather->running)
		fail(p, PULL_REJECTED, KIND_CAUSE_OVERLOADED, why);
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

static bool set_up(struct pull *g, size_t i, size_t layer, bool signature,
	const struct settings_layer *instead)
{
	const struct settings_layer *l = instead ? instead : &g->config->layers[layer];
	struct upstream *server = instead && layer ? NULL : g->env->servers[l->server];
	struct doctor_pull *p = &g->pulls[i];

	p->gather = g;
	p->part.layer = layer;
	p->part.signature = signature;
	p->task = (struct upstream_task){.begin = slot_free,
		.lost = slot_lost,
		.arg = p,
		.interval_ms = g->config->interval_ms};
	p->made_path = signature ? signature_path(l->path) : NULL;
	p->path = signature ? p->made_path : l->path;
	p->type = signature ? SETTINGS_TYPE_BYTES : l->type;
	p->optional = signature || l->optional; /* who checks says that there is none */
	buffer_init(&p->part.body, 0);
	if (server && upstream_join(server))
		return false;
	p->server = server;
	return p->path;
}

struct pull *pull_new(const struct pull_env *env, const struct settings_config *config,
	const struct settings_layer *instead, const struct pull_calls *calls, void *arg)
{
	bool is_signed = config->verify.public_keys && (!instead || instead != config->rollout);
	size_t each = is_signed ? 2 : 1, count = config->layer_count * each;
	struct pull *g = calloc(1, sizeof(*g) + count * sizeof(g->pulls[0]));
	bool good = g;

	if (g) {
		g->env = env;
		g->config = config;
		g->calls = calls;
		g->arg = arg;
		g->count = count;
	}
	for (size_t i = 0; good && i < count; i++)
		good = set_up(g, i, i / each, i % each, instead);
	if (good)
		return g;
	pull_free(g);
	return NULL;
}

void pull_drop(struct pull *g)
{
	g->running = false;
	for (size_t i = 0; i < g->count; i++)
		if (g->pulls[i].server)
			drop(&g->pulls[i]);
}

void pull_free(struct pull *g)
{
	if (!g)
		return;
	pull_drop(g);
	for (size_t i = 0; i < g->count; i++) {
		struct doctor_pull *p = &g->pulls[i];

		if (p->server)
			upstream_leave(p->server);
		free(p->made_path);
		free(p->seen);
	}
	pull_release(g);
	free(g);
}

void pull_submit(struct pull *g, uint64_t expires_ms)
{
	upstream_submit(g->pulls[0].server, &g->pulls[0].task, expires_ms);
}

void pull_wait_until(struct pull *g, uint64_t latest_ms)
{
	g->pulls[0].task.latest_ms = latest_ms;
}

void pull_withdraw(struct pull *g)
{
	upstream_withdraw(g->pulls[0].server, &g->pulls[0].task);
}

bool pull_waiting(const struct pull *g)
{
	return !g->running && g->pulls[0].task.waiting;
}

void pull_hold(struct pull *g, const struct version *held, bool forced)
{
	g->held = held;
	g->forced = forced;
}

const char *pull_seen(const struct pull *g, size_t i)
{
	return g->pulls[i].seen;
}

enum kind_cause pull_cause(const struct pull *g)
{
	return g->cause;
}

bool pull_give_up(struct pull *g)
{
	bool ready = false;

	g->running = false;
	for (size_t i = 0; i < g->count; i++) {
		struct doctor_pull *p = &g->pulls[i];
		struct exchange *x = p->exchange;

		if (x && !exchange_held(x)) {
			p->exchange = NULL;
			exchange_cancel(x);
			ready |= upstream_ended(p->server, &p->task, NULL);
		}
		drop(p);
	}
	g->cause = KIND_CAUSE_TIMEOUT;
	return ready;
}

bool pull_reading(const struct pull *g)
{
	bool any = false;

	for (size_t i = 0; i < g->count; i++) {
		const struct doctor_pull *p = &g->pulls[i];

		if (p->exchange && !exchange_held(p->exchange))
			return false;
		any |= p->exchange != NULL;
	}
	return any;
}

bool pull_overloaded(const struct pull *g)
{
	return g->overloaded;
}

void pull_lift(struct pull *g)
{
	for (size_t i = 0; i < g->count; i++)
		if (g->pulls[i].server && (i == 0 || g->pulls[i].server != g->pulls[i - 1].server))
			upstream_lift(g->pulls[i].server);
}

const struct pull_part *pull_part(const struct pull *g, size_t i)
{
	return &g->pulls[i].part;
}

size_t pull_count(const struct pull *g)
{
	return g->count;
}

bool pull_showed(const struct pull *g)
{
	for (size_t i = 0; i < g->count; i++)
		if (g->left == 0 && g->pulls[i].shown)
			return true;
	return false;
}

bool pull_shows(const struct pull *g, uint64_t version_hash)
{
	for (size_t i = 0; i < g->count; i++)
		if (g->pulls[i].shown == version_hash)
			return true;
	return false;
}

void pull_avoid(struct pull *g)
{
	for (size_t i = 0; i < g->count; i++)
		if (g->pulls[i].server)
			upstream_avoid(g->pulls[i].server, &g->pulls[i].task);
}

void pull_release(struct pull *g)
{
	for (size_t i = 0; i < g->count; i++) {
		struct pull_part *part = &g->pulls[i].part;

		buffer_fini(&part->body);
		part_fini(&part->facts);
		free(part->mismatch);
		part->mismatch = NULL;
		part->state = PULL_PENDING;
	}
}

struct upstream *pull_server(const struct pull *g)
{
	return g->pulls[0].server;
}

void pull_url(const struct pull *g, char ret_url[1024])
{
	const struct doctor_pull *p = &g->pulls[0];

	char path[LOG_URL_SIZE];

	snprintf(ret_url, 1024, "%.500s%.500s", upstream_url(p->server, &p->task),
		log_url_text(path, p->path));
}

bool pull_covers(const struct pull *g, const struct version *v)
{
	if (v->part_count != g->count)
		return false;
	for (size_t i = 0; i < g->count; i++)
		if (!v->parts[i].absent &&
			(!g->pulls[i].server || upstream_find(g->pulls[i].server, v->parts[i].url,
							g->pulls[i].path) < 0))
			return false;
	return true;
}
