/*
 * What replaces the current version without a pull: a rollback, other overrides, the version before
 * one that fails its probe. Queued, and done when nothing else is under way.
 *
 * Surprising: a request that fails is not kept; every run compares the current version with the
 * ledger, and queues it again.
 */
#include "config/state.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void roll_back_failed(struct config *c, const char *why);

void requests_clear(struct config *c)
{
	free(c->request.origin);
	c->request = (struct request){.kind = REQUEST_NOTHING};
}

void requests_recompose(struct config *c)
{
	char why[FILE_WHY] = "out of memory";
	unsigned damaged;
	int r = -ENOMEM;

	c->candidate = candidate_new();
	if (c->candidate)
		r = candidate_load(c->candidate, c->store, c->published.generation, &damaged, why);
	if (r) {
		pipeline_fail(c, "cannot compose the current version again", why);
		return;
	}
	c->candidate->save = true;
	validation_start(c, VERIFY_RECOMPOSED);
}

/* The current version was composed with other overrides than those of the ledger. */
static bool has_old_overrides(const struct config *c)
{
	const struct ledger *was = c->current_overrides, *is = c->ledger;
	size_t n = was ? was->override_count : 0;

	if (c->change.under_way || n != is->override_count)
		return !c->change.under_way;
	for (size_t i = 0; i < n; i++)
		if (strcmp(was->overrides[i].key, is->overrides[i].key) != 0 ||
			strcmp(was->overrides[i].value, is->overrides[i].value) != 0)
			return true;
	return false;
}

void requests_retry(struct config *c)
{
	const struct ledger_verdict *v =
		ledger_find_verdict(c->ledger, c->published.sha256, verify_id(c->checks));
	char why[FILE_WHY];

	if (c->rejected)
		return;
	if (v && rejection_parse(v->check) == REJECTED_BY_PROBE) {
		snprintf(why, sizeof(why), "%.380s", v->why); /* the verdict is replaced */
		roll_back_failed(c, why);
	} else if (has_old_overrides(c))
		requests_add(c, &(struct request){.kind = REQUEST_RECOMPOSE},
			"the overrides have changed");
}

int requests_add(struct config *c, const struct request *request, const char *origin)
{
	bool recompose = c->request.kind == REQUEST_RECOMPOSE || c->request.recompose;
	char *text;

	if (c->request.kind != REQUEST_NOTHING && request->kind == REQUEST_RECOMPOSE) {
		c->request.recompose = true;
		return 0;
	}
	if (c->request.kind == REQUEST_ROLL_BACK && !request->asked)
		return 0;
	text = strdup(origin);
	if (!text) {
		log_err("out of memory: not done", "config", c->settings->name, "what", origin);
		return -ENOMEM;
	}
	requests_clear(c);
	c->request = *request;
	c->request.origin = text;
	c->request.recompose = recompose;
	memcpy(c->request.from, c->published.sha256, sizeof(c->request.from));
	requests_serve(c);
	return 0;
}

/* The version that it rolls back was replaced meanwhile. */
static void cancel_rollback(struct config *c)
{
	bool recompose = c->request.recompose;

	log_info("not rolled back: another version was published meanwhile", "config",
		c->settings->name, "what", c->request.origin);
	requests_clear(c);
	if (!c->change.overrides)
		operations_end_change(
			c, "another version was published meanwhile: check it and try again");
	if (recompose && requests_add(c, &(struct request){.kind = REQUEST_RECOMPOSE},
				 "the overrides have changed"))
		operations_end_change(c, "out of memory");
}

/* Takes the queued request, whose origin is the caller's then. False: none that can be done now. */
static bool take_request(struct config *c, struct request *ret)
{
	if (c->request.kind == REQUEST_NOTHING || c->candidate || trigger_running(&c->trigger))
		return false;
	if (c->request.kind == REQUEST_ROLL_BACK &&
		strcmp(c->request.from, c->published.sha256) != 0) {
		cancel_rollback(c);
		return false;
	}
	*ret = c->request;
	c->request = (struct request){.kind = REQUEST_NOTHING};
	if (c->published.generation)
		return true;
	free(ret->origin);
	return false;
}

static void fail_request(struct config *c, struct request *q, const char *why)
{
	log_err("request failed: keeping the current version", "config", c->settings->name, "what",
		q->origin, "why", why);
	free(q->origin);
	pipeline_drop_candidate(c);
	operations_end_change(c, why);
}

static void run_request(struct config *c)
{
	char why[FILE_WHY] = "out of memory";
	struct candidate *v;
	struct request q;
	bool rolls_back;
	unsigned damaged;

	if (!take_request(c, &q))
		return;
	rolls_back = q.kind == REQUEST_ROLL_BACK;
	c->candidate = v = candidate_new();
	if (!v || candidate_load(v, c->store, rolls_back ? q.generation : c->published.generation,
			  &damaged, why)) {
		fail_request(c, &q, why);
		return;
	}
	c->change.granted = c->change.under_way;
	v->local = v->save = true;
	v->stays = q.stays;
	v->version.product_len = 0;
	buffer_clear(&v->text);
	v->has_text = false;
	free(v->version.origin);
	v->version.origin = q.origin;
	validation_start(c, rolls_back && !q.recompose ? VERIFY_TRUSTED : VERIFY_RECOMPOSED);
}

void requests_serve(struct config *c)
{
	const char *cause = c->drift_cause;

	c->drift_cause = NULL;
	if (c->retires)
		return;
	if (cause)
		current_drift_noticed(c, cause);
	run_request(c);
}

/* The generation to publish instead of `bad`: the proven one if it is kept, else the newest before.
 * 0 = none. */
static uint64_t find_rollback_target(struct config *c, uint64_t bad)
{
	uint64_t generations[STORE_MAX_KEEP], newest = 0;
	size_t n = store_list(c->store, generations);

	for (size_t i = 0; i < n; i++) {
		if (generations[i] >= bad)
			continue;
		if (generations[i] == c->ledger->proven)
			return generations[i];
		if (!newest)
			newest = generations[i];
	}
	return newest;
}

/* Same bytes as the last good version, so the overrides are at fault. */
static bool are_overrides_at_fault(struct config *c, uint64_t good)
{
	struct candidate *v = c->current_overrides ? candidate_new() : NULL;
	char why[FILE_WHY];
	unsigned damaged;
	bool same = v && candidate_load(v, c->store, good, &damaged, why) == 0 &&
		    version_same(&v->version, &c->published);

	candidate_free(v);
	return same;
}

static void drop_overrides(struct config *c)
{
	while (c->ledger->override_count)
		ledger_drop_override(
			c->ledger, c->ledger->overrides[c->ledger->override_count - 1].key);
	operations_forgive_rejections(c);
	current_save_ledger(c);
	requests_add(c, &(struct request){.kind = REQUEST_RECOMPOSE, .stays = true},
		"probe: the overrides were bad, and are removed");
}

/* The current version failed its probe. */
static void roll_back_failed(struct config *c, const char *why)
{
	uint64_t generation = c->published.generation, good = find_rollback_target(c, generation);
	char origin[160];

	if (good && are_overrides_at_fault(c, good)) {
		config_report_failure(c, "the overrides failed the probe and are removed", why);
		drop_overrides(c);
		return;
	}
	if (!good && store_list(c->store, (uint64_t[STORE_MAX_KEEP]){0}) > 0) {
		log_err("the version fails its probe, and there is no older one to go back to",
			"config", c->settings->name, "generation", LOG_U64(generation));
		config_report_failure(
			c, "the version fails its probe, and there is no older one", why);
		return;
	}
	if (ledger_reject(c->ledger, c->published.sha256, rejection_name(REJECTED_BY_PROBE), "",
		    c->env->sys->wall_ms(), why) == 0)
		current_save_ledger(c);
	snprintf(origin, sizeof(origin), "probe: generation %llu was bad, back to %llu",
		(unsigned long long)generation, (unsigned long long)good);
	config_report_failure(c, "the version failed its probe and was rolled back", why);
	requests_add(c,
		&(struct request){.kind = REQUEST_ROLL_BACK, .generation = good, .stays = true},
		origin);
}

static void probe_failed(void *arg, uint64_t generation, const char *why)
{
	struct config *c = arg;

	if (generation == c->published.generation)
		roll_back_failed(c, why);
}

static void ledger_changed(void *arg)
{
	current_save_ledger(arg);
}

static const struct notify_calls notify_calls = {ledger_changed, probe_failed, pipeline_scrub};

void requests_start_notify(struct config *c)
{
	const struct notify_options options = {
		.loop = c->env->loop,
		.transport = c->env->pull.exchange.transport,
		.ca_file = c->env->pull.exchange.ca_file,
		.config = c->settings,
		.ledger = c->ledger,
		.current = c->published.generation,
		.calls = &notify_calls,
		.arg = c,
	};

	if (!c->notify && c->ledger && !c->env->once && notify_wanted(c->settings)) {
		c->notify = notify_new(&options);
		if (!c->notify)
			log_err("out of memory: the application will not be notified", "config",
				c->settings->name);
	}
}

void requests_finish_rollback(struct config *c)
{
	const struct ledger_verdict *v =
		c->published.generation ? ledger_find_verdict(c->ledger, c->published.sha256, "")
					: NULL;
	uint64_t good = v ? find_rollback_target(c, c->published.generation) : 0;
	char origin[160];

	if (!good)
		return;
	snprintf(origin, sizeof(origin),
		"%s: generation %llu was rolled back, finished after a restart", v->check,
		(unsigned long long)c->published.generation);
	requests_add(c,
		&(struct request){.kind = REQUEST_ROLL_BACK, .generation = good, .stays = true},
		origin);
}
