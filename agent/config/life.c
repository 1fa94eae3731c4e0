/*
 * The life of a config, from its making to its end, and what others ask of it.
 */
#include "config/core.h"

#include <stdlib.h>
#include <string.h>

#include "base/etag.h"

void config_wake_waiters(struct config *c, uint64_t first, uint64_t last)
{
	struct config_waiter *w, **link = &c->run.waiters, *ended = NULL;

	while ((w = *link)) { /* unlinked first: a waiter may add or cancel others */
		if (w->after < first || w->after > last) {
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
}

struct config *config_new(const struct config_env *env, const struct settings_config *settings)
{
	struct config *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->env = env;
	c->settings = settings;
	c->latest.said = REJECTION_REASONS;
	run_init(c);
	current_init(c);
	decisions_init(c);
	publishing_init(c);
	syncing_init(c);
	c->decisions.checks = verify_new(env->sys, settings);
	if (c->decisions.checks && run_open(c) == 0)
		return c;
	config_free(c);
	return NULL;
}

void config_free(struct config *c)
{
	if (!c)
		return;
	c->mode = MODE_RETIRING;
	if (c->env->gone)
		config_add_totals(c, c->env->gone);
	tasks_end(c);
	step_fini(c);
	latest_forget(c);
	run_fini(c);
	current_fini(c);
	decisions_fini(c);
	kept_layers_free(c->kept);
	status_forget_outage(c);
	free(c->status.error);
	free(c->status.log_limit);
	free(c);
}

/* ---- the end, while others go on ---- */

bool config_at_disk(const struct config *c)
{
	return c->step.publishing || c->current.syncing || c->step.validating ||
	       c->run.assembling || c->tasks;
}

void config_finish_retiring(struct config *c)
{
	void (*retired)(void *arg) = c->retired;

	if (!retired || config_at_disk(c))
		return;
	c->retired = NULL;
	retired(c->retired_arg);
}

bool config_retire(struct config *c, void (*ended)(void *arg), void *arg)
{
	c->mode = MODE_RETIRING;
	run_retire(c);
	current_retire(c);
	tasks_drop(c);
	step_drop(c);
	if (ended)
		request_cancel(c);
	if (ended && c->decisions.unsaved)
		decisions_save(c); /* the config that takes its place reads them */
	if (!config_at_disk(c))
		return true;
	c->retired = ended;
	c->retired_arg = arg;
	return false;
}

void config_wait(struct config *c, struct config_waiter *w)
{
	w->after = c->run.number;
	w->next = c->run.waiters;
	c->run.waiters = w;
}

void config_wait_any(struct config *c, struct config_waiter *w)
{
	config_wait(c, w);
	w->after = CONFIG_ANY;
}

bool config_has_published(const struct config *c, uint64_t generation, const char *version)
{
	const struct version *v = &c->current.version;

	if (v->generation == 0 || v->generation < generation)
		return false;
	for (size_t i = 0; version[0] && i < v->part_count; i++)
		if (etag_hash(v->parts[i].etag) == etag_hash(version))
			return true;
	return !version[0];
}

void config_wait_cancel(struct config *c, struct config_waiter *w)
{
	for (struct config_waiter **link = &c->run.waiters; *link; link = &(*link)->next) {
		if (*link == w) {
			*link = w->next;
			return;
		}
	}
}

struct push_topic *config_push_topic(struct config *c)
{
	return &c->run.topic;
}

size_t config_place(const struct config *c)
{
	return c->place;
}

void config_set_place(struct config *c, size_t place)
{
	c->place = place;
}

const char *config_name(const struct config *c)
{
	return c->settings->name;
}
