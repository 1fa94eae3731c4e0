/*
 * Reload, then probe. Surprising: a version whose reload keeps failing is not rolled back; it
 * passed every check, and the application still runs with the old one, as the status shows.
 */
#include "notify/notify.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "notify/probe.h"

struct notify {
	struct notify_options o;
	struct reload *reload; /* NULL: no rules */
	struct probe *probe;   /* runs */
	enum probe_state state;
	uint64_t current, watched; /* generations */
	uint64_t failed;
	char why[PROBE_WHY];
	struct log_limit log_limit;
};

bool notify_wanted(const struct settings_config *config)
{
	return config->reload.rule_count || config->probe.argv || config->probe.url;
}

static bool has_probe(const struct notify *a)
{
	return a->o.config->probe.argv || a->o.config->probe.url;
}

static void say_happened(struct notify *a, enum notify_event what, const char *why)
{
	if (a->o.calls->happened)
		a->o.calls->happened(a->o.arg, what, why);
}

/* ---- probe ---- */

static void probe_ended(void *arg, bool good, const char *why)
{
	struct notify *a = arg;

	a->probe = NULL;
	a->state = good ? PROBE_PASSED : PROBE_FAILED;
	say_happened(a, good ? NOTIFY_PROBE_PASSED : NOTIFY_PROBE_FAILED, good ? "" : why);
	if (good) {
		log_info("probe passed: keeping the version", "config", a->o.config->name,
			"generation", LOG_U64(a->watched));
		a->o.ledger->proven = a->watched;
		a->o.calls->remember(a->o.arg);
		return;
	}
	a->failed++;
	snprintf(a->why, sizeof(a->why), "%s", why);
	log_err("probe failed", "config", a->o.config->name, "generation", LOG_U64(a->watched),
		"why", why);
	a->o.calls->bad(a->o.arg, a->watched, why);
}

/* The application runs with the current version. */
static void start_probe(struct notify *a)
{
	const struct probe_options options = {
		.loop = a->o.loop,
		.transport = a->o.transport,
		.ca_file = a->o.ca_file,
		.settings = &a->o.config->probe,
		.name = a->o.config->name,
		.file = settings_place(a->o.config),
		.generation = a->current,
		.scrub = a->o.calls->scrub,
		.scrub_arg = a->o.arg,
		.ended = probe_ended,
		.arg = a,
	};

	if (!has_probe(a) || a->o.ledger->proven == a->current)
		return;
	a->watched = a->current;
	a->probe = probe_start(&options);
	a->state = a->probe ? PROBE_RUNNING : PROBE_NONE;
	if (!a->probe)
		log_err("out of memory: the version is not watched", "config", a->o.config->name);
}

/* ---- reload ---- */

static void log_reload(struct notify *a, const struct reload_result *r)
{
	unsigned suppressed;

	if (r->ok) {
		log_info("reload succeeded", "config", a->o.config->name, "generation",
			LOG_U64(r->generation), "output", r->output[0] ? r->output : NULL);
		memset(&a->log_limit, 0, sizeof(a->log_limit));
	} else if (log_limit_pass_kind(
			   &a->log_limit, loop_now_ms(a->o.loop), "reload", r->why, &suppressed)) {
		log_err("reload failed: the application runs with an old version, trying "
			"again",
			"config", a->o.config->name, "generation", LOG_U64(r->generation), "why",
			r->why, "output", r->output[0] ? r->output : NULL, "repeated",
			suppressed ? LOG_U64(suppressed) : NULL);
	}
}

static void reload_ended(void *arg, const struct reload_result *r)
{
	struct notify *a = arg;

	log_reload(a, r);
	say_happened(a, r->ok ? NOTIFY_RELOADED : NOTIFY_RELOAD_FAILED, r->why);
	if (!r->ok)
		return;
	a->o.ledger->notified = r->generation;
	a->o.calls->remember(a->o.arg);
	if (r->generation == a->current)
		start_probe(a);
}

void notify_published(struct notify *a, uint64_t generation, char *const *keys, size_t count,
	bool all, bool stays)
{
	probe_free(a->probe); /* of the version before */
	a->probe = NULL;
	a->current = generation;
	if (!stays ||
		a->state != PROBE_FAILED) /* a failed probe stays visible after its rollback */
		a->state = has_probe(a) ? PROBE_WAITING : PROBE_NONE;
	if (stays) {
		a->o.ledger->proven = generation;
		if (a->state == PROBE_WAITING)
			a->state = PROBE_PASSED;
		a->o.calls->remember(a->o.arg);
	}
	if (a->reload && reload_changed(a->reload, generation, keys, count, all))
		return;
	a->o.ledger->notified = generation;
	if (a->reload)
		a->o.calls->remember(a->o.arg);
	start_probe(a);
}

/* ---- outside ---- */

struct notify *notify_new(const struct notify_options *options)
{
	struct notify *a = calloc(1, sizeof(*a));
	const struct settings_config *c = options->config;

	if (!a)
		return NULL;
	a->o = *options;
	a->current = options->current;
	if (c->reload.rule_count) {
		const struct reload_options reload = {
			.loop = options->loop,
			.settings = &c->reload,
			.name = c->name,
			.file = settings_place(c),
			.notified = options->ledger->notified,
			.current = options->current,
			.scrub = options->calls->scrub,
			.scrub_arg = options->arg,
			.ended = reload_ended,
			.arg = a,
		};

		a->reload = reload_new(&reload);
		if (!a->reload) {
			free(a);
			return NULL;
		}
	}
	/* a restart interrupted the probe: again from its beginning */
	if (a->current && (!a->reload || !reload_pending(a->reload)))
		start_probe(a);
	return a;
}

void notify_free(struct notify *a)
{
	if (!a)
		return;
	probe_free(a->probe);
	reload_free(a->reload);
	free(a);
}

void notify_status(struct notify *a, struct notify_status *ret_status)
{
	*ret_status = (struct notify_status){
		.has_reload = a->reload,
		.has_probe = has_probe(a),
		.probe = a->state,
		.probe_generation = a->watched,
		.probe_why = a->why,
		.probes_failed = a->failed,
	};
	if (a->reload)
		reload_status(a->reload, &ret_status->reload);
}
