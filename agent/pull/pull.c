/*
 * The parts of one run. Surprising: only the first part is queued at its server before the run
 * begins; the others are queued within the run, and its time limit covers their waiting.
 */
#include "pull/pull.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/etag.h"
#include "pull/kinds/answer.h"
#include "pull/reading.h"

#define AFTER_LIMIT_MS 100 /* a run's own limit comes first: it can tell what it waited for */

struct pull_source {
	struct pull *pull;
	struct upstream_task task; /* its server NULL: the part is absent */
	char *path;
	enum settings_type type;
	bool optional;
	bool path_made; /* of a signature; else it is the layer's */
	struct exchange *exchange;
	char *seen;     /* see pull_seen() */
	uint64_t shown; /* hash of the ETag that the server showed in this run; 0 = none */
};

struct pull {
	const struct pull_env *env;
	const struct settings_config *config;
	const struct pull_calls *calls;
	void *arg;
	struct version *held; /* a copy: steps go on beside the pull; NULL = nothing */
	bool running, overloaded, forced;
	bool instead; /* of a bootstrap or a rollout: a second pull of its config */
	enum kind_cause cause;
	const struct pull_source *failed;   /* whose failure it is; NULL = none's */
	const struct pull_source *blamed;   /* the same of the last run that ended */
	struct http_client_response *offer; /* NULL = none */
	uint64_t offer_until_ms;
	unsigned left; /* parts that are not done */
	unsigned count;
	/* of the run, one for each source; NULL = released: idle configs have none */
	struct pull_part *parts;
	struct pull_source sources[];
};

static struct pull_part *part_of(const struct pull_source *p)
{
	return &p->pull->parts[p - p->pull->sources];
}

static const struct part *held_part(const struct pull_source *p)
{
	const struct pull *pull = p->pull;

	return pull->held && pull->held->generation && pull->held->part_count == pull->count
		       ? &pull->held->parts[p - pull->sources]
		       : NULL;
}

/* What may be compared with the server's: it came from there. */
static const struct part *held_of_server(const struct pull_source *p)
{
	const struct part *held = held_part(p);

	return held && !held->absent && upstream_find(p->task.server, held->url, p->path) >= 0
		       ? held
		       : NULL;
}

/* ---- the end ---- */

static void cancel_part(struct pull_source *p)
{
	struct exchange *x = p->exchange;

	if (p->task.waiting)
		upstream_withdraw(p->task.server, &p->task);
	if (!x)
		return;
	p->exchange = NULL;
	exchange_cancel(x);
	upstream_dropped(p->task.server);
}

static void blame_source(struct pull_source *p)
{
	p->pull->failed = p->pull->blamed = p;
}

/* Ends the run, and with it the parts that are still under way. */
static void pull_done(struct pull *pull, enum pull_outcome outcome, const char *why)
{
	pull->running = false;
	pull->blamed = pull->failed;
	for (size_t i = 0; i < pull->count; i++)
		cancel_part(&pull->sources[i]);
	pull->calls->run_ended(pull->arg, outcome, why);
}

static void fail_pull(
	struct pull_source *p, enum pull_outcome outcome, enum kind_cause cause, const char *why)
{
	char named[FILE_WHY];

	p->pull->cause = cause;
	blame_source(p);
	if (p->pull->count > 1) {
		snprintf(named, sizeof(named), "%.100s: %.400s", LOG_URL(p->path), why);
		why = named;
	}
	pull_done(p->pull, outcome, why);
}

static void pull_part_done(struct pull *pull)
{
	enum pull_outcome outcome = PULL_SAME;

	if (--pull->left)
		return;
	for (size_t i = 0; i < pull->count; i++) {
		const struct pull_part *part = &pull->parts[i];
		const struct part *held = held_part(&pull->sources[i]);

		if (part->state == PULL_PULLED ||
			(part->state == PULL_ABSENT && !(held && held->absent)))
			outcome = PULL_NEW;
	}
	pull_done(pull, outcome, "");
}

/* ---- one answer ---- */

/* Takes the answer's body. */
static int take_document(struct pull_source *p, struct kind_answer *answer)
{
	static const char *const names[] = {"yaml", "yaml", "json", "bytes"};
	struct pull_part *part = part_of(p);
	char url[1024];
	int r;

	snprintf(url, sizeof(url), "%s%s", upstream_url(p->task.server, &p->task), p->path);
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
		log_warn(answer->note, "config", p->pull->config->name, "path", LOG_URL(p->path));
	return 0;
}

static int take_absence(struct pull_source *p)
{
	struct pull_part *part = part_of(p);
	int r = part_init(&part->facts, "", "", "", part->signature ? "minisig" : "yaml");

	part->facts.absent = true;
	part->state = PULL_ABSENT;
	return r;
}

/* Records the version the server reported, for the watch. */
static void record_seen(struct pull_source *p, const char *version)
{
	if (!upstream_settings(p->task.server)->watch)
		return;
	free(p->seen);
	p->seen = strdup(version);
}

static void take_verdict(
	struct pull_source *p, enum kind_verdict verdict, struct kind_answer *answer)
{
	const struct part *held = held_part(p);
	int r = 0;

	if (verdict == KIND_NEW || verdict == KIND_SAME || verdict == KIND_ABSENT)
		record_seen(p, verdict == KIND_NEW    ? answer->version
			       : verdict == KIND_SAME ? held->etag
						      : "");
	if (verdict == KIND_ABSENT && !p->optional)
		verdict = KIND_FAILED;
	if (verdict == KIND_NEW) {
		p->shown = etag_hash(answer->version);
		r = take_document(p, answer);
	} else if (verdict == KIND_SAME) {
		p->shown = etag_hash(held->etag);
		part_of(p)->state = PULL_HELD;
	} else if (verdict == KIND_ABSENT) {
		r = take_absence(p);
	} else {
		fail_pull(p, answer->cause == KIND_CAUSE_TIMEOUT ? PULL_TIMEOUT : PULL_FAILED,
			answer->cause, answer->why);
		return;
	}
	if (r)
		fail_pull(p, PULL_FAILED, KIND_CAUSE_HOST, "out of memory");
	else
		pull_part_done(p->pull);
}

static void answer_checked(
	void *arg, const struct http_client_response *response, struct reading_result *result)
{
	struct pull_source *p = arg;
	enum kind_verdict verdict = result->verdict;

	if ((verdict == KIND_UNAUTHORIZED && exchange_again(p->exchange, true)) ||
		(verdict == KIND_WHOLE && exchange_again(p->exchange, false)))
		return;
	p->exchange = NULL;
	if (verdict == KIND_UNAUTHORIZED)
		result->answer.cause = KIND_CAUSE_FORBIDDEN;
	if (verdict == KIND_WHOLE)
		result->answer.cause = KIND_CAUSE_ANSWER;
	if (upstream_ended(p->task.server, &p->task, response)) {
		upstream_retry(p->task.server, &p->task); /* within the same time limit */
	} else {
		p->pull->overloaded |= response->status == 429 || response->status == 503;
		take_verdict(p, verdict, &result->answer);
	}
}

static void answer_received(
	void *arg, const struct kind_place *place, const struct http_client_response *response)
{
	struct pull_source *p = arg;

	reading_start(p->pull->env->check, p->exchange, place, response, answer_checked, p);
}

/* A secret cannot be read, the login failed, or the address is in backoff by now, which says
 * nothing new about it. Also called while the run ends: then one pull after the other leads the
 * login. */
static void request_not_sent(void *arg, enum kind_cause cause, const char *why)
{
	struct pull_source *p = arg;
	bool elsewhere = upstream_deferred(p->task.server, &p->task);

	p->exchange = NULL;
	if (p->pull->running && cause == KIND_CAUSE_OVERLOADED && elsewhere)
		upstream_retry(p->task.server, &p->task);
	else if (p->pull->running)
		fail_pull(p, cause == KIND_CAUSE_HOST ? PULL_REJECTED : PULL_FAILED, cause, why);
}

/* ---- an answer without a request ---- */

static void drop_offer(struct pull *pull)
{
	if (pull->offer)
		buffer_fini(&pull->offer->body);
	free(pull->offer);
	pull->offer = NULL;
}

void pull_offer(struct pull *pull, const struct http_client_response *answer)
{
	bool takes = pull->count == 1 && answer->body.len <= READING_LARGE && !answer->coded.len;

	drop_offer(pull);
	pull->offer = takes ? malloc(sizeof(*pull->offer)) : NULL;
	if (!pull->offer)
		return;
	*pull->offer = *answer;
	buffer_init(&pull->offer->body, READING_LARGE + 1);
	pull->offer_until_ms = pull->env->exchange.sys->now_ms() + PULL_OFFER_MS;
	if (buffer_append(&pull->offer->body, answer->body.data, answer->body.len))
		drop_offer(pull);
}

/* True: the run has its document, and may have ended. What is unusual about one, as an older index,
 * may be that it was on its way for long: the server is asked. */
static bool take_offer(struct pull_source *p)
{
	struct pull *pull = p->pull;
	struct kind_place place = {.server = upstream_settings(p->task.server),
		.base = upstream_url(p->task.server, &p->task),
		.path = p->path,
		.type = p->type,
		.held = held_of_server(p),
		.max_bytes = upstream_settings(p->task.server)->max_bytes};
	enum kind_verdict verdict = KIND_FAILED;
	struct kind_answer answer;
	bool taken;

	if (!pull->offer)
		return false;
	kind_answer_init(&answer, place.max_bytes);
	if (!pull->forced && pull->env->exchange.sys->now_ms() <= pull->offer_until_ms)
		verdict = answer_check(&place, pull->offer, false, &answer);
	drop_offer(pull);
	taken = (verdict == KIND_NEW || verdict == KIND_SAME) && !answer.note[0];
	if (taken)
		take_verdict(p, verdict, &answer);
	kind_answer_fini(&answer);
	return taken;
}

/* ---- requests ---- */

static int build_pull_request(
	void *arg, const struct kind_place *place, struct kind_request *r, char why[FILE_WHY])
{
	(void)arg;
	return kind_of(place->server)->build(place, r, why);
}

static const struct exchange_calls exchange_calls = {
	.build = build_pull_request, .ended = answer_received, .failed = request_not_sent};

static int start_exchange(struct pull_source *p, char why[FILE_WHY])
{
	const struct pull *pull = p->pull;
	const char *base = upstream_url(p->task.server, &p->task);
	const struct part *held = held_of_server(p);
	size_t len = strlen(base);
	struct exchange_request request = {
		.server = upstream_settings(p->task.server),
		.session = upstream_session(p->task.server),
		.backoff = upstream_backoff(p->task.server, &p->task),
		.place = {.base = base,
			.path = p->path,
			.type = p->type,
			.forced = pull->forced,
			.max_bytes = upstream_settings(p->task.server)->max_bytes},
		.timeout_ms = pull->config->timeout_ms + AFTER_LIMIT_MS,
		.document = true,
		.calls = &exchange_calls,
		.arg = p,
	};

	if (held) {
		request.place.held = held;
		request.place.same_address =
			strncmp(held->url, base, len) == 0 && strcmp(held->url + len, p->path) == 0;
	}
	return exchange_start(&pull->env->exchange, &request, &p->exchange, why);
}

/* Makes the parts of a run. Those without a server are marked absent. 0 or -ENOMEM. */
static int reset_parts(struct pull *pull)
{
	size_t each = pull->count / pull->config->layer_count; /* 2: with its signature */
	int r;

	pull_release(pull);
	pull->parts = calloc(pull->count, sizeof(*pull->parts));
	r = pull->parts ? 0 : -ENOMEM;
	pull->running = true;
	pull->overloaded = false;
	pull->cause = KIND_CAUSE_NONE;
	pull->failed = NULL;
	pull->left = pull->count;
	for (size_t i = 0; r == 0 && i < pull->count; i++) {
		pull->sources[i].shown = 0;
		pull->parts[i].layer = i / each;
		pull->parts[i].signature = i % each;
		if (pull->sources[i].task.server)
			continue;
		r = take_absence(&pull->sources[i]);
		pull->left--;
	}
	return r;
}

/* The server has a slot: for a new run, for the next part of one, or at another address. */
static bool slot_ready(void *arg)
{
	struct pull_source *p = arg;
	struct pull *pull = p->pull;
	bool first = !pull->running;
	char why[FILE_WHY] = "";

	if (first && p != pull->sources)
		return false; /* its run is over */
	if (first) {
		if (!pull->calls->run_may_begin(pull->arg))
			return false;
		if (reset_parts(pull)) {
			fail_pull(p, PULL_REJECTED, KIND_CAUSE_HOST, "out of memory");
			return false;
		}
	}
	if (first && take_offer(p))
		return false;
	if (start_exchange(p, why)) {
		fail_pull(p, PULL_REJECTED, KIND_CAUSE_HOST, why);
		return false;
	}
	for (size_t i = 1; first && pull->running && i < pull->count; i++)
		if (pull->sources[i].task.server)
			upstream_submit(
				pull->sources[i].task.server, &pull->sources[i].task, UINT64_MAX);
	return true;
}

static void slot_lost(void *arg, const char *why)
{
	struct pull_source *p = arg;

	p->pull->cause = KIND_CAUSE_OVERLOADED;
	blame_source(p);
	if (p->pull->running)
		fail_pull(p, PULL_REJECTED, KIND_CAUSE_OVERLOADED, why);
	else
		p->pull->calls->slot_lost(p->pull->arg, why);
}

/* ---- outside ---- */

/* "/web.yaml?x=1" to "/web.yaml.minisig?x=1". */
static char *signature_path(const char *path)
{
	size_t stem = strcspn(path, "?");
	char *made;

	return asprintf(&made, "%.*s.minisig%s", (int)stem, path, path + stem) < 0 ? NULL : made;
}

/* A config counts once for each of its servers. */
static bool is_first_of_server(const struct pull_source *p)
{
	const struct pull_source *other;

	if (!p->task.server || p->pull->instead)
		return false;
	for (other = p->pull->sources; other->task.server != p->task.server;)
		other++;
	return other == p;
}

static bool set_up_part(struct pull *pull, size_t i, size_t layer, bool signature,
	const struct settings_layer *instead)
{
	const struct settings_layer *l = instead ? instead : &pull->config->layers[layer];
	struct upstream *server = instead && layer ? NULL : pull->env->servers[l->server];
	struct pull_source *p = &pull->sources[i];

	p->pull = pull;
	p->task = (struct upstream_task){.slot_ready = slot_ready,
		.slot_lost = slot_lost,
		.arg = p,
		.interval_ms = pull->config->interval_ms};
	p->path_made = signature;
	p->path = signature ? signature_path(l->path) : l->path;
	p->type = signature ? SETTINGS_TYPE_BYTES : l->type;
	p->optional = signature || l->optional; /* verify reports a missing signature */
	if (server && upstream_join(server))
		return false;
	p->task.server = server;
	if (is_first_of_server(p))
		upstream_outage(server)->configs++;
	return p->path;
}

struct pull *pull_new(const struct pull_env *env, const struct settings_config *config,
	const struct settings_layer *instead, const struct pull_calls *calls, void *arg)
{
	bool is_signed = config->verify.public_keys && (!instead || instead != config->rollout);
	unsigned each = is_signed ? 2 : 1, count = (unsigned)config->layer_count * each;
	struct pull *pull = calloc(1, sizeof(*pull) + count * sizeof(pull->sources[0]));
	bool valid = pull;

	if (pull) {
		pull->env = env;
		pull->config = config;
		pull->calls = calls;
		pull->arg = arg;
		pull->count = count;
		pull->instead = instead;
	}
	for (unsigned i = 0; valid && i < count; i++)
		valid = set_up_part(pull, i, i / each, i % each, instead);
	if (valid)
		return pull;
	pull_free(pull);
	return NULL;
}

void pull_drop(struct pull *pull)
{
	pull->running = false;
	for (size_t i = 0; i < pull->count; i++)
		if (pull->sources[i].task.server)
			cancel_part(&pull->sources[i]);
}

static void drop_held(struct pull *pull)
{
	if (pull->held)
		version_fini(pull->held);
	free(pull->held);
	pull->held = NULL;
}

void pull_free(struct pull *pull)
{
	if (!pull)
		return;
	pull_drop(pull);
	drop_held(pull);
	drop_offer(pull);
	for (size_t i = 0; i < pull->count; i++) {
		struct pull_source *p = &pull->sources[i];

		if (is_first_of_server(p))
			upstream_outage(p->task.server)->configs--;
		if (p->task.server)
			upstream_leave(p->task.server);
		if (p->path_made)
			free(p->path);
		free(p->seen);
	}
	pull_release(pull);
	free(pull);
}

void pull_submit(struct pull *pull, uint64_t expires_ms)
{
	upstream_submit(pull->sources[0].task.server, &pull->sources[0].task, expires_ms);
}

void pull_wait_until(struct pull *pull, uint64_t latest_ms)
{
	pull->sources[0].task.latest_ms = latest_ms;
}

void pull_withdraw(struct pull *pull)
{
	upstream_withdraw(pull->sources[0].task.server, &pull->sources[0].task);
}

bool pull_waiting(const struct pull *pull)
{
	return !pull->running && pull->sources[0].task.waiting;
}

void pull_hold(struct pull *pull, const struct version *held, bool forced)
{
	drop_held(pull);
	pull->held = held ? malloc(sizeof(*held)) : NULL; /* NULL: all is pulled */
	if (pull->held && version_copy(held, pull->held)) {
		free(pull->held);
		pull->held = NULL;
	}
	pull->forced = forced;
}

const struct version *pull_held(const struct pull *pull)
{
	return pull->held;
}

const char *pull_seen(const struct pull *pull, size_t i)
{
	return pull->sources[i].seen;
}

enum kind_cause pull_cause(const struct pull *pull)
{
	return pull->cause;
}

bool pull_give_up(struct pull *pull)
{
	bool ready = false;

	pull->running = false;
	for (size_t i = 0; i < pull->count; i++) {
		struct pull_source *p = &pull->sources[i];
		struct exchange *x = p->exchange;

		if (x && !exchange_held(x)) {
			p->exchange = NULL;
			exchange_cancel(x);
			blame_source(p);
			ready |= upstream_ended(p->task.server, &p->task, NULL);
		}
		cancel_part(p);
	}
	pull->cause = KIND_CAUSE_TIMEOUT;
	return ready;
}

void pull_waits_for(const struct pull *pull, char ret_text[FILE_WHY])
{
	const char *what = NULL;

	ret_text[0] = '\0';
	for (size_t i = 0; i < pull->count && !what; i++) {
		const struct pull_source *p = &pull->sources[i];

		what = p->exchange && !exchange_held(p->exchange) ? exchange_waits_for(p->exchange)
								  : NULL;
		if (what && pull->count > 1)
			snprintf(ret_text, FILE_WHY, ": %.100s: %s", LOG_URL(p->path), what);
		else if (what)
			snprintf(ret_text, FILE_WHY, ": %s", what);
	}
}

bool pull_reading(const struct pull *pull)
{
	bool any = false;

	for (size_t i = 0; i < pull->count; i++) {
		const struct pull_source *p = &pull->sources[i];

		if (p->exchange && !exchange_held(p->exchange))
			return false;
		any |= p->exchange != NULL;
	}
	return any;
}

bool pull_overloaded(const struct pull *pull)
{
	return pull->overloaded;
}

void pull_lift(struct pull *pull)
{
	for (size_t i = 0; i < pull->count; i++)
		if (pull->sources[i].task.server &&
			(i == 0 ||
				pull->sources[i].task.server != pull->sources[i - 1].task.server))
			upstream_lift(pull->sources[i].task.server);
}

const struct pull_part *pull_part(const struct pull *pull, size_t i)
{
	return pull->parts ? &pull->parts[i] : NULL;
}

size_t pull_count(const struct pull *pull)
{
	return pull->count;
}

bool pull_showed(const struct pull *pull)
{
	for (size_t i = 0; i < pull->count; i++)
		if (pull->left == 0 && pull->sources[i].shown)
			return true;
	return false;
}

bool pull_shows(const struct pull *pull, uint64_t version_hash)
{
	for (size_t i = 0; i < pull->count; i++)
		if (pull->sources[i].shown == version_hash)
			return true;
	return false;
}

void pull_avoid(struct pull *pull)
{
	for (size_t i = 0; i < pull->count; i++)
		if (pull->sources[i].task.server)
			upstream_avoid(pull->sources[i].task.server, &pull->sources[i].task);
}

void pull_release(struct pull *pull)
{
	for (size_t i = 0; pull->parts && i < pull->count; i++) {
		buffer_fini(&pull->parts[i].body);
		part_fini(&pull->parts[i].facts);
		free(pull->parts[i].mismatch);
	}
	free(pull->parts);
	pull->parts = NULL;
}

struct outage *pull_outage(const struct pull *pull)
{
	const struct pull_source *p = pull->failed;
	bool is_one = pull->cause == KIND_CAUSE_UNREACHABLE || pull->cause == KIND_CAUSE_TIMEOUT ||
		      pull->cause == KIND_CAUSE_OVERLOADED;

	if (!p || !p->task.server)
		return NULL;
	is_one |= pull->cause == KIND_CAUSE_ANSWER && upstream_fails(p->task.server, &p->task);
	return is_one ? upstream_outage(p->task.server) : NULL;
}

struct upstream *pull_server(const struct pull *pull)
{
	return pull->sources[0].task.server;
}

static void write_source_url(const struct pull_source *p, char ret_url[1024])
{
	char path[LOG_URL_SIZE];

	snprintf(ret_url, 1024, "%.500s%.500s", upstream_url(p->task.server, &p->task),
		log_url_text(path, p->path));
}

void pull_url(const struct pull *pull, char ret_url[1024])
{
	write_source_url(&pull->sources[0], ret_url);
}

void pull_failed_url(const struct pull *pull, char ret_url[1024])
{
	write_source_url(pull->blamed ? pull->blamed : &pull->sources[0], ret_url);
}

bool pull_covers(const struct pull *pull, const struct version *v)
{
	if (v->part_count != pull->count)
		return false;
	for (size_t i = 0; i < pull->count; i++)
		if (!v->parts[i].absent &&
			(!pull->sources[i].task.server ||
				upstream_find(pull->sources[i].task.server, v->parts[i].url,
					pull->sources[i].path) < 0))
			return false;
	return true;
}
