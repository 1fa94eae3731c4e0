/*
 * One config's circulation: the trigger says when, the server when it has room, the transfer brings
 * a document, the judges look at it, the publication makes it visible, the supervisor says when
 * again.
 *
 * Surprising: the time limit covers the transfer only. Once a document is accepted its publication
 * is never given up half-way; a disk that hangs shows as a run that does not end, and no second one
 * begins beside it.
 */
#include "config.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <fcntl.h>

#include "credentials.h"
#include "document.h"
#include "log.h"
#include "source.h"

struct config {
	const struct config_env *env;
	const struct settings_config *settings;

	struct trigger trigger;
	struct supervisor supervisor;
	struct loop_timer due; /* the next run */
	struct server *server;
	struct server_task task; /* a run that is due, or one that goes on at another address */
	struct loop_timer limit; /* the run's time limit */
	struct push_topic topic;

	/* the run in progress */
	uint64_t run;
	struct transfer *transfer;
	bool conditional; /* the request named a version we hold */
	bool soon;        /* it ran into its limit, but another address is ready */
	bool scatter;     /* the server was overloaded: not all who were turned away in step */
	struct version *candidate; /* on the heap: at rest there is none */
	struct buffer body, text;  /* of the candidate; text is empty when it is the body itself */
	void *image_data;          /* its snapshot, or NULL */
	size_t image_len;
	struct publication publication;
	struct worker_job publish_job;
	bool publishing;

	/* what stands */
	struct store *store;
	struct target *target;    /* NULL: no text file is wanted, or not opened yet */
	struct image *image;      /* the same of the snapshot */
	struct version published; /* generation 0: nothing */
	/* in the store, but the file could not be replaced; generation 0: none */
	uint64_t saved_generation;
	char saved_sha256[sizeof(((struct version *)0)->sha256)];
	struct worker_job sync_job;
	bool syncing;
	uint64_t sync_generation; /* what the job brings to the disk */
	int sync_error;

	/* what the status shows */
	enum config_outcome outcome;
	char error[FILE_WHY + 64];
	struct log_limit log_limit;
	int64_t error_wall_ms, published_wall_ms, confirmed_wall_ms;
	uint64_t confirmed_ms; /* 0 = not by this process */
	uint64_t refused, restored;

	uint64_t wanted; /* promise of the last push that re-pulls were counted for */
	unsigned repulls;
	uint64_t shown; /* hash of the version the server showed in this run */

	struct config_waiter *waiters;
};

static const char timed_out[] = "the server timed out: the old version stays, pulls slow down";
/* From a run that an address let run into its time limit to the next, at another address. */
#define FAILOVER_MS 500
#define PATIENCE_MS 300000u
static const uint64_t repull_delay_ms[CONFIG_REPULLS] = {50, 200, 1000};

static void run_failed(
	struct config *c, enum supervisor_outcome outcome, const char *what, const char *why);
static void run_succeeded(struct config *c, enum config_outcome outcome);

static const char *type_name(enum settings_type type)
{
	static const char *const names[] = {"yaml", "yaml", "json", "bytes"};

	return names[type];
}

/* A pull that found no slot for so long is told as rejected; no hold alone is that long. */
static uint64_t expiry_ms(const struct config *c)
{
	uint64_t max_ms = c->supervisor.max_ms;

	return c->env->sys->now_ms() + (max_ms > PATIENCE_MS ? max_ms : PATIENCE_MS);
}

/* From that age on what stands is stale: the last of the slowest pulls has not confirmed it. */
static uint64_t stale_ms(const struct config *c)
{
	return c->supervisor.max_ms + c->settings->timeout_ms;
}

/* The trigger's word decides whether the timer is armed, and whether a run that waits for the
 * server is still wanted. */
static void arm(struct config *c)
{
	uint64_t due_ms;
	bool is_set = trigger_due(&c->trigger, &due_ms);

	if (c->task.waiting && !trigger_running(&c->trigger)) {
		if (is_set && due_ms <= c->env->sys->now_ms()) {
			server_submit(c->server, &c->task, expiry_ms(c));
			return;
		}
		server_withdraw(c->server, &c->task);
	}
	if (is_set)
		loop_timer_set(c->env->loop, &c->due, due_ms);
	else
		loop_timer_cancel(c->env->loop, &c->due);
}

/* ---- telling ---- */

/* An ETag for people: without its quotes. */
static const char *version_text(const struct version *v, char text[256])
{
	size_t len = strlen(v->etag);
	bool quoted = len >= 2 && v->etag[0] == '"' && v->etag[len - 1] == '"';

	snprintf(text, 256, "%.*s", (int)(quoted ? len - 2 : len), v->etag + quoted);
	return text[0] ? text : NULL;
}

#define VERSION_TEXT(v) version_text(v, (char[256]){0})

/* A run or a start went wrong: remembered for the status, and logged once per cause, then once a
 * minute. */
static void complain(struct config *c, const char *what, const char *why)
{
	unsigned suppressed;

	snprintf(c->error, sizeof(c->error), "%s", why);
	c->error_wall_ms = c->env->sys->wall_ms();
	if (log_limit_pass(&c->log_limit, c->env->sys->now_ms(), why, &suppressed))
		log_warn(what, "config", c->settings->name, "why", why, "next_in_ms",
			LOG_U64(supervisor_delay(&c->supervisor)), "generation",
			LOG_U64(c->published.generation), "repeated",
			suppressed ? LOG_U64(suppressed) : NULL);
}

static void confirm(struct config *c)
{
	c->confirmed_ms = c->env->sys->now_ms();
	c->confirmed_wall_ms = c->env->sys->wall_ms();
	if (c->image)
		image_confirm(c->image, c->confirmed_ms, stale_ms(c));
	if (c->error[0]) {
		log_info("the server's answer is good again", "config", c->settings->name);
		memset(&c->log_limit, 0, sizeof(c->log_limit));
	}
	c->error[0] = '\0';
}

/* ---- judging ---- */

/* Writes the document anew, if that is wanted, and makes its snapshot. */
static int prepare_outputs(struct config *c, const struct document *d,
	const struct version *version, struct buffer *text, char why[FILE_WHY])
{
	bool json = c->settings->format == SETTINGS_FORMAT_JSON;
	int r = 0;

	if (c->settings->format != SETTINGS_VERBATIM)
		r = document_write(document_root(d), json ? DOCUMENT_JSON : DOCUMENT_YAML, text);
	if (r)
		snprintf(why, FILE_WHY, "cannot be written as %s: %s", json ? "json" : "yaml",
			r == -EINVAL ? "it holds a number that the format does not have"
				     : strerror(-r));
	else if (c->settings->snapshot && !c->env->dry_run)
		r = image_build(document_root(d), version->pulled_ms, VERSION_TEXT(version),
			&c->image_data, &c->image_len, why);
	return r;
}

/* Judges body as `type`, makes the text that goes into the file, and the snapshot, which names the
 * version. 0, or -errno with a sentence. */
static int judge(struct config *c, enum settings_type type, const struct buffer *body,
	const struct version *version, struct buffer *text, char why[FILE_WHY])
{
	struct document *d = NULL;
	struct document_error e = {0};
	int r;

	if (type == SETTINGS_TYPE_BYTES)
		return 0;
	r = document_parse(type == SETTINGS_TYPE_JSON ? DOCUMENT_JSON : DOCUMENT_YAML, body->data,
		body->len, 0, &d, &e);
	if (r) {
		snprintf(why, FILE_WHY, "not good %s, line %u, column %u: %s", type_name(type),
			e.line, e.column, r == -ENOMEM ? "out of memory" : e.message);
		return r;
	}
	r = prepare_outputs(c, d, version, text, why);
	document_free(d);
	return r;
}

/* ---- publishing ---- */

static int prepare(struct config *c, char why[FILE_WHY])
{
	int r = 0;

	if (!c->store)
		r = store_open(c->env->sys, c->env->state_dir, c->settings->name, &c->store, why);
	if (r == 0 && !c->target && c->settings->file)
		r = target_open(c->env->sys, c->settings, &c->target, why);
	if (r == 0 && !c->image && c->settings->snapshot)
		r = image_open(c->env->sys, c->env->runtime_dir, c->settings->name, &c->image, why);
	return r;
}

static void fill_publication(
	struct config *c, bool save, const struct version *v, const struct buffer *body)
{
	const struct buffer *text =
		c->settings->format == SETTINGS_VERBATIM || c->text.len == 0 ? body : &c->text;

	c->publication = (struct publication){
		.sys = c->env->sys,
		.config = c->settings,
		.store = save ? c->store : NULL,
		.target = c->target,
		.image = c->image_data ? c->image : NULL,
		.image_data = c->image_data,
		.image_len = c->image_len,
		.version = v,
		.body = body->data ? body->data : "",
		.body_len = body->len,
		.text = text->data ? text->data : "",
		.text_len = text->len,
	};
}

static void run_sync(struct worker_job *job)
{
	struct config *c = (struct config *)((char *)job - offsetof(struct config, sync_job));

	c->sync_error = store_sync(c->store, c->sync_generation);
}

/* Brings the published generation's state file to the disk, unless that is under way: then again
 * when it has ended. */
static void sync_state(struct config *c)
{
	if (c->syncing)
		return;
	c->syncing = true;
	c->sync_generation = c->published.generation;
	worker_submit(c->env->worker, &c->sync_job);
}

static void sync_done(struct worker_job *job)
{
	struct config *c = (struct config *)((char *)job - offsetof(struct config, sync_job));

	c->syncing = false;
	/* Nothing that is visible is lost: the file stays in the page cache, and the next
	 * generation is a new file. */
	if (c->sync_error)
		log_warn("the state file is not on the disk: a power cut may lose it", "config",
			c->settings->name, "why", strerror(-c->sync_error));
	if (c->published.generation != c->sync_generation)
		sync_state(c);
}

static void release_candidate(struct config *c)
{
	buffer_fini(&c->body);
	buffer_fini(&c->text);
	if (c->candidate)
		free(c->candidate->url);
	free(c->candidate);
	c->candidate = NULL;
	free(c->image_data);
	c->image_data = NULL;
}

/* What v names (its url becomes ours) is what stands. */
static void set_published(struct config *c, struct version *v)
{
	free(c->published.url);
	c->published = *v;
	v->url = NULL;
}

/* A candidate to be filled in. False when there is no memory. */
static bool new_candidate(struct config *c, const struct version *v)
{
	c->candidate = malloc(sizeof(*c->candidate));
	if (c->candidate)
		*c->candidate = *v;
	return c->candidate;
}

/* The state file of this version stands, but the target does not show it. */
static void remember_saved(struct config *c, const struct version *v)
{
	c->saved_generation = v->generation;
	memcpy(c->saved_sha256, v->sha256, sizeof(c->saved_sha256));
}

static void published(struct config *c)
{
	struct publication *p = &c->publication;

	if (p->error) {
		if (store_next_generation(c->store) > c->candidate->generation)
			remember_saved(c, c->candidate);
		release_candidate(c);
		run_failed(
			c, SUPERVISOR_FAILED, "could not publish: the old version stays", p->why);
		return;
	}
	set_published(c, c->candidate);
	c->saved_generation = 0;
	c->published_wall_ms = c->env->sys->wall_ms();
	log_info("published", "config", c->settings->name, "generation",
		LOG_U64(c->published.generation), "version", VERSION_TEXT(&c->published), "bytes",
		LOG_U64(p->text_len), "file", c->settings->file);
	if (p->not_durable)
		log_warn("published, but a power cut may bring the old version back", "config",
			c->settings->name, "why", p->why);
	if (!c->settings->strict && p->store && !store_in_memory(c->store))
		sync_state(c);
	release_candidate(c);
	run_succeeded(c, CONFIG_PUBLISHED);
}

static void run_publish(struct worker_job *job)
{
	struct config *c = (struct config *)((char *)job - offsetof(struct config, publish_job));

	publish_run(&c->publication);
}

static void publish_done(struct worker_job *job)
{
	struct config *c = (struct config *)((char *)job - offsetof(struct config, publish_job));

	c->publishing = false;
	published(c);
}

/* Publishes the candidate, on the worker if it may block. */
static void publish(struct config *c, bool save)
{
	fill_publication(c, save, c->candidate, &c->body);
	c->publication.confirmed_ms = c->env->sys->now_ms();
	c->publication.stale_ms = stale_ms(c);
	if (!save && c->target && target_is_current(c->target, NULL, 0))
		c->publication.target = NULL; /* only the snapshot was lost */
	if (publish_blocks(&c->publication)) {
		c->publishing = true;
		worker_submit(c->env->worker, &c->publish_job);
		return;
	}
	publish_run(&c->publication);
	published(c);
}

/* --dry-run: says what publish() would do. */
static void publish_dry(struct config *c)
{
	const struct buffer *text = c->text.len ? &c->text : &c->body;
	struct buffer there;
	bool same;

	buffer_init(&there, 2 * server_settings(c->server)->max_bytes);
	same = c->settings->file &&
	       file_read(c->env->sys, AT_FDCWD, c->settings->file, &there) == 0 &&
	       there.len == text->len &&
	       memcmp(there.data ? there.data : "", text->data ? text->data : "", text->len) == 0;
	buffer_fini(&there);
	log_info(same ? "dry run: the file is up to date" : "dry run: would publish", "config",
		c->settings->name, "file", c->settings->file, "bytes", LOG_U64(text->len),
		"version", VERSION_TEXT(c->candidate));
	release_candidate(c);
	run_succeeded(c, same ? CONFIG_UNCHANGED : CONFIG_PUBLISHED);
}

/* The document stands as it was. Somebody may have changed the file meanwhile: then it is put back.
 */
static void unchanged(struct config *c)
{
	struct version stored = {.generation = 0};
	char why[FILE_WHY];
	int r;

	r = prepare(c, why);
	if (r == 0 && (!c->target || target_is_current(c->target, NULL, 0)) &&
		(!c->image || image_is_current(c->image))) {
		run_succeeded(c, CONFIG_UNCHANGED);
		return;
	}
	if (r == 0) {
		r = store_load(c->store, &stored, &c->body, &(unsigned){0});
		snprintf(why, sizeof(why),
			"the file was changed by somebody else, and the last known good cannot be "
			"read");
	}
	if (r == 0)
		r = judge(c,
			stored.type[0] == 'j'   ? SETTINGS_TYPE_JSON
			: stored.type[0] == 'b' ? SETTINGS_TYPE_BYTES
						: SETTINGS_TYPE_YAML,
			&c->body, &stored, &c->text, why);
	if (r == 0 && !new_candidate(c, &stored)) {
		r = -ENOMEM;
		snprintf(why, sizeof(why), "out of memory");
	}
	if (r) {
		free(stored.url);
		release_candidate(c);
		c->published.etag[0] = '\0'; /* ask for the whole document next time */
		c->published.last_modified[0] = '\0';
		run_failed(c, SUPERVISOR_FAILED, "the published file cannot be put right", why);
		return;
	}
	c->restored++;
	log_warn("the file was changed or removed by somebody else: putting it back", "config",
		c->settings->name, "file", c->settings->file);
	publish(c, false);
}

/* ---- pulling ---- */

/* Where it comes from and what it is. False when there is no memory. */
static bool name_candidate(
	struct config *c, enum settings_type type, const struct transport_response *response)
{
	struct version *v = c->candidate;

	snprintf(v->etag, sizeof(v->etag), "%s", response->etag);
	snprintf(v->last_modified, sizeof(v->last_modified), "%s", response->last_modified);
	snprintf(v->type, sizeof(v->type), "%s", type_name(type));
	if (asprintf(&v->url, "%s%s", server_url(c->server, &c->task), c->settings->path) < 0)
		v->url = NULL;
	return v->url;
}

static void accepted(
	struct config *c, enum settings_type type, const struct transport_response *response)
{
	char why[FILE_WHY] = "";
	bool again;
	int r;

	if (!new_candidate(c, &(struct version){.pulled_ms = c->env->sys->wall_ms()}) ||
		!name_candidate(c, type, response)) {
		release_candidate(c);
		run_failed(c, SUPERVISOR_FAILED, "refused: the old version stays", "out of memory");
		return;
	}
	r = judge(c, type, &response->body, c->candidate, &c->text, why);
	if (r == -EINVAL || r == -EMSGSIZE)
		c->refused++;
	if (r == 0) {
		r = digest_sha256(
			response->body.data, response->body.len, NULL, 0, c->candidate->sha256);
		if (r == 0)
			r = buffer_append(&c->body, response->body.data, response->body.len);
		if (r)
			snprintf(why, sizeof(why), "out of memory");
	}
	if (r == 0 && !c->env->dry_run)
		r = prepare(c, why);
	if (r) {
		release_candidate(c);
		run_failed(c, SUPERVISOR_FAILED, "refused: the old version stays", why);
		return;
	}
	if (c->env->dry_run) {
		publish_dry(c);
		return;
	}
	if (c->published.generation && strcmp(c->published.sha256, c->candidate->sha256) == 0) {
		/* same bytes under a new name: the file stands, the next request asks by the new
		 * name */
		c->candidate->generation = c->published.generation;
		set_published(c, c->candidate);
		release_candidate(c);
		unchanged(c);
		return;
	}
	again = c->saved_generation && strcmp(c->saved_sha256, c->candidate->sha256) == 0;
	c->candidate->generation = again ? c->saved_generation : store_next_generation(c->store);
	publish(c, !again);
}

static void answered(void *arg, const struct transport_response *response)
{
	struct config *c = arg;
	enum settings_type type = SETTINGS_TYPE_YAML;
	char why[FILE_WHY] = "";

	c->transfer = NULL;
	if (server_ended(c->server, &c->task, response)) {
		server_retry(c->server, &c->task); /* within the same time limit */
		return;
	}
	loop_timer_cancel(c->env->loop, &c->limit);
	c->scatter = response->status == 429 || response->status == 503;
	switch (source_judge(c->settings, response, c->conditional, &type, why)) {
	case SOURCE_NEW:
		c->shown = push_version_hash(response->etag);
		accepted(c, type, response);
		return;
	case SOURCE_SAME:
		c->shown = push_version_hash(c->published.etag);
		unchanged(c);
		return;
	case SOURCE_TIMEOUT:
		run_failed(c, SUPERVISOR_TIMEOUT, timed_out, why);
		return;
	case SOURCE_FAILED:
		run_failed(c, SUPERVISOR_FAILED, "pull failed: the old version stays", why);
		return;
	}
}

static void limit_passed(void *arg)
{
	struct config *c = arg;
	char why[FILE_WHY];

	if (c->transfer) {
		transport_cancel(c->transfer);
		c->transfer = NULL;
		c->soon = server_ended(c->server, &c->task, NULL);
	} else {
		server_withdraw(c->server, &c->task);
	}
	snprintf(why, sizeof(why), "no whole answer within the time limit of %llu ms",
		(unsigned long long)c->settings->timeout_ms);
	run_failed(c, SUPERVISOR_TIMEOUT, timed_out, why);
}

/* Begins a transfer from the address the server named; what is wrong is written into why. */
static int transfer_start(struct config *c, char why[FILE_WHY])
{
	const struct settings_server *server = server_settings(c->server);
	struct source_request request;
	struct credentials credentials;
	int r = credentials_read(c->env->sys, server, &credentials, why);

	if (r)
		return r;
	source_build(c->settings, server, server_url(c->server, &c->task),
		c->published.generation ? &c->published : NULL, &credentials, &request);
	if (!request.request.tls.ca)
		request.request.tls.ca = c->env->ca_file;
	c->conditional = request.conditional;
	r = transport_start(c->env->transport, &request.request, answered, c, &c->transfer);
	if (r)
		snprintf(why, FILE_WHY, "the request cannot be made: %s", strerror(-r));
	credentials_fini(&credentials);
	return r;
}

/* The server has a free slot: for a new run, or for one that goes on at another address. */
static bool slot_free(void *arg)
{
	struct config *c = arg;
	char why[FILE_WHY] = "";

	if (!trigger_running(&c->trigger)) {
		if (!trigger_begin(&c->trigger, c->env->sys->now_ms())) {
			arm(c);
			return false;
		}
		c->run = supervisor_begin(&c->supervisor);
		/* before the request: a message lost from here on is caught up with */
		atomic_store_explicit(&c->topic.pulled, true, memory_order_release);
		c->shown = 0;
		c->soon = c->scatter = false;
		loop_timer_set(c->env->loop, &c->limit,
			loop_now_ms(c->env->loop) + c->settings->timeout_ms);
		arm(c);
	}
	if (transfer_start(c, why) == 0)
		return true;
	loop_timer_cancel(c->env->loop, &c->limit);
	run_failed(c, SUPERVISOR_REJECTED, "pull could not be started", why);
	return false;
}

/* The server had no slot in time. */
static void slot_lost(void *arg, const char *why)
{
	struct config *c = arg;

	loop_timer_cancel(c->env->loop, &c->limit);
	if (!trigger_running(&c->trigger)) {
		if (!trigger_begin(&c->trigger, c->env->sys->now_ms())) {
			arm(c);
			return;
		}
		c->run = supervisor_begin(&c->supervisor);
	}
	run_failed(c, SUPERVISOR_REJECTED, "pull could not be started", why);
}

static void due(void *arg)
{
	struct config *c = arg;

	if (trigger_running(&c->trigger)) { /* one more run right after it */
		trigger_begin(&c->trigger, c->env->sys->now_ms());
		arm(c);
	} else {
		server_submit(c->server, &c->task, expiry_ms(c));
	}
}

/* ---- the end of a run ---- */

/* A push promised a version. Showing another one, the server lags: ask again soon, a few times. */
static bool must_repull(struct config *c)
{
	uint64_t wanted = atomic_load_explicit(&c->topic.wanted, memory_order_acquire);

	if (wanted != c->wanted) {
		c->wanted = wanted;
		c->repulls = 0;
	}
	if (wanted == 0 || c->shown == 0)
		return false;
	if (wanted == c->shown || c->repulls == CONFIG_REPULLS) {
		if (wanted != c->shown)
			log_warn("the server still shows another version than the push promised",
				"config", c->settings->name, "shown", VERSION_TEXT(&c->published));
		/* not if a newer promise came meanwhile */
		atomic_compare_exchange_strong(&c->topic.wanted, &wanted, 0);
		return false;
	}
	return true;
}

/* The supervised delay with jitter, so that the hosts of a fleet do not fall into step. */
static uint64_t jittered(struct config *c, uint64_t delay_ms, unsigned percent)
{
	uint64_t span = delay_ms / 100 * percent + delay_ms % 100 * percent / 100;

	return delay_ms - span + sys_random_upto(c->env->sys, 2 * span);
}

/* Whatever the run came to: the next one is due, those who waited are told. */
static void run_ended(struct config *c)
{
	struct config_waiter *w, **link = &c->waiters, *ended = NULL;
	uint64_t next_ms = jittered(c, supervisor_delay(&c->supervisor), c->settings->jitter);

	if (must_repull(c))
		next_ms = jittered(c, repull_delay_ms[c->repulls++], 25);
	else if (c->soon)
		next_ms = jittered(c, FAILOVER_MS, 50);
	else if (c->scatter)
		next_ms = sys_random_upto(c->env->sys, supervisor_delay(&c->supervisor));
	trigger_end(&c->trigger, c->env->sys->now_ms(), next_ms);
	arm(c);

	while ((w = *link)) { /* unlinked first: a waiter may add or cancel others */
		if (c->run <= w->after) {
			link = &w->next;
			continue;
		}
		*link = w->next;
		w->next = ended;
		ended = w;
	}
	while ((w = ended)) {
		ended = w->next;
		w->ended(w->arg, c);
	}
	if (c->env->run_ended)
		c->env->run_ended(c->env->arg, c);
}

static void run_failed(
	struct config *c, enum supervisor_outcome outcome, const char *what, const char *why)
{
	supervisor_end(&c->supervisor, c->run, outcome);
	c->outcome = CONFIG_FAILED;
	complain(c, what, why);
	run_ended(c);
}

static void run_succeeded(struct config *c, enum config_outcome outcome)
{
	supervisor_end(&c->supervisor, c->run, SUPERVISOR_SUCCESS);
	c->outcome = outcome;
	confirm(c);
	run_ended(c);
}

/* ---- outside ---- */

struct config *config_new(const struct config_env *env, const struct settings_config *settings)
{
	struct config *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->env = env;
	c->settings = settings;
	c->server = env->servers[settings->server];
	c->task = (struct server_task){.begin = slot_free, .lost = slot_lost, .arg = c};
	trigger_init(&c->trigger, env->queue);
	supervisor_init(&c->supervisor, settings->interval_ms, settings->backoff_bound);
	loop_timer_init(&c->due, due, c);
	loop_timer_init(&c->limit, limit_passed, c);
	c->topic.topic = settings->topic;
	c->topic.trigger = &c->trigger;
	c->topic.spread_ms = settings->push_spread_ms;
	/* an aliased or escaped document may be written out longer than it came */
	buffer_init(&c->body, server_settings(c->server)->max_bytes);
	buffer_init(&c->text, 4 * server_settings(c->server)->max_bytes);
	c->publish_job = (struct worker_job){.run = run_publish, .done = publish_done};
	c->sync_job = (struct worker_job){.run = run_sync, .done = sync_done};
	return c;
}

void config_free(struct config *c)
{
	if (!c)
		return;
	if (c->transfer)
		transport_cancel(c->transfer);
	server_withdraw(c->server, &c->task);
	loop_timer_cancel(c->env->loop, &c->due);
	loop_timer_cancel(c->env->loop, &c->limit);
	release_candidate(c);
	target_close(c->target);
	image_close(c->image);
	store_close(c->store);
	free(c->published.url);
	free(c);
}

/* Makes the last known good visible, if it is not yet. Nothing good is lost when it cannot be. */
static void start_from_store(struct config *c)
{
	struct version v = {.generation = 0};
	char why[FILE_WHY] = "";
	unsigned damaged = 0;
	const struct buffer *text;
	enum settings_type type;
	int r = prepare(c, why);

	if (r) {
		complain(c, "cannot publish here: trying again at every pull", why);
		return;
	}
	r = store_load(c->store, &v, &c->body, &damaged);
	if (damaged)
		log_err("state files were damaged (set aside) or could not be read", "config",
			c->settings->name, "files", LOG_U64(damaged));
	if (r)
		goto out;
	type = v.type[0] == 'j'   ? SETTINGS_TYPE_JSON
	       : v.type[0] == 'b' ? SETTINGS_TYPE_BYTES
				  : SETTINGS_TYPE_YAML;
	if (c->settings->type != SETTINGS_TYPE_AUTO)
		type = c->settings->type;
	r = judge(c, type, &c->body, &v, &c->text, why);
	if (r) {
		complain(c, "the last known good does not fit the present configuration", why);
		goto out;
	}
	fill_publication(c, false, &v, &c->body);
	text = c->publication.text == c->body.data ? &c->body : &c->text;
	if (c->target && target_is_current(c->target, text->data ? text->data : "", text->len))
		c->publication.target = NULL; /* left alone */
	if (c->publication.target || c->publication.image) {
		publish_run(&c->publication); /* at start it may block */
		if (c->publication.error) {
			remember_saved(c, &v);
			complain(c, "the last known good could not be published",
				c->publication.why);
			goto out;
		}
	}
	set_published(c, &v);
	c->published_wall_ms = v.pulled_ms;
	log_info("started from the last known good", "config", c->settings->name, "generation",
		LOG_U64(v.generation), "version", VERSION_TEXT(&v), "file", c->settings->file);
out:
	free(v.url);
	release_candidate(c);
}

/* How long a pull that nobody waits for may be put off. */
static uint64_t splay_ms(struct config *c)
{
	uint64_t bound = c->settings->interval_ms;

	if (c->env->once || c->published.generation == 0 ||
		server_find(c->server, c->published.url, c->settings->path) < 0)
		return 0;
	return sys_random_upto(c->env->sys, bound < CONFIG_SPLAY_MS ? bound : CONFIG_SPLAY_MS);
}

void config_start(struct config *c)
{
	if (!c->env->dry_run)
		start_from_store(c);
	trigger_fire(&c->trigger, c->env->sys->now_ms(), splay_ms(c));
}

void config_resumed(struct config *c)
{
	uint64_t due_ms, now_ms = c->env->sys->now_ms();

	if (trigger_due(&c->trigger, &due_ms) && due_ms < now_ms && !c->task.waiting)
		trigger_fire(&c->trigger, now_ms, splay_ms(c));
	arm(c);
}

void config_called(struct trigger *t)
{
	struct config *c = (struct config *)((char *)t - offsetof(struct config, trigger));

	arm(c);
}

void config_refresh(struct config *c)
{
	server_lift(c->server);
	trigger_fire(&c->trigger, c->env->sys->now_ms(), 0);
}

void config_wait(struct config *c, struct config_waiter *w)
{
	w->after = c->run;
	w->next = c->waiters;
	c->waiters = w;
}

void config_wait_cancel(struct config *c, struct config_waiter *w)
{
	for (struct config_waiter **link = &c->waiters; *link; link = &(*link)->next) {
		if (*link == w) {
			*link = w->next;
			return;
		}
	}
}

struct push_topic *config_push_topic(struct config *c)
{
	return &c->topic;
}

const char *config_name(const struct config *c)
{
	return c->settings->name;
}

static int64_t age_ms(struct config *c)
{
	int64_t age;

	if (c->published.generation == 0)
		return -1;
	if (c->confirmed_ms)
		return (int64_t)(c->env->sys->now_ms() - c->confirmed_ms);
	age = c->env->sys->wall_ms() - c->published.pulled_ms; /* by an earlier process */
	return age > 0 ? age : 0;
}

void config_status(struct config *c, struct config_status *ret_status)
{
	uint64_t due_ms, now_ms = c->env->sys->now_ms();
	int64_t age = age_ms(c);
	const char *state = "ok";

	if (c->published.generation == 0)
		state = "waiting";
	else if (c->confirmed_ms == 0 || c->error[0])
		state = age > (int64_t)stale_ms(c) ? "stale" : c->error[0] ? "failing" : "ok";
	*ret_status = (struct config_status){
		.settings = c->settings,
		.version = &c->published,
		.supervisor = &c->supervisor,
		.state = state,
		.last_error = c->error,
		.last_error_ms = c->error_wall_ms,
		.published_ms = c->published_wall_ms,
		.confirmed_ms = c->confirmed_wall_ms,
		.age_ms = age,
		.next_pull_in_ms = -1,
		.running = trigger_running(&c->trigger),
		.waiting = c->task.waiting,
		.server = c->server,
		.outcome = c->outcome,
		.refused = c->refused,
		.restored = c->restored,
		.pushes = atomic_load_explicit(&c->topic.messages, memory_order_relaxed),
	};
	if (c->settings->snapshot)
		snprintf(ret_status->snapshot, sizeof(ret_status->snapshot), "%s/%s.snap",
			c->env->runtime_dir, c->settings->name);
	snprintf(ret_status->url, sizeof(ret_status->url), "%.1000s%s",
		server_url(c->server, &c->task), c->settings->path);
	if (trigger_due(&c->trigger, &due_ms))
		ret_status->next_pull_in_ms = due_ms > now_ms ? (int64_t)(due_ms - now_ms) : 0;
}
